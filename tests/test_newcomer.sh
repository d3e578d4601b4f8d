#!/usr/bin/env bash
# What someone who knows nccl-tests tries in the first hour: mistakes that must not pass silently.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

AR="$(program all_reduce)"
SMALL=(-g 2 -b 1K -e 1K -n 4)

begin "an algorithm that the collective lacks is refused before the header"
run 5 env NCCL_ALGO=Ring "$(program alltoall)" -g 2 -b 1K -e 1K
want_refused 77 '^--algo ring \(from NCCL_ALGO\): alltoall has no ring algorithm; .*direct, hier$'
run 5 "$(program alltoall)" -g 2 --algo ring --plan
want_refused 77 '^--algo ring: alltoall has no ring algorithm'

begin "a chunk that exceeds its slot"
run 5 "$AR" "${SMALL[@]}" --chunk 64K --buffsize 128K
want_refused 2 'chunk.*buffsize'
run 20 "$AR" "${SMALL[@]}" --chunk 32K --buffsize 128K
want_right rows=1 bw=any

begin "direct mode says what becomes of --proto ll"
run 20 "$AR" "${SMALL[@]}" --mode direct --proto ll
want_right rows=1 bw=any
want_match "$OUT" '^# Note: direct mode uses LL slots for up to 8192 bytes'
run 20 "$AR" "${SMALL[@]}" --mode direct --proto ll --algo ring
want_right rows=1 bw=any
want_match "$OUT" '^# Note: .*no effect'

begin "faults that nobody could notice"
for options in "corrupt -c 0" corrupt:phase=warmup delay:iter=4,us=1,phase=timed; do
    # shellcheck disable=SC2086
    run 5 "$AR" "${SMALL[@]}" --inject $options
    want_refused 2 '^--inject'
done
run 5 "$AR" "${SMALL[@]}" --inject stall:rank=2
want_refused 2 '^--inject stall:rank=2: .*rank=2.*0 to 1'

begin "misspelt variables"
run 5 env COLLMARK_MIN_BYTES=8 "$AR"
want_refused 2 COLLMARK_MIN_BYTES
run 5 env NCCL_TESTS_SPLIT='MOD 2' NCCL_TESTS_SPLIT_MASK=1 "$AR"
want_refused 2 'NCCL_TESTS_SPLIT_MASK.*NCCL_TESTS_SPLIT'
run 5 env NCCL_TESTS_SPLIT_MASK=zz "$AR"
want_refused 2 "NCCL_TESTS_SPLIT_MASK 'zz'"

begin "stdout that takes nothing"
run 20 bash -c "$AR -g 2 --plan >/dev/full"
want_exit 3
want_lines "$ERR" 1
want_match "$ERR" '^stdout: '
run 20 bash -c "$AR -b 8 -e 8 >&-"
want_exit 3
want_lines "$ERR" 1
want_match "$ERR" '^stdout is closed$'

begin "a reader who leaves: one line, exit 3, and the JSON is whole"
run 20 bash -c "set -o pipefail; $AR -g 2 -b 8 -e 8 -N 0 -J $WORK/left.json | head -3"
want_exit 3
want_lines "$ERR" 1
want_match "$ERR" 'stdout: '
if ! "$PYTHON" -c 'import json, sys; json.load(open(sys.argv[1]))' "$WORK/left.json"; then
    bad "no JSON"
fi
want_equal "$(find "$WORK" -name 'left.json.tmp*')" "" "temporary files"

begin "a missed threshold names group, average and threshold"
run 20 "$AR" -g 4 --split mod:2 -b 1K -e 1K --min-bw 100000
want_exit 5
want_lines "$ERR" 1
want_match "$ERR" '^rank 0 .*--min-bw 100000: group [01] .* [0-9.e-]+ GB/s, below 90000$'
want_match "$OUT" '^# Note: this is the average of group 0; --min-bw looks at every group$'

begin "notes count rows"
run 20 "$(program all_gather)" -g 2 -b 8 -e 16 -i 8 -n 1
want_match "$OUT" '^# Note: .*0 bytes.* \(2 rows\)$'

begin "a traffic matrix that is rounded"
printf '0 100\n1000 16\n' >"$WORK/m.txt"
run 20 "$(program alltoallv)" -g 2 -b 1K -e 1K -n 1 --alltoallv-matrix-file "$WORK/m.txt"
want_exit 0
want_lines "$ERR" 1
want_match "$ERR" 'm.txt: 2 of 4 entries .* 12 bytes$'

begin "different programs in one job"
if has_mpi; then
    run 30 "$MPIRUN" -np 1 "$AR" -b 8 -e 8 : -np 1 "$(program alltoall)" -b 8 -e 8
    want_exit 2
    want_silent "$OUT"
    want_match "$ERR" "process 0 runs all_reduce$SUFFIX, but process 1 runs alltoall$SUFFIX"
    want_within 10000
else
    skip "no MPI"
fi

finish
