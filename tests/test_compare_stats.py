#!/usr/bin/env python3
"""The statistics of scripts/collmark compare: figures by hand, false alarms among equals, losses
that must be found, with SciPy's rank-sum test and with the plain rule.

    test_compare_stats.py            ends with "N passed, N failed, N skipped"
    test_compare_stats.py --scipy    only what needs SciPy, for an interpreter that has it
"""
import importlib.util
import json
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True

from collmark_rig import MIB, STRETCH, check, document, run_tests  # noqa: E402
from collmark_lib import result, stats, verdict  # noqa: E402

HAS_SCIPY = importlib.util.find_spec("scipy") is not None


def test_figures_of_statistics():
    check(stats.median([3, 1, 2]) == 2 and stats.median([4, 1, 2, 3]) == 2.5, "median")
    check(stats.deviation([1, 1, 2, 2, 4, 6, 9]) == 1, "median absolute deviation")
    check(stats.quantile([1, 2, 3, 4], 0.25) == 1.75, "quartile")
    check(stats.noise([5, 5, 5, 5]) == 0, "no noise")
    check(stats.noise([10, 10, 10, 11, 12]) == 0.1, "quartiles where the deviation is 0")
    check(stats.least_p(5, 5) == 1 / 252 and stats.least_p(3, 3) == 1 / 20, "least p")
    # Benjamini and Hochberg by hand: 4 x 0.01 / 1, 4 x 0.02 / 2, 4 x 0.03 / 3, 4 x 0.5 / 4
    got = stats.adjusted([0.03, 0.5, 0.01, 0.02])
    check(all(abs(g - w) < 1e-12 for g, w in zip(got, [0.04, 0.5, 0.04, 0.04])), got)


def test_plain_rule():
    # Noise of the fast side: three times its deviation of 2 in 100.
    fast = [98.0, 98.0, 100.0, 102.0, 102.0]
    for slow, want in (([120.0] * 5, True), ([112.0] * 5, False), ([120.0] * 4 + [101.0], False),
                       ([103.0] + [120.0] * 4, True), (fast, False), ([90.0] * 5, False)):
        check(stats.plainly_slower(slow, fast) == want, f"{slow}: not {want}")
    # Fewer launches have to be further apart: 5 times, 3 times the noise.
    for n, near, far in ((3, 130.0, 160.0), (4, 108.0, 135.0)):
        fast = [98.0, 100.0, 102.0, 102.0][:n]
        check(not stats.plainly_slower([near] * n, fast), f"{n} launches: {near}")
        check(stats.plainly_slower([far] * n, fast), f"{n} launches: {far}")


def test_what_is_a_figure():
    for value in (None, True, "1", float("nan"), float("inf"), 0, -1, [], {}):
        check(result.number(value) is None, f"{value!r} is a figure")
    check(result.number(2) == 2.0 and result.number(1e-9) == 1e-9, "a number is none")


def test_the_figure_of_a_launch():
    # With single iterations timed their median counts, and cycles are one figure.
    doc = document({MIB: 100.0})
    doc["results"][0]["out_of_place_per_iter"] = {"p50_us": 80.0}
    second = json.loads(json.dumps(doc["results"][0]))
    second["out_of_place_per_iter"]["p50_us"] = 90.0
    doc["results"].append(second)
    row = next(r for k, r in result.rows_of(doc).items() if k.placement == "out")
    check(row.times == [85.0], row)
    check(abs(row.bandwidth(100.0) - 10.48576) < 1e-9, row)


def drawn(rng, n, rows, loss=0.0):
    """Launches of equals; the first row takes `loss` longer. Each row has a kind of noise, and a
    launch has its luck with all of them."""
    luck = [rng.gauss(1, 0.01) for _ in range(n)]
    kinds = (lambda: rng.gauss(1, 0.08), lambda: 1 + rng.expovariate(5),
             lambda: rng.uniform(0.8, 1.2), lambda: rng.gauss(1, 0.005))
    out = {}
    for i in range(rows):
        key = result.Key("all_reduce", "float", "sum", -1, 1 << (i // 2), ("out", "in")[i % 2], 2,
                         1, 0, "auto", "auto")
        kind = kinds[(i + 3) % 4]
        base = 100.0 / (1 - loss) if i == 0 else 100.0
        out[key] = result.Row(times=[base * kind() * x for x in luck], work=1.0)
    return out


def false_alarms(library, n, rows):
    rng = random.Random(20260101)
    pairs = [verdict.compare(drawn(rng, n, rows), drawn(rng, n, rows), verdict.Limits(), library)
             for _ in range(100)]
    return tuple(sum(1 for c in pairs if c.having(v))
                 for v in (verdict.REGRESSED, verdict.IMPROVED))


def expect_few_false_alarms(library, samples):
    for n, rows in samples:
        alarms = false_alarms(library, n, rows)
        check(max(alarms) <= 5, f"{n} launches, {rows} rows: {alarms} of 100")


def expect_losses_found(library):
    rng = random.Random(7)
    for n, rows in ((5, 8), (5, 42), (7, 24)):
        found = 0
        for _ in range(10 if library is None else 4):
            c = verdict.compare(drawn(rng, n, rows), drawn(rng, n, rows, 0.2), verdict.Limits(),
                                library)
            found += 1 in [r.key.bytes for r in c.having(verdict.REGRESSED)]
        check(found >= (9 if library is None else 4), f"{n} launches, {rows} rows: {found} found")


def expect_swap_exchanges(library):
    rng = random.Random(3)
    other = {verdict.REGRESSED: verdict.IMPROVED, verdict.IMPROVED: verdict.REGRESSED,
             verdict.MISSING: verdict.NEW, verdict.NEW: verdict.MISSING}
    for loss in (0.04, 0.06, 0.2, -0.2):
        a, b = drawn(rng, 5, 12), drawn(rng, 5, 12, loss)
        del a[max(a)]
        there, back = (verdict.compare(x, y, verdict.Limits(), library)
                       for x, y in ((a, b), (b, a)))
        want = [other.get(r.verdict, r.verdict) for r in there.rows]
        check([r.verdict for r in back.rows] == want, f"loss {loss}: {want}")


def test_false_alarms_of_the_plain_rule():
    expect_few_false_alarms(None, ((5, 24), (7, 24), (4, 10), (3, 10)))


def test_losses_found_by_the_plain_rule():
    expect_losses_found(None)


def test_exchanged_sides():
    expect_swap_exchanges(None)


def scipy_test_rank_sum():
    # Exact values from the distribution of U: all 252 orders of 5 + 5, and 20 of 3 + 3.
    tests, version = stats.scipy_stats()
    check(tests is not None and version, "SciPy")
    for slow, fast, p in (([6, 7, 8, 9, 10], [1, 2, 3, 4, 5], 1 / 252),
                          ([5, 7, 8, 9, 10], [1, 2, 3, 4, 6], 2 / 252),
                          ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 1.0),
                          ([4, 5, 6], [1, 2, 3], 1 / 20)):
        got = stats.slower_p(tests, slow, fast)
        check(abs(got - p) < 1e-9, f"{slow} {fast}: {got}, not {p}")
    check(stats.slower_p(tests, [2] * 5, [1] * 5) == 1 / 252, "ties are not better than order")


def scipy_test_false_alarms():
    expect_few_false_alarms("scipy", ((5, 14), (7, 8)))


def scipy_test_losses_found():
    expect_losses_found("scipy")


def scipy_test_exchanged_sides():
    expect_swap_exchanges("scipy")


def test_with_scipy():
    """The part that needs SciPy: here, or in the system's Python."""
    if HAS_SCIPY:
        names = [n for n in globals() if n.startswith("scipy_test_")]
        for name in names:
            globals()[name]()
        return None
    python = "/usr/bin/python3"
    if not os.path.exists(python) or subprocess.run(
            [python, "-c", "import scipy"], capture_output=True, check=False).returncode != 0:
        return "no SciPy (python3-scipy)"
    done = subprocess.run([python, __file__, "--scipy"], capture_output=True, text=True,
                          timeout=100 * STRETCH, check=False)
    check(done.returncode == 0, done.stdout + done.stderr)
    return None


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "scipy_test_" if sys.argv[1:] == ["--scipy"] else "test_"))
