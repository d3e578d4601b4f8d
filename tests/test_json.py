#!/usr/bin/env python3
"""The machine-readable reports: JSON by its schema, CSV by its columns.

    test_json.py                          the tests; ends with "N passed, N failed, N skipped"
    test_json.py FILE [KEY=VALUE...]      one document: the schema, and keys of its summary

The schema is read by the part of its language that it uses; an unknown word of it is an error, so
that the reader here and the schema cannot drift apart.
"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from json_document import (Wrong, check, check_csv, check_document)  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("BUILDDIR", "build"))
SUFFIX = os.environ.get("NAME_SUFFIX", "")
MPIRUN = os.environ.get("MPIRUN", "")
STRETCH = 5 if os.environ.get("SAN") else 1
DRIVERS = ("all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather "
           "scatter sendrecv hypercube").split()
SECRETS = {"AWS_SECRET_ACCESS_KEY": "hunter2-aws", "HF_TOKEN": "hunter2-hf",
           "MY_PASSWORD": "hunter2-own", "SLURM_JWT": "hunter2-jwt"}


# ---- tests -----------------------------------------------------------------------------------

class Run:
    """A driver that ran: exit code, stdout, stderr."""

    def __init__(self, driver, *options, env=None, launcher=()):
        program = os.path.join(BUILD, f"{driver}_perf{SUFFIX}")
        clean = {k: v for k, v in os.environ.items() if not re.match("NCCL_|COLLMARK_", k)}
        clean.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                      "OMPI_MCA_rmaps_base_oversubscribe": "1",
                      "OMPI_MCA_hwloc_base_binding_policy": "none"})
        clean.update(env or {})
        self.command = [*launcher, program, *map(str, options)]
        done = subprocess.run(self.command, env=clean, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=60 * STRETCH, check=False)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def expect(self, code=0):
        check(self.code == code, f"exit {self.code}, wanted {code}: {self.command}: {self.err}")
        return self


def test_every_driver():
    for driver in DRIVERS:
        run = Run(driver, "-g", 3, "-b", 64, "-e", "4K", "-f", 4, "-J", "-")
        doc = check_document(run.expect().out)
        check(doc["collective"] == driver, doc["collective"])
        check(len(doc["results"]) == 4, f"{driver}: {len(doc['results'])} rows")
        check(doc["out_of_bounds"] == {"count": 0, "okay": True}, f"{driver}: wrong elements")
        check(doc["average_bus_bandwidth"]["bandwidth"] > 0, f"{driver}: no average")


def test_types_and_ops():
    doc = check_document(Run("reduce_scatter", "-g", 2, "-b", 256, "-e", 256, "-d", "all", "-o",
                             "all", "-n", 2, "-J", "-").expect().out)
    kinds = {(r["type"], r["redop"]) for r in doc["results"]}
    check(len(kinds) == 72, f"{len(kinds)} pairs of type and operation")


def test_samples():
    doc = check_document(Run("all_reduce", "-g", 2, "-b", 64, "-e", 64, "-n", 9, "-I", 1, "-K", 2,
                             "-J", "-").expect().out)
    samples = doc["results"][0]["out_of_place_per_iter"]
    check(samples["samples"] == 7 and samples["skipped_iterations"] == 2, samples)
    check(len(samples["times_us"]) in (7, 9), samples)


def test_awkward_values_are_null():
    # One rank, sizes of 0, nothing checked: no NaN, no Infinity, no made-up numbers.
    sweep = ["-b", 8, "-e", "1K", "-f", 8]
    for options in (["-g", 1, *sweep], ["-g", 3, "-b", 0, "-e", 0], ["-g", 2, "-c", 0, *sweep]):
        doc = check_document(Run("all_gather", *options, "-J", "-").expect().out)
        check(doc["summary"]["wrong"] in (0, None), doc["summary"])


def test_wrong_data():
    run = Run("all_reduce", "-g", 2, "-b", 64, "-e", 64, "--inject", "corrupt:rank=1", "-J", "-")
    doc = check_document(run.expect(1).out)
    check(doc["summary"]["exit_code"] == 1 and doc["summary"]["wrong"] > 0, doc["summary"])
    check(doc["out_of_bounds"]["okay"] is False, doc["out_of_bounds"])
    check(doc["summary"]["bad_rows"] == 1, doc["summary"])


def test_threshold():
    run = Run("all_reduce", "-g", 2, "-b", 64, "-e", 64, "--min-bw", 1000, "-J", "-")
    doc = check_document(run.expect(5).out)
    check(doc["average_bus_bandwidth"]["okay"] is False, doc["average_bus_bandwidth"])
    check(doc["summary"]["exit_code"] == 5, doc["summary"])


def test_delay_names_the_slowest():
    # In the first iteration only: the median does not see it, the first operation's time does.
    run = Run("all_reduce", "-g", 3, "-b", 64, "-e", 64, "-n", 20, "--placement", "out", "-I", 1,
              "--inject", "delay:rank=1,phase=warmup,us=200000", "-J", "-")
    row = check_document(run.expect().out)["results"][0]
    check(row["out_of_place"]["first_time"] >= 200000, row["out_of_place"])
    check(row["out_of_place_per_iter"]["p50_us"] < 100000, row["out_of_place_per_iter"])


def test_environment_by_allow_list():
    env = dict(SECRETS, NCCL_ALGO="ring", COLLMARK_SEED="7")
    run = Run("all_reduce", "-g", 2, "-b", 64, "-e", 64, "-J", "-", env=env)
    doc = check_document(run.expect().out)
    for name, value in SECRETS.items():
        check(name not in run.out and value not in run.out, f"{name} got into the report")
    check(doc["environment"].get("NCCL_ALGO") == "ring", doc["environment"])
    check("COLLMARK_SEED=7" in doc["from_environment"], doc["from_environment"])
    check(doc["config"]["seed"] == 7 and doc["config"]["algo"] == "ring", doc["config"])


def test_odd_strings(folder):
    # Quotes, control characters and bytes that are not UTF-8, where a user can put them.
    path = os.path.join(folder, 'a "b"\n\\c.json')
    env = {"UCX_ODD": 'quote " backslash \\ tab \t bell \a', "NCCL_ODD": os.fsdecode(b"\xff\xfe")}
    Run("all_reduce", "-g", 2, "-b", 64, "-e", 64, "-J", path, env=env).expect()
    with open(path, "rb") as f:
        doc = check_document(f.read().decode("utf-8"))
    check(doc["args"][-1] == path, doc["args"])
    check(doc["environment"]["UCX_ODD"] == env["UCX_ODD"], doc["environment"])


def test_nodes_and_groups():
    run = Run("all_reduce", "-g", 6, "-b", 64, "-e", 64, "--node-map", "0,0,0,1,2,2", "-J", "-")
    doc = check_document(run.expect().out)
    check([d["node"] for d in doc["devices"]] == [0, 0, 0, 1, 2, 2], "nodes")
    run = Run("all_reduce", "-g", 5, "-b", 64, "-e", 1024, "-f", 4, "--split", "mod:2", "-J", "-")
    doc = check_document(run.expect().out)
    check([g["ranks"] for g in doc["groups"]] == [[0, 2, 4], [1, 3]], doc["groups"])
    check({r["group"] for r in doc["results"]} == {0, 1}, "rows of both groups")
    check(doc["summary"]["slowest_group"] in (0, 1), doc["summary"])


def test_file_beside_the_table(folder):
    path = os.path.join(folder, "r.json")
    for _ in range(2):  # the second run replaces the first one's file
        run = Run("all_reduce", "-g", 2, "-b", 64, "-e", 64, "-J", path).expect()
        check("# Avg bus bandwidth" in run.out, "no table beside the file")
        with open(path, encoding="utf-8") as f:
            check_document(f.read())
    check(sorted(os.listdir(folder)) == ["r.json"], os.listdir(folder))


def test_csv():
    for driver in DRIVERS:
        run = Run(driver, "-g", 3, "-b", 64, "-e", "1K", "-f", 4, "--csv", "-").expect()
        rows = check_csv(run.out)
        check(all(r["collective"] == driver and r["ranks"] == "3" for r in rows), driver)
        check(all(r["wrong"] in ("0", "") for r in rows), f"{driver}: wrong elements")
        check({"0"} <= {r["inplace"] for r in rows}, f"{driver}: no row out of place")
    rows = check_csv(Run("all_reduce", "-g", 4, "-b", 64, "-e", 64, "--split", "mod:2", "--csv",
                         "-").expect().out)
    check({r["group"] for r in rows} == {"0", "1"}, "groups")
    check_csv(Run("all_reduce", "-b", 0, "-e", 0, "--csv", "-").expect().out)


def test_csv_and_json_agree(folder):
    path = os.path.join(folder, "r.csv")
    run = Run("all_reduce", "-g", 2, "-b", 64, "-e", 1024, "-f", 4, "--csv", path, "-J", "-")
    doc = check_document(run.expect().out)
    with open(path, encoding="utf-8") as f:
        rows = check_csv(f.read())
    halves = [r[p] for r in doc["results"] for p in ("out_of_place", "in_place")]
    check(len(rows) == len(halves), f"{len(rows)} lines, {len(halves)} placements")
    for line, half in zip(rows, halves):
        check(math.isclose(float(line["time_us"]), half["time"], rel_tol=1e-6), f"{line}, {half}")


def test_processes(folder):
    if not MPIRUN:
        return "no MPIRUN"
    path = os.path.join(folder, "r.json")
    run = Run("all_reduce", "-t", 2, "-b", 64, "-e", 1024, "-f", 4, "-J", path,
              launcher=[MPIRUN, "-np", "2"])
    if "but this build has no MPI" in run.err:
        return "a build without MPI"
    run.expect()
    with open(path, encoding="utf-8") as f:
        doc = check_document(f.read())
    check([d["process"] for d in doc["devices"]] == [0, 0, 1, 1], doc["devices"])
    check(len({d["pid"] for d in doc["devices"]}) == 2, "two processes, two pids")
    check(doc["machine"]["mpi"], "the MPI library is not named")
    return None


def test_network(folder):
    if not MPIRUN:
        return "no MPIRUN"
    path = os.path.join(folder, "r.json")
    run = Run("all_gather", "-t", 2, "-b", 64, "-e", 64, "-J", path, "--wire", "tcp",
              env={"NCCL_SOCKET_IFNAME": "=lo"}, launcher=[MPIRUN, "-np", "2"])
    if "but this build has no MPI" in run.err:
        return "a build without MPI"
    run.expect()
    with open(path, encoding="utf-8") as f:
        doc = check_document(f.read())
    net = doc["network"]
    check(net["domains"] == 2 and net["inside"] == "loop", net)
    check(net["neighbours"] == 1 and net["ports"] > 0 and net["lanes"] == 1, net)
    check([(w["processes"], w["first_rank"], w["interface"], w["why"]) for w in net["ways"]] ==
          [(2, 0, "lo", "NCCL_SOCKET_IFNAME")], net["ways"])
    check(doc["machine"]["wire"] == "loop+tcp", doc["machine"]["wire"])
    check(all(v is not None and v > 0 for v in doc["bootstrap"].values()), doc["bootstrap"])
    check(doc["config"]["ifname"] == "=lo" and doc["config"]["wire"] == "tcp", doc["config"])
    return None


def test_the_validator_can_fail():
    text = Run("all_reduce", "-g", 2, "-b", 64, "-e", 64, "-J", "-").expect().out
    spoiled = (
        lambda d: d["summary"].pop("okay"),
        lambda d: d["results"][0]["out_of_place"].update(time="1.0"),
        lambda d: d["results"][0]["out_of_place"].update(alg_bw=1e9),
        lambda d: d["results"][0].update(extra=1),
        lambda d: d.update(ranks=3),
        lambda d: d.update(start_time="2026-01-01 00:00"),
        lambda d: d["environment"].update(HF_TOKEN="x"),
        lambda d: d["summary"].update(wrong=1),
        lambda d: d["summary"].update(truncated="false"),
        lambda d: d.update(network={"domains": 2}),
        lambda d: d["bootstrap"].update(start="0.1"),
        lambda d: d["verdict"].pop("okay"),
        lambda d: d["results"][0]["in_place"].update(verdict="fine"),
    )
    for spoil in spoiled:
        doc = json.loads(text)
        spoil(doc)
        try:
            check_document(json.dumps(doc))
        except Wrong:
            continue
        raise Wrong(f"spoiled document {spoiled.index(spoil)} was accepted")
    for bad in ('{"a": NaN}', '{"a": 1, "a": 2}'):
        try:
            check_document(bad)
        except Wrong:
            continue
        raise Wrong(f"{bad} was accepted")


def run_tests(names):
    """Run the tests of a module, given its globals(); the exit code."""
    tests = [(n, f) for n, f in names.items() if n.startswith("test_") and callable(f)]
    passed = failed = skipped = 0
    for name, test in tests:
        folder = tempfile.mkdtemp(prefix="json.")
        try:
            reason = test(folder) if test.__code__.co_argcount else test()
            if reason:
                skipped += 1
                print(f"skip {name}: {reason}")
            else:
                passed += 1
                print(f"ok     {name}")
        except Exception as e:  # whatever goes wrong is a failed test
            failed += 1
            print(f"not ok {name}: {type(e).__name__}: {e}")
        finally:
            shutil.rmtree(folder)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def check_one(path, expected):
    try:
        with open(path, encoding="utf-8") as f:
            doc = check_document(f.read())
        for pair in expected:
            key, _, value = pair.partition("=")
            got = json.dumps(doc["summary"][key])
            check(got == value, f"summary.{key} is {got}, wanted {value}")
    except (Wrong, ValueError, OSError) as e:
        print(f"{path}: {e}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(check_one(sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else run_tests(globals()))
