"""Matrices of figures between ends: ranks, nodes or GPUs."""
from __future__ import annotations

from .common import Refused, size_text
from .report_model import Pairs, items, number, objects, text, whole


def read_pairs(value):
    """The matrix of a search over pairs of ranks or nodes:

    {"size": bytes, "ends": [names], "unit": "GB/s", "values": [[number or null]],
     "suspects": [{"name": …, "why": …}]}
    """
    found = []
    for item in [value] if isinstance(value, dict) else objects(value):
        ends = [text(e) for e in items(item.get("ends"))]
        rows = items(item.get("values"))
        square = len(rows) == len(ends) and all(
            isinstance(r, list) and len(r) == len(ends) for r in rows)
        if not ends or not square:
            raise Refused("pairs: values are not a square of as many rows as there are ends")
        size = whole(item.get("size"))
        found.append(Pairs(
            title=text(item.get("title")) or ("" if size is None else size_text(size)),
            ends=ends, values=[[number(v) for v in r] for r in rows],
            unit=text(item.get("unit")) or "GB/s",
            suspects=[" – ".join(filter(None, (text(s.get("name")), text(s.get("why")))))
                      for s in objects(item.get("suspects"))]))
    return found


def copy_pairs(document):
    """Copies between GPUs, of scripts/gpu_check.sh."""
    cells = {(text(c.get("from")), text(c.get("to"))): number(c.get("gbs"))
             for c in objects(document.get("copy_gbs"))}
    ends = sorted({e for pair in cells for e in pair}, key=lambda e: (len(e), e))
    if len(ends) < 2:
        return []
    return [Pairs("copies between GPUs", [f"GPU {e}" for e in ends],
                  [[cells.get((a, b)) for b in ends] for a in ends])]
