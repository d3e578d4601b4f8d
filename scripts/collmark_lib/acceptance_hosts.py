"""The nodes of an acceptance: from a hostfile, from Slurm, or this machine alone.

A node is failed or unknown with a reason, or nothing is held against it. Its name is the one that
launchers and schedulers know; the host name that its processes report may be another.
"""
import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass, field

from .common import EXIT_SYSTEM, Refused

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*|\[?[0-9A-Fa-f:]+\]?")
MOST_RANKS = 4096
REASON_CHARACTERS = 200


@dataclass
class Node:
    name: str
    host: str = ""                                # as its processes call it, once they have run
    failed: list = field(default_factory=list)    # (stage, exit code, reason)
    unknown: list = field(default_factory=list)   # (stage, reason): neither good nor bad

    def good(self):
        return not self.failed and not self.unknown

    def reason(self):
        """One line, fit for `scontrol update reason=` and for a ticket."""
        found = [f"{stage}: {why}" for stage, _, why in self.failed] or [
            f"{stage}: {why}" for stage, why in self.unknown]
        return plain("; ".join(dict.fromkeys(found)))


def plain(text):
    """Text of a process as a reason: one line, no quotes, not endless."""
    text = re.sub(r"[^!-~]+", " ", text).replace('"', "'").strip()
    return text if len(text) <= REASON_CHARACTERS else text[:REASON_CHARACTERS - 3] + "..."


def count_of(text, what):
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= MOST_RANKS:
        raise Refused(f"{what}: '{text}' is no number of ranks from 1 to {MOST_RANKS}")
    return int(text)


# ---- hostfile -------------------------------------------------------------------------------

def parse_line(line, where):
    """(name, slots or None): 'node1', 'node1 slots=8', 'node1:8'. Open MPI's max_slots is read
    over; any other word is refused, as it would mean something to somebody."""
    name, *words = line.split()
    slots = None
    if name.count(":") == 1:
        name, _, number = name.partition(":")
        slots = count_of(number, where)
    for word in words:
        key, _, value = word.partition("=")
        if key == "slots":
            slots = count_of(value, where)
        elif key not in ("max_slots", "max-slots"):
            raise Refused(f"{where}: '{word}' is not understood; a line is NAME, NAME slots=N or "
                          f"NAME:N")
    if not NAME.fullmatch(name):
        raise Refused(f"{where}: '{name}' is no name of a host")
    return name, slots


def read_hostfile(path):
    """(names in their order, slots of each or None). A name that comes again adds to its slots,
    as in files with a line per rank. '-' alone is not special."""
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
    except (OSError, UnicodeDecodeError) as e:
        raise Refused(f"--hosts {path}: {getattr(e, 'strerror', None) or 'not text'}") from e
    slots, lines_of = {}, {}
    for number, line in enumerate(lines, 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        name, own = parse_line(line, f"--hosts {path}:{number}")
        slots[name] = slots.get(name, 0) + (own or 0)
        lines_of[name] = lines_of.get(name, 0) + 1
    if not slots:
        raise Refused(f"--hosts {path}: no host in it")
    return list(slots), [n or (lines_of[h] if lines_of[h] > 1 else None)
                         for h, n in slots.items()]


def common_slots(names, slots, path):
    """Ranks of each node by the hostfile. Refused: it says nothing, or nodes differ."""
    if None in slots:
        missing = names[slots.index(None)]
        raise Refused(f"--hosts {path}: how many ranks has {missing}? --ranks N, or slots=N there")
    if len(set(slots)) > 1:
        other = next(i for i, n in enumerate(slots) if n != slots[0])
        raise Refused(f"--hosts {path}: {names[0]} has {slots[0]} slots and {names[other]} has "
                      f"{slots[other]}, so they cannot be compared; --ranks N takes as many of "
                      f"each")
    return slots[0]


# ---- Slurm ----------------------------------------------------------------------------------

def in_allocation():
    return bool(os.environ.get("SLURM_JOB_ID") and os.environ.get("SLURM_JOB_NODELIST"))


def slurm_nodes():
    """Names of the allocation, as scontrol lists them."""
    listed = os.environ["SLURM_JOB_NODELIST"]
    try:
        done = subprocess.run(["scontrol", "show", "hostnames", listed], capture_output=True,
                              text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Refused(f"scontrol show hostnames: {e}", EXIT_SYSTEM) from e
    names = done.stdout.split()
    if done.returncode != 0 or not names:
        raise Refused(f"scontrol show hostnames {listed}: {plain(done.stderr) or 'no names'}",
                      EXIT_SYSTEM)
    return names


def slurm_ranks():
    """Tasks or GPUs that the allocation has on each node."""
    for name in ("SLURM_NTASKS_PER_NODE", "SLURM_GPUS_ON_NODE"):
        value = os.environ.get(name, "")
        if value:
            return count_of(value, name)
    raise Refused("how many ranks has a node? --ranks N, or --ntasks-per-node or GPUs of the "
                  "allocation")


# ---- this machine ---------------------------------------------------------------------------

def gpus_here():
    """GPUs that nvidia-smi lists; 0 where there is none or no driver."""
    if shutil.which("nvidia-smi") is None or os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return 0
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60,
                              check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    listed = sum(line.startswith("GPU ") for line in done.stdout.split("\n"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return min(listed, len(visible.split(","))) if visible else listed


def ranks_here(backend):
    """All GPUs, else CPUs, of these eight at most: more would measure memory, not links."""
    gpus = gpus_here() if backend != "host" else 0
    if backend == "cuda" and gpus == 0:
        raise Refused("--backend cuda: nvidia-smi lists no GPU here; --ranks N if it is wrong")
    return gpus or max(2, min(8, len(os.sched_getaffinity(0))))


def name_here():
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()
