#!/usr/bin/env bash
# GPUs of several nodes: two processes that share no memory (--wire tcp), each with virtual GPUs of
# its own. Kernels fill and drain the ports between them; results, ways to wait, ends that are not
# orderly.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/virtual.sh
. "$(dirname "$0")/virtual.sh"
# shellcheck source=tests/gang.sh
. "$(dirname "$0")/gang.sh"

ON=(--backend cuda --wire tcp -g 2)

# apart PROGRAM OPTIONS...: two processes of two GPUs
apart() {
    world 2
    gang 15 "0 1" "$1" "${ON[@]}" "${@:2}"
}

# ---- right results ---------------------------------------------------------------------------

# Rows of 0 bytes, near a slot's head (5 to 20 bytes), odd, and of several slots.
for driver in "${ALL_DRIVERS[@]}"; do
    begin "$driver: two GPUs on each of two nodes"
    apart "$(program "$driver")" -b 20 -e 40001 -i 19990 -d uint8 -n 2 --buffsize 8K
    want_right rows=3 measured=any bw=any
    want_match "$OUT" '^# collmark version .* backend=cuda wire=p2p\+tcp$'
done

begin "sizes that round to nothing"
apart "$AR" -b 0 -e 16 -i 8 -n 2 -w 0
want_right rows=3 measured=any bw=any

# options
variants=(
    '-G 3' '-G 2 -m 2 --progress thread' '--progress inline -z 1' '-n 150 -w 0 -c 0'
    '-u 1 -d int8 --check-every 1' '--p2p-disable 1 -t 2 -g 1' '--node-map 0,0,0,0'
    '--algo ring -y 1' '--algo tree --channels 3' '--algo hierdbl --chunk 256'
)
begin "all_reduce: options"
for options in "${variants[@]}"; do
    # shellcheck disable=SC2086
    apart "$AR" -b 3K -e 3K -n 2 $options
    want_right rows=1
done

begin "groups inside of a node, and across"
apart "$AR" -b 1K -e 1K -n 2 --split div:2
want_right rows=2 tables=2
apart "$AR" -b 1K -e 1K -n 2 --split mod:2
want_right rows=2 tables=2

begin "without peer access inside of the nodes"
FAKECUDA_NO_PEER=all apart "$AR" -b 3K -e 3K -n 2
want_right rows=1
want_match "$OUT" '^# Transport: inside a domain pinned host memory, between 2 domains '

begin "two ranks of a node on one GPU: one launch plays both"
FAKECUDA_DEVICES=2 apart "$AR" -b 3K -e 3K -n 2 --oversubscribe
want_right rows=1
want_match "$OUT" '^# Kernels: CUDA '
FAKECUDA_DEVICES=2 apart "$AR" -b 3K -e 3K -n 2 -G 2 --oversubscribe
want_right rows=1

begin "two nodes on one GPU: the host helps"
FAKECUDA_DEVICES=1 apart "$AR" -b 3K -e 3K -n 2 --oversubscribe
want_right rows=1
want_match "$OUT" '^# Note: processes or groups share a GPU: the host runs the operations'
want_match "$OUT" '^# Transport: inside a domain .*, between 2 domains tcp$'

begin "the header says how GPUs reach other nodes"
apart "$AR" -b 8 -e 8
want_match "$OUT" '^# Transport: inside a domain p2p, between 2 domains pinned host memory \+ tcp$'
want_match "$OUT" '^# Kernels: CUDA  clock: CUDA events$'
want_no_match "$OUT" 'the host runs'

# ---- what must be refused or noticed ---------------------------------------------------------

begin "forms that GPUs of several nodes have not"
apart "$AR" -b 8 -e 8 --mode direct --algo hier
want_exit 77
want_match "$ERR" '--mode direct: GPUs of other nodes are out of reach'
apart "$AR" -b 8 -e 8 --proto ll
want_exit 77
want_match "$ERR" '--proto ll: between nodes GPUs have protocol simple only'

begin "corrupt data are found"
apart "$AR" -b 1K -e 1K -n 2 --inject corrupt:rank=2
want_exit 1
want_match "$ERR" '^rank 2 host .*: element [0-9]+|element [0-9]+ '

begin "a rank that stalls is named, and kernels end"
apart "$AR" -b 1K -e 1K -T 1 --inject stall:rank=2,iter=5
want_exit 4
want_within 5000
want_match "$ERR" 'time-out after .* all_reduce of 1024 bytes'
want_match "$ERR" 'did not arrive: rank 2 '

# endless OPTION...: rows without an end; PID is process 0, OTHER process 1
OTHER=0
endless() {
    world 2
    env "${COMMON[@]}" RANK=1 "$AR" "${ON[@]}" -b 4K -e 4K -n 5 -N 0 -T 2 "$@" \
        >"$WORK/other.out" 2>"$WORK/other.err" </dev/null &
    OTHER=$!
    start /usr/bin/env "${COMMON[@]}" RANK=0 "$AR" "${ON[@]}" -b 4K -e 4K -n 5 -N 0 -T 2 "$@"
    await_text '^ +4096 ' "$OUT"
}

# other_is CODE: how process 1 ended
other_is() {
    { wait "$OTHER"; } 2>/dev/null
    want_equal $? "$1" "process 1's exit code"
}

ways=('' '--progress thread -G 2')
begin "a process is killed: one report, and kernels end"
for way in "${ways[@]}"; do
    # shellcheck disable=SC2086
    endless $way
    hit KILL "$OTHER"
    want_exit 3
    want_within 3000
    want_match "$ERR" '^process 1 \(ranks 2-3, pid [0-9]+\) on host .* died: its connection '
    want_match "$ERR" '^  seen by rank [01] host .*: all_reduce of 4096 bytes, phase '
    want_lines "$ERR" 3
    other_is 137
done

begin "a process is stopped: one report, and kernels end"
endless
hit STOP "$OTHER"
want_exit 4
want_within 5000
want_match "$ERR" '^process 1 \(ranks 2-3, pid [0-9]+\) on host .* has been silent for '
want_lines "$ERR" 3
kill -CONT "$OTHER"
other_is 4

begin "SIGTERM: exit 6 everywhere, and the report is whole"
endless
hit TERM "$PID"
want_exit 6
want_table
other_is 6

begin "nothing is left behind"
want_nothing_left

finish
