#!/usr/bin/env bash
# Put the option table of the built program into README.md, between its markers.
#
#   scripts/readme_options.sh          rewrite README.md
#   scripts/readme_options.sh --check  exit 1 and show the difference if it is out of date
set -euo pipefail
cd "$(dirname "$0")/.."

program="${BUILDDIR:-build}/all_reduce_perf${NAME_SUFFIX:-}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

"$program" --help-markdown >"$work/table"
awk -v table="$work/table" '
    /<!-- options:end -->/ { inside = 0 }
    !inside { print }
    /<!-- options:begin -->/ {
        inside = 1
        print ""
        while ((getline line < table) > 0)
            print line
        print ""
    }' README.md >"$work/readme"

if [[ "${1:-}" == --check ]]; then
    diff -u README.md "$work/readme"
elif ! cmp -s README.md "$work/readme"; then
    cp "$work/readme" README.md
fi
