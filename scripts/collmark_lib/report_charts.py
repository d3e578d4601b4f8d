"""Charts as inline SVG, drawn by matplotlib and coloured by the style sheet of the page.

matplotlib writes fixed colours, but a page has a light and a dark side. So everything is drawn in
marker colours that mean nothing, and afterwards each is replaced by a variable of the style sheet.
Text stays text, in the page's font, at a size that the style sheet may raise on a small screen: the
margins leave room for it. Names and numbers of a chart depend on nothing but its data.
"""
from __future__ import annotations

import io
import math
import re
import statistics
import warnings
from dataclasses import dataclass, field

from .common import size_text
from .report_model import clean, esc, figure

WIDTH, HEIGHT = 560, 330                 # of a chart, in units of its view box
MARGINS = {"left": 62, "right": 16, "top": 30, "bottom": 52}
HEAT_TOPS = (0.5, 0.75, 0.9, 1.1, 1.25, 1.5)     # of the median: upper ends of all but the last
HEAT_CLASSES = len(HEAT_TOPS) + 1
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")

INK, GRID, AXIS, PAPER, BAD, BASE = (f"#0a0b{i:02x}" for i in range(1, 7))
SERIES = [f"#0a0c{i:02x}" for i in range(1, 9)]
HEAT = [f"#0a0d{i:02x}" for i in range(1, HEAT_CLASSES + 1)]
HEAT_INK = [f"#0a0e{i:02x}" for i in range(1, HEAT_CLASSES + 1)]
VARIABLES = {INK: "currentColor", GRID: "var(--grid)", AXIS: "var(--axis)", PAPER: "var(--paper)",
             BAD: "var(--bad)", BASE: "var(--base)"}
VARIABLES.update({c: f"var(--s{i})" for i, c in enumerate(SERIES)})
VARIABLES.update({c: f"var(--h{i})" for i, c in enumerate(HEAT)})
VARIABLES.update({c: f"var(--hi{i})" for i, c in enumerate(HEAT_INK)})


@dataclass
class Line:
    label: str
    points: list                          # [(x, y, low, high)]
    colour: int = 0                       # -1: the baseline
    dashed: bool = False
    marker: str = ""                      # default: by colour
    marked: list = field(default_factory=list)      # x of points that are wrong

    def shade(self):
        return BASE if self.colour < 0 else SERIES[self.colour]

    def shape(self):
        return self.marker or (MARKERS[self.colour] if self.colour >= 0 else "")


@dataclass
class Chart:
    name: str                             # unique on the page, letters and digits
    title: str
    unit: str
    log: bool                             # for times in µs; else linear, from zero
    lines: list
    note: str = ""                        # below the title
    text: str = ""                        # for those who cannot see it
    svg: str = ""


def load_matplotlib():
    """The library, or None where it is not installed."""
    try:
        import matplotlib
        matplotlib.use("svg")
        import matplotlib.figure
        import matplotlib.backends.backend_svg  # noqa: F401
    except ImportError:
        return None
    matplotlib.rcParams.update({"svg.fonttype": "none", "font.family": ["DejaVu Sans"],
                                "font.size": 12})
    return matplotlib


def literal(string, most=28):
    """A name as a text of matplotlib: of bounded length, and no formula where it has dollars."""
    string = clean(string)
    string = string if len(string) <= most else string[:most - 1] + "…"
    return string.replace("$", r"\$")


# ---- axes ----------------------------------------------------------------------------------------

def thin(values, most):
    """At most so many of them, evenly, the last one among them."""
    step = max(1, math.ceil(len(values) / most))
    return values[::-1][::step][::-1]


def size_ticks(low, high, most=6):
    """Powers of two between two sizes; the ends themselves where there are too few."""
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    if last - first < 1:
        return sorted({low, high})
    for step in (1, 2, 3, 4, 5, 6, 8, 10):
        ticks = [2.0 ** e for e in range(first, last + 1, step)]
        if len(ticks) <= most:
            return ticks
    return [2.0 ** first, 2.0 ** last]


def log_ticks(low, high, most=7):
    """1, 2 and 5 times powers of ten, or fewer where that is too many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10.0 ** d for d in decades for m in steps if low <= m * 10.0 ** d <= high]
        if 2 <= len(ticks) <= most:
            return ticks
    return thin(ticks, most) if len(ticks) > 1 else [low, high]


def scale_x(axes, lines):
    xs = [p[0] for line in lines for p in line.points]
    low, high = min(xs), max(xs)
    axes.set_xscale("log", base=2)
    room = 2 ** 0.5 if low == high else (high / low) ** 0.02
    axes.set_xlim(low / room, high * room)
    ticks = size_ticks(low, high)
    axes.set_xticks(ticks, [size_text(int(t)) for t in ticks])
    axes.set_xticks([], minor=True)


def time_text(us):
    """A round time in the unit that suits it."""
    for unit, name in ((1e6, "s"), (1e3, "ms"), (1, "µs")):
        if us >= unit:
            break
    return f"{us / unit:.4g} {name}"


def scale_y(axes, chart):
    """Bandwidths and shares from zero; times, which span decades, by their logarithm."""
    ys = [y for line in chart.lines for p in line.points for y in p[1:]]
    low, high = min(ys), max(ys)
    if not chart.log:
        axes.set_ylim(0, high * 1.08 if high > 0 else 1)
        axes.locator_params(axis="y", nbins=6)
        ticks = [t for t in axes.get_yticks() if t <= axes.get_ylim()[1]]
        axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
        return
    room = max((high / low) ** 0.06, 1.1)
    axes.set_yscale("log")
    axes.set_ylim(low / room, high * room)
    ticks = log_ticks(low / room, high * room)
    axes.set_yticks(ticks, [time_text(t) for t in ticks])
    axes.set_yticks([], minor=True)


def new_axes(mpl, width, height, margins=None):
    """Axes with the look that all charts share: a base line, faint lines across, no frame."""
    m = margins or MARGINS
    drawing = mpl.figure.Figure(figsize=(width / 72, height / 72), facecolor="none")
    axes = drawing.add_axes((m["left"] / width, m["bottom"] / height,
                             1 - (m["left"] + m["right"]) / width,
                             1 - (m["top"] + m["bottom"]) / height), facecolor="none")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set(color=AXIS, linewidth=1)
    axes.tick_params(length=0, pad=7, colors=INK, labelsize=12)
    axes.tick_params(axis="x", length=4, color=AXIS)
    axes.grid(axis="y", color=GRID, linewidth=1)
    axes.set_axisbelow(True)
    return drawing, axes


# ---- lines -----------------------------------------------------------------------------------

def draw_line(axes, line):
    xs, ys, lows, highs = zip(*line.points)
    base = line.colour < 0
    if any(low < high for low, high in zip(lows, highs)):
        axes.fill_between(xs, lows, highs, color=line.shade(), alpha=0.16, linewidth=0)
    axes.plot(xs, ys, color=line.shade(), linewidth=4 if base else 1.8,
              alpha=0.75 if base else 1, dashes=(5, 2.5) if line.dashed else (None, None),
              solid_capstyle="round", solid_joinstyle="round",
              marker=line.shape() or ("o" if len(xs) == 1 else ""), markersize=5.5,
              markerfacecolor=PAPER if line.dashed else line.shade(), markeredgewidth=1.4)
    wrong = [(x, y) for x, y in zip(xs, ys) if x in line.marked]
    if wrong:
        axes.plot(*zip(*wrong), linestyle="", marker="x", markersize=13, markeredgewidth=2.6,
                  color=BAD)


def note(axes, said, corner, shift, align):
    axes.annotate(said, corner, xycoords="axes fraction", xytext=shift,
                  textcoords="offset points", ha=align, color=INK)


def draw(mpl, chart):
    """Fill in chart.svg. Lines keep only what the scales can show; without any there is no SVG."""
    for line in chart.lines:
        line.points = [p for p in line.points if p[0] > 0 and (p[2] > 0 or not chart.log)]
    chart.lines = [line for line in chart.lines if line.points]
    if mpl is None or not chart.lines:
        return
    drawing, axes = new_axes(mpl, WIDTH, HEIGHT)
    scale_x(axes, chart.lines)
    scale_y(axes, chart)
    for line in sorted(chart.lines, key=lambda c: c.colour >= 0):
        draw_line(axes, line)
    note(axes, "" if chart.log else chart.unit, (0, 1), (4 - MARGINS["left"], 13), "left")
    note(axes, "message size", (1, 0), (0, -42), "right")
    chart.svg = to_svg(mpl, drawing, chart.name, chart.text)


# ---- pairs -----------------------------------------------------------------------------------

def middle(pairs):
    values = [v for row in pairs.values for v in row if v is not None]
    return statistics.median(values) if values else None


def heat_class(pairs_middle, value):
    """By its ratio to the median: noise looks like noise, and a slow pair does not."""
    ratio = value / pairs_middle if pairs_middle else 1
    return next((i for i, top in enumerate(HEAT_TOPS) if ratio < top), HEAT_CLASSES - 1)


def draw_pairs(mpl, name, pairs, alt):
    """The SVG of a matrix: a square per pair, with its figure where there is room."""
    n = len(pairs.ends)
    cell = max(9, min(46, 620 // n))
    names = [literal(e, 20) for e in pairs.ends]
    label = 8 * max(map(len, names)) + 14
    numbers = cell >= 34
    margins = {"left": label, "right": 8, "top": label if n > 1 else 30, "bottom": 8}
    width, height = n * cell + label + 8, n * cell + margins["top"] + 8
    drawing, axes = new_axes(mpl, width, height, margins)
    axes.grid(False)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, n)
    axes.set_ylim(n, 0)
    median = middle(pairs)
    for y, row in enumerate(pairs.values):
        for x, value in enumerate(row):
            at = None if value is None else heat_class(median, value)
            axes.add_patch(mpl.patches.Rectangle(
                (x + 0.03, y + 0.03), 0.94, 0.94, linewidth=0 if value is not None else 0.6,
                facecolor="none" if at is None else HEAT[at], edgecolor=GRID))
            if numbers and at is not None:
                axes.text(x + 0.5, y + 0.62, figure(value, 2), ha="center", color=HEAT_INK[at])
    every = thin(list(range(n)), max(2, int(n * cell / 17)))
    names = [names[i] for i in every]
    centres = [i + 0.5 for i in every]
    axes.xaxis.tick_top()
    axes.tick_params(axis="x", length=0)
    axes.set_xticks(centres, names, rotation=90)
    axes.set_yticks(centres, names)
    return to_svg(mpl, drawing, name, alt, natural=True)


# ---- matplotlib's SVG to the page's ------------------------------------------------------------

def to_svg(mpl, drawing, name, alt, natural=False):
    """An <svg> for the middle of a page: no header, no style of its own, ids of its own."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that matplotlib lacks: the browser has it
        drawing.savefig(buffer, format="svg", transparent=True,
                        metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>", "",
                 svg, flags=re.S)
    opening = re.search(r'viewBox="([^"]+)"', svg)[1]
    limit = f' style="--natural:{float(opening.split()[2]):.0f}px"' if natural else ""
    body = svg[svg.index(">") + 1:]
    body = re.sub(r"\bfont(-[a-z]+)?: [^;\"]+(; )?", "", body).replace(' style=""', "")
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'xlink:href="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), body)
    body = re.sub("#0a0[b-e][0-9a-f]{2}", lambda m: VARIABLES[m[0]], body)
    body = re.sub(r"\s*\n\s*", "\n", body).strip()
    return f'<svg viewBox="{opening}" role="img" aria-label="{esc(alt)}"{limit}>\n{body}'
