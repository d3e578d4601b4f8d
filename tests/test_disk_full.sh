#!/usr/bin/env bash
# A disk that becomes full while rows are measured: the rows stay in the table, one line names
# option and path, the exit code is 3.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# Files may have 1 KiB, which is as good as a full disk; stdout is a pipe and has no limit.
run_small() { # run_small OPTION...
    run 10 bash -c "(ulimit -f 1; exec $(program all_reduce) -g 2 \"\$@\") | cat
        exit \${PIPESTATUS[0]}" run "$@"
}

rows() { # rows of the table
    awk '!/^#/ && NF' "$OUT" | wc -l
}

begin "--csv: what it took is whole, and the run ends at the row it did not take"
run_small -b 8 -e 8K -f 2 --csv "$WORK/r.csv"
want_exit 3
want_lines "$ERR" 1
want_match "$ERR" "--csv '$WORK/r.csv': File too large"
want_match "$OUT" '^# Truncated .*the report could not be written'
if [[ $(rows) -lt 2 || $(rows) -gt 6 ]]; then
    bad "$(rows) rows in the table of a run of 11"
fi
want_match "$WORK/r.csv" '^cycle,group,'

begin "-J: the whole table, no scrap of the document"
run_small -b 8 -e 64 -f 2 -J "$WORK/r.json"
want_exit 3
want_lines "$ERR" 1
want_match "$ERR" "-J/--output_file '$WORK/r.json': File too large"
want_equal "$(rows)" 4 "rows"
want_equal "$(find "$WORK" -name 'r.json*')" "" "files of the document"

begin "-J: an older document stays"
echo '{"old": 1}' >"$WORK/r.json"
run_small -b 8 -e 64 -f 2 -J "$WORK/r.json"
want_exit 3
want_equal "$(cat "$WORK/r.json")" '{"old": 1}' "the older document"

begin "--log: the whole table and the whole document of others"
run_small -b 8 -e 64 -f 2 --debug trace --log "$WORK/r.log"
want_exit 3
want_lines "$ERR" 1
want_match "$ERR" "--log '$WORK/r.log': File too large; the messages from here on are lost"
want_table rows=4
want_match "$WORK/r.log" 'collmark version'

finish
