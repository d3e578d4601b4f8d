#!/usr/bin/env bash
# The rules of CONTRIBUTING.md that a machine can check. Prints "file:line: rule: detail".
#
#   scripts/lint.sh               text rules, clang-format, cppcheck, shellcheck
#   scripts/lint.sh --rules ROOT  only the text rules, on another tree (tests/test_lint.sh)
#
# A tool that is not installed is skipped, and a failure when CI is set.
set -u
cd "$(dirname "$0")/.." || exit 3
here="$PWD"
export LC_ALL=C

passed=0 failed=0 skipped=0
only_rules=
if [[ "${1:-}" == --rules ]]; then
    only_rules=1
    cd "$2" || exit 3
fi

shopt -s nullglob
sources=({src/*,tests,tests/{sim,ptx},bench,fuzz}/*.{c,cc,h,cu,cuh})
shell=(scripts/*.sh scripts/recipes/*.sh tests/*.sh tests/ptx/*.sh)
python=(scripts/collmark {scripts,scripts/collmark_lib,tests,tests/sim,tests/ptx}/*.py)
[[ -f .ci/run ]] && shell+=(.ci/run)

check() { # check NAME COMMAND...: a check passes if it is silent and returns 0
    local name="$1" out
    shift
    if out="$("$@" 2>&1)" && [[ -z "$out" ]]; then
        passed=$((passed + 1))
    else
        printf '%s\n' "$out"
        echo "lint: $name failed"
        failed=$((failed + 1))
    fi
}

skip() { # skip NAME REASON
    if [[ -n "${CI:-}" ]]; then
        echo "lint: $1 cannot run: $2"
        failed=$((failed + 1))
    else
        echo "skip $1: $2"
        skipped=$((skipped + 1))
    fi
}

# The marker words are spelled in two parts so that this file does not carry them.
text_rules() {
    local out
    out="$(awk -v marker="T[O]DO|F[I]XME" -f "$here/scripts/lint.awk" "$@")" || return 1
    printf '%s' "$out"
}

cpp_check() {
    cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr -j 2 \
        -Isrc -Itests --suppressions-list="$here/scripts/cppcheck.supp" --error-exitcode=1 \
        --template='{file}:{line}: cppcheck: {message} [{id}]' "$@"
}

# They compile, files have at most 400 lines, lines at most 100 columns.
python_rules() {
    python3 - "$@" <<'CHECK'
import sys
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as f:
        text = f.read()
    compile(text, path, "exec")
    lines = text.split("\n")
    if len(lines) > 401:
        print(f"{path}:{len(lines) - 1}: file: {len(lines) - 1} lines, at most 400")
    for number, line in enumerate(lines, 1):
        if len(line) > 100:
            print(f"{path}:{number}: columns: {len(line)}, at most 100")
CHECK
}

# Releases of clang-format disagree in details; the tree follows 14.
find_format() {
    local f
    for f in clang-format-14 clang-format; do
        if command -v "$f" >/dev/null && [[ "$("$f" --version)" == *" version 14."* ]]; then
            echo "$f"
            return
        fi
    done
}

check rules text_rules "${sources[@]}" "${shell[@]}"
if [[ -z "$only_rules" ]]; then
    check python python_rules "${python[@]}"
    format="$(find_format)"
    if [[ -n "$format" ]]; then
        check format "$format" --dry-run --Werror "${sources[@]}"
    else
        skip format "no clang-format 14"
    fi
    if command -v cppcheck >/dev/null; then
        check cppcheck cpp_check src bench
    else
        skip cppcheck "not installed"
    fi
    if command -v shellcheck >/dev/null; then
        check shellcheck shellcheck -f gcc "${shell[@]}"
    else
        skip shellcheck "not installed"
    fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
