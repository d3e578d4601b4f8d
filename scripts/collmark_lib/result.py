"""One launch: what a driver's JSON (-J, scripts/result.schema.json) says that later runs are held
against. Times are in microseconds, bandwidths in 1e9 bytes per second.

A row's figure is the median of its iterations where the run timed each (-I 1), else their mean,
as in the table. Cycles (-N) of one launch are one figure, their median.
"""
import json
import math
import re
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from .common import Refused, size_text
from .placement import tag_in
from .stats import median

SCHEMA = 1  # the newest that this module reads

# Exit codes after which the rows were measured in a healthy job.
ORDERLY = (0, 1, 5, 6)


class Key(NamedTuple):
    """What makes two rows the same one. Algorithm and wire are as asked for: with auto, another
    choice of the program is a change like any other."""

    collective: str
    type: str
    op: str
    root: int
    bytes: int
    placement: str
    ranks: int
    nodes: int
    group: int
    algorithm: str
    wire: str
    engine: str = "builtin"
    cache: str = "hot"

    def text(self):
        """Short, for people and for names of test cases; what is as usual is left out."""
        parts = [self.collective, self.type]
        parts += [self.op] if self.op not in ("", "none") else []
        parts += [f"root {self.root}"] if self.root >= 0 else []
        parts += [f"group {self.group}"] if self.group > 0 else []
        parts += [f"engine {self.engine}"] if self.engine != "builtin" else []
        parts += [f"cache {self.cache}"] if self.cache != "hot" else []
        parts += [f"{what} {value}" for what, value in (("algo", self.algorithm),
                                                        ("wire", self.wire)) if value != "auto"]
        return f"{' '.join(parts)}, {size_text(self.bytes)} {self.placement} of place".replace(
            "in of place", "in place")


@dataclass
class Row:
    """The figures of one key, one per launch that gave a usable one."""

    times: list = field(default_factory=list)
    work: Optional[float] = None  # bus bandwidth x time: constant for a key
    wrong: int = 0                # launches with wrong data
    without: int = 0              # launches without a figure
    why: Optional[str] = None     # the reason of the last of these
    plans: set = field(default_factory=set)

    def bandwidth(self, time):
        return self.work / time if self.work else None


@dataclass
class Launch:
    path: str
    exit_code: int
    ended: str
    facts: dict  # environment: name -> text
    rows: dict   # Key -> Row with at most one time


def number(value):
    """A finite number above 0, else None: NaN, null, text and 0 are no figures."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if usable and math.isfinite(value) and value > 0 else None


def plain(value):
    """A value of the report as text, the same on every machine."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


# Of the options, these do not bear on figures, or show as rows of their own.
NOT_COMPARED = frozenset(
    "minbytes maxbytes stepbytes stepfactor datatype op root run_cycles placement output_file csv "
    "junit prometheus github eta min_busbw max_time_us thresholds peak min_peak "
    "report_timestamps memory min_bw debug debug_file plan topo timeout max_time nthreads ngpus "
    "parallel_init backend device node_map alltoallv_print_summary algo wire engine cache "
    "eta github junit log prometheus rendezvous port_range "
    "min_busbw max_time_us min_peak peak thresholds".split())

# Variables of collmark are options, which are compared as such, or name the job. mpirun leaves
# addresses and numbers of its job to the ranks.
NOT_SETTINGS = re.compile("COLLMARK_|OMPI_MCA_(orte|prte|ess|pmix|plm|shmem_RUNTIME|initial_wdir|"
                          "mpi_oversubscribe)")


def network_text(network):
    """How processes without common memory are connected; addresses and hosts do not matter."""
    if not network:
        return None
    ways = sorted({" ".join(plain(w[k]) for k in ("wire", "interface", "device", "mbit_per_s")
                            if w.get(k) is not None) for w in network.get("ways", [])})
    return f"{network['domains']} domains, {network['lanes']} lanes: {' + '.join(ways)}"


def facts_of(doc):
    """The environment of a launch. Names with 'option' and 'variable' are of that kind."""
    devices, machine, config = doc["devices"], doc["machine"], doc["config"]
    facts = {
        "device": " + ".join(sorted({d["device_info"] for d in devices})),
        "ranks": len(devices),
        "nodes": len({d["node"] for d in devices}),
        "processes": len({d["process"] for d in devices}),
        "algorithm asked": config.get("algo", "auto"),
        "wire asked": config.get("wire", "auto"),
        "cache": config.get("cache", "hot"),
        "placement": tag_in(doc),
        "version": doc["collmark"],
        "time": doc["time_definition"],
    }
    for name in ("backend", "oversubscribed", "shared_gpus", "staged", "wire", "kernels", "clock",
                 "mpi", "cuda_driver", "cuda_runtime", "local_cpus"):
        facts[name] = machine.get(name)
    facts["network"] = network_text(doc.get("network"))
    for name, value in config.items():
        if name not in NOT_COMPARED:
            facts[f"option {name}"] = value
    for name, value in doc.get("environment", {}).items():
        if not NOT_SETTINGS.match(name):
            facts[f"variable {name}"] = value
    return {name: plain(value) for name, value in facts.items()}


def figure(row, placement):
    """Time of one placement of one row, and its bus bandwidth times that time."""
    half = row[placement]
    mean, bandwidth = number(half.get("time")), number(half.get("bus_bw"))
    if mean is None:
        return None, None
    samples = row.get(placement + "_per_iter") or {}
    time = number(samples.get("p50_us")) or mean
    return time, bandwidth * mean if bandwidth else None


def add_half(rows, key, row, placement):
    """One placement of one row into the row of its key."""
    half, entry = row[placement], rows.setdefault(key, Row())
    time, work = figure(row, placement)
    if half.get("nwrong"):
        entry.wrong = 1
    if time is None:
        entry.why = half.get("why_not") or "no figure"
        return
    entry.times.append(time)
    entry.work = work
    entry.plans.add("/".join(row[k] for k in ("algorithm", "mode", "protocol") if row.get(k)))


def rows_of(doc):
    rows, config = {}, doc["config"]
    nodes = {d["rank"]: d["node"] for d in doc["devices"]}
    groups = {g["group"]: g["ranks"] for g in doc["groups"]}
    for row in doc["results"]:
        members = groups[row["group"]]
        for name, placement in (("out_of_place", "out"), ("in_place", "in")):
            key = Key(doc["collective"], row["type"], row["redop"], row["root"], row["size"],
                      placement, len(members), len({nodes[r] for r in members}), row["group"],
                      plain(config.get("algo", "auto")), plain(config.get("wire", "auto")),
                      row.get("engine", "builtin"), plain(config.get("cache", "hot")))
            add_half(rows, key, row, name)
    for entry in rows.values():
        if entry.wrong or not entry.times:
            entry.without, entry.times = 0 if entry.wrong else 1, []
        else:
            entry.times = [median(entry.times)]
    return rows


def read_json(path):
    """Any JSON document. NaN and Infinity, which are not JSON, are taken as null."""
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as e:
        raise Refused(f"{path}: not JSON ({e})") from e
    except OSError as e:
        raise Refused(f"{path}: {e.strerror}") from e


def is_result(doc):
    return isinstance(doc, dict) and "schema" in doc and "results" in doc


def launch_of(path, doc):
    """The launch that `doc` reports. Refused: not a result, or of a schema newer than this."""
    if not is_result(doc):
        raise Refused(f"{path}: not a result of a driver (-J)")
    if not isinstance(doc["schema"], int) or doc["schema"] > SCHEMA:
        raise Refused(f"{path}: schema {doc['schema']}; this program reads up to {SCHEMA}, "
                      f"take the collmark that belongs to the driver")
    try:
        return Launch(str(path), doc["summary"]["exit_code"], doc["end_time"], facts_of(doc),
                      rows_of(doc))
    except (KeyError, TypeError, AttributeError) as e:
        raise Refused(f"{path}: not as scripts/result.schema.json says ({type(e).__name__}: "
                      f"{e})") from e
