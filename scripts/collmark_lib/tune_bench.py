"""Launches of one driver for `collmark tune`, and the journal that keeps them.

A rule is measured as what it will be: a line of a file that the driver reads (--tuning), for all
sizes. So what is measured is what the file then does, on every machine.

FILE.journal has one JSON object a line: what the launches are of, then each launch. A launch
that the journal has is taken from there. The search asks in an order that follows from what it
was told, so a resumed one goes the same way, and only what is missing runs.
"""
import hashlib
import json
import math
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import launch
from .common import (EXIT_OK, EXIT_SYSTEM, EXIT_TRUNCATED, EXIT_UNSUPPORTED, EXIT_USAGE,
                     EXIT_WRONG, MEANING, Refused, exit_code_of, one_line, size_word)
from .result import figure, is_result, read_json
from .tune_rule import Rule, heading

FORMAT = 1
DONE = {"done": True}
HEAD_S, PATIENCE = 1.0, 4  # a rule may take so many times as long as the default, and that more
REFUSALS = (EXIT_USAGE, EXIT_UNSUPPORTED)


class Stopped(Exception):
    """The launch was ended before its end: 'signal', or 'budget'."""


@dataclass
class Outcome:
    """What one launch told."""

    exit: int
    seconds: float
    times: dict = field(default_factory=dict)   # size asked for -> microseconds
    others: list = field(default_factory=list)  # sizes for which the driver did something else
    wrong: list = field(default_factory=list)   # sizes with wrong data
    why: str = ""                               # its first words on stderr, if it failed
    facts: dict = field(default_factory=dict)   # of the default: where, and what it did

    @property
    def failed(self):
        return self.exit not in (EXIT_OK, EXIT_TRUNCATED, *REFUSALS)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def time_of(row):
    """Both placements count alike, as a rule is about both. None: no figure."""
    found = [t for t in (figure(row, p)[0] for p in ("out_of_place", "in_place"))
             if t is not None]
    return geometric_mean(found) if found else None


def is_wrong(row):
    return any((row[p] or {}).get("nwrong") for p in ("out_of_place", "in_place"))


def sweep(low, high, factor):
    """Sizes as the driver counts them."""
    out = [low]
    while out[-1] * factor <= high:
        out.append(out[-1] * factor)
    return out


def first_words(path):
    text = Path(path).read_text(encoding="utf-8", errors="replace").strip()
    return one_line(text.splitlines()[0])[:200] if text else ""


def facts_of(doc, sizes):
    """What rules and header need: which machine this is, and the sizes after rounding."""
    machine, devices = doc["machine"], doc["devices"]
    rows = [r["size"] for r in doc["results"] if r["group"] == 0]
    return {
        "collective": doc["collective"], "ranks": doc["ranks"],
        "nodes": len({d["node"] for d in devices}),
        "groups": len(doc["groups"]), "one_memory": doc.get("network") is None,
        "backend": machine["backend"], "wire": machine["wire"], "version": doc["collmark"],
        "device": " + ".join(sorted({d["device_info"] for d in devices})),
        "mpi": machine["mpi"], "kernels": machine["kernels"],
        "oversubscribed": machine["oversubscribed"],
        "actual": [[asked, size] for asked, size in zip(sizes, rows)],
        "did": [[asked, *(r.get(k) for k in ("algorithm", "mode", "protocol", "channels"))]
                for asked, r in zip(sizes, (r for r in doc["results"] if r["group"] == 0))]}


class Journal:
    """What was measured, on disk."""

    def __init__(self, path, settings, digest, resume):
        """settings: what a later call may want to know, as JSON can hold it."""
        self.path, self.known, self.used = Path(path), {}, 0
        head = {"format": FORMAT, "digest": digest, "settings": settings}
        lines = self.read()
        if resume and not lines:
            raise Refused(f"--resume: {path} is not there, so there is nothing to go on with")
        if resume and lines[0] != head:
            raise Refused(f"--resume: {path} is of another command, program or setting")
        if not resume and lines and lines[-1] != DONE:
            raise Refused(f"{path} is of a tuning that did not come to its end: --resume goes on "
                          f"with it, or remove it")
        lines = [e for e in lines if e != DONE] if resume else []
        for entry in lines[1:]:
            key = entry.pop("key")
            entry["times"] = {int(s): t for s, t in entry["times"].items()}
            self.known[key] = Outcome(**entry)
        self.file = open(self.path, "a" if resume else "w", encoding="utf-8")
        if not lines:
            self.write(head)

    @classmethod
    def settings(cls, path):
        """Of an earlier call."""
        try:
            with open(path, encoding="utf-8") as f:
                return json.loads(f.readline())["settings"]
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise Refused(f"--resume: {path}: no journal of a tuning") from e

    def read(self):
        """Its lines; the last may have been cut off by the end of a process."""
        if not self.path.is_file():
            return []
        text = self.path.read_bytes()
        whole = text[:text.rfind(b"\n") + 1]
        if whole != text:
            self.path.write_bytes(whole)
        try:
            return [json.loads(line) for line in whole.splitlines()]
        except ValueError as e:
            raise Refused(f"--resume: {self.path}: not a journal ({e})") from e

    def write(self, entry):
        self.file.write(json.dumps(entry, sort_keys=True) + "\n")
        self.file.flush()

    def has(self, key):
        return key in self.known

    def find(self, key):
        found = self.known.get(key)
        self.used += found is not None
        return found

    def keep(self, key, outcome):
        self.known[key] = outcome
        self.write({"key": key, **vars(outcome)})

    def close(self, done):
        """done: nothing is left to go on with, so a later tuning may begin anew."""
        if done:
            self.write(DONE)
        self.file.close()


class Clock:
    """The time budget."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


class Bench:
    """One driver with launcher and options. `requests`: launch.Requests in use."""

    def __init__(self, command, journal, clock, requests):
        self.command, self.journal, self.clock, self.requests = command, journal, clock, requests
        # Beside the journal, as all nodes must see the rules.
        self.folder = tempfile.mkdtemp(prefix=".collmark-tune-", dir=journal.path.parent)
        self.longest = 0.0   # seconds of a launch of the default over all sizes
        self.launches = 0

    def close(self):
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        os.rmdir(self.folder)

    def file_of(self, what):
        """Path of the tuning file with this rule or text."""
        path = os.path.join(self.folder, "rules.txt")
        if isinstance(what, Rule):
            chunk = size_word(what.chunk) if what.chunk else "-"
            what = (f"{heading()}\n* * * * {what.algo} {what.mode} {what.proto} "
                    f"{what.channels} {chunk}\n")
        Path(path).write_text(what, encoding="utf-8")
        return path

    def key_of(self, what, sizes, factor, number):
        if what is None:
            name = "default"
        elif isinstance(what, Rule):
            name = what.text()
        else:
            name = "file " + hashlib.sha256(what.encode()).hexdigest()[:12]
        place = " ".join(self.command)
        return f"{place} | {name} | {sizes[0]}-{sizes[-1]} x{factor} | {number}"

    def words(self, what, sizes, factor):
        out = [*self.command, "-b", str(sizes[0]), "-e", str(sizes[-1])]
        out += ["-f", str(factor)] if len(sizes) > 1 else []
        if what is not None:
            out += ["--tuning", self.file_of(what)]
            out += ["--max-time", f"{HEAD_S + PATIENCE * self.longest:.1f}"]
        return [*out, "-J", "-"]

    def measure(self, what, sizes, factor, number):
        """
        The `number`-th launch of the default (None), a rule or a file's text over `sizes`, which
        grow by `factor`. Stopped: on a request, or when the budget's last moment has come.
        """
        key = self.key_of(what, sizes, factor, number)
        known = self.journal.find(key)
        if known is None:
            known = self.run(what, sizes, factor)
            self.journal.keep(key, known)
        if what is None:
            self.longest = max(self.longest, known.seconds)
        return known

    def run(self, what, sizes, factor):
        out, err = (os.path.join(self.folder, n) for n in ("out", "err"))
        words, begin = self.words(what, sizes, factor), time.monotonic()
        try:
            status, cut, _ = launch.run_job(words, out, err, self.requests, self.clock.end)
        except OSError as e:
            raise Refused(f"{words[0]}: {e.strerror}", EXIT_SYSTEM) from e
        if cut:
            raise Stopped(cut)
        self.launches += 1
        result = Outcome(exit_code_of(status), round(time.monotonic() - begin, 3))
        try:
            doc = read_json(out)
        except (Refused, UnicodeDecodeError):
            doc = None
        if is_result(doc):
            self.take_rows(result, doc, what, sizes)
        elif not result.failed and result.exit not in REFUSALS:
            result.exit = EXIT_SYSTEM  # an orderly end leaves a report
        if result.failed or result.exit in REFUSALS:
            result.why = first_words(err) or MEANING[result.exit]
        return result

    def take_rows(self, result, doc, what, sizes):
        result.facts = facts_of(doc, sizes) if what is None else {}
        backend = doc["machine"]["backend"]
        rows = [r for r in doc["results"] if r["group"] == 0]
        for size, row in zip(sizes, rows):
            if is_wrong(row):
                result.wrong.append(size)
            elif isinstance(what, Rule) and not what.ran_as(row, backend):
                result.others.append(size)
            elif time_of(row) is not None:
                result.times[size] = time_of(row)
        if result.wrong or result.failed:
            result.times = {}
        if result.wrong:
            result.exit = EXIT_WRONG
