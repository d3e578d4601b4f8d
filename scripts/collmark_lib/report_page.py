"""The page: verdict first, then charts, ranks, pairs, rows and environment. No script, no network.

What a reader needs for the page is in the page: style, charts, the data of each chart as a table.
Its policy forbids everything else, so that a name in a file can do nothing even if escaping failed.
"""
from __future__ import annotations

from pathlib import Path

from . import report_tables as tables
from .common import count_text, size_text
from .report_charts import HEAT_CLASSES, HEAT_TOPS, Chart, Line, draw, draw_pairs
from .report_model import esc, figure, number
from .report_series import COLOURS, baseline_of, make_topics
from .report_verdict import WORDS, judge, state_of

MOST_TOPICS = 24     # with charts of their own
MOST_TAILS = 4       # charts of percentiles per topic
MOST_ENDS = 64       # of a matrix of pairs that is drawn
MOST_NOTES = 3       # that are shown unfolded
MOST_LINKS = 6       # from a finding to its rows
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
TAGS = {"fail": ("fail", "Failed"), "open": ("open-tag", "Open"), "warn": ("warn", "Look at"),
        "note": ("note", "Note")}
SHAPES = {"o": "M14 7a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0Z", "s": "M14 4h6v6h-6Z",
          "^": "M17 3l3.6 6.8h-7.2Z", "D": "M17 2.6l4 4.4-4 4.4-4-4.4Z",
          "v": "M17 11l3.6-6.8h-7.2Z", "P": "M15.8 3.4h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4V5.8"
          "h2.4Z", "X": "M14.4 3l2.6 2.4L19.6 3 21 4.4 18.6 7 21 9.6 19.6 11 17 8.6 14.4 11 13 9.6"
          " 15.4 7 13 4.4Z", "p": "M17 3l3.8 2.9-1.5 4.6h-4.6l-1.5-4.6Z"}


# ---- verdict -------------------------------------------------------------------------------------

def finding_item(finding):
    tone, word = TAGS[finding.level]
    links = [f'<a href="#row{r.number}">{esc(r.collective)} {size_text(r.size)}</a>'
             for _, r in finding.rows[:MOST_LINKS]]
    more = len(finding.rows) - MOST_LINKS
    where = ": " + ", ".join(links) + (f" and {more} more" if more > 0 else "") if links else ""
    return (f'<li class="{tone}"><span class="tag">{word}</span> '
            f"<span>{esc(finding.text)}{where}</span></li>")


def finding_list(findings):
    items = "\n".join(finding_item(f) for f in findings)
    return f'<ul class="findings">\n{items}\n</ul>\n' if items else ""


def verdict_section(sources, level, findings):
    tone, words = WORDS[level]
    shown = [s for s in sources if not s.baseline]
    rows = [r for s in shown for r in s.rows]
    right = sum(r.state() == "right" for r in rows)
    limits = [s for s in shown if s.min_bw is not None]
    text = (f"{right} of {count_text(len(rows), 'row')} in {count_text(len(shown), 'source')} "
            "measured, checked and right. ")
    text += "No threshold was asked for." if not limits else (
        f"{len(limits)} of them had a threshold to reach.")
    notes = [f for f in findings if f.level == "note"]
    if len(notes) > MOST_NOTES:
        folded = (f"<details><summary>{count_text(len(notes), 'note')} on what is right but not as "
                  f"smooth as it could be</summary>\n{finding_list(notes)}</details>")
        listed = finding_list([f for f in findings if f.level != "note"]) + folded
    else:
        listed = finding_list(findings)
    return (f'<section class="verdict {tone}" id="verdict" aria-labelledby="verdict-head">\n'
            f'<h2 id="verdict-head">{words}</h2>\n<p>{text}</p>\n{listed}\n</section>\n'
            + tables.source_table(sources, {id(s): state_of(s) for s in shown}))


# ---- charts --------------------------------------------------------------------------------------

def swatch(line):
    """The line of a legend: its colour, its dashes, its marker."""
    colour = "var(--base)" if line.colour < 0 else f"var(--s{line.colour})"
    dash = ' stroke-dasharray="6 3"' if line.dashed else ""
    width = 4 if line.colour < 0 else 2
    shape = SHAPES.get(line.shape(), "")
    inside = "var(--paper)" if line.dashed else colour
    mark = f'<path d="{shape}" fill="{inside}" stroke="{colour}" stroke-width="1.4"/>' \
        if shape else ""
    return (f'<svg viewBox="0 0 34 14" aria-hidden="true"><path d="M1 7H33" fill="none" '
            f'stroke="{colour}" stroke-width="{width}"{dash}/>{mark}</svg>')


def describe(chart):
    """The chart in a sentence, for those who hear the page."""
    said = []
    for line in chart.lines[:COLOURS]:
        top = max(line.points, key=lambda p: p[1])
        low = min(line.points, key=lambda p: p[1])
        said.append(f"{line.label}: {figure(low[1])} at {size_text(low[0])} to {figure(top[1])} "
                    f"at {size_text(top[0])}")
    return f"Line chart, {chart.title} in {chart.unit} over message size. " + "; ".join(said)


def figure_html(mpl, chart):
    chart.lines = [line for line in chart.lines if line.points]
    if not chart.lines:
        return ""
    data = tables.chart_table(chart)
    chart.text = describe(chart)
    draw(mpl, chart)
    legend = "".join(f"<li>{swatch(li)}{esc(li.label)}</li>" for li in chart.lines)
    note = f'<span class="soft small">{esc(chart.note)}</span>' if chart.note else ""
    head = f"<figcaption><h4>{esc(chart.title)}</h4>{note}</figcaption>"
    if not chart.svg:
        return f"<figure>{head}\n{data}\n</figure>"
    return (f'<figure>{head}\n<ul class="legend">{legend}</ul>\n{chart.svg}\n'
            f"<details><summary>Numbers of this chart</summary>\n{data}\n</details></figure>")


def curve_lines(curves, name):
    return [Line(c.label, c.line(name), c.colour, c.placement() == "in",
                 marked=c.wrong_sizes()) for c in curves]


def spread_lines(curves):
    """How much longer the slowest rank takes than the fastest, in per cent of their mean."""
    lines = []
    for curve in curves:
        points = []
        for size in sorted(curve.samples):
            low, mean, high = (curve.at(size, n) for n in ("rank_min", "rank_avg", "rank_max"))
            if low and mean and high and mean[0] > 0 and (curve.source.ranks or 2) > 1:
                value = number(100 * (high[0] - low[0]) / mean[0])
                if value is not None:
                    points.append((size, value, value, value))
        lines.append(Line(curve.label, points, curve.colour, curve.placement() == "in"))
    return [line for line in lines if line.points]


def tail_chart(name, curve):
    """Percentiles of the iterations of one curve: its own colour, four kinds of line."""
    kinds = (("median", "p50", False, "o"), ("95 %", "p95", False, "^"), ("99 %", "p99", True, "s"),
             ("longest", "most", True, "v"))
    lines = [Line(label, [(x, y, y, y) for x, y, _, _ in curve.line(key)],
                  max(curve.colour, 0), dashed, marker) for label, key, dashed, marker in kinds]
    counts = sorted({p.samples for of_size in curve.samples.values() for _, p in of_size})
    note = f"{' to '.join(str(c) for c in dict.fromkeys((counts[0], counts[-1])))} iterations"
    return Chart(name, f"Iterations: {curve.label}", "µs", True, lines, note=note)


def topic_html(mpl, topic, at):
    curves = topic.drawn()
    left = len(topic.curves) - len(curves)
    charts = [
        Chart(f"bw{at}", "Bus bandwidth", "GB/s", False, curve_lines(curves, "bus_bw")),
        Chart(f"time{at}", "Time of one operation", "µs", True, curve_lines(curves, "time")),
        Chart(f"ranks{at}", "Spread between ranks", "%", False, spread_lines(curves))]
    tails = [c for c in curves if not c.source.baseline and c.line("p50")]
    charts += [tail_chart(f"tail{at}x{i}", c) for i, c in enumerate(tails[:MOST_TAILS])]
    drawn = "\n".join(filter(None, (figure_html(mpl, c) for c in charts)))
    notes = []
    if left > 0:
        notes.append(f"{count_text(left, 'more curve')} would not be told apart; see the rows.")
    if len(tails) > MOST_TAILS:
        notes.append(f"Percentiles of {MOST_TAILS} of {len(tails)} curves; name fewer files to see "
                     "the others.")
    said = "".join(f'<p class="soft small">{n}</p>' for n in notes)
    return f'<h3>{esc(topic.title())}</h3>\n{said}<div class="charts">\n{drawn}\n</div>'


def charts_section(mpl, topics):
    drawable = [t for t in topics if t.curves]
    if not drawable:
        return ""
    parts = [topic_html(mpl, t, i) for i, t in enumerate(drawable[:MOST_TOPICS])]
    left = len(drawable) - MOST_TOPICS
    if left > 0:
        parts.append(f'<p class="soft">{count_text(left, "more combination")} of '
                     "collective, type, operation and root: see the rows.</p>")
    missing = "" if mpl else (
        '<p>There are no drawings here: matplotlib was not installed where this page was made '
        "(<code>scripts/install_deps.sh report</code> installs it). The tables have all numbers."
        "</p>")
    return section("charts", "Bandwidth and latency", missing + "\n".join(parts))


def pairs_section(mpl, sources):
    parts, at = [], 0
    for source in sources:
        for pairs in source.pairs:
            title = " · ".join(p for p in (source.label, pairs.title) if p)
            head = f"<figcaption><h3>{esc(title)}</h3></figcaption>"
            data = tables.pairs_table(pairs)
            if mpl and 1 < len(pairs.ends) <= MOST_ENDS:
                alt = (f"Heat map of {len(pairs.ends)} by {len(pairs.ends)} ends in {pairs.unit}; "
                       "the same numbers follow as a table")
                drawing = draw_pairs(mpl, f"pairs{at}", pairs, alt)
                data = (f'{heat_legend()}<div class="scroll matrix" role="region" tabindex="0" '
                        f'aria-label="Heat map">\n{drawing}</div>\n'
                        f"<details><summary>Numbers of this chart</summary>\n{data}</details>")
            parts.append(f'<figure>{head}\n<p class="soft small">From the row to the '
                         f"column, {esc(pairs.unit)}.</p>\n{data}</figure>")
            at += 1
    return section("pairs", "Pairs", "\n".join(parts)) if parts else ""


def heat_legend():
    ends = [f"{t:.0%}" for t in HEAT_TOPS]
    names = [f"below {ends[0]}", *(f"{a} to {b}" for a, b in zip(ends, ends[1:])),
             f"{ends[-1]} of the median and more"]
    keys = "".join(
        '<li><svg viewBox="0 0 34 14" aria-hidden="true"><path d="M0 0H34V14H0Z" '
        f'fill="var(--h{i})"/></svg>{name}</li>' for i, name in zip(range(HEAT_CLASSES), names))
    return f'<ul class="legend">{keys}</ul>'


# ---- rows and environment ------------------------------------------------------------------------

def rows_section(sources, baseline):
    shown = [s for s in sources if not s.baseline]
    chosen, left = tables.choose_rows(shown)
    parts = []
    if left:
        parts.append(f'<p class="soft">{left} rows are not shown, the first {tables.MOST_ROWS} '
                     "are, and those in trouble before others. The files have all.</p>")
    for source in shown:
        if chosen[id(source)]:
            parts.append(f"<h3>{esc(source.label)}</h3>")
            parts.append(tables.row_table(source, chosen[id(source)], baseline))
    return section("rows", "Rows", "\n".join(parts)) if len(parts) else ""


def environment_section(sources):
    parts = [tables.fact_table(sources, [s.facts for s in sources], "Environment")]
    options = tables.fact_table(sources, [
        {f"--{k.replace('_', '-')}": v for k, v in s.options.items()} for s in sources], "Options")
    if options:
        parts.append(f"<details><summary>All options</summary>\n{options}</details>")
    for source in sources:
        if source.devices:
            parts.append(f"<details><summary>Ranks of {esc(source.label)}</summary>\n"
                         f"{tables.device_table(source)}</details>")
    parts = [p for p in parts if p]
    return section("environment", "Environment", "\n".join(parts)) if parts else ""


# ---- page ----------------------------------------------------------------------------------------

def section(name, title, body):
    return (f'<section id="{name}" aria-labelledby="{name}-head">\n'
            f'<h2 id="{name}-head">{title}</h2>\n{body}\n</section>')


def subtitle(sources):
    """What, where and when, in a line."""
    shown = [s for s in sources if not s.baseline] or sources
    collectives = list(dict.fromkeys(r.collective for s in shown for r in s.rows))
    ranks = sorted({s.ranks for s in shown if s.ranks})
    hosts = list(dict.fromkeys(s.facts["hosts"] for s in shown if s.facts.get("hosts")))
    kinds = list(dict.fromkeys(s.facts["processors"] for s in shown if s.facts.get("processors")))
    dates = sorted({t[:10] for s in shown for t in s.times if t})
    parts = [", ".join(collectives[:6]) + (" …" if len(collectives) > 6 else ""),
             "/".join(map(str, ranks)) + (" rank" if ranks == [1] else " ranks") if ranks else "",
             ", ".join(hosts[:3]), ", ".join(kinds[:3]),
             " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""]
    return " · ".join(p for p in parts if p)


FOOTER = """<dl>
<dt>busbw</dt><dd>Bandwidth times what an ideal algorithm must move per byte, so that it does not
fall with the number of ranks: the figure to hold against the speed of a link. 1 GB is
10<sup>9</sup> bytes; KiB and MiB are powers of 1024.</dd>
<dt>Time</dt><dd>Of one operation: many back to back, divided by their number. Where a curve has
several measurements of a size, it shows their median, and a shade from the least to the
most.</dd>
<dt>Percentiles</dt><dd>Of single iterations, each as long as its slowest rank.</dd>
<dt>Spread between ranks</dt><dd>Slowest minus fastest rank, in per cent of their mean.</dd>
<dt>Right</dt><dd>Every element was compared with what it must be. A row that was not checked, or
has no figure, is never counted as right.</dd>
</dl>"""


def build(sources, mpl, title):
    """The whole page as a string."""
    topics = make_topics(sources)
    baseline = baseline_of(sources)
    level, findings = judge(sources, topics, baseline)
    sections = [charts_section(mpl, topics), pairs_section(mpl, sources),
                rows_section(sources, baseline), environment_section(sources)]
    names = (("charts", "Charts"), ("pairs", "Pairs"), ("rows", "Rows"),
             ("environment", "Environment"))
    links = "".join(f'<li><a href="#{name}">{word}</a></li>'
                    for (name, word), body in zip(names, sections) if body)
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    body = "\n".join(s for s in sections if s)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{WORDS[level][1]} – {esc(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the verdict</a>
<header>
<h1>{esc(title)}</h1>
<p class="soft">{esc(subtitle(sources))}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="main" tabindex="-1">
{verdict_section(sources, level, findings)}
{body}
</main>
<footer aria-label="How to read this">
{FOOTER}
</footer>
</body>
</html>
"""
