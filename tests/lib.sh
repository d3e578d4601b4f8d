#!/usr/bin/env bash
# Helpers of the end-to-end tests: run a command with a deadline, state what must hold, count.
#
#   begin NAME          starts a case; the case passes if every want_* until the next one holds
#   run SECONDS CMD...  runs CMD; its output is in $OUT and $ERR, its exit code in $RC (124: it
#                       had to be killed), its duration in $MS
#   want_*              one statement about the last run
#   finish              the summary line and the exit code
#
# Every process started here carries COLLMARK_TEST_MARK in its environment, so that those left
# behind can be told from a neighbour's.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 3

BUILDDIR="${BUILDDIR:-build}"
SUFFIX="_perf${NAME_SUFFIX:-}"
# shellcheck disable=SC2034 # used by the tests
ALL_DRIVERS=(all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter
    sendrecv hypercube)
# shellcheck disable=SC2034
SLOW="${COLLMARK_SLOW:-}"
# A sanitizer makes everything slower, deadlines included.
STRETCH=1
[[ -n "${SAN:-}" ]] && STRETCH=5

# Inherited settings must not steer the programs under test.
for VAR in $(compgen -e); do
    case $VAR in
    NCCL_* | COLLMARK_*) unset "$VAR" ;;
    esac
done

# Tests mean the host backend unless they say otherwise, also on a machine with GPUs.
export CUDA_VISIBLE_DEVICES=

WORK="$(mktemp -d "${TMPDIR:-/tmp}/e2e.XXXXXX")" || exit 3
export COLLMARK_TEST_MARK="$WORK"
OUT="$WORK/out"
ERR="$WORK/err"
# The system's own interpreter starts faster than a version manager's.
PYTHON="$(PATH="/usr/bin:$PATH" command -v python3)" || PYTHON=false
RC=0
MS=0
PID=0
COMMAND=
CASE=
CASE_BAD=0
PASSED=0
FAILED=0
SKIPPED=0

# Drivers and launchers of this test that still run. A zombie has no environment any more.
leftovers() {
    local dir
    while read -r dir; do
        dir="${dir%/environ}"
        case "$(readlink "$dir/exe")" in
        *_perf* | *mpirun* | *mpiexec* | *orterun* | *prterun* | *orted* | *hydra*)
            echo "${dir#/proc/}"
            ;;
        esac
    done < <(grep -lszF "COLLMARK_TEST_MARK=$WORK" /proc/[0-9]*/environ)
}

clean_up() {
    local pid
    for pid in $(leftovers); do
        kill -KILL "$pid"
    done
    rm -rf "$WORK"
}
trap clean_up EXIT
# Nothing ever arrives here, so a read with a time-out is a pause that starts no process.
mkfifo "$WORK/never"
exec {NEVER}<>"$WORK/never"
trap 'exit 130' INT TERM

program() { # program NAME: the driver's path
    echo "$BUILDDIR/$1$SUFFIX"
}

now_ms() {
    local t="$EPOCHREALTIME"
    echo $((${t/./} / 1000))
}

run() {
    local limit=$(($1 * STRETCH)) start
    shift
    COMMAND="$*"
    start="$(now_ms)"
    # The shell's own "Killed" goes nowhere.
    { timeout -k 2 "$limit" "$@" >"$OUT" 2>"$ERR" </dev/null; } 2>/dev/null
    RC=$?
    MS=$(($(now_ms) - start))
}

# start CMD...: in the background, with SIGINT as a terminal would have it (a shell's & ignores it).
start() {
    COMMAND="$* &"
    : >"$OUT"
    : >"$ERR"
    "$PYTHON" -S -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$(realpath "$1")" "${@:2}" >"$OUT" 2>"$ERR" </dev/null &
    PID=$!
}

pause() { # a twentieth of a second
    read -rt 0.05 -u "$NEVER"
}

await_text() { # await_text REGEX FILE
    local try
    for ((try = 0; try < 400 * STRETCH; try++)); do
        grep -qE -e "$1" "$2" && return
        pause
    done
    bad "$(basename "$2") never matched /$1/"
}

# hit SIGNAL PID: signal it, then wait for the end of what start() started; RC as after run.
hit() {
    local try began
    COMMAND+=" kill -$1"
    began="$(now_ms)"
    kill "-$1" "$2"
    RC=124
    for ((try = 0; try < 200 * STRETCH && RC == 124; try++)); do
        if ! kill -0 "$PID" 2>/dev/null; then
            { wait "$PID"; } 2>/dev/null
            RC=$?
        else
            pause
        fi
    done
    MS=$(($(now_ms) - began))
    if [[ $RC == 124 ]]; then
        kill -KILL "$PID"
        { wait "$PID"; } 2>/dev/null
    fi
}

end_case() {
    [[ -z "$CASE" ]] && return
    if [[ $CASE_BAD == 0 ]]; then
        PASSED=$((PASSED + 1))
        echo "ok     $CASE"
    else
        FAILED=$((FAILED + 1))
        echo "not ok $CASE"
    fi
    CASE=
}

begin() {
    end_case
    CASE="$1"
    CASE_BAD=0
    COMMAND=
}

skip() { # skip REASON: the case did not run
    echo "skip $CASE: $1"
    SKIPPED=$((SKIPPED + 1))
    CASE=
}

skip_all() { # skip_all REASON
    echo "skip: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}

finish() {
    end_case
    echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
    [[ $FAILED == 0 ]]
    exit
}

# bad WHAT: the case fails; the first one shows the command and its output.
bad() {
    echo "    $CASE: $1"
    if [[ $CASE_BAD == 0 && -n "$COMMAND" ]]; then
        echo "      command: $COMMAND"
        echo "      exit $RC after $MS ms; stdout $(wc -l <"$OUT") lines, stderr:"
        head -n 8 "$ERR" | sed 's/^/      | /'
    fi
    CASE_BAD=1
}

want_exit() { # want_exit CODE...: one of them
    local code
    for code in "$@"; do
        [[ $RC == "$code" ]] && return
    done
    bad "exit code $RC, wanted $*"
}

want_failure() { # not 0, and it ended by itself
    if [[ $RC == 0 || $RC == 124 ]]; then
        bad "exit code $RC, wanted a failure"
    fi
}

want_within() { # want_within MILLISECONDS
    if [[ $MS -gt $(($1 * STRETCH)) ]]; then
        bad "took $MS ms, wanted at most $1"
    fi
}

want_silent() { # want_silent FILE: it is empty
    if [[ -s "$1" ]]; then
        bad "wanted nothing on $(basename "$1"), got: $(head -n 2 "$1")"
    fi
}

want_lines() { # want_lines FILE N
    local n
    n="$(wc -l <"$1")"
    if [[ $n != "$2" ]]; then
        bad "$(basename "$1") has $n lines, wanted $2"
    fi
}

want_match() { # want_match FILE REGEX
    if ! grep -qE -e "$2" "$1"; then
        bad "$(basename "$1") does not match /$2/"
    fi
}

want_no_match() { # want_no_match FILE REGEX
    if grep -qE -e "$2" "$1"; then
        bad "$(basename "$1") matches /$2/: $(grep -m 1 -E -e "$2" "$1")"
    fi
}

want_equal() { # want_equal GOT WANTED WHAT
    if [[ "$1" != "$2" ]]; then
        bad "$3: got '$1', wanted '$2'"
    fi
}

want_refused() { # want_refused CODE REGEX: one line, nothing else, at once
    want_exit "$1"
    want_silent "$OUT"
    want_lines "$ERR" 1
    want_match "$ERR" "$2"
    want_within 1000
}

# want_table [EXPECTATION...]: the strict parser accepts the table; see tests/table.py
want_table() {
    local said
    said="$("$PYTHON" tests/table.py "$@" "$OUT" 2>&1)" || bad "table: $said"
}

want_right() { # want_right [EXPECTATION...]: exit 0, silent stderr, all rows right
    want_exit 0
    want_silent "$ERR"
    want_table "$@"
}

# want_json FILE [KEY=VALUE...]: by the schema, with these values in its summary
want_json() {
    local said
    said="$("$PYTHON" tests/test_json.py "$@" 2>&1)" || bad "JSON: $said"
}

# New names in /dev/shm that nobody maps. (The local sockets of processes have abstract names,
# which the kernel removes with their last holder: to look for processes is enough.)
shm_names() {
    local name
    for name in /dev/shm/*; do
        if [[ -e "$name" && "$name" -nt "$WORK/birth" ]] &&
            ! grep -qsF "$name" /proc/[0-9]*/maps; then
            echo "$name"
        fi
    done
}
touch "$WORK/birth"

# A neighbour may run the same programs: what vanishes by itself is not ours to blame.
want_nothing_left() {
    local try what=
    for ((try = 0; try < 80; try++)); do
        what="$(leftovers)$(shm_names)"
        [[ -z "$what" ]] && return
        pause
    done
    bad "left behind: $(leftovers | tr '\n' ' ') $(shm_names)"
}

# ---- MPI -------------------------------------------------------------------------------------

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none

# Whether the drivers know MPI; their header says which library it is.
has_mpi() {
    [[ -n "${MPIRUN:-}" ]] && ldd "$(program all_reduce)" | grep -q 'libmpi\|libmpich'
}
