#!/usr/bin/env bash
# Whole drivers, as nvcc built them, on virtual GPUs: the CUDA runtime of tests/sim in place of
# NVIDIA's. All drivers, modes and ways to share devices; then what must be refused or noticed.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/virtual.sh
. "$(dirname "$0")/virtual.sh"

CUDA=(--backend cuda)
AR="$(program all_reduce)"

# gpus OPTIONS...: one driver for all cases below that do not need another
gpus() {
    run 15 "$AR" "${CUDA[@]}" "$@"
}

# ---- right results ---------------------------------------------------------------------------

for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver: eight GPUs, and two"
    for ranks in 8 2; do
        run 15 "$(program "$driver")" "${CUDA[@]}" -g $ranks -b 8 -e 8K -f 32 -n 2
        want_right rows=3 measured=any bw=any
        want_match "$OUT" '^# collmark version .* backend=cuda'
    done
    run 15 "$(program "$driver")" "${CUDA[@]}" -g 3 -b 999 -e 999 -d all -n 1 -w 0
    want_right rows=12
done

begin "every operation"
gpus -g 2 -b 999 -e 999 -d all -o all -n 1 -w 0
want_right rows=72

begin "a message of several passes"
gpus -g 4 -b 64K -e 64K -n 1 -w 0
want_right rows=1
gpus -g 3 -b 60001 -e 60001 -d uint8 -n 1 -w 0 --mode copy --buffsize 4K
want_right rows=1

# options | what the parser must expect beyond the default
variants=(
    '-G 3|' '-G 2 -m 2|' '-I 1|more=8' '-m 3|' '-z 1|' '-z 2|' '-z 3|'
    '-u 1|' '-u 3 -d int8|' '-y 1|' '-N 2|rows=4' '-c 0|' '-c 3|' '--check-every 1|' '-w 0 -n 1|'
    '--placement in|' '--placement out|' '-t 2 -g 2|' '-a 1|' '--split mod:2 -g 4|rows=4 tables=2'
    '--mode copy --proto simple|' '--mode copy --proto ll|' '--mode direct|'
    '--algo ring|' '--algo tree|' '--algo direct|' '--algo oneshot|' '--algo recdbl|'
    '--algo ring --proto ll --mode copy|' '--channels 2 --chunk 256 --mode copy|'
    '--node-map 0,0,1|' '--device 1|' '-C 1|' '-M 1|' '-T 30|'
)
begin "all_reduce: options"
for row in "${variants[@]}"; do
    IFS='|' read -r options expected <<<"$row"
    # shellcheck disable=SC2086
    gpus -g 3 -b 320 -e 3K -i 2752 -n 2 $options
    # shellcheck disable=SC2086
    want_right rows=2 $expected
done

begin "the header names the GPUs"
gpus -g 2 -b 8 -e 8
want_match "$OUT" '^# +Rank +0 .* device +0 \[0x?[0-9a-f:]+.*\] .*'
want_match "$OUT" '^# +Rank +1 .* device +1 \['

begin "--plan needs no GPU"
FAKECUDA_DEVICES=0 run 10 "$AR" "${CUDA[@]}" -g 4 -b 1K -e 1K --plan
want_exit 0 3 # 3: no device, said in one line

# ---- shared and far devices ------------------------------------------------------------------

begin "eight ranks on one GPU: one launch plays all"
export FAKECUDA_DEVICES=1
gpus -g 8 -b 8 -e 8K -f 32 -n 2 --oversubscribe
want_right rows=3
gpus -g 8 -b 1K -e 1K -n 2 -G 2 --oversubscribe
want_right rows=1
FAKECUDA_DEVICES=2 gpus -g 8 -b 8 -e 8K -f 32 -n 2 --oversubscribe
want_right rows=3

begin "sharing a GPU unasked is refused"
gpus -g 2 -b 8 -e 8
want_refused 3 '1 (GPU|device).*--oversubscribe'
export FAKECUDA_DEVICES=8

begin "without peer access, host memory lies between"
for pairs in all 0-1 0-2,1-2; do
    FAKECUDA_NO_PEER=$pairs gpus -g 3 -b 8 -e 8K -f 32 -n 2
    want_right rows=3
    FAKECUDA_NO_PEER=$pairs gpus -g 3 -b 4K -e 4K -n 2 --proto ll --mode copy
    want_right rows=1
done
NCCL_P2P_DISABLE=1 gpus -g 3 -b 4K -e 4K -n 2
want_right rows=1

if has_mpi; then
    begin "two processes map each other's memory"
    for driver in "${ALL_DRIVERS[@]}"; do
        run 15 "$MPIRUN" -np 2 "$(program "$driver")" "${CUDA[@]}" -b 8 -e 8K -f 32 -n 2
        want_exit 0
        want_table rows=3 measured=any bw=any
    done
    begin "two processes with two GPUs each, and without peer access between some"
    run 15 "$MPIRUN" -np 2 "$AR" "${CUDA[@]}" -g 2 -b 8 -e 8K -f 32 -n 2
    want_exit 0
    want_table rows=3
    FAKECUDA_NO_PEER=1-2 run 15 "$MPIRUN" -np 2 "$AR" "${CUDA[@]}" -g 2 -b 8 -e 8K -f 32 -n 2
    want_exit 0
    want_table rows=3
    begin "two processes on one GPU: the host helps"
    FAKECUDA_DEVICES=1 run 15 "$MPIRUN" -np 2 "$AR" "${CUDA[@]}" --oversubscribe -b 8 -e 8K \
        -f 32 -n 2
    want_exit 0
    want_table rows=3
    begin "a killed process ends the job"
    run 15 "$MPIRUN" -np 2 "$AR" "${CUDA[@]}" -b 1K -e 1K -T 3 --inject crash:rank=1,iter=3
    want_failure
    want_within 10000
    want_nothing_left
else
    begin "processes"
    skip "no MPI"
fi

# ---- what must be noticed --------------------------------------------------------------------

begin "corrupt data are found"
for driver in "${ALL_DRIVERS[@]}"; do
    run 15 "$(program "$driver")" "${CUDA[@]}" -g 3 -b 1K -e 1K -n 2 --inject corrupt:rank=1
    want_exit 1
    want_table rows=1 wrong=+
    want_match "$ERR" '^rank 1 host .*: element [0-9]+|element [0-9]+ '
done

begin "a rank that stalls is named, and kernels end"
gpus -g 3 -b 1K -e 1K -T 1 --inject stall:rank=2,iter=5
want_exit 4
want_within 5000
want_match "$ERR" 'did not arrive: rank 2 '
FAKECUDA_DEVICES=1 gpus -g 3 -b 1K -e 1K -T 1 --oversubscribe --inject stall:rank=2,iter=5
want_exit 4
want_within 5000

begin "SIGTERM: exit 6, and the report is whole"
start "$AR" "${CUDA[@]}" -N 0 -g 2 -b 1K -e 1K
await_text '^ +1024 ' "$OUT"
hit TERM "$PID"
want_exit 6
want_table

# call that fails | which of them: all are told in one line and end with code 3
failures=(cudaMalloc:1 cudaMalloc:2 cudaStreamCreateWithFlags:1 cudaHostRegister:1
    cudaLaunchKernelExC:1 cudaLaunchKernelExC:9 cudaMemcpyAsync:1 kernel:3)
begin "a CUDA call that fails: exit 3"
for failure in "${failures[@]}"; do
    FAKECUDA_FAIL=$failure gpus -g 2 -b 1K -e 1K -n 2 -T 5
    want_exit 0 3 # 0: a call that this run never makes
    want_within 8000
    [[ $RC == 3 ]] && want_match "$ERR" 'cuda|CUDA'
done

begin "memory that the GPU has not"
FAKECUDA_MEM=16777216 gpus -g 2 -b 64M -e 64M
want_refused 3 'needed|need |memory'

begin "no device, no driver, an old driver"
FAKECUDA_DEVICES=0 gpus -g 2 -b 8 -e 8
want_refused 3 'no .*(GPU|device)'
FAKECUDA_DRIVER=0 gpus -g 2 -b 8 -e 8
want_refused 3 'driver'
FAKECUDA_DRIVER=12020 gpus -g 2 -b 8 -e 8
want_refused 3 'driver.*12\.2|12\.2.*driver'
FAKECUDA_DEVICES=0 run 10 "$AR" -g 2 -b 8 -e 8
want_right rows=1 bw=any

begin "a device that is not there"
gpus -g 2 -b 8 -e 8 --device 7
want_failure
want_lines "$ERR" 1
gpus -g 9 -b 8 -e 8
want_failure
want_lines "$ERR" 1

begin "nothing is left behind"
want_nothing_left

finish
