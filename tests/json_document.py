"""One JSON document and one CSV table of a driver, held against the schema and against each other.

The schema is read by the part of its language that it uses; an unknown word of it is an error, so
that the reader here and the schema cannot drift apart.
"""
import csv
import io
import json
import math
import os
import re
from datetime import datetime

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCHEMA = os.path.join(ROOT, "scripts", "result.schema.json")


class Wrong(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Wrong(text)


# ---- schema ----------------------------------------------------------------------------------

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}
NOTES = {"$schema", "$defs", "title", "description"}


def same(a, b):
    return type(a) is type(b) and a == b


def check_object(value, schema, root, at):
    for key in schema.get("required", []):
        check(key in value, f"{at}: {key} is missing")
    named = schema.get("properties", {})
    other = schema.get("additionalProperties", True)
    for key, item in value.items():
        if "propertyNames" in schema:
            validate(key, schema["propertyNames"], root, f"{at}: name {key}")
        if key in named:
            validate(item, named[key], root, f"{at}.{key}")
        elif isinstance(other, dict):
            validate(item, other, root, f"{at}.{key}")
        else:
            check(other, f"{at}: unknown key {key}")


def validate(value, schema, root, at="$"):
    known = NOTES | {"$ref", "type", "const", "enum", "minimum", "pattern", "required", "items",
                     "minItems", "properties", "additionalProperties", "propertyNames"}
    check(set(schema) <= known, f"{at}: the schema says {set(schema) - known}")
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target[part]
        validate(value, target, root, at)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        check(any(TYPES[n](value) for n in names), f"{at}: {value!r} is not {names}")
    if "const" in schema:
        check(same(value, schema["const"]), f"{at}: {value!r} is not {schema['const']!r}")
    if "enum" in schema:
        check(any(same(value, e) for e in schema["enum"]), f"{at}: {value!r} is none of the enum")
    if "minimum" in schema and TYPES["number"](value):
        check(value >= schema["minimum"], f"{at}: {value} < {schema['minimum']}")
    if "pattern" in schema and isinstance(value, str):
        check(re.search(schema["pattern"], value), f"{at}: {value!r} does not match")
    if isinstance(value, list):
        check(len(value) >= schema.get("minItems", 0), f"{at}: {len(value)} items")
        for i, item in enumerate(value):
            validate(item, schema.get("items", {}), root, f"{at}[{i}]")
    if isinstance(value, dict):
        check_object(value, schema, root, at)


# ---- what a schema cannot say ----------------------------------------------------------------

def no_constant(name):
    raise Wrong(f"{name} is not JSON")


def no_twins(pairs):
    keys = [k for k, _ in pairs]
    check(len(set(keys)) == len(keys), f"a key comes twice: {keys}")
    return dict(pairs)


def check_placement(row, half, where, moved):
    """`moved` is the part of the size that algbw counts."""
    if half["time"] is None:
        check(half["why_not"], f"{where}: no time and no reason")
        check(half["nwrong"] is None, f"{where}: checked but not measured")
        return
    check(half["time"] > 0 and math.isfinite(half["time"]), f"{where}: time {half['time']}")
    if row["size"] > 0 and half["alg_bw"] is not None:
        # size bytes in time us
        bw = row["size"] * moved / half["time"] / 1e3
        check(abs(half["alg_bw"] - bw) <= 1e-6 * bw, f"{where}: alg_bw {half['alg_bw']}, not {bw}")
    low, mid, high = half["rank_min"], half["rank_avg"], half["rank_max"]
    check(low <= mid * (1 + 1e-9) and mid <= high * (1 + 1e-9), f"{where}: {low}, {mid}, {high}")


def check_samples(s, where):
    if s["samples"] == 0:
        return
    order = [s["min_us"], s["p50_us"], s["p95_us"], s["p99_us"], s["max_us"]]
    check(order == sorted(order), f"{where}: {order} is not in order")
    check(s["min_us"] <= s["avg_us"] <= s["max_us"], f"{where}: mean {s['avg_us']}")


def check_rounds(r, half, where):
    """The time of a row is the median of its rounds."""
    times = sorted(r["times_us"])
    check(abs(times[(len(times) - 1) // 2] - half["time"]) <= 1e-9 * half["time"],
          f"{where}: {half['time']} is not the median of {times}")
    order = [r["ratio_low"], r["ratio"], r["ratio_high"]]
    check(None in order or order == sorted(order), f"{where}: {order} is not in order")


def check_rows(doc):
    wrong, bandwidths = 0, []
    first = doc["results"][0]["engine"] if doc["results"] else None  # it alone is averaged
    members = [len(g["ranks"]) for g in doc["groups"]]
    for i, row in enumerate(doc["results"]):
        for name in ("out_of_place", "in_place"):
            half, where = row[name], f"results[{i}].{name}"
            n = members[row["group"]]
            # hypercube counts what arrives: its own block does not.
            moved = (n - 1) / n if doc["collective"] == "hypercube" else 1
            check_placement(row, half, where, moved)
            if name + "_per_iter" in row:
                check_samples(row[name + "_per_iter"], where)
            wrong += half["nwrong"] or 0
            if name + "_rounds" in row:
                check_rounds(row[name + "_rounds"], half, where)
            averaged = row["counted"] and row["group"] == 0 and row["engine"] == first
            if averaged and half["bus_bw"] is not None:
                bandwidths.append(half["bus_bw"])
    check((doc["summary"]["wrong"] or 0) == wrong, f"summary.wrong, but the rows have {wrong}")
    average = doc["summary"]["average_bus_bandwidth"]
    if bandwidths and average is not None:
        mean = sum(bandwidths) / len(bandwidths)
        check(abs(mean - average) <= 1e-6 * mean + 1e-12, f"average {average}, not {mean}")


def check_document(text):
    doc = json.loads(text, parse_constant=no_constant, object_pairs_hook=no_twins)
    with open(SCHEMA, encoding="utf-8") as f:
        schema = json.load(f)
    validate(doc, schema, schema)
    summary = doc["summary"]
    check(summary["okay"] == (summary["exit_code"] == 0), "summary.okay")
    check(not summary["truncated"] or summary["why_truncated"], "truncated without a reason")
    check(summary["rows"] == len(doc["results"]), f"{summary['rows']} rows")
    check([d["rank"] for d in doc["devices"]] == list(range(doc["ranks"])), "devices")
    members = sorted(r for g in doc["groups"] for r in g["ranks"])
    check(members == list(range(doc["ranks"])), f"groups hold {members}")
    for d in doc["devices"]:
        check(doc["groups"][d["group"]]["ranks"][d["group_rank"]] == d["rank"], f"place of {d}")
    start, end = (datetime.fromisoformat(doc[k].replace("Z", "+00:00"))
                  for k in ("start_time", "end_time"))
    check(start <= end, f"{start} to {end}")
    check_rows(doc)
    return doc


def check_csv(text):
    lines = list(csv.reader(io.StringIO(text)))
    check(len(lines) > 1, "no rows")
    widths = {len(l) for l in lines}
    check(len(widths) == 1, f"lines with {sorted(widths)} columns")
    check(len(set(lines[0])) == len(lines[0]), "a column comes twice")
    rows = [dict(zip(lines[0], l)) for l in lines[1:]]
    for row in rows:
        for name, value in row.items():
            if re.search(r"_us$|_gbs$|_pct$|^size$|^count$|^wrong$|^ranks$", name) and value:
                check(math.isfinite(float(value)), f"{name} is {value}")
    return rows
