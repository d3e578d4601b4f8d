"""The command `tune`: find out what is fastest here, and write it as rules for --tuning.

tune_rule.py    what rules there may be          tune_search.py   which are measured, in what order
tune_bench.py   launches and their journal       tune_choose.py   which rule for which size
tune_model.py   what was not measured            tune_confirm.py  default against file, once more
"""
import argparse
import os
import shlex
from datetime import datetime, timezone
from pathlib import Path

from . import launch
from .common import (EXIT_OK, EXIT_TRUNCATED, EXIT_WRONG, Refused, check_writable, columns, count,
                     count_text, duration, one_line, say, seconds_text, size, size_text,
                     split_command, write_atomically)
from .run import digest_of, find_program, full_command
from .stats import LEAST_LAUNCHES
from .tune_bench import Bench, Clock, Journal, Stopped, sweep
from .tune_choose import DEFAULT, LEAST_GAIN, best_rules, proven
from .tune_confirm import confirm, lines_of, rows_of
from .tune_rule import forms, heading, listing
from .tune_search import GRID, Search, run_phases

# The sizes, the rules and the report are the tuning's own; the others would mix what a rule
# cannot tell apart.
OWN = ("-b", "-e", "-i", "-f", "-J", "-N", "--minbytes", "--maxbytes", "--stepbytes",
       "--stepfactor", "--run_cycles", "--algo", "--mode", "--proto", "--channels", "--chunk",
       "--tuning", "--output_file", "--csv", "--plan", "--topo", "--max-time", "--find-bad",
       "--split")
WIDTH = 96
# What a journal is of, beside the words of the command.
SETTINGS = ("launcher", "minbytes", "maxbytes", "launches")


# ---- what is to be run ----------------------------------------------------------------------

def is_own(word):
    name = word.split("=")[0]
    return name in OWN or (word[:2] in OWN and not word.startswith("--"))


def commands_of(launcher, words):
    """[(command, program)] for each driver; the words before the first option name them."""
    if not words:
        raise Refused("what shall be tuned? collmark tune [options] -- DRIVER... [its options]")
    end = next((i for i, w in enumerate(words) if w.startswith("-")), len(words))
    drivers, rest = words[:end], words[end:]
    if not drivers:
        raise Refused(f"{words[0]}: a driver comes first")
    taken = [w for w in rest if is_own(w)]
    if taken:
        raise Refused(f"{taken[0]}: the tuning chooses that itself; -b and -e are options of "
                      f"collmark tune")
    return [(full_command(launcher, [d, *rest]), find_program(d)) for d in drivers]


# ---- what is said ---------------------------------------------------------------------------

def wrapped(text):
    """Comment lines."""
    out, line = [], "#"
    for word in one_line(text).split(" "):
        if len(line) + len(word) >= WIDTH and line != "#":
            out.append(line)
            line = "#  "
        line += " " + word
    return [*out, line]


def place_text(search):
    f = search.facts
    return (f"{f['ranks']} ranks on {count_text(f['nodes'], 'node')}, {f['device']}, "
            f"{f['backend']}, wire {f['wire']}, kernels {f['kernels']}"
            + (", more ranks than CPUs" if f["oversubscribed"] else ""))


def figures_table(search):
    """Medians per size: the default, and the fastest rule."""
    rows = [("bytes", "default us", "by", "best us", "by", "gain", "launches", "")]
    for s in search.figures.sizes():
        usual, best = search.figures.middle(DEFAULT, s), best_rules(search.figures, s, 1)
        did = search.did.get(s)
        cells = [str(s), f"{usual:.2f}" if usual else "-", did.text() if did else "-"]
        if best and usual:
            rule = best[0]
            cells += [f"{search.figures.middle(rule, s):.2f}", rule.text(),
                      f"{search.figures.gain(rule, s):.2f}", str(search.figures.count(rule, s)),
                      "" if proven(search.figures, rule, s) else "within the spread"]
        else:
            cells += ["-", "-", "-", "-", ""]
        rows.append(tuple(cells))
    return columns(rows, left=(2, 4, 7))


def tally_text(search):
    t = search.tally
    parts = [count_text(len(t.tried), "rule") + " tried"]
    for name, found in (("refused", t.refused), ("of them of no effect at some size", t.others),
                        ("failed", t.failed), ("with WRONG DATA", t.wrong)):
        if found:
            parts.append(f"{len(found)} {name}")
    out = [", ".join(parts)]
    for found, what in ((t.failed, "failed"), (t.wrong, "WRONG DATA")):
        for rule, why in sorted(found.items()):
            detail = ", ".join(map(size_text, why)) if isinstance(why, list) else why
            out.append(f"{what}: {rule.text()}: {detail}")
    return out + [f"not measured: {m}" for m in t.missed]


def is_judged(search):
    """Has anything enough launches to say that it is faster, or not?"""
    return any(search.figures.count(r, s) >= LEAST_LAUNCHES
               for r in search.figures.rules() for s in search.grid)


def nothing(search):
    return ("nothing to gain: the built-in choices stay" if is_judged(search) else
            "nothing could be judged in this time")


def section(search, rows, said):
    """The part of the file about one collective."""
    title = f"# ---- {search.scope.collective}: {place_text(search)}"
    out = ["", *wrapped(title[2:])]
    for text in tally_text(search):
        out += wrapped(text)
    out += [f"# {text}" for text in figures_table(search)]
    for text in said:
        out += wrapped(text)
    kept = lines_of(search.scope, rows)
    return [*out, heading(), *kept] if kept else [*out, f"# {nothing(search)}"]


def file_text(options, version, done):
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    head = [f"# Tuning rules of collmark {version}, {now}. Use: --tuning FILE, COLLMARK_TUNING"]
    head += wrapped(f"Made by: {options.line}")
    head += wrapped(f"A rule is here if it was better than the built-in choice beyond the spread "
                    f"of {options.launches} launches, by {LEAST_GAIN * 100:.0f} % at least, and "
                    f"again when confirmed. Times are medians in microseconds.")
    return "\n".join(head + [text for found in done for text in section(*found)]
                     ) + "\n"


def report(search, rows, said):
    """What the user sees, on stdout."""
    print(f"{search.scope.collective}: {place_text(search)}")
    for text in tally_text(search):
        print(f"  {text}")
    for text in figures_table(search):
        print(f"  {text}")
    for text in said:
        print(f"  {text}")
    kept = lines_of(search.scope, rows)
    for text in kept:
        print(f"  rule: {text}")
    if not kept:
        print(f"  {nothing(search)}")


# ---- the command ----------------------------------------------------------------------------

def dry_run(options, commands):
    grid = sweep(options.minbytes, options.maxbytes, GRID)
    print(f"sizes: {', '.join(map(size_text, grid))}; between them by 2 where the choice changes")
    for command, program in commands:
        name = os.path.basename(program).split("_perf")[0]
        found = forms(listing(program), name, one_memory=True)
        print(f"{shlex.join(command)}: {count_text(len(found), 'form')}, as far as all ranks share "
              f"memory")
        for rule in found:
            print(f"  {rule.text()}")
    print(f"then the faster half, the fastest quarter with other channels and chunks, "
          f"{options.launches} launches of the best two of each size, crossovers, and "
          f"{options.launches} launches of default and file in turns; at most "
          f"{seconds_text(options.budget)}")
    return EXIT_OK


def tune_one(command, program, options, clock, journal):
    """((search, rows, what the confirming pass says), exit code) of one driver."""
    with launch.Requests() as requests:
        bench = Bench(command, journal, clock, requests)
        try:
            search = Search(bench, listing(program), (options.minbytes, options.maxbytes),
                            options.launches)
            run_phases(search)
            rows = rows_of(search)
            said = confirm(search, rows)
        finally:
            bench.close()
    code = EXIT_OK if is_judged(search) or rows else EXIT_TRUNCATED
    return (search, rows, said), EXIT_WRONG if search.tally.wrong else code


def tune_all(options, commands, journal):
    """Each driver has an equal part of the time that is left."""
    whole, done, codes = Clock(options.budget), [], []
    for i, (command, program) in enumerate(commands):
        try:
            found, code = tune_one(command, program, options,
                                   Clock(whole.left() / (len(commands) - i)), journal)
        except Stopped as e:
            if str(e) == "signal":
                raise
            say(f"{os.path.basename(program)}: the budget does not hold a first launch")
            codes.append(EXIT_TRUNCATED)
            continue
        codes.append(code)
        report(*found)
        done.append(found)
    return done, codes


def parser():
    out = argparse.ArgumentParser(
        prog="collmark tune", usage="collmark tune [options] -- DRIVER... [their options]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measure algorithm x mode x protocol x channels x chunk of collectives on this "
                    "machine,\nand write what is better than the built-in choices as rules for "
                    "--tuning FILE.",
        epilog="The built-in choice stays unless each of its launches is slower than each of the "
               "rule, the medians\nare apart by a multiple of the noise (as in collmark compare) "
               "and by 3 %, and the same shows\nagain when default and file are launched in turns "
               "at the end. What the time does not suffice for\nis named, and a cost model "
               "fitted to the rest speaks for it. Rules are about this number of ranks and\n"
               "nodes; files of several may be joined by cat.\n\n"
               "Exit code: 0 the file is written, or there is nothing to gain; 1 a rule gave wrong "
               "data (it is not in\nthe file); 2 usage; 6 interrupted, or the budget ended before "
               "anything could be judged; else that of\nthe driver.\n\n"
               "  collmark tune --budget 10m --out here.txt -- all_reduce_perf all_gather_perf -g 4"
               "\n  collmark tune --launcher 'mpirun -np 2' --out here.txt -- all_reduce_perf")
    out.add_argument("-b", "--minbytes", type=size, default=8, metavar="SIZE", help="default: 8")
    out.add_argument("-e", "--maxbytes", type=size, default=16 << 20, metavar="SIZE",
                     help="default: 16M")
    out.add_argument("--budget", type=duration, default=300.0, metavar="T",
                     help="time for all drivers together (90s, 10m); default: 5m")
    out.add_argument("--launches", type=count, default=5, metavar="N",
                     help="how many a decision rests on, at least 3; default: 5")
    out.add_argument("--launcher", metavar="'CMD'", help="such as 'mpirun -np 2', 'srun -n 8'")
    out.add_argument("--out", type=Path, metavar="FILE",
                     help="the rules; FILE.journal keeps the launches; default: tuning.txt")
    out.add_argument("--resume", type=Path, metavar="FILE",
                     help="go on: launches that FILE.journal has are not repeated; refused if "
                          "command, program or settings are others")
    out.add_argument("--dry-run", action="store_true", help="say what would be measured")
    return out


def read_options(argv):
    own, words = split_command(argv)
    options = parser().parse_args(own)
    if options.resume and options.out:
        raise Refused("--resume and --out: both name the file")
    if options.minbytes < 1 or options.minbytes > options.maxbytes:
        raise Refused(f"-b {options.minbytes}: 1 at least, and not above -e {options.maxbytes}")
    if options.launches < LEAST_LAUNCHES:
        raise Refused(f"--launches {options.launches}: fewer than {LEAST_LAUNCHES} decide nothing")
    options.path = options.resume or options.out or Path("tuning.txt")
    options.line = shlex.join(["collmark", "tune", *argv])
    return options, words


def recall(options):
    """What --resume without a command goes on with."""
    settings = Journal.settings(journal_of(options))
    if options.launcher:
        raise Refused("--launcher: --resume without a command goes on with the former one")
    for name in SETTINGS:
        setattr(options, name, settings[name])
    return settings["words"]


def journal_of(options):
    return Path(f"{options.path}.journal")


def run(options, words, commands):
    """Measure, and write the file; the exit code."""
    settings = {"words": words, **{name: getattr(options, name) for name in SETTINGS}}
    digest = digest_of([w for c, _ in commands for w in c] + [str(v) for v in settings.values()])
    journal = Journal(journal_of(options), settings, digest, options.resume is not None)
    code, over = EXIT_TRUNCATED, False
    try:
        done, codes = tune_all(options, commands, journal)
        over = EXIT_TRUNCATED not in codes
        code = next((c for c in (EXIT_WRONG, EXIT_TRUNCATED) if c in codes), EXIT_OK)
        if set(codes) != {EXIT_TRUNCATED}:
            write_atomically(options.path, file_text(options, done[0][0].facts["version"], done))
            print(f"{options.path}: written; use --tuning {options.path}")
    except Refused:
        over = True  # going on would end the same way
        raise
    except Stopped:
        say("interrupted")
    finally:
        journal.close(over)
    if not over:
        say(f"to go on: collmark tune --resume {options.path}")
    return code


def main(argv):
    options, words = read_options(argv)
    if words is None and options.resume:
        words = recall(options)
    commands = commands_of(options.launcher, words)
    if options.dry_run:
        return dry_run(options, commands)
    check_writable(options.path, "--resume" if options.resume else "--out")
    return run(options, words, commands)
