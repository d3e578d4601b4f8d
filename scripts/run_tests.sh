#!/usr/bin/env bash
# Run test programs and add up their summary lines.
#
#   scripts/run_tests.sh PROGRAM...
#
# They begin in the order given, TEST_JOBS at a time (2, as half of them wait for deadlines most of
# the time; 1 on one core, and with SAN, which makes all of them busy), and are shown when they end.
# A program ends with "N passed, N failed, N skipped" and exits 0, 1 or 77. What it prints is shown
# when it fails, its skip reasons always. The last line of this script is the sum. Reads from the
# environment: TEST_JOBS, BUILDDIR, NAME_SUFFIX, MPIRUN and SAN (handed on to the programs),
# TEST_TIMEOUT (seconds for one program: 180, with SAN 600). What the programs write to TMPDIR is
# removed at the end.
set -u
cd "$(dirname "$0")/.." || exit 3

export BUILDDIR="${BUILDDIR:-build}" NAME_SUFFIX="${NAME_SUFFIX:-}" MPIRUN="${MPIRUN:-}"
limit=180
[[ -n "${SAN:-}" ]] && limit=600
limit="${TEST_TIMEOUT:-$limit}"
jobs=2
[[ "$(nproc)" == 1 || -n "${SAN:-}" ]] && jobs=1
jobs="${TEST_JOBS:-$jobs}"
summary='^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$'

TMPDIR="$(mktemp -d "${TMPDIR:-/tmp}/collmark.XXXXXX")" || exit 3
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT TERM

# Open MPI: more ranks than cores, started by root in containers, and no binding, because
# threads of a rank share its mask.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
# MPI libraries keep memory to the end and are not built for the sanitizers.
export LSAN_OPTIONS="suppressions=$PWD/scripts/lsan.supp:print_suppressions=0"
export TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp:second_deadlock_stack=1"
# Their modules are unloaded before the leak check: only full stacks reach a name in lsan.supp.
export ASAN_OPTIONS="fast_unwind_on_malloc=0"
export UBSAN_OPTIONS="print_stacktrace=1"

# start PROGRAM: in the background; what it prints, its exit code and seconds go to files
start() {
    local name log
    name="$(basename "$1" .sh)"
    log="$TMPDIR/$name"
    (
        begun=$SECONDS
        timeout -k 5 "$limit" "$1" >"$log.log" 2>&1 </dev/null
        echo "$? $((SECONDS - begun))" >"$log.end"
    ) &
    running[$!]="$name"
}

# show NAME: the line of a program that has ended, and what it printed if that matters
show() {
    local name="$1" log="$TMPDIR/$1.log" code took p=0 f=0 s=0 word=ok
    read -r code took <"$TMPDIR/$1.end"

    # A program that died before its summary counts as one case.
    if [[ "$(grep -E "$summary" "$log" | tail -n 1)" =~ $summary ]]; then
        p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[3]}
    else
        case $code in
        0) p=1 ;;
        77) s=1 ;;
        esac
    fi
    # The exit code has the last word: a sanitizer's finding shows only there.
    if [[ $code != 0 && $code != 77 && $f == 0 ]]; then
        f=1
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))

    if [[ $f != 0 ]]; then
        word=FAIL
        bad+=("$name")
        sed 's/^/    | /' "$log"
        [[ $code == 124 || $code == 137 ]] && echo "    | ended after $limit s"
    elif [[ $p == 0 ]]; then
        word=skip
    fi
    printf '  %-4s %-28s %4d passed, %d failed, %d skipped  %3d s  exit %d\n' \
        "$word" "$name" "$p" "$f" "$s" "$took" "$code"
    if [[ $f == 0 && $s != 0 ]]; then
        grep -i '^skip' "$log" | sed 's/^/         /' | head -n 20
    fi
}

# Wait until one of those that run has ended, and show it.
reap() {
    local pid=
    wait -n -p pid "${!running[@]}"
    show "${running[$pid]}"
    unset "running[$pid]"
}

passed=0 failed=0 skipped=0
bad=()
declare -A running=()
for program in "$@"; do
    [[ ${#running[@]} -lt $jobs ]] || reap
    start "$program"
done
while [[ ${#running[@]} != 0 ]]; do
    reap
done

if [[ ${#bad[@]} != 0 ]]; then
    echo "failed: ${bad[*]}"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
