#!/usr/bin/env bash
# Faults of every kind, as threads: the exit code, the message that names the culprit, the time it
# takes, and that nothing is left behind. tests/test_mpi.sh has the same for processes.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# ---- wrong data ------------------------------------------------------------------------------

value='[^ ]+ \(0x[0-9a-f]+\)'
located="element [0-9]+ \\(byte [0-9]+\\): expected $value, got $value"
for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver: a corrupted rank is found and located"
    run 20 "$(program "$driver")" -g 3 -b 1K -e 4K -f 2 --inject corrupt:rank=1
    want_exit 1
    want_table rows=3 wrong=+
    want_match "$ERR" "^rank 1 host .*: $driver float .*$located"
    want_no_match "$ERR" '^rank [02] '
done

begin "corrupt data of every type is found"
run 20 "$(program all_reduce)" -g 2 -b 64 -e 64 -d all -o all --placement out \
    --inject corrupt:rank=0
want_exit 1
want_table rows=72 wrong=+
want_equal "$(awk '!/^#/ && NF && $9 == 0' "$OUT" | wc -l)" 0 "rows where the fault was missed"

begin "only --check-every sees an iteration in the middle"
run 20 "$(program all_reduce)" -g 4 -b 1K -e 1K --inject corrupt:rank=1,iter=17
want_right rows=1
run 20 "$(program all_reduce)" -g 4 -b 1K -e 1K --inject corrupt:rank=1,iter=17 --check-every 1
want_exit 1
want_match "$ERR" "^rank 1 .*timed iteration 17: .*$located"
want_table rows=1 wrong=+

begin "wrong data is an exit code of CSV and JSON runs too"
run 20 "$(program all_reduce)" -g 2 -b 1K -e 1K --inject corrupt:rank=1 --csv -
want_exit 1
run 20 "$(program all_reduce)" -g 2 -b 1K -e 1K --inject corrupt:rank=1 -J -
want_exit 1

# ---- ranks that come late, or not at all -----------------------------------------------------

for phase in init warmup timed check finalize; do
    begin "stall in phase $phase: exit 4, and the report names the rank"
    run 20 "$(program all_reduce)" -g 4 -b 1K -e 1K -T 1 --inject "stall:rank=2,phase=$phase"
    want_exit 4
    want_within 3000
    want_match "$ERR" "did not arrive: rank 2 host .*phase $phase"
    want_match "$ERR" '3 of 4 ranks wait'
done

begin "stall in an iteration: collective, size, phase and iteration are named"
run 20 "$(program all_reduce)" -g 4 -b 1K -e 1K -T 1 --inject stall:rank=2,iter=5 \
    -J "$WORK/stall.json"
want_exit 4
want_within 3000
want_match "$ERR" 'did not arrive: rank 2 host .*all_reduce of 1024 bytes, phase timed, iteration 5'
want_json "$WORK/stall.json" exit_code=4 truncated=true

begin "16 ranks: one straggler line, and the waiting ones are counted"
run 20 "$(program all_reduce)" -g 16 -b 1K -e 1K -T 1 --inject stall:rank=7,iter=5
want_exit 4
want_equal "$(grep -c 'did not arrive' "$ERR")" 1 "straggler lines"
want_match "$ERR" '15 of 16 ranks wait'

begin "every driver ends when a rank stalls"
for driver in "${ALL_DRIVERS[@]}"; do
    run 20 "$(program "$driver")" -g 3 -b 64K -e 64K -T 0.5 --inject stall:rank=1,iter=3
    want_exit 4
    want_within 3000
    want_match "$ERR" 'did not arrive: rank 1 '
done

begin "a delay shows in the time of the row, whoever is late"
run 20 "$(program all_reduce)" -g 3 -b 1K -e 1K -n 10 --inject delay:rank=2,us=20000
want_right rows=1
late="$(awk '!/^#/ && NF { print ($6 >= 20000 && $6 < 100000) }' "$OUT")"
want_equal "$late" 1 "time between 20 and 100 ms"

begin "a crash ends the program at once"
for phase in init warmup timed finalize; do
    run 20 "$(program all_reduce)" -g 3 -b 1K -e 1K --inject "crash:rank=1,phase=$phase"
    want_exit 137
    want_within 2000
done
want_nothing_left

# ---- signals and time budgets ----------------------------------------------------------------

for signal in INT TERM; do
    begin "SIG$signal: exit 6, and report and JSON are whole"
    start "$(program all_reduce)" -N 0 -g 2 -b 1K -e 1K -J "$WORK/$signal.json"
    await_text '^ +1024 ' "$OUT"
    hit $signal "$PID"
    want_exit 6
    want_within 2000
    want_table
    want_json "$WORK/$signal.json" exit_code=6 truncated=true
done

# timeout(1) signals the program and then the group, so the program is signalled twice.
begin "under timeout(1): exit 6, and the JSON is whole"
for try in 1 2 3 4; do
    file="$WORK/timeout$try.json"
    run 10 timeout --preserve-status -s TERM 0.5 "$(program all_reduce)" -N 0 -g 2 -b 1K -e 1K \
        -J "$file"
    want_exit 6
    want_json "$file" exit_code=6 truncated=true
done

begin "SIGTERM while a row lasts: the program does not wait for hours"
start "$(program all_reduce)" -g 2 -b 64K -e 64K -n 2000000000
await_text 'busbw' "$OUT"
hit TERM "$PID"
want_failure
want_within 8000

begin "SIGTERM while a rank is stuck: the program does not wait for the deadline"
start "$(program all_reduce)" -g 2 -b 1K -e 1K -T 100 --inject stall:rank=1,iter=3
await_text 'busbw' "$OUT"
hit TERM "$PID"
want_failure
want_within 8000

begin "--max-time: exit 6, and report and JSON are whole"
run 20 "$(program all_reduce)" -g 2 -b 1K -e 1K -N 0 --max-time 0.5 -J "$WORK/max.json"
want_exit 6
want_within 2500
want_table
want_json "$WORK/max.json" exit_code=6 truncated=true

# ---- files -----------------------------------------------------------------------------------

begin "a report that cannot be written is refused before the run"
for option in -J --csv; do
    for path in /nonexistent/x "$WORK" /proc/x; do
        run 10 "$(program all_reduce)" -g 2 -b 8 -e 8 $option "$path"
        want_exit 3
        want_silent "$OUT"
        want_lines "$ERR" 1
        want_match "$ERR" "$option.* '$path'"
    done
done

begin "a full disk is an error, whoever writes"
for option in -J --csv; do
    run 10 "$(program all_reduce)" -g 2 -b 8 -e 8 $option /dev/full
    want_exit 3
    want_match "$ERR" "$option.* '/dev/full': No space left"
done
run 10 sh -c "$(program all_reduce) -g 2 -b 8 -e 8 >/dev/full"
want_exit 3
want_match "$ERR" 'stdout: No space left'
run 10 sh -c "$(program all_reduce) -g 2 -b 8 -e 8 >&-"
want_exit 3
want_lines "$ERR" 1

begin "an older report stays whole when a run dies, and no scrap stays beside it"
mkdir "$WORK/reports"
echo '{"old": 1}' >"$WORK/reports/r.json"
run 10 "$(program all_reduce)" -g 2 -b 1K -e 1K -J "$WORK/reports/r.json" --inject crash:rank=1
want_failure
want_equal "$(cat "$WORK/reports/r.json")" '{"old": 1}' "the older report"
want_equal "$(ls "$WORK/reports")" r.json "files in the folder"

# ---- refused by the system -------------------------------------------------------------------

if [[ -z "${SAN:-}" ]]; then
    begin "memory refused: exit 3, one line, nothing on stdout"
    for limit in 200000 500000; do
        run 10 bash -c "ulimit -v $limit; exec $(program all_reduce) -g 4 -b 256M -e 256M"
        want_exit 3
        want_silent "$OUT"
        want_lines "$ERR" 1
        want_match "$ERR" 'needed|need '
    done

    begin "too few descriptors: exit 3, one line"
    run 10 bash -c "ulimit -n 4; exec $(program all_reduce) -g 2 -b 8 -e 8"
    want_exit 3
    want_silent "$OUT"
    want_lines "$ERR" 1
fi

begin "more ranks than the memory holds: refused"
run 20 "$(program all_reduce)" -t 4096 -g 4096 -b 1M -e 1M
want_failure
want_silent "$OUT"
want_lines "$ERR" 1

begin "nothing is left behind"
want_nothing_left

finish
