"""What a report is made of: sources (what was named on the command line), their rows, findings.

Readers turn every kind of file into these; charts and tables know nothing else. None means: not
measured, not checked or not known. Such a value is never counted as right.
"""
from __future__ import annotations

import html
import math
import unicodedata
from dataclasses import dataclass, field

MOST = 1e18         # no size, time or bandwidth is as much
MOST_PARTS = 6      # of a list that has to fit into a line
PLACEMENTS = ("out", "in")
PLACEMENT_NAMES = {"out": "out of place", "in": "in place"}


@dataclass
class Point:
    """One placement of one row. Times in microseconds, bandwidths in GB/s."""
    time: float | None = None
    alg_bw: float | None = None
    bus_bw: float | None = None
    wrong: int | None = None       # wrong elements; None: not checked
    why_not: str | None = None     # why this placement does not exist
    rank_min: float | None = None
    rank_avg: float | None = None
    rank_max: float | None = None
    slowest: int | None = None     # rank
    samples: int = 0
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    most: float | None = None      # longest iteration

    def typical(self):
        """What is held against other runs: the median of the iterations, else their mean."""
        return self.p50 or self.time

    def state(self):
        """right, wrong, unchecked, missing (no figure, and no reason given) or absent."""
        if self.time is None:
            return "absent" if self.why_not else "missing"
        if self.wrong is None:
            return "unchecked"
        return "wrong" if self.wrong else "right"


@dataclass
class Row:
    collective: str
    size: int
    points: dict                   # placement -> Point
    type: str = ""
    redop: str = ""
    root: int = -1
    count: int | None = None
    engine: str = "collmark"
    variant: str = ""              # what else tells two rows of a size apart: group, ranks, graph
    repeat: str = ""               # which of several measurements of the same: cycle, attempt
    plan: str = ""
    note: str = ""
    counted: bool = True
    number: int = 0                # position on the page, the target of links

    def topic(self):
        """Rows of one topic share their charts."""
        return (self.collective, self.type, self.redop, self.root)

    def state(self):
        """The worst of its placements; 'absent' only if there is no other."""
        states = {p.state() for p in self.points.values()}
        for state in ("wrong", "missing", "unchecked", "right"):
            if state in states:
                return state
        return "absent"


@dataclass
class Pairs:
    """A matrix of figures between ends; a row is who sends, a column who receives."""
    title: str
    ends: list
    values: list                   # of lists of float or None
    unit: str = "GB/s"
    suspects: list = field(default_factory=list)


@dataclass
class Attempt:
    """One start of a program, and how it ended."""
    name: str
    exit_code: int | None          # None: not known
    failed: str = ""               # what went wrong besides what the code says
    truncated: str = ""            # why it ended before its end


@dataclass
class Source:
    path: str
    label: str
    rows: list = field(default_factory=list)
    attempts: list = field(default_factory=list)
    problems: list = field(default_factory=list)    # failures that no row shows
    ranks: int | None = None
    times: tuple = ("", "")        # first and last, as the file has them
    average: float | None = None   # bus bandwidth, GB/s
    min_bw: float | None = None    # threshold asked for, GB/s
    oversubscribed: bool = False
    facts: dict = field(default_factory=dict)       # environment: name -> text
    options: dict = field(default_factory=dict)     # name -> text
    devices: list = field(default_factory=list)     # of dicts, one per rank
    pairs: list = field(default_factory=list)
    baseline: bool = False


@dataclass
class Finding:
    level: str                     # fail, open (nothing proves it right), warn or note
    text: str
    rows: list = field(default_factory=list)        # of (Source, Row) to look at


def items(value):
    return value if isinstance(value, list) else []


def objects(value):
    """The objects in a list; anything else in their place is dropped."""
    return [v for v in items(value) if isinstance(v, dict)]


def member(document, name):
    """A member that has to be an object; an empty one where it is not."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def number(value):
    """A float that can be a figure, or None for anything else, also for NaN and for its names."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if -MOST < value < MOST else None


def whole(value):
    value = number(value)
    return int(value) if value is not None and value == int(value) else None


def text(value):
    """Any JSON value in a few words."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and abs(value) < 1e15 and value == int(value):
        return str(int(value))
    if isinstance(value, list):
        return (", " if not objects(value) else "; ").join(text(v) for v in value)
    if isinstance(value, dict):
        return ", ".join(f"{k} {text(v)}" for k, v in value.items() if v not in (None, ""))
    return str(value)


def clean(value):
    """A string as it can be shown: what has no glyph, or turns others around, as its number."""
    if str(value).isascii() and str(value).isprintable():
        return str(value)
    return "".join(
        f"\\u{ord(c):04x}" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") else c
        for c in str(value))


def esc(value):
    """A string from anywhere as text or attribute of a page."""
    return html.escape(clean(value), quote=True)


def flatten(value, prefix=""):
    """name.name -> text, for what fits into a line."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flatten(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and len(value) > MOST_PARTS:
        yield prefix, f"{text(value[:MOST_PARTS])} and {len(value) - MOST_PARTS} more"
    else:
        yield prefix, text(value)


def figure(value, digits=3):
    """A measured value with so many significant digits, without exponent; an en dash for none."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(places, 6)}f}"
