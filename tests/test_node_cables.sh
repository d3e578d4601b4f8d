#!/usr/bin/env bash
# Cables between nodes: cut in the middle of a run, slow, lossy, or with little bandwidth. Results
# stay right, times show what the cable does, and who is cut off is named, with exit 4.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/nodes.sh
. "$(dirname "$0")/nodes.sh"
# shellcheck source=tests/node_jobs.sh
. "$(dirname "$0")/node_jobs.sh"

if ! nodes_possible || ! nodes_up 3; then
    skip_all "no network namespaces, or no ip and nsenter (needs root)"
fi
all_reduce="$(realpath "$(program all_reduce)")"
launchers=(env)
nodes_mpi && launchers+=(mpi)

job() { # job N OPTION...: by the environment, to its end
    node_job env "$1" "$all_reduce" -T 30 "${@:2}"
    run 60 "${ARGV[@]}"
}

time_of_row() { # microseconds
    awk '!/^#/ && NF { print int($6); exit }' "$OUT"
}

want_time() { # want_time LEAST MOST
    local us
    us="$(time_of_row)"
    if [[ -z "$us" || $us -lt $1 || $us -gt $2 ]]; then
        bad "time of the row: '$us' us, wanted $1 to $2"
    fi
}

# ---- cables that break in the middle of a run ------------------------------------------------

# Those who are cut off cannot hear of the others' report: they have their own. Both sides end.
broken() { # broken LAUNCHER SIDES
    want_failure
    if [[ $1 == env ]]; then
        want_exit 4
        want_codes 4
        want_within $(((PATIENCE * 1000 + 3000) / (STRETCH > 1 ? 2 : 1)))
        want_reports "$2"
    else
        want_within $((PATIENCE * 1000 + 12000)) # mpirun notices by its keep-alive
    fi
    want_match "$ERR" '^process 2 \(rank 2, pid [0-9]+\) on host node2 (has been sil|does not ack)'
    want_match "$ERR" '^  seen by rank [01] host node[01]: all_reduce of 65536 bytes, phase '
    want_match "$ERR" '^  2 of 3 ranks wait: 0 for rank [12], 1 for rank 2$'
    want_no_match "$ERR" 'time-out: tear-down'
    want_match "$OUT" '^ +65536 .* 0 +[0-9.]+ .* 0$'
    forget_daemons
    want_nothing_left
}

for launcher in "${launchers[@]}"; do
    begin "$launcher: a cable is cut, and nobody is told"
    endless "$launcher"
    node_cut 2
    await_job
    broken "$launcher" 2
    [[ $launcher == env ]] && want_match "$ERR" '^  seen by rank 2 host node2: .*phase '
    node_mend 2

    [[ $launcher == mpi && -z "$SLOW" ]] && continue
    begin "$launcher: a node vanishes: its connections stay half open"
    endless "$launcher"
    victim="$(rank_pid 2)"
    node_cut 2
    hit KILL "$victim"
    broken "$launcher" 1
    node_mend 2

    [[ -z "$SLOW" ]] && continue
    begin "$launcher: a link goes down"
    endless "$launcher"
    node_unplug 2
    await_job
    broken "$launcher" 2
    switch ip link set port2 up
done

begin "env: the cable of the rendezvous is cut"
endless env
node_cut 0
await_job
want_codes 4
want_reports 2 '^process 0 \(rank 0, pid [0-9]+\) on host node0 (has been silent|does not ack)' \
    '^  seen by rank 0 host node0: '
node_mend 0
want_nothing_left

# ---- delay, loss, rate -------------------------------------------------------------------------

CABLE=
trap '[[ -n "$CABLE" ]] && kill "$CABLE"; nodes_down; clean_up' EXIT
cable() { # cable OPTION...: between nodes 0 and 1, interface slow0
    : >"$WORK/cable"
    "$PYTHON" tests/slow_cable.py "${NODE_PIDS[0]}:slow0" "${NODE_PIDS[1]}:slow0" "$@" \
        >"$WORK/cable" &
    CABLE=$!
    await_text ready "$WORK/cable"
    on 0 ip addr add 10.79.0.1/24 dev slow0
    on 1 ip addr add 10.79.0.2/24 dev slow0
}

cable_down() {
    kill "$CABLE"
    wait "$CABLE"
    CABLE=
}

begin "a delay of 1 ms shows in the latency"
cable --delay-ms 1
job 2 -b 8 -e 8 -n 20 --ifname slow0 --placement out
want_right rows=1
want_time 1000 20000
cable_down

begin "a cable that loses and reorders: results are right"
cable --delay-ms 0.2 --loss 1 --reorder 5
job 2 -b 8 -e 512K -f 256 -n 5 --ifname slow0
want_right rows=3
cable_down
want_match "$WORK/cable" '^carried [0-9]+ lost [1-9][0-9]* overtaken [1-9][0-9]*$'

begin "100 Mbit/s show in the bandwidth"
name=eth0
if node_shape 0 "tbf rate 100mbit burst 32kb latency 100ms" 2>/dev/null; then
    node_shape 1 "tbf rate 100mbit burst 32kb latency 100ms"
else
    cable --rate-mbit 100
    name=slow0
fi
job 2 -b 2M -e 2M -n 5 --ifname "$name" --placement out
want_right rows=1
want_time 167772 419430 # 2 MiB at 12.5 and at 5 MB/s
[[ -n "$CABLE" ]] && cable_down

begin "nothing is left behind"
want_nothing_left

finish
