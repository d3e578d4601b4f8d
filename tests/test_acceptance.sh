#!/usr/bin/env bash
# scripts/acceptance.sh end to end: the nodes are groups of threads behind a launcher that plays
# mpirun or srun, faults are made by --inject. Injected faults are large: this machine may be
# crowded. Parts: tests/test_acceptance.py; recipes: tests/test_acceptance_recipes.sh.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

BUILDDIR="$(realpath "$BUILDDIR")"
export BUILDDIR NAME_SUFFIX="${NAME_SUFFIX:-}" WORDS="$WORK/words"
mkdir "$WORK/bin"
for name in mpirun srun; do
    ln -s "$PWD/tests/acceptance/launcher" "$WORK/bin/$name"
done
ln -s "$PWD/tests/acceptance/scontrol" "$WORK/bin/scontrol"
export PATH="$WORK/bin:/usr/bin:$PATH" # the system's interpreter starts faster
R="$WORK/results"
printf 'n%d slots=1\n' 0 1 2 3 >"$WORK/one"
printf 'n%d slots=2  # a comment\n' 0 1 2 3 >"$WORK/two"

accept() { # accept [VARIABLE=VALUE...] OPTION...: small and quick unless options say otherwise
    local set=()
    while [[ $1 == *=* && $1 != -* ]]; do
        set+=("$1")
        shift
    done
    rm -rf "$R" "$WORDS"
    run 40 env "${set[@]}" scripts/acceptance.sh --backend host --max-bytes 16K --timeout 8 \
        --no-report --out "$R" "$@"
}

# want_lists PASSED FAILED UNKNOWN: names, one a line
want_lists() {
    local name
    for name in passed failed unknown; do
        want_equal "$(tr '\n' ' ' <"$R/hosts/$name")" "$1" "$name"
        shift
    done
}

want_last() { # want_last REGEX: the last line of stdout, and of the summary
    local last
    last="$(tail -n 1 "$OUT")"
    [[ "$last" =~ ^Acceptance:\ $1$ ]] || bad "last line '$last', wanted '$1'"
}

want_stage() { # want_stage NAME RESULT
    want_match "$OUT" "^$1 .*  $2$"
}

begin "this machine alone"
rm -rf "$R"
run 40 scripts/acceptance.sh -g 4 --backend host --max-bytes 16K --out "$R"
want_exit 0
want_last 'PASSED: 1 of 1 node passed'
for stage in ranks nodes pairs all; do
    want_stage "$stage" passed
    want_match "$R/$stage.json" '"result": "passed"'
done
want_match "$OUT" '^Note: no absolute limit was given'
want_match "$R/acceptance.json" '"verdict": "PASSED"'
want_match "$R/report.html" 'Acceptance: PASSED'
want_json "$R/all/alltoall/attempt-1/result.json" okay=true
want_lists "$(hostname) " "" ""
want_lines "$R/hosts/reasons" 0

begin "four nodes: nothing stands out"
accept --hosts "$WORK/two"
want_exit 0
want_last 'PASSED: 4 of 4 nodes passed'
want_lists "n0 n1 n2 n3 " "" ""
want_match "$WORDS" '^mpirun -np 2 --host n3:2 --map-by slot .*/all_reduce_perf.* --split mod:2 '
want_match "$WORDS" '^mpirun -np 8 --host n0:2,n1:2,n2:2,n3:2 .* --find-bad '

begin "one slow node of four is named, left out, and has a line to drain it"
accept BAD=n2 FAULT=bw:node=NODE,factor=0.005 --hosts "$WORK/one" --timeout 40
want_exit 5
want_last 'FAILED \(exit 5, below a threshold\): 3 of 4 nodes passed; failed: n2'
want_lists "n0 n1 n3 " "n2 " ""
want_match "$R/hosts/reasons" $'^n2\tpairs: slow: .*GB/s of .* partners.*, collmark acceptance$'
want_match "$OUT" '^Left out: nodes: one rank each'
want_stage pairs 'failed, exit 5'
want_stage all passed
want_match "$WORDS" '^mpirun -np 3 --host n0:1,n1:1,n3:1 .*/alltoall_perf'

begin "a slow link: both ends are unknown"
accept --hosts "$WORK/one" --timeout 40 --stages pairs -- --inject bw:link=1-3,factor=0.005
want_exit 5
want_lists "n0 n2 " "" "n1 n3 "
want_match "$OUT" '^pairs: link node1 - node3 slow'

begin "a node that cannot be reached: the others are judged"
accept GONE=n1 --hosts "$WORK/two"
want_exit 3
want_last 'FAILED \(exit 3, .*\): 3 of 4 nodes passed; failed: n1'
want_match "$R/hosts/reasons" $'^n1\tranks: ssh: connect to host n1 port 22: No route to host, '
want_stage ranks 'failed, exit 3'
want_stage pairs passed
want_stage all passed

begin "no node can be reached"
accept GONE=n0 --hosts <(echo n0 slots=2)
want_exit 3
want_stage all 'not run'
want_last 'FAILED .*: 0 of 1 node passed; failed: n0'

begin "a rank that hangs is named"
accept BAD=n3 ALONE=1 FAULT=stall:rank=1 --hosts "$WORK/two" --timeout 1
want_exit 4
want_match "$R/hosts/reasons" $'^n3\tranks: rank [01] host .*(stall|waiting for rank 1)'
want_lists "n0 n1 n2 " "n3 " ""
accept BAD=n3 FAULT=stall:node=NODE --hosts "$WORK/one" --timeout 4 --stages pairs,all
want_exit 4
want_match "$R/hosts/reasons" $'^n3\tpairs: hangs'
want_stage all passed

begin "wrong data"
accept BAD=n0 ALONE=1 FAULT=corrupt:rank=1 --hosts "$WORK/two"
want_exit 1
want_match "$R/hosts/reasons" $'^n0\tranks: rank 1 host .*wrong result'
want_stage pairs passed
accept BAD=n0 FAULT=corrupt:node=NODE --hosts "$WORK/two" --stages all
want_exit 1
want_last 'FAILED \(exit 1, wrong data\): 0 of 4 nodes passed; unknown: n0, n1, n2, n3'

begin "a node that dies among the others is named, and they go on"
accept DIES=n1 --hosts "$WORK/two" --stages pairs,all
want_exit 3
want_lists "n0 n2 n3 " "n1 " ""
want_match "$R/hosts/reasons" $'^n1\tall: all_gather: process 2 .* died, '
want_match "$WORDS" '^mpirun -np 6 --host n0:2,n2:2,n3:2 .*/alltoall_perf'
want_match "$R/all/all_gather-3-nodes/run.json" '"exit": 0'

begin "a launcher that says nothing, and ends well, is no pass"
printf '#!/bin/sh\ntest "%s" = --version && echo Open MPI\n' "\$1" >"$WORK/bin/mute"
chmod +x "$WORK/bin/mute"
accept --hosts "$WORK/two" --launcher mute
want_exit 3
want_last 'FAILED .*: 0 of 4 nodes passed; failed: n0, n1, n2, n3'

begin "too little time"
accept --hosts "$WORK/two" --time-budget 1
want_exit 6
want_last 'INCOMPLETE \(exit 6, ended early\): 0 of 4 nodes passed; unknown: n0, n1, n2, n3'
accept -g 2 --time-budget 2 -- -N 0
want_exit 6
want_match "$OUT" 'incomplete, exit 6$'

begin "a signal"
rm -rf "$R"
start scripts/acceptance.sh -g 2 --backend host --max-bytes 16K --no-report --out "$R" -- -N 0
await_text '^collmark: ranks: begins' "$ERR"
hit TERM "$PID"
want_exit 6
want_last 'INCOMPLETE .*'
want_nothing_left

begin "limits"
accept -g 2 --min-busbw 100000
want_exit 5
want_stage pairs 'failed, exit 5'
want_no_match "$OUT" 'no absolute limit'
echo '* * * * * * min_busbw=100000' >"$WORK/thresholds"
accept -g 2 --thresholds "$WORK/thresholds" --stages nodes,pairs
want_exit 5
want_match "$OUT" 'min_busbw|100000|below'
want_stage pairs 'not run'
accept -g 2 --min-peak 50 --stages nodes
want_exit 5 77 # nothing is published for CPUs
want_lists "" "" "$(hostname) "

begin "a baseline"
accept -g 2 --stages all --launches 3
want_exit 0
run 20 scripts/collmark baseline save "$R/all" --name kept --dir "$WORK/base"
want_exit 0
accept -g 2 --stages all --baseline kept --baseline-dir "$WORK/base"
want_exit 0 5 77 # a crowded machine may have become slower, or its cores have moved
want_match "$OUT" '^baseline  compared with a baseline '
want_match "$R/compare.txt" kept
want_equal "$(echo "$R"/all/all_reduce/attempt-?/result.json | wc -w)" 3 "launches that were kept"

begin "inside a Slurm allocation"
accept SLURM_JOB_ID=1 SLURM_JOB_NODELIST='n[0-3]' SLURM_NTASKS_PER_NODE=2 BAD=n1 ALONE=1 \
    FAULT=corrupt:rank=0 --launcher-args '--cpus-per-task=2'
want_exit 1
want_lists "n0 n2 n3 " "n1 " ""
srun='^srun --mpi=none --overlap'
want_match "$WORDS" "$srun --nodes=1 --ntasks=2 --ntasks-per-node=2 --nodelist=n3 "
want_match "$WORDS" "$srun --nodes=3 --ntasks=6 .* --nodelist=n0,n2,n3 --cpus-per-task=2 /"

begin "--dry-run"
accept --hosts "$WORK/two" --dry-run --full --backend cuda
want_exit 0
want_equal "$(grep -c '^/.*mpirun .* --backend cuda' "$OUT")" 15 commands
want_match "$OUT" '^# all, 3 launches of each$'
want_equal "$(grep -vc -e --version "$WORDS")" 0 "launches"
[[ ! -e "$R" ]] || bad "a folder of results"

begin "a driver that refuses its options"
accept -g 2 -- --bogus
want_exit 2
want_last "INCOMPLETE \(exit 2, usage\): .*unknown option '--bogus'.*"

begin "a largest size of 0"
accept -g 2 --dry-run --max-bytes 0
want_exit 2
want_match "$ERR" '--max-bytes 0: nothing is measured'

finish
