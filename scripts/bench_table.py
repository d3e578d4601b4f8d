#!/usr/bin/env python3
"""Medians over launches of bench/mpi_compare: Markdown on stdout, JSON under a folder.

usage: bench_table.py FOLDER LAUNCH.txt...
"""
import json
import re
import statistics
import sys
import time
from pathlib import Path

NEAR_NS = 150  # an exchange of flags inside one shared cache is faster than this


def read_launch(path):
    """One launch: its header values, and (collective, bytes) -> row."""
    head, rows = {}, {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        found = re.match(r"# ([a-z ]+): (.*)", line)
        if found:
            head[found[1]] = found[2]
        elif line and not line.startswith("#"):
            name, size, ours, mpi, _ratio, same, plan = line.split()
            rows[name, int(size)] = {
                "collmark_us": float(ours), "mpi_us": float(mpi), "same": same, "plan": plan}
    return head, rows


def placement(head):
    """near or far if both probes agree, else moved."""
    near = {float(head[k].split()[0]) < NEAR_NS for k in ("probe before", "probe after")}
    return "moved" if len(near) == 2 else "near" if near == {True} else "far"


def merge(launches):
    """Median of each figure over the launches, and the spread of the ratio."""
    table = []
    for key in launches[0][1]:
        rows = [rows[key] for _, rows in launches if key in rows]
        ours = statistics.median(r["collmark_us"] for r in rows)
        mpi = statistics.median(r["mpi_us"] for r in rows)
        ratios = sorted(r["mpi_us"] / r["collmark_us"] for r in rows)
        table.append({
            "collective": key[0], "bytes": key[1], "collmark_us": ours, "mpi_us": mpi,
            "ratio": mpi / ours, "ratio_min": ratios[0], "ratio_max": ratios[-1],
            "launches": len(rows), "same": all(r["same"] == "ok" for r in rows),
            "plan": rows[0]["plan"]})
    return table


def size_text(n):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit and n % unit == 0:
            return f"{n // unit} {name}"
    return f"{n} B"


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unknown"


def main(folder, *paths):
    launches = [read_launch(p) for p in paths]
    head = launches[0][0]
    places = [placement(h) for h, _ in launches]
    table = merge(launches)

    library = head["mpi"].split(",")[0]
    print(f"{library} · {head['cpu']} · {head['ranks']} · {len(launches)} launches "
          f"({', '.join(places)})\n")
    print("| collective | size | Collmark µs | MPI µs | MPI / Collmark | lowest to highest |")
    print("|---|---:|---:|---:|---:|---:|")
    for r in table:
        print(f"| {r['collective']} | {size_text(r['bytes'])} | {r['collmark_us']:.2f} "
              f"| {r['mpi_us']:.2f} | {r['ratio']:.2f} "
              f"| {r['ratio_min']:.2f} … {r['ratio_max']:.2f} |")

    out = Path(folder) / slug(head["cpu"])
    out.mkdir(parents=True, exist_ok=True)
    name = f"{slug(library)}-np{head['ranks'].split()[0].rstrip(',')}.json"
    (out / name).write_text(json.dumps({
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "mpi": head["mpi"], "cpu": head["cpu"], "kernels": head["kernels"],
        "ranks": head["ranks"], "placement": places,
        "probe_ns": [[h["probe before"], h["probe after"]] for h, _ in launches],
        "rows": table}, indent=1) + "\n", encoding="utf-8")
    print(f"\nkept in {out / name}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
