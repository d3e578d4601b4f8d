#!/bin/false
# shellcheck shell=bash
# Jobs over the nodes of nodes.sh, by mpirun or by environment variables, and what to ask of them
# when something goes wrong. For tests that source it after nodes.sh.
#
#   node_job LAUNCHER N CMD...  fills ARGV: CMD on nodes 0 to N-1, one rank on each
#                       mpi: by mpirun, which notices within seconds that a node is gone
#                       env: the processes find each other by RANK, WORLD_SIZE, MASTER_ADDR and
#                       MASTER_PORT; the exit code is that of the first rank that no signal ended,
#                       the file $JOB_CODES has those of all ("2 137")
#       JOB_MASTER      env: node 0's address
#       JOB_ABSENT      env: this rank is not started
#       JOB_ODD         env: this rank gets the options JOB_ODD_OPTIONS besides
#   env_rank R          the beginning of a command that is rank R of the latest job of env
#   endless LAUNCHER OPTION...  starts three ranks that measure rows without an end, and waits
#                       for the first row
#   rank_pid R          its process, from the device lines of $OUT
#   await_job           waits for the end of what was started; RC as after run, MS from here on
#   want_reports N REGEX...     so many reports in all, and these lines among them
#   want_codes CODE     env: each rank that no signal ended had this exit code
#   forget_daemons      ends daemons of mpirun on nodes that were cut off: they wait for hours
JOB_MASTER=10.77.0.1
JOB_ABSENT=
JOB_ODD=
JOB_ODD_OPTIONS=
JOB_SIZE=0
JOB_PORT=29500
JOB_CODES=
# So long, in seconds, ranks wait for each other.
PATIENCE=2
[[ -n "${SAN:-}" ]] && PATIENCE=4

env_rank() {
    RANK_ARGV=(env "RANK=$1" "WORLD_SIZE=$JOB_SIZE" "MASTER_ADDR=$JOB_MASTER"
        "MASTER_PORT=$JOB_PORT" nsenter -t "${NODE_PIDS[$1]}" -n -u)
}

# A script, so that run() and start() take it as any other command.
env_job() { # env_job N CMD...
    local script r odd
    JOB_SIZE=$1
    JOB_PORT=$((JOB_PORT + 1)) # connections of the last job may linger
    JOB_CODES="$WORK/codes.$JOB_PORT"
    script="$WORK/job.$JOB_PORT"
    : >"$JOB_CODES"
    {
        echo '#!/usr/bin/env bash'
        for ((r = 0; r < $1; r++)); do
            [[ $r == "$JOB_ABSENT" ]] && continue
            odd=
            [[ $r == "$JOB_ODD" ]] && odd="$JOB_ODD_OPTIONS"
            env_rank "$r"
            echo "${RANK_ARGV[*]} \"\$@\" $odd &"
            echo "child[$r]=\$!"
        done
        cat <<'JOB'
for r in "${!child[@]}"; do
    wait "${child[r]}"
    this=$?
    echo "$r $this" >>"$JOB_CODES"
    [[ $this -lt 128 ]] && code=${code:-$this}
done 2>/dev/null
exit "${code:-137}"
JOB
    } >"$script"
    chmod +x "$script"
    ARGV=("$script" "${@:2}")
    export JOB_CODES
}

node_job() { # node_job LAUNCHER N CMD...
    if [[ $1 == env ]]; then
        env_job "${@:2}"
    else
        node_mpirun "$2" -np "$2" --map-by node --mca oob_tcp_keepalive_time 1 \
            --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes $((PATIENCE + 2)) \
            "${@:3}" # later than the ranks
    fi
}

endless() { # endless LAUNCHER OPTION...
    local patience=$PATIENCE
    [[ $1 == mpi ]] && patience=$((PATIENCE + 2)) # it takes some of that to start
    node_job "$1" 3 "$(realpath "$(program all_reduce)")" -b 64K -e 64K -n 50 -N 0 -T "$patience" \
        "${@:2}"
    start "${ARGV[@]}"
    await_text '^ +65536 ' "$OUT"
}

rank_pid() {
    local pid
    pid="$(sed -n "s/^#  Rank  *$1 .* Pid  *\([0-9]*\) .*/\1/p" "$OUT")"
    echo "${pid:-$PID}" # without device lines the case has failed already: end the job
}

# shellcheck disable=SC2034 # MS and RC are of the last run, as in lib.sh
await_job() {
    local try began
    began="$(now_ms)"
    for ((try = 0; try < 500 * STRETCH; try++)); do
        kill -0 "$PID" 2>/dev/null || break
        pause
    done
    MS=$(($(now_ms) - began))
    kill -KILL "$PID" 2>/dev/null && bad "it had to be killed"
    { wait "$PID"; } 2>/dev/null
    RC=$?
}

want_reports() { # want_reports N REGEX...
    local n line
    n="$(grep -cE '^rank [0-9]+ host [^ ]+: time-out after|^  seen by rank |^connect: ' "$ERR")"
    want_equal "$n" "$1" "reports"
    for line in "${@:2}"; do
        want_match "$ERR" "$line"
    done
}

want_codes() {
    local others
    others="$(awk -v code="$1" '$2 < 128 && $2 != code' "$JOB_CODES" | tr '\n' ';')"
    [[ -z "$others" ]] || bad "ranks and exit codes other than $1: $others"
}

forget_daemons() {
    local pid
    for pid in $(leftovers); do
        [[ "$(readlink "/proc/$pid/exe")" == */orted ]] && kill -KILL "$pid"
    done
}
