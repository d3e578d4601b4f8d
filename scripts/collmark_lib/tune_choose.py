"""Which rule for which size: pure functions of what was measured.

The default stays at a size unless a rule is better beyond the spread: by the plain rule of
collmark compare (stats.py; each launch of the default is slower than each of the rule, and the
medians are apart by a multiple of the noise), and by LEAST_GAIN.

A line of the file costs as much as ROW_COST at one size: a rule that is best here and there does
not get a line for each, and where two are about equal no line begins. Between sizes at which it
wins, a rule may go on where it is as good as the default. The best such assignment is found by
dynamic programming over the sizes.
"""
import math

from .stats import LEAST_LAUNCHES, median, plainly_slower

LEAST_GAIN = 0.03
ROW_COST = 0.05
TIE_COST = 0.001  # of going on where nothing is gained
SAFE_ERRORS = 2   # a predicted gain counts if it exceeds this multiple of the model's error

DEFAULT = None


class Figures:
    """Times in microseconds of one collective: rule (None: the default) and size -> launches."""

    def __init__(self):
        self.times = {}
        self.did = {}  # size -> what the default does there, as a rule

    def is_default(self, rule, size):
        """Is the rule what the default does anyway? Then there is nothing to gain by it."""
        return self.did.get(size) == rule

    def add(self, rule, size, time):
        self.times.setdefault((rule, size), []).append(time)

    def of(self, rule, size):
        return self.times.get((rule, size), [])

    def middle(self, rule, size):
        times = self.of(rule, size)
        return median(times) if times else None

    def count(self, rule, size):
        return len(self.of(rule, size))

    def rules(self):
        return sorted({r for r, _ in self.times if r is not DEFAULT})

    def sizes(self):
        return sorted({s for _, s in self.times})

    def gain(self, rule, size):
        """Default over rule, of medians; None: not measured."""
        mine, usual = self.middle(rule, size), self.middle(DEFAULT, size)
        return usual / mine if mine and usual else None


def proven(figures, rule, size):
    """Is the rule better than the default beyond the spread?"""
    mine, usual = figures.of(rule, size), figures.of(DEFAULT, size)
    if figures.is_default(rule, size):
        return False
    if min(len(mine), len(usual)) < LEAST_LAUNCHES:
        return False
    return figures.gain(rule, size) >= 1 + LEAST_GAIN and plainly_slower(usual, mine)


def cost_of_prediction(gain, error):
    """Of a rule at a size at which it, or the default, was not measured."""
    if gain > 1 + max(LEAST_GAIN, SAFE_ERRORS * error):
        return -math.log(gain)
    return TIE_COST if gain > 1 - LEAST_GAIN else math.inf


def cost(figures, rule, size, predict):
    """What is lost against the default at a size, as a logarithm of times; inf: not to be taken."""
    if rule is DEFAULT:
        return 0.0
    if figures.is_default(rule, size):
        return TIE_COST
    if proven(figures, rule, size):
        return -math.log(figures.gain(rule, size))
    if figures.count(rule, size) and figures.count(DEFAULT, size):
        loss = -math.log(figures.gain(rule, size))
        return TIE_COST + max(loss, 0) if loss < math.log(1 + LEAST_GAIN) else math.inf
    guess = predict(rule, size)
    return math.inf if guess is None else cost_of_prediction(*guess)


def assign(figures, rules, sizes, predict):
    """The rule of each size, None for the default; `predict` gives (gain, error) or None."""
    states = [DEFAULT, *rules]
    best = {s: (0.0 if s is DEFAULT else ROW_COST, None) for s in states}
    trail = []
    for i, size in enumerate(sizes):
        here = {}
        for state in states:
            own = cost(figures, state, size, predict)
            before = min(states, key=lambda s, to=state: entry(best, s, to, i))
            here[state] = (entry(best, before, state, i) + own, before)
        trail.append(here)
        best = here
    out, state = [], min(states, key=lambda s: best[s][0])
    for here in reversed(trail):
        out.append(state)
        state = here[state][1]
    return out[::-1]


def entry(best, before, state, i):
    """The cost so far if `state` follows `before`. At the first size nothing is before."""
    if i == 0:
        return best[state][0] if before is state else math.inf
    return best[before][0] + (0 if before is state or state is DEFAULT else ROW_COST)


def ranges(sizes, assignment):
    """[(first index, last index, rule)] of runs that are not the default."""
    out = []
    for i, rule in enumerate(assignment):
        if rule is DEFAULT:
            continue
        if out and out[-1][2] == rule and out[-1][1] == i - 1:
            out[-1] = (out[-1][0], i, rule)
        else:
            out.append((i, i, rule))
    assert all(b < len(sizes) for _, b, _ in out)
    return out


def best_rules(figures, size, keep):
    """The `keep` fastest rules at a size, the fastest first, without what the default does."""
    measured = [r for r in figures.rules()
                if figures.count(r, size) and not figures.is_default(r, size)]
    return sorted(measured, key=lambda r: figures.middle(r, size))[:keep]


def survivors(figures, sizes, part, least):
    """Rule -> sizes at which it is among the fastest `part` of the rules, of `least` at least."""
    out = {}
    for size in sizes:
        measured = [r for r in figures.rules() if figures.count(r, size)]
        keep = max(least, math.ceil(len(measured) * part))
        for rule in best_rules(figures, size, keep):
            out.setdefault(rule, []).append(size)
    return out
