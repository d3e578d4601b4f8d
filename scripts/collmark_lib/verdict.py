"""The verdict on each row of two samples, and on all of them.

same       not changed, or not beyond limit, noise and chance
improved   faster beyond all three
regressed  slower beyond all three
missing    NEW has no such row: fails
new        only NEW has it: nothing to hold it against
unusable   wrong data in a launch, or figures of fewer launches than a verdict takes: fails

Slower and faster are judged alike, so exchanging OLD and NEW exchanges the words.
"""
from dataclasses import dataclass, field
from typing import Optional

from . import stats
from .common import EXIT_BELOW, EXIT_OK, EXIT_USAGE, count_text, size_text
from .result import Row

SAME, IMPROVED, REGRESSED = "same", "improved", "regressed"
MISSING, NEW, UNUSABLE = "missing", "new", "unusable"
FAILING = (REGRESSED, MISSING, UNUSABLE)
ORDER = (REGRESSED, MISSING, UNUSABLE, IMPROVED, NEW, SAME)


@dataclass
class Limits:
    bandwidth: float = 0.05    # loss of bandwidth that counts, as a part
    latency: float = 0.15      # more time that counts, as a part
    latency_up_to: int = 1 << 16  # bytes; larger rows are judged by bandwidth
    alpha: float = 0.05        # false alarms among comparisons of equals

    def of(self, latency):
        return self.latency if latency else self.bandwidth

    def is_latency(self, key, row):
        return key.bytes <= self.latency_up_to or row.work is None


@dataclass
class Judged:
    key: tuple
    old: Optional[Row]
    new: Optional[Row]
    latency: bool = True
    verdict: str = SAME
    why: str = ""
    change: Optional[float] = None  # of time (latency) or bandwidth, as a part; above 0: more
    noise: Optional[float] = None
    p: Optional[float] = None       # after correction, of the direction that it has changed in

    def figures(self):
        """Medians as text, old and new."""
        return [self.figure(row) for row in (self.old, self.new)]

    def figure(self, row):
        if row is None or not row.times:
            return "-"
        middle = stats.median(row.times)
        return f"{middle:.2f} us" if self.latency else f"{row.bandwidth(middle):.3f} GB/s"


@dataclass
class Comparison:
    rows: list
    method: list = field(default_factory=list)  # how it was judged, in sentences

    def having(self, *verdicts):
        return [r for r in self.rows if r.verdict in verdicts]

    def exit_code(self):
        if not self.having(SAME, IMPROVED, REGRESSED):
            return EXIT_USAGE
        return EXIT_BELOW if self.having(*FAILING) else EXIT_OK

    def in_short(self):
        counts = [f"{len(self.having(v))} {v}" for v in ORDER if self.having(v)]
        return ", ".join(counts) or "no rows"


def unusable_reason(side, row):
    if row.wrong:
        return f"wrong data in {count_text(row.wrong, 'launch')} of {side}"
    if len(row.times) < stats.LEAST_LAUNCHES:
        return (f"{side} has figures of {count_text(len(row.times), 'launch')}, it takes "
                f"{stats.LEAST_LAUNCHES}" + (f" ({row.why})" if row.why else ""))
    return None


def sort_out(key, old, new, limits):
    """A row, with its verdict if that takes no statistics; else verdict None."""
    out = Judged(key, old, new, limits.is_latency(key, old or new), None)
    if new is None:
        out.verdict, out.why = MISSING, "not in NEW"
        return out
    if old is None:
        out.verdict, out.why = NEW, "not in OLD"
        return out
    reasons = [unusable_reason("OLD", old), unusable_reason("NEW", new)]
    reasons = [r for r in reasons if r]
    if reasons:
        out.verdict, out.why = UNUSABLE, "; ".join(reasons)
    return out


def measure(row):
    """Change and noise of a row that has figures on both sides."""
    before, after = stats.median(row.old.times), stats.median(row.new.times)
    row.change = after / before - 1 if row.latency else before / after - 1
    row.noise = max(stats.noise(row.old.times), stats.noise(row.new.times))


def amount(row):
    """How far the slower side is from the faster one, as the limit of the row counts it."""
    a, b = stats.median(row.old.times), stats.median(row.new.times)
    return max(a, b) / min(a, b) - 1 if row.latency else 1 - min(a, b) / max(a, b)


def probabilities(rows, library):
    """One-sided p of each row in the direction of its change, corrected over all rows: once for
    'slower', once for 'faster'. In the other direction its p is taken as 1, which is more than it
    would be: the correction errs towards 'same' only."""
    for sign in (1, -1):
        moved = [sign * stats.median(r.new.times) > sign * stats.median(r.old.times)
                 for r in rows]
        ps = [stats.slower_p(library, *((r.new.times, r.old.times)[::sign])) if m else 1.0
              for r, m in zip(rows, moved)]
        for row, m, p in zip(rows, moved, stats.adjusted(ps)):
            if m or row.p is None:
                row.p = p


def too_coarse(row, count, alpha):
    """Even launches that do not overlap would not count among so many rows."""
    return stats.least_p(len(row.old.times), len(row.new.times)) * count > alpha


def by_chance(row, count, alpha):
    """Why the change of a row may be chance, or None."""
    if row.p is not None and row.p <= alpha:
        return None
    sides = [row.new.times, row.old.times]
    if stats.median(sides[0]) < stats.median(sides[1]):
        sides.reverse()
    plain = row.p is None or too_coarse(row, count, alpha)
    if plain and stats.plainly_slower(*sides):
        return None
    if row.p is not None and not plain:
        return f"not proven, p {row.p:.2g}"
    return "not proven, launches overlap or noise is too near"


def judge(row, count, limits):
    """Verdict of a row that has figures on both sides."""
    limit = limits.of(row.latency)
    beyond = amount(row)
    row.verdict = SAME
    if beyond <= limit:
        row.why = "" if beyond == 0 else "within the limit"
    elif beyond <= row.noise:
        row.why = "within the noise"
    else:
        row.why = by_chance(row, count, limits.alpha)
    if row.why is None:
        slower = stats.median(row.new.times) > stats.median(row.old.times)
        row.verdict, row.why = (REGRESSED if slower else IMPROVED), ""
    if row.old.plans != row.new.plans:
        plans = [" | ".join(sorted(p)) for p in (row.old.plans, row.new.plans)]
        row.why = "; ".join(t for t in (row.why, " -> ".join(plans)) if t)


def hidden(rows, limits):
    """What these launches could not have shown, in words, or None."""
    noisy = [r.noise for r in rows if r.noise > limits.of(r.latency)]
    if not noisy:
        return None
    return (f"the noise of {len(noisy)} of {count_text(len(rows), 'row')} is above the limit, "
            f"{stats.median(noisy) * 100:.0f} % in the middle: smaller changes of these cannot be "
            f"seen; quieter launches, or -I 1, may help")


def how(rows, library, version, limits):
    """The method in words."""
    out = [f"a change counts beyond {limits.bandwidth * 100:g} % of bandwidth (above "
           f"{size_text(limits.latency_up_to)}) or {limits.latency * 100:g} % of time (up to "
           f"there), and beyond the row's noise"]
    coarse = [r for r in rows if library is None or too_coarse(r, len(rows), limits.alpha)]
    if library is not None:
        out.append(f"rank-sum test (SciPy {version}), one-sided, Benjamini-Hochberg over "
                   f"{len(rows)} rows, p at most {limits.alpha:g}")
    if coarse:
        reason = "SciPy is not installed" if library is None else (
            f"too few launches for the test to find a single row among {len(rows)}")
        least = min(stats.margin(len(r.old.times), len(r.new.times)) for r in coarse)
        most = max(stats.margin(len(r.old.times), len(r.new.times)) for r in coarse)
        times = f"{least:g}" if least == most else f"{least:g} to {most:g}"
        out.append(f"plain rule ({reason}): no launch of one side is as fast as any of the other, "
                   f"and the change is more than {times} times the noise")
    return out


def compare(old_rows, new_rows, limits, library="scipy"):
    """The comparison of two Key -> Row tables. `library`: "scipy", or None for the plain rule."""
    rows = [sort_out(key, old_rows.get(key), new_rows.get(key), limits)
            for key in sorted(set(old_rows) | set(new_rows))]
    measured = [r for r in rows if r.verdict is None]
    tests, version = stats.scipy_stats() if library and measured else (None, None)
    for row in measured:
        measure(row)
    if tests is not None:
        probabilities(measured, tests)
    for row in measured:
        judge(row, len(measured), limits)
    if not measured:
        return Comparison(rows)
    said = [*how(measured, tests, version, limits), hidden(measured, limits)]
    return Comparison(rows, [t for t in said if t])
