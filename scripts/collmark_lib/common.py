"""What all commands share: exit codes, refusals, numbers with units, files that are whole."""
import os
import re
import sys
import tempfile
from pathlib import Path

EXIT_OK, EXIT_WRONG, EXIT_USAGE, EXIT_SYSTEM = 0, 1, 2, 3
EXIT_TIMEOUT, EXIT_BELOW, EXIT_TRUNCATED, EXIT_UNSUPPORTED = 4, 5, 6, 77

# From the worst to the best. What is none of these came from a launcher: the launch failed.
SEVERITY = (EXIT_WRONG, EXIT_TIMEOUT, EXIT_SYSTEM, EXIT_USAGE, EXIT_UNSUPPORTED, EXIT_TRUNCATED,
            EXIT_BELOW, EXIT_OK)
MEANING = {
    EXIT_OK: "all right", EXIT_WRONG: "wrong data", EXIT_USAGE: "usage",
    EXIT_SYSTEM: "the system refused, or the launch failed", EXIT_TIMEOUT: "a deadline passed",
    EXIT_BELOW: "below a threshold", EXIT_TRUNCATED: "ended early",
    EXIT_UNSUPPORTED: "not supported here"}

ROOT = Path(__file__).resolve().parents[2]


class Refused(Exception):
    """A request that cannot be met: one line for the user, and the exit code."""

    def __init__(self, text, code=EXIT_USAGE):
        super().__init__(text)
        self.code = code


def say(text):
    """One line to stderr, in one write."""
    sys.stderr.write(f"collmark: {text}\n")
    sys.stderr.flush()


def exit_code_of(status):
    """A driver's exit code as it is; anything else, signals too, is a failed launch."""
    return status if status in SEVERITY else EXIT_SYSTEM


def worst(codes):
    """The exit code that stands for all of these; none: 0."""
    return min(codes, key=SEVERITY.index, default=EXIT_OK)


def percent(text):
    """'5%' or '5' -> 0.05. For argparse: ValueError says what is wanted."""
    value = float(text[:-1] if text.endswith("%") else text)
    if not 0 <= value <= 1000:
        raise ValueError(text)
    return value / 100


def duration(text):
    """'90', '90s', '10m' or '2h' -> seconds, above 0."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not found or float(found[1]) == 0:
        raise ValueError(text)
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def size(text):
    """'64K' -> 65536; the suffixes are those of the drivers."""
    found = re.fullmatch(r"(\d+)([KMGT]?)", text.upper())
    if not found:
        raise ValueError(text)
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[found[2]]


def count(text):
    """An integer of at least 1."""
    if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) == 0:
        raise ValueError(text)
    return int(text)


def size_word(n):
    """65536 -> '64K', as the drivers read it."""
    for shift, unit in ((40, "T"), (30, "G"), (20, "M"), (10, "K")):
        if n >= 1 << shift and n % (1 << shift) == 0:
            return f"{n >> shift}{unit}"
    return str(n)


def size_text(n):
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if n >= 1 << shift and n % (1 << shift) == 0:
            return f"{n >> shift} {unit}"
    return f"{n} B"


def seconds_text(s):
    if s < 100:
        return f"{s:.1f} s" if s < 10 else f"{s:.0f} s"
    return f"{s / 60:.0f} min" if s < 6000 else f"{s / 3600:.1f} h"


def count_text(n, noun):
    return f"{n} {noun}" if n == 1 else f"{n} {noun}{'es' if noun.endswith('ch') else 's'}"


def one_line(text):
    """What came from a file or a name, for a report: no line break, no control character."""
    return "".join(c if c.isprintable() else "?" for c in text)


def slug(text):
    """Safe as a file's name: 'AMD EPYC' -> 'amd-epyc'."""
    return re.sub(r"[^a-z0-9_.]+", "-", text.lower()).strip("-.") or "unknown"


def write_atomically(path, text):
    """A reader sees the old file or the whole new one; a failure leaves the old one."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def check_writable(path, option):
    """Refuse a file that could not be written, before any work is done."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise Refused(f"{option} {path}: cannot be written there", EXIT_SYSTEM)


def split_command(argv):
    """What is before a lone '--', and the command after it (None: there is no '--')."""
    if "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], argv[at + 1:]


def columns(rows, left=()):
    """Lines of a table; columns are right-aligned, but those numbered in `left`."""
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [c.ljust(w) if i in left else c.rjust(w)
                 for i, (c, w) in enumerate(zip(row, widths))]
        yield "  ".join(cells).rstrip()
