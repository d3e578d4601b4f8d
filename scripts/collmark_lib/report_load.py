"""The sources of a report: what each argument stands for.

  - a file: a driver's document, a table of peers or a baseline;
  - a folder that `collmark run` made, or one with several of those: each is one source, its
    attempts are samples of one thing;
  - any other folder: all results that lie in it;
  - for --baseline also the name of a baseline, as `collmark baseline` knows it.
"""
from __future__ import annotations

import os
import re
from pathlib import Path

from .baseline_file import is_baseline
from .common import Refused, say
from .report_driver import driver_source
from .report_model import Attempt, member, objects, text, whole
from .report_peers import baseline_source, table_source
from .result import read_json
from .sources import BASELINES, find_baseline, natural

CUT = {"signal": "interrupted", "budget": "cut off by the time budget"}


def reader_of(document):
    """What reads this kind of document, or None."""
    if not isinstance(document, dict):
        return None
    if is_baseline(document):
        return baseline_source
    if isinstance(document.get("results"), list) or "pairs" in document:
        return driver_source
    return table_source if isinstance(document.get("rows"), list) else None


def load_file(path, *attempt):
    """A Source without a label. Refused names the file."""
    if path.is_file() and path.stat().st_size == 0:
        raise Refused(f"{path}: is empty")
    document = read_json(path)
    reader = reader_of(document)
    if reader is None:
        raise Refused(f"{path}: not a result, a baseline or a table of peers")
    try:
        return reader(path, document, *attempt)
    except Refused as problem:
        raise Refused(f"{path}: {problem}") from None


# ---- runs ------------------------------------------------------------------------------------

def recorded_endings(folder):
    """attempt-N -> how it ended, as run.json has it; a folder without one knows nothing."""
    if not (folder / "run.json").is_file():
        return {}, {}
    record = read_json(folder / "run.json")
    record = record if isinstance(record, dict) else {}
    endings = {}
    for entry in objects(record.get("attempts")):
        name = f"attempt-{text(entry.get('attempt'))}"
        cut = text(entry.get("cut"))
        failed = "" if entry.get("report") is True else "left no result"
        endings[name] = Attempt(name, whole(entry.get("exit")), failed, CUT.get(cut, cut))
    return endings, member(record, "host")


def add_attempt(merged, source):
    """A further attempt into the first one."""
    if merged is None:
        return source
    merged.rows += source.rows
    merged.pairs += source.pairs
    merged.devices = merged.devices or source.devices
    merged.times = (merged.times[0], source.times[1] or merged.times[1])
    merged.oversubscribed |= source.oversubscribed
    for name, value in source.facts.items():
        if value != merged.facts.setdefault(name, value) and "varies" not in merged.facts[name]:
            merged.facts[name] += " (varies over the attempts)"
    return merged


def load_run(folder):
    """All attempts of a run as one source. Refused: none of them left a result."""
    endings, host = recorded_endings(folder)
    merged, averages = None, []
    places = sorted((p for p in folder.glob("attempt-*") if p.is_dir()),
                    key=lambda p: natural(p / "result.json"))
    for place in places:
        ending = endings.setdefault(place.name, Attempt(place.name, None))
        try:
            source = load_file(place / "result.json", place.name)
        except Refused as problem:
            ending.failed = ending.failed or str(problem)
            continue
        own = source.attempts[0]
        ending.exit_code = own.exit_code if ending.exit_code is None else ending.exit_code
        ending.failed, ending.truncated = own.failed, ending.truncated or own.truncated
        averages.append(source.average)
        merged = add_attempt(merged, source)
    if merged is None:
        raise Refused(f"{folder}: none of its {len(places)} attempts left a result")
    merged.path, merged.average = str(folder), averages[0] if len(averages) == 1 else None
    merged.attempts = list(endings.values())
    merged.facts.update({k: text(v) for k, v in host.items()})
    return merged


def load_folder(folder):
    """Runs below it, else the results in it. What is neither is named on stderr."""
    runs = sorted({p.parent for p in folder.rglob("attempt-*") if p.is_dir()})
    if runs:
        return [load_run(run) for run in runs]
    files = sorted(folder.glob("*.json"))
    known = [p for p in files if reader_of(read_json(p))]
    if not known:
        raise Refused(f"{folder}: no result in this folder")
    if len(known) < len(files):
        other = ", ".join(p.name for p in files if p not in known)
        say(f"report: {folder}: no results, left out: {other}")
    return [load_file(p) for p in known]


def load_path(path):
    return load_folder(path) if path.is_dir() else [load_file(path)]


def load_baseline(name):
    """A path, or the name of a kept baseline."""
    return load_path(Path(name) if Path(name).exists() else find_baseline(name, None, BASELINES))


# ---- all of them -----------------------------------------------------------------------------

def readable(name):
    """A name from the command line as UTF-8, whatever the locale took it for."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def name_sources(sources):
    """Labels: file names without their suffix, with as many folders as tell them apart."""
    paths = [Path(re.sub(r"\.json$", "", readable(s.path))) for s in sources]
    for source, path in zip(sources, paths):
        others = {p.parts for p in paths if p != path}
        depth = 1
        while any(parts[-depth:] == path.parts[-depth:] for parts in others):
            depth += 1
        source.label = str(Path(*path.parts[-depth:]))
    for at, source in enumerate(sources):
        if any(s.label == source.label for s in sources[:at]):
            source.label += f" ({at + 1})"


def load(paths, baselines):
    """All sources, baselines last. Refused for the first that cannot be read."""
    sources = [s for path in paths for s in load_path(Path(path))]
    for name in baselines:
        for source in load_baseline(name):
            source.baseline = True
            sources.append(source)
    name_sources(sources)
    for position, row in enumerate(r for s in sources for r in s.rows):
        row.number = position
    return sources
