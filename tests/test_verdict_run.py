#!/usr/bin/env python3
"""The verdict and the line of --eta, by the drivers themselves."""
import os
import pty
import re
import signal
import sys
import time

from test_json import BUILD, MPIRUN, STRETCH, SUFFIX, Run, check, run_tests

SWEEP = ["-g", 2, "-b", "1K", "-e", "64K", "-f", 8, "-n", 5]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def test_exit_codes_and_their_order(folder):
    rules = os.path.join(folder, "rules")
    corrupt = ["--inject", "corrupt:rank=1"]
    one = ["-g", 2, "-b", 64, "-e", 64]
    write(rules, "all_reduce * 64 2 1 *,loop max_time=1e9\n")
    for options, code, text in (
            ([*one, "--min-busbw", "1e-9"], 0, "OK: 1 row (busbw >= 1e-09 GB/s)"),
            ([*one, "--min-busbw", "1e6"], 5, "FAILED: 1 of 1 row (busbw"),
            ([*one, "--max-time-us", "1e-6"], 5, "FAILED: 1 of 1 row (time"),
            ([*one, "--thresholds", rules], 0, "OK: 1 row (rules of"),
            (["-g", 2, "-b", 64, "-e", 128, "-f", 2, "--thresholds", rules], 5, "FAILED: 1 of 2"),
            (["-g", 1, "-b", 64, "-e", 64, "--min-busbw", "1e-9"], 5, "FAILED: 1 of 1"),
            ([*one, "--peak", "1e9", "--min-peak", "50"], 5, "FAILED: 1 of 1 row (>= 50 %"),
            ([*one, "--peak", "h100-sxm", "--min-peak", "1e-9"], 5, "FAILED: 1 of 1"),
            ([*one, "--min-bw", "1e6"], 5, "FAILED: the average (average >= 0.9 x 1e+06 GB/s)"),
            ([*one, "--min-busbw", "1e6", *corrupt], 1, "FAILED: 1 of 1 row"),
            ([*one, "--min-busbw", "1e6", "--inject", "stall:rank=1,iter=2", "-T", "1"], 4,
             "FAILED: it ended early")):
        run = Run("all_reduce", *options).expect(code)
        check(f"# Verdict              : {text}" in run.out, f"{options}: {run.out[-600:]}")
        named = "verdict: all_reduce float sum " in run.err or "--min-bw " in run.err
        check(named == (code in (1, 5)), f"{options}: {run.err}")
    run = Run("all_gather", "-g", 4, "-b", 8, "-e", 8, "--min-busbw", "1e-9").expect(5)
    check("not measured: rounds to 0 bytes" in run.err, run.err)
    Run("alltoall", *one, "--min-busbw", "1e-9").expect(0)  # it has no in-place form to judge
    Run("all_reduce", *one, "--placement", "in", "--min-busbw", "1e-9").expect(0)


def test_rules_are_refused_by_line(folder):
    rules = os.path.join(folder, "rules")
    write(rules, "# one\n\nall_reduce * * * * * max_tim=3\n")
    run = Run("all_reduce", *SWEEP, "--thresholds", rules).expect(2)
    check(f"{rules}:3: limits" in run.err and run.out == "", run.err)
    run = Run("all_reduce", *SWEEP, "--thresholds", "/no/such").expect(2)
    check("--thresholds '/no/such'" in run.err, run.err)


def test_the_same_code_in_all_processes():
    if not MPIRUN:
        return "no MPIRUN"
    run = Run("all_reduce", "-b", 64, "-e", 64, "--min-busbw", "1e6", launcher=[MPIRUN, "-np", "2"])
    if "but this build has no MPI" in run.err:
        return "a build without MPI"
    run.expect(5)
    return None


def test_peak_is_behind_the_fields():
    for extra, fields in ((["--peak", "10"], 15), (["--peak", "10", "-I", 1, "-S", 1], 24)):
        run = Run("all_reduce", *SWEEP, *extra).expect()
        rows = [l.split() for l in run.out.splitlines() if l and not l.startswith("#")]
        check(all(len(r) == fields for r in rows), rows)
        check("# %peak: busbw as a part of 10 GB/s" in run.out, run.out[:900])


# ---- the line of --eta -----------------------------------------------------------------------

def on_terminal(*options):
    """Exit code and what a terminal got, stdout and stderr together."""
    program = os.path.join(BUILD, "all_reduce_perf" + SUFFIX)
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(program, [program, *map(str, options)])
    out, end = b"", time.monotonic() + 30 * STRETCH
    while time.monotonic() < end:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    else:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return code, out.decode()


def shown(text):
    """The lines as they stand on a terminal at the end."""
    lines = []
    for line in text.split("\n"):
        cells, at = [], 0
        for part in re.findall(r"\r|\x1b\[K|\x1b\[2K|\x1b\[G|[^\r\x1b]+", line):
            if part in ("\r", "\x1b[G"):
                at = 0
            elif part == "\x1b[K":
                cells[at:] = []
            elif part == "\x1b[2K":
                cells[:] = " " * at
            else:
                cells[at:at + len(part)] = part
                at += len(part)
        lines.append("".join(cells).rstrip())
    return lines


def test_line_on_a_terminal():
    code, text = on_terminal("-g", 2, "-b", "1K", "-e", "4K", "-f", 2, "-N", 3, "--eta", "always",
                             "--max-time-us", "1e-9")
    check(code == 5, f"exit {code}: {text[-300:]}")
    check(re.search(r"\r# row 1 of 9: float sum 1K cycle 0\x1b\[K", text), text[:2000])
    lines = shown(text)
    check(not any("row 1 of" in l for l in lines), "the line is still there")
    rows = [l for l in lines if l and not l.startswith("#") and "verdict" not in l]
    check(len(rows) == 9 and all(len(r.split()) == 13 for r in rows), rows)
    check(sum("verdict: " in l for l in lines) == 9, lines)


def test_line_with_an_estimate():
    # 200 ms in each row, so that the line is renewed.
    code, text = on_terminal("-g", 2, "-b", 8, "-e", 64, "-f", 2, "-n", 1, "-w", 0, "-c", 0,
                             "--placement", "out", "--eta", "always", "--inject",
                             "delay:rank=1,phase=timed,us=300000")
    check(code == 0, f"exit {code}: {text[-300:]}")
    check(re.search(r"row [234] of 4: float sum (16|32|64), about [12] s left", text), text)


def test_line_is_silent(folder):
    for eta in ("auto", "never"):
        code, text = on_terminal(*SWEEP, "--eta", eta)
        check(code == 0 and "row 1 of" not in text, f"{eta}: {text[:1500]}")
    run = Run("all_reduce", *SWEEP).expect()
    check(run.err == "", f"not a terminal: {run.err}")
    path = os.path.join(folder, "r.json")
    run = Run("all_reduce", *SWEEP, "--eta", "always", "-J", path).expect()
    check(run.err == "# row 1 of 3: float sum 1K\n", f"now and then: {run.err!r}")
    check("# row" not in run.out and "# row" not in read(path), "it got into a report")


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    sys.exit(run_tests(globals()))
