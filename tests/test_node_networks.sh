#!/usr/bin/env bash
# Ways between nodes: interfaces that are chosen or do not reach, ports, strangers, addresses of
# version 6 only. What cannot work is named in one report before the first row.
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

job() { # job N OPTION...: by the environment, to its end
    node_job env "$1" "$all_reduce" -T 30 "${@:2}"
    run 60 "${ARGV[@]}"
}

lost_job() { # lost_job N OPTION...: the same for one that has to give up
    node_job env "$1" "$all_reduce" -T "$PATIENCE" "${@:2}"
    run 20 "${ARGV[@]}"
}

# ---- a second network --------------------------------------------------------------------------

switch ip link add br1 type bridge
switch ip link set br1 up
for k in 0 1 2; do
    switch ip link add "side$k" type veth peer name eth1 netns "${NODE_PIDS[k]}"
    switch ip link set "side$k" master br1 up
    on "$k" ip addr add "10.78.0.$((k + 1))/24" dev eth1
    on "$k" ip link set eth1 up
done

begin "--ifname chooses and excludes, NCCL_SOCKET_IFNAME does, and the header tells"
for spec in eth1 =eth1 eth1,eth0 ^eth0 ^=eth0,lo; do
    job 3 -b 8 -e 8 --ifname "$spec"
    want_right
    want_match "$OUT" '^# Network: tcp over eth1 10\.78\.0\.1 .*--ifname'
done
job 3 -b 8 -e 8 --ifname ^eth1
want_right
want_match "$OUT" '^# Network: tcp over eth0 10\.77\.0\.1 .*--ifname'
NCCL_SOCKET_IFNAME='=eth1' job 3 -b 8 -e 8
want_right
want_match "$OUT" '^# Network: tcp over eth1 10\.78\.0\.1 .*NCCL_SOCKET_IFNAME'

begin "all connections keep to --port-range"
endless env --ifname eth1 --port-range 31000-31010
for k in 0 1 2; do
    on "$k" cat /proc/net/tcp
done | "$PYTHON" -c '
import sys
hub, first, last, inside, outside = int(sys.argv[1]), 31000, 31010, 0, []
for line in sys.stdin:
    field = line.split()
    if field[0] == "sl" or field[3] not in ("01", "0A"):
        continue
    port = [int(side.split(":")[1], 16) for side in field[1:3]]
    inside += any(first <= p <= last for p in port)
    if hub not in port and not any(first <= p <= last for p in port):
        outside.append(port)
print(inside, outside)' "$JOB_PORT" >"$WORK/ports"
want_equal "$(cat "$WORK/ports")" '6 []' "ends of connections inside, and ports outside"
hit TERM "$(rank_pid 0)"
want_exit 6
want_codes 6

begin "a port that is taken is named, with its interface"
: >"$WORK/taken"
nsenter -t "${NODE_PIDS[2]}" -n "$PYTHON" -c 'import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1) # of the case before, connections linger
s.bind(("10.78.0.3", 31000))
s.listen()
print("taken", flush=True)
sys.stdin.read()' <>"$WORK/never" >"$WORK/taken" &
await_text taken "$WORK/taken"
job 3 -b 8 -e 8 --ifname eth1 --port-range 31000
kill $!
want_exit 3
want_codes 3
want_silent "$OUT"
want_match "$ERR" 'cannot listen on port 31000 of eth1 \(10\.78\.0\.3\): Address already in use'

# ---- neighbours that cannot be reached: named before the first row -----------------------------

unreached() { # unreached CODE WHY
    want_exit "$1"
    want_codes "$1"
    want_within $((PATIENCE * 1000 / STRETCH + 2000))
    want_silent "$OUT"
    want_reports 1 '^connect: [23] of 3 processes are not connected with all their neighbours$' \
        "^  process 1 \\(rank 1, pid [0-9]+\\) on host node1 cannot reach process 2 \\(rank 2, pid \
[0-9]+\\) on host node2 at 10\\.78\\.0\\.3:[0-9]+ from eth1 10\\.78\\.0\\.2: $2" '--ifname'
    want_nothing_left
}

begin "an interface without a way to the neighbour: no answer"
switch ip link set side2 nomaster
lost_job 3 -b 8 -e 8 --ifname eth1
unreached 4 'no answer within [0-9.]+ s$'
switch ip link set side2 master br1

begin "... unreachable"
on 1 ip route add unreachable 10.78.0.3
lost_job 3 -b 8 -e 8 --ifname eth1
unreached 3 'No route to host$'
on 1 ip route del unreachable 10.78.0.3

begin "... refused: another node has the same address"
mac="$(on 0 ip link show eth1 | sed -n 's/.*ether \([^ ]*\).*/\1/p')"
on 0 ip addr add 10.78.0.3/32 dev lo
on 1 ip neigh replace 10.78.0.3 lladdr "$mac" dev eth1 nud permanent
lost_job 3 -b 8 -e 8 --ifname eth1
unreached 3 'Connection refused$'
on 0 ip addr del 10.78.0.3/32 dev lo
on 1 ip neigh del 10.78.0.3 dev eth1

# ---- strangers ---------------------------------------------------------------------------------

begin "strangers at all ports while a job starts hurt nobody"
JOB_ABSENT=2
node_job env 3 "$all_reduce" -b 8 -e 64K -f 64 -T $((PATIENCE * 5)) --port-range 31000
start "${ARGV[@]}"
# Some say nothing, some something else, some come and go; from a node of the job, to its end.
: >"$WORK/dropped"
nsenter -t "${NODE_PIDS[2]}" -n "$PYTHON" -c '
import itertools, socket, sys
said = [b"", b"GET / HTTP/1.0\r\n\r\n", b"\0" * 400, bytes(range(256)) * 300]
kept, dropped = [], 0
for turn in itertools.count():
    for node in (1, 2):
        for port in (int(sys.argv[1]), 31000):
            try:
                s = socket.create_connection((f"10.77.0.{node}", port), 0.2)
                s.sendall(said[turn % 4])
            except OSError:
                continue
            dropped += 1
            print(dropped, flush=True)
            if turn % 8 == 0 and len(kept) < 100:
                kept.append(s)' "$JOB_PORT" >"$WORK/dropped" 2>/dev/null &
stranger=$!
await_text '^20$' "$WORK/dropped"
env_rank 2
"${RANK_ARGV[@]}" "${ARGV[@]:1}"
want_equal $? 0 "exit code of the rank that came late"
await_job
kill "$stranger"
want_exit 0
want_codes 0
want_table rows=3
want_match "$ERR" 'dropped a connection from 10\.77\.0\.3:[0-9]+: '
want_equal "$(grep -vc 'dropped a' "$ERR")" 0 "lines about something else"
JOB_ABSENT=

# ---- version 6 only ----------------------------------------------------------------------------

begin "nodes without an address of version 4"
for k in 0 1 2; do
    on "$k" ip -4 addr flush dev eth0
    on "$k" ip link del eth1
done
JOB_MASTER=fd77::1
job 3 -b 8 -e 64K -f 64
want_right rows=3
want_match "$OUT" '^# Network: tcp over eth0 fd77::1 '
job 3 -b 8 -e 8 --rendezvous "file:$WORK/meeting"
want_right
job 3 -b 8 -e 8 --ip 4 --ifname eth0
want_exit 2
want_match "$ERR" 'eth0'

begin "nodes with addresses of the link only"
JOB_MASTER="$(on 0 ip -6 -o addr show dev eth0 scope link | awk '{ print $4 }')"
JOB_MASTER="${JOB_MASTER%/*}%eth0"
for k in 0 1 2; do
    on "$k" ip -6 addr flush dev eth0 scope global
done
job 3 -b 8 -e 8
want_right
want_match "$OUT" '^# Network: tcp over eth0 fe80:'
job 3 -b 8 -e 8 --rendezvous "file:$WORK/meeting"
want_right

begin "nothing is left behind"
want_nothing_left

finish
