#!/usr/bin/env bash
# From a fresh clone to a table: install what is missing, build, run one driver. The figures are
# kept in build/quickstart.json (or where your -J says), and the command that makes a page of them
# is printed at the end.
#
#   scripts/quickstart.sh                          all_reduce, 8 bytes to 64 MiB, four ranks
#   scripts/quickstart.sh all_gather -g 2          another driver, your options
#   scripts/quickstart.sh -b 1K -e 1M -g 8         all_reduce, your options
set -euo pipefail
cd "$(dirname "$0")/.."

driver=all_reduce
if [[ $# -gt 0 && "$1" != -* ]]; then
    driver="${1%_perf}"
    shift
fi
if [[ $# == 0 ]]; then
    set -- -b 8 -e 64M -f 2 -g 4
fi
if [[ ! -f "src/collectives/$driver.c" ]]; then
    names=(src/collectives/*.c)
    names=("${names[@]##*/}")
    echo "no driver '$driver'; there are: ${names[*]%.c}" >&2
    exit 2
fi

build="${BUILDDIR:-build}"
program="$build/${driver}_perf${NAME_SUFFIX:-}"
result="$build/quickstart.json"
given=
for word in "$@"; do
    [[ "$given" == next ]] && result="$word" given=yes
    case "$word" in
    -J | --output_file) given=next ;;
    --output_file=*) result="${word#*=}" given=yes ;;
    esac
done
if [[ -z "$given" ]]; then
    rm -f "$result" # else a run that does not get so far would seem to have made it
    set -- "$@" -J "$result"
fi

scripts/install_deps.sh build
make -s -j "$(nproc)" >&2
echo "+ $program $*" >&2
code=0
"$program" "$@" || code=$?
if [[ -f "$result" ]]; then
    printf -v next 'scripts/collmark report %q -o report.html' "$result"
    look='import importlib.util as u, sys; sys.exit(u.find_spec("matplotlib") is None)'
    python3 -c "$look" 2>/dev/null || /usr/bin/python3 -c "$look" 2>/dev/null ||
        next="scripts/install_deps.sh report && $next"
    printf 'A page of it, with charts:\n  %s\n' "$next" >&2
fi
exit "$code"
