"""The command `report`: one HTML page from results, which needs nothing but itself.

The exit code is about the page, not about what it says: 0 written, 2 a RESULT or an option is
wrong, 3 the page cannot be written.
"""
import argparse
import os
import subprocess
import sys
from pathlib import Path

from .common import EXIT_OK, EXIT_SYSTEM, Refused, check_writable, say, write_atomically
from .report_charts import load_matplotlib
from .report_load import load, readable
from .report_model import clean
from .report_page import build

SYSTEM_PYTHON = "/usr/bin/python3"


def parser():
    out = argparse.ArgumentParser(
        prog="collmark report", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Make one HTML page from results: verdict, charts, rows, environment.",
        epilog="RESULT is a file of -J (also of nccl-tests), a folder of `collmark run`, a folder "
               "of such\nfiles, or a table that `make bench` or scripts/gpu_check.sh keeps.\n\n"
               "Exit code: 0 the page is written, whatever it says; 2 a RESULT is none; "
               "3 it cannot be written.")
    out.add_argument("results", nargs="+", metavar="RESULT")
    out.add_argument("-o", "--output", type=Path, default=Path("report.html"), metavar="FILE",
                     help="default: report.html; -: stdout")
    out.add_argument("--baseline", action="append", default=[], metavar="OLD",
                     help="a RESULT or the name of a kept baseline: drawn behind the others, and "
                          "each row compared with it; may be repeated")
    out.add_argument("--title", default="Collmark report", help="headline of the page")
    return out


def with_matplotlib(argv):
    """The library; where this Python lacks it, the system's Python, which apt's belongs to, takes
    over. None: neither has it."""
    mpl = load_matplotlib()
    if mpl is None and os.access(SYSTEM_PYTHON, os.X_OK) and not os.path.samefile(
            SYSTEM_PYTHON, sys.executable or os.devnull):
        probe = subprocess.run([SYSTEM_PYTHON, "-c", "import matplotlib"], check=False,
                               stderr=subprocess.DEVNULL)
        if probe.returncode == 0:
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, sys.argv[0], "report", *argv])
    return mpl


def main(argv):
    options = parser().parse_args(argv)
    piped = str(options.output) == "-"
    if not piped:
        check_writable(options.output, "-o")
    sources = load(options.results, options.baseline)
    mpl = with_matplotlib(argv)
    if mpl is None:
        say("report: matplotlib is not installed, so the page has tables but no drawings; "
            "scripts/install_deps.sh report installs it")
    page = build(sources, mpl, readable(options.title))
    if piped:
        sys.stdout.buffer.write(page.encode("utf-8"))
        return EXIT_OK
    try:
        write_atomically(options.output, page)
    except OSError as e:
        raise Refused(f"-o {options.output}: {e.strerror}", EXIT_SYSTEM) from e
    print(f"{clean(options.output)} written")
    return EXIT_OK
