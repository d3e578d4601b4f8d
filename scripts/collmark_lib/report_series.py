"""From rows to curves: which rows make one curve, what it is called, and its value at each size.

A topic is what shares a chart: collective, type, operation and root. A curve is one topic of one
source, engine, variant and placement. Rows of one curve and size (cycles, attempts) are samples of
one thing: the curve shows their median.
"""
from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from .report_model import PLACEMENT_NAMES, PLACEMENTS

COLOURS = 8        # as many as the style sheet has; further curves are in the tables only
BASELINE = -1      # colour of the baseline


@dataclass
class Curve:
    source: object
    key: tuple                       # engine, variant, placement
    samples: dict = field(default_factory=dict)     # size -> [(Row, Point)]
    label: str = ""
    colour: int = 0

    def placement(self):
        return self.key[2]

    def at(self, size, name):
        """Median, least and most of a figure of Point at this size, or None."""
        values = [getattr(p, name) for _, p in self.samples.get(size, ())]
        values = [v for v in values if v is not None]
        return (statistics.median(values), min(values), max(values)) if values else None

    def line(self, name):
        """[(size, median, least, most)] of the sizes that have the figure, rising."""
        found = ((size, self.at(size, name)) for size in sorted(self.samples))
        return [(size, *value) for size, value in found if value]

    def wrong_sizes(self):
        return [size for size, samples in self.samples.items()
                if any(p.wrong for _, p in samples)]


@dataclass
class Topic:
    name: tuple
    curves: list = field(default_factory=list)

    def title(self):
        collective, kind, redop, root = self.name
        parts = [collective, kind, "" if redop == "none" else redop,
                 "" if root < 0 else f"root {root}"]
        return " · ".join(p for p in parts if p)

    def drawn(self):
        return [c for c in self.curves if c.colour < COLOURS]


def make_topics(sources):
    """Topics in the order of the files, their curves named and coloured."""
    topics = {}
    for source in sources:
        for row in source.rows:
            topic = topics.setdefault(row.topic(), {})
            for placement in PLACEMENTS:
                point = row.points.get(placement)
                if point is None or point.time is None:
                    continue
                key = (row.engine, row.variant, placement)
                curve = topic.setdefault((id(source), key), Curve(source, key))
                curve.samples.setdefault(row.size, []).append((row, point))
    made = [Topic(name, list(curves.values())) for name, curves in topics.items()]
    colours = {}
    for topic in made:
        name_curves(topic.curves)
        for curve in topic.curves:
            owner = (id(curve.source), curve.key[:2])
            curve.colour = BASELINE if curve.source.baseline else colours.setdefault(
                owner, len(colours))
    return made


def name_curves(curves):
    """Only what differs within the topic; the source where nothing does."""
    several = [len({f(c) for c in curves}) > 1 for f in (
        lambda c: id(c.source), lambda c: c.key[0], lambda c: c.key[1], lambda c: c.key[2])]
    for curve in curves:
        engine, variant, placement = curve.key
        name = ("baseline " if curve.source.baseline else "") + curve.source.label
        parts = [name, engine, variant, PLACEMENT_NAMES[placement]]
        curve.label = ", ".join(p for p, wanted in zip(parts, several) if wanted and p) or name


def baseline_of(sources):
    """(topic, engine, variant, size, placement) -> median of their typical times, in µs."""
    times = {}
    for source in sources:
        if not source.baseline:
            continue
        for row in source.rows:
            for placement, point in row.points.items():
                if point.typical():
                    key = (row.topic(), row.engine, row.variant, row.size, placement)
                    times.setdefault(key, []).append(point.typical())
    return {key: statistics.median(values) for key, values in times.items()}


def against(baseline, row, placement):
    """Speed relative to the baseline: 1.1 is ten per cent faster. None where there is none."""
    point = row.points.get(placement)
    before = baseline.get((row.topic(), row.engine, row.variant, row.size, placement))
    now = point.typical() if point is not None else None
    return before / now if before and now else None
