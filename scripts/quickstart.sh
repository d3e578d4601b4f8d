#!/usr/bin/env bash
# From a fresh clone to a table: install what is missing, build, run one driver.
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
scripts/install_deps.sh build
make -s -j "$(nproc)" >&2
echo "+ $program $*" >&2
exec "$program" "$@"
