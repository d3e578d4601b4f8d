"""The command `acceptance`: is this machine, or cluster, fit for use? Stages from small to large,
one verdict.

DIR/acceptance.json, summary.txt    the verdict
DIR/hosts/                          passed, failed, unknown: names; reasons: name, tab, why
DIR/STAGE.json                      what a stage found
DIR/STAGE/...                       each of its launches, as `collmark run` keeps them
DIR/report.html                     one page about it
"""
import argparse
import math
import shlex
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

from . import acceptance_hosts as hosts
from . import acceptance_text as text
from . import launch
from .acceptance_alone import nodes_stage, ranks_stage
from .acceptance_joint import all_stage, pairs_stage
from .acceptance_launch import make
from .acceptance_plan import ALL, BASELINE, MODES, NODES, PAIRS, RANKS, STAGES, Plan
from .acceptance_run import Job, Run
from .common import (EXIT_OK, EXIT_SYSTEM, EXIT_TRUNCATED, EXIT_UNSUPPORTED, EXIT_USAGE,
                     EXIT_WRONG, MEANING, ROOT, Refused, count, duration, exit_code_of, say,
                     seconds_text, size, size_text, split_command, worst)
from .sources import BASELINES

CALLS = {RANKS: ranks_stage, NODES: nodes_stage, PAIRS: pairs_stage, ALL: all_stage}
MOST_SOURCES = 24  # of the HTML page; all is in the folder


# ---- options --------------------------------------------------------------------------------

def positive(value):
    number = float(value)
    if not 0 < number < 1e9:
        raise ValueError(value)
    return number


def stage_list(value):
    chosen = value.split(",")
    if not set(chosen) <= set(STAGES) or len(set(chosen)) < len(chosen):
        raise argparse.ArgumentTypeError(f"'{value}': want some of {','.join(STAGES)}")
    return [s for s in STAGES if s in chosen]


def add_where(out):
    group = out.add_argument_group("where")
    group.add_argument("--hosts", type=Path, metavar="FILE",
                       help="nodes: NAME, NAME slots=N or NAME:N a line; a name that comes again "
                            "adds to its slots; started by mpirun. "
                            "Default: the nodes of the Slurm allocation, else this machine alone")
    group.add_argument("-g", "--ranks", type=count, metavar="N",
                       help="ranks of each node; default: slots of FILE, tasks or GPUs per node of "
                            "the allocation; alone all GPUs, else up to 8 CPUs")
    group.add_argument("--launcher", metavar="PROGRAM",
                       help="mpirun or srun, with a path or not; none: this machine alone")
    group.add_argument("--launcher-args", default="", metavar="'ARGS'",
                       help="more words for it, such as '--mca oob_tcp_if_include eth0'")
    group.add_argument("--backend", choices=("auto", "host", "cuda"), default="auto")
    group.add_argument("--parallel", type=count, default=32, metavar="N",
                       help="nodes that are tried by themselves at the same time; default: 32")


def add_how_much(out):
    group = out.add_argument_group("how much")
    mode = group.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", default="quick",
                      help="2 minutes at most, three drivers (default)")
    mode.add_argument("--full", dest="mode", action="store_const", const="full",
                      help="30 minutes at most, all drivers, three launches each")
    group.add_argument("--time-budget", type=duration, metavar="T", help="another limit: 90s, 1h")
    group.add_argument("--stages", type=stage_list, default=list(STAGES), metavar="LIST",
                       help=f"only these, of {','.join(STAGES)}")
    group.add_argument("--max-bytes", type=size, metavar="SIZE",
                       help="largest size; default: 64M, with --full 256M")
    group.add_argument("--launches", type=count, metavar="N",
                       help="of each driver with all nodes; default: 1, with --full or --baseline "
                            "3, with both 5")
    group.add_argument("--timeout", type=positive, metavar="S",
                       help="seconds that a rank may wait; default: 15, with --full 60")


def add_limits(out):
    group = out.add_argument_group("absolute limits (without any, peers are the measure)")
    group.add_argument("--thresholds", type=Path, metavar="FILE",
                       help="as of the drivers; for each node and for all together")
    group.add_argument("--min-peak", type=positive, metavar="P",
                       help="each node reaches P %% of what is published for such a machine, at "
                            "1 GiB or --max-bytes; for another machine: -- --peak GB/s")
    group.add_argument("--min-busbw", type=positive, metavar="GB/S", help="of each pair")
    group.add_argument("--baseline", metavar="NAME",
                       help="all together are not slower than `collmark baseline save DIR/all` "
                            "kept before, by `collmark compare`")
    group.add_argument("--baseline-dir", type=Path, default=BASELINES, metavar="DIR",
                       help="where it is kept; default: results/baselines")


def parser():
    out = argparse.ArgumentParser(
        prog="collmark acceptance", usage="collmark acceptance [options] [-- DRIVER OPTIONS]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Is this machine, or cluster, fit for use? Each rank by itself, each node by "
                    "itself, pairs, all\ntogether. A node that fails is named and left out of the "
                    "stages after.",
        epilog="Exit code: the worst that was found, in this order: 1 wrong data, 4 something "
               "hangs, 3 a node\nor a launch failed, 2 usage, 77 not supported here, 6 the time "
               "budget or a signal ended it,\n5 slow, 0 passed. Nothing passes that was not run, "
               "checked and finished.\n\n"
               "  collmark acceptance                                  this machine, 2 minutes\n"
               "  collmark acceptance --full --hosts hostfile -g 8     a cluster, by mpirun\n"
               "  salloc -N 16 collmark acceptance --min-busbw 40      a cluster, by srun")
    add_where(out)
    add_how_much(out)
    add_limits(out)
    out.add_argument("--out", type=Path, metavar="DIR",
                     help="folder of all results; default: collmark-acceptance-<time>")
    out.add_argument("--no-report", action="store_true", help="make no HTML page")
    out.add_argument("--dry-run", action="store_true", help="print the commands, run nothing")
    return out


def joined(words):
    """'--launcher-args' and its value as one word: argparse takes a value such as '--exclusive'
    for an option."""
    out = []
    for word in words:
        if out and out[-1] == "--launcher-args":
            out[-1] += f"={word}"
        else:
            out.append(word)
    return out


# ---- from options to a run ------------------------------------------------------------------

def find_nodes(options):
    """(names, ranks of each, program that launches or None)."""
    program = None if options.launcher == "none" else options.launcher
    if options.hosts is not None:
        if options.launcher == "none":
            raise Refused("--hosts and --launcher none: one machine needs no list")
        names, slots = hosts.read_hostfile(options.hosts)
        ranks = options.ranks or hosts.common_slots(names, slots, options.hosts)
        return names, ranks, program or "mpirun"
    if options.launcher == "none" or (program is None and not hosts.in_allocation()):
        return [hosts.name_here()], options.ranks or hosts.ranks_here(options.backend), None
    if not hosts.in_allocation():
        raise Refused(f"--launcher {program}: which nodes? --hosts FILE, or inside a Slurm "
                      f"allocation")
    return hosts.slurm_nodes(), options.ranks or hosts.slurm_ranks(), program or "srun"


def kept(name, folder):
    """Is there such a baseline? Which of several machines it is, `collmark compare` finds out."""
    return Path(name).exists() or any(folder.glob(f"{name}.json")) or any(
        folder.glob(f"*/{name}.json"))


def make_plan(options, more):
    mode = MODES[options.mode]
    if options.max_bytes == 0:
        raise Refused("--max-bytes 0: nothing is measured with 0 bytes")
    if options.thresholds is not None and not options.thresholds.is_file():
        raise Refused(f"--thresholds {options.thresholds}: no such file")
    if options.baseline and ALL not in options.stages:
        raise Refused("--baseline: it is held against stage all, which --stages leaves out")
    if options.baseline and not kept(options.baseline, options.baseline_dir):
        raise Refused(f"--baseline {options.baseline}: no such file, and none of that name in "
                      f"{options.baseline_dir}")
    launches = options.launches or (mode.against if options.baseline else mode.launches)
    thresholds = str(options.thresholds.resolve()) if options.thresholds else None
    return Plan(mode, options.backend, options.timeout or mode.timeout,
                options.max_bytes or mode.top, options.max_bytes is not None, launches, thresholds,
                options.min_peak, options.min_busbw, more or [])


def chosen_stages(options, nodes, ranks):
    """Stages that apply, and why others do not. Refused: too little to judge."""
    if ranks * len(nodes) < 2 and options.stages != [RANKS]:
        raise Refused("one rank alone has no peers: -g N for more, or --stages ranks")
    left_out = []
    if ranks == 1 and NODES in options.stages:
        left_out.append("nodes: one rank each, so stage ranks has it")
    return [s for s in options.stages if ranks > 1 or s != NODES], left_out


def prepare(options, more):
    """(a Run that has not begun, names of its stages, what is left out). Refused: what could be
    known to be wrong beforehand."""
    names, ranks, program = find_nodes(options)
    plan = make_plan(options, more)
    if options.time_budget is None:
        options.time_budget = plan.mode.budget
    stages, left_out = chosen_stages(options, names, ranks)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    options.out = (options.out or Path(f"collmark-acceptance-{stamp}")).resolve()
    run = Run([hosts.Node(n) for n in names], ranks, make(program, options.launcher_args), plan,
              options)
    if options.min_peak and NODES not in stages:
        raise Refused("--min-peak is for stage nodes, which needs -g 2 at least and has to be in "
                      "--stages")
    Job(run, run.nodes[:1], "all_reduce", [], "")  # is there a driver?
    return run, stages, left_out


def headline(run, options, left_out):
    about = f"{len(run.nodes)} x {run.ranks} ranks" if len(run.nodes) > 1 else f"{run.ranks} ranks"
    lines = [f"Acceptance of {about}: {options.mode}, {run.launcher.name}, backend "
             f"{options.backend}, up to {size_text(run.plan.top)}, "
             f"{seconds_text(options.time_budget)} at most"]
    return "\n".join(lines + [f"Left out: {why}" for why in left_out])


def dry_run(run, stages):
    """All commands, with the seconds that stages would have if those before took none."""
    left, plan, one = run.deadline - run.begin, run.plan, run.nodes[:1]
    for stage in stages:
        times = ""
        if stage in (RANKS, NODES) and len(run.nodes) > 1:
            times = f", the same on each of {len(run.nodes)} nodes"
        elif stage == ALL and plan.launches > 1:
            times = f", {plan.launches} launches of each"
        print(f"# {stage}{times}")
        jobs = {
            RANKS: lambda: [(one, "all_reduce", plan.rank_options(run.ranks, left))],
            NODES: lambda: [(one, d, plan.sweep_options(left)) for d in plan.mode.node_drivers]
            + ([(one, "all_reduce", plan.peak_options(left))] if plan.min_peak else []),
            PAIRS: lambda: [(run.nodes, "all_reduce", plan.pair_options(left))],
            ALL: lambda: [(run.nodes, d, plan.sweep_options(left)) for d in plan.mode.drivers],
        }[stage]()
        for nodes, driver, options in jobs:
            print(shlex.join(Job(run, nodes, driver, options, "").command + ["-J", "-"]))
    return EXIT_OK


# ---- after the stages -----------------------------------------------------------------------

def collmark(*words):
    """This program again, in a process of its own."""
    return subprocess.run([sys.executable, ROOT / "scripts" / "collmark", *map(str, words)],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def baseline_stage(run, stage, _nodes):
    """What stage all has measured, held against what was kept."""
    everything = run.place / ALL
    if len(run.good()) < len(run.nodes):
        stage.notes.append("not compared: nodes were left out, so it is another machine")
        return
    name, folder = run.baseline
    done = collmark("compare", name, everything, "--dir", folder, "--markdown",
                    run.place / "compare.md", "--junit", run.place / "compare.xml")
    (run.place / "compare.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    # 2 is its word for what cannot be compared; 1 is no verdict but Python's, for an error.
    code = {EXIT_USAGE: EXIT_UNSUPPORTED, EXIT_WRONG: EXIT_SYSTEM}.get(
        done.returncode, exit_code_of(done.returncode))
    said = (done.stderr or done.stdout).strip().split("\n")[-1].removeprefix("collmark: ")
    if code == EXIT_OK:
        stage.codes.append(code)
    else:
        run.doubt(stage, run.good(), code, f"{name}: {hosts.plain(said)}")


def page_sources(run):
    """Folders of launches that left a result: of many nodes first, then those of bad nodes."""
    folders = {p.parent.parent for p in run.place.rglob("attempt-*/result.json")}
    bad = {n.name for n in run.nodes if not n.good()}

    def rank(path):
        stage = path.relative_to(run.place).parts[0]
        named = any(path.name == n or path.name.startswith(f"{n}-") for n in bad)
        return (stage not in (ALL, PAIRS), not named, str(path))
    return sorted(folders, key=rank)[:MOST_SOURCES]


def write_page(run, code):
    """The HTML page. It is about the verdict, and cannot change it."""
    sources = page_sources(run)
    if not sources:
        say("report: no launch left a result, so there is no page")
        return
    done = collmark("report", *sources, "-o", run.place / "report.html", "--title",
                    text.last_line(run, code))
    if done.returncode != EXIT_OK:
        say(f"report: {hosts.plain(done.stderr)}")


def run_stages(run, stages):
    """Every stage in turn; the exit code."""
    with launch.Requests() as requests:
        run.requests = requests
        for name in stages:
            run.stage(name, CALLS[name])
        if run.baseline:
            run.stage(BASELINE, baseline_stage)
        if requests.seen:
            say("interrupted")
            return worst([text.code_of(run), EXIT_TRUNCATED])
    return text.code_of(run)


def main(argv):
    own, more = split_command(argv)
    options = parser().parse_args(joined(own))
    run, stages, left_out = prepare(options, more)
    run.baseline = (options.baseline, options.baseline_dir) if options.baseline else None
    if run.place.exists() and (not run.place.is_dir() or any(run.place.iterdir())):
        raise Refused(f"--out {run.place}: not empty")
    print(headline(run, options, left_out), flush=True)
    if options.dry_run:
        return dry_run(run, stages)
    run.place.mkdir(parents=True, exist_ok=True)
    try:
        code = run_stages(run, stages)
    except Refused as e:
        print(f"Acceptance: INCOMPLETE (exit {e.code}, {MEANING[e.code]}): {e}")
        return e.code
    limits = options.thresholds or options.min_peak or options.min_busbw or options.baseline
    said = text.summary(run, code, limits)
    text.write_all(run, code, argv, said)
    if not options.no_report:
        write_page(run, code)
    print(said, end="")
    return code
