#!/usr/bin/env bash
# Compare with the MPI library of this build: several launches, medians over them.
#
#   make bench                      two processes, 8 B to 64 MiB, five launches
#   BENCH_RANKS=4 BENCH_LAUNCHES=3 BENCH_ARGS="-b 8 -e 1M -n 7" make bench
#
# Prints a Markdown table and keeps the figures in results/bench/<cpu>/.
set -euo pipefail
cd "$(dirname "$0")/.."

build="${BUILDDIR:-build}"
ranks="${BENCH_RANKS:-2}"
launches="${BENCH_LAUNCHES:-5}"
read -r -a args <<<"${BENCH_ARGS:--b 8 -e 64M -n 11}"
program="$build/bench/mpi_compare"

if [[ -z "${MPIRUN:-}" ]]; then
    MPIRUN="$(command -v mpirun)" || { echo "no mpirun: set MPIRUN" >&2 && exit 3; }
fi
start=("$MPIRUN" -np "$ranks")
if "$MPIRUN" --version 2>/dev/null | grep -q 'Open MPI'; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # Only when needed: Open MPI yields in its waits once it knows that cores are short.
    [[ "$ranks" -gt "$(nproc)" ]] && start+=(--oversubscribe)
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
for ((i = 1; i <= launches; i++)); do
    echo "launch $i of $launches: ${start[*]} $program ${args[*]}" >&2
    "${start[@]}" "$program" "${args[@]}" >"$work/$i.txt"
done
scripts/bench_table.py results/bench "$work"/*.txt
