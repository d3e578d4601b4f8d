#!/usr/bin/env bash
# All eleven drivers as threads: any number of ranks, every type and operation, odd sizes and the
# options that change what a row is. Every table passes the strict parser with #wrong 0.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# Sizes that no number of ranks divides. The long form is 13 sizes with the default iterations.
sizes=(-b 1 -e 4K -i 2021 -n 1)
nsizes=3
if [[ -n "$SLOW" ]]; then
    sizes=(-b 1 -e 4K -i 333)
    nsizes=13
fi
ntypes=12
nops=6

has_ops() { # whether -o all gives a row per operation
    case $1 in
    all_reduce | reduce_scatter | reduce | sendrecv) return 0 ;;
    esac
    return 1
}

has_root() {
    case $1 in
    broadcast | reduce | gather | scatter) return 0 ;;
    esac
    return 1
}

has_in_place() {
    case $1 in
    alltoall | alltoallv | sendrecv) return 1 ;;
    esac
    return 0
}

for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver: all types and operations on 1, 2, 3, 5, 8 ranks"
    rows=$((nsizes * ntypes))
    has_ops "$driver" && rows=$((rows * nops))
    for ranks in 1 2 3 5 8; do
        # One rank communicates nothing, so its average is none.
        average=yes
        [[ $ranks == 1 ]] && average=any
        run 60 "$(program "$driver")" -g "$ranks" "${sizes[@]}" -d all -o all
        want_right "rows=$rows" "bw=$average"
    done
done

# options | what the parser must expect beyond the default
variants=(
    '-t 2 -g 2|rows=4'
    '-t 3 -g 1 -u 1|rows=4'
    '-g 3 -u 3 -d int8|rows=4'
    '-g 3 -z 1|rows=4'
    '-g 3 -z 2|rows=4'
    '-g 3 -z 3|rows=4'
    '-g 3 -m 3|rows=4'
    '-g 3 -N 2|rows=8'
    '-g 3 -c 0|rows=4'
    '-g 3 -c 3|rows=4'
    '-g 3 -I 1|rows=4 more=8'
    '-g 3 -I 1 -S 1 -K 1|rows=4 more=9'
    '-g 3 -C 1|rows=4'
    '-g 3 -S 1|rows=4 more=1'
    '-g 3 -M 1|rows=4'
    '-g 3 -p 1|rows=4'
    '-g 3 -a 0|rows=4'
    '-g 3 -a 1|rows=4'
    '-g 3 -a 2|rows=4'
    '-g 3 -w 0 -n 1|rows=4'
    '-g 3 --placement out|rows=4'
    '-g 3 --check-every 2|rows=4'
    '-g 3 --seed 99 -d half -o all|rows=+'
    '-g 3 -T 30 --max-time 60|rows=4'
    '-g 3 --channels 3 --chunk 256|rows=4'
    '-g 3 --buffsize 8K --mode copy|rows=4'
    '-g 3 --wire loop|rows=4'
    '-g 3 --node-map 0,0,7|rows=4'
)
# In the short form all_reduce has every variant, each other driver every third one in turn.
turn=0
for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver: options"
    turn=$((turn + 1))
    at=$turn
    for row in "${variants[@]}"; do
        at=$((at + 1))
        [[ -z "$SLOW" && $driver != all_reduce && $((at % 3)) != 0 ]] && continue
        IFS='|' read -r options expected <<<"$row"
        # shellcheck disable=SC2086
        run 30 "$(program "$driver")" -b 320 -e 3K -i 917 -n 3 $options
        # shellcheck disable=SC2086
        want_right $expected
    done
    run 30 "$(program "$driver")" -b 320 -e 3K -i 917 -n 3 -g 3 --placement in
    if has_in_place "$driver"; then
        want_right rows=4
    else
        want_right rows=4 measured=any bw=any
    fi
done

for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver: every root"
    ranks=5
    run 30 "$(program "$driver")" -g $ranks -b 999 -e 999 -d double -r all -n 2
    if has_root "$driver"; then
        want_right rows=$ranks
        want_equal "$(awk '!/^#/ && NF { printf "%s ", $5 - 0 == $5 ? $5 : $4 }' "$OUT")" \
            "0 1 2 3 4 " "roots"
    else
        want_right rows=1
    fi
done

for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver: sizes that divide by nothing"
    for bytes in 9999 65537 1000003; do
        for ranks in 3 7; do
            run 30 "$(program "$driver")" -g $ranks -b $bytes -e $bytes -d uint8 -n 1
            want_right rows=1 na=any
        done
    done
done

begin "one rank says that nothing is communicated, and busbw is 0"
for driver in "${ALL_DRIVERS[@]}"; do
    run 10 "$(program "$driver")" -b 1K -e 1K -n 2
    want_right rows=1 bw=any
    want_match "$OUT" '^# .*nothing is communicated'
done

begin "nothing to do: sizes of 0 bytes"
for driver in "${ALL_DRIVERS[@]}"; do
    run 10 "$(program "$driver")" -g 3 -b 0 -e 0
    want_right rows=1 measured=any bw=any
    want_match "$OUT" 'rounds to 0 bytes'
done

begin "memory report and one write per row"
run 10 "$(program all_reduce)" -g 2 -b 8 -e 1K -f 2 -M 1
want_right rows=8
want_match "$OUT" '^# Host memory usage'
if command -v strace >/dev/null && [[ -z "${SAN:-}" ]]; then
    run 20 strace -f -qq -e trace=write -e write=none -s 200 -o "$WORK/trace" \
        "$(program all_reduce)" -g 2 -b 8 -e 1K -f 2
    want_equal "$(grep -cE 'write\(1, " +[0-9]+ +[0-9]+ +float .*\\n"' "$WORK/trace")" 8 \
        "rows written whole"
fi

begin "16 ranks, a full sweep"
run 60 "$(program all_reduce)" -g 16 -b 8 -e 1M -f 2
want_right rows=18 na=no
want_within 60000

begin "8 bytes on 8 ranks: the median is far from a time slice"
run 20 "$(program all_reduce)" -g 8 -b 8 -e 8 -n 200 --csv - --placement out
want_exit 0
median="$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "iter_p50_us") at = i }
    NR == 2 { print int($at) }' "$OUT")"
echo "    median $median us"
if [[ -z "$median" || "$median" -gt $((50000 * STRETCH)) ]]; then
    bad "median of $median us"
fi

if [[ -n "$SLOW" ]]; then
    begin "large messages, as threads"
    run 300 "$(program all_reduce)" -b 8 -e 128M -f 2 -g 4
    want_right rows=25 na=no
    run 300 "$(program all_reduce)" -b 8 -e 64M -f 2 -t 2 -g 2
    want_right rows=24 na=no
    for ranks in 4 6 7 9 12 15; do
        for driver in "${ALL_DRIVERS[@]}"; do
            run 120 "$(program "$driver")" -g $ranks "${sizes[@]}" -d all -n 2
            want_right
        done
    done
fi

finish
