"""Results that were never measured, and pages of them: for the tests of `collmark report`."""
import functools
import importlib.util
import json
import os
import subprocess

from collmark_rig import COLLMARK, ROOT, STRETCH, check
from html_check import Page

LIBRARY = os.path.join(ROOT, "scripts", "collmark_lib")
MOMENT = "2026-01-02T03:04:05.678Z"


# ---- documents that were never measured --------------------------------------------------------

def half(size, time, wrong=0):
    spread = {"samples": 20, "skipped_iterations": 0, "min_us": time * 0.9, "max_us": time * 3,
              "avg_us": time, "p50_us": time * 0.95, "p95_us": time * 1.5, "p99_us": time * 2,
              "stdev_us": 1.0, "cv_pct": 5.0}
    return {"time": time, "cpu_time": time, "alg_bw": size / time / 1e3,
            "bus_bw": 1.5 * size / time / 1e3, "nwrong": wrong, "first_time": 99.0,
            "rank_min": time * 0.9, "rank_avg": time * 0.95, "rank_max": time,
            "slowest_rank": 1, "why_not": None}, spread


def make_row(size, speed=1.0):
    row = {"cycle": 0, "group": 0, "size": size, "count": size // 4, "type": "float",
           "redop": "sum", "root": -1, "algorithm": "ring", "mode": "copy", "protocol": "ll",
           "channels": 1, "start_time": MOMENT, "counted": True, "note": None}
    for name, factor in (("out_of_place", 1.0), ("in_place", 0.8)):
        row[name], row[name + "_per_iter"] = half(size, factor * (2 + size / 8e3) / speed)
    return row


def make_document(sizes=range(3, 24, 2), speed=1.0, host="node01"):
    devices = [{"rank": r, "group": 0, "group_rank": r, "node": 0, "process": r, "thread": 0,
                "pid": 10 + r, "hostname": host, "boot_id": "b", "device": r,
                "device_info": "NVIDIA H200", "bus_id": None, "cpus": str(r), "numa": 0}
               for r in range(4)]
    rows = [make_row(1 << s, speed) for s in sizes]
    return {
        "schema": 1, "collmark": "0.1.0", "program": "all_reduce_perf",
        "collective": "all_reduce", "args": ["build/all_reduce_perf", "-b", "8"],
        "start_time": MOMENT, "end_time": MOMENT,
        "units": {"time": "us", "bandwidth": "1e9 B/s", "size": "B"},
        "time_definition": "maximum over ranks", "ranks": 4,
        "machine": {"backend": "cuda", "wire": "p2p", "kernels": "CUDA", "clock": "c",
                    "mpi": "Open MPI 5", "oversubscribed": False},
        "config": {"nthreads": 1, "ngpus": 4, "min_bw": 0, "iters": 20},
        "environment": {"NCCL_DEBUG": "WARN"}, "from_environment": [], "devices": devices,
        "groups": [{"group": 0, "ranks": [0, 1, 2, 3], "average_bus_bandwidth": 5.0}],
        "results": rows, "out_of_bounds": {"count": 0, "okay": True},
        "average_bus_bandwidth": {"bandwidth": 5.0, "okay": None},
        "summary": {"okay": True, "exit_code": 0, "status": "success", "rows": len(rows),
                    "bad_rows": 0, "wrong": 0, "average_bus_bandwidth": 5.0,
                    "slowest_group": 0, "truncated": False, "why_truncated": None}}


def keep(folder, name, document):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    return path


class Report:
    """One call of the program; the page is read back if there is one. Without drawings, which take
    most of the time, unless they are asked for."""

    def __init__(self, folder, *args, env=None, out="report.html", drawings=False):
        self.path = os.path.join(folder, out)
        env = {**(env or {}), **({} if drawings else {"PYTHONPATH": no_matplotlib(folder)})}
        done = subprocess.run(
            [COLLMARK, "report", *args, "-o", self.path], capture_output=True, timeout=60 * STRETCH,
            check=False, env={**os.environ, **env}, cwd=folder)
        self.code, self.err = done.returncode, done.stderr.decode("utf-8", "replace")
        self.page = None
        if os.path.isfile(self.path):
            with open(self.path, "rb") as file:
                self.page = file.read().decode("utf-8")

    def expect(self, *texts):
        check(self.code == 0, f"exit {self.code}: {self.err}")
        page = Page(self.page)
        check(not page.complaints(), page.complaints()[:5])
        for text in texts:
            check(text in page.text(), f"not on the page: {text!r}")
        return page


def no_matplotlib(folder):
    """A folder for PYTHONPATH that hides the library."""
    stub = os.path.join(folder, "stub")
    os.makedirs(stub, exist_ok=True)
    with open(os.path.join(stub, "matplotlib.py"), "w", encoding="utf-8") as file:
        file.write("raise ImportError('hidden')\n")
    return stub


@functools.lru_cache(maxsize=None)
def has_drawings():
    """Whether the program finds matplotlib, in this Python or the system's."""
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('matplotlib') is None)"
    system = "/usr/bin/python3"
    return importlib.util.find_spec("matplotlib") is not None or os.path.exists(
        system) and subprocess.run([system, "-c", look], check=False).returncode == 0


def build_text(*documents):
    """The source of a page without drawings, in this process: quick enough for hundreds."""
    from collmark_lib.report_driver import driver_source
    from collmark_lib.report_load import name_sources
    from collmark_lib.report_page import build
    sources = [driver_source(f"r{i}.json", d) for i, d in enumerate(documents)]
    name_sources(sources)
    for position, row in enumerate(r for s in sources for r in s.rows):
        row.number = position
    return build(sources, None, "title")


def build_page(*documents):
    """Its words, after a look at its structure."""
    page = Page(build_text(*documents))
    check(not page.complaints(), page.complaints()[:5])
    return page.text()
