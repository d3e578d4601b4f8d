#!/usr/bin/env python3
"""`collmark report`: what a page says about results that are right, wrong, cut off or odd.

Documents are made up (html_pages.py), so nothing has to be built.
"""
import copy
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True

from collmark_rig import COLLMARK, Wrong, check, run_tests  # noqa: E402
from html_pages import (  # noqa: E402
    Report, build_page, build_text, has_drawings, keep, make_document, make_row)
from collmark_lib import report_tables  # noqa: E402
from collmark_lib.common import Refused  # noqa: E402
from collmark_lib.report_load import load  # noqa: E402

EVIL = '<script>alert(1)</script>"onload=x &amp; $a_1$ \u202egnp'


# ---- the page ----------------------------------------------------------------------------------

def test_a_right_result(folder):
    page = Report(folder, keep(folder, "good.json", make_document()), drawings=True).expect(
        "All right", "11 of 11 rows in 1 source measured, checked and right", "NVIDIA H200",
        "2026-01-02 03:04 UTC", "$NCCL_DEBUG", "--min-bw", "build/all_reduce_perf -b 8")
    if not has_drawings():
        return "no matplotlib: the page has been checked without drawings"
    titles = [a["aria-label"] for a, _ in page.all("svg") if a.get("role") == "img"]
    for part in ("Bus bandwidth in GB/s", "Time of one operation in µs", "Spread between ranks",
                 "Iterations: out of place"):
        check(any(part in t for t in titles), f"no drawing of {part!r}: {titles}")
    return None


def test_without_matplotlib(folder):
    report = Report(folder, keep(folder, "good.json", make_document()))
    page = report.expect("All right", "no drawings here", "install_deps.sh report")
    check("scripts/install_deps.sh report" in report.err, report.err)
    check(not page.all("svg"), "a drawing without the library")
    check(report.page.count("<figure>") >= 5, "the data of the charts are missing")


def test_verdicts():
    def spoil(change):
        document = make_document(sizes=(3, 10, 20))
        change(document)
        return document

    def end(code, **more):
        return lambda d: d["summary"].update(exit_code=code, okay=not code, **more)

    def half_of(**values):
        return lambda d: d["results"][1]["out_of_place"].update(values)

    def both(*changes):
        return lambda d: [c(d) for c in changes]

    empty = both(lambda d: d["results"].clear(), end(0))
    cases = (
        (half_of(), "All right", "3 of 3 rows"),
        (half_of(time=None, alg_bw=None, bus_bw=None, nwrong=None, why_not="no in-place form"),
         "All right", "no in-place form"),
        (both(half_of(nwrong=3), end(1)), "Not all right", "1 row with wrong data: all_reduce"),
        (half_of(nwrong=3), "Not all right", "✗ 3"),
        (end(1), "Not all right", "exit 1, wrong data"),
        (half_of(nwrong=None), "Not proven right", "1 row not checked"),
        (half_of(time=None, why_not=None), "Not proven right", "without a figure and without"),
        (half_of(time=float("nan")), "Not proven right", "without a figure and without"),
        (half_of(time="12.5"), "Not proven right", "without a figure and without"),
        (empty, "Not all right", "no rows"),
        (end(4, truncated=True, why_truncated="timed out"), "Not all right",
         "incomplete (timed out), exit 4, a deadline passed"),
        (end(6, truncated=True, why_truncated="signal 15"), "Not all right", "signal 15"),
        (end(3), "Not all right", "exit 3, the system refused"),
        (end(99), "Not all right", "exit 99"),
        (end(None), "Not all right", "no exit code"),
        (both(end(5), lambda d: d["config"].update(min_bw=400)), "Not all right",
         "average bus bandwidth 5.00 GB/s is below 0.9 of --min-bw 400 GB/s"),
        (both(end(5), lambda d: d["config"].update(min_bw=0)), "Not all right",
         "exit 5, below a threshold"),
        (lambda d: d["machine"].update(oversubscribed=True), "All right", "more ranks than CPUs"),
        (lambda d: d["results"][0]["in_place_per_iter"].update(p99_us=999.0), "All right",
         "p99 is more than 5 times the median in 1 row"))
    for at, (change, headline, text) in enumerate(cases):
        page = build_page(spoil(change))
        check(f" {headline} " in page, f"case {at}: not {headline!r}")
        check(text in page, f"case {at}: not on the page: {text!r}")


def test_one_bad_file_among_good_ones():
    bad = make_document()
    bad["results"][2]["in_place"]["nwrong"] = 7
    page = build_page(make_document(), bad, make_document(host="node02"))
    for text in ("Not all right", "32 of 33 rows in 3 sources", "r1: 1 row with wrong data",
                 "The files differ in hosts: node01 / node02"):
        check(text in page, f"not on the page: {text!r}")


def test_a_rank_that_is_always_slow():
    document = make_document()
    for row in document["results"]:
        for name in ("out_of_place", "in_place"):
            row[name].update(slowest_rank=2, rank_max=2 * row[name]["rank_avg"])
    page = build_page(document)
    check("rank 2 (node01, NVIDIA H200 2) is the slowest in 22 of 22" in page, page[:900])


def test_strings_of_a_file_are_never_markup(folder):
    document = make_document()
    for device in document["devices"]:
        device.update(hostname=EVIL, device_info=EVIL, cpus=EVIL)
    document["machine"].update({"mpi": EVIL, EVIL: EVIL, "wire": "\ud800\x00\x1b[31m"})
    document["config"][EVIL] = EVIL
    document["args"] = [EVIL]
    document["environment"] = {f"NCCL_{EVIL}": EVIL}
    document.update({"collective": EVIL, "program": EVIL, "start_time": EVIL, EVIL: [EVIL]})
    document["pairs"] = {"ends": [EVIL, EVIL + "2"], "values": [[None, 1], [2, None]],
                         "title": EVIL, "unit": EVIL, "suspects": [{"name": EVIL, "why": EVIL}]}
    for row in document["results"]:
        row.update(type=EVIL, redop=EVIL, note=EVIL, algorithm=EVIL)
        row["in_place"].update(time=None, why_not=EVIL)
    document["summary"].update(truncated=True, why_truncated=EVIL, exit_code=6)
    path = keep(folder, "<b>&\"'$x^2$\n.json", document)
    report = Report(folder, path, "--title", EVIL, drawings=True)
    report.expect("<script>alert(1)</script>", "\\u202egnp", "\\ud800\\u0000\\u001b[31m")
    for raw in ("<script", "\u202e", "\x00", "\x1b", "<b>", '"onload'):
        check(raw not in report.page, f"{raw!r} is on the page as it was in the file")


def test_values_of_any_kind_make_a_page_or_a_refusal():
    whole = make_document(sizes=(10,))
    whole["network"] = {"domains": 2, "ways": [{"hostname": "a", "wire": "tcp"}]}
    whole["pairs"] = {"ends": ["a", "b"], "values": [[None, 1.0], [2.0, None]], "suspects": []}
    others = (None, "text", -1, 1e308, 10 ** 400, float("nan"), True, [], [None], {}, {"a": [1]})

    def places(value, path=()):
        if path:
            yield path
        items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(
            value, list) else ()
        for key, item in items:
            yield from places(item, (*path, key))

    for at, path in enumerate(places(whole)):
        if at % 4 and "COLLMARK_SLOW" not in os.environ:
            continue
        look = build_page if at % 16 == 0 else build_text
        for other in others if len(path) < 3 else others[at // 4 % 4::4]:
            document = copy.deepcopy(whole)
            inner = document
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = other
            try:
                look(document)
            except Refused:
                continue
            except Exception as e:
                raise Wrong(f"{path} = {other!r}: {type(e).__name__}: {e}") from e


def test_refusals(folder):
    newer = make_document()
    newer["schema"] = 2
    texts = {"empty.json": "", "cut.json": '{"results": [', "list.json": "[]",
             "other.json": '{"a": 1}', "deep.json": "[" * 100000, "bytes.json": "\udcff"}
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8",
                  errors="surrogateescape") as file:
            file.write(text)
    os.mkdir(os.path.join(folder, "nothing"))
    os.makedirs(os.path.join(folder, "failed", "attempt-1"))
    good = keep(folder, "good.json", make_document())
    keep(folder, "newer.json", newer)
    for name in (*texts, "newer.json", "missing.json", "nothing", "failed"):
        try:
            load([good, os.path.join(folder, name)], [])
        except Refused as e:
            check(name in str(e) and "\n" not in str(e) and e.code == 2, f"{name}: {e}")
            continue
        raise Wrong(f"{name} was taken for a result")
    report = Report(folder, good, "empty.json")
    check(report.code == 2 and report.page is None, f"exit {report.code}: {report.err}")
    check(report.err == "collmark: empty.json: is empty\n", report.err)
    report = Report(folder, good, out="no/such/folder.html")
    check(report.code == 3 and "no/such/folder.html" in report.err, report.err)
    check(Report(folder).code == 2, "a report of nothing")


# ---- baselines, runs, peers, pairs -------------------------------------------------------------

def test_baselines(folder):
    old = keep(folder, "old.json", make_document(speed=1.25))
    new = keep(folder, "new.json", make_document())
    page = Report(folder, new, "--baseline", old).expect(
        "11 of 11 rows in 1 source", "0.800 times the baseline's speed", "0.80×", "baseline old")
    check("11 rows of 11 slower by more than 10%" in page.text(), "slower rows are not counted")
    saved = subprocess.run([COLLMARK, "baseline", "save", "--dir", folder, "--name", "kept", old],
                           capture_output=True, check=False)
    check(saved.returncode == 0, saved.stderr)
    kept = next(os.path.join(d, "kept.json") for d, _, files in os.walk(folder)
                if "kept.json" in files)
    Report(folder, new, "--baseline", kept).expect("baseline kept", "0.80×")
    report = Report(folder, new, "--baseline", "no-such-baseline", out="x.html")
    check(report.code == 2 and "no-such-baseline" in report.err, report.err)


def test_a_run_and_its_attempts(folder):
    run = os.path.join(folder, "run")
    entries = []
    for number, speed in ((1, 1.0), (2, 2.0), (10, 4.0)):
        keep(run, f"attempt-{number}/result.json", make_document(speed=speed))
        entries.append({"attempt": number, "exit": 0, "cut": None, "report": True})
    record = {"format": 1, "attempts": entries, "host": {"host kernel": "6.1.0"}}
    keep(run, "run.json", record)
    Report(folder, run).expect("All right", "33 of 33 rows in 1 source", "attempt-10", "6.1.0")
    entries.append({"attempt": 11, "exit": 4, "cut": None, "report": False})
    keep(run, "run.json", record)
    Report(folder, run).expect("Not all right", "attempt-11: left no result, exit 4",
                               "flaky, 3 of 4 attempts went well")


def test_peers(folder):
    nccl = {"version": 3, "args": ["./all_reduce_perf"], "results": [], "config": {},
            "out_of_bounds": {"count": "0", "okay": "true"},
            "average_bus_bandwidth": {"bandwidth": 1.0, "okay": "unchecked"}}
    for size in (1024, 4096):
        time = {"time": 10.0, "alg_bw": 1.0, "bus_bw": 1.5, "nwrong": 0.0}
        nccl["results"].append({"size": size, "count": size // 4, "type": "float",
                                "redop": "sum", "root": "    -1", "out_of_place": time,
                                "in_place": {**time, "time": "nan", "nwrong": None}})
    rows = [{"collective": "all_reduce", "bytes": 8 << i, "collmark_us": 1.0 + i,
             "mpi_us": 2.0 + i, "same": True, "plan": "ring"} for i in range(4)]
    cases = [{"step": "faults", "verdict": "fail", "exit": 1, "name": "crash is noticed"}]
    copies = [{"from": a, "to": b, "gbs": 100.0 * (a + b)} for a in (0, 1) for b in (0, 1)]
    ours = keep(folder, "ours.json", make_document(sizes=(10, 12)))
    Report(folder, ours, keep(folder, "nccl.json", nccl)).expect("ours, out of place",
                                                                 "nccl, out of place", "µs")
    table = {"date": "2026-01-02", "cpu": "AMD EPYC", "rows": rows}
    Report(folder, keep(folder, "table.json", table)).expect("All right", "collmark", "mpi")
    Report(folder, keep(folder, "check.json", {**table, "cases": cases, "copy_gbs": copies})
           ).expect("Not all right", "faults: crash is noticed (exit 1)", "copies between GPUs")


def test_pairs(folder):
    document = make_document(sizes=())
    document["pairs"] = []
    for count in (1, 5, 65):  # too few, and too many, for a drawing
        values = [[None if a == b else 10.0 if 1 in (a, b) else 25.0 for b in range(count)]
                  for a in range(count)]
        document["pairs"].append({"size": 1 << 20, "ends": [f"node{i}" for i in range(count)],
                                  "values": values,
                                  "suspects": [{"name": f"node{count}", "why": "slow"}]})
    page = Report(folder, keep(folder, "pairs.json", document), drawings=True).expect(
        "suspect node5 – slow", "pairs · 1 MiB", "From the row to the column, GB/s")
    maps = [a["aria-label"] for a, _ in page.all("svg") if "Heat map" in a.get("aria-label", "")]
    check([m[:20] for m in maps] == ["Heat map of 5 by 5 e"] * has_drawings(), maps)
    document["pairs"][1]["values"].pop()
    report = Report(folder, keep(folder, "bad.json", document))
    check(report.code == 2 and "bad.json: pairs" in report.err, report.err)


def test_very_many_rows():
    documents = [make_document(sizes=()) for _ in range(2)]
    for document in documents:
        document["results"] = [make_row(64 * i) for i in range(1, 61)]
    documents[1]["results"][-1]["in_place"]["nwrong"] = 1
    shown, report_tables.MOST_ROWS = report_tables.MOST_ROWS, 100
    try:
        page = build_page(*documents)
    finally:
        report_tables.MOST_ROWS = shown
    check("20 rows are not shown" in page and "✗ 1" in page, "the bad row was left out")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
