#!/usr/bin/env python3
"""scripts/collmark run, and compare --confirm: launches that succeed, fail, hang, are resumed."""
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True

from collmark_rig import (  # noqa: E402
    COLLMARK, MIB, ROOT, STRETCH, Call, check, driver, read, run_tests, wait_until)
from collmark_lib import confirm, run as collmark_run  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("BUILDDIR", "build"))
DRIVER = os.path.join(BUILD, "all_reduce_perf" + os.environ.get("NAME_SUFFIX", ""))
MPIRUN = os.environ.get("MPIRUN", "")
THREE = ("--launches", 3)


def record(path):
    return json.loads(read(os.path.join(path, "run.json")))


def run(folder, plan, code, *options, patterns=(), out="out"):
    """`collmark run` of a driver with this plan; its folder."""
    name = driver(os.path.join(folder, "driver"), plan)
    path = os.path.join(folder, out)
    Call("run", "--out", path, *options, "--", name).expect(code, *patterns)
    return path


def test_every_attempt_is_kept(folder):
    path = run(folder, ["ok 1", "wrong 1", "exit 4", "garbage", "ok 1"], 1,
               patterns=(r"^all_reduce .* flaky: wrong data in 1 of 3 launches$",
                         r"^4 rows, 4 flaky", r"5 of 5 launches ended by themselves, exit 1"))
    attempts = record(path)["attempts"]
    check([a["exit"] for a in attempts] == [0, 1, 4, 3, 0], attempts)
    check([a["report"] for a in attempts] == [True, True, False, False, True], attempts)
    for i in range(1, 6):
        files = sorted(os.listdir(os.path.join(path, f"attempt-{i}")))
        want = {3: ["stderr.txt"], 4: ["stderr.txt", "stdout.txt"]}
        check(files == want.get(i, ["result.json", "stderr.txt"]), f"{i}: {files}")
        check(read(os.path.join(path, f"attempt-{i}", "stderr.txt")) == "driver was here\n", i)


def test_flaky_by_spread(folder):
    plan = ["ok 1", "ok 1.4", "ok 1"]
    run(folder, plan, 0, *THREE, patterns=("flaky: spread 40 % of the median",))
    run(folder, plan, 0, *THREE, "--flaky", "50%", out="out2",
        patterns=("^4 rows, 0 flaky",))


def test_worst_exit_code(folder):
    for i, (plan, code) in enumerate(((["exit 3", "exit 4"], 4), (["end 5", "ok 1"], 5),
                                      (["end 6", "end 5"], 6), (["exit 137", "ok 1"], 3),
                                      (["exit 1", "exit 5"], 3),
                                      (["ok 1", "exit 4", "wrong 1"], 1))):
        run(folder, plan, code, "--launches", len(plan), out=f"out{i}")
    # What would end the same way each time is not repeated.
    for code in (2, 77):
        path = run(folder, [f"exit {code}"], code, out=f"once{code}")
        check(len(record(path)["attempts"]) == 1, record(path))


def test_launcher(folder):
    words = os.path.join(folder, "words")
    fake = os.path.join(folder, "fake launcher")
    with open(fake, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\necho \"$*\" >>'{words}'\nshift 2\nexec \"$@\"\n")
    os.chmod(fake, 0o700)
    path = run(folder, ["ok 1"], 0, *THREE, "--launcher", f"'{fake}' -np 2")
    name = os.path.join(folder, "driver", "fake_perf")
    check(read(words) == f"-np 2 {name} -J -\n" * 3, read(words))
    check(record(path)["command"] == [fake, "-np", "2", name], record(path))


def test_resume(folder):
    path = run(folder, ["ok 1"], 0, "--launches", 2)
    name = os.path.join(folder, "driver", "fake_perf")
    Call("run", *THREE, "--resume", path).expect(0, "3 of 3 launches")
    Call("run", *THREE, "--resume", path, "--", name).expect(0, "3 of 3 launches")
    check(len(record(path)["attempts"]) == 3, record(path))
    Call("run", "--resume", path, "--", name, "-n", "5").expect(2, "the command is another one")
    os.environ["NCCL_ALGO"] = "Ring"
    try:
        Call("run", "--resume", path).expect(2, "a variable such as NCCL_")
    finally:
        del os.environ["NCCL_ALGO"]
    with open(name, "a", encoding="utf-8") as f:
        f.write("# another build\n")
    Call("run", "--resume", path).expect(2, "the program or a variable .* has changed")


def test_time_budget_cuts_off(folder):
    path = run(folder, ["wait"], 6, "--time-budget", "0.2s",
               patterns=("0 of 5 launches ended by themselves, exit 6",))
    check([a["cut"] for a in record(path)["attempts"]] == ["budget"], record(path))
    # What was cut off is kept, but neither a failure nor a launch of the sample.
    driver(os.path.join(folder, "driver"), ["ok 1"])
    Call("run", *THREE, "--resume", path).expect(0, "3 of 3 launches")
    Call("compare", path, path).expect(0, "^NEW .* 3 launches")


def test_time_budget_begins_no_launch_too_many(folder):
    path = run(folder, ["ok 1"], 0, "--launches", 1)
    real, long = collmark_run.attempt, []

    def slow_attempt(place, requests, deadline):
        long.append(real(place, requests, deadline))
        return dict(long[-1], seconds=200.0)

    collmark_run.attempt = slow_attempt
    try:
        call = Call("run", "--launches", 9, "--time-budget", "150", "--resume", path)
    finally:
        collmark_run.attempt = real
    call.expect(6, "2 of 9 launches")
    check(len(long) == 1 and "does not hold another launch" in call.err, call.err)


def is_alive(pid):
    """Neither gone nor waiting for its parent to notice that it is."""
    try:
        return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_interrupted(folder):
    """^C twice: a job that is deaf, and hides in another process group, is gone all the same."""
    place = os.path.join(folder, "driver")
    name, path = driver(place, ["ok 1", "hang"]), os.path.join(folder, "out")
    with subprocess.Popen([COLLMARK, "run", "--out", path, "--", name], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for mark in ("here", "asked"):
            wait_until(lambda: os.path.exists(os.path.join(place, mark)), mark)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20 * STRETCH)
    check(process.returncode == 6, f"exit {process.returncode}: {out}{err}")
    check("interrupted" in err and "--resume" in err, err)
    pid = int(read(os.path.join(place, "here")))
    wait_until(lambda: not is_alive(pid), f"the end of process {pid}")
    check([a["cut"] for a in record(path)["attempts"]] == [None, "signal"], record(path))


def test_confirm(folder):
    """NEW is slower by half; what it is when run again decides."""
    old, new = run(folder, ["ok 1"], 0, *THREE, out="old"), run(folder, ["ok 1.5"], 0, *THREE)
    for i, (plan, code, said) in enumerate((
            ("ok 1", 0, "4 not slower again"), ("ok 1.5", 5, r"4 regressed$(.*\n)*.*slower again"),
            ("exit 3", 5, r"could not be run again(.*\n)*.*not in NEW"))):
        name = driver(os.path.join(folder, "driver"), [plan])
        path = os.path.join(folder, f"again{i}")
        call = Call("compare", old, new, "--confirm", "--confirm-dir", path).expect(
            code, said, "^method +4 slower rows run again in 3 launches, ")
        check(record(path)["command"] == [name, "-b", "64", "-e", str(MIB)], record(path))
        check("confirming, 3 launches" in call.err, call.err)


def test_confirm_by_a_command(folder):
    old, new = run(folder, ["ok 1"], 0, *THREE, out="old"), run(folder, ["ok 1.5"], 0, *THREE)
    name = driver(os.path.join(folder, "driver"), ["ok 1"])
    Call("compare", old, new, "--confirm", "--", "/usr/bin/env", name).expect(0, "4 not slower")
    check(record(new + "-confirm")["command"][:2] == ["/usr/bin/env", name], "command")


def test_narrowed_sweeps():
    """-b and -e as the drivers count: sizes of 3 ranks are rounded down, so asked sizes are not."""
    by_four = (8, 1 << 20, lambda size: size * 4)
    by_step = (100, 1000, lambda size: size + 300)
    for sweep, sizes, want in ((by_four, [8], (8, 8)), (by_four, [24, 504], (32, 512)),
                               (by_four, [1 << 20], (1 << 19, 1 << 19)),
                               (by_step, [400, 696], (400, 700)), (by_step, [1000], (1000, 1000))):
        check(confirm.narrowed(sizes, sweep) == want, f"{sizes}: not {want}")
    for args, want in ((["a", "-J", "x", "-b", "8"], ["a", "-b", "8"]),
                       (["a", "-Jx", "--csv=y", "--output_file=z", "--csv", "-"], ["a"])):
        check(confirm.drop_outputs(args) == want, args)


# ---- the real thing --------------------------------------------------------------------------

SWEEP = ("-b", "8", "-e", "64K", "-f", "8", "-n", "5")


def settle_placement(path):
    """As if the cores of all launches had been equally far apart: a virtual machine moves them."""
    for number in (1, 2, 3):
        name = os.path.join(path, f"attempt-{number}", "result.json")
        doc = json.loads(read(name))
        probed = doc["placement"]
        check(probed["before"] is not None or probed["why_not"], probed)
        doc["placement"]["tag"] = None
        with open(name, "w", encoding="utf-8") as f:
            json.dump(doc, f)


def real(folder, *command):
    """Three launches; saved, shown, and held against themselves."""
    path, base = os.path.join(folder, "real"), os.path.join(folder, "baselines")
    Call("run", *THREE, "--out", path, *command).expect(
        0, "^all_reduce float sum, 32 KiB out of place ", "3 of 3 launches")
    settle_placement(path)
    Call("baseline", "save", path, "--dir", base).expect(0, "10 rows, 3 launches")
    Call("compare", "all_reduce", path, "--dir", base).expect(0, "10 same")


def test_a_real_driver(folder):
    real(folder, "--", DRIVER, "-g", "2", *SWEEP)


def test_a_real_driver_with_processes(folder):
    if not MPIRUN:
        return "no MPIRUN"
    if "mpi" not in subprocess.run(["ldd", DRIVER], capture_output=True, text=True,
                                   check=False).stdout:
        return "a build without MPI"
    os.environ.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "OMPI_MCA_rmaps_base_oversubscribe": "1",
                       "OMPI_MCA_hwloc_base_binding_policy": "none"})
    real(folder, "--launcher", f"{MPIRUN} -np 2", "--", DRIVER, *SWEEP)
    return None


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
