"""The tables of the page. Everything that comes from a file goes through esc()."""
from __future__ import annotations

import re

from .common import MEANING, size_text
from .report_charts import heat_class, middle
from .report_model import PLACEMENT_NAMES, PLACEMENTS, esc, figure, text
from .report_series import against

MOST_ROWS = 4000     # of all rows on the page; bad ones are shown first of all
STATE_WORDS = {"right": "right", "wrong": "wrong", "unchecked": "not checked",
               "missing": "no figure", "absent": "left out"}


def cell(value, kind="td", classes="", **attributes):
    extra = "".join(f' {k}="{v}"' for k, v in attributes.items())
    return f"<{kind}{f' class={chr(34)}{classes}{chr(34)}' if classes else ''}{extra}>" \
           f"{value}</{kind}>"


def num(value):
    return cell(value, classes="num")


def table(label, head, rows, caption="", tall=False):
    """A table in a box that scrolls by itself and can be reached by keyboard."""
    title = f"<caption>{caption}</caption>" if caption else ""
    return (f'<div class="scroll{" tall" if tall else ""}" role="region" tabindex="0" '
            f'aria-label="{esc(label)}">\n<table>{title}\n<thead>{head}</thead>\n<tbody>\n'
            + "\n".join(rows) + "\n</tbody></table></div>")


def head_row(names):
    """Column heads; a name that begins with '>' is over figures, a unit follows after '|'."""
    cells = []
    for name in names:
        right, name = name.startswith(">"), name.lstrip(">")
        name, _, unit = name.partition("|")
        unit = f' <span class="unit">{esc(unit)}</span>' if unit else ""
        cells.append(cell(esc(name) + unit, "th", "num" if right else "", scope="col"))
    return f"<tr>{''.join(cells)}</tr>"


# ---- data of a chart -------------------------------------------------------------------------

def chart_table(chart):
    """A row per size, a column per line: what the chart shows, in numbers."""
    sizes = sorted({p[0] for line in chart.lines for p in line.points})
    values = [{p[0]: p for p in line.points} for line in chart.lines]
    rows = []
    for size in sizes:
        cells = [cell(size_text(size), "th", "num", scope="row")]
        for line, points in zip(chart.lines, values):
            point = points.get(size)
            shown = "–" if point is None else figure(point[1], 4)
            if point and point[2] < point[3]:
                shown += f' <span class="soft">{figure(point[2])}…{figure(point[3])}</span>'
            if size in line.marked:
                shown += ' <span class="wrong">wrong data</span>'
            cells.append(num(shown))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    unit = chart.unit
    head = head_row([">size"] + [f">{line.label}|{unit}" for line in chart.lines])
    return table(f"Data: {chart.title}", head, rows)


def pairs_table(pairs):
    median = middle(pairs)
    rows = []
    for name, values in zip(pairs.ends, pairs.values):
        cells = [cell(esc(name), "th", scope="row")]
        for value in values:
            slow = value is not None and heat_class(median, value) < 2
            cells.append(cell(figure(value), classes="num wrong" if slow else "num"))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = head_row(["from \\ to"] + [f">{e}" for e in pairs.ends])
    return table(f"Data: {pairs.title}", head, rows)


# ---- sources ---------------------------------------------------------------------------------

def ending_words(source):
    if source.baseline:
        return "–"
    codes = sorted({a.exit_code for a in source.attempts if a.exit_code is not None})
    return ", ".join(f"{c}, {MEANING.get(c, 'unknown')}" for c in codes) or "not known"


def minute(moment):
    """A time of RFC 3339 without what nobody reads; anything else as it is."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):[\d.]+Z", moment)
    return f"{found[1]} {found[2]} UTC" if found else moment


def source_table(sources, states):
    """One row per source: verdict, ending and the figures that people ask for first."""
    rows = []
    for source in sources:
        state = "baseline" if source.baseline else states[id(source)]
        word, tone = {"fail": ("✗ failed", "wrong"), "open": ("? not proven", "open-cell"),
                      "pass": ("✓ right", "good"), "baseline": ("baseline", "soft")}[state]
        right = sum(r.state() == "right" for r in source.rows)
        best = max((p.bus_bw for r in source.rows for p in r.points.values()
                    if p.bus_bw is not None), default=None)
        rows.append("<tr>" + "".join((
            cell(esc(source.label), "th", scope="row"), cell(word, classes=f"state {tone}"),
            cell(esc(ending_words(source))),
            num("–" if source.baseline else f"{right} of {len(source.rows)}"),
            num(source.ranks or "–"), num(figure(source.average)), num(figure(best)),
            num(figure(source.min_bw)), cell(esc(minute(source.times[0]))))) + "</tr>")
    head = head_row(["source", "verdict", "exit code", ">rows right", ">ranks",
                     ">average busbw|GB/s", ">best busbw|GB/s", ">--min-bw|GB/s", "started"])
    return table("Sources", head, rows)


def fact_name(name):
    """As people write it; variables stay as they are."""
    return name if name.startswith("$") else name.replace("_", " ").replace(".", " · ")


def fact_table(sources, facts, label):
    """A row per name, a column per source; what is not the same everywhere is said to differ."""
    names = list(dict.fromkeys(n for f in facts for n in f))
    rows = []
    for name in names:
        values = [f.get(name, "") for f in facts]
        differs = len(set(values)) > 1
        mark = ' <span class="soft">differs</span>' if differs else ""
        span = 1 if differs else len(values)
        cells = "".join(cell(esc(v) or "–", classes="wrap", colspan=span)
                        for v in (values if differs else values[:1]))
        rows.append(f"<tr>{cell(esc(fact_name(name)) + mark, 'th', scope='row')}{cells}"
                    "</tr>")
    return table(label, head_row(["name", *(s.label for s in sources)]), rows) if rows else ""


def device_table(source):
    keys = ("rank", "hostname", "node", "device_info", "device", "bus_id", "cpus", "numa",
            "process", "thread", "group")
    keys = [k for k in keys if any(d.get(k) not in (None, "") for d in source.devices)]
    rows = []
    for device in source.devices:
        values = ("–" if device.get(k) in (None, "") else esc(text(device[k])) for k in keys)
        rows.append("<tr>" + "".join(cell(v) for v in values) + "</tr>")
    names = {"hostname": "host", "device_info": "processor", "bus_id": "PCI address"}
    return table(f"Ranks of {source.label}", head_row([names.get(k, k) for k in keys]), rows)


# ---- rows ------------------------------------------------------------------------------------

def placement_cells(row, placement, baseline, compared):
    point = row.points.get(placement)
    if point is None or point.time is None:
        missing = point is not None and point.state() == "missing"
        said = "no figure" if missing else "–" if point is None else esc(point.why_not)
        return cell(said, classes="open-cell" if missing else "soft", colspan=4 + compared)
    wrong = "not checked" if point.wrong is None else str(point.wrong)
    tone = "num wrong" if point.wrong else "num open-cell" if point.wrong is None else "num"
    cells = [num(figure(point.time, 4)), num(figure(point.alg_bw)), num(figure(point.bus_bw)),
             cell(f"✗ {wrong}" if point.wrong else wrong, classes=tone)]
    if compared:
        ratio = against(baseline, row, placement)
        cells.append(num("–" if ratio is None else f"{ratio:.2f}×"))
    return "".join(cells)


def table_row(row, columns, placements, baseline, compared):
    state = row.state()
    marked = ' class="marked"' if state == "wrong" else ""
    tone = {"wrong": "wrong", "missing": "open-cell", "unchecked": "open-cell"}.get(state, "")
    said = STATE_WORDS[state] + (f" · {esc(row.note)}" if row.note else "")
    said += "" if row.counted or state == "absent" else ' <span class="soft">not averaged</span>'
    cells = [cell(size_text(row.size), "th", "num", scope="row"), cell(said, classes=tone)]
    cells += [cell(esc(getattr(row, name))) for name in columns]
    cells += [placement_cells(row, p, baseline, compared) for p in placements]
    return f'<tr id="row{row.number}"{marked}>{"".join(cells)}</tr>'


def row_head(columns, placements, compared):
    fixed = ["size", "verdict", *columns]
    names = {"redop": "operation"}
    top = "".join(cell(esc(names.get(n, n)), "th", "num" if n == "size" else "", scope="col",
                       rowspan=2) for n in fixed)
    each = [">time|µs", ">algbw|GB/s", ">busbw|GB/s", ">wrong"] + [">vs baseline"] * compared
    for placement in placements:
        top += cell(PLACEMENT_NAMES[placement], "th", "span", scope="colgroup", colspan=len(each))
    return f"<tr>{top}</tr>" + head_row(each * len(placements))


def row_table(source, rows, baseline):
    """Rows of one source; a column appears where its values are worth one."""
    columns = []
    for name in ("collective", "type", "redop", "root", "count", "engine", "variant", "repeat",
                 "plan"):
        values = {getattr(r, name) for r in source.rows}
        if len(values) > 1 or name in ("plan", "count") and any(values):
            columns.append(name)
    placements = [p for p in PLACEMENTS if any(p in r.points for r in source.rows)]
    compared = int(bool(baseline) and not source.baseline)
    body = [table_row(r, columns, placements, baseline, compared) for r in rows]
    return table(f"Rows of {source.label}", row_head(columns, placements, compared), body,
                 tall=True)


def choose_rows(sources):
    """(source id -> rows to show, how many are left out); rows in trouble go before others."""
    everything = [(s, r) for s in sources for r in s.rows]
    kept = {id(r) for _, r in everything[:MOST_ROWS]}
    if len(everything) > MOST_ROWS:
        order = ("wrong", "missing", "unchecked", "right", "absent")
        ranked = sorted(everything, key=lambda sr: order.index(sr[1].state()))
        kept = {id(r) for _, r in ranked[:MOST_ROWS]}
    chosen = {id(s): [r for r in s.rows if id(r) in kept] for s in sources}
    return chosen, len(everything) - len(kept)
