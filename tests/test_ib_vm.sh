#!/usr/bin/env bash
# The ib wire over real libibverbs: soft-RoCE devices in a virtual machine (scripts/rdma-vm), where
# two network namespaces stand for two hosts. Takes a minute and wants root and qemu, so only with
# CHECK_IB set; `make check-ib` sets it. With COLLMARK_TEST_INSIDE this script is what runs there.
set -u
cd "$(dirname "$0")/.." || exit 3

if [[ -z "${CHECK_IB:-}" ]]; then
    echo "skip   the ib wire over soft-RoCE: make check-ib"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
fi
inside="${COLLMARK_TEST_INSIDE:-}"
# The machine's /dev has none, and bash wants it.
[[ -z "$inside" || -e /dev/fd ]] || ln -s /proc/self/fd /dev/fd
# shellcheck source=tests/lib.sh
source tests/lib.sh

wire="$BUILDDIR/tests/test_ib_rdma"
[[ -x "$wire" ]] || skip_all "this build has no ib wire"

if [[ -z "$inside" ]]; then
    [[ "$(id -u)" == 0 ]] || skip_all "a virtual machine needs root"
    command -v qemu-system-x86_64 >/dev/null || skip_all "no qemu: scripts/install_deps.sh ib"
    # What was built may lie outside of this folder, which is all that is shared for writing.
    CHECK_IB=1 COLLMARK_TEST_INSIDE=1 TMPDIR=/tmp exec scripts/rdma-vm --timeout 300 -- "$0"
fi

export COLLMARK_TEST_HCA="$RDMA_VM_DEV0,$RDMA_VM_DEV1"

begin "two processes, everything right"
run 100 "$wire"
want_exit 0
want_match "$OUT" '^ok +test_streams_are_byte_exact'
want_match "$OUT" '^ok +test_a_dead_process_is_told'

begin "two network namespaces"
COLLMARK_TEST_NETNS=node0,node1 run 100 "$wire"
want_exit 0

begin "packets are lost and come late"
tc qdisc add dev v0 root netem loss 0.5% delay 1ms
COLLMARK_TEST_NETNS=node0,node1 run 100 "$wire"
tc qdisc del dev v0 root
want_exit 0

export TMPDIR="$WORK"
nodes() { # nodes SECONDS PROGRAM ARGS...
    run "$1" bash tests/ib_nodes.sh "$(program "$2")" --wire ib "${@:3}"
}

for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver between two nodes"
    nodes 60 "$driver" -t 2 -b 8 -e 64K -f 32 -n 2 -w 1
    want_right rows=+
    want_match "$OUT" '^# Network: ib over rxe0:1 RoCE v2 '
done

begin "other queue pairs, time-out, traffic class and service level"
nodes 60 all_reduce -b 64K -e 64K -n 2 -w 1 --ib-qps 2 --ib-timeout 17 --ib-tc 104 --ib-sl 3
want_right rows=1

begin "an adapter that does not exist"
nodes 60 all_reduce -b 8 -e 8 --ib-hca mlx5_0
want_exit 77
want_match "$ERR" "mlx5_0.*rxe0:1 is up"

begin "a rank that is killed"
nodes 60 all_reduce -b 8 -e 8 -n 20 -T 20 --inject crash:rank=1,iter=3
want_exit 3
want_match "$ERR" 'rank 1'

begin "bandwidth, for the log"
run 100 "$wire" measure
want_exit 0
want_match "$OUT" '^1048576,[0-9.]+,[0-9.]+$'
sed 's/^/    /' "$ERR" "$OUT"
# The same with perftest, whose client does not wait for its server.
for size in 4096 65536 1048576; do
    timeout 40 ib_write_bw -F -d "$RDMA_VM_DEV1" -x 1 -s $size -n 40 >/dev/null 2>&1 &
    for _ in {1..40}; do
        pause
        run 30 ib_write_bw -F -d "$RDMA_VM_DEV0" -x 1 -s $size -n 40 "$RDMA_VM_ADDR1"
        [[ $RC == 0 ]] && break
    done
    awk -v s=$size '$1 == s {print "    ib_write_bw " s ": " $4 " MiB/s"}' "$OUT"
    wait
done

finish
