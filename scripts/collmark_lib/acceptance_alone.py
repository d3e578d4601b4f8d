"""The stages in which each node works by itself: its ranks alone, then together.

Peers are the measure where no limit was given. Like is compared with like: a node with nodes, a
rank with the same rank of other nodes, a GPU with those beside it. (CPU ranks of one node share its
memory unevenly; the stage of pairs compares them.) Who seems slow runs again, and so do some that
do not, one after the other while nothing else runs, before anybody is accused.
"""
from concurrent.futures import ThreadPoolExecutor

from . import acceptance_judge as judge
from .acceptance_plan import NODES, RANKS, SHARE
from .acceptance_run import NO_BLAME, Job
from .common import EXIT_BELOW, EXIT_OK, EXIT_TRUNCATED


def ranks_stage(run, stage, nodes):
    seconds = run.left() * SHARE[RANKS]
    each_node(run, stage, [Job(run, [n], "all_reduce", run.plan.rank_options(run.ranks, seconds),
                               stage.name, n.name) for n in nodes], seconds)


def nodes_stage(run, stage, nodes):
    kinds = [(d, d, run.plan.sweep_options) for d in run.plan.mode.node_drivers]
    if run.plan.min_peak:
        kinds.append(("all_reduce", "peak", run.plan.peak_options))
    seconds = run.left() * SHARE[NODES] / len(kinds)
    for driver, name, options in kinds:
        if run.over():
            run.doubt(stage, [n for n in nodes if n.good()], EXIT_TRUNCATED,
                      f"{name}: not run: {run.why_over()}")
            return
        each_node(run, stage, [Job(run, [n], driver, options(seconds), stage.name,
                                   f"{n.name}-{name}") for n in nodes if n.good()], seconds)


def each_node(run, stage, jobs, seconds):
    """A job on each node, several at the same time, and those that are slow once more."""
    waves = -(-len(jobs) // run.parallel)
    with ThreadPoolExecutor(max_workers=run.parallel) as pool:
        outcomes = list(pool.map(lambda job: job.start(seconds / waves), jobs))
    stage.launches += len(jobs)
    for job, outcome in zip(jobs, outcomes):
        judge_node(run, stage, job.nodes[0], outcome)
    documents = {job.nodes[0].name: o.document for job, o in zip(jobs, outcomes)
                 if job.nodes[0].good()}
    retest(run, stage, {job.nodes[0].name: job for job in jobs}, documents, seconds)


def judge_node(run, stage, node, outcome):
    if outcome.document is not None and outcome.document.get("devices"):
        node.host = outcome.document["devices"][0]["hostname"]
    if outcome.code in NO_BLAME:
        run.doubt(stage, [node], outcome.code, outcome.why)
    elif outcome.code != EXIT_OK:
        run.accuse(stage, node, outcome.code, outcome.why)
    else:
        stage.codes.append(EXIT_OK)


def retest(run, stage, jobs, documents, seconds):
    """Who is slower than peers, and again beside some that are not, has failed. `documents`: name
    -> report."""
    suspects = slow_nodes(run, stage, documents)
    good = [name for name in documents if name not in suspects]
    again = {}
    for name in [*suspects, *good[:max(2, len(suspects) + 1)]] if suspects else []:
        if run.over():
            run.doubt(stage, [jobs[n].nodes[0] for n in suspects], EXIT_TRUNCATED,
                      f"{', '.join(suspects)}: seems slow, not run again: {run.why_over()}")
            return
        outcome = jobs[name].start(seconds)
        stage.launches += 1
        if outcome.code == EXIT_OK:
            again[name] = outcome.document
        else:
            judge_node(run, stage, jobs[name].nodes[0], outcome)
    for name, why in slow_nodes(run, stage, again).items():
        if name in suspects:
            run.accuse(stage, jobs[name].nodes[0], EXIT_BELOW, f"{why}, retested")


def groups_of_peers(run, stage, documents):
    """Lists of what may be compared: (name of the node, group) -> (speed, size)."""
    speeds = {name: judge.speeds(d) for name, d in documents.items()}
    if stage.name == NODES or len(speeds) >= judge.LEAST_PEERS:
        return [{(n, g): s[g] for n, s in speeds.items() if g in s} for g in range(run.ranks)]
    if any(d["machine"].get("backend") == "cuda" for d in documents.values()):
        return [{(n, g): value for n, s in speeds.items() for g, value in s.items()}]
    return []


def slow_nodes(run, stage, documents):
    """name of a node -> why it, or a rank of it, is slower than its peers."""
    share_cpus = any(judge.crowded(d) for d in documents.values())
    found = {}
    for group in groups_of_peers(run, stage, documents):
        size = max((size for _, size in group.values()), default=0)
        values = {unit: speed for unit, (speed, at) in group.items() if at == size}
        for (name, rank), why in judge.slow_ones(values, share_cpus).items():
            found.setdefault(name, why if stage.name == NODES else f"rank {rank} {why}")
    return found
