"""The search for better rules for one collective: which launches, in which order.

1. Every form once, over a coarse grid of sizes, with the default among them.
2. Halving: at each size the faster half goes on, then a quarter; what is left at no size ends.
3. Channels and chunks of the forms that are left: the corners of the space, and what the cost
   model then expects to be among the fastest.
4. The best two of each size, until they have enough launches to be judged.
5. Where the choice changes between two sizes of the grid: both sides at the sizes in between.

In a round each rule has one launch; each round begins with another one, and the default is in
every round. A round that would not end within its share of the time budget is not begun; what it
would have measured is named, and the model speaks for it.
"""
import math
import time
from dataclasses import dataclass, field

from .common import (EXIT_WRONG, MEANING, Refused, say, seconds_text, size_text)
from .stats import LEAST_LAUNCHES
from .tune_bench import Stopped, sweep
from .tune_choose import (DEFAULT, ROW_COST, Figures, assign, best_rules, ranges, survivors)
from .tune_model import Model
from .tune_rule import Rule, Scope, corners, forms, variants

GRID = 8            # factor from size to size of the coarse grid
FINE = 2            # and of the sizes in between
WORTH = 1.10        # a variant is measured if it should take at most that much of the best
VARIED_FROM = 4096  # bytes; below, an operation is one slot or less
FINALISTS = 2       # at each size
# Shares of the budget after which steps 1 to 3, 4, and 5 have to be over.
EXPLORE_SHARE, FINISH_SHARE, REFINE_SHARE = 0.35, 0.60, 0.70


class OutOfTime(Exception):
    """The share of this phase is used up."""


@dataclass
class Tally:
    """What became of the rules that were tried."""

    tried: set = field(default_factory=set)
    refused: dict = field(default_factory=dict)  # rule -> the driver's words
    failed: dict = field(default_factory=dict)
    wrong: dict = field(default_factory=dict)    # rule -> sizes with wrong data
    others: dict = field(default_factory=dict)   # rule -> sizes for which it is another one
    missed: list = field(default_factory=list)   # what was not measured, for want of time

    def barred(self, rule):
        return rule in self.refused or rule in self.failed or rule in self.wrong


def turned(items, by):
    at = by % len(items) if items else 0
    return items[at:] + items[:at]


class Search:
    def __init__(self, bench, lists, sizes, launches):
        """sizes: (first, last) in bytes; launches: how many a decision rests on."""
        self.bench, self.lists, self.launches = bench, lists, launches
        self.first, self.last = sizes
        self.grid = sweep(*sizes, GRID)
        self.figures, self.tally = Figures(), Tally()
        self.begin, self.total = time.monotonic(), bench.clock.left()
        self.until, self.rounds, self.numbers, self.seconds = math.inf, 0, {}, {}
        self.doing = ""  # what was told last
        self.facts, self.scope, self.actual, self.did = {}, None, {}, self.figures.did

    # ---- launches --------------------------------------------------------------------------

    def phase(self, share):
        """What follows has to end when this share of the budget has passed."""
        self.until = self.begin + self.total * share

    def estimate(self, what, sizes, factor):
        """Seconds of a launch, from the last like it."""
        known = self.seconds.get((what, factor)) or self.bench.longest
        return known * (1 if factor == GRID or (what, factor) in self.seconds
                        else max(1, len(sizes) / len(self.grid)))

    def launch(self, what, sizes, factor=GRID):
        """One more launch of a rule, a text or the default."""
        spot = (what, sizes[0], sizes[-1], factor)
        number = self.numbers.get(spot, 0) + 1
        key = self.bench.key_of(what, sizes, factor, number)
        if not self.bench.journal.has(key) and \
                time.monotonic() + self.estimate(what, sizes, factor) > self.until:
            raise OutOfTime
        outcome = self.bench.measure(what, sizes, factor, number)
        self.numbers[spot] = number
        self.seconds[what, factor] = outcome.seconds
        return outcome

    def take(self, rule, sizes, factor=GRID):
        """Launch a rule, and note what became of it."""
        if rule is not DEFAULT and self.tally.barred(rule):
            return
        outcome = self.launch(rule, sizes, factor)
        if rule is DEFAULT:
            self.check_default(outcome)
        else:
            self.note(rule, outcome)
        for size, value in outcome.times.items():
            self.figures.add(rule, size, value)

    def check_default(self, outcome):
        """Without the built-in choices there is nothing to compare with."""
        if outcome.wrong:
            raise Refused("wrong data by the built-in choices at "
                          + ", ".join(map(size_text, outcome.wrong)), EXIT_WRONG)
        if outcome.exit != 0:
            raise Refused(f"the driver ended with code {outcome.exit} ({MEANING[outcome.exit]}) "
                          f"by its built-in choices: {outcome.why or 'see its options'}",
                          outcome.exit)
        for asked, size in outcome.facts["actual"]:
            self.actual[asked] = size
        for asked, *did in outcome.facts["did"]:
            self.did[asked] = Rule(*did)

    def note(self, rule, outcome):
        tally = self.tally
        tally.tried.add(rule)
        if outcome.wrong:
            tally.wrong[rule] = outcome.wrong
            say(f"WRONG DATA by {rule.text()} at {', '.join(map(size_text, outcome.wrong))}")
            self.forget(rule)
        elif outcome.failed:
            tally.failed[rule] = f"exit {outcome.exit}, {outcome.why}"
            say(f"{rule.text()} failed: {tally.failed[rule]}")
            self.forget(rule)
        elif outcome.why:
            tally.refused[rule] = outcome.why
        if outcome.others:
            tally.others.setdefault(rule, set()).update(outcome.others)

    def forget(self, rule):
        """What failed once is not to be trusted where it did not."""
        for key in [k for k in self.figures.times if k[0] == rule]:
            del self.figures.times[key]

    def round(self, jobs, factor=GRID, name=""):
        """One launch of each (rule, sizes), the default over all their sizes among them."""
        jobs = [(r, s) for r, s in jobs if not self.tally.barred(r)]
        if not jobs:
            return
        low, high = min(s[0] for _, s in jobs), max(s[-1] for _, s in jobs)
        jobs = turned([(DEFAULT, sweep(low, high, factor)), *jobs], self.rounds)
        self.rounds += 1
        if name != self.doing:
            self.doing = name
            say(f"{self.scope.collective}: {name}, {len(jobs)} launches in turns, "
                f"{seconds_text(max(self.bench.clock.left(), 0))} left")
        for i, (rule, sizes) in enumerate(jobs):
            try:
                self.take(rule, sizes, factor)
            except OutOfTime:
                self.miss(name, [r for r, _ in jobs[i:] if r is not DEFAULT])
                raise

    def miss(self, name, rules):
        what = ", ".join(r.text() for r in rules[:4]) + (", ..." if len(rules) > 4 else "")
        self.tally.missed.append(f"{name}: {len(rules)} of the rules ({what})")

    # ---- the phases ------------------------------------------------------------------------

    def probe(self):
        """The first launch: what the built-in choices do, and where."""
        outcome = self.bench.measure(DEFAULT, self.grid, GRID, 1)
        self.check_default(outcome)
        self.facts = outcome.facts
        if self.facts["groups"] > 1:
            raise Refused("--split: several groups run at a time; tune without it")
        self.scope = Scope(*(self.facts[k] for k in ("collective", "ranks", "nodes")))
        self.grid = [s for s in self.grid if s in outcome.times]
        if not self.grid:
            raise Refused("no size of this range has a figure; see -b and -e")

    def span(self, sizes):
        """All sizes of the grid from the first to the last of these."""
        return [s for s in self.grid if min(sizes) <= s <= max(sizes)]

    def halve(self, part, least, name):
        left = survivors(self.figures, self.grid, part, least)
        self.round([(r, self.span(s)) for r, s in left.items()], name=name)

    def model(self):
        """Of all that was measured; what the default did counts for the form that it took."""
        points = []
        for (rule, size), _ in self.figures.times.items():
            form = self.did.get(size) if rule is DEFAULT else rule
            if form is not None:
                points.append((form, size, self.figures.middle(rule, size)))
        return Model(points)

    def vary(self):
        """Channels and chunks of the forms that are left."""
        left = survivors(self.figures, self.grid, 1 / 4, FINALISTS)
        large = {r: [s for s in sizes if s >= VARIED_FROM] for r, sizes in left.items()}
        large = {r: self.span(sizes) for r, sizes in large.items() if sizes}
        self.round([(v, s) for r, s in large.items() for v in corners(r)],
                   name="corners of channels x chunk")
        model = self.model()
        jobs = [(v, s) for r, s in large.items() for v in variants(r)
                if not self.figures.count(v, s[-1]) and self.promises(model, v, s)]
        self.round(jobs, name="variants that the model expects to be fast")

    def promises(self, model, rule, sizes):
        """Should the rule be among the fastest at one of the sizes?"""
        for size in sizes:
            guess, best = model.predict(rule, size), best_rules(self.figures, size, 1)
            if guess and best and guess[0] <= WORTH * self.figures.middle(best[0], size):
                return True
        return False

    def finalists(self):
        """Rule -> sizes of the grid at which it is among the best, or about as good: rules that
        are good at many sizes make few rows."""
        best = {s: best_rules(self.figures, s, FINALISTS) for s in self.grid}
        out = {}
        for rule in sorted({r for rules in best.values() for r in rules}):
            out[rule] = [s for s, rules in best.items() if rule in rules or self.ties(rule, s)]
        return out

    def ties(self, rule, size):
        mine, best = self.figures.middle(rule, size), best_rules(self.figures, size, 1)
        return bool(mine and best) and mine <= (1 + ROW_COST) * self.figures.middle(best[0], size)

    def finish(self):
        """Enough launches of the finalists."""
        for _ in range(2 * self.launches):  # finalists change as their figures become better
            jobs = [(rule, self.span(sizes)) for rule, sizes in self.finalists().items()
                    if any(self.figures.count(rule, s) < self.launches for s in sizes)]
            if not jobs:
                return
            self.round(jobs, name="finalists")

    def explore(self):
        """Which rules may be worth it."""
        found = forms(self.lists, self.scope.collective, self.facts["one_memory"])
        self.round([(r, self.grid) for r in found], name="every form")
        self.halve(1 / 2, FINALISTS + 1, "the faster half")
        self.halve(1 / 4, FINALISTS, "the fastest quarter")
        self.vary()

    def search(self):
        for share, step in ((EXPLORE_SHARE, self.explore), (FINISH_SHARE, self.finish)):
            self.phase(share)
            try:
                step()
            except OutOfTime:
                say(f"the time for '{self.doing}' is over")

    # ---- decisions -------------------------------------------------------------------------

    def predictor(self):
        model = self.model()

        def time_of(rule, size):
            if self.figures.count(rule, size):
                return self.figures.middle(rule, size), 0.0
            if rule is DEFAULT:
                near = [s for s in self.did if s <= size]
                return model.predict(self.did[max(near)], size) if near else None
            return model.predict(rule, size)

        def predict(rule, size):
            if size in self.tally.others.get(rule, ()):
                return None
            mine, usual = time_of(rule, size), time_of(DEFAULT, size)
            if not mine or not usual or mine[0] <= 0:
                return None
            return usual[0] / mine[0], mine[1] + usual[1]

        return predict

    def contenders(self):
        return [r for r in self.figures.rules()
                if any(self.figures.count(r, s) >= LEAST_LAUNCHES for s in self.figures.sizes())]

    def decide(self):
        """(sizes, rule of each size): those of the grid, and between them where it changes."""
        predict, rules = self.predictor(), self.contenders()
        sizes = sorted(set(self.grid) | set(self.figures.sizes()))
        coarse = assign(self.figures, rules, sizes, predict)
        more = [s for between, _ in self.changes(sizes, coarse) for s in between]
        sizes = sorted({*sizes, *more})
        return sizes, assign(self.figures, rules, sizes, predict)

    @staticmethod
    def changes(sizes, assignment):
        """(sizes in between, rules on both sides) where the choice changes in a wide gap."""
        out = []
        for low, high, below, above in zip(sizes, sizes[1:], assignment, assignment[1:]):
            between = sweep(low, high - 1, FINE)[1:]
            if below != above and between:
                out.append((between, {below, above}))
        return out

    def lacking(self, rule, sizes):
        others = self.tally.others.get(rule, ())
        return any(self.figures.count(rule, s) < self.launches for s in sizes if s not in others)

    def wanted(self):
        """[(factor, [(rule, sizes)])]: what the choice rests on and was not measured enough."""
        sizes, assignment = self.decide()
        on_grid = {}
        for size, rule in zip(sizes, assignment):
            if rule is not DEFAULT and size in self.grid and self.lacking(rule, [size]):
                on_grid.setdefault(rule, []).append(size)
        out = [(GRID, [(r, self.span(s)) for r, s in on_grid.items()])] if on_grid else []
        coarse = [r for s, r in zip(sizes, assignment) if s in self.grid]
        for between, sides in self.changes(self.grid, coarse):
            jobs = [(r, between) for r in sorted(sides - {DEFAULT}) if self.lacking(r, between)]
            if jobs:
                out.append((FINE, jobs))
        return out

    def refine(self):
        """Measure what was guessed, until the choice rests on figures alone."""
        self.phase(REFINE_SHARE)
        try:
            for _ in range(2 * self.launches):
                rounds = self.wanted()
                for factor, jobs in rounds:
                    self.round(jobs, factor, "crossovers, and what was only expected so far")
                if not rounds:
                    return
        except OutOfTime:
            say("some crossovers are where the model has them")

    def result(self):
        """[(first size, last size, rule)], sizes as asked for; the range of each is measured or,
        where the time did not suffice, predicted."""
        sizes, assignment = self.decide()
        return [(sizes[a], sizes[b], rule) for a, b, rule in ranges(sizes, assignment)]


def run_phases(search):
    """All up to the rules; whether a request ended it. Budget and requests both leave figures."""
    try:
        search.probe()
        search.search()
        search.refine()
    except Stopped as e:
        if str(e) == "signal" or search.scope is None:
            raise
        search.tally.missed.append("the rest of the search, as a launch was cut off by the budget")
