#!/bin/false
# shellcheck shell=bash
# Several "nodes" on one machine: network namespaces with host names of their own, joined by a
# switch. For tests that source it after lib.sh; needs root, ip and nsenter.
#
#   nodes_mpi           can node_mpirun be used? With Open MPI only
#   nodes_up N          nodes 0 to N-1: node K has eth0 with address 10.77.0.(K+1)
#   on K CMD...         runs CMD on node K
#   node_ip K           its address
#   node_cut K          its cable is unplugged: the link stays up, nothing arrives any more
#   node_mend K         plugged in again
#   node_unplug K       its link goes down
#   node_shape K WHAT   tc qdisc of what leaves it: "tbf rate 100mbit burst 32kb latency 50ms"
#   node_mpirun N ARG...  fills ARGV: mpirun on node 0 for nodes 0 to N-1, with an agent that starts
#                       its daemons on the others; NODE_SLOTS: ranks that each takes (16)
#   nodes_down
NODE_PIDS=()
NODE_SLOTS=()
SWITCH_PID=

nodes_possible() {
    [[ "$(id -u)" == 0 ]] && command -v ip nsenter unshare >/dev/null &&
        unshare -n -u true 2>/dev/null
}

# The agent below is for its daemons; that of MPICH wants other words.
nodes_mpi() {
    has_mpi && "$MPIRUN" --version 2>/dev/null | grep -q 'Open MPI'
}

# holder VARIABLE NAME: a process that keeps a namespace alive
holder() {
    local tag="$WORK/holder.$2"
    unshare -n -u bash -c "hostname $2; ip link set lo up; : >'$tag'; exec sleep 100000" \
        >/dev/null 2>&1 </dev/null &
    printf -v "$1" '%s' "$!"
    local try
    for ((try = 0; try < 200; try++)); do
        [[ -e "$tag" ]] && return
        pause
    done
    return 1
}

on() {
    nsenter -t "${NODE_PIDS[$1]}" -n -u "${@:2}"
}

switch() {
    nsenter -t "$SWITCH_PID" -n "$@"
}

node_ip() {
    echo "10.77.0.$(($1 + 1))"
}

nodes_up() {
    local k pid
    holder SWITCH_PID switch || return 1
    switch ip link add br0 type bridge || return 1
    switch ip link set br0 up
    for ((k = 0; k < $1; k++)); do
        holder pid "node$k" || return 1
        NODE_PIDS[k]=$pid
        switch ip link add "port$k" type veth peer name eth0 netns "$pid" || return 1
        switch ip link set "port$k" master br0 up
        on "$k" ip addr add "$(node_ip "$k")/24" dev eth0
        on "$k" ip addr add "fd77::$((k + 1))/64" dev eth0 nodad
        on "$k" ip link set eth0 up
    done
    cat >"$WORK/agent" <<AGENT
#!/usr/bin/env bash
# The host is an address whose last number tells the node; what follows is a command line.
pids=(${NODE_PIDS[*]})
while [[ \$1 == -* ]]; do shift; done
node=\$((\${1##*.} - 1))
shift
exec nsenter -t "\${pids[node]}" -n -u bash -c "\$*"
AGENT
    chmod +x "$WORK/agent"
}

# Nothing passes, and nobody is told: as if the cable were pulled behind the next switch.
node_cut() {
    switch ip link set "port$1" nomaster
}

node_mend() {
    switch ip link set "port$1" master br0
}

# The node sees that its link is down.
node_unplug() {
    switch ip link set "port$1" down
}

node_shape() { # what leaves the node
    # shellcheck disable=SC2086 # several words
    on "$1" tc qdisc replace dev eth0 root $2
}

node_mpirun() { # node_mpirun NODES ARGS...
    local k hosts=
    for ((k = 0; k < $1; k++)); do
        hosts+="${hosts:+,}$(node_ip "$k"):${NODE_SLOTS[k]:-16}"
    done
    # shellcheck disable=SC2034 # used by the tests
    ARGV=("$(command -v nsenter)" -t "${NODE_PIDS[0]}" -n -u "$MPIRUN"
        --mca plm_rsh_agent "$WORK/agent"
        --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0
        --mca plm_rsh_no_tree_spawn 1 --host "$hosts" "${@:2}")
}

nodes_down() {
    kill "${NODE_PIDS[@]}" "$SWITCH_PID" 2>/dev/null
    NODE_PIDS=()
}
trap 'nodes_down; clean_up' EXIT
