#!/usr/bin/env bash
# Compare with the MPI library of this build: several launches, medians over them.
# Two parts: `mpi` shares memory, `tcp` goes over loopback, with plain sockets as a third side.
#
#   make bench                      two processes, 8 B to 64 MiB, five launches
#   BENCH_RANKS=4 BENCH_LAUNCHES=3 BENCH_ARGS="-b 8 -e 1M -n 7" make bench
#   BENCH_PARTS=tcp BENCH_IF=eth0 make bench
#
# Prints Markdown tables and keeps the figures in results/bench/<cpu>/.
set -euo pipefail
cd "$(dirname "$0")/.."

build="${BUILDDIR:-build}"
ranks="${BENCH_RANKS:-2}" # of the part mpi; tcp has two
launches="${BENCH_LAUNCHES:-5}"
interface="${BENCH_IF:-lo}"
read -r -a parts <<<"${BENCH_PARTS:-mpi tcp}"
read -r -a args <<<"${BENCH_ARGS:--b 8 -e 64M -n 11}"

if [[ -z "${MPIRUN:-}" ]]; then
    MPIRUN="$(command -v mpirun)" || { echo "no mpirun: set MPIRUN" >&2 && exit 3; }
fi
over_tcp=()
crowd=()
if "$MPIRUN" --version 2>/dev/null | grep -q 'Open MPI'; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # Only when needed: Open MPI yields in its waits once it knows that cores are short.
    [[ "$ranks" -gt "$(nproc)" ]] && crowd=(--oversubscribe)
    over_tcp=(--mca pml ob1 --mca btl "tcp,self" --mca btl_tcp_if_include "$interface")
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# launch PART COMMAND...
launch() {
    local part="$1"
    shift
    for ((i = 1; i <= launches; i++)); do
        echo "launch $i of $launches: $*" >&2
        "$@" >"$work/$part-$i.txt"
    done
    scripts/bench_table.py results/bench "$work/$part"-*.txt
}

for part in "${parts[@]}"; do
    case "$part" in
    mpi)
        launch mpi "$MPIRUN" -np "$ranks" "${crowd[@]}" "$build/bench/mpi_compare" "${args[@]}"
        ;;
    tcp)
        launch tcp "$MPIRUN" -np 2 "${over_tcp[@]}" "$build/bench/tcp_compare" \
            --wire tcp --ifname "=$interface" "${args[@]}"
        ;;
    *)
        echo "BENCH_PARTS: $part is neither mpi nor tcp" >&2
        exit 2
        ;;
    esac
done
