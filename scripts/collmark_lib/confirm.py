"""Run rows that seem slower once more: what was chance does not come back.

The rows are judged against OLD by the new launches alone, which nobody has selected. A row that
is not slower again is no regression. One that could not be run again stays what it was.
"""
import shlex
from pathlib import Path

from . import placement, verdict
from .common import EXIT_OK, MEANING, Refused, count_text, say
from .result import is_result, read_json
from .run import Folder, full_command, run_all
from .sources import launches_in
from .sample import merge_rows


def sweep_of(path):
    """Sizes that the run at `path` was asked for: first, last, and the next after a size."""
    config = read_json(path)["config"]
    factor, step = config["stepfactor"], config["stepbytes"]

    def after(size):
        return size * factor if factor > 1 else size + step

    return config["minbytes"], config["maxbytes"], after


def narrowed(sizes, sweep):
    """-b and -e that hold all `sizes`. Drivers round sizes down to what their ranks can share, so
    the size asked for is the first that is not below the row's."""
    first, last, after = sweep

    def asked(size):
        now = first
        while now < size and now < after(now) <= last:
            now = after(now)
        return now

    return asked(min(sizes)), asked(max(sizes))


def first_report(path):
    """A result of the sample at `path`, for its options."""
    if path.is_file():
        return path
    return next(iter(sorted(path.rglob("attempt-*/result.json"))), None)


def known_command(path):
    """How NEW was made: run.json knows, and for a single process the report does."""
    run = path / "run.json"
    if run.is_file():
        return read_json(run)["command"]
    doc = read_json(path) if path.is_file() else None
    if is_result(doc) and len({d["process"] for d in doc["devices"]}) == 1:
        return drop_outputs(doc["args"])
    raise Refused(f"--confirm: {path} does not tell how it was started; append '-- COMMAND'")


def drop_outputs(args):
    """Without -J and --csv, in all their spellings."""
    out, skip = [], False
    for word in args:
        if skip:
            skip = False
        elif word in ("-J", "--output_file", "--csv"):
            skip = True
        elif not (word.startswith(("-J", "--output_file=", "--csv="))):
            out.append(word)
    return out


def plan(options):
    """The command to repeat, found before any verdict so that a mistake shows at once."""
    path = Path(options.new)
    if options.command is not None:
        return full_command(None, options.command)
    if not path.exists():
        raise Refused(f"--confirm: {options.new} is a baseline; append '-- COMMAND'")
    command = known_command(path)
    # Its words are a launcher and a program, as they were started.
    return command if path.is_dir() else full_command(None, command)


def place(options):
    """Where the attempts are kept: beside NEW, under a name that was not there yet."""
    if options.confirm_dir:
        return Path(options.confirm_dir)
    base = Path(str(options.new).rstrip("/"))
    base = base.with_name(f"{base.stem}-confirm") if base.is_file() else Path(f"{base}-confirm")
    number, path = 1, base
    while path.exists():
        number += 1
        path = Path(f"{base}-{number}")
    return path


def rerun(command, sizes, options, tag):
    """(rows of the suspicious sizes, measured anew, by launches of the placement `tag` if there is
    one; where they are kept; what went wrong)."""
    report = first_report(Path(options.new)) if Path(options.new).exists() else None
    words = list(command)
    if report is not None and is_result(read_json(report)):
        low, high = narrowed(sizes, sweep_of(report))
        words += ["-b", str(low), "-e", str(high)]
    folder = Folder.fresh(place(options), words)
    say(f"confirming, {count_text(options.launches, 'launch')}: {shlex.join(words)}")
    code = run_all(folder, options.launches)
    trouble = None if code == EXIT_OK else f"exit {code}, {MEANING[code]}"
    rows = {}
    if any(a["report"] for a in folder.done()):
        found, _ = launches_in(folder.path)
        said = placement.left_out(tag, found) if tag is not None else None
        if said is not None:
            trouble = said if trouble is None else f"{trouble}; {said}"
            found = [x for x in found if placement.tag_of(x) == tag]
        rows = merge_rows(found)
    return rows, folder.path, trouble


def confirm(comparison, command, options, limits, tag):
    """Judge the slower rows again; those that are not slower again become the same."""
    slower = comparison.having(verdict.REGRESSED)
    if not slower:
        return
    new, path, trouble = rerun(command, [r.key.bytes for r in slower], options, tag)
    again = {r.key: r for r in verdict.compare(
        {r.key: r.old for r in slower},
        {r.key: new[r.key] for r in slower if r.key in new}, limits).rows}
    gone = 0
    for row in slower:
        second = again[row.key]
        if second.verdict in (verdict.SAME, verdict.IMPROVED):
            gone += 1
            row.verdict = verdict.SAME
            row.why = f"not slower when run again ({row.figure(second.new)})"
        elif second.verdict == verdict.REGRESSED:
            row.why = f"slower again ({row.figure(second.new)})"
        else:
            row.why = f"could not be run again: {second.why}"
    comparison.method.append(
        f"{count_text(len(slower), 'slower row')} run again in "
        f"{count_text(options.launches, 'launch')}, {gone} not slower again; kept in {path}"
        + (f" ({trouble})" if trouble else ""))
