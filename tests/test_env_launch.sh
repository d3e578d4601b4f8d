#!/usr/bin/env bash
# Processes that find each other by variables or by a file, without MPI.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/gang.sh
. tests/gang.sh

begin "four processes, one table"
world 4
gang 20 "0 1 2 3" "$AR" "${SMALL[@]}"
want_right rows=3
want_match "$OUT" "^# MPI: not used \(rendezvous at 127.0.0.1:$PORT\)"
want_match "$OUT" '^# +Rank +3 '
want_equal "$(grep -c 'Collective test concluded' "$OUT")" 1 "tables"
want_nothing_left

begin "processes with threads, by a name, and a report"
world 2
COMMON+=(MASTER_ADDR=localhost)
gang 20 "1 0" "$AR" "${SMALL[@]}" -t 2 -J "$WORK/r.json"
want_right rows=3
want_match "$OUT" '^# +Rank +3 '
want_json "$WORK/r.json"

begin "version 6"
if [[ -e /proc/net/if_inet6 ]] && grep -q ' lo$' /proc/net/if_inet6; then
    world 2
    COMMON+=(MASTER_ADDR=::1)
    gang 20 "0 1" "$AR" "${SMALL[@]}"
    want_right rows=3
else
    skip "no ::1 here"
fi

begin "one process needs nobody"
world 1
COMMON=(WORLD_SIZE=1)
gang 20 "0" "$AR" "${SMALL[@]}" -g 2
want_right rows=3
want_match "$OUT" '^# MPI: not used$'

begin "who is missing is named once"
world 4
gang 20 "0 1 3" "$AR" "${SMALL[@]}" -T "$STRETCH"
want_exit 4
want_silent "$OUT"
want_lines "$ERR" 1
want_match "$ERR" "127.0.0.1:$PORT: 1 of 4 processes did not come within .* rank 2\$"
want_within 3000

begin "without process 0"
world 3
gang 20 "1 2" "$AR" "${SMALL[@]}" -T "$STRETCH"
want_exit 4
want_lines "$ERR" 2
want_match "$ERR" "^rank 2: no rank 0 .*MASTER_ADDR=127.0.0.1, port $PORT.*Connection refused"

begin "two processes of one rank"
world 3
gang 20 "0 1 1" "$AR" "${SMALL[@]}" -T 5
want_exit 2
want_lines "$ERR" 1
want_match "$ERR" 'two processes have RANK=1'

begin "another WORLD_SIZE"
world 3
ODD=("2 WORLD_SIZE=4")
gang 20 "0 1 2" "$AR" "${SMALL[@]}" -T 5
want_exit 2
want_lines "$ERR" 1
want_match "$ERR" 'WORLD_SIZE=4 of rank 2 .* differs from WORLD_SIZE=3'

begin "bad variables"
while read -r rank variables; do
    world 2
    # shellcheck disable=SC2206
    COMMON+=(${variables%%|*})
    gang 20 "$rank" "$AR" "${SMALL[@]}" -T "$STRETCH"
    want_exit 2
    want_silent "$OUT"
    want_match "$ERR" "${variables#*|}"
done <<'ROWS'
2 X=|^RANK=2: want a number from 0 to 1
x X=|^RANK=x: want
1 WORLD_SIZE=zwei|^WORLD_SIZE=zwei: want
0 MASTER_ADDR=|^MASTER_ADDR is not set
1 MASTER_PORT=|^MASTER_PORT is not set
1 MASTER_PORT=70000|^MASTER_PORT=70000: want a port
1 MASTER_ADDR=no.such.host.invalid|^MASTER_ADDR=no.such.host.invalid
ROWS

begin "the port is taken"
world 2
"$PYTHON" -S -c 'import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); print("ready", flush=True)
time.sleep(60)' "$PORT" >"$WORK/taken" &
TAKER=$!
await_text ready "$WORK/taken"
gang 20 "0" "$AR" "${SMALL[@]}" -T "$STRETCH"
want_exit 3
want_match "$ERR" "cannot listen on port $PORT"
want_match "$ERR" "MASTER_ADDR=127.0.0.1, port $PORT is where this process must listen"
kill "$TAKER"
{ wait "$TAKER"; } 2>/dev/null

begin "only process 0 speaks of options"
world 3
gang 20 "0 1 2" "$AR" --iters none
want_exit 2
want_lines "$ERR" 1
gang 20 "0 1 2" "$AR" --version
want_exit 0
want_lines "$OUT" 1

begin "another job's process is turned away"
world 3
ODD=("2 COLLMARK_JOB=other")
COMMON+=(COLLMARK_JOB=mine)
gang 20 "0 1 2" "$AR" "${SMALL[@]}" -T "$STRETCH"
want_exit 4
want_match "$ERR" "dropped a connection from 127.0.0.1:.*another job's token"
want_match "$ERR" 'rank 2: no rank 0 .*COLLMARK_JOB'

begin "by a file"
FILE="$WORK/meet"
COMMON=(WORLD_SIZE=3)
ODD=()
gang 20 "2 1 0" "$AR" "${SMALL[@]}" --rendezvous "file:$FILE" --ifname lo
want_right rows=3
want_equal "$(ls "$FILE"* 2>/dev/null)" "" "what is left of the file"

begin "a file that an older job left"
free_port
echo "collmark-rendezvous 1 4 127.0.0.1 $PORT 00112233445566778899aabbccddeeff" >"$FILE"
gang 20 "1 2" "$AR" "${SMALL[@]}" --rendezvous "file:$FILE" -T "$STRETCH"
want_exit 4
want_match "$ERR" "file:$FILE .*an older job left it.*Connection refused"
gang 20 "1 2 0" "$AR" "${SMALL[@]}" --rendezvous "file:$FILE" --ifname lo
want_exit 0
want_table
want_match "$ERR" 'left over by an older job'
want_equal "$(ls "$FILE"* 2>/dev/null)" "" "what is left of the file"

begin "somebody's own file is safe"
echo "my thesis" >"$FILE"
gang 20 "0 1" "$AR" "${SMALL[@]}" --rendezvous "file:$FILE" -T "$STRETCH"
want_match "$ERR" 'there is something else: it is no rendezvous file'
want_equal "$(cat "$FILE")" "my thesis" "the file"
COMMON=(WORLD_SIZE=2)
gang 20 "1" "$AR" "${SMALL[@]}" --rendezvous "file:$WORK/none" -T "$STRETCH"
want_exit 4
want_match "$ERR" "file:$WORK/none \(it is not there: process 0 has not come\)"

begin "a step of Slurm"
slurm() { # slurm PROCID CMD...
    local id=$1
    shift
    env -u RANK SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_PROCID="$id" \
        SLURM_STEP_NODELIST="localhost,node[01-04,7]" "$@"
}
slurm 1 timeout 20 "$AR" "${SMALL[@]}" >"$WORK/out1" 2>&1 &
OTHER=$!
run 20 env -u RANK SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_PROCID=0 \
    SLURM_STEP_NODELIST="localhost,node[01-04,7]" "$AR" "${SMALL[@]}"
want_right rows=3
want_match "$OUT" '^# MPI: not used \(rendezvous at localhost:2[0-9]{4}\)'
wait "$OTHER"
want_equal $? 0 "exit code of the other"
want_silent "$WORK/out1"

begin "mpirun wins, unless told otherwise"
if has_mpi; then
    free_port
    run 30 env RANK=0 WORLD_SIZE=9 "$MPIRUN" -np 2 "$AR" "${SMALL[@]}"
    want_exit 0
    want_table
    want_no_match "$OUT" 'rendezvous at'
    run 30 env MASTER_ADDR=127.0.0.1 MASTER_PORT="$PORT" "$MPIRUN" -np 2 "$AR" "${SMALL[@]}" \
        --rendezvous env
    want_exit 0
    want_table
    want_match "$OUT" 'rendezvous at'
else
    skip "no MPI"
fi

finish
