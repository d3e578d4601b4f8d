"""What an acceptance leaves: the summary, lists of nodes, acceptance.json."""
import json
import socket

from .common import (EXIT_BELOW, EXIT_OK, EXIT_SYSTEM, EXIT_TIMEOUT, EXIT_TRUNCATED, EXIT_WRONG,
                     MEANING, columns, count_text, one_line, seconds_text, worst,
                     write_atomically)

FORMAT = 1
FAILED = (EXIT_WRONG, EXIT_TIMEOUT, EXIT_SYSTEM, EXIT_BELOW)
MOST_NAMED = 8   # nodes on the last line
MOST_SHOWN = 40  # lines about nodes and stages; the rest is in the files


def verdict_of(code):
    if code == EXIT_OK:
        return "PASSED"
    return "FAILED" if code in FAILED else "INCOMPLETE"


def code_of(run):
    """The worst of all stages. A stage that did not run because of earlier failures adds nothing
    to them; without such there is no pass."""
    code = worst([s.code() for s in run.stages if s.codes])
    whole = all(s.codes for s in run.stages) and all(n.good() for n in run.nodes)
    return EXIT_TRUNCATED if code == EXIT_OK and not whole else code


def lists(run):
    """name -> nodes: passed, failed, unknown."""
    return {"passed": [n for n in run.nodes if n.good()],
            "failed": [n for n in run.nodes if n.failed],
            "unknown": [n for n in run.nodes if not n.failed and n.unknown]}


# ---- the summary ----------------------------------------------------------------------------

def stage_rows(run):
    yield ("stage", "what", "nodes", "failed", "unknown", "launches", "time", "result")
    for stage in run.stages:
        failed = sum(any(at == stage.name for at, *_ in n.failed) for n in run.nodes)
        unknown = sum(not n.failed and any(at == stage.name for at, _ in n.unknown)
                      for n in run.nodes)
        code = stage.code()
        word = stage.word() + (f", exit {code}" if code else "")
        yield (stage.name, stage.what, str(len(stage.nodes)), str(failed), str(unknown),
               str(stage.launches), seconds_text(stage.seconds), word)


def finding_lines(run):
    """What is wrong, stage by stage, as far as it fits."""
    lines = [f"{s.name}: {one_line(r)}" for s in run.stages for r in s.reasons]
    more = len(lines) - MOST_SHOWN
    return lines[:MOST_SHOWN] + ([f"{more} more are in {run.place}/acceptance.json"]
                                 if more > 0 else [])


def note_lines(run, limits):
    notes = [f"{s.name}: {n}" for s in run.stages for n in s.notes]
    if not limits:
        notes.append("no absolute limit was given (--thresholds, --min-peak, --min-busbw, "
                     "--baseline): data are right and peers alike, but all may be slow alike")
    return [f"Note: {n}" for n in notes]


def last_line(run, code):
    groups = lists(run)
    parts = [f"{len(groups['passed'])} of {count_text(len(run.nodes), 'node')} passed"]
    for word in ("failed", "unknown"):
        names = [n.name for n in groups[word]]
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            parts.append(f"{word}: {', '.join(names[:MOST_NAMED])}{more}")
    meaning = f" (exit {code}, {MEANING[code]})" if code else ""
    return f"Acceptance: {verdict_of(code)}{meaning}: {'; '.join(parts)}"


def summary(run, code, limits):
    """All that goes to stdout; the last line is the verdict."""
    lines = list(columns(list(stage_rows(run)), left=(0, 1, 7)))
    lines += finding_lines(run) + note_lines(run, limits)
    lines += [f"Results: {run.place}", last_line(run, code)]
    return "\n".join(lines) + "\n"


# ---- files ----------------------------------------------------------------------------------

def reason_line(node):
    return f"{node.name}\t{node.reason()}, collmark acceptance\n"


def write_lists(run):
    place = run.place / "hosts"
    place.mkdir(exist_ok=True)
    groups = lists(run)
    for name, nodes in groups.items():
        write_atomically(place / name, "".join(f"{n.name}\n" for n in nodes))
    write_atomically(place / "reasons", "".join(reason_line(n) for n in groups["failed"]))


def document(run, code, argv):
    return {
        "format": FORMAT, "kind": "collmark acceptance", "args": argv, "verdict": verdict_of(code),
        "exit_code": code, "launcher": run.launcher.name, "started_on": socket.gethostname(),
        "ranks_per_node": run.ranks, "budget_s": run.deadline - run.begin,
        "stages": [stage_document(s) for s in run.stages],
        "nodes": [{"name": n.name, "host": n.host or None, "failed": bool(n.failed),
                   "unknown": bool(n.unknown and not n.failed),
                   "reason": n.reason() or None} for n in run.nodes]}


def stage_document(stage):
    return {"name": stage.name, "what": stage.what, "result": stage.word(),
            "exit_code": stage.code(), "nodes": stage.nodes, "reasons": stage.reasons,
            "notes": stage.notes, "launches": stage.launches,
            "seconds": round(stage.seconds, 3)}


def write_json(path, content):
    write_atomically(path, json.dumps(content, indent=1) + "\n")


def write_all(run, code, argv, text):
    """Lists, a document of all, one per stage, and the summary."""
    write_lists(run)
    for stage in run.stages:
        write_json(run.place / f"{stage.name}.json", stage_document(stage))
    write_json(run.place / "acceptance.json", document(run, code, argv))
    write_atomically(run.place / "summary.txt", text)
