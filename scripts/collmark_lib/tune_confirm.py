"""The rows of the file, and the pass that confirms them.

The figures that chose the rules flatter them: the best of many is partly luck. So the default and
the file as a whole are launched in turns once more, over all sizes, and each row is judged by
these launches alone: a launch's figure is the geometric mean over the sizes of the row. A row
that is not better beyond the spread again drops out.
"""
from dataclasses import dataclass, field

from .common import (EXIT_OK, EXIT_TRUNCATED, MEANING, Refused, count_text, say, size_text,
                     size_word)
from .stats import LEAST_LAUNCHES, median, plainly_slower
from .tune_bench import Stopped, geometric_mean, sweep
from .tune_choose import DEFAULT, LEAST_GAIN, Figures, proven
from .tune_rule import Rule, heading, rule_line
from .tune_search import FINE, GRID, OutOfTime

TUNED = "the file"


@dataclass
class Row:
    """A line of the file."""

    low: int        # bytes, both inclusive
    high: int
    rule: Rule
    sizes: list     # sizes asked for that it was chosen at
    measured: bool  # is it proven at one of them, or the model's guess?
    gain: float = None        # of the confirming pass: default over file, geometric mean
    worst: tuple = None       # (gain, size)
    why_not: str = ""         # the reason for which it dropped out
    judged: list = field(default_factory=list)  # sizes of the confirming pass within

    def remark(self):
        if self.gain is None:
            return "measured, not confirmed" if self.measured else "predicted, not confirmed"
        text = f"{self.gain:.2f} times as fast"
        if len(self.judged) > 1:
            text += f", {self.worst[0]:.2f} at {size_word(self.worst[1])}"
        return text if self.measured else f"predicted, {text}"


def rows_of(search):
    """The first match wins, so a row that follows on another one begins where that ends."""
    out = []
    smallest = min(search.figures.sizes(), default=0)
    for first, last, rule in search.result():
        sizes = [s for s in search.figures.sizes() if first <= s <= last]
        low = 0 if first == smallest else search.actual.get(first, first)
        if out and not [s for s in search.figures.sizes() if out[-1].high < s < first]:
            low = out[-1].high
        out.append(Row(low, last, rule, sizes,
                       any(proven(search.figures, rule, s) for s in sizes)))
    return out


def lines_of(scope, rows, remarks=True):
    return [rule_line(scope, r.low, r.high, r.rule, r.remark() if remarks else "")
            for r in rows if not r.why_not]


def text_of(scope, rows):
    """The rows as a file for the driver."""
    return "\n".join([heading(), *lines_of(scope, rows, remarks=False)]) + "\n"


class Confirmation:
    """Default and file in turns."""

    def __init__(self, search, rows):
        self.search, self.rows, self.figures = search, rows, Figures()
        self.launches = 0

    def launch_pair(self, text, sizes, factor, turn):
        for what in (DEFAULT, text) if turn % 2 == 0 else (text, DEFAULT):
            outcome = self.search.launch(what, sizes, factor)
            self.check(what, outcome)
            for size, time in outcome.times.items():
                self.figures.add(DEFAULT if what is DEFAULT else TUNED, size, time)

    def check(self, what, outcome):
        """Rules that are right one by one are right together; who finds otherwise must hear it."""
        if what is DEFAULT:
            self.search.check_default(outcome)
        elif outcome.exit not in (EXIT_OK, EXIT_TRUNCATED):
            raise Refused(f"the driver ended with code {outcome.exit} "
                          f"({MEANING[outcome.exit]}) with all rules together: {outcome.why}",
                          outcome.exit)

    def measure(self):
        """As many launches as the time allows; sizes of the coarse grid if fine ones take too
        long."""
        search, text = self.search, text_of(self.search.scope, self.rows)
        fine = sweep(search.grid[0], search.grid[-1], FINE)
        needs = 2 * search.launches * search.estimate(None, fine, FINE)
        factor = FINE if needs < search.bench.clock.left() else GRID
        sizes = fine if factor == FINE else search.grid
        say(f"{search.scope.collective}: confirming, {count_text(search.launches, 'launch')} "
            f"of default and file in turns, {len(sizes)} sizes")
        for turn in range(search.launches):
            self.launch_pair(text, sizes, factor, turn)
            self.launches += 1

    def pooled(self, rule, sizes):
        """One figure per launch."""
        return [geometric_mean(times)
                for times in zip(*(self.figures.of(rule, s) for s in sizes))]

    def judge(self, row, before):
        """`before`: the first size that belongs to this row."""
        sizes = [s for s in self.figures.sizes() if before <= s <= row.high
                 and self.figures.count(TUNED, s) and self.figures.count(DEFAULT, s)]
        if not sizes:
            return
        usual, mine = self.pooled(DEFAULT, sizes), self.pooled(TUNED, sizes)
        row.judged = sizes
        row.gain = median(usual) / median(mine)
        row.worst = min((self.figures.middle(DEFAULT, s) / self.figures.middle(TUNED, s), s)
                        for s in sizes)
        if row.gain < 1 - LEAST_GAIN:
            row.why_not = f"slower when confirmed ({row.gain:.2f})"
        elif row.gain < 1 + LEAST_GAIN or not plainly_slower(usual, mine):
            row.why_not = f"within the spread when confirmed ({row.gain:.2f})"

    def judge_all(self):
        end = None
        for row in self.rows:
            # Where two rows touch, the size belongs to the first.
            self.judge(row, row.low if end is None or row.low > end else end + 1)
            end = row.high

    def overall(self):
        """One line about all sizes, but those of rows that dropped out."""
        gone = {s for r in self.rows if r.why_not for s in r.judged}
        gains = [(self.figures.middle(DEFAULT, s) / self.figures.middle(TUNED, s), s)
                 for s in self.figures.sizes() if s not in gone
                 and self.figures.count(TUNED, s) and self.figures.count(DEFAULT, s)]
        if not gains:
            return []
        mean, worst = geometric_mean([g for g, _ in gains]), min(gains)
        return [f"confirmed, {count_text(self.launches, 'launch')} in turns: default over file "
                f"{mean:.2f} (geometric mean of {count_text(len(gains), 'size')}), worst "
                f"{worst[0]:.2f} at {size_text(worst[1])}"]


def confirm(search, rows):
    """Judge the rows. Lines about it; none if there were not enough launches to."""
    if not rows:
        return []
    search.phase(1.0)
    out = Confirmation(search, rows)
    try:
        out.measure()
    except OutOfTime:
        pass
    except Stopped as e:
        if str(e) == "signal":
            raise
    if out.launches < LEAST_LAUNCHES:
        search.tally.missed.append(f"the confirming pass: {count_text(out.launches, 'launch')} of "
                                   f"{search.launches}")
        return []
    out.judge_all()
    separate(search, rows)
    return out.overall() + [f"dropped: {text}" for text in dropped(rows)]


def separate(search, rows):
    """A row that began at the end of one that dropped out begins at its own first size."""
    before = None
    for row in rows:
        if before is not None and before.why_not and row.low == before.high and row.sizes:
            row.low = search.actual.get(row.sizes[0], row.sizes[0])
        before = row


def dropped(rows):
    return [f"{size_text(r.low)} to {size_text(r.high)}, {r.rule.text()}: {r.why_not}"
            for r in rows if r.why_not]
