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
ALL_DRIVERS=(all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter
    sendrecv hypercube)
SLOW="${COLLMARK_SLOW:-}"
# A sanitizer makes everything slower, deadlines included.
STRETCH=1
[[ -n "${SAN:-}" ]] && STRETCH=5

# -Inherited settings must not steer the programs under test.
for VAR in $(compgen -e); do
    case $VAR in
    NCCL_* | COLLMARK_*) unset "$VAR" ;;
    esac
done

WORK="$(mktemp -d "${TMPDIR:-/tmp}/e2e.XXXXXX")" || exit 3
export COLLMARK_TEST_MARK="$WORK"
OUT="$WORK/out"
ERR="$WORK/err"
RC=0
MS=0
COMMAND=
CASE=
CASE_BAD=0
PASSED=0
FAILED=0
SKIPPED=0

# Processes of this test that still run, but for the test itself and its children's plumbing.
leftovers() {
    local dir pid
    for dir in /proc/[0-9]*; do
        pid="${dir#/proc/}"
        if grep -qzF "COLLMARK_TEST_MARK=$WORK" "$dir/environ" 2>/dev/null &&
            [[ "$(readlink "$dir/exe")" == *_perf* || "$(readlink "$dir/exe")" == *mpirun* ]]; then
            echo "$pid"
        fi
    done
}

clean_up() {
    local pid
    for pid in $(leftovers); do
        kill -KILL "$pid"
    done
    rm -rf "$WORK"
}
trap clean_up EXIT
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
    said="$(python3 tests/table.py "$@" "$OUT" 2>&1)" || bad "table: $said"
}

want_right() { # want_right [EXPECTATION...]: exit 0, silent stderr, all rows right
    want_exit 0
    want_silent "$ERR"
    want_table "$@"
}

# Names in /dev/shm that nobody maps, and our local sockets: both are left behind.
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

socket_names() {
    grep -o '@collmark-.*' /proc/net/unix
}

# A neighbour may run the same programs: what vanishes by itself is not ours to blame.
want_nothing_left() {
    local try what=
    for ((try = 0; try < 40; try++)); do
        what="$(leftovers)$(shm_names)$(socket_names)"
        [[ -z "$what" ]] && return
        read -rt 0.1 <> <(:)
    done
    bad "left behind: $(leftovers | tr '\n' ' ') $(shm_names) $(socket_names)"
}

# ---- MPI -------------------------------------------------------------------------------------

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none

# Whether the drivers know MPI; their header says which library it is.
has_mpi() {
    [[ -n "${MPIRUN:-}" ]] && ldd "$(program all_reduce)" | grep -q 'libmpi\|libmpich'
}

# What the program said, without what the launcher adds when a process fails.
strip_launcher() {
    grep -E '^(rank|process|  )|: want|^-' "$ERR" | grep -v '^---\|Process name\|Exit code' >"$WORK/said"
}
