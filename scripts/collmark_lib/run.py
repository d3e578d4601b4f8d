"""The command `run`: the same job several times from scratch, with every attempt kept.

DIR/run.json        what was run, where, and how each attempt ended
DIR/attempt-N/      result.json (the driver's -J), stderr.txt; stdout.txt if it was no report
"""
import argparse
import hashlib
import json
import math
import os
import platform
import re
import shlex
import shutil
import time
from datetime import datetime, timezone
from pathlib import Path

from . import launch
from .common import (EXIT_OK, EXIT_SYSTEM, EXIT_TRUNCATED, EXIT_UNSUPPORTED, EXIT_USAGE, MEANING,
                     ROOT, Refused, columns, count, count_text, duration, exit_code_of, percent,
                     say, seconds_text, slug, split_command, worst, write_atomically)
from .placement import UNKNOWN, grouped
from .result import ORDERLY, is_result, read_json
from .sources import launches_in
from .sample import merge_rows
from .stats import median

FORMAT = 1
SETTINGS = re.compile(r"(COLLMARK|NCCL|UCX|OMPI_MCA)_.*|CUDA_VISIBLE_DEVICES")
NO_SENSE_IN_REPEATING = (EXIT_USAGE, EXIT_UNSUPPORTED)


# ---- what is to be run ----------------------------------------------------------------------

def find_program(name):
    """The driver: a path, a program of this clone's build, or one on PATH."""
    if "/" not in name:
        built = ROOT / os.environ.get("BUILDDIR", "build") / name
        name = str(built) if built.is_file() else shutil.which(name) or name
    if "/" not in name or not os.access(name, os.X_OK) or os.path.isdir(name):
        raise Refused(f"{name}: no such program here, in {ROOT / 'build'} or on PATH; 'make' "
                      f"builds the drivers")
    return os.path.abspath(name)


def full_command(launcher, command):
    """Launcher and driver as they will be started. Refused: they choose where the report goes."""
    if not command:
        raise Refused("what shall run? collmark run [options] -- DRIVER [its options]")
    taken = [a for a in command if re.match(r"-J|--output_file\b|--csv[= ]-$", a)]
    if taken:
        raise Refused(f"{taken[0]}: collmark takes the report itself and keeps it with the attempt")
    try:
        words = shlex.split(launcher or "")
    except ValueError as e:
        raise Refused(f"--launcher {launcher!r}: {e}") from e
    if words and shutil.which(words[0]) is None:
        raise Refused(f"--launcher {words[0]}: no such program")
    return [*words, find_program(command[0]), *command[1:]]


def digest_of(command):
    """Stands for what makes attempts comparable: words, programs and settings."""
    state = hashlib.sha256(json.dumps(command).encode())
    for name in sorted(n for n in os.environ if SETTINGS.fullmatch(n)
                       and n != "COLLMARK_JOB"):
        state.update(f"\0{name}={os.environ[name]}".encode("utf-8", "surrogateescape"))
    for word in command:
        if os.path.isfile(word) and os.access(word, os.X_OK):
            state.update(Path(word).read_bytes())
    return state.hexdigest()[:16]


def host_facts():
    """What a driver does not know of the machine that starts the launches."""
    facts = {"host kernel": platform.release()}
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor.is_file():
        facts["host governor"] = governor.read_text(encoding="ascii", errors="replace").strip()
    return facts


# ---- the folder -----------------------------------------------------------------------------

class Folder:
    """DIR with its run.json, which is written anew after each attempt."""

    def __init__(self, path, record):
        self.path, self.record = path, record

    @classmethod
    def fresh(cls, path, command):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise Refused(f"--out {path}: not empty; --resume goes on in a folder")
        path.mkdir(parents=True, exist_ok=True)
        out = cls(path, {"format": FORMAT, "command": command, "digest": digest_of(command),
                         "host": host_facts(), "attempts": []})
        out.save()
        return out

    @classmethod
    def resumed(cls, path, command):
        """`command` None: the same as before. Refused: it is another one, or the program is."""
        if not (path / "run.json").is_file():
            raise Refused(f"--resume {path}: there is no run.json, so nothing to go on with")
        record = read_json(path / "run.json")
        if record.get("format") != FORMAT:
            raise Refused(f"--resume {path}: run.json of format {record.get('format')}, "
                          f"this program has {FORMAT}")
        now = command or record["command"]
        if digest_of(now) != record["digest"]:
            other = "the command is another one" if now != record["command"] else (
                "the program or a variable such as NCCL_* or COLLMARK_* has changed")
            raise Refused(f"--resume {path}: {other}; before: {shlex.join(record['command'])}")
        return cls(path, record)

    def save(self):
        write_atomically(self.path / "run.json", json.dumps(self.record, indent=1) + "\n")

    def done(self):
        """Attempts that ended by themselves. Those cut off are kept, but do not count."""
        return [a for a in self.record["attempts"] if a["cut"] is None]


def keep_output(folder, out):
    """A report becomes result.json; whether it was one."""
    try:
        report = is_result(read_json(out))
    except (Refused, UnicodeDecodeError):
        report = False
    if report:
        os.replace(out, folder / "result.json")
    elif out.stat().st_size == 0:
        out.unlink()
    return report


def attempt(folder, requests, deadline):
    """Run once and record it."""
    number = len(folder.record["attempts"]) + 1
    place = folder.path / f"attempt-{number}"
    place.mkdir(exist_ok=True)  # there already if an earlier run was killed in the middle
    started, begin = datetime.now(timezone.utc), time.monotonic()
    out = place / "stdout.txt"
    try:
        status, cut, left = launch.run_job([*folder.record["command"], "-J", "-"], out,
                                           place / "stderr.txt", requests, deadline)
    except OSError as e:
        raise Refused(f"{folder.record['command'][0]}: {e.strerror}", EXIT_SYSTEM) from e
    report = keep_output(place, out)
    code = exit_code_of(status)
    if code in ORDERLY and not report:
        code = EXIT_SYSTEM  # a driver that ends so reports; launchers use 1 for their own failures
    entry = {"attempt": number, "exit": code, "status": status, "cut": cut, "report": report,
             "left_over": left, "seconds": round(time.monotonic() - begin, 3),
             "started": started.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
    folder.record["attempts"].append(entry)
    folder.save()
    return entry


# ---- what is said ---------------------------------------------------------------------------

def entry_text(entry):
    text = MEANING[entry["exit"]]
    if entry["cut"]:
        text = {"signal": "interrupted", "budget": "cut off by the time budget"}[entry["cut"]]
    elif entry["status"] == 0 and not entry["report"]:
        text = "no report on stdout (does the launcher write there too?)"
    elif entry["status"] < 0 or entry["status"] != entry["exit"]:
        text += f" (status {entry['status']})"
    if entry["left_over"]:
        text += f"; {count_text(entry['left_over'], 'process')} of it had to be killed"
    return text


def progress(folder, entry, launches):
    left = launches - len(folder.done())
    mean = sum(a["seconds"] for a in folder.record["attempts"]) / len(folder.record["attempts"])
    rest = f"; {left} to go, about {seconds_text(left * mean)}" if left > 0 else ""
    say(f"attempt {entry['attempt']}, launch {len(folder.done())}/{launches}: "
        f"{entry_text(entry)}, {seconds_text(entry['seconds'])}{rest}")


def flaky_reason(row, limit):
    """Why launches disagree about a row, or None."""
    if row.wrong:
        return f"wrong data in {row.wrong} of {len(row.times) + row.wrong + row.without} launches"
    if row.without:
        return f"no figure in {row.without} of {len(row.times) + row.without} launches"
    spread = (max(row.times) - min(row.times)) / median(row.times)
    return f"spread {spread * 100:.0f} % of the median" if spread > limit else None


def figures(row):
    """Cells: least, median and most time, bandwidth."""
    if not row.times:
        return "-", "-", "-", "-"
    middle = median(row.times)
    bandwidth = row.bandwidth(middle)
    return (f"{min(row.times):.2f}", f"{middle:.2f}", f"{max(row.times):.2f}",
            f"{bandwidth:.3f}" if bandwidth else "-")


def summary(folder, limit):
    """Medians and flaky rows of all attempts that left a report, to stdout."""
    if not any(a["report"] for a in folder.record["attempts"]):
        return
    groups = grouped(launches_in(folder.path)[0])
    lines = [("row", "min us", "median us", "max us", "busbw GB/s", "launches", "")]
    flaky = 0
    for tag, launches in groups.items():
        for key, row in sorted(merge_rows(launches).items()):
            reason = flaky_reason(row, limit)
            flaky += reason is not None
            name = key.text() + (f" [{tag}]" if len(groups) > 1 else "")
            lines.append((name, *figures(row), str(len(row.times)),
                          f"flaky: {reason}" if reason else ""))
    print("\n".join(columns(lines, left=(0, 6))))
    if set(groups) != {UNKNOWN}:
        print("placement (how far apart cores were; rows of one alone compare): "
              + ", ".join(f"{tag} in {count_text(len(x), 'launch')}" for tag, x in groups.items()))
    print(f"{count_text(len(lines) - 1, 'row')}, {flaky} flaky (spread above {limit * 100:g} %, "
          f"wrong data or no figure in a launch)")


def last_word(folder, code, launches):
    done = len(folder.done())
    print(f"{folder.path}: {done} of {count_text(launches, 'launch')} ended by themselves, "
          f"exit {code} ({MEANING[code]})")
    if done < launches and code not in NO_SENSE_IN_REPEATING:
        say(f"to go on: collmark run --launches {launches} --resume {folder.path}")


# ---- the command ----------------------------------------------------------------------------

def all_attempts(folder, launches, budget, requests):
    """Until there are enough, or there is a reason to stop. The exit codes of this and earlier
    calls, and that of a stop."""
    begin, longest, stop = time.monotonic(), 0.0, []
    while len(folder.done()) < launches and not requests.seen and not stop:
        if time.monotonic() - begin + longest > budget:
            say(f"the time budget of {seconds_text(budget)} does not hold another launch")
            stop = [EXIT_TRUNCATED]
            break
        entry = attempt(folder, requests, begin + budget)
        progress(folder, entry, launches)
        longest = max(longest, entry["seconds"])
        if entry["cut"]:
            stop = [EXIT_TRUNCATED]
        elif entry["exit"] in NO_SENSE_IN_REPEATING:
            say("another launch would end the same way; the reason is in "
                f"{folder.path / ('attempt-%d' % entry['attempt']) / 'stderr.txt'}")
            stop = [entry["exit"]]
    if requests.seen:
        stop.append(EXIT_TRUNCATED)
    return [a["exit"] for a in folder.done()] + stop


def run_all(folder, launches, budget=math.inf):
    """All launches of a folder; the exit code that stands for them."""
    with launch.Requests() as requests:
        return worst(all_attempts(folder, launches, budget, requests))


def parser():
    out = argparse.ArgumentParser(
        prog="collmark run", usage="collmark run [options] -- DRIVER [its options]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Start the same job several times from scratch and keep every attempt.",
        epilog="Exit code: the worst of all attempts, in this order: 1 wrong data, 4 a deadline "
               "passed,\n3 the system refused or the launch failed (also any code that no driver "
               "has),\n2 usage, 77 not supported, 6 ended early (a signal, the time budget), "
               "5 below a threshold, 0.\nAfter 2 or 77 no further attempt is made.\n\n"
               "  collmark run --launches 5 --out today -- all_reduce_perf -g 4 -b 8 -e 64M -f 2\n"
               "  collmark run --launcher 'mpirun -np 2' -- all_reduce_perf -b 8 -e 64M -f 2")
    out.add_argument("--launches", type=count, default=5, metavar="N", help="default: 5")
    out.add_argument("--time-budget", type=duration, default=math.inf, metavar="T",
                     help="begin no launch that would end later, and end one that does "
                          "(90s, 10m, 2h)")
    out.add_argument("--launcher", metavar="'CMD'", help="such as 'mpirun -np 2', 'srun -n 8'")
    out.add_argument("--out", type=Path, metavar="DIR",
                     help="folder of the attempts; default: collmark-<driver>-<time>")
    out.add_argument("--resume", type=Path, metavar="DIR",
                     help="go on in DIR: attempts that ended by themselves count; refused if "
                          "command, program or settings are others")
    out.add_argument("--flaky", type=percent, default=0.25, metavar="P%",
                     help="name rows whose slowest and fastest launch are further apart, in per "
                          "cent of the median; default: 25%%")
    return out


def main(argv):
    own, command = split_command(argv)
    options = parser().parse_args(own)
    if options.resume and options.out:
        raise Refused("--resume and --out: both name the folder")
    if options.resume and options.launcher and command is None:
        raise Refused("--launcher: --resume without a command repeats what run.json has")
    if options.resume:
        words = full_command(options.launcher, command) if command is not None else None
        folder = Folder.resumed(options.resume, words)
    else:
        words = full_command(options.launcher, command)
        stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
        default = Path(f"collmark-{slug(os.path.basename(command[0]))}-{stamp}")
        folder = Folder.fresh(options.out or default, words)
    code = run_all(folder, options.launches, options.time_budget)
    summary(folder, options.flaky)
    last_word(folder, code, options.launches)
    return code
