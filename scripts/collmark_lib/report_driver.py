"""A document of -J, as scripts/result.schema.json has it, or of nccl-tests, which is its model.

Files come from anywhere. A value of the wrong kind is a missing value; only what would be misread
is refused.
"""
from __future__ import annotations

import os
import re
import shlex

from .common import Refused
from .report_model import (MOST_PARTS, Attempt, Point, Row, Source, flatten, items, member, number,
                           objects, text, whole)
from .report_pairs import read_pairs
from .result import SCHEMA

# What has a place of its own on the page. All else that a document knows is listed as a fact.
KNOWN = {
    "schema", "collmark", "program", "collective", "args", "start_time", "end_time", "units",
    "ranks", "config", "environment", "from_environment", "devices", "groups", "results", "pairs",
    "out_of_bounds", "average_bus_bandwidth", "summary", "machine", "version", "env",
    "time_definition"}

def read_point(row, name):
    place, spread = member(row, name), member(row, name + "_per_iter")
    return Point(
        time=number(place.get("time" if "time" in place else "cpu_time")),  # nccl-tests: either
        alg_bw=number(place.get("alg_bw")), bus_bw=number(place.get("bus_bw")),
        wrong=whole(place.get("nwrong")), why_not=text(place.get("why_not")) or None,
        rank_min=number(place.get("rank_min")), rank_avg=number(place.get("rank_avg")),
        rank_max=number(place.get("rank_max")), slowest=whole(place.get("slowest_rank")),
        samples=whole(spread.get("samples")) or 0, p50=number(spread.get("p50_us")),
        p95=number(spread.get("p95_us")), p99=number(spread.get("p99_us")),
        most=number(spread.get("max_us")))


def read_root(value):
    """nccl-tests writes it as a padded string."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return -1


def driver_rows(document, collective, attempt):
    groups = {text(r.get("group")) for r in objects(document.get("results"))}
    engines = {text(r.get("engine")) or "builtin" for r in objects(document.get("results"))}
    for at, item in enumerate(objects(document.get("results"))):
        size = whole(item.get("size"))
        if size is None or size < 0:
            raise Refused(f"results[{at}] has no size")
        plan = [text(item.get(k)) for k in ("algorithm", "mode", "protocol") if item.get(k)]
        channels = whole(item.get("channels"))
        if plan and channels and channels > 1:
            plan.append(f"{channels} channels")
        cycle = text(item.get("cycle"))
        variants = [f"group {text(item.get('group'))}"] if len(groups) > 1 else []
        if engines != {"builtin"}:
            variants.append(f"engine {text(item.get('engine')) or 'builtin'}")
        yield Row(
            collective=collective, size=size, count=whole(item.get("count")),
            points={"out": read_point(item, "out_of_place"),
                    "in": read_point(item, "in_place")},
            type=text(item.get("type")), redop=text(item.get("redop")),
            root=read_root(item.get("root")),
            variant=", ".join(variants),
            repeat=" ".join(p for p in (attempt, cycle and f"cycle {cycle}") if p),
            plan=" ".join(plan), note=text(item.get("note")),
            counted=item.get("counted") is not False)


def shortened(names):
    names = list(dict.fromkeys(n for n in names if n))
    more = f" and {len(names) - MOST_PARTS} more" if len(names) > MOST_PARTS else ""
    return ", ".join(names[:MOST_PARTS]) + more


def driver_facts(document, devices):
    facts = {"program": f"{program_of(document)[0]} {text(document.get('collmark'))}".strip(),
             "hosts": shortened(text(d.get("hostname")) for d in devices),
             "processors": shortened(text(d.get("device_info")) for d in devices)}
    facts.update(flatten(member(document, "machine")))
    facts["time of a row"] = text(document.get("time_definition"))
    for key, value in document.items():
        if key not in KNOWN:
            facts.update(flatten(value, key))
    facts["command"] = shlex.join(text(a) for a in items(document.get("args")))
    for key, value in flatten(member(document, "environment")):
        facts[f"${key}"] = value
    return {k: v for k, v in facts.items() if v != ""}


def read_ending(document, name):
    """How the run ended, by its summary. nccl-tests says no more than whether data were right."""
    summary = member(document, "summary")
    if not summary:
        fine = text(member(document, "out_of_bounds").get("okay")) in ("true", "yes")
        return Attempt(name, None, "" if fine else "does not say that it ended well")
    code = whole(summary.get("exit_code"))
    why = text(summary.get("why_truncated")) or "ended early"
    return Attempt(name, code, "no exit code" if code is None else "",
                   why if summary.get("truncated") is True else "")


def program_of(document):
    args = items(document.get("args"))
    program = text(document.get("program")) or os.path.basename(text(args[0]) if args else "")
    collective = text(document.get("collective")) or re.sub(r"_perf.*$", "", program)
    return program, collective or "unknown"


def driver_source(path, document, attempt=""):
    """Refused: of a newer schema than is known here, or a row without a size."""
    collective = program_of(document)[1]
    schema = document.get("schema", SCHEMA)
    if whole(schema) is None or schema > SCHEMA:
        raise Refused(f"schema {text(schema)}; this program reads up to {SCHEMA}")
    devices = objects(document.get("devices")) or objects(
        member(document, "config").get("devices"))
    options = member(document, "config")
    return Source(
        path=str(path), label="",
        rows=list(driver_rows(document, collective, attempt)),
        attempts=[read_ending(document, attempt)],
        ranks=whole(document.get("ranks")) or len(devices) or None,
        times=(text(document.get("start_time")), text(document.get("end_time"))),
        average=number(member(document, "average_bus_bandwidth").get("bandwidth")),
        min_bw=number(options.get("min_bw")) or None,
        oversubscribed=member(document, "machine").get("oversubscribed") is True,
        facts=driver_facts(document, devices),
        options={k: v for k, v in flatten(options) if v != "" and k != "devices"},
        devices=devices, pairs=read_pairs(document.get("pairs")))
