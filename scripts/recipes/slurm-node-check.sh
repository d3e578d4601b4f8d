#!/usr/bin/env bash
# Check of a single node in less than a minute, for Slurm's Prolog or Epilog (slurm.conf), on nodes
# that are given to one job at a time. By hand it does as well.
#
#   Epilog=/etc/slurm/slurm-node-check.sh
#
# Exit 1 if the node is bad, so that Slurm drains it; what was found becomes its reason. Exit 0 if
# it is good, and also if it could not be judged (no program, a wrong option, too little time): a
# mistake in a check must not drain a cluster. That is told on stderr and in the system's log.
# Arguments go to `collmark acceptance`, for limits of this kind of node: --min-peak 85.
set -u
export PATH="/usr/local/bin:/usr/bin:/bin:${PATH:-}" # slurmd sets none
program="${ACCEPTANCE_PROGRAM:-collmark}"
# Of the job that comes or goes. The node's own name stays: SLURMD_NODENAME.
for name in $(compgen -e SLURM_); do
    unset "$name"
done

not_judged() { # not_judged REASON
    echo "collmark: node not judged: $1" >&2
    logger -t collmark "node not judged: $1" 2>/dev/null
    exit 0
}

work="$(mktemp -d "${TMPDIR:-/tmp}/collmark-check.XXXXXX")" || not_judged "no folder for results"
trap 'rm -rf "$work"' EXIT
command -v "$program" >/dev/null || not_judged "$program: no such program"

timeout -k 2 55 "$program" acceptance --quick --launcher none --stages ranks,nodes,pairs \
    --time-budget 40 --timeout 8 --no-report --out "$work/results" "$@" >"$work/log" 2>&1
code=$?
reason="$(cut -f 2- "$work/results/hosts/reasons" 2>/dev/null)"

if [[ $code == 0 ]]; then
    exit 0
fi
if [[ -z "$reason" ]]; then
    not_judged "exit $code: $(tail -n 1 "$work/log")"
fi
echo "$reason"
if [[ -n "${SLURMD_NODENAME:-}" ]] && command -v scontrol >/dev/null; then
    scontrol update nodename="$SLURMD_NODENAME" state=drain reason="$reason"
fi
exit 1
