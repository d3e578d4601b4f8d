#!/usr/bin/env bash
# --debug and --log: what is told at which level, and where; and that processes which fail
# alike say so once.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

run_two() { # run_two OPTION...: two ranks, two sizes
    run 10 "$(program all_reduce)" -g 2 -b 8 -e 1M -f 131072 "$@"
    want_exit 0
    want_table rows=2
}

CHOICE='algorithm [a-z]+ mode [a-z]+ protocol [a-z]+ channels [0-9]+ chunk [0-9]+ passes [0-9]+'

begin "none tells nothing, version and warn one line"
run_two --debug none
want_silent "$ERR"
for level in version warn; do
    run_two --debug "$level"
    want_lines "$ERR" 1
    want_match "$ERR" '^rank 0 host [^ ]+: collmark version [0-9.]+$'
done

begin "info: memory, CPUs and waiting of each rank, and each choice once"
run_two --debug info
for rank in 0 1; do
    want_match "$ERR" "^rank $rank host .*: wire loop, segment [0-9]+[KMG]?: per rank buffers"
    want_match "$ERR" "^rank $rank host .* cpus [-0-9,]+, waits: [0-9]+ polls"
    want_match "$ERR" \
        "^rank $rank host .*: communicator: rank $rank of 2 on 1 nodes, ring order .* 0 1, by node"
    for size in 8 1048576; do
        for place in "in place" "out of place"; do
            LINE="^rank $rank host .*: all_reduce float sum count [0-9]+, $size bytes, $place: "
            want_equal "$(grep -cE "$LINE$CHOICE" "$ERR")" 1 "rank $rank, $size bytes, $place"
        done
    done
done
want_no_match "$ERR" 'hash'

begin "trace: the plan as well, the same in two runs"
run_two --debug trace --algo ring --mode direct
want_match "$ERR" '^rank 1 host .*:   plan: [0-9]+ workers, [0-9]+ folds, .* hash [0-9a-f]{16}$'
want_match "$ERR" 'algorithm ring mode direct'
FIRST="$(grep -o 'rank .*hash.*' "$ERR" | sort)"
run_two --debug trace --algo ring --mode direct
want_equal "$(grep -o 'rank .*hash.*' "$ERR" | sort)" "$FIRST" "plans"

begin "a root is named"
run 10 "$(program broadcast)" -g 2 -b 8 -e 8 -r 1 --debug info
want_match "$ERR" ': broadcast float root 1 count 2, 8 bytes'

begin "the file: names, emptied by a new run, NCCL's variables"
run_two --debug info --log "$WORK/%%-%h-%r-%x"
want_silent "$ERR"
FILE="$WORK/%-$(hostname -s)-0-%x"
want_match "$FILE" 'communicator'
run 10 env NCCL_DEBUG=VERSION NCCL_DEBUG_FILE="$WORK/%%-%h-%r-%x" "$(program all_reduce)" -b 8 -e 8
want_silent "$ERR"
want_lines "$FILE" 1
run 10 "$(program all_reduce)" -b 8 -e 8 --debug none --log "$WORK/not-made"
want_equal "$(find "$WORK" -name not-made)" "" "a file nobody needs"

begin "a log without a level is level info; the older name is as good"
run_two --log "$WORK/info"
want_silent "$ERR"
want_match "$WORK/info" 'communicator'
want_no_match "$WORK/info" 'hash'
run_two --debug-file "$WORK/older" --debug version
want_lines "$WORK/older" 1
run 10 env COLLMARK_DEBUG=trace COLLMARK_LOG="$WORK/env" "$(program all_reduce)" -g 2 -b 1M -e 1M
want_match "$WORK/env" 'hash'
want_match "$OUT" '^# Environment: COLLMARK_LOG='

begin "a log that the disk does not take: one line, all rows, exit 3"
run 10 "$(program all_reduce)" -g 2 -b 8 -e 64 -f 8 --log /dev/full
want_exit 3
want_table rows=2
want_lines "$ERR" 1
want_match "$ERR" "^rank [01] host [^ ]+: --log '/dev/full': No space left on device"
run 10 "$(program all_reduce)" -g 2 -b 8 -e 8 --log /dev/full -J "$WORK/lost.json"
want_json "$WORK/lost.json" exit_code=3 okay=false truncated=false
run 10 "$(program all_reduce)" -g 2 -b 8 -e 8 --log /dev/full --inject corrupt:rank=1
want_exit 1 # wrong data weighs more

begin "a file that cannot be opened: exit 3 before the run"
run 10 "$(program all_reduce)" -b 8 -e 8 --debug info --log /nonexistent/x
want_exit 3
want_silent "$OUT"
want_lines "$ERR" 1
want_match "$ERR" "--log '/nonexistent/x': No such file"

if ! has_mpi; then
    begin "processes"
    skip "no MPI"
    finish
fi

begin "a file for all processes, and one for each"
run 20 "$MPIRUN" -np 3 "$(program all_reduce)" -b 8 -e 8 --debug info --log "$WORK/one"
want_equal "$(grep -c 'communicator' "$WORK/one")" 3 "ranks in the file"
run 20 "$MPIRUN" -np 3 "$(program all_reduce)" -b 8 -e 8 --debug info --log "$WORK/own.%p"
want_equal "$(find "$WORK" -name 'own.*' | wc -l)" 3 "files"

begin "between domains: the interface of each process, and why"
run 20 "$MPIRUN" -np 2 "$(program all_reduce)" -b 8 -e 8 -t 2 --wire tcp --ifname =lo \
    --log "$WORK/net.%r"
want_right rows=1
for rank in 0 2; do
    want_equal "$(grep -c 'network: ' "$WORK/net.$rank")" 1 "lines about the network"
    want_match "$WORK/net.$rank" "^rank $rank host .*: network: tcp over lo address (127|::1)"
    want_match "$WORK/net.$rank" ': network: .* \(--ifname\); connected to 1 processes'
done
want_match "$OUT" '^# collmark .* wire=loop\+tcp$'
want_match "$OUT" '^# Network: tcp over lo .*\(--ifname\), 1 socket per neighbour, progress'
want_match "$OUT" '^# Transport: inside a domain loop, between 2 domains tcp$'
want_match "$OUT" '^# Bootstrap  *: start [0-9.]+ s, discover .* connect .* first operation'

begin "a log of one process that the disk does not take ends the job with 3, after its rows"
# shellcheck disable=SC2016 # each process asks for its own rank
run 20 "$MPIRUN" -np 2 sh -c 'rank="${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    [ "$rank" != 1 ] || export COLLMARK_LOG=/dev/full
    exec "$0" -b 8 -e 64 -f 8 --debug info' "$(program all_reduce)"
want_exit 3
want_table rows=2
want_equal "$(grep -c "^rank 1 host .*: --log '/dev/full': No space" "$ERR")" 1 "lines about it"

begin "what every process refuses is said once"
for options in "-n abc" "-r 9" "--no-such" "-J - --csv -" "-b 8 -e 4"; do
    # shellcheck disable=SC2086
    run 20 "$MPIRUN" -np 4 "$(program all_reduce)" $options
    want_exit 2
    want_silent "$OUT"
    want_equal "$(grep -cE '^(-[a-zA-Z]/|--[a-z]|unknown option)' "$ERR")" 1 "lines of $options"
done

begin "what every process would print is printed once"
for options in --version --help --list "--plan -g 2 --algo ring"; do
    # shellcheck disable=SC2086
    run 20 "$(program all_reduce)" $options
    cp "$OUT" "$WORK/alone"
    # shellcheck disable=SC2086
    run 20 "$MPIRUN" -np 4 "$(program all_reduce)" $options
    want_exit 0
    cmp -s "$OUT" "$WORK/alone" || bad "$options: not what one process prints"
done

finish
