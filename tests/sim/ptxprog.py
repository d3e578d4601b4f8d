"""Programs for the memory-model checker ptxmm.py: threads, blocks, barriers, mutants.

An operation may carry a label; a mutant changes every operation with its label, so that each
piece of synchronisation of a protocol can be weakened or removed in turn.
"""

from dataclasses import dataclass, field


@dataclass(eq=False)
class Thread:
    name: str
    cta: int
    gpu: int
    program: "Program"
    ops: list = field(default_factory=list)

    def st(self, loc, value, order="weak", label=None):
        self.program.add(self, Op("st", self, loc, value, order, label))

    def ld(self, loc, expect=None, order="weak", label=None):
        """expect: None, or the only value that is right."""
        self.program.add(self, Op("ld", self, loc, None, order, label, expect=expect))

    def poll(self, loc, until, order, label=None, expect=None):
        """Load until `until(value)`; where it is dropped, nothing is loaded."""
        self.program.add(self, Op("ld", self, loc, None, order, label, until, expect))


@dataclass(eq=False)
class Op:
    kind: str  # "st", "ld"; "bar": `threads` meet; "init": first value of a location
    thread: Thread
    loc: str
    value: object
    order: str
    label: str
    until: object = None
    expect: object = None
    threads: tuple = ()

    def __post_init__(self):
        self.sem, _, self.scope = self.order.partition(".")
        self.strong = self.sem != "weak"

    def includes(self, other):
        if self.scope == "sys":
            return True
        mine, theirs = self.thread, other.thread
        return mine.gpu == theirs.gpu and (self.scope == "gpu" or mine.cta == theirs.cta)

    def __str__(self):
        what = f" {self.value}" if self.kind == "st" else ""
        return f"{self.thread.name}: {self.kind}.{self.order} {self.loc}{what}"


class Program:
    """mutant: None, or (label, change): a new order, "drop", or "unpoll" (load once, unchecked)."""

    def __init__(self, mutant=None):
        self.threads, self.labels, self.mutant, self.ctas = [], {}, mutant, 0

    def cta(self, name, gpu, threads=2):
        self.ctas += 1
        made = [Thread(f"{name}.{i}", self.ctas, gpu, self) for i in range(threads)]
        self.threads += made
        return made

    def bar(self, threads, label=None):
        """All of them meet: a block barrier, or the border between two launches."""
        op = Op("bar", threads[0], None, None, "weak", label, threads=tuple(threads))
        if self.changed(op):
            for t in threads:
                t.ops.append(op)

    def add(self, thread, op):
        if self.changed(op):
            thread.ops.append(op)

    def changed(self, op):
        """Apply the mutant; false: the operation is dropped."""
        if op.label:
            self.labels.setdefault(op.label, op)
        if not self.mutant or op.label != self.mutant[0]:
            return True
        change = self.mutant[1]
        if change == "unpoll":
            op.until = None
        elif change != "drop":
            op.order = change
            op.__post_init__()
        return change != "drop"


def weakenings(program):
    """Every mutant of the labelled synchronisation: (label, change)."""
    for label, op in program.labels.items():
        if op.kind == "bar":
            yield label, "drop"
            continue
        if op.sem in ("acquire", "release"):
            yield label, "relaxed." + op.scope
        if op.scope == "sys":
            yield label, op.sem + ".gpu"
        if op.until:
            yield label, "unpoll" if op.expect is not None else "drop"
