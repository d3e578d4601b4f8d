#!/usr/bin/env bash
# Every algorithm x mode x protocol: forced, it computes the right result; shown with --plan, it
# is proved. What a collective lacks is refused with exit 77, before any row.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

algos=(ring tree direct oneshot recdbl hier)
# mode and protocol: the protocol is that of the slots, so direct has one form.
forms=("copy simple" "copy ll" "direct simple")

# forms_of DRIVER: the algorithms it must have at least
forms_of() {
    case $1 in
    all_reduce) echo ring tree direct oneshot recdbl hier ;;
    reduce | broadcast) echo ring tree direct hier ;;
    all_gather | reduce_scatter | gather | scatter) echo ring direct hier ;;
    hypercube) echo recdbl ;;
    *) echo direct ;;
    esac
}

for driver in "${ALL_DRIVERS[@]}"; do
    for algo in "${algos[@]}"; do
        begin "$driver $algo"
        known=
        [[ " $(forms_of "$driver") " == *" $algo "* ]] && known=1
        for form in "${forms[@]}"; do
            read -r mode proto <<<"$form"
            run 20 "$(program "$driver")" -g 3 --algo "$algo" --mode "$mode" --plan
            planned=$RC
            if [[ $planned == 77 ]]; then
                want_refused 77 "$driver"
                [[ -n "$known" ]] && bad "$driver must have $algo"
            else
                want_exit 0
                want_silent "$ERR"
                want_match "$OUT" '^plan [0-9a-f]+: '
                want_match "$OUT" ": proof OK, [0-9]+ folds, bytes per rank [0-9]+/[0-9]+"
                want_no_match "$OUT" FAILED
            fi
            counts=(2 5)
            [[ $planned == 77 ]] && counts=(3)
            for ranks in "${counts[@]}"; do
                run 30 "$(program "$driver")" -g "$ranks" -b 320 -e 41111 -i 13597 -n 2 \
                    --algo "$algo" --mode "$mode" --proto "$proto"
                if [[ $planned == 77 ]]; then
                    want_exit 77
                    want_no_match "$OUT" '^ +[0-9]'
                    want_match "$ERR" "$algo"
                else
                    want_right rows=4
                fi
            done
        done
    done
done

for driver in all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter; do
    for algo in hier hierdbl; do
        [[ $algo == hier || $driver == all_reduce ]] || continue
        begin "$driver $algo on several nodes"
        for map in 0,0,0,1,1,1 0,0,1,1,1,1,1 1,0,1,2,0; do
            commas=${map//[0-9]/}
            ranks=$((${#commas} + 1))
            run 20 "$(program "$driver")" -g "$ranks" --node-map "$map" --algo "$algo" --plan
            want_exit 0
            want_equal "$(grep -c 'proof OK' "$OUT")" 2 "proofs: copy and mixed"
            for mode in copy direct; do
                run 30 "$(program "$driver")" -g "$ranks" --node-map "$map" --algo "$algo" \
                    --mode "$mode" -b 320 -e 41111 -i 13597 -n 2
                want_right rows=4
            done
        done
    done
done

begin "--plan without ranks proves 2 to 64"
for algo in ring tree direct; do
    run 120 "$(program all_reduce)" --algo $algo --mode copy --plan
    want_exit 0
    want_equal "$(grep -c 'proof OK' "$OUT")" 63 "proofs of $algo copy"
    run 120 "$(program all_reduce)" --algo $algo --mode direct --plan
    want_exit 0
    want_equal "$(grep -c 'proof OK' "$OUT")" 63 "proofs of $algo direct"
done

begin "--plan of every root"
run 20 "$(program broadcast)" --plan -g 5 -r all --algo tree --mode copy
want_exit 0
want_equal "$(grep -c 'proof OK' "$OUT")" 5 "roots"

begin "--plan is the same text twice, and runs nothing"
run 20 "$(program all_reduce)" --plan -g 6
want_exit 0
want_no_match "$OUT" 'Out of bounds'
cp "$OUT" "$WORK/first"
run 20 "$(program all_reduce)" --plan -g 6
cmp -s "$OUT" "$WORK/first" || bad "two runs differ"

begin "variables choose as the options do"
run 20 env NCCL_ALGO=Ring NCCL_PROTO=Simple "$(program all_reduce)" -g 2 -b 64K -e 64K --csv -
want_exit 0
want_match "$OUT" ',ring,'

cube=tests/topo/v100-cube.topo

begin "a topology file gives the ring order, shown, run and traced"
run 20 "$(program all_reduce)" -g 8 --algo ring --mode copy --topo "$cube" --plan
want_exit 0
want_match "$OUT" 'proof OK'
cp "$OUT" "$WORK/cube"
run 20 "$(program all_reduce)" -g 8 --algo ring --mode copy --plan
cmp -s "$OUT" "$WORK/cube" && bad "the plan is the one without it"
run 30 "$(program all_reduce)" -g 8 --algo ring --topo "$cube" -b 8 -e 4104 -f 8 --debug info
want_exit 0
want_table rows=4
want_match "$ERR" 'ring order \(world ranks\) 0 3 2 1 5 6 7 4, by topology'
run 30 "$(program all_gather)" -g 8 --algo ring --mode copy --topo "$cube" --split mod:2 -b 4K -e 4K
want_exit 0

begin "on several nodes, each is one such machine"
run 30 "$(program all_reduce)" -g 8 --node-map 0,1,0,1,0,1,0,1 --topo "$cube" --algo hier \
    -b 4104 -e 4104 --debug info
want_exit 0
want_table rows=1
want_match "$ERR" 'ring order \(world ranks\) 0 2 4 6 1 3 5 7, by topology'

begin "--topo shows, or says what is wrong"
run 20 "$(program all_reduce)" --topo "matrix:$cube"
want_exit 0
want_match "$OUT" '^ring 0 3 2 1 5 6 7 4, weakest link NV2'
for case in "no/such.topo|no/such.topo" "matrix:no/such|no/such" "README.md|README.md:3"; do
    run 20 "$(program all_reduce)" --topo "${case%|*}" -b 8 -e 8
    want_exit 2
    want_match "$ERR" "${case#*|}"
done
run 20 "$(program all_reduce)" --topo "$cube" -g 9 -b 8 -e 8
want_exit 2
want_match "$ERR" 'has 8 GPUs, and node 0 of the job has more ranks'
run 20 "$(program all_reduce)" --topo "$cube" -g 9 --plan
want_exit 2

if [[ -n "$SLOW" ]]; then
    begin "--plan of every driver, 2 to 64"
    for driver in "${ALL_DRIVERS[@]}"; do
        run 600 "$(program "$driver")" --plan
        want_exit 0
        want_no_match "$OUT" FAILED
    done
fi

finish
