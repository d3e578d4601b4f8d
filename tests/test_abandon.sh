#!/usr/bin/env bash
# A run that does not reach its end leaves its report: valid JSON that says why and how much, the
# footer of the table, and no temporary file; whatever ends it, as far as a process can see it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

JSON="$WORK/report.json"

AR="$(program all_reduce)"
SIZES=(-b 8 -e 1K -f 2)

# want_report EXIT TRUNCATED ROWS: the document; ROWS is the least number of rows.
want_report() {
    local said
    said="$("$PYTHON" - "$JSON" "$@" 2>&1 <<'EOF'
import json
import sys

path, code, truncated, rows = sys.argv[1:]
d = json.load(open(path))
try:
    import jsonschema
    jsonschema.validate(d, json.load(open("scripts/result.schema.json")))
except ImportError:
    pass
s = d["summary"]
assert s["exit_code"] == int(code), f"exit_code {s['exit_code']}, wanted {code}"
assert s["truncated"] == (truncated == "true"), f"truncated {s['truncated']}"
assert s["rows"] == len(d["results"]) >= int(rows), f"{s['rows']} rows, wanted {rows}"
assert s["okay"] is (int(code) == 0)
EOF
    )" || bad "report: $(tail -n 1 <<<"$said")"
    want_equal "$(find "$WORK" -name 'report.json.*')" "" "temporary files"
    rm -f "$JSON"
}

want_footer() {
    want_match "$OUT" '^# Truncated '
    want_match "$OUT" '^# Collective test concluded'
}

nap() {
    read -rt 0.05 <> <(:)
}

# start CMD...: in the background, until its table has five rows; $PID
start() {
    local try
    COMMAND="$*"
    START="$(now_ms)"
    : >"$OUT"
    "$@" >"$OUT" 2>"$ERR" </dev/null &
    PID=$!
    for ((try = 0; try < 600; try++)); do
        [[ "$(grep -c '^ ' "$OUT")" -ge 5 ]] && return
        nap
    done
    bad "no rows"
}

# Wait for what start started.
collect() {
    local try
    for ((try = 0; try < 400 * STRETCH; try++)); do
        [[ -d "/proc/$PID" ]] || break
        nap
    done
    kill -KILL "$PID" 2>/dev/null && bad "it had to be killed"
    { wait "$PID"; } 2>/dev/null
    RC=$?
    MS=$(($(now_ms) - START))
}

rank_pid() { # rank_pid RANK: process id, from the header
    sed -n "s/^#  Rank  $1 Group .* Pid *\([0-9]*\) .*/\1/p" "$OUT"
}

begin "rank 0 stalls, another waits for it"
run 10 "$AR" -g 2 "${SIZES[@]}" --inject stall:rank=0,iter=3 -T 0.5 -J "$JSON"
want_exit 4
want_footer
want_report 4 true 0

begin "rank 0 stalls before it starts: there is no report, and nothing else"
run 10 "$AR" -g 2 -b 8 -e 8 --inject stall:rank=0,phase=init -T 0.5 -J "$JSON"
want_exit 4
want_silent "$OUT"
want_equal "$(find "$WORK" -name 'report.json*')" "" "report"

begin "a rank that cannot hear: the watchdog ends the report"
run 20 "$AR" -g 2 -b 8 -e 8 --inject delay:rank=0,iter=3,us=30000000 -T 0.5 -J "$JSON"
want_exit 4
want_within 8000
want_footer
want_report 4 true 0

long=200000
[[ "${SAN:-}" == *thread* ]] && long=2000 # as long, at that speed
for signal in INT TERM; do
    begin "SIG$signal within a long row"
    start "$AR" -g 2 "${SIZES[@]}" -n "$long" -N 0 -c 0 --csv "$WORK/csv" -J "$JSON"
    kill -"$signal" "$PID"
    collect
    want_exit 6
    want_footer
    want_report 6 true 5
    want_equal "$(awk -F, '{ print NF }' "$WORK/csv" | sort -u | wc -l)" 1 "widths of the CSV"
done

begin "a second signal kills, and the report is there"
start "$AR" -g 2 "${SIZES[@]}" -N 0 -J "$JSON" --inject delay:rank=1,iter=19,us=300000
kill -INT "$PID"
read -rt 0.4 <> <(:)
kill -INT "$PID"
collect
want_exit 6 130
want_footer
want_report 6 true 5

begin "the reader of stdout pauses: the JSON does not wait for it"
mkfifo "$WORK/fifo"
exec 9<>"$WORK/fifo"
COMMAND="a run into a full pipe"
START="$(now_ms)"
"$AR" -g 2 -b 8 -e 8 -N 0 -n 1 -w 0 -c 0 -J "$JSON" >"$WORK/fifo" 2>"$ERR" </dev/null &
PID=$!
WRITTEN=-1
for ((try = 0; try < 200; try++)); do # until it writes no more
    BEFORE=$WRITTEN
    nap
    WRITTEN="$(sed -n 's/^wchar: //p' "/proc/$PID/io")"
    [[ $WRITTEN -gt 60000 && $WRITTEN == "$BEFORE" ]] && break
done
kill -TERM "$PID"
collect
exec 9<&-
want_exit 6
want_report 6 true 100

begin "rank 0 is killed: no trace of the JSON"
run 10 "$AR" -g 2 -b 8 -e 8 --inject crash:rank=0,iter=3 -J "$JSON"
want_failure
want_equal "$(find "$WORK" -name 'report.json*')" "" "report"

if ! has_mpi; then
    begin "processes"
    skip "no MPI"
    finish
fi

# Open MPI grants one second between SIGTERM and SIGKILL; a busy machine needs more.
export OMPI_MCA_odls_base_sigkill_timeout=3

mpich="$(ldd "$AR" | grep libmpich)"
begin "mpirun: another rank is killed"
if [[ -n "$mpich" ]]; then
    skip "MPICH kills all processes as soon as one of them ends"
else
    run 20 "$MPIRUN" -np 2 "$AR" "${SIZES[@]}" --inject crash:rank=1,iter=3 -T 2 -J "$JSON"
    want_failure
    want_footer
    want_report 3 true 0
fi

begin "mpirun: rank 0 stalls"
run 20 "$MPIRUN" -np 2 "$AR" "${SIZES[@]}" --inject stall:rank=0,iter=3 -T 1 -J "$JSON"
want_exit 4
want_footer
want_report 4 true 0

begin "mpirun: rank 0 is killed: no trace of the JSON"
run 20 "$MPIRUN" -np 2 "$AR" -b 8 -e 8 --inject crash:rank=0,iter=3 -T 2 -J "$JSON"
want_failure
want_equal "$(find "$WORK" -name 'report.json*')" "" "report"

for rank in 0 1; do
    begin "mpirun: the process of rank $rank is stopped"
    if [[ -n "$mpich" && $rank == 0 ]]; then
        skip "MPICH kills the process of the report at MPI_Abort of another"
        continue
    fi
    start "$MPIRUN" -np 2 "$AR" "${SIZES[@]}" -N 0 -T 1 -J "$JSON"
    kill -STOP "$(rank_pid $rank)"
    collect
    want_exit 4
    want_footer
    want_report 4 true 5
done

for signal in INT TERM; do
    begin "mpirun gets SIG$signal within a long row"
    start "$MPIRUN" -np 2 "$AR" "${SIZES[@]}" -n 100000 -N 0 -c 0 -J "$JSON"
    kill -"$signal" "$PID"
    collect
    # MPICH's mpirun itself returns 0 after SIGINT, whatever its processes do.
    [[ -z "$mpich" ]] && want_failure
    want_footer
    want_report 6 true 5
done

begin "one process gets SIGTERM: all end with 6"
start "$MPIRUN" -np 3 "$AR" "${SIZES[@]}" -N 0 -J "$JSON"
kill -TERM "$(rank_pid 1)"
collect
want_exit 6
want_footer
want_report 6 true 5

begin "nothing is left behind"
want_nothing_left

finish
