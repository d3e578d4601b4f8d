#!/usr/bin/env bash
# --find-bad end to end: ranks of one process as nodes, each kind of fault made by --inject, and the
# right verdict, lists and exit code. Injected faults are large: this machine may be crowded.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

EIGHT=(-g 8 --node-map '0,1,2,3,4,5,6,7')

find_bad() { # find_bad OPTION...: pairs of 8 nodes unless options say otherwise
    rm -rf "$WORK/lists"
    run 60 "$(program all_reduce)" -b 16K -e 16K -n 12 -T 8 --find-bad \
        --find-bad-out "$WORK/lists" "$@"
}

# want_lists PASSED FAILED UNKNOWN: names, one a line, sorted
want_lists() {
    local name
    for name in passed failed unknown; do
        want_equal "$(tr '\n' ' ' <"$WORK/lists/$name")" "$1" "$name"
        shift
    done
}

# So slow that it stands out among ranks that share CPUs; not so slow that it looks hung, where
# a sanitizer makes every operation long.
SLOWLY=0.001
[[ -n "${SAN:-}" ]] && SLOWLY=0.02

ALL="node0 node1 node2 node3 node4 node5 node6 node7 "

begin "eight equal nodes: nothing stands out"
find_bad "${EIGHT[@]}" --csv "$WORK/csv" -J "$WORK/json"
want_exit 0
want_silent "$ERR"
want_match "$OUT" '^# Verdict   : nothing stands out among 8 nodes$'
want_match "$OUT" 'whether all are slow alike only --min-busbw can tell'
want_lists "$ALL" "" ""
want_lines "$WORK/lists/reasons" 0
want_json "$WORK/json" okay=true exit_code=0
want_match "$WORK/csv" '^a,b,again,ranks,outcome,time_us,busbw_gbs,wrong_rank$'
want_equal "$(awk -F, 'NF != 8' "$WORK/csv" | wc -l)" 0 "CSV lines of other than 8 columns"
want_equal "$(awk -F, '$3 == 0 && $1 != $2' "$WORK/csv" | sort -u | wc -l)" 28 "pairs"
want_equal "$(awk -F, '$3 == 0 && $1 == $2' "$WORK/csv" | wc -l)" 8 "nodes by themselves"

begin "one slow node of eight"
find_bad "${EIGHT[@]}" --inject "bw:node=5,factor=$SLOWLY" -J "$WORK/json"
want_exit 5
want_match "$OUT" '^# Bad node: node5: slow: .* GB/s of .* with 7 partners, retested, collmark'
want_match "$OUT" '^# Verdict   : 1 of 8 nodes and 0 links bad: node5 slow$'
want_lists "${ALL/node5 /}" "node5 " ""
want_match "$WORK/lists/reasons" $'^node5\tslow: .*, collmark [0-9.]+$'
want_json "$WORK/json" okay=false exit_code=5
want_match "$WORK/json" $'"name":\t"node5"'

begin "a slow link between two good nodes"
find_bad "${EIGHT[@]}" --inject "bw:link=2-4,factor=$SLOWLY"
want_exit 5
want_match "$OUT" '^# Bad link: node2 - node4: slow: .*retested$'
want_match "$OUT" '^# Verdict   : 0 of 8 nodes and 1 link bad: node2 - node4 slow$'
want_lists "node0 node1 node3 node5 node6 node7 " "" "node2 node4 "

begin "a node that hangs, and a link"
find_bad "${EIGHT[@]}" --inject stall:node=2
want_exit 4
want_match "$OUT" '^# Verdict   : 1 of 8 nodes and 0 links bad: node2 hangs$'
want_lists "${ALL/node2 /}" "node2 " ""
find_bad "${EIGHT[@]}" --inject stall:link=1-6
want_exit 4
want_match "$OUT" '^# Verdict   : 0 of 8 nodes and 1 link bad: node1 - node6 hangs$'
want_lists "node0 node2 node3 node4 node5 node7 " "" "node1 node6 "

begin "a corrupt node, and a link"
find_bad "${EIGHT[@]}" --inject corrupt:node=3
want_exit 1
want_match "$OUT" '^# Verdict   : 1 of 8 nodes and 0 links bad: node3 corrupt$'
want_match "$OUT" 'wrong data, first on rank 3'
want_lists "${ALL/node3 /}" "node3 " ""
find_bad "${EIGHT[@]}" --inject corrupt:link=0-7
want_exit 1
want_match "$OUT" '^# Verdict   : 0 of 8 nodes and 1 link bad: node0 - node7 corrupt$'

begin "all are slow: only a figure can tell"
find_bad -g 4 --min-busbw 100000
want_exit 5
want_lists "" "rank0 rank1 rank2 rank3 " ""
want_match "$OUT" '4 of 4 ranks and 0 links bad'

begin "odd numbers, ranks of one node, nodes of several ranks"
find_bad -g 5 --inject corrupt:rank=4
want_exit 1
want_lists "rank0 rank1 rank2 rank3 " "rank4 " ""
find_bad -g 6 --node-map 0,0,1,1,2,2 --inject stall:link=0-2
want_exit 4
want_match "$OUT" 'node0 - node2 hangs$'
want_match "$OUT" '^ +node1 +2 .* good$'

begin "two nodes: they cannot be compared"
find_bad -g 2 --inject bw:rank=1,factor=0.01
want_exit 0
want_match "$OUT" 'too few to compare'

begin "a sample, and an anchor"
find_bad "${EIGHT[@]}" --pairs sample=1 --inject corrupt:node=6
want_exit 1
want_lists "${ALL/node6 /}" "node6 " ""
want_match "$OUT" '1 of 1 rounds'
find_bad "${EIGHT[@]}" --pairs anchor=node3 --inject corrupt:node=6
want_exit 1
want_match "$OUT" '7 of 7 rounds'
want_lists "${ALL/node6 /}" "node6 " ""

begin "other collectives"
for driver in alltoallv reduce broadcast sendrecv hypercube; do
    run 30 "$(program "$driver")" -g 4 --node-map 0,1,2,3 -b 16K -e 16K -n 3 -T 8 --find-bad
    want_exit 0 5
    want_match "$OUT" '^# Verdict   : '
done

begin "--max-time is over: the rest is not known"
find_bad "${EIGHT[@]}" --max-time 0.000001
want_exit 6
want_lists "" "" "$ALL"
want_match "$OUT" 'Truncated'

begin "what cannot be done is refused"
refused() { # refused REGEX OPTION...
    run 10 "$(program all_reduce)" -b 1K -e 1K -g 4 "${@:2}"
    want_refused 2 "$1"
}
refused '^--pairs goes with --find-bad' --pairs all
refused '^--find-bad-limit goes with' --find-bad-limit 20
refused "^--pairs 'some': want all, sample=K" --find-bad --pairs some
refused '^-d all and --find-bad exclude each other' --find-bad -d all
refused '^--split and --find-bad' --find-bad --split mod:2
refused '^--thresholds and --find-bad' --find-bad --thresholds /dev/null
refused '^--find-bad compares pairs at one size' --find-bad -e 2K
run 10 "$(program all_reduce)" -b 1K -e 1K -g 4 --find-bad --pairs sample=9
want_exit 2
want_match "$ERR" "sample=9': 4 units meet each other in 3 rounds"
run 10 "$(program all_reduce)" -b 1K -e 1K -g 4 --find-bad --pairs anchor=node9
want_exit 2
want_match "$ERR" "anchor=node9': the names are rank0 to rank3"
run 10 "$(program all_reduce)" -b 1K -e 1K -g 1 --find-bad
want_exit 2
run 10 "$(program all_reduce)" -b 1K -e 1K -g 4 --find-bad --find-bad-out /dev/null
want_exit 3
want_match "$ERR" "find-bad-out '/dev/null"

# ---- over TCP --------------------------------------------------------------------------------

tcp() { # tcp PROCESSES OPTION...
    rm -rf "$WORK/lists"
    run 60 "$MPIRUN" -np "$1" "$(program all_reduce)" --wire tcp -b 16K -e 16K -n 4 -T 8 \
        --find-bad --find-bad-out "$WORK/lists" "${@:2}"
}

begin "over TCP: each process a node"
if has_mpi; then
    tcp 4
    want_exit 0 5 # processes on a crowded machine may differ
    want_match "$OUT" '^# Verdict   : '
    tcp 4 --inject corrupt:node=2 --pairs sample=1
    want_exit 1
    want_lists "node0 node1 node3 " "node2 " ""
    tcp 4 --inject stall:link=0-2
    want_exit 4
    want_match "$OUT" 'node0 - node2 hangs$'
    want_nothing_left
else
    skip "no MPI"
fi

begin "a process that is stopped ends the job, and is named"
if has_mpi; then
    rm -rf "$WORK/lists"
    start "$MPIRUN" -np 4 "$(program all_reduce)" --node-map 0,1,2,3 -b 16K -e 16K -n 200000 -T 4 \
        --find-bad --find-bad-out "$WORK/lists"
    for ((try = 0; try < 200; try++)); do
        victim="$(pgrep -P "$PID" -f all_reduce | sed -n 3p)"
        [[ -n "$victim" && -d "$WORK/lists" ]] && break
        pause
    done
    pause
    hit STOP "$victim"
    kill -KILL "$victim" 2>/dev/null
    want_exit 4 3
    want_match "$OUT" '^# Bad node: node2: hangs'
    want_equal "$(cat "$WORK/lists/failed")" node2 failed
    want_nothing_left
else
    skip "no MPI"
fi

finish
