#!/usr/bin/env bash
# Runs between nodes over TCP: processes that share no memory by order (--wire tcp), and nodes made
# of network namespaces. Results must be right for every collective, algorithm and placement.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/nodes.sh
. "$(dirname "$0")/nodes.sh"

has_mpi || skip_all "no MPI: ${MPIRUN:-no mpirun}"

tcp() { # tcp PROCESSES DRIVER OPTION...: each process a node of its own
    run 60 "$MPIRUN" -np "$1" "$(program "$2")" --wire tcp -T 30 -n 5 "${@:3}"
}

nodes() { # nodes N MPIRUN-OPTION... -- DRIVER OPTION...
    local launch=("$1")
    shift
    while [[ $1 != -- ]]; do
        launch+=("$1")
        shift
    done
    node_mpirun "${launch[@]}" "$(realpath "$(program "$2")")" "${@:3}"
    run 60 "${ARGV[@]}"
}

# Open MPI and many processes take minutes under a sanitizer: then a part of each list.
DRIVERS=("${ALL_DRIVERS[@]}")
ALGORITHMS=(ring tree direct recdbl hier hierdbl)
if [[ -n "${SAN:-}" ]]; then
    DRIVERS=(all_reduce alltoall broadcast)
    ALGORITHMS=(ring hier)
fi

# ---- one machine -----------------------------------------------------------------------------

for driver in "${DRIVERS[@]}"; do
    begin "$driver: 3 processes over TCP"
    tcp 3 "$driver" -b 8 -e 1M -f 64
    want_right
    want_match "$OUT" 'wire=tcp'
done

for algo in "${ALGORITHMS[@]}"; do
    begin "all_reduce $algo: 4 processes, one a node, and two nodes of two"
    tcp 4 all_reduce -b 4 -e 2M -f 32 --algo "$algo"
    want_right
    tcp 4 all_reduce -b 4 -e 2M -f 32 --algo "$algo" --node-map 0,1,0,1
    want_right
    want_match "$OUT" 'wire=shm[+]tcp'
done

begin "rooted collectives from every root"
for driver in broadcast reduce gather scatter; do
    tcp 3 "$driver" -b 96 -e 96K -f 32 -r all
    want_right
done

begin "all types and operations"
tcp 2 all_reduce -b 1K -e 1K -d all -o all -n 2 -w 1
want_right rows=72

begin "threads: ranks of a process share memory, processes do not"
tcp 2 all_reduce -b 8 -e 1M -f 64 -t 2
want_right
tcp 2 alltoall -b 64 -e 1M -f 64 -t 3
want_right

begin "uneven nodes"
tcp 4 all_reduce -b 8 -e 1M -f 64 --node-map 0,0,0,1
want_right
tcp 4 all_gather -b 64 -e 1M -f 64 --node-map 1,0,0,2 --algo hier
want_right

begin "groups of --split that cross nodes, and groups that do not"
tcp 4 all_reduce -b 8 -e 64K -f 64 --split mod:2
want_right tables=2
tcp 4 all_reduce -b 8 -e 64K -f 64 --split div:2 --node-map 0,0,1,1
want_right tables=2

for progress in thread inline; do
    begin "--progress $progress, several sockets"
    tcp 3 all_reduce -b 8 -e 4M -f 64 --progress "$progress" --sockets 3
    want_right
    want_match "$OUT" "progress $progress"
done

begin "protocol ll, small chunks, many channels"
tcp 2 all_reduce -b 8 -e 256K -f 8 --proto ll
want_right
tcp 3 all_reduce -b 8 -e 256K -f 8 --algo ring --chunk 1K --channels 4
want_right

begin "mode direct is refused where no memory is shared"
tcp 2 all_reduce -b 8 -e 8 --mode direct --algo ring
want_exit 77
want_match "$ERR" 'mode direct.*needs shared memory'

begin "a wire of shared memory is refused between nodes"
run 30 "$MPIRUN" -np 2 "$(program all_reduce)" -b 8 -e 8 --wire shm --shm-disable 1
want_exit 2 77
want_match "$ERR" 'shm'

begin "an interface that is not there, and a port range that is taken"
tcp 2 all_reduce -b 8 -e 8 --ifname =nosuch0
want_exit 2
want_match "$ERR" 'nosuch0'
want_silent "$OUT"

# ---- nodes -----------------------------------------------------------------------------------

if ! nodes_mpi; then
    begin "nodes of network namespaces"
    skip "the agent of these nodes is for Open MPI's mpirun"
    finish
fi
if ! nodes_possible || ! nodes_up 4; then
    begin "nodes of network namespaces"
    skip "no network namespaces, or no ip and nsenter (needs root)"
    finish
fi

begin "2 nodes: found, connected over eth0, and right"
nodes 2 -np 2 --map-by node -- all_reduce -b 8 -e 1M -f 8 -T 30
want_right
want_match "$OUT" 'eth0'
want_match "$OUT" 'on +node0 '
want_match "$OUT" 'on +node1 '

for driver in "${DRIVERS[@]}"; do
    begin "$driver: 4 nodes of 2 ranks"
    nodes 4 -np 8 --map-by node -- "$driver" -b 64 -e 64K -f 32 -T 40 -n 2 -w 1
    want_right
done

begin "2 nodes, uneven: 3 + 1 ranks, every algorithm"
NODE_SLOTS=(3 1)
for algo in "${ALGORITHMS[@]}"; do
    nodes 2 -np 4 --map-by slot -- all_reduce -b 8 -e 1M -f 64 --algo "$algo" -T 30
    want_right
done

finish
