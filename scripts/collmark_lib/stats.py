"""Statistics of a comparison: noise, the rank-sum test, and what to do without it.

A sample is one figure per launch: iterations of one launch share its memory, its placement and its
neighbours, so they are not independent, and launches are what is counted.

Noise of a row: three times the median absolute deviation (two standard deviations of normal noise)
or the distance between the quartiles, whichever is larger, of the noisier side, in parts of its
median. No row is judged changed within its noise.

A change counts if the one-sided rank-sum test says so after Benjamini and Hochberg's correction
over all rows. With 5 + 5 launches no p is below 1/252, so among more than 12 rows a single changed
row could never count. Where that is so, and where SciPy is absent, the plain rule is applied:
each launch of one side is slower than each of the other, and the medians are apart by a multiple
of the noise. The multiples keep false alarms of up to 100 rows below 5 of 100 comparisons for
5 launches and more on each side, whether the noise is normal, uniform, exponential or Student's t
with 3 degrees of freedom (tests/test_compare.py draws such pairs).
"""
import math

LEAST_LAUNCHES = 3
MARGINS = {3: 5.0, 4: 3.0}  # launches of the smaller side -> multiple of the noise
MARGIN = 2.0


def median(values):
    v = sorted(values)
    half = len(v) // 2
    return v[half] if len(v) % 2 else (v[half - 1] + v[half]) / 2


def deviation(values):
    """Median absolute deviation, unscaled."""
    middle = median(values)
    return median([abs(x - middle) for x in values])


def quantile(values, q):
    """With linear interpolation between the values."""
    v = sorted(values)
    at = q * (len(v) - 1)
    low = math.floor(at)
    high = min(low + 1, len(v) - 1)
    return v[low] + (v[high] - v[low]) * (at - low)


def noise(values):
    """As a part of the median."""
    spread = quantile(values, 0.75) - quantile(values, 0.25)
    return max(3 * deviation(values), spread) / median(values)


def scipy_stats():
    """The module and its version, or (None, None). Loading it takes a second: only when needed."""
    try:
        import scipy
        import scipy.stats
    except ImportError:
        return None, None
    return scipy.stats, scipy.__version__


def least_p(n, m):
    """The smallest p that n + m launches can give."""
    return 1 / math.comb(n + m, n)


def slower_p(stats, slow, fast):
    """One-sided p of 'slow is not slower than fast'."""
    p = stats.mannwhitneyu(slow, fast, alternative="greater").pvalue
    return max(float(p), least_p(len(slow), len(fast)))  # ties: its approximation can be below


def adjusted(ps):
    """Benjamini and Hochberg: what each p is worth among all of them."""
    order = sorted(range(len(ps)), key=lambda i: ps[i], reverse=True)
    out, least = [1.0] * len(ps), 1.0
    for step, i in enumerate(order):
        least = min(least, ps[i] * len(ps) / (len(ps) - step))
        out[i] = least
    return out


def margin(n, m):
    return MARGINS.get(min(n, m), MARGIN)


def plainly_slower(slow, fast):
    """The plain rule."""
    apart = 1 - median(fast) / median(slow)
    floor = max(noise(slow), noise(fast))
    return min(slow) > max(fast) and apart > margin(len(slow), len(fast)) * floor
