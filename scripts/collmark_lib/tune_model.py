"""The cost model: what was measured says what the rest should take.

    time = alpha + beta x bytes + gamma x steps

alpha is what any operation takes, beta a byte, gamma a step: a slot that is filled, announced and
read. bytes / (chunk x channels), rounded up, slots follow one another. All variants of a form
(algorithm, mode, protocol) share the three, which is how a few of them tell about the others.

Caches make beta grow with the size, so a prediction takes only points whose size is within a
factor of 64. Coefficients are fitted by least squares of the relative error, none below 0: of all
subsets of the three, the best whose coefficients are all positive. (For three unknowns that is
exact, and needs no library.) `error` is the root of the mean square of the relative errors.
"""
import itertools
import math

from .tune_rule import USUAL_SLOT

WINDOW = 64
NEGLIGIBLE = 1e-12


def steps(rule, size):
    if rule.mode != "copy":
        return 0
    return math.ceil(size / ((rule.chunk or USUAL_SLOT) * rule.channels))


def solve(matrix, right):
    """x of matrix x = right by elimination; None: no single one."""
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        if abs(rows[pivot][i]) < NEGLIGIBLE:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(n):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def least_squares(features, used):
    """(coefficients, error) with only the features numbered in `used`; None: undetermined. Each
    row of `features` is divided by its time, so that every time is 1."""
    scale = [max(abs(f[i]) for f in features) for i in used]
    if not all(scale):
        return None
    rows = [[f[i] / s for i, s in zip(used, scale)] for f in features]
    matrix = [[sum(r[i] * r[j] for r in rows) for j in range(len(used))] for i in range(len(used))]
    x = solve(matrix, [sum(r[i] for r in rows) for i in range(len(used))])
    if x is None or min(x) < 0:
        return None
    error = math.sqrt(sum((1 - sum(a * b for a, b in zip(x, r))) ** 2 for r in rows) / len(rows))
    full = [0.0] * 3
    for i, value, s in zip(used, x, scale):
        full[i] = value / s
    return full, error


def fit(points):
    """((alpha, beta, gamma), error) of points (rule, bytes, time); None: there are too few."""
    if len(points) < 2:
        return None
    features = [(1 / t, size / t, steps(rule, size) / t) for rule, size, t in points]
    best = None
    for n in (1, 2, 3):
        for used in itertools.combinations(range(3), n):
            found = least_squares(features, used) if n < len(points) else None
            if found is not None and (best is None or found[1] < best[1] - NEGLIGIBLE):
                best = found
    return best


class Model:
    """Predictions from the points of one collective on one machine."""

    def __init__(self, points):
        """points: (rule, bytes, microseconds)"""
        self.forms = {}
        for rule, size, time in points:
            self.forms.setdefault(rule.form, []).append((rule, size, time))

    def predict(self, rule, size):
        """(microseconds, error), or None."""
        near = [p for p in self.forms.get(rule.form, [])
                if size / WINDOW <= p[1] <= size * WINDOW]
        found = fit(near)
        if found is None:
            return None
        alpha, beta, gamma = found[0]
        return alpha + beta * size + gamma * steps(rule, size), found[1]
