"""Tuning rules: what a line of a tuning file says (src/engine/tune.h), and which there may be."""
import subprocess
from typing import NamedTuple

from .common import EXIT_SYSTEM, Refused, size_word

COLUMNS = ("# collective", "ranks", "nodes", "bytes", "algorithm", "mode", "protocol", "channels",
           "chunk")
WIDTHS = (15, 5, 5, 11, 9, 6, 8, 8, 5)
LIST_TIMEOUT_S = 60

CHANNELS = (1, 2, 4)
CHUNKS = (0, 16 << 10, 64 << 10, 1 << 20)  # 0: the size of a slot
USUAL_SLOT = 256 << 10                     # what 0 stands for, for the model only


class Rule(NamedTuple):
    """What is done for a range of sizes."""

    algo: str
    mode: str
    proto: str
    channels: int = 1
    chunk: int = 0  # bytes; 0: the size of a slot

    @property
    def form(self):
        return self[:3]

    def text(self):
        extra = f" x{self.channels}" if self.channels > 1 else ""
        extra += f" {size_word(self.chunk)}" if self.chunk else ""
        return "/".join(self.form) + extra

    def ran_as(self, row, backend):
        """Is this what the driver's row says was done? Plans may need more channels than one, and
        GPUs take as many blocks as the size pays for."""
        if (row.get("algorithm"), row.get("mode"), row.get("protocol")) != self.form:
            return False
        return self.channels == 1 or backend != "host" or row.get("channels") == self.channels


class Scope(NamedTuple):
    """What a rule is about."""

    collective: str
    ranks: int
    nodes: int


def line(cells):
    return " ".join(c.ljust(w) for c, w in zip(cells, WIDTHS)).rstrip()


def heading():
    return line(COLUMNS)


def rule_line(scope, low, high, rule, remark=""):
    """A line of the file; sizes in bytes, both inclusive; high None: without end."""
    bytes_ = "*" if low == 0 and high is None else (
        f"{size_word(low)}-{'' if high is None else size_word(high)}")
    chunk = size_word(rule.chunk) if rule.chunk else "-"
    text = line((scope.collective, str(scope.ranks), str(scope.nodes), bytes_, rule.algo,
                 rule.mode, rule.proto, str(rule.channels), chunk))
    return f"{text}  # {remark}" if remark else text


def listing(program):
    """What the program's --list says: title -> lines. Refused: it has none, or not these."""
    try:
        done = subprocess.run([program, "--list"], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=LIST_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Refused(f"{program} --list: {e}", EXIT_SYSTEM) from e
    out, title = {}, None
    for text in done.stdout.splitlines():
        if text and not text[0].isspace():
            title = out.setdefault(text.strip(), [])
        elif text.strip() and title is not None:
            title.append(text.split())
    wanted = ("algorithms of collectives", "modes", "protocols")
    if done.returncode != 0 or any(not out.get(w) for w in wanted):
        raise Refused(f"{program} --list: does not tell {', '.join(wanted)}; is it a driver of "
                      f"this version?")
    return out


def forms(lists, collective, one_memory):
    """
    Rules with one channel and whole slots, one for each form of the collective.

    Direct mode has no slots, so no choice of a protocol. Where all ranks share memory, ll means
    their shared slots whatever the algorithm: one rule stands for all.
    """
    algos = next((words[1:] for words in lists["algorithms of collectives"]
                  if words[0] == collective), [])
    out = []
    for algo in algos:
        for mode in (words[0] for words in lists["modes"]):
            for proto in (words[0] for words in lists["protocols"]):
                if mode == "direct" and proto != "simple":
                    continue
                if proto == "ll" and one_memory and algo != "direct":
                    continue
                out.append(Rule(algo, mode, proto))
    return out


def variants(rule):
    """The same form with other channels and chunks."""
    chunks = CHUNKS if rule.mode == "copy" and rule.proto == "simple" else (0,)
    channels = (1,) if rule.mode == "copy" and rule.proto == "ll" else CHANNELS
    return [rule._replace(channels=n, chunk=c) for n in channels for c in chunks
            if (n, c) != (rule.channels, rule.chunk)]


def corners(rule):
    """The variants that tell most about the others: many channels, and small chunks."""
    return [v for v in variants(rule)
            if v in (rule._replace(channels=CHANNELS[-1]), rule._replace(chunk=CHUNKS[1]))]
