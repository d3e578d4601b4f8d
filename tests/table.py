"""Strict reader of the table that nccl-tests and its parsers know.

    table.py [EXPECTATION...] FILE...

Every row must have 13 fields of the right kind, and the lines around the rows must be there.
Expectations (defaults in brackets):

    rows=N        exactly N rows                    rows=+  at least one [+]
    wrong=0       #wrong is 0 wherever checked [0]  wrong=+ at least one row is wrong, wrong=any
    na=no         no column says N/A [any]          na=any
    measured=yes  at least one row has a time [yes] measured=any
    more=N        N fields of -I and -S beyond the 13 [0]
    tables=N      headers of columns [1]
    bw=yes        the average is a number [yes]     bw=any
"""
import re
import sys

NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
TYPES = ("int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2").split()
OPS = "sum prod max min avg mulsum none".split()
COLUMNS = "# size count type redop root".split()
HALF = ["time algbw busbw #wrong".split(), "cputime algbw busbw #wrong".split()]


class Wrong(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Wrong(text)


def is_number(text):
    return re.fullmatch(NUMBER, text) is not None


def read_half(fields, row):
    """One placement: (time or None, wrong or None)."""
    time, algbw, busbw, wrong = fields
    check(all(f == "N/A" or is_number(f) for f in fields), f"not a number: {row}")
    absent = [f == "N/A" for f in (time, algbw, busbw)]
    check(all(absent) or not any(absent), f"partly N/A: {row}")
    check(wrong == "N/A" or wrong.isdigit(), f"#wrong {wrong}: {row}")
    check(time != "N/A" or wrong == "N/A", f"checked but not measured: {row}")
    return (None if time == "N/A" else float(time)), (None if wrong == "N/A" else int(wrong))


def read_row(line, more):
    fields = line.split()
    if len(fields) == 12 + more:
        # Collectives that nccl-tests gives an empty redop column (hypercube).
        fields.insert(3, "none")
    check(len(fields) == 13 + more, f"{len(fields)} fields, wanted {13 + more}: {line}")
    size, count, dtype, op, root = fields[:5]
    check(size.isdigit() and count.isdigit(), f"size or count: {line}")
    check(dtype in TYPES, f"type {dtype}: {line}")
    check(op in OPS, f"redop {op}: {line}")
    check(re.fullmatch(r"-1|[0-9]+", root), f"root {root}: {line}")
    half = 4 + (more // 8 * 4 if more >= 8 else 0)
    first = read_half(fields[5:9], line)
    second = read_half(fields[5 + half:9 + half], line)
    return {"size": int(size), "halves": (first, second), "na": "N/A" in fields}


def one(lines, pattern):
    found = [m for m in (re.fullmatch(pattern, l) for l in lines) if m]
    check(len(found) == 1, f"{len(found)} lines match {pattern!r}, wanted one")
    return found[0]


def check_rows(rows, want):
    wrong = [w for r in rows for _, w in r["halves"] if w is not None]
    times = [t for r in rows for t, _ in r["halves"] if t is not None]
    if want["rows"] == "+":
        check(rows, "no rows")
    else:
        check(len(rows) == int(want["rows"]), f"{len(rows)} rows, wanted {want['rows']}")
    if want["wrong"] == "0":
        check(not any(wrong), "wrong elements")
    elif want["wrong"] == "+":
        check(any(wrong), "no wrong elements")
    if want["na"] == "no":
        check(not any(r["na"] for r in rows), "N/A in a row")
    if want["measured"] == "yes":
        check(times, "no row was measured")
    return sum(wrong), bool(wrong)


def check_file(path, want):
    lines = [l.rstrip() for l in open(path, encoding="utf-8").read().split("\n")]
    more = int(want["more"])
    rows = [read_row(l, more) for l in lines if l and not l.startswith("#")]
    headers = [l.split() for l in lines if l.startswith("#") and " size " in l and " root" in l]
    check(len(headers) == int(want["tables"]), f"{len(headers)} headers of columns")
    for words in headers:
        check(words[:6] == COLUMNS and words[6:10] in HALF, f"columns are {words}")
        check(len(words) == 14 + more, f"{len(words) - 1} columns, wanted {13 + more}")
    check(lines[0].startswith("# collmark version "), f"first line: {lines[0]}")
    one(lines, r"# Collective test starting: \w+_perf.*")
    one(lines, r"# nThread [0-9]+ nGpus [0-9]+ minBytes [0-9]+ maxBytes [0-9]+ step: .*")
    one(lines, r"# Collective test concluded: \w+_perf.*")
    total, checked = check_rows(rows, want)
    bounds = one(lines, r"# Out of bounds values : (?:([0-9]+) (OK|FAILED)|N/A .*)")
    check((bounds[1] is not None) == checked, f"the rows say otherwise: {bounds[0]}")
    if checked:
        check(int(bounds[1]) == total, f"{bounds[0]}, the rows have {total}")
        check((bounds[2] == "OK") == (total == 0), bounds[0])
    average = one(lines, r"# Avg bus bandwidth    : (" + NUMBER + r"|N/A)(?: (?:OK|FAILED))?")
    check(want["bw"] == "any" or average[1] != "N/A", average[0])


def main(args):
    want = {"rows": "+", "wrong": "0", "na": "any", "measured": "yes", "more": "0", "tables": "1",
            "bw": "yes"}
    paths = []
    for arg in args:
        key, equals, value = arg.partition("=")
        if equals and key in want:
            want[key] = value
        else:
            paths.append(arg)
    failed = False
    for path in paths:
        try:
            check_file(path, want)
        except Wrong as wrong:
            print(f"{path}: {wrong}")
            failed = True
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
