#!/usr/bin/env bash
#SBATCH --job-name=collmark-acceptance
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=00:40:00
#SBATCH --output=collmark-acceptance-%j.log
# Acceptance of all nodes of an allocation, by srun:
#
#   sbatch slurm-acceptance.sh
#   sbatch --nodes=64 --export=ALL,ACCEPTANCE_DRAIN=yes slurm-acceptance.sh --full --min-busbw 40
#
# Arguments go to `collmark acceptance`, by default --full. The job's exit code is its verdict, the
# log ends with it, and the results are in the folder of submission. Drivers have to be at the same
# path on all nodes. Without GPUs: take their line out. ACCEPTANCE_DRAIN=yes drains nodes that
# failed (for who may).
set -u
program="${ACCEPTANCE_PROGRAM:-collmark}"
results="$PWD/collmark-acceptance-${SLURM_JOB_ID:?inside a Slurm job only}"

[[ $# == 0 ]] && set -- --full
"$program" acceptance --out "$results" "$@"
code=$?

if [[ "${ACCEPTANCE_DRAIN:-}" == yes && -s "$results/hosts/reasons" ]]; then
    while IFS=$'\t' read -r node reason; do
        scontrol update nodename="$node" state=drain reason="$reason" ||
            echo "$node could not be drained: $reason" >&2
    done <"$results/hosts/reasons"
fi
exit "$code"
