#!/usr/bin/env bash
# README.md: its option table is the program's, its links exist, and no driver or variable is left
# out.
set -u
cd "$(dirname "$0")/.." || exit 3
passed=0 failed=0

verdict() { # verdict NAME EXIT_CODE
    if [[ "$2" == 0 ]]; then
        passed=$((passed + 1))
        echo "ok     $1"
    else
        failed=$((failed + 1))
        echo "not ok $1"
    fi
}

links_exist() {
    local target bad=0
    while read -r target; do
        if [[ ! -e "$target" ]]; then
            echo "    README.md links to $target, which does not exist"
            bad=1
        fi
    done < <(grep -o '](\([^)#]*\))' README.md | sed 's/^](//; s/)$//' | grep -v '^http')
    return $bad
}

# The example is a table that the strict reader accepts, so nobody wrote it by hand.
example_is_a_run() {
    local example
    example="$(mktemp)" || return 1
    sed -n '/^<!-- table:begin -->$/,/^<!-- table:end -->$/p' README.md |
        grep -v '^<!--\|^```\|^\$\|^$' >"$example"
    python3 tests/table.py "$example"
    local code=$?
    rm -f "$example"
    return $code
}

drivers_named() {
    local file name bad=0
    for file in src/collectives/*.c; do
        name="$(basename "$file" .c)"
        if ! grep -q "\`$name\`" README.md; then
            echo "    README.md does not name $name"
            bad=1
        fi
    done
    return $bad
}

variables_named() {
    local name bad=0 program="${BUILDDIR:-build}/all_reduce_perf${NAME_SUFFIX:-}"
    for name in $("$program" --help | grep -o '^  NCCL_[A-Z0-9_]*'); do
        if ! grep -q "\`$name\`" README.md; then
            echo "    README.md does not name $name"
            bad=1
        fi
    done
    return $bad
}

scripts/readme.sh options --check
verdict "option table is up to date (else: make readme)" $?
example_is_a_run
verdict "example (else: scripts/readme.sh table)" $?
links_exist
verdict "links" $?
drivers_named
verdict "drivers" $?
variables_named
verdict "variables of NCCL" $?
echo "$passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
