#!/usr/bin/env bash
# Processes under a real launcher: results, exit codes, faults, signals from outside, and what
# happens when launcher and build do not belong together.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

has_mpi || skip_all "no MPI: ${MPIRUN:-no mpirun}"

mpirun_of() { # mpirun_of RANKS DRIVER OPTION...: fills ARGV
    ARGV=("$MPIRUN" -np "$1" "$(program "$2")" "${@:3}")
}

# Lines of the programs themselves; launchers add their own when a process fails.
own_lines() { # own_lines REGEX
    grep -cE -e "$1" "$ERR"
}

begin "4 processes, 2 processes with 2 threads: the columns of threads"
mpirun_of 4 all_reduce -b 8 -e 1M -f 2
run 60 "${ARGV[@]}"
want_right rows=18 na=no
want_match "$OUT" 'wire=shm'
want_match "$OUT" '^# MPI: .*lib'
want_equal "$(grep -c '^#  Rank ' "$OUT")" 4 "device lines"
mpirun_of 2 all_reduce -b 8 -e 1M -f 2 -t 2
run 60 "${ARGV[@]}"
want_right rows=18 na=no
want_equal "$(grep -c '^#  Rank ' "$OUT")" 4 "device lines"

drivers=(reduce_scatter reduce alltoallv hypercube)
[[ -n "$SLOW" ]] && drivers=("${ALL_DRIVERS[@]}")
for driver in "${drivers[@]}"; do
    begin "$driver on 3 processes"
    mpirun_of 3 "$driver" -b 1 -e 4K -i 1333 -n 2 -d all -r all
    run 60 "${ARGV[@]}"
    want_right
done

begin "uneven: 1 + 2 ranks"
run 60 "$MPIRUN" -np 1 "$(program all_reduce)" -b 8 -e 64K -f 8 -t 1 : \
    -np 1 "$(program all_reduce)" -b 8 -e 64K -f 8 -t 2
want_right rows=5
want_equal "$(grep -c '^#  Rank ' "$OUT")" 3 "device lines"

begin "one process alone under the launcher"
mpirun_of 1 all_reduce -b 8 -e 8 -g 2
run 30 "${ARGV[@]}"
want_right

begin "processes that were given different options say which"
run 30 "$MPIRUN" -np 1 "$(program all_reduce)" -b 8 -e 8 -n 5 : \
    -np 1 "$(program all_reduce)" -b 8 -e 8 -n 6
want_exit 2 3
want_silent "$OUT"
want_match "$ERR" 'iters'

begin "bad options: exit 2, no table"
mpirun_of 2 all_reduce -n abc
run 30 "${ARGV[@]}"
want_exit 2
want_silent "$OUT"
want_match "$ERR" '^-n/--iters'
mpirun_of 2 broadcast -r 5 -b 8 -e 8
run 30 "${ARGV[@]}"
want_exit 2
want_silent "$OUT"
want_equal "$(own_lines 'root.*2 ranks')" 1 "lines naming the root"

begin "memory: exit 3, one line"
mpirun_of 2 all_reduce -b 1T -e 1T
run 30 "${ARGV[@]}"
want_exit 3
want_silent "$OUT"
want_equal "$(own_lines 'maxbytes.*available')" 1 "lines naming the size"

begin "corrupt: exit 1, located"
mpirun_of 3 all_reduce -b 1K -e 1K --inject corrupt:rank=1
run 30 "${ARGV[@]}"
want_exit 1
want_table rows=1 wrong=+
want_match "$ERR" '^rank 1 host .*element [0-9]+ .*expected .*got '

for spec in rank=2,phase=init rank=0,iter=5 rank=2,phase=finalize; do
    begin "stall $spec: exit 4 within the deadline, named"
    mpirun_of 3 all_reduce -b 1K -e 1K -T 2 --inject "stall:$spec"
    run 20 "${ARGV[@]}"
    want_exit 4
    want_within 6000
    who="${spec#rank=}"
    want_match "$ERR" "did not arrive: rank ${who%%,*} host "
done

for spec in rank=1 rank=0,phase=init; do
    begin "crash $spec: all end, not with 0"
    mpirun_of 3 all_reduce -b 1K -e 1K --inject "crash:$spec"
    run 20 "${ARGV[@]}"
    want_failure
    want_within 6000
done
want_nothing_left

# ---- from outside ----------------------------------------------------------------------------

pid_of() { # pid_of RANK, from the device lines
    sed -n "s/^#  Rank  *$1 .* Pid  *\([0-9]*\) .*/\1/p" "$OUT"
}

# Start an endless run, wait for its first row, then signal rank 1 or the launcher.
signalled() { # signalled SIGNAL rank|launcher [OPTION...]
    local victim
    mpirun_of 3 all_reduce -b 64K -e 64K -n 200 -N 0 "${@:3}"
    start "${ARGV[@]}"
    await_text '^ +65536 ' "$OUT"
    victim="$(pid_of 1)"
    [[ $2 == launcher ]] && victim=$PID
    if [[ -z "$victim" ]]; then
        bad "no line of rank 1"
        victim=$PID
    fi
    hit "$1" "$victim"
}

begin "a rank killed from outside is named, and all end"
signalled KILL rank
want_failure
want_within 5000
# MPICH ends the others before they can say anything.
if ldd "$(program all_reduce)" | grep -q 'libmpi\.so'; then
    want_match "$ERR" 'process 1 \(rank 1, pid [0-9]+\) on host .* died'
fi
want_nothing_left

begin "a rank stopped from outside is named: exit 4"
signalled STOP rank -T 3
want_exit 4
want_within 9000
want_match "$ERR" 'did not arrive: rank 1 host '
want_nothing_left

for target in rank launcher; do
    begin "SIGTERM to the $target: the JSON is whole"
    signalled TERM $target -J "$WORK/$target.json"
    want_failure
    want_within 5000
    want_json "$WORK/$target.json" exit_code=6 truncated=true
    want_nothing_left
done

# ---- launcher and build that do not belong together ------------------------------------------

begin "another library's launcher is refused by every process"
other=
for name in mpirun.mpich mpirun.openmpi; do
    command -v "$name" >/dev/null &&
        [[ "$(realpath "$(command -v "$name")")" != "$(realpath "$MPIRUN")" ]] && other="$name"
done
if [[ -z "$other" ]]; then
    skip "only one launcher here"
else
    run 30 "$other" -np 2 "$(program all_reduce)" -b 8 -e 8
    want_exit 3
    want_silent "$OUT"
    want_match "$ERR" 'shows a launcher with several processes, but MPI sees a world of 1'
fi

if [[ -n "$SLOW" ]]; then
    begin "a build without MPI refuses a launcher"
    if make -s MPI=0 BUILDDIR="$WORK/alone" "$WORK/alone/all_reduce_perf" >"$WORK/said" 2>&1; then
        run 30 "$MPIRUN" -np 2 "$WORK/alone/all_reduce_perf" -b 8 -e 8
        want_exit 3
        want_silent "$OUT"
        want_match "$ERR" 'but this build has no MPI'
    else
        bad "no build with MPI=0: $(tail -n 2 "$WORK/said")"
    fi

    begin "large messages, as processes"
    mpirun_of 4 all_reduce -b 8 -e 128M -f 2
    run 300 "${ARGV[@]}"
    want_right rows=25 na=no

    begin "16 processes"
    mpirun_of 16 all_reduce -b 8 -e 1M -f 2
    run 120 "${ARGV[@]}"
    want_right rows=18

    # The same test with the other library, in a build of its own.
    if command -v mpicc.mpich mpirun.mpich >/dev/null &&
        [[ "$(realpath "$MPIRUN")" != "$(realpath "$(command -v mpirun.mpich)")" ]]; then
        begin "all of this with MPICH"
        if make -s MPI=mpich BUILDDIR="$WORK/mpich" >"$WORK/said" 2>&1; then
            BUILDDIR="$WORK/mpich" NAME_SUFFIX='' MPIRUN="$(command -v mpirun.mpich)" \
                COLLMARK_SLOW='' TMPDIR="$WORK" tests/test_mpi.sh >"$WORK/mpich.log" 2>&1 ||
                bad "$(grep -v '^ok' "$WORK/mpich.log")"
        else
            bad "no build with MPI=mpich: $(tail -n 2 "$WORK/said")"
        fi
    fi
fi

finish
