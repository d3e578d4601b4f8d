#!/usr/bin/env bash
# NCCL as an engine, on virtual GPUs: tests/sim/fakenccl*.c in place of NVIDIA's library.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/virtual.sh
. "$(dirname "$0")/virtual.sh"

[[ -e "$SIM/libnccl.so.2" ]] || skip_all "no $SIM/libnccl.so.2: make config says why"
AR="$(program all_reduce)"

gpus() { # gpus OPTIONS...
    run 15 "$AR" --backend cuda "$@"
}

for driver in "${ALL_DRIVERS[@]}"; do
    [[ "$driver" == hypercube ]] && continue
    begin "$driver: every type, operation and root, with 3 and 2 ranks"
    for ranks in 3 2; do
        run 15 "$(program "$driver")" --backend cuda -g $ranks -b 999 -e 999 -d all -o all -r all \
            -n 1 -w 0 --engine nccl
        want_right na=any
    done
done

begin "side by side, in groups: rows of both, version and path"
gpus -g 5 --split div:3 -b 8 -e 512 -f 64 -n 5 --compare builtin,nccl -J "$WORK/both.json"
want_exit 0
want_silent "$ERR"
want_json "$WORK/both.json" exit_code=0 rows=8
want_match "$OUT" '^# Library: NCCL 2\.28\.9, .*libnccl\.so\.2$'
want_match "$OUT" '^# Out of bounds values : 0 OK'
want_match "$WORK/both.json" '"nccl":.*"NCCL 2\.28\.9, '

# options | exit code | message
refused=(
    '-d f8e4m3|77|fp8 takes NCCL 2\.24'
    '-o mulsum|77|no such reduction operation'
    '-g 3 -o avg|77|exact for powers of two'
    '-G 2|2|may not be captured'
    '--backend host|77|needs GPUs'
)
begin "what is refused"
FAKECUDA_CC=80
export FAKECUDA_CC
for row in "${refused[@]}"; do
    IFS='|' read -r options code message <<<"$row"
    # shellcheck disable=SC2086
    gpus -g 2 -b 64 -e 64 --engine nccl $options
    want_refused "$code" "$message"
done
unset FAKECUDA_CC
run 10 "$(program hypercube)" --backend cuda -g 2 -b 64 -e 64 --engine nccl
want_refused 77 'no such collective'
FAKECUDA_DEVICES=1 gpus -g 2 --oversubscribe -b 64 -e 64 --engine nccl
want_refused 77 'a GPU for each rank'

begin "no library that could be loaded: exit 77, with the loader's reason"
mkdir "$WORK/empty"
: >"$WORK/empty/libnccl.so.2"
LD_LIBRARY_PATH="$WORK/empty:$LD_LIBRARY_PATH" gpus -g 2 -b 64 -e 64 --engine nccl
want_refused 77 'libnccl\.so\.2.*file too short'

begin "NCCL's own failures: exit 3, with its text"
for call in init run; do
    FAKENCCL_FAIL=$call gpus -g 2 -b 64 -e 64 --engine nccl
    want_exit 3
    want_match "$ERR" '^rank [01] host .*: NCCL: .* \([0-9]+\)$'
done

begin "a hang inside of NCCL: exit 4 within the deadline"
FAKENCCL_HANG=3 gpus -g 2 -b 64 -e 64 -T 1 --engine nccl
want_exit 4
want_within 6000
want_match "$ERR" 'time-out after'

if has_mpi; then
    begin "an MPI library that does not take memory of GPUs is refused"
    run 15 "$MPIRUN" -np 2 "$AR" --backend cuda -b 64 -e 64 --engine mpi
    want_exit 77
    want_match "$ERR" 'MPIX_Query_cuda_support'
fi

begin "nothing is left behind"
want_nothing_left

finish
