"""What the tests of scripts/collmark share: calls of it, made-up launches as the drivers write them
(-J), as far as collmark reads them, and a driver whose behaviour is a script."""
import contextlib
import copy
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLLMARK = os.path.join(ROOT, "scripts", "collmark")
STRETCH = 5 if os.environ.get("SAN") else 1
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))

MIB = 1 << 20
TIMES = {64: 1.0, 1 << 12: 2.0, MIB: 100.0, 1 << 24: 1600.0}


# ---- calls ------------------------------------------------------------------------------------

class Wrong(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Wrong(text)


def load_collmark():
    loader = importlib.machinery.SourceFileLoader("collmark", COLLMARK)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("collmark", loader))
    loader.exec_module(module)
    return module


class Call:
    """`collmark ARGUMENTS`, in this process: exit code, stdout, stderr."""

    main = staticmethod(load_collmark().main)

    def __init__(self, *arguments):
        self.arguments = list(map(str, arguments))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                self.code = self.main(self.arguments)
            except SystemExit as e:  # argparse
                self.code = e.code
        self.out, self.err = out.getvalue(), err.getvalue()

    def expect(self, code, *patterns):
        """Each pattern is in stdout, or, with a refusal, in stderr."""
        check(self.code == code, f"exit {self.code}, wanted {code}: {self.arguments}: "
                                 f"{self.out}{self.err}")
        for pattern in patterns:
            text = self.err if code == 2 and not self.out else self.out
            check(re.search(pattern, text, re.M), f"no {pattern!r} in: {text}{self.err}")
        return self


def changed(sizes, factor):
    return {s: t * factor if s in sizes else t for s, t in TIMES.items()}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def wait_until(true, what):
    """Poll for what another process does; `what` names it should it never come."""
    deadline = time.monotonic() + 20 * STRETCH
    while not true():
        check(time.monotonic() < deadline, f"{what} never came")
        time.sleep(0.01)


# ---- made-up launches -------------------------------------------------------------------------

FACTOR = {"out": 1.0, "in": 0.98}

DOCUMENT = {
    "schema": 1, "collmark": "0.1.0", "program": "all_reduce_perf", "collective": "all_reduce",
    "args": ["all_reduce_perf"], "start_time": "2026-01-01T00:00:00.000Z",
    "end_time": "2026-01-01T00:00:01.000Z", "ranks": 2, "time_definition": "maximum over ranks",
    "machine": {"backend": "host", "wire": "shm", "kernels": "avx2", "clock": "CLOCK_MONOTONIC",
                "mpi": "Open MPI 4.1.4", "local_cpus": 2, "oversubscribed": False,
                "shared_gpus": False, "staged": False, "cuda_driver": None, "cuda_runtime": None},
    "config": {"minbytes": 64, "maxbytes": 1 << 24, "stepbytes": 0, "stepfactor": 4, "iters": 20,
               "algo": "auto", "wire": "auto", "average": 3, "inject": None},
    "environment": {}, "groups": [{"group": 0, "ranks": [0, 1]}],
    "devices": [{"rank": r, "node": 0, "process": r, "device_info": "Test CPU"} for r in (0, 1)],
    "results": [], "summary": {"exit_code": 0},
}


def is_number(value):
    return type(value) in (int, float)


def placement(size, us):
    """Of an all_reduce of two ranks: its bus factor is 1."""
    bandwidth = size / us / 1e3 if is_number(us) and us > 0 else None
    return {"time": us, "bus_bw": bandwidth, "nwrong": None if us is None else 0,
            "why_not": None}


def document(times, **changes):
    """One launch: size -> time in us; both placements take nearly as long. `changes` are paths
    with '__' for the steps, machine__mpi="x"."""
    doc = copy.deepcopy(DOCUMENT)
    for size, us in times.items():
        row = {"cycle": 0, "group": 0, "size": size, "type": "float", "redop": "sum", "root": -1,
               "algorithm": "ring", "mode": "copy", "protocol": "simple"}
        row["out_of_place"] = placement(size, us)
        scaled = us * FACTOR["in"] if is_number(us) else us
        row["in_place"] = placement(size, scaled)
        doc["results"].append(row)
    for path, value in changes.items():
        at, steps = doc, path.split("__")
        for step in steps[:-1]:
            at = at[int(step) if isinstance(at, list) else step]
        at[steps[-1]] = value
    return doc


def folder_of(path, documents):
    """A folder as `collmark run` leaves it, without its run.json."""
    for i, doc in enumerate(documents):
        place = os.path.join(path, f"attempt-{i + 1}")
        os.makedirs(place)
        with open(os.path.join(place, "result.json"), "w", encoding="utf-8") as f:
            json.dump(doc, f)
    return path


def launches(path, times, spread=0.01, n=5, **changes):
    """`n` launches whose times lie evenly within +-spread of `times`."""
    steps = [(2 * i / (n - 1) - 1) * spread if n > 1 else 0 for i in range(n)]
    return folder_of(path, [document({s: t * (1 + e) if is_number(t) else t
                                      for s, t in times.items()}, **changes) for e in steps])


# ---- a made-up driver -------------------------------------------------------------------------

# Plays a driver: attempt N does what line N of `plan` beside it says, later ones its last line:
#   ok FACTOR     a report whose times are times FACTOR         exit CODE   a failure, no report
#   wrong CODE    a report with wrong data                      garbage     no report, exit 0
#   end CODE      a report, and that exit code
#   wait          until it is asked to end, then a report of what there is
#   hang          for ever, deaf, with a child that is deaf in a process group of its own. The
#                 child marks `here`; the parent marks `asked` when SIGINT has come
DRIVER = '''#!{python} -IS
import json, os, signal, sys, time
here = os.path.dirname(os.path.abspath(__file__))
def mark(name):
    with open(os.path.join(here, name), "a") as f:
        f.write(str(os.getpid()) + "\\n")
def hang():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, lambda *_: mark("asked"))
    if os.fork() == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.setpgid(0, 0)
        mark("here")
with open(os.path.join(here, "plan")) as f:
    plan = f.read().split("\\n")
mark("started")
with open(os.path.join(here, "started")) as f:
    number = len(f.read().split())
word, _, value = plan[min(number, len(plan)) - 1].partition(" ")
class Ended(Exception):
    pass
def end(*_):
    raise Ended
try:
    if word == "wait":
        signal.signal(signal.SIGTERM, end)
    if word == "hang":
        hang()
    while word in ("hang", "wait"):
        time.sleep(60)
except Ended:
    value = "6"
with open(os.path.join(here, "document.json")) as f:
    doc = json.load(f)
for row in doc["results"]:
    for half in (row["out_of_place"], row["in_place"]):
        if word == "ok":
            half["time"] *= float(value)
            half["bus_bw"] /= float(value)
        half["nwrong"] = 3 if word == "wrong" else 0
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
low, high = int(options.get("-b", 0)), int(options.get("-e", 1 << 60))
doc["results"] = [r for r in doc["results"] if low <= r["size"] <= high]
sys.stderr.write("driver was here\\n")
if word == "garbage":
    print("[1,0]<stdout>: {{")
elif word != "exit":
    doc["summary"]["exit_code"] = 0 if word == "ok" else int(value)
    print(json.dumps(doc))
sys.exit(0 if word in ("ok", "garbage") else int(value))
'''


def driver(path, plan, times=None):
    """A driver in the folder `path`; call again to give it another plan."""
    os.makedirs(path, exist_ok=True)
    name = os.path.join(path, "fake_perf")
    with open(name, "w", encoding="utf-8") as f:
        f.write(DRIVER.format(python=sys.executable))
    os.chmod(name, stat.S_IRWXU)
    with open(os.path.join(path, "plan"), "w", encoding="utf-8") as f:
        f.write("\n".join(plan))
    with open(os.path.join(path, "document.json"), "w", encoding="utf-8") as f:
        json.dump(document(times or {64: 1.0, 1 << 20: 100.0}), f)
    if os.path.exists(os.path.join(path, "started")):
        os.unlink(os.path.join(path, "started"))
    return name


# ---- the tests of a file ----------------------------------------------------------------------

def run_tests(tests, prefix="test_"):
    """All functions of a module's `tests` whose name begins so; the exit code."""
    passed = failed = skipped = 0
    for name, test in [(n, f) for n, f in tests.items() if n.startswith(prefix)]:
        folder = tempfile.mkdtemp(prefix="compare.")
        try:
            reason = test(folder) if test.__code__.co_argcount else test()
            skipped += reason is not None
            passed += reason is None
            print(f"skip {name}: {reason}" if reason else f"ok     {name}")
        except (Wrong, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as e:
            failed += 1
            print(f"not ok {name}: {type(e).__name__}: {e}")
        finally:
            shutil.rmtree(folder)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0
