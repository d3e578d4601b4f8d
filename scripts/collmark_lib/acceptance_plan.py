"""What an acceptance runs: stages, and for each the drivers and their options by mode.

Sizes are bytes. A stage may take a part of the time that is left when it begins; what it does not
need is for those after it.
"""
import os
from dataclasses import dataclass

from .common import size_word

RANKS, NODES, PAIRS, ALL, BASELINE = "ranks", "nodes", "pairs", "all", "baseline"
STAGES = (RANKS, NODES, PAIRS, ALL)
WHAT = {RANKS: "each rank by itself", NODES: "each node by itself", PAIRS: "pairs",
        ALL: "all together", BASELINE: "compared with a baseline"}
SHARE = {RANKS: 0.2, NODES: 0.4, PAIRS: 0.5, ALL: 1.0}

MAIN = ("all_reduce", "all_gather", "alltoall")
EVERY = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall",
         "alltoallv", "gather", "scatter", "sendrecv", "hypercube")
PEAK_BYTES = 1 << 30  # published figures are those of large messages


@dataclass(frozen=True)
class Mode:
    budget: float       # seconds
    timeout: float      # seconds that a rank may wait, -T
    top: int            # largest size
    factor: int         # from size to size
    iters: int
    node_drivers: tuple
    drivers: tuple
    launches: int       # of each driver, all together
    against: int        # the same, if they are held against a baseline


MODES = {
    "quick": Mode(120, 15, 64 << 20, 8, 10, ("all_reduce",), MAIN, 1, 3),
    "full": Mode(1800, 60, 256 << 20, 2, 20, ("all_reduce", "alltoall"), EVERY, 3, 5),
}


@dataclass
class Plan:
    """Options of the drivers, as the user's options and the mode have them."""

    mode: Mode
    backend: str
    timeout: float
    top: int            # largest size
    asked_top: bool     # by the user
    launches: int
    thresholds: str     # path, or None
    min_peak: float     # per cent, or None
    min_pair: float     # GB/s, or None
    more: list          # options of the drivers from the command line

    def program(self, driver):
        return f"{driver}_perf{os.environ.get('NAME_SUFFIX', '')}"

    def common(self, low, high, seconds):
        out = ["-b", size_word(min(low, high)), "-e", size_word(high),
               "-n", str(self.mode.iters), "-T", f"{self.timeout:g}",
               "--max-time", f"{max(seconds, 0.1):.6g}", "--eta", "never"]
        if low < high:
            out += ["-f", str(self.mode.factor)]
        return out + (["--backend", self.backend] if self.backend != "auto" else [])

    def rank_options(self, ranks, seconds):
        """Every rank is a group of its own: nothing is communicated, memory and data are."""
        split = ["--split", f"mod:{ranks}"] if ranks > 1 else []
        return self.common(1 << 20, self.top, seconds) + split + self.more

    def sweep_options(self, seconds):
        limits = ["--thresholds", self.thresholds] if self.thresholds else []
        return self.common(8, self.top, seconds) + limits + self.more

    def peak_options(self, seconds):
        size = self.top if self.asked_top else PEAK_BYTES
        return self.common(size, size, seconds) + [
            "--peak", "auto", "--min-peak", f"{self.min_peak:g}"] + self.more

    def pair_options(self, seconds):
        limit = ["--min-busbw", f"{self.min_pair:g}"] if self.min_pair else []
        return self.common(self.top, self.top, seconds) + ["--find-bad"] + limit + self.more
