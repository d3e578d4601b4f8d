"""What the launches of an acceptance say: how each ended, whom it names, who is slower than peers.

Nothing passes by silence. A launch is right only if its driver ended with 0, left a report of all
the ranks that were asked for, and every row of it has a figure and was checked.
"""
import re
from dataclasses import dataclass, field

from .common import (EXIT_OK, EXIT_SYSTEM, EXIT_TRUNCATED, MEANING, Refused)
from .acceptance_hosts import plain
from .report_load import load_file
from .report_verdict import row_findings
from .result import figure, read_json
from .stats import median

SLOWER = 0.15           # than the median of the peers, as --find-bad-limit
DEVIATIONS = 5          # and by more than so many of theirs
CROWDED = 0.9           # instead of SLOWER where ranks share CPUs
LEAST_PEERS = 3
NORMAL = 1.4826         # MAD of a normal distribution to its deviation

DIED = re.compile(r"^process \d+ \(rank (\d+), pid \d+\) on host (\S+) died", re.M)
ABSENT = re.compile(r"^  did not arrive: rank (\d+) host (\S+)", re.M)
# What launchers wrap around the message that matters.
NOISE = re.compile(r"^\W*$|^(Primary job|a non-zero exit code|mpirun (noticed|detected)"
                   r"|the job to be terminated|\s*(Process name|Exit code):|mpirun: Forwarding)")


@dataclass
class Outcome:
    """How one launch ended."""

    code: int
    why: str = ""                              # empty if all is right
    document: dict = None                      # the driver's report
    names: list = field(default_factory=list)  # (rank, host) that are to blame: died or absent
    path: object = None                        # folder of the attempt
    seconds: float = 0.0


def first_message(text):
    """The first line of a driver or launcher that says what happened."""
    for line in text.split("\n"):
        if not NOISE.search(line):
            return plain(line)
    return ""


def blamed(text):
    """(rank, host) of the processes that died, else of those that the others waited for."""
    return [(int(r), h) for r, h in DIED.findall(text)] or [
        (int(r), h) for r, h in ABSENT.findall(text)]


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def gaps(path, document, ranks):
    """What is missing in a report that says it is right; None: nothing."""
    if document.get("ranks") != ranks:
        return f"{document.get('ranks')} ranks took part, {ranks} were asked for"
    pairs = document.get("pairs")
    if pairs is not None:
        return None if pairs.get("complete") else "not all pairs were tried"
    try:
        source = load_file(path)
    except Refused as e:
        return str(e)
    found = [f.text.removeprefix(": ") for f in row_findings(source) if f.level != "warn"]
    return found[0] if found else None


def outcome_of(entry, place, ranks, limit):
    """An attempt of run.py (`entry`, in the folder `place`). `limit`: it was cut off after so many
    seconds because it did not answer; None: it was the time budget that ran out."""
    message = read_text(place / "stderr.txt")
    out = Outcome(entry["exit"], path=place, seconds=entry["seconds"])
    if entry["report"]:
        out.document = read_json(place / "result.json")
    out.names = blamed(message) if out.code != EXIT_OK else []
    if entry["cut"] == "budget" and limit is not None:
        out.code = EXIT_SYSTEM
        out.why = f"no answer within {limit:.0f} s" + (
            f": {first_message(message)}" if first_message(message) else "")
    elif entry["cut"]:
        out.code, out.why = EXIT_TRUNCATED, "interrupted" if entry["cut"] == "signal" else (
            "the time budget is spent")
    elif out.code != EXIT_OK:
        out.why = first_message(message) or MEANING[out.code]
    else:
        missing = gaps(place / "result.json", out.document, ranks)
        if missing:
            out.code, out.why = EXIT_TRUNCATED, missing
    return out


# ---- peers ----------------------------------------------------------------------------------

def speeds(document):
    """Speed of each group at its largest size, 1/us: group -> (speed, size). Out of place."""
    found = {}
    for row in document["results"]:
        time, _ = figure(row, "out_of_place")
        if time and row["size"] >= found.get(row["group"], (0, 0))[1]:
            found[row["group"]] = (1 / time, row["size"])
    return found


def crowded(document):
    return bool(document["machine"].get("oversubscribed"))


def slow_ones(values, share_cpus):
    """Names of those that are slower than their peers, with a reason. `values`: name -> speed.

    The rule is that of --find-bad: below the median by more than a limit and by more than five
    deviations. Fewer than three cannot be compared.
    """
    if len(values) < LEAST_PEERS:
        return {}
    middle = median(list(values.values()))
    spread = NORMAL * median([abs(v - middle) for v in values.values()])
    limit = CROWDED if share_cpus else SLOWER
    floor = min(middle * (1 - limit), middle - DEVIATIONS * spread)
    return {name: f"slow: {value / middle:.2g} times the speed of its {len(values) - 1} peers"
            for name, value in values.items() if value < floor}


# ---- pairs ----------------------------------------------------------------------------------

CODES = {"corrupt": 1, "hangs": 4, "slow": 5}


def find_bad(pairs):
    """What --find-bad found: ({unit: (code, reason)}, {unit: reason of doubt}, links as text).
    Units are numbered as in the report."""
    reasons = {s["name"]: s["why"] for s in pairs["suspects"]}
    names = [u["name"] for u in pairs["units"]]
    bad, doubt, links = {}, {}, []
    for link in pairs["links"]:
        text = f"{link['a']} - {link['b']}"
        links.append(f"{text} {reasons.get(text, link['verdict'])}")
        for end in (link["a"], link["b"]):
            doubt[names.index(end)] = f"link {links[-1]}"
    for at, unit in enumerate(pairs["units"]):
        if unit["verdict"] in CODES:
            again = ", retested" if unit["retested"] else ""
            bad[at] = (CODES[unit["verdict"]], reasons.get(unit["name"], unit["verdict"]) + again)
        elif unit["verdict"] != "good":
            doubt[at] = "not tested"
    return bad, {at: why for at, why in doubt.items() if at not in bad}, links
