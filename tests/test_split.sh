#!/usr/bin/env bash
# --split: groups that run at once, as threads and as processes; all are reported, each rank is
# in one, and the slowest is named.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# ranks | --split | members of the groups, in order
splits=(
    '4|mod:2|0,2 1,3'
    '4|MOD:2|0,2 1,3'
    '5|mod:2|0,2,4 1,3'
    '4|div:2|0,1 2,3'
    '7|div:3|0-2 3-5 6'
    '4|and:0x1|0,2 1,3'
    '4|or:0x1|0,1 2,3'
    '4|mask:0x1|0,2 1,3'
    '6|mod:3|0,3 1,4 2,5'
    '4|mod:4|0 1 2 3'
    '4|mod:1|0-3'
)

# The ranks of each group, as "0,2 1,3 ", from the lines "Rank r Group g".
members() {
    awk '/^#  Rank / { g = $5 + 0; of[g] = of[g] (of[g] == "" ? "" : ",") $3
             if (g > last) last = g }
         END { for (i = 0; i <= last; i++) printf "%s ", of[i] }' "$OUT"
}

expand() { # "0-2 3,4" -> "0,1,2 3,4 "
    local group item list
    for group in "$@"; do
        list=
        for item in ${group//,/ }; do
            list+="$(seq -s, "${item%-*}" "${item#*-}"),"
        done
        printf '%s ' "${list%,}"
    done
}

check_split() { # check_split MEMBERS COMMAND...
    local want groups
    read -ra groups <<<"$1"
    shift
    run 30 "$@"
    want_right "tables=${#groups[@]}" "rows=$((3 * ${#groups[@]}))" bw=any
    want="$(expand "${groups[@]}")"
    want_equal "$(members)" "$want" "groups"
    # Groups of one rank communicate nothing, so none of them is slow.
    if [[ ${#groups[@]} -gt 1 && "$want" == *,* ]]; then
        want_match "$OUT" '^# Slowest group +: [0-9]+'
    fi
}

for row in "${splits[@]}"; do
    IFS='|' read -r ranks split groups <<<"$row"
    begin "$ranks threads, $split"
    check_split "$groups" "$(program all_reduce)" -g "$ranks" -b 64 -e 1K -f 4 --split "$split"
done

begin "NCCL_TESTS_SPLIT and NCCL_TESTS_SPLIT_MASK"
check_split "0,2 1,3" env NCCL_TESTS_SPLIT=MOD2 "$(program all_reduce)" -g 4 -b 64 -e 1K -f 4
check_split "0,2 1,3" env NCCL_TESTS_SPLIT="AND 0x1" "$(program all_reduce)" -g 4 -b 64 -e 1K -f 4
check_split "0,2 1,3" env NCCL_TESTS_SPLIT_MASK=1 "$(program all_reduce)" -g 4 -b 64 -e 1K -f 4
run 5 env NCCL_TESTS_SPLIT=nonsense "$(program all_reduce)" -g 4
want_refused 2 NCCL_TESTS_SPLIT
run 5 env NCCL_TESTS_SPLIT=MOD0 "$(program all_reduce)" -g 4
want_refused 2 NCCL_TESTS_SPLIT

for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver in groups of 3 and 2"
    run 20 "$(program "$driver")" -g 5 --split mod:2 -b 1K -e 4K -f 2 -n 2
    want_right tables=2 rows=6
    want_match "$OUT" '^# Slowest group +: [0-9]+'
done

begin "a fault in the second group is everybody's"
run 20 "$(program all_reduce)" -g 4 --split mod:2 -b 1K -e 1K --inject corrupt:rank=3
want_exit 1
want_match "$ERR" '^rank 3 host '
want_table tables=2 rows=2 wrong=+
run 20 "$(program all_reduce)" -g 4 --split mod:2 -b 1K -e 1K --inject stall:rank=3,iter=2 -T 2
want_exit 4
want_within 4000
want_match "$ERR" 'did not arrive: rank 3 '

if has_mpi; then
    begin "4 processes, mod:2"
    check_split "0,2 1,3" "$MPIRUN" -np 4 "$(program all_reduce)" -b 64 -e 1K -f 4 --split mod:2
    begin "2 processes with 2 threads, div:2 and mod:2"
    mixed=("$MPIRUN" -np 2 "$(program all_gather)" -t 2 -b 64 -e 1K -f 4 --split)
    check_split "0,1 2,3" "${mixed[@]}" div:2
    check_split "0,2 1,3" "${mixed[@]}" mod:2
else
    begin "processes"
    skip "no MPI"
fi
want_nothing_left

finish
