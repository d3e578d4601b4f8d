#!/usr/bin/env bash
# ib_nodes.sh PROGRAM ARGS...: one process on each of the nodes of scripts/rdma-vm, by the
# variables of torchrun. What the first prints is ours. The exit status is that of the first
# that fails, in their order. Only inside that virtual machine.
set -u
pids=()
for node in 0 1; do
    dev="RDMA_VM_DEV$node"
    RANK=$node WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=node0 MASTER_PORT=29511 \
        NCCL_IB_HCA="=${!dev}" rdma-vm-node "$node" "$@" >"${TMPDIR:-/tmp}/node$node.out" &
    pids+=($!)
done
first=0
for pid in "${pids[@]}"; do
    wait "$pid" || first=$((first == 0 ? $? : first))
done
cat "${TMPDIR:-/tmp}"/node?.out
exit "$first"
