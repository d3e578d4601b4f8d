#!/usr/bin/env python3
"""Break the kernels on purpose, one place at a time, and see that the rig's tests notice.

    mutants.py [NAME...]     all of tests/sim/mutants_table.py, or those

A mutant is a copy of src/kernels/*.h with one text replaced by another. It is compiled for two
types and one reduction, in the flavour that can notice (what lacks nothing but order shows under
ThreadSanitizer only), linked with objects that `make mutants` has built, and must fail one of
the cases named in its row. The unbroken kernels run first and must pass all of those cases.

`make mutants` needs, from BUILDDIR (B):

    B/libcollmark.a, B/sim/own/tests/sim/cmsim*.o, and for the flavours plain and tsan
    B/sim/FLAVOUR/{tests/sim/{exec_rig*,test_exec_ends,test_exec_forms,test_exec_waits},
                   src/engine/{exec_cuda,upload_cuda}}.o

and runs: BUILDDIR=B MUTANTS=1 tests/test_mutants.sh
"""

import concurrent.futures
import glob
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "sim"))
sys.dont_write_bytecode = True

from mutants_table import MUTANTS  # noqa: E402

BUILD = ROOT / os.environ.get("BUILDDIR", "build")
FLAVOURS = {
    "plain": [os.environ.get("CXX", "g++")],
    "tsan": [os.environ.get("CLANGXX", "clang++"), "-fsanitize=thread"],
}
FLAGS = ["-std=c++17", "-O0", "-ffp-contract=off", "-w", "-DCM_SIM", f"-I{ROOT}/tests/sim",
         f"-I{ROOT}/src"]
UNIT = """#include "kernels/exec_kernels.h"
CM_EXEC_REDUCTION(sum, u8)
CM_EXEC_REDUCTION(sum, f32)
"""
LIMIT = 120  # seconds for one case
JOBS = 2


class Broken(Exception):
    """The table or the build is wrong, not the kernels."""


# Read once, so that all mutants are of the same kernels.
HEADERS = {path.name: path.read_text(encoding="utf-8")
           for path in (ROOT / "src" / "kernels").glob("*.h")}


def check_table(rows):
    bad = [f"{row.name}: its text is {HEADERS[row.file].count(row.old)} times in {row.file}"
           for row in rows if HEADERS[row.file].count(row.old) != 1]
    if bad:
        raise Broken("\n".join(bad))


def write_sources(folder, row):
    """The kernels' headers, one of them changed; row None: as they are."""
    (folder / "kernels").mkdir()
    for name, text in HEADERS.items():
        if row is not None and name == row.file:
            text = text.replace(row.old, row.new)
        (folder / "kernels" / name).write_text(text, encoding="utf-8")
    (folder / "unit.cu").write_text(UNIT, encoding="utf-8")


def objects(flavour, program):
    tests = BUILD / "sim" / flavour / "tests" / "sim"
    engine = BUILD / "sim" / flavour / "src" / "engine"
    found = sorted(glob.glob(f"{tests}/exec_rig*.o")) + sorted(
        glob.glob(f"{BUILD}/sim/own/tests/sim/cmsim*.o"))
    if not found:
        raise Broken(f"{BUILD} has no rig for the simulator: make mutants")
    return [f"{tests}/{program}.o", f"{engine}/exec_cuda.o", f"{engine}/upload_cuda.o", *found,
            f"{BUILD}/libcollmark.a"]


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **options)


def build(folder, flavour, programs):
    compiler = FLAVOURS[flavour]
    # The copies are found before src/, and so is what they include.
    steps = [[*compiler, f"-I{folder}", *FLAGS, "-x", "c++", "-c", "-o", f"{folder}/unit.o",
              f"{folder}/unit.cu"]]
    for program in programs:
        steps.append([*compiler, "-o", f"{folder}/{program}", f"{folder}/unit.o",
                      *objects(flavour, program), "-lm", "-ldl", "-pthread"])
    for step in steps:
        done = run(step)
        if done.returncode != 0:
            raise Broken(f"{' '.join(step)}\n{done.stdout}")


def unmoved():
    """ThreadSanitizer of clang 14 wants addresses where they are without randomisation."""
    command = ["setarch", platform.machine(), "-R"]
    works = shutil.which("setarch") and run([*command, "true"]).returncode == 0
    return command if works else []


UNMOVED = unmoved()


def passes(folder, case):
    program, name = case
    environment = dict(os.environ, TSAN_OPTIONS="symbolize=0:report_thread_leaks=0")
    try:
        done = run([*UNMOVED, f"{folder}/{program}", name], timeout=LIMIT, env=environment)
    except subprocess.TimeoutExpired:
        return False
    if "0 passed, 0 failed" in done.stdout:
        raise Broken(f"{program} ran no case {name}")
    return done.returncode == 0


def first_failure(row, flavour, cases):
    """The first case that fails, or None."""
    with tempfile.TemporaryDirectory(prefix="mutant.") as name:
        folder = pathlib.Path(name)
        write_sources(folder, row)
        build(folder, flavour, sorted({program for program, _ in cases}))
        for case in cases:
            if not passes(folder, case):
                return case
    return None


def check_unbroken(rows):
    """All cases of all rows, on the kernels as they are."""
    for flavour in FLAVOURS:
        cases = sorted({case for row in rows if row.flavour == flavour for case in row.cases})
        case = first_failure(None, flavour, cases) if cases else None
        if case is not None:
            raise Broken(f"the kernels as they are fail {case[1]} ({flavour})")


def try_row(row):
    return row, first_failure(row, row.flavour, row.cases)


def main(names):
    unknown = set(names) - {row.name for row in MUTANTS}
    if unknown:
        raise Broken(f"no such mutant: {', '.join(sorted(unknown))}")
    if shutil.which(FLAVOURS["tsan"][0]) is None:
        print(f"skip   mutants of order: no {FLAVOURS['tsan'][0]}")
    rows = [row for row in MUTANTS if not names or row.name in names]
    here = [row for row in rows if shutil.which(FLAVOURS[row.flavour][0])]
    check_table(rows)
    check_unbroken(here)
    caught = 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for row, case in pool.map(try_row, here):
            caught += case is not None
            verdict = f"caught by {case[1]}" if case else "SURVIVED"
            print(f"{'ok    ' if case else 'not ok'} {row.name} ({row.flavour}): {verdict}",
                  flush=True)
    print(f"{caught} passed, {len(here) - caught} failed, {len(rows) - len(here)} skipped")
    return 0 if caught == len(here) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Broken as problem:
        print(f"not ok mutants: {problem}\n0 passed, 1 failed, 0 skipped")
        sys.exit(1)
