#!/usr/bin/env bash
# What goes wrong between nodes, under both launchers: the whole job ends within the deadline, with
# one report that names rank, host, phase, collective and size and who waits for whom, and rows
# that were measured are in the table. Faults of the network itself: tests/test_node_cables.sh.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/nodes.sh
. "$(dirname "$0")/nodes.sh"
# shellcheck source=tests/node_jobs.sh
. "$(dirname "$0")/node_jobs.sh"

if ! nodes_possible || ! nodes_up 3; then
    skip_all "no network namespaces, or no ip and nsenter (needs root)"
fi
all_reduce="$(realpath "$(program all_reduce)")"
launchers=(env)
nodes_mpi && launchers+=(mpi)

# How long a job may last after the fault: silence is found after half of the deadline or at it,
# questions take half a second, mpirun a few seconds more.
limit=$((PATIENCE * 1000 + 3000))
[[ -n "${SAN:-}" ]] && limit=$(((PATIENCE * 1000 + 3000) / STRETCH + 2000))
mpi_limit=$((limit + 8000))

in_limit() { # in_limit LAUNCHER
    if [[ $1 == env ]]; then
        want_within "$limit"
    else
        want_within "$mpi_limit"
    fi
}

# Open MPI's codes take the place of ours where it saw a process or a node die first.
want_failed() { # want_failed LAUNCHER CODE
    if [[ $1 == env ]]; then
        want_exit "$2"
        want_codes "$2"
    else
        want_failure
    fi
}

place='all_reduce of 65536 bytes, phase (timed|sync|check|warmup), iteration [0-9]+, operation'
kept_rows() {
    want_match "$OUT" '^ +65536 .* 0 +[0-9.]+ .* 0$'
}

# ---- a rank that is not there any more, or never was -----------------------------------------

for launcher in "${launchers[@]}"; do
    begin "$launcher: a rank is killed"
    endless "$launcher"
    hit KILL "$(rank_pid 2)"
    want_failed "$launcher" 3
    in_limit "$launcher"
    want_reports 1 '^process 2 \(rank 2, pid [0-9]+\) on host node2 died: its connection ' \
        "^  seen by rank [01] host node[01]: $place" '^  2 of 3 ranks wait: 0 for rank [12], 1 for'
    kept_rows
    want_nothing_left

    begin "$launcher: a rank is stopped"
    endless "$launcher"
    victim="$(rank_pid 2)"
    if [[ $launcher == env ]]; then # nobody but us would ever end it
        kill -STOP "$victim"
        await_text '^1 4$' "$JOB_CODES"
        hit CONT "$victim"
        want_reports 2 '^process [01] .* has given up this process, which stood still for [0-9.]+ s'
    else
        kill -STOP "$victim"
        await_job
        want_match "$ERR" '^  seen by rank [01] '
    fi
    want_failed "$launcher" 4
    in_limit "$launcher"
    want_match "$ERR" '^process 2 \(rank 2, pid [0-9]+\) on host node2 has been silent for '
    want_match "$ERR" "^  seen by rank [01] host node[01]: $place"
    want_no_match "$ERR" 'time-out: tear-down'
    kept_rows
    want_nothing_left
done

begin "env: a rank never comes"
for absent in 1 0; do
    JOB_ABSENT=$absent
    node_job env 3 "$all_reduce" -b 8 -e 8 -T "$PATIENCE"
    run 20 "${ARGV[@]}"
    want_exit 4
    want_codes 4
    in_limit env
    want_silent "$OUT"
    if [[ $absent == 0 ]]; then
        want_match "$ERR" '^rank 2: no rank 0 within .*MASTER_ADDR=10.77.0.1.*: Connection refused'
    else
        want_match "$ERR" "^rendezvous at 10.77.0.1:$JOB_PORT: 1 of 3 processes .*: rank 1$"
    fi
done
JOB_ABSENT=

if [[ -n "$SLOW" && ${#launchers[@]} -gt 1 ]]; then
    begin "mpi: a rank never calls MPI" # its launcher has a minute
    node_mpirun 3 -np 2 --map-by node "$all_reduce" -b 8 -e 8 -T 2 : -np 1 sleep 80
    run 100 "${ARGV[@]}"
    want_exit 4
    want_match "$ERR" '^time-out: set-up \(starting processes\)'
fi

# ---- a rank that stalls or crashes in a certain phase ----------------------------------------

# Jobs at the same time: most of it is waiting.
declare -A spec_out spec_codes
together() { # together SPEC...
    local spec
    for spec in "$@"; do
        node_job env 3 "$all_reduce" -b 1K -e 4K -f 4 -n 10 -T "$PATIENCE" --inject "$spec"
        spec_out[$spec]="$WORK/spec.$JOB_PORT"
        spec_codes[$spec]="$JOB_CODES"
        (
            OUT="$WORK/spec.$JOB_PORT.out" ERR="$WORK/spec.$JOB_PORT.err"
            run 20 "${ARGV[@]}"
            printf 'RC=%q MS=%q COMMAND=%q\n' "$RC" "$MS" "$COMMAND" >"$WORK/spec.$JOB_PORT.ended"
        ) &
    done
    for spec in "$@"; do
        wait -n
    done
}

of_spec() { # of_spec SPEC: OUT, ERR and the rest are those of its run
    OUT="${spec_out[$1]}.out"
    ERR="${spec_out[$1]}.err"
    JOB_CODES="${spec_codes[$1]}"
    # shellcheck disable=SC1090 # written by together()
    . "${spec_out[$1]}.ended"
}
usual_out="$OUT"
usual_err="$ERR"

specs=('rank=2,phase=init' 'rank=2,phase=warmup' 'rank=2,iter=5' 'rank=1,phase=check'
    'rank=2,phase=finalize')
together "${specs[@]/#/stall:}"
for spec in "${specs[@]}"; do
    begin "env: stall $spec"
    of_spec "stall:$spec"
    rank="${spec:5:1}"
    phase="${spec##*=}"
    [[ $phase == 5 ]] && phase="timed, iteration 5"
    want_exit 4
    want_codes 4
    in_limit env
    want_reports 1 "^rank 0 host node0: time-out after [0-9.]+ s, waiting for rank [12]: .*$phase" \
        "^  did not arrive: rank $rank host node$rank pid [0-9]+: .*phase $phase" \
        '^  2 of 3 ranks wait: 0 for rank [12], '
    want_equal "$(grep -c 'did not arrive' "$ERR")" 1 "straggler lines"
done
want_table rows=2

specs=('rank=2,phase=init' 'rank=0,phase=init' 'rank=1,iter=3' 'rank=0,iter=3'
    'rank=2,phase=finalize')
together "${specs[@]/#/crash:}"
for spec in "${specs[@]}"; do
    begin "env: crash $spec"
    of_spec "crash:$spec"
    rank="${spec:5:1}"
    phase="${spec##*=}"
    [[ $phase == 3 ]] && phase="timed, iteration 3"
    want_exit 3
    want_codes 3
    in_limit env
    want_reports 1 "^process $rank \\(rank $rank, pid [0-9]+\\) on host node$rank died: its conn" \
        "^  seen by rank [012] host node[012]: .*phase $phase" '^  2 of 3 ranks wait: '
done
OUT="$usual_out"
ERR="$usual_err"
want_nothing_left

if [[ ${#launchers[@]} -gt 1 ]]; then
    begin "mpi: stall: one report, exit 4"
    node_job mpi 3 "$all_reduce" -b 1K -e 4K -f 4 -n 10 -T $((PATIENCE + 2)) \
        --inject stall:rank=2,iter=5
    run 30 "${ARGV[@]}"
    want_exit 4
    want_reports 1 '^rank 0 host node0: time-out after .*all_reduce of 1024 bytes, phase timed' \
        '^  did not arrive: rank 2 host node2 pid [0-9]+: .*phase timed, iteration 5'
    want_nothing_left
fi

begin "a slow rank is no failure, and shows in the time of the row"
node_job env 3 "$all_reduce" -b 1K -e 1K -n 5 -T "$PATIENCE" --inject delay:rank=2,us=20000
run 20 "${ARGV[@]}"
want_right rows=1
want_equal "$(awk '!/^#/ && NF { print ($6 >= 20000) }' "$OUT")" 1 "at least 20 ms"

# ---- signals ---------------------------------------------------------------------------------

begin "SIGTERM to one rank while a row lasts: all end, in silence"
for rank in 0 1; do
    node_job env 3 "$all_reduce" -b 64K -e 64K -n 2000000000 -T "$PATIENCE"
    start "${ARGV[@]}"
    await_text 'busbw' "$OUT"
    hit TERM "$(rank_pid $rank)"
    want_exit 6
    want_codes 6
    want_within 3000
    want_silent "$ERR"
done

# ---- ranks that were told something else -----------------------------------------------------

begin "options that differ are named (tests/test_disagree.c has operations that do)"
JOB_ODD=2
JOB_ODD_OPTIONS="-d int32"
node_job env 3 "$all_reduce" -b 8 -e 8 -T "$PATIENCE"
run 20 "${ARGV[@]}"
want_exit 2
want_codes 2
want_match "$ERR" 'datatype'
want_silent "$OUT"
JOB_ODD=

# ---- the disk ---------------------------------------------------------------------------------

begin "a disk that is full: all ranks end, the table is whole"
mkdir "$WORK/disk"
for option in -J --csv; do
    node_job env 3 "$all_reduce" -b 8 -e 64K -f 2 -n 2 -w 0 -T "$PATIENCE" \
        $option "$WORK/disk/report"
    run 20 unshare -m bash -c "mount -t tmpfs -o size=4k none '$WORK/disk' && exec \"\$@\"" disk \
        "${ARGV[@]}"
    want_exit 3
    want_codes 3
    want_lines "$ERR" 1
    want_match "$ERR" "$option.* '$WORK/disk/report': No space left on device"
    want_match "$OUT" '^ +8 .* 0 +[0-9.]+ .* 0$'
done
want_nothing_left

finish
