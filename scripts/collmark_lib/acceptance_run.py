"""An acceptance while it runs: its nodes, its stages, the time that is left, and how a job of it is
started. What the stages do is in acceptance_alone.py and acceptance_joint.py.

Each job is a folder of `collmark run`: run.json, attempt-N with report and messages.
"""
import time
from dataclasses import dataclass, field

from . import acceptance_judge as judge
from .acceptance_plan import WHAT
from .common import (EXIT_OK, EXIT_SYSTEM, EXIT_TIMEOUT, EXIT_TRUNCATED, EXIT_UNSUPPORTED,
                     EXIT_USAGE, Refused, count_text, say, seconds_text, worst)
from .run import Folder, attempt, full_command

START_S = 10.0     # that a launcher may take to start and to end a job
LEAST_S = 1.0      # with less left nothing is begun
NO_BLAME = (EXIT_USAGE, EXIT_TRUNCATED, EXIT_UNSUPPORTED)  # of a node: it is unknown, not failed


@dataclass
class Stage:
    name: str
    what: str = ""
    codes: list = field(default_factory=list)     # of what was judged; none: it did not run
    reasons: list = field(default_factory=list)   # what was found, in words
    notes: list = field(default_factory=list)     # what a reader of the verdict has to know
    nodes: list = field(default_factory=list)     # names of those that took part
    launches: int = 0
    seconds: float = 0.0

    def code(self):
        return worst(self.codes) if self.codes else None

    def found(self, code, reason):
        self.codes.append(code)
        if reason not in self.reasons:
            self.reasons.append(reason)

    def word(self):
        """How it ended."""
        code = self.code()
        if code is None:
            return "not run"
        if code == EXIT_OK:
            return "passed"
        return "incomplete" if code in NO_BLAME else "failed"


class Run:
    """All stages over all nodes. The verdict is in `stages` and in what nodes carry."""

    def __init__(self, nodes, ranks, launcher, plan, options):
        self.nodes, self.ranks, self.launcher, self.plan = nodes, ranks, launcher, plan
        self.place, self.parallel = options.out, options.parallel
        self.requests = None  # launch.Requests, while stages run
        self.begin = time.monotonic()
        self.deadline = self.begin + options.time_budget
        self.stages = []

    def good(self):
        return [n for n in self.nodes if n.good()]

    def left(self):
        return self.deadline - time.monotonic()

    def over(self):
        """Is there no time for another launch, or no wish?"""
        return self.left() < LEAST_S or bool(self.requests.seen)

    def stage(self, name, call):
        """Run one stage, or say why it cannot be."""
        stage, before = Stage(name, WHAT[name]), time.monotonic()
        self.stages.append(stage)
        nodes = self.good()
        stage.nodes = [n.name for n in nodes]
        if self.over():
            self.doubt(stage, nodes, EXIT_TRUNCATED, f"not run: {self.why_over()}")
        elif not nodes:
            stage.notes.append("not run: no node is left")
        else:
            say(f"{name}: begins with {count_text(len(nodes), 'node')}")
            call(self, stage, nodes)
        stage.seconds = time.monotonic() - before
        say(f"{name}: {stage.word()}, {seconds_text(stage.seconds)}")

    def why_over(self):
        return "interrupted" if self.requests.seen else "the time budget is spent"

    def accuse(self, stage, node, code, why):
        """The node has failed; it takes no part in what comes after."""
        stage.found(code, f"{node.name}: {why}")
        node.failed.append((stage.name, code, why))

    def doubt(self, stage, nodes, code, why):
        """Nothing is known of these nodes, good or bad."""
        stage.found(code, why)
        for node in nodes:
            node.unknown.append((stage.name, why))


class Job:
    """One command on some nodes, with its folder. It may be started again: another attempt."""

    def __init__(self, run, nodes, driver, options, *place):
        own = [run.plan.program(driver), *run.launcher.options(run.ranks), *options]
        self.run, self.nodes = run, nodes
        self.command = [*run.launcher.words(nodes, run.ranks), *full_command(None, own)]
        self.place = run.place.joinpath(*place)
        self.folder = None

    def start(self, seconds):
        """An Outcome. Blocks until the job ended, which takes about `seconds` at most unless its
        launcher or a rank hangs. Refused: the driver does not understand its options."""
        run = self.run
        if self.folder is None:
            self.folder = Folder.fresh(self.place, self.command)
        limit = seconds + run.plan.timeout + START_S
        own = time.monotonic() + limit
        entry = attempt(self.folder, run.requests, min(own, run.deadline))
        out = judge.outcome_of(entry, self.place / f"attempt-{entry['attempt']}",
                               run.ranks * len(self.nodes), limit if own <= run.deadline else None)
        if out.code == EXIT_USAGE:
            raise Refused(f"{self.place.name}: {out.why}")
        return out


def broken(outcome):
    """Did processes of the job die, or not come back?"""
    return outcome.code in (EXIT_SYSTEM, EXIT_TIMEOUT)
