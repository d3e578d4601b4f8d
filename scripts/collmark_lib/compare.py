"""The command `compare`: is NEW as fast as OLD?"""
import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from . import confirm, placement, render, render_xml, verdict
from .common import (Refused, check_writable, count, percent, say, size, split_command,
                     write_atomically)
from .environment import differences, machine_name
from .sources import BASELINES, load


@dataclass
class Report:
    """All that is said about two samples, in whatever form."""

    old: object
    new: object
    soft: list       # differences of the environment, as text
    forced: list     # hard differences that --force went past
    comparison: verdict.Comparison


def load_both(options):
    """OLD and NEW. Each may be a baseline that several machines have: the other side's counts."""
    named = [options.old, options.new]
    here = [Path(n).exists() for n in named]
    samples = [None, None]
    for i in sorted((0, 1), key=lambda i: not here[i]):
        other = samples[1 - i]
        machine = machine_name(other.facts) if other else None
        samples[i] = load(named[i], machine, options.dir, options.force)
    return samples


def without(rows, fields):
    """Keys that leave out `fields`, so that --force can pair rows that differ in them."""
    out = {}
    for key, row in rows.items():
        out[key._replace(**fields)] = row
    return out


def forced_fields(old, new):
    """Fields in which all keys of one side have a value that none of the other has."""
    out = {}
    for name in ("ranks", "nodes", "algorithm", "wire", "engine", "cache"):
        a, b = ({getattr(k, name) for k in rows} for rows in (old, new))
        if len(a) == len(b) == 1 and a != b:
            out[name] = next(iter(b))
    return out


def check_environment(old, new, refusal, force):
    """Hard and soft differences. Refused: there are hard ones, `refusal` among them, and no
    `force`."""
    hard, soft = differences(old.facts, new.facts)
    if refusal is not None:
        hard.append(refusal)
        soft = [s for s in soft if not s.startswith("placement: ")]
    if hard and not force:
        raise Refused(f"{old.name} and {new.name} cannot be compared (--force does it all the "
                      f"same): {'; '.join(hard)}")
    return hard, soft


def check_options(options):
    """Everything that can be refused before there is a verdict."""
    for path, name in ((options.markdown, "--markdown"), (options.junit, "--junit")):
        if path is not None:
            check_writable(path, name)
    if options.command is not None and not options.confirm:
        raise Refused("a command after '--' is for --confirm")
    return confirm.plan(options) if options.confirm else None


def build(options, command):
    """The whole report. Its comparison has been confirmed, if asked for."""
    old, new, tag, refusal = placement.matched(*load_both(options))
    forced, soft = check_environment(old, new, refusal, options.force)
    limits = verdict.Limits(options.max_loss, options.max_latency_loss, options.latency_up_to,
                            options.false_alarms)
    old_rows, new_rows = old.rows, new.rows
    if forced:
        fields = forced_fields(old_rows, new_rows)
        old_rows, new_rows = without(old_rows, fields), without(new_rows, fields)
    comparison = verdict.compare(old_rows, new_rows, limits)
    if command is not None:
        options.launches = options.launches or max(new.launches, 3)
        confirm.confirm(comparison, command, options, limits, tag)
    return Report(old, new, soft, forced, comparison)


def write(report, options):
    """All forms that were asked for; text to stdout first."""
    print(render.text(report))
    if options.markdown is not None:
        write_atomically(options.markdown, render.markdown(report))
    if options.junit is not None:
        write_atomically(options.junit, render_xml.junit(report))
    if options.github:
        print("\n".join(render.annotations(report)))
        path = os.environ.get("GITHUB_STEP_SUMMARY")
        if path:
            with open(path, "a", encoding="utf-8") as f:  # GitHub's own file: steps append to it
                f.write(render.markdown(report))
        else:
            say("--github: GITHUB_STEP_SUMMARY is not set, so there is no step summary")


def add_judging(out):
    group = out.add_argument_group("what counts")
    group.add_argument("--max-loss", type=percent, default=0.05, metavar="P%",
                       help="loss of bandwidth that is let pass; default: 5%%")
    group.add_argument("--max-latency-loss", type=percent, default=0.15, metavar="P%",
                       help="more time that is let pass in latency rows; default: 15%%")
    group.add_argument("--latency-up-to", type=size, default=1 << 16, metavar="SIZE",
                       help="rows up to this size, and rows without a bandwidth, are judged by "
                            "time; default: 64K")
    group.add_argument("--false-alarms", type=percent, default=0.05, metavar="P%",
                       help="comparisons of equals that may be called a regression; default: 5%%")
    group.add_argument("--force", action="store_true",
                       help="compare even what was not measured alike")
    group.add_argument("--dir", default=BASELINES, help="baselines; default: results/baselines")


def add_confirming(out):
    group = out.add_argument_group("run slower rows again")
    group.add_argument("--confirm", action="store_true",
                       help="as NEW was made, or by the command after '--', with -b and -e "
                            "around these rows; those that are not slower again are dropped")
    group.add_argument("--launches", type=count, metavar="N",
                       help="for that; default: as many as NEW has, at least 3")
    group.add_argument("--confirm-dir", metavar="DIR", help="keep them there; default: beside NEW")


def parser():
    out = argparse.ArgumentParser(
        prog="collmark compare", usage="collmark compare OLD NEW [options] [-- COMMAND]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Is NEW as fast as OLD? Each is a folder of 'collmark run', a result file, or "
                    "a baseline's name.",
        epilog="Verdicts: same, improved, regressed; missing (not in NEW), new (not in OLD);\n"
               "unusable (wrong data in a launch, or figures of fewer than 3 launches).\n\n"
               "Exit code: 0 no row is slower; 5 rows are regressed, missing or unusable, and "
               "named;\n2 nothing can be compared: other hardware, other meaning of the options, a "
               "newer\nschema, or no row with figures on both sides.\n\n"
               "Only launches whose cores were equally far apart are compared (placement in the "
               "report:\nnear, far, mixed); a note names what is left out. If both sides share "
               "none: 2.\n\n"
               "With SciPy (python3-scipy) the rank-sum test decides, without it a plain rule. "
               "The\noutput says which. 5 launches on each side are enough for most rows; one that "
               "has two\nspeeds takes 7.\n\n"
               "  collmark compare amd-epyc-2r-1n/all_reduce today --junit compare.xml\n"
               "  collmark compare before after --confirm -- mpirun -np 2 all_reduce_perf -g 2")
    out.add_argument("old", metavar="OLD")
    out.add_argument("new", metavar="NEW")
    add_judging(out)
    add_confirming(out)
    group = out.add_argument_group("reports beside the text")
    group.add_argument("--markdown", type=Path, metavar="FILE")
    group.add_argument("--junit", type=Path, metavar="FILE", help="a test case per row")
    group.add_argument("--github", action="store_true",
                       help="annotations on stdout, and the step summary")
    return out


def main(argv):
    own, command = split_command(argv)
    options = parser().parse_args(own)
    options.command = command
    report = build(options, check_options(options))
    write(report, options)
    return report.comparison.exit_code()
