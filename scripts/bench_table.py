#!/usr/bin/env python3
"""Medians over launches of bench/*_compare: Markdown on stdout, JSON under a folder.

usage: bench_table.py FOLDER LAUNCH.txt...
"""
import json
import re
import statistics
import sys
import time
from pathlib import Path

NEAR_NS = 150  # an exchange of flags inside one shared cache is faster than this
NAMES = {"collmark": "Collmark", "mpi": "MPI", "sockets": "plain sockets"}


def read_launch(path):
    """One launch: its header values, the sides, and (collective, bytes) -> row."""
    head, sides, rows = {}, [], {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        found = re.match(r"# ([a-z ]+): (.*)", line)
        if found:
            head[found[1]] = found[2]
        elif line.startswith("#"):
            sides = re.findall(r"(\w+) us", line)
        elif line:
            name, size, *figures, same, plan = line.split()
            rows[name, int(size)] = {"us": dict(zip(sides, map(float, figures))),
                                     "same": same, "plan": plan}
    return head, sides, rows


def placement(head):
    """near or far if both probes agree, else moved; None without probes."""
    if "probe before" not in head:
        return None
    near = {float(head[k].split()[0]) < NEAR_NS for k in ("probe before", "probe after")}
    return "moved" if len(near) == 2 else "near" if near == {True} else "far"


def ratio_key(side):
    return "ratio" if side == "mpi" else f"{side}_ratio"


def merge(launches):
    """Medians over the launches: of each figure, and of the ratios, each from one launch."""
    table = []
    sides = launches[0][1]
    for key in launches[0][2]:
        rows = [rows[key] for _, _, rows in launches if key in rows]
        us = {s: statistics.median(r["us"][s] for r in rows) for s in sides}
        merged = {"collective": key[0], "bytes": key[1], **{f"{s}_us": us[s] for s in sides}}
        for s in sides[1:]:
            ratios = sorted(r["us"][s] / r["us"][sides[0]] for r in rows)
            merged |= {ratio_key(s): statistics.median(ratios),
                       f"{ratio_key(s)}_min": ratios[0], f"{ratio_key(s)}_max": ratios[-1]}
        merged |= {"launches": len(rows), "same": all(r["same"] == "ok" for r in rows),
                   "plan": rows[0]["plan"]}
        table.append(merged)
    return table


def size_text(n):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit and n % unit == 0:
            return f"{n // unit} {name}"
    return f"{n} B"


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unknown"


def print_table(sides, table):
    ours, *others = sides
    print("| collective | size | " + " | ".join(f"{NAMES[s]} µs" for s in sides)
          + "".join(f" | {NAMES[s]} / {NAMES[ours]} | lowest to highest" for s in others) + " |")
    print("|---|" + "---:|" * (1 + len(sides) + 2 * len(others)))
    for r in table:
        print(f"| {r['collective']} | {size_text(r['bytes'])}"
              + "".join(f" | {r[s + '_us']:.2f}" for s in sides)
              + "".join(f" | {r[k]:.2f} | {r[k + '_min']:.2f} … {r[k + '_max']:.2f}"
                        for k in map(ratio_key, others)) + " |")


def main(folder, *paths):
    launches = [read_launch(p) for p in paths]
    head, sides, _ = launches[0]
    places = [p for p in (placement(h) for h, _, _ in launches) if p is not None]
    table = merge(launches)

    library = head["mpi"].split(",")[0]
    print(" · ".join(filter(None, [library, head["cpu"], head.get("wire"), head["ranks"],
                                   f"{len(launches)} launches"]))
          + (f" ({', '.join(places)})" if places else "") + "\n")
    print_table(sides, table)

    out = Path(folder) / slug(head["cpu"])
    out.mkdir(parents=True, exist_ok=True)
    wire = "-tcp" if "wire" in head else ""
    name = f"{slug(library)}{wire}-np{head['ranks'].split()[0].rstrip(',')}.json"
    kept = {"date": time.strftime("%Y-%m-%d", time.gmtime()),
            **{k: head[k] for k in ("mpi", "cpu", "kernels", "wire", "ranks") if k in head}}
    if places:
        kept |= {"placement": places,
                 "probe_ns": [[h["probe before"], h["probe after"]] for h, _, _ in launches]}
    (out / name).write_text(json.dumps(kept | {"rows": table}, indent=1) + "\n", encoding="utf-8")
    print(f"\nkept in {out / name}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
