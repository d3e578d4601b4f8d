#!/usr/bin/env bash
# --cache and the probe of cores in real runs: what goes together, right data from every driver
# and every form of it, and what reports say.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

begin "what does not go together is refused in one line"
for row in '2|cache.*hot, touched, cold|--cache warm' \
    '2|cache .touched. with -m|--cache touched -m 4' \
    '2|report_cputime .1. cannot be told|--cache cold -C 1' \
    '2|--cache and --find-bad exclude|--cache cold --find-bad -b 1M -e 1M'; do
    IFS='|' read -r code name options <<<"$row"
    # shellcheck disable=SC2086
    run 5 "$(program all_reduce)" $options
    want_refused "$code" "$name"
done

for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver: right with each mode"
    for mode in touched cold; do
        run 30 "$(program "$driver")" -g 3 -b 8 -e 16K -f 32 -n 4 -d int32 --cache "$mode"
        want_exit 0
        want_silent "$ERR"
        want_match "$OUT" "^# Cache: $mode: before each operation, untimed, "
        want_match "$OUT" '^# Out of bounds values : 0 OK'
    done
done

begin "with checks in between, single iterations, barriers, groups, processes and unaligned buffers"
for options in '--check-every 1' '-I 1 -K 1' '-z 1' '-z 2' '-z 3' '--split mod:2' '-u 3' '-c 0' \
    '--placement in' '--mode copy' '--wire shm'; do
    # shellcheck disable=SC2086
    run 30 "$(program all_reduce)" -g 2 -b 8 -e 16K -f 16 -n 4 --cache touched $options
    want_exit 0
    want_silent "$ERR"
done

begin "in place every touched operation has its own input, so the timed loop is checked too"
run 30 "$(program all_reduce)" -g 2 -b 1K -e 1K -n 5 --placement in --cache touched \
    --inject corrupt:rank=1,phase=timed,iter=4
want_exit 1

begin "hot is silent, and the default"
run 30 "$(program all_reduce)" -g 2 -b 8 -e 8 --cache hot
want_right rows=1
want_no_match "$OUT" '^# (Cache|Start):'

begin "reports name mode and distance"
run 30 "$(program all_reduce)" -g 2 -b 8 -e 8 --cache cold -J "$WORK/r.json" --csv "$WORK/r.csv"
want_exit 0
want_match "$OUT" '^# Placement: ((near|far): two ranks exchange flags in [0-9]+ ns|not measured: )'
want_json "$WORK/r.json"
want_match "$WORK/r.json" '"cache":[[:space:]]"cold"'
want_match "$WORK/r.json" '"placement":[[:space:]][{]'
want_match "$WORK/r.csv" ',cache,'
want_match "$WORK/r.csv" ',cold,'

begin "one rank has no distance"
run 30 "$(program all_reduce)" -g 1 -b 8 -e 8 --cache touched -J "$WORK/one.json"
want_exit 0
want_no_match "$OUT" '^# Placement'
want_json "$WORK/one.json"
want_match "$WORK/one.json" 'there is one rank'

begin "more ranks than cores are not probed"
run 60 "$(program all_reduce)" -g $(($(nproc) * 2 + 1)) -b 8 -e 8 -n 2
want_exit 0
want_match "$OUT" '^# Placement: not measured: more ranks than cores$'

begin "a run that is ended early keeps what it knows"
run 30 "$(program all_reduce)" -g 2 -b 8 -e 1M -f 2 -N 0 --max-time 0.2 -J "$WORK/cut.json"
want_exit 6
want_json "$WORK/cut.json"

finish
