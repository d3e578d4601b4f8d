"""Samples from wherever they are kept: a result file, a folder of attempts, or a baseline."""
from pathlib import Path

from .baseline_file import is_baseline, parse
from .common import ROOT, Refused, count_text
from .result import is_result, launch_of, read_json
from .sample import sample_of

BASELINES = ROOT / "results" / "baselines"


def attempts_in(folder):
    """Result files of a folder: those of `collmark run`, also several runs in sub-folders; else
    any result that lies in it."""
    found = sorted(folder.rglob("attempt-*/result.json"), key=lambda p: (p.parts[:-2], natural(p)))
    return found or [p for p in sorted(folder.glob("*.json")) if is_result(read_json(p))]


def natural(path):
    digits = "".join(c for c in path.parent.name if c.isdigit())
    return int(digits or 0)


def launches_in(folder):
    """All launches of a folder, with what its run.json files know of the machine, and how many
    attempts left no report."""
    paths = attempts_in(folder)
    if not paths:
        raise Refused(f"{folder}: no result of a launch in this folder")
    runs = {p.parent: read_json(p) for p in sorted(folder.rglob("run.json"))}
    launches = []
    for path in paths:
        run = runs.get(path.parent.parent, {})
        if path.parent.name in cut_off(run):
            continue
        launch = launch_of(path, read_json(path))
        launch.facts.update(run.get("host", {}))
        launches.append(launch)
    attempts = [a for run in runs.values() for a in run.get("attempts", []) if a["cut"] is None]
    return launches, sum(1 for a in attempts if not a["report"])


def cut_off(run):
    """Folders of attempts that did not end by themselves."""
    return {f"attempt-{a['attempt']}" for a in run.get("attempts", []) if a["cut"] is not None}


def find_baseline(name, machine, folder):
    """The file of a baseline; `machine` settles a name that several machines have."""
    if "/" in name:
        found = [p for p in [folder / f"{name}.json"] if p.is_file()]
    else:
        found = sorted(folder.glob(f"*/{name}.json"))
    own = [p for p in found if p.parent.name == machine]
    if len(found) > 1 and len(own) != 1:
        names = ", ".join(f"{p.parent.name}/{name}" for p in found)
        raise Refused(f"{name}: several machines have this baseline: {names}")
    if not found:
        raise Refused(f"{name}: no such file or folder, and no baseline of this name in {folder}")
    return (own or found)[0]


def load(name, machine=None, folder=BASELINES, force=False):
    """The sample that `name` stands for."""
    path = Path(name)
    if path.is_dir():
        launches, silent = launches_in(path)
        out = sample_of(name, launches, force)
        if silent:
            out.notes.append(f"{count_text(silent, 'launch')} left no report")
        return out
    if not path.is_file():
        path = find_baseline(name, machine, Path(folder))
    doc = read_json(path)
    if is_baseline(doc):
        return parse(path, doc)
    return sample_of(name, [launch_of(path, doc)], force)
