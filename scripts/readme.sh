#!/usr/bin/env bash
# Fill one part of README.md, between its markers, from what the programs print.
#
#   scripts/readme.sh options          the option table (make readme)
#   scripts/readme.sh options --check  exit 1 and show the difference if it is out of date
#   scripts/readme.sh table            a run on this machine: wants two idle cores
#   scripts/bench.sh | scripts/readme.sh bench   the comparison with MPI: likewise
set -euo pipefail
cd "$(dirname "$0")/.."

program="${BUILDDIR:-build}/all_reduce_perf${NAME_SUFFIX:-}"
run=(-b 8 -e 16M -f 8 -g 2)
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

part_options() { "$program" --help-markdown; }
part_bench() { cat; }
part_table() {
    "$program" "${run[@]}" >"$work/run"
    printf '```\n$ build/all_reduce_perf %s\n' "${run[*]}"
    sed -e 's/ *$//' -e '${/^ *$/d}' "$work/run"
    printf '```\n'
}

part="${1:-}"
if ! declare -F "part_$part" >/dev/null; then
    echo "usage: $0 options [--check] | table | bench" >&2
    exit 2
fi
"part_$part" >"$work/text"
awk -v part="$part" -v text="$work/text" '
    $0 == "<!-- " part ":end -->" { inside = 0 }
    !inside { print }
    $0 == "<!-- " part ":begin -->" {
        inside = 1
        print ""
        while ((getline line < text) > 0)
            print line
        print ""
    }' README.md >"$work/readme"

if [[ "${2:-}" == --check ]]; then
    diff -u README.md "$work/readme"
elif ! cmp -s README.md "$work/readme"; then
    cat "$work/readme" >README.md
fi
