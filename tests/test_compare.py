#!/usr/bin/env python3
"""scripts/collmark compare and baseline: the verdict on two samples, and what is said of it."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from collmark_rig import (  # noqa: E402
    MIB, ROOT, TIMES, Call, changed, check, document, folder_of, launches, read, run_tests)


# ---- verdicts on made-up launches ------------------------------------------------------------

def verdict_of(folder, code, *patterns, old=TIMES, new=TIMES, options=(), spread=0.01, **changes):
    """OLD against NEW, both of five launches."""
    place = tempfile.mkdtemp(dir=folder)
    a = launches(os.path.join(place, "old"), old, spread)
    b = launches(os.path.join(place, "new"), new, spread, **changes)
    return Call("compare", a, b, *options).expect(code, *patterns)


def test_equal_launches(folder):
    verdict_of(folder, 0, r"^as fast as before: 8 same$")


def test_a_tight_loss_is_named(folder):
    call = verdict_of(folder, 5, r"^2 regressed|: 2 regressed, 6 same",
                      r"^regressed: all_reduce float sum, 1 MiB out of place; 10\.\d+ GB/s -> "
                      r"9\.\d+ GB/s \(-1\d\.\d %, noise 1\.\d %\)$", new=changed({MIB}, 1 / 0.9))
    check(len(re.findall("^regressed: ", call.out, re.M)) == 2, call.out)


def test_the_same_loss_within_noise(folder):
    verdict_of(folder, 0, r"^same .* 1 MiB out of place .* -1\d\.\d % .* within the noise",
               "^method +the noise of 8 of 8 rows is above the limit, 30 % in the middle",
               new=changed({MIB}, 1 / 0.9), spread=0.2)


def test_improved_is_said(folder):
    verdict_of(folder, 0, r"faster|2 improved, 6 same; a new baseline", r"^improved .* 1 MiB in",
               new=changed({MIB}, 0.8))


def test_latency_rows_have_their_limit(folder):
    verdict_of(folder, 0, "within the limit", new=changed({64}, 1.12))
    verdict_of(folder, 5, r"^regressed: .*64 B in place; 0\.98 us -> 1\.1\d us \(\+12",
               new=changed({64}, 1.12), options=("--max-latency-loss", "10%"))
    verdict_of(folder, 0, new=changed({MIB}, 1.12), options=("--latency-up-to", "1M"))
    verdict_of(folder, 0, new=changed({MIB}, 1.12), options=("--max-loss", "15"))


def test_missing_and_new(folder):
    less = {s: t for s, t in TIMES.items() if s != MIB}
    verdict_of(folder, 5, r"^missing: all_reduce float sum, 1 MiB out of place; not in NEW$",
               new=less)
    verdict_of(folder, 0, r"^new .* 1 MiB in place .* not in OLD$", old=less)
    verdict_of(folder, 2, r"^not compared", old={64: 1.0}, new={MIB: 1.0})


def test_no_figure_never_passes(folder):
    for value in (None, float("nan"), float("inf"), -1.0, 0, "12", True):
        verdict_of(folder, 5, r"^unusable: .*1 MiB out of place; NEW has figures of 0 launches",
                   new={**TIMES, MIB: value})
        verdict_of(folder, 5, r"^unusable: .*OLD has figures of 0", old={**TIMES, MIB: value})


def test_wrong_data_never_passes(folder):
    docs = [document(TIMES) for _ in range(5)]
    docs[3]["results"][1]["in_place"]["nwrong"] = 7
    docs[3]["summary"]["exit_code"] = 1
    old = launches(os.path.join(folder, "old"), TIMES)
    new = folder_of(os.path.join(folder, "new"), docs)
    Call("compare", old, new).expect(
        5, r"^unusable: all_reduce float sum, 4 KiB in place; wrong data in 1 launch of NEW",
        "1 unusable, 7 same")
    Call("baseline", "save", new, "--dir", folder).expect(2, "wrong data is no baseline")


def test_engines_are_rows_of_their_own(folder):
    """--compare: of one launch each engine has rows, and one may be slower by itself."""
    def made(path, factor):
        docs = []
        for i in range(5):
            times = {size: us * (1 + 0.002 * i) for size, us in TIMES.items()}
            doc = document(times)
            other = document({size: us * factor for size, us in times.items()})
            for row in other["results"]:
                row["engine"] = "mpi"
            for row in doc["results"]:
                row["engine"] = "builtin"
            doc["results"] += other["results"]
            docs.append(doc)
        return folder_of(os.path.join(folder, path), docs)

    old = made("old", 3)
    Call("compare", old, made("same", 3)).expect(0, "16 same")
    Call("compare", old, made("slow", 4)).expect(
        5, "8 regressed, 8 same",
        r"^regressed: all_reduce float sum engine mpi, 1 MiB out of place")
    plain = launches(os.path.join(folder, "plain"), TIMES)  # before there were engines
    Call("compare", plain, old).expect(0, "8 same", "8 new")


def test_too_few_launches(folder):
    old = launches(os.path.join(folder, "old"), TIMES)
    for n in (1, 2):
        new = launches(os.path.join(folder, f"new{n}"), TIMES, n=n)
        Call("compare", old, new).expect(2, "^not compared",
                                         rf"NEW has figures of {n} launch(es)?, it takes 3")
    one = os.path.join(folder, "new1", "attempt-1", "result.json")
    Call("compare", old, one).expect(2, "^not compared")
    three = launches(os.path.join(folder, "new3"), TIMES, n=3)
    Call("compare", old, three).expect(0)


def test_without_deviation(folder):
    # All launches alike: the noise is 0, and only the limit and the test decide.
    verdict_of(folder, 0, "8 same", spread=0)
    verdict_of(folder, 5, "2 regressed", spread=0, new=changed({MIB}, 1.07))
    verdict_of(folder, 0, "8 same", spread=0, new=changed({MIB}, 1.04))


def test_huge_values(folder):
    old = {64: 1e-300, MIB: 1e300}
    verdict_of(folder, 0, old=old, new=old)


def test_failed_launches_are_told(folder):
    docs = [document(TIMES) for _ in range(5)]
    docs[0]["summary"]["exit_code"] = 4
    a = folder_of(os.path.join(folder, "a"), docs)
    Call("compare", a, a).expect(0, r"^note +NEW: 1 launch of 5 failed and did not count")


def test_attempts_that_do_not_belong_together(folder):
    docs = [document(TIMES), document(TIMES, machine__backend="cuda")]
    a = folder_of(os.path.join(folder, "a"), docs)
    Call("compare", a, a).expect(2, "not of one kind: backend: cuda -> host")


# ---- environment -----------------------------------------------------------------------------

OTHER_DEVICES = [{"rank": r, "node": 0, "process": r, "device_info": "Other GPU"} for r in (0, 1)]


def test_hard_differences(folder):
    three = [{"rank": r, "node": 0, "process": r, "device_info": "Test CPU"} for r in (0, 1, 2)]
    nodes = [{"rank": r, "node": r, "process": r, "device_info": "Test CPU"} for r in (0, 1)]
    for said, changes in (
            ("device: Test CPU -> Other GPU", {"devices": OTHER_DEVICES}),
            ("ranks: 2 -> 3", {"devices": three}),
            ("nodes: 1 -> 2", {"devices": nodes}),
            ("backend: host -> cuda", {"machine__backend": "cuda"}),
            ("oversubscribed: no -> yes", {"machine__oversubscribed": True}),
            ("option average: 3 -> 1", {"config__average": 1}),
            ("option inject: none -> delay", {"config__inject": "delay"}),
            ("algorithm asked: auto -> ring", {"config__algo": "ring"}),
            ("wire asked: auto -> tcp", {"config__wire": "tcp"})):
        verdict_of(folder, 2, re.escape(said), "--force", **changes)
        verdict_of(folder, 0, f"^FORCED +{re.escape(said)}", options=("--force",), **changes)


def test_soft_differences(folder):
    for said, changes in (
            ("mpi: Open MPI 4.1.4 -> MPICH 4.0", {"machine__mpi": "MPICH 4.0"}),
            ("cuda_driver: none -> 13.0", {"machine__cuda_driver": "13.0"}),
            ("clock: CLOCK_MONOTONIC -> tsc", {"machine__clock": "tsc"}),
            ("wire: shm -> tcp", {"machine__wire": "tcp"}),
            ("option iters: 20 -> 50", {"config__iters": 50}),
            ("variable NCCL_ALGO: none -> Ring", {"environment__NCCL_ALGO": "Ring"}),
            ("options that one side does not have: novel=7", {"config__novel": 7})):
        verdict_of(folder, 0, f"^differs +{re.escape(said)}", **changes)


def test_what_is_no_difference(folder):
    """Where reports go, what they are held against, and what mpirun tells its ranks."""
    for changes in ({"config__thresholds": "x.txt"}, {"config__junit": "x.xml"},
                    {"config__maxbytes": 1 << 30}, {"environment__COLLMARK_JOB": "7"},
                    {"environment__OMPI_MCA_orte_hnp_uri": "1.0;tcp://192.0.2.1:1"},
                    {"machine__wire": "shm"}):
        call = verdict_of(folder, 0, "8 same", **changes)
        check("differs" not in call.out, f"{changes}: {call.out}")


def test_another_plan_is_remarked(folder):
    b = launches(os.path.join(folder, "b"), TIMES)
    docs = [document(TIMES) for _ in range(5)]
    for doc in docs:
        doc["results"][0]["algorithm"] = "tree"
    Call("compare", b, folder_of(os.path.join(folder, "c"), docs)).expect(
        0, r"64 B out of place .*ring/copy/simple -> tree/copy/simple$")


def test_files_that_are_none(folder):
    old = launches(os.path.join(folder, "old"), TIMES)
    path = os.path.join(folder, "x.json")
    spoilt = document(TIMES)
    del spoilt["summary"]
    for said, text in (("schema 2; this program reads up to 1",
                        json.dumps(document(TIMES, schema=2))),
                       ("not JSON", "{"), ("not JSON", ""), ("not JSON", "[" * 100000),
                       ("not a result", "[]"), ("not a result", '{"a": 1}'),
                       ("not as scripts/result.schema.json says", json.dumps(spoilt)),
                       ("baseline version 2", '{"kind": "collmark baseline", "version": 2}'),
                       ("damaged", '{"kind": "collmark baseline", "version": 1}')):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        call = Call("compare", old, path).expect(2, said)
        check(call.err.count("\n") == 1, f"one line: {call.err}")
    with open(path, "wb") as f:
        f.write(b"\xff\xfe")
    Call("compare", old, path).expect(2, "not JSON")
    Call("compare", old, os.path.join(folder, "absent")).expect(2, "no such file or folder")


# ---- baselines -------------------------------------------------------------------------------

def test_baseline(folder):
    base = os.path.join(folder, "baselines")
    old = launches(os.path.join(folder, "old"), TIMES)
    new = launches(os.path.join(folder, "new"), changed({MIB}, 1.3))
    where = os.path.join(base, "test-cpu-2r-1n", "all_reduce.json")
    Call("baseline", "save", old, "--dir", base).expect(0, re.escape(where) + ": 8 rows, 5 launch")
    first = read(where)
    for line in first.splitlines():
        check(line == line.rstrip() and "\t" not in line, line)
    check(len(re.findall(r'^  \{"algorithm": "auto", "busbw_gbs": .*\}.?$', first, re.M)) == 8,
          "a row is not a line")
    check(len(re.findall(r"\d{4}-\d\d-\d\dT", first)) == 1, "more than one time of day")
    check(json.loads(first)["rows"][0]["median_us"] == 0.98, first)
    # The same launches in another order give the same bytes.
    os.rename(os.path.join(old, "attempt-1"), os.path.join(old, "attempt-9"))
    Call("baseline", "save", old, "--dir", base).expect(0)
    check(read(where) == first, "another file from the same launches")
    Call("baseline", "save", new, "--dir", base).expect(2, "exists; --replace")
    Call("baseline", "save", new, "--dir", base, "--name", "Odd Name").expect(2, "'odd-name'")
    Call("baseline", "save", new, "--dir", base, "--name", "slow").expect(0)
    Call("baseline", "list", "--dir", base).expect(
        0, r"^test-cpu-2r-1n/all_reduce +8 +5 +0\.1\.0 ", "^test-cpu-2r-1n/slow ")
    Call("baseline", "show", "slow", "--dir", base).expect(0, "mpi: Open MPI 4.1.4", "1 MiB out")
    Call("compare", "all_reduce", old, "--dir", base).expect(0, "8 same")
    Call("compare", "test-cpu-2r-1n/all_reduce", new, "--dir", base).expect(5, "2 regressed")
    Call("compare", "slow", "all_reduce", "--dir", base).expect(0, "2 improved")
    Call("compare", "absent", old, "--dir", base).expect(2, "no baseline of this name")
    Call("baseline", "save", new, "--dir", base, "--replace").expect(0)
    Call("compare", "all_reduce", new, "--dir", base).expect(0, "8 same")
    check(sorted(os.listdir(os.path.dirname(where))) == ["all_reduce.json", "slow.json"], "litter")


def test_baseline_of_several_machines(folder):
    base = os.path.join(folder, "baselines")
    here = launches(os.path.join(folder, "here"), TIMES)
    there = launches(os.path.join(folder, "there"), TIMES, devices=OTHER_DEVICES)
    for path in (here, there):
        Call("baseline", "save", path, "--dir", base).expect(0)
    Call("baseline", "show", "all_reduce", "--dir", base).expect(2, "several machines")
    Call("compare", "all_reduce", here, "--dir", base).expect(0, "^OLD +test-cpu-2r-1n/all_reduce")
    Call("compare", there, "all_reduce", "--dir", base).expect(0, "^NEW +other-gpu-2r-1n/all_red")


# ---- reports ---------------------------------------------------------------------------------

def all_verdicts(folder):
    """A pair that has every verdict, in folders with awkward names."""
    old = {**TIMES, 256: 1.0, 1 << 22: 400.0, 1 << 23: 800.0}
    new = {**changed({MIB}, 1.5), 1024: 1.0, 1 << 22: 200.0, 1 << 23: None}
    return (launches(os.path.join(folder, 'old <&"\x01|\n>'), old),
            launches(os.path.join(folder, "new ü"), new, machine__mpi="a:b,c%d\n::error::x"))


def test_junit(folder):
    if shutil.which("xmllint") is None:
        return "no xmllint (libxml2-utils)"
    old, new = all_verdicts(folder)
    path = os.path.join(folder, "out.xml")
    Call("compare", old, new, "--junit", path).expect(5)
    validate = ["xmllint", "--noout", "--schema", os.path.join(ROOT, "tests", "junit.xsd")]
    done = subprocess.run([*validate, path], capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stderr)
    text = read(path)
    for what, times in (("<testcase ", 16), ("<failure ", 4), ("<error ", 2), ("<skipped ", 2),
                        ('tests="16" failures="4" errors="2"', 2)):
        check(text.count(what) == times, f"{text.count(what)} {what}: {text}")
    # The schema refuses what is none.
    for good, bad in (("<testcase classname", "<testcase kind"), ("<failure ", "<failed "),
                      ('errors="2"', 'errors="-1"'), ('type="missing"', ""),
                      ("1 MiB in place", "1 MiB out of place")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(good, bad).replace("</failure>", "</" + (
                "failed>" if bad == "<failed " else "failure>")))
        done = subprocess.run([*validate, path], capture_output=True, check=False)
        check(done.returncode != 0, f"the schema takes {bad!r}")
    return None


def test_markdown_and_annotations(folder):
    old, new = all_verdicts(folder)
    path, summary = (os.path.join(folder, n) for n in ("out.md", "summary.md"))
    with open(summary, "w", encoding="utf-8") as f:
        f.write("before\n")
    os.environ["GITHUB_STEP_SUMMARY"] = summary
    try:
        call = Call("compare", old, new, "--markdown", path, "--github").expect(
            5, "^::error title=Collmark%3A regressed::all_reduce float sum, 1 MiB in place; ",
            "^::error title=Collmark%3A missing::", "^::notice title=Collmark::not as fast")
    finally:
        del os.environ["GITHUB_STEP_SUMMARY"]
    check(len(re.findall("^::", call.out, re.M)) == 7, call.out)
    text = read(path)
    check(read(summary) == "before\n" + text, "the step summary is not the Markdown")
    tables = [line for line in text.splitlines() if line.startswith("|")]
    check({len(re.findall(r"(?<!\\)\|", line)) for line in tables} == {9}, text)
    check("<&" not in text and "old &lt;&amp;" in text and "?\\|?&gt;" in text, text)
    check("| regressed |" in text and "<details>" in text, text)
    again = Call("compare", old, new)
    check(call.out.startswith(again.out.rstrip("\n")), "another report of the same files")


def test_many_annotations_are_cut(folder):
    sizes = {1 << i: 100.0 for i in range(17, 28)}
    call = verdict_of(folder, 5, "^::error title=Collmark::and 13 rows more$", old=sizes,
                      new={s: 200.0 for s in sizes}, options=("--github",))
    check(len(re.findall("^::error ", call.out, re.M)) == 10, call.out)
    check("GITHUB_STEP_SUMMARY is not set" in call.err, call.err)


def test_bad_options(folder):
    a = launches(os.path.join(folder, "a"), TIMES)
    for said, *options in (
            ("max-loss", "compare", a, a, "--max-loss", "x"),
            ("max-loss", "compare", a, a, "--max-loss", "-5"),
            ("latency-up-to", "compare", a, a, "--latency-up-to", "1Q"),
            ("is for --confirm", "compare", a, a, "--", "true"),
            ("does not tell how it was started", "compare", a, a, "--confirm"),
            ("launches", "run", "--launches", "0", "--", "true"),
            ("time-budget", "run", "--time-budget", "0", "--", "true"),
            ("what shall run", "run"), ("no such program", "run", "--", "absent_perf"),
            ("no such program", "run", "--launcher", "absent", "--", "true"),
            ("-J: collmark takes", "run", "--", "true", "-J", "x"),
            ("both name the folder", "run", "--out", "a", "--resume", "b", "--", "true"),
            ("nothing to go on with", "run", "--resume", a),
            ("not empty", "run", "--out", a, "--", "true"),
            ("no command", "frob"), ("required", "baseline")):
        call = Call(*options).expect(2)
        check(said in call.err and not call.out, f"{options}: {call.out}{call.err}")
    Call("compare", a, a, "--junit", os.path.join(folder, "no", "where")).expect(3)
    for command in ("run", "baseline", "compare"):
        Call(command, "--help").expect(0, "usage: collmark " + command)
    Call("--help").expect(0, "collmark run")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
