#!/usr/bin/env bash
# scripts/recipes: each is run with programs that play Slurm, mpirun and ssh, files for others are
# read as these would. And an acceptance over real nodes, as far as network namespaces are such.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/nodes.sh
. "$(dirname "$0")/nodes.sh"

BUILDDIR="$(realpath "$BUILDDIR")"
recipes="$PWD/scripts/recipes"
export BUILDDIR NAME_SUFFIX="${NAME_SUFFIX:-}" WORDS="$WORK/words"
export ACCEPTANCE_PROGRAM="$PWD/scripts/collmark"
SMALL=(--backend host --max-bytes 16K --timeout 8)
mkdir "$WORK/bin"
for name in mpirun srun; do
    ln -s "$PWD/tests/acceptance/launcher" "$WORK/bin/$name"
done
ln -s "$PWD/tests/acceptance/scontrol" "$WORK/bin/scontrol"
path="$WORK/bin:/usr/bin:$PATH"

recipe() { # recipe [VARIABLE=VALUE...] NAME ARG...: in a folder of its own
    rm -rf "$WORK/at" "$WORDS"
    mkdir "$WORK/at"
    run 40 env -C "$WORK/at" "PATH=$path" "$@"
}

begin "slurm-acceptance.sh: a bad node is drained, if asked for"
slurm=(SLURM_JOB_ID=7 "SLURM_JOB_NODELIST=n[0-3]" SLURM_NTASKS_PER_NODE=2 BAD=n1 ALONE=1
    FAULT=corrupt:rank=0)
less=("${SMALL[@]}" --quick --no-report --stages 'ranks,pairs')
recipe "${slurm[@]}" ACCEPTANCE_DRAIN=yes "$recipes/slurm-acceptance.sh" "${less[@]}"
want_exit 1
want_match "$WORDS" '^scontrol update nodename=n1 state=drain reason=ranks: rank 0 host .*wrong'
want_equal "$(cat "$WORK/at/collmark-acceptance-7/hosts/failed")" n1 failed
recipe "${slurm[@]}" "$recipes/slurm-acceptance.sh" "${less[@]}"
want_exit 1
want_no_match "$WORDS" scontrol
recipe "$recipes/slurm-acceptance.sh"
want_failure
want_match "$ERR" 'inside a Slurm job only'

begin "slurm-node-check.sh"
check=(SLURMD_NODENAME=n3 SLURM_JOB_ID=7 "SLURM_JOB_NODELIST=n[0-3]" SLURM_NTASKS_PER_NODE=9
    "$recipes/slurm-node-check.sh" "${SMALL[@]}" -g 4)
recipe "${check[@]}"
want_exit 0
want_silent "$OUT"
want_silent "$ERR"
recipe "${check[@]}" -- --inject corrupt:rank=2
want_exit 1
want_lines "$OUT" 1
want_match "$OUT" '^ranks: rank 2 host .*wrong result'
want_match "$WORDS" '^scontrol update nodename=n3 state=drain reason=ranks: rank 2 host .*wrong'

begin "slurm-node-check.sh: what is no fault of the node drains nothing"
recipe "${check[@]}" --bogus
want_exit 0
want_match "$ERR" '^collmark: node not judged: exit 2: .*unrecognized arguments: --bogus'
recipe "${check[@]}" --time-budget 1
want_exit 0
want_match "$ERR" '^collmark: node not judged: exit 6: Acceptance: INCOMPLETE'
recipe ACCEPTANCE_PROGRAM=/nonexistent "${check[@]}"
want_exit 0
want_match "$ERR" 'not judged: /nonexistent: no such program'
[[ ! -e "$WORDS" ]] || want_no_match "$WORDS" scontrol

begin "hostfile.sh: what passed is a hostfile again"
printf '# all of them\nn0 slots=2\nn1:2\nn2 slots=2 # new\n' >"$WORK/hostfile"
recipe GONE=n0 "$recipes/hostfile.sh" "$WORK/hostfile" "${SMALL[@]}" --no-report --stages ranks
want_exit 3
want_equal "$(cat "$WORK/hostfile.good")" $'n1:2\nn2 slots=2 # new' "good hosts"
want_match "$OUT" $'^n0\tranks: ssh: '
recipe "$recipes/hostfile.sh" /nonexistent
want_refused 2 '^usage: hostfile.sh FILE'

begin "driver-upgrade.sh"
upgrade=("UPGRADE_DIR=$WORK/upgrade" "$recipes/driver-upgrade.sh")
recipe "${upgrade[@]}" after -g 2
want_exit 2
want_match "$ERR" '--baseline upgrade: no such file'
recipe "${upgrade[@]}" before -g 2 "${SMALL[@]}" --no-report --launches 3
want_exit 0
want_match "$OUT" 'baselines/.*/upgrade.json: .* launches$'
recipe GITHUB_STEP_SUMMARY="$WORK/step" "${upgrade[@]}" after -g 2 "${SMALL[@]}" --no-report \
    --launches 3
want_exit 0 5 77 # a crowded machine may have become slower, or its cores have moved
want_match "$OUT" '^baseline  compared with a baseline '
[[ $RC == 77 ]] || want_match "$WORK/step" upgrade
recipe "${upgrade[@]}" between
want_refused 2 '^usage: driver-upgrade.sh before.after'

begin "files for others are well-formed, and name what exists"
if "$PYTHON" -c 'import yaml' 2>/dev/null; then
    run 20 "$PYTHON" - "$recipes" <<'CHECK'
import os
import sys
import yaml

folder = sys.argv[1]
def read(name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return yaml.safe_load(f)
job = read("kubernetes-mpijob.yaml")
assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
roles = job["spec"]["mpiReplicaSpecs"]
assert set(roles) == {"Launcher", "Worker"} and roles["Worker"]["replicas"] > 1
for role in roles.values():
    pod = role["template"]["spec"]
    volumes = {v["name"] for v in pod["volumes"]}
    for container in pod["containers"]:
        assert container["command"][0] in ("collmark", "/usr/sbin/sshd")
        assert {m["name"] for m in container["volumeMounts"]} <= volumes
steps = read("github-driver-upgrade.yml")["jobs"]["acceptance"]["steps"]
scripts = [s["run"].split()[0] for s in steps if "run" in s and s["run"].startswith("scripts/")]
assert scripts and all(os.access(os.path.join(folder, "../..", s), os.X_OK) for s in scripts)
CHECK
    want_exit 0
    want_silent "$ERR"
else
    skip "no YAML for Python"
fi
# `run` reads nothing from stdin, so the arguments are what tells it apart from a shell.
launcher=(--full --hosts /etc/mpi/hostfile --out /results/acceptance)
want_match "$recipes/kubernetes-mpijob.yaml" \
    "args: \\[$(printf '%s, ' "${launcher[@]}" | sed 's/, $//')\\]"
want_match "$recipes/Dockerfile" '^COPY --from=build /out/ /$'

# ---- nodes -----------------------------------------------------------------------------------

begin "real nodes: one with a slow cable is named as the hostfile calls it"
if nodes_possible && nodes_mpi && nodes_up 4; then
    for k in 0 1 2 3; do
        echo "$(node_ip "$k") slots=1"
    done >"$WORK/nodes"
    node_shape 2 "tbf rate 5mbit burst 4kb latency 2000ms"
    mpi="--mca plm_rsh_agent $WORK/agent --mca oob_tcp_if_include eth0"
    run 60 nsenter -t "${NODE_PIDS[0]}" -n -u "$PWD/scripts/acceptance.sh" --hosts "$WORK/nodes" \
        --launcher "$MPIRUN" --launcher-args "$mpi --mca btl_tcp_if_include eth0" --backend host \
        --max-bytes 16K --timeout 20 --no-report --stages ranks,pairs --out "$WORK/real" \
        -- -n 4
    want_exit 5
    want_equal "$(tr '\n' ' ' <"$WORK/real/hosts/passed")" "10.77.0.1 10.77.0.2 10.77.0.4 " passed
    want_match "$WORK/real/hosts/reasons" $'^10.77.0.3\tpairs: slow: .* partners'
    want_nothing_left
else
    skip "no network namespaces, no ip and nsenter, or no Open MPI"
fi

finish
