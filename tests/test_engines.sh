#!/usr/bin/env bash
# --engine and --compare: MPI's own collectives on the same buffers, checked alike; what is
# refused; deadlines inside of MPI; and that the comparison itself sees a slower engine.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

AR="$(program all_reduce)"

# Figures of a CSV file: figures ENGINE COLUMN FILE, empty ones too.
figures() {
    awk -F, -v engine="$1" -v column="$2" 'NR == 1 {
        for (i = 1; i <= NF; i++)
            at[$i] = i
        next
    }
    $(at["engine"]) == engine { print $(at[column]) }' "$3"
}

# ---- without MPI -----------------------------------------------------------------------------

begin "an engine against itself: rows of both, right data"
run 20 "$AR" -g 2 -b 64 -e 4K -f 8 -n 50 --compare builtin,builtin --compare-rounds 7 \
    --csv "$WORK/same.csv" -J "$WORK/same.json"
want_exit 0
want_silent "$ERR"
want_json "$WORK/same.json" exit_code=0 rows=6
want_match "$OUT" '^# Compare: builtin, builtin#2, in turns: medians of 7 rounds of 8 iterations'
want_match "$OUT" '^# builtin +: faster [0-9]+, equal [0-9]+, slower [0-9]+$'
want_match "$OUT" '^# Out of bounds values : 0 OK'
want_equal "$(figures 'builtin#2' ratio "$WORK/same.csv" | grep -c .)" 6 "ratios"
want_equal "$(figures builtin ratio "$WORK/same.csv" | grep -c .)" 0 "ratios of the first"

# 2 ms in each of the operations are far above everything else.
begin "an engine that is slowed down shows as slower, whichever it is"
# side that is slow | what the first is | test of the ratio
for row in 'builtin#2|faster|> 2' 'builtin|slower|< 0.5'; do
    IFS='|' read -r slow first test <<<"$row"
    run 20 "$AR" -g 2 -b 64 -e 64 -n 10 --placement out --compare builtin,builtin \
        --csv "$WORK/slow.csv" --inject "delay:rank=1,us=2000,engine=$slow"
    want_exit 0
    want_match "$OUT" " $first +0\$"
    ratio="$(figures 'builtin#2' ratio "$WORK/slow.csv" | grep .)"
    awk "BEGIN { exit !($ratio $test) }" || bad "ratio $ratio, wanted $test"
done

begin "wrong data of one engine are found and named"
run 20 "$AR" -g 2 -b 64 -e 64 --compare builtin,builtin --csv "$WORK/wrong.csv" \
    --inject 'corrupt:rank=1,engine=builtin#2'
want_exit 1
want_match "$ERR" 'builtin#2: all_reduce float sum'
want_equal "$(figures builtin wrong "$WORK/wrong.csv" | sort -u)" 0 "wrong of the first"
want_equal "$(figures 'builtin#2' wrong "$WORK/wrong.csv" | grep -cx 0)" 0 "right of the second"

# options | exit code | message
refused=(
    '--engine mpi|77|MPI'
    '--compare builtin,mpi|77|MPI'
    '--engine nccl|77|CUDA|NCCL|GPU'
    '--engine gloo|2|one of builtin, mpi, nccl'
    '--compare builtin|2|2 to 4 engines'
    '--compare builtin,gloo|2|2 to 4 engines'
    '--compare builtin,builtin,builtin,builtin,builtin|2|2 to 4 engines'
    '--compare builtin,builtin --engine builtin|2|exclude each other'
    '--compare builtin,builtin --compare-rounds 4|2|5 to 32'
    '--compare-rounds 6|2|needs --compare'
    '--compare builtin,builtin -I 1|2|rounds are timed'
    '--compare builtin,builtin -C 1|2|compares times'
    '--compare builtin,builtin --peak 5|2|no such columns'
    '--compare builtin,builtin --find-bad -b 8 -e 8|2|built-in engine'
    '--compare builtin,builtin --plan|2|has plans'
    '--compare builtin,builtin --inject delay:us=1,engine=mpi|2|no such engine'
)
begin "what is refused"
for row in "${refused[@]}"; do
    IFS='|' read -r options code message <<<"$row"
    # shellcheck disable=SC2086
    run 10 "$AR" -g 2 $options
    want_refused "$code" "$message"
done

begin "--list names the engines"
run 10 "$AR" --list
want_match "$OUT" '^engines$'
want_match "$OUT" '^  builtin '

# ---- with MPI --------------------------------------------------------------------------------

if ! has_mpi; then
    begin "MPI as an engine"
    skip "no MPI: ${MPIRUN:-no mpirun}"
    finish
fi

# A group of three ranks and one of two, in one launch.
mpirun_of() { # mpirun_of RANKS DRIVER OPTION...
    run 60 "$MPIRUN" -np "$1" "$(program "$2")" "${@:3}"
}

for driver in "${ALL_DRIVERS[@]}"; do
    [[ "$driver" == hypercube ]] && continue
    begin "$driver: every type, operation and root of MPI, with 3 and 2 ranks"
    mpirun_of 5 "$driver" -b 999 -e 4K -i 3000 -n 5 -d all -o all -r all --split div:3 \
        --compare builtin,mpi --csv "$WORK/$driver.csv"
    want_exit 0
    want_silent "$ERR"
    want_match "$OUT" '^# Out of bounds values : 0 OK'
    want_equal "$(figures mpi wrong "$WORK/$driver.csv" | sort -u | tr -d '\n')" 0 "wrong"
    [[ "$(figures mpi time_us "$WORK/$driver.csv" | grep -c .)" -ge 32 ]] || bad "few rows of mpi"
done

begin "mpi alone: the table of nccl-tests, and who ran in the JSON"
mpirun_of 2 all_gather -b 8 -e 4K -f 8 --engine mpi -J "$WORK/alone.json"
want_right rows=4
want_match "$OUT" '^# Engine: mpi$'
want_match "$OUT" '^# MPI: .*lib'
want_json "$WORK/alone.json" exit_code=0
want_equal "$(grep -c '"engine":.*"mpi"' "$WORK/alone.json")" 5 "rows and the option"

begin "what MPI has not is absent, with the reason, or refused if it is all"
mpirun_of 2 broadcast -b 64 -e 64 --engine mpi --csv "$WORK/bcast.csv"
want_right rows=1
want_match "$WORK/bcast.csv" 'MPI_Bcast has one buffer'
mpirun_of 2 all_reduce -b 64 -e 64 -d bfloat16 --engine mpi
want_exit 77
want_silent "$OUT"
want_match "$ERR" '^--engine: mpi has nothing .* does not compute with this type'
mpirun_of 2 hypercube -b 64 -e 64 --engine mpi
want_exit 77
want_match "$ERR" 'no such collective'
mpirun_of 2 all_reduce -b 64 -e 64 --engine mpi --algo ring
want_exit 2
want_match "$ERR" '^--algo is for the engine builtin'
mpirun_of 1 all_reduce -g 2 -b 64 -e 64 --engine mpi
want_exit 77
want_match "$ERR" '2 ranks share 1'

begin "thresholds are for the first engine"
mpirun_of 2 all_reduce -b 64 -e 64 -n 5 --compare builtin,mpi --placement out --max-time-us 1000 \
    --inject 'delay:rank=1,us=2000,engine=mpi'
want_exit 0
want_match "$OUT" ' faster +0$'
want_match "$OUT" '^# Verdict +: OK: 1 row'

begin "a stall inside of MPI: exit 4 within the deadline, named"
mpirun_of 3 all_reduce -b 64 -e 64 -T 2 --engine mpi --inject stall:rank=1,iter=3
want_exit 4
want_within 8000
want_match "$ERR" 'did not arrive: rank 1 host '
want_no_match "$ERR" 'did not arrive: rank [02]'
want_nothing_left

finish
