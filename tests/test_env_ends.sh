#!/usr/bin/env bash
# Nobody but the processes themselves ends a job that was started without MPI.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/gang.sh
. tests/gang.sh

begin "one exit code, whatever happens"
while read -r code options; do
    world 3
    # shellcheck disable=SC2086
    gang 20 "0 1 2" "$AR" "${SMALL[@]}" $options
    want_exit "$code"
    want_nothing_left
done <<'ROWS'
1 --inject corrupt:rank=1
5 --min-bw 1000000
4 -T 1 --inject stall:rank=2,phase=init
4 -T 1 --inject stall:rank=1,iter=2
4 -T 1 --inject stall:rank=0,phase=finalize
ROWS

begin "a process that dies takes all with it"
for RANK_OF_IT in 0 2; do
    world 3
    gang 20 "0 1 2" "$AR" "${SMALL[@]}" -T 10 --inject "crash:rank=$RANK_OF_IT"
    want_exit "137 3" "3 137"
    want_nothing_left
done

begin "a signal to one ends all in order"
world 2
{ env RANK=1 "${COMMON[@]}" "$AR" -b 8 -e 8 -N 0 -n 20 >"$WORK/out1" 2>&1 </dev/null; } &
OTHER=$!
export RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$PORT"
start "$AR" -b 8 -e 8 -N 0 -n 20
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
await_text '^ +8 ' "$OUT"
hit TERM "$PID"
want_exit 6
{ wait "$OTHER"; } 2>/dev/null
want_equal $? 6 "exit code of the other"
want_nothing_left

finish
