"""The stages in which nodes work together: pairs of them, then all.

If a launch breaks and its messages name who died or was waited for, these nodes have failed and it
starts anew without them. If nobody is named, nothing is known of any of them.
"""
from . import acceptance_judge as judge
from .acceptance_plan import PAIRS, SHARE
from .acceptance_run import NO_BLAME, Job, broken
from .common import EXIT_OK, EXIT_SYSTEM, EXIT_TRUNCATED, count_text

TRIES = 4  # of a job, each without those that broke the one before


class Together:
    """A driver on all nodes that are left; `launch` may be called again for another attempt."""

    def __init__(self, run, stage, driver, name, options):
        self.run, self.stage, self.driver, self.name = run, stage, driver, name
        self.options, self.nodes, self.job = options, run.good(), None

    def launch(self, seconds):
        """An Outcome of those nodes that are left in `nodes`; None: there is nothing to judge
        beyond what has been noted."""
        for _ in range(TRIES):
            if self.run.over():
                self.run.doubt(self.stage, self.nodes, EXIT_TRUNCATED,
                               f"{self.name}: not run: {self.run.why_over()}")
                return None
            if self.job is None:
                self.job = Job(self.run, self.nodes, self.driver, self.options(seconds),
                               self.stage.name, self.folder())
            outcome = self.job.start(seconds)
            self.stage.launches += 1
            guilty = self.guilty(outcome)
            if not guilty:
                return outcome
            for node in guilty:
                self.run.accuse(self.stage, node, outcome.code, f"{self.name}: {outcome.why}")
            self.nodes, self.job = [n for n in self.nodes if n not in guilty], None
            if len(self.nodes) < 2:
                break
        self.stage.notes.append(f"{self.name}: not run again with "
                                f"{count_text(len(self.nodes), 'node')}")
        return None

    def folder(self):
        all_of_them = len(self.nodes) == len(self.stage.nodes)
        return self.name if all_of_them else f"{self.name}-{len(self.nodes)}-nodes"

    def guilty(self, outcome):
        """Nodes that broke the launch. Not if they are most of them: then it is something else."""
        if not broken(outcome) or len(self.nodes) < 2:
            return []
        hosts, found = [n.host for n in self.nodes], []
        for rank, host in outcome.names:
            if hosts.count(host) == 1:
                found.append(self.nodes[hosts.index(host)])
            elif rank < len(self.nodes) * self.run.ranks:  # several have that host name
                found.append(self.nodes[rank // self.run.ranks])
        found = [n for n in self.nodes if n in found]
        return found if 2 * len(found) <= len(self.nodes) else []

    def failed(self, outcome):
        """Something is wrong, and nobody is named. One node alone is to blame for what it does."""
        code = outcome.code if outcome.code != EXIT_OK else EXIT_TRUNCATED
        why = f"{self.name}: {outcome.why or 'not finished'}"
        if len(self.nodes) == 1 and code not in NO_BLAME:
            self.run.accuse(self.stage, self.nodes[0], code, why)
        else:
            self.run.doubt(self.stage, self.nodes, code, why)


# ---- all ------------------------------------------------------------------------------------

def all_stage(run, stage, _nodes):
    drivers = run.plan.mode.drivers
    for number, driver in enumerate(drivers):
        together = Together(run, stage, driver, driver, run.plan.sweep_options)
        if len(together.nodes) * run.ranks < 2:
            stage.notes.append(f"{', '.join(drivers[number:])}: not run: no two ranks are left")
            return
        seconds = run.left() / (len(drivers) - number) / run.plan.launches
        for _ in range(run.plan.launches):
            outcome = together.launch(seconds)
            if outcome is not None and outcome.code == EXIT_OK:
                stage.codes.append(EXIT_OK)
                continue
            if outcome is not None:
                together.failed(outcome)
            break


# ---- pairs ----------------------------------------------------------------------------------

def pairs_stage(run, stage, nodes):
    many = len(nodes) > 1
    stage.what = f"pairs of {'nodes' if many else 'ranks'}"
    if not many and len(run.nodes) > 1:
        stage.notes.append("not run: one node is left, and nobody to pair it with")
        return
    search = Together(run, stage, "all_reduce", "find-bad", run.plan.pair_options)
    outcome = search.launch(run.left() * SHARE[PAIRS])
    if outcome is None:
        return
    pairs = (outcome.document or {}).get("pairs")
    if pairs is None or not pairs.get("complete"):
        search.failed(outcome)
    elif many and len(pairs["units"]) != len(search.nodes):
        run.doubt(stage, search.nodes, EXIT_SYSTEM,
                  f"the job saw {count_text(len(pairs['units']), 'unit')} where "
                  f"{len(search.nodes)} nodes are listed: are some the same machine?")
    else:
        judge_pairs(run, stage, search.nodes, pairs)
        stage.codes.append(outcome.code)  # that of links too


def judge_pairs(run, stage, nodes, pairs):
    bad, doubtful, links = judge.find_bad(pairs)
    many = len(nodes) > 1
    if not pairs["compared"]:
        stage.notes.append("two cannot be compared: both are right, which is slow is not known")
    owner = owners(nodes, pairs) if many else dict.fromkeys(range(len(pairs["units"])), nodes[0])
    for unit, (code, why) in bad.items():
        rank = "" if many else f"{pairs['units'][unit]['name']} "
        run.accuse(stage, owner[unit], code, rank + why)
    stage.reasons += [f"link {link}" for link in links]
    for unit, why in doubtful.items():
        owner[unit].unknown.append((stage.name, why))


def owners(nodes, pairs):
    """unit -> node. By host names if each is on one node, else by their order."""
    hosts, units = [n.host for n in nodes], [u["host"] for u in pairs["units"]]
    if len(set(hosts)) == len(hosts) and sorted(hosts) == sorted(units):
        return {u: nodes[hosts.index(host)] for u, host in enumerate(units)}
    return dict(enumerate(nodes))
