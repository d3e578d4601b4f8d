"""What is held against a run: tables of other engines, and baselines.

Tables are those that `make bench` and scripts/gpu_check.sh keep: rows with bytes and microseconds,
of one engine, or of several side by side.
"""
from __future__ import annotations

import re

from .baseline_file import VERSION
from .common import Refused
from .report_model import (PLACEMENTS, Point, Row, Source, flatten, items, member, number, objects,
                           text, whole)
from .report_pairs import copy_pairs


def table_point(item, engine):
    """One figure of a row: its own time_us, or that of one of the engines side by side."""
    same = item.get("same")
    time = number(item.get("time_us" if engine is None else engine + "_us"))
    return Point(time=time, bus_bw=number(item.get("busbw")) if engine is None else None,
                 wrong=None if same is None else int(same is not True))


def table_rows(document):
    for at, item in enumerate(objects(document.get("rows"))):
        size = whole(item.get("bytes"))
        if size is None or size < 0:
            raise Refused(f"rows[{at}] has no bytes")
        engines = [k[:-3] for k in item if k.endswith("_us") and k != "time_us"] or [None]
        ranks = whole(item.get("ranks"))
        graph = "graph" if item.get("graph") is True else ""
        for engine in engines:
            plan = [text(item.get(k)) for k in ("plan", "algo", "mode", "proto") if item.get(k)]
            ours = (engine or item.get("engine", "collmark")) == "collmark"
            yield Row(
                collective=re.sub(r"_perf$", "", text(item.get("collective"))), size=size,
                points={"out": table_point(item, engine)},
                engine=engine or text(item.get("engine")) or "collmark",
                variant=", ".join(p for p in (ranks and f"{ranks} ranks", graph) if p),
                plan=" ".join(plan) if ours else "")


def table_source(path, document):
    rows = list(table_rows(document))
    failed = [c for c in objects(document.get("cases")) if c.get("verdict") == "fail"]
    skip = ("rows", "cases", "copy_gbs", "probe_ns")
    facts = {k: v for key, value in document.items() if key not in skip
             for k, v in flatten(value, key) if v != ""}
    return Source(
        path=str(path), label="", rows=rows,
        problems=[f"{text(c.get('step'))}: {text(c.get('name'))} (exit {text(c.get('exit'))})"
                  for c in failed],
        times=(text(document.get("date")), ""), facts=facts, pairs=copy_pairs(document))


# ---- baselines -----------------------------------------------------------------------------------

def baseline_rows(document):
    """Each launch of a key is a row: the times are medians of iterations where there were any."""
    rows = objects(document.get("rows"))
    groups = {text(r.get("group")) for r in rows}
    for at, item in enumerate(rows):
        size, middle = whole(item.get("bytes")), number(item.get("median_us"))
        placement = item.get("placement")
        if size is None or size < 0 or placement not in PLACEMENTS:
            raise Refused(f"rows[{at}] has no bytes or no placement")
        root = whole(item.get("root"))
        work = (number(item.get("busbw_gbs")) or 0) * (middle or 0)
        for launch, value in enumerate(items(item.get("times_us"))):
            time = number(value)
            yield Row(
                collective=text(item.get("collective")), size=size, type=text(item.get("type")),
                redop=text(item.get("op")), root=-1 if root is None else root,
                points={placement: Point(time=time, bus_bw=work / time if work and time else None,
                                         p50=time)},
                variant=f"group {text(item.get('group'))}" if len(groups) > 1 else "",
                repeat=f"launch {launch + 1}", plan=text(item.get("plans")))


def baseline_source(path, document):
    """Refused: of a newer version than is known here, or a damaged row."""
    version = document.get("version")
    if whole(version) is None or version > VERSION:
        raise Refused(f"baseline version {text(version)}; this program reads up to {VERSION}")
    facts = {k: text(v) for k, v in member(document, "environment").items()}
    names = {"device": "processors"}
    ranks = facts.get("ranks", "")
    return Source(
        path=str(path), label="",
        rows=list(baseline_rows(document)),
        ranks=int(ranks) if re.fullmatch("[0-9]{1,9}", ranks) else None,
        times=(text(document.get("measured")), ""),
        facts={"launches": text(document.get("launches")),
               **{names.get(k, k): v for k, v in facts.items() if not k.startswith("option ")}},
        options={k[7:]: v for k, v in facts.items() if k.startswith("option ")})
