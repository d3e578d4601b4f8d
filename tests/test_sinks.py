#!/usr/bin/env python3
"""Machine-readable reports as the drivers write them, also when they end early.

JUnit is judged by xmllint with tests/junit.xsd (else by Python's parser alone), Prometheus by
tests/prometheus.py, JSON and CSV as in tests/test_json.py.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET

import prometheus
from test_json import (BUILD, MPIRUN, ROOT, STRETCH, SUFFIX, Run, check, check_csv, check_document,
                       run_tests)

SWEEP = ["-g", 2, "-b", "1K", "-e", "64K", "-f", 8, "-n", 5]


def read(path, mode="r"):
    with open(path, mode, **({} if "b" in mode else {"encoding": "utf-8"})) as f:
        return f.read()



def check_junit(path):
    """The suite of a document that follows the schema and adds up."""
    if shutil.which("xmllint"):
        done = subprocess.run(["xmllint", "--noout", "--nonet", "--schema",
                               os.path.join(ROOT, "tests", "junit.xsd"), path],
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0, done.stderr)
    suite = ET.parse(path).getroot().find("testsuite")
    cases = suite.findall("testcase")
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        count = sum(c.find(tag) is not None for c in cases)
        check(int(suite.get(name)) == count, f"{name} is {suite.get(name)}, there are {count}")
    check(int(suite.get("tests")) == len(cases), f"{suite.get('tests')} tests")
    return suite


def check_prometheus(path):
    return prometheus.read(read(path, "rb"))


def value(samples, metric, **labels):
    found = [v for m, l, v in samples if m == metric and labels.items() <= l.items()]
    check(len(found) == 1, f"{len(found)} samples of {metric} {labels}")
    return found[0]


def paths_in(folder):
    return {k: os.path.join(folder, k) for k in ("j.xml", "p.prom", "r.json", "r.csv", "sum.md")}


def all_sinks(p):
    return ["--junit", p["j.xml"], "--prometheus", p["p.prom"], "-J", p["r.json"], "--csv",
            p["r.csv"], "--github"]


def test_all_sinks_tell_the_same(folder):
    p = paths_in(folder)
    run = Run("all_reduce", *SWEEP, "--peak", "20", "--max-time-us", "1e9", *all_sinks(p),
              env={"GITHUB_STEP_SUMMARY": p["sum.md"]}).expect()
    doc, rows = check_document(read(p["r.json"])), check_csv(read(p["r.csv"]))
    suite, samples = check_junit(p["j.xml"]), check_prometheus(p["p.prom"])
    check(run.err == "", run.err)
    check(doc["verdict"] == {"rows": 3, "failed": 0, "okay": True, "machine": None,
                             "peak_bus_bw": 20}, doc["verdict"])
    check(len(rows) == 6 and all(r["verdict"] == "ok" for r in rows), rows)
    check(len(suite.findall("testcase")) == 7 and suite.get("failures") == "0", "cases")
    for row in doc["results"]:
        for key, place in (("out_of_place", "out of place"), ("in_place", "in place")):
            half = row[key]
            labels = {"bytes": str(row["size"]), "placement": key}
            busbw = value(samples, "collmark_bus_bandwidth_bytes_per_second", **labels)
            check(abs(busbw - half["bus_bw"] * 1e9) <= 1e-6 * busbw, f"{busbw}: {half}")
            check(abs(half["peak_pct"] - half["bus_bw"] * 5) < 1e-9, half)
            seconds = value(samples, "collmark_time_seconds", **labels)
            check(abs(seconds - half["time"] / 1e6) <= 1e-9, f"{seconds}: {half}")
            case = suite.find(f"testcase[@name='{row['size']} B float sum {place}']")
            check(abs(float(case.get("time")) - seconds) < 1e-8, ET.tostring(case))
    check(value(samples, "collmark_run_success") == 1, "success")
    check("all&#95;reduce" in read(p["sum.md"]), read(p["sum.md"]))
    check(sorted(os.listdir(folder)) == sorted(p), os.listdir(folder))


def test_every_driver(folder):
    p = paths_in(folder)
    for driver in "alltoall hypercube alltoallv broadcast".split():
        Run(driver, "-g", 3, "-b", 0, "-e", 4096, "-i", 2048, "-n", 2, "-N", 2, "--peak", "1",
            *all_sinks(p)).expect()
        check_document(read(p["r.json"]))
        check_csv(read(p["r.csv"]))
        samples = check_prometheus(p["p.prom"])
        names = [c.get("name") for c in check_junit(p["j.xml"]).findall("testcase")]
        check(len(names) == 13, f"{driver}: {names}")  # 3 sizes, 2 cycles, 2 placements, the end
        bytes_ = {l["bytes"] for m, l, _ in samples if m == "collmark_time_seconds"}
        check(bytes_ and "0" not in bytes_, f"{driver}: {bytes_}")


def test_to_stdout():
    suite = Run("all_reduce", *SWEEP, "--junit", "-").expect().out
    check(ET.fromstring(suite).tag == "testsuites", suite)
    check(len(prometheus.read(Run("all_reduce", *SWEEP, "--prometheus", "-").expect().out.encode()))
          > 20, "few samples")


def test_names_of_the_shell(folder):
    # What a user can put into a path is in the document, whole.
    path = os.path.join(folder, "a \"b\" <c> & 'd'\n.xml")
    Run("all_reduce", *SWEEP, "--junit", path, "--csv", os.path.join(folder, "\udcff.csv")).expect()
    arguments = [e.get("value") for e in check_junit(path).iter("property")
                 if e.get("name") == "argument"]
    check(path in arguments and any(a.endswith("?.csv") for a in arguments), arguments)


def test_refused_before_the_run(folder):
    for option in ("--junit", "--prometheus", "-J", "--csv"):
        run = Run("all_reduce", "-g", 2, "-b", "1K", "-e", "1M", "-n", 100000, option,
                  os.path.join(folder, "no", "x"))
        check(run.code == 3 and run.out == "", f"{option}: exit {run.code}, {run.out[:100]}")
        check(re.search(r"no/x': No such file or directory\n$", run.err), run.err)
    run = Run("all_reduce", *SWEEP, "--github", env={"GITHUB_STEP_SUMMARY": folder})
    check(run.code == 3 and "GITHUB_STEP_SUMMARY" in run.err, run.err)
    for one, other in (("--junit", "--prometheus"), ("--csv", "--junit")):
        run = Run("all_reduce", *SWEEP, one, "-", other, "-").expect(2)
        check("both name '-'" in run.err, run.err)
    check(os.listdir(folder) == [], os.listdir(folder))


def test_unwritable_folder(folder):
    if os.geteuid() == 0:
        return "root may write anywhere"
    os.chmod(folder, 0o500)
    run = Run("all_reduce", *SWEEP, "--junit", os.path.join(folder, "x")).expect(3)
    os.chmod(folder, 0o700)
    check("--junit" in run.err and "Permission denied" in run.err, run.err)
    return None


def test_full_disk():
    for option in ("--junit", "--prometheus"):
        run = Run("all_reduce", *SWEEP, option, "/dev/full").expect(3)
        check(f"{option} '/dev/full': No space left on device" in run.err, run.err)
        check("# Avg bus bandwidth" in run.out, "the table is not whole")


def driver(*options):
    return [os.path.join(BUILD, "all_reduce_perf" + SUFFIX), *map(str, options)]


def test_killed_in_mid_run(folder):
    p = paths_in(folder)
    command = driver("-g", 2, "-b", "1K", "-e", "1K", "-n", 50, "-N", 0, "--min-busbw", "1e-9",
                     *all_sinks(p))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, GITHUB_STEP_SUMMARY=p["sum.md"])) as child:
        rows = 0
        for line in child.stdout:
            rows += not line.startswith("#")
            if rows == 20:
                child.send_signal(signal.SIGTERM)
                break
        rest, err = child.communicate(timeout=20 * STRETCH)
    check(child.returncode == 6, f"exit {child.returncode}: {err}")
    check("# Verdict              : FAILED: it ended early" in rest, rest[-800:])
    check(check_document(read(p["r.json"]))["verdict"]["okay"] is False, "okay")
    suite = check_junit(p["j.xml"])
    check(suite.find("testcase[@name='end of the run']/error").get("type") == "truncated", "error")
    samples = check_prometheus(p["p.prom"])
    check(value(samples, "collmark_run_truncated") == 1, "truncated")
    check(value(samples, "collmark_run_exit_code") == 6, "exit code")
    check("Truncated: a signal" in read(p["sum.md"]), "summary")
    check("::error title=all_reduce_perf::the run ended early: a signal" in err, err)


def test_time_out(folder):
    p = paths_in(folder)
    run = Run("all_reduce", "-g", 3, "-b", 64, "-e", 64, "--inject", "stall:rank=1,iter=3", "-T", 1,
              *all_sinks(p), env={"GITHUB_STEP_SUMMARY": p["sum.md"]}).expect(4)
    suite = check_junit(p["j.xml"])
    check(suite.find("testcase[@name='end of the run']/error").get("type") == "timeout", "error")
    check(value(check_prometheus(p["p.prom"]), "collmark_run_exit_code") == 4, "exit code")
    check("::error " in run.err and "exit code 4" in read(p["sum.md"]), run.err)


def test_wrong_data(folder):
    p = paths_in(folder)
    run = Run("all_reduce", "-g", 2, "-b", 64, "-e", 64, "--inject", "corrupt:rank=1",
              *all_sinks(p)).expect(1)
    kinds = {e.get("type") for e in check_junit(p["j.xml"]).iter("failure")}
    check(kinds == {"wrong"}, kinds)
    samples = check_prometheus(p["p.prom"])
    check(value(samples, "collmark_wrong_elements", placement="out_of_place") > 0, "wrong")
    check(value(samples, "collmark_row_success", placement="out_of_place") == 0, "success")
    check(re.search("^::error title=all_reduce_perf::all_reduce float sum 64: ", run.err, re.M),
          run.err)


def test_processes_write_once(folder):
    if not MPIRUN:
        return "no MPIRUN"
    p = paths_in(folder)
    run = Run("all_reduce", "-b", 64, "-e", 64, *all_sinks(p), launcher=[MPIRUN, "-np", "2"],
              env={"GITHUB_STEP_SUMMARY": p["sum.md"]})
    if "but this build has no MPI" in run.err:
        return "a build without MPI"
    run.expect()
    check(read(p["sum.md"]).count("### ") == 1, read(p["sum.md"]))
    check_junit(p["j.xml"])
    check(value(check_prometheus(p["p.prom"]), "collmark_run_success") == 1, "success")
    return None


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    sys.exit(run_tests(globals()))
