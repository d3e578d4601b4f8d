"""What the reader must know first: is all of it right, and if not, where to look.

The words on top of the page come from the worst finding. Only rows that were measured, checked and
right count as passed; what nobody checked is "not proven", never "passed".
"""
from __future__ import annotations

import statistics
from collections import Counter

from .common import MEANING, count_text, size_text
from .report_model import PLACEMENT_NAMES, Finding, figure
from .report_series import against

LONG_TAIL = 5.0      # p99 over median from which a row is named
SPREAD = 0.10        # between slowest and fastest rank, of their mean, from which a rank is named
MOSTLY = 0.75        # of the rows: a rank that is the slowest this often is no accident
FEWEST = 4           # rows that such a statement needs
DROP = 0.7           # of the best bandwidth, below which the largest size is named
SLOWER = 0.9         # of the baseline's speed, below which a row is named

WORDS = {
    "fail": ("failed", "Not all right"),
    "open": ("open", "Not proven right"),
    "pass": ("passed", "All right"),
}


def exit_text(code):
    meaning = MEANING.get(code)
    return f"exit {code}" + (f", {meaning}" if meaning else "")


def state_of(source):
    """fail, open or pass: the rows, the ending and the threshold of one source together."""
    levels = {f.level for f in failures(source)}
    return "fail" if "fail" in levels else "open" if "open" in levels else "pass"


def failures(source):
    """The findings that decide about right and wrong."""
    yield from ending_findings(source)
    yield from row_findings(source)
    for problem in source.problems:
        yield Finding("fail", f"{source.label}: {problem}")
    for pairs in source.pairs:
        for suspect in pairs.suspects:
            yield Finding("fail", f"{source.label}: suspect {suspect}")


def ending_text(source, attempt):
    """Why an attempt did not end well; None if it did, or if its rows say so themselves."""
    code = attempt.exit_code
    if attempt.failed or attempt.truncated:
        said = [attempt.failed, attempt.truncated and f"incomplete ({attempt.truncated})",
                exit_text(code) if code is not None else ""]
        return ", ".join(s for s in said if s)
    if code is None:
        return None
    if code == 5 and source.min_bw is not None:
        got = "" if source.average is None else f" {figure(source.average)} GB/s"
        return (f"average bus bandwidth{got} is below 0.9 of --min-bw "
                f"{figure(source.min_bw)} GB/s")
    if code == 0 or code == 1 and any(r.state() == "wrong" for r in source.rows):
        return None
    return exit_text(code)


def ending_findings(source):
    for attempt in source.attempts:
        said = ending_text(source, attempt)
        if said:
            name = f"{source.label}, {attempt.name}" if attempt.name else source.label
            yield Finding("fail", f"{name}: {said}")
    codes = [a.exit_code for a in source.attempts]
    if len(set(codes)) > 1 and 0 in codes:
        yield Finding("fail", f"{source.label}: flaky, {codes.count(0)} of {len(codes)} attempts "
                              "went well")


def row_findings(source):
    ended_well = not any(ending_text(source, a) for a in source.attempts)
    if not source.rows and not source.pairs and ended_well:
        yield Finding("fail", f"{source.label}: no rows")
    by_state = {}
    for row in source.rows:
        by_state.setdefault(row.state(), []).append(row)
    for state, level, words in (
            ("wrong", "fail", "with wrong data"),
            ("missing", "open", "without a figure and without a reason"),
            ("unchecked", "open", "not checked, so nothing shows that the data were right")):
        rows = by_state.get(state)
        if rows:
            yield Finding(level, f"{source.label}: {count_text(len(rows), 'row')} {words}",
                          [(source, r) for r in rows])
    if source.rows and set(by_state) == {"absent"}:
        yield Finding("fail", f"{source.label}: no row was measured")


# ---- what deserves a look --------------------------------------------------------------------

def setting_findings(sources):
    crowded = [s.label for s in sources if s.oversubscribed]
    if crowded:
        yield Finding("warn", f"{', '.join(crowded)}: more ranks than CPUs, so these times say "
                              "little about the machine")
    for name in ("hosts", "processors", "backend", "wire", "kernels", "cuda_driver", "mpi"):
        values = {s.facts[name] for s in sources if name in s.facts}
        if len(values) > 1:
            yield Finding("warn", f"The files differ in {name.replace('_', ' ')}: "
                                  + " / ".join(sorted(values)))
    if len({s.ranks for s in sources if s.ranks}) > 1:
        counts = sorted({s.ranks for s in sources if s.ranks})
        yield Finding("warn", "The files differ in the number of ranks: "
                              + " / ".join(map(str, counts)))


def tail_findings(source):
    """Rows whose slowest iterations take many times the median."""
    rows, worst = [], (0.0, "")
    for row in source.rows:
        for placement, point in row.points.items():
            if point.p50 and point.p99 and point.p99 > LONG_TAIL * point.p50:
                where = f"{row.collective} {size_text(row.size)}, {PLACEMENT_NAMES[placement]}"
                worst = max(worst, (point.p99 / point.p50, where))
                rows.append(row)
    if rows:
        rows = list({id(r): r for r in rows}.values())
        yield Finding("note", f"{source.label}: p99 is more than {LONG_TAIL:g} times the median in "
                              f"{count_text(len(rows), 'row')}, up to {figure(worst[0], 2)} times "
                              f"({worst[1]})", [(source, r) for r in rows])


def rank_findings(source):
    """A rank that is nearly always the slowest, by more than a little."""
    spread = [(p.slowest, (p.rank_max - p.rank_min) / p.rank_avg)
              for row in source.rows for p in row.points.values()
              if None not in (p.slowest, p.rank_max, p.rank_min) and p.rank_avg]
    if (source.ranks or 0) < 3 or len(spread) < FEWEST:
        return
    rank, times = Counter(r for r, _ in spread).most_common(1)[0]
    typical = statistics.median(s for r, s in spread if r == rank)
    if times >= MOSTLY * len(spread) and typical >= SPREAD:
        where = next((f" ({d.get('hostname')}, {d.get('device_info')} {d.get('device')})"
                      for d in source.devices if d.get("rank") == rank), "")
        yield Finding("warn", f"{source.label}: rank {rank}{where} is the slowest in {times} of "
                              f"{len(spread)} measurements, typically by {typical:.0%}")


def drop_findings(topics):
    """Bandwidth that falls again towards the largest sizes: caches, or a wrong choice."""
    for topic in topics:
        for curve in topic.curves:
            line = curve.line("bus_bw")
            if curve.source.baseline or len(line) < FEWEST:
                continue
            best, last = max(line, key=lambda p: p[1]), line[-1]
            if last[1] < DROP * best[1]:
                yield Finding("note", f"{topic.title()}, {curve.label}: best at "
                                      f"{size_text(best[0])} with {figure(best[1])} GB/s, only "
                                      f"{figure(last[1])} GB/s at {size_text(last[0])}")


def baseline_findings(sources, baseline):
    for source in sources:
        if source.baseline or not baseline:
            continue
        ratios = [(against(baseline, row, p), row) for row in source.rows for p in row.points]
        ratios = [(r, row) for r, row in ratios if r]
        if not ratios:
            yield Finding("warn", f"{source.label}: no row has its like in the baseline")
            continue
        slow = list({id(r): r for ratio, r in ratios if ratio < SLOWER}.values())
        middle = statistics.median(r for r, _ in ratios)
        yield Finding("warn" if slow else "note",
                      f"{source.label}: {figure(middle)} times the baseline's speed in the median; "
                      f"{count_text(len(slow), 'row')} of {len(source.rows)} slower by more than "
                      f"{1 - SLOWER:.0%}. Whether that is more than noise says collmark compare",
                      [(source, r) for r in slow])


def judge(sources, topics, baseline):
    """('fail' | 'open' | 'pass', findings, worst first)."""
    shown = [s for s in sources if not s.baseline]
    findings = [f for s in shown for f in failures(s)]
    findings += setting_findings(sources)
    findings += baseline_findings(shown, baseline)
    findings += [f for s in shown for f in rank_findings(s)]
    findings += drop_findings(topics)
    findings += [f for s in shown for f in tail_findings(s)]
    order = ("fail", "open", "warn", "note")
    findings.sort(key=lambda f: order.index(f.level))
    level = findings[0].level if findings and findings[0].level in ("fail", "open") else "pass"
    return level, findings
