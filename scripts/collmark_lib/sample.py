"""Several launches of one thing as one sample."""
from dataclasses import dataclass, field

from .common import Refused, count_text
from .environment import HARD, difference_text, is_hard
from .placement import left_out, tag_of
from .result import ORDERLY, Row


@dataclass
class Sample:
    name: str
    launches: int = 0
    measured: str = ""                         # end of the last launch, RFC 3339
    facts: dict = field(default_factory=dict)  # name -> sorted values, one unless launches differ
    rows: dict = field(default_factory=dict)   # Key -> Row
    notes: list = field(default_factory=list)  # what a reader of a verdict has to know
    parts: list = field(default_factory=list)  # the launches; a baseline does not know them

    def title(self):
        return (f"{self.name}: {count_text(len(self.rows), 'row')}, "
                f"{count_text(self.launches, 'launch')}, measured {self.measured}")

    def only(self, tag):
        """The same by its launches of one placement; itself if it has no others."""
        said = left_out(tag, self.parts)
        if said is None:
            return self
        out = sample_of(self.name, [x for x in self.parts if tag_of(x) == tag], force=True)
        out.notes = [*self.notes, said]
        return out


def merge_rows(launches):
    rows = {}
    for launch in launches:
        for key, row in launch.rows.items():
            into = rows.setdefault(key, Row())
            into.times += row.times
            into.work = into.work or row.work
            into.wrong += row.wrong
            into.without += row.without
            into.why = row.why or into.why
            into.plans |= row.plans
    count_gaps(rows, launches)
    return {key: row for key, row in rows.items() if not never_measured(row)}


def kind(key):
    """What all rows of a launch have in common."""
    return key.collective, key.algorithm, key.wire, key.cache


def count_gaps(rows, launches):
    """A launch of the same kind that lacks a key is one without a figure."""
    for key, row in rows.items():
        same = sum(1 for x in launches if any(kind(k) == kind(key) for k in x.rows))
        gap = same - len(row.times) - row.wrong - row.without
        if gap > 0:
            row.without += gap
            row.why = row.why or "the row is absent"


def never_measured(row):
    """The program said that it does not measure this, every time: there is no such row."""
    return not row.times and not row.wrong and row.why not in (None, "no figure")


def merge_facts(name, launches, force):
    facts = {}
    for launch in launches:
        for key, value in launch.facts.items():
            facts.setdefault(key, set()).add(value)
    facts = {key: sorted(values) for key, values in sorted(facts.items())}
    mixed = [k for k, v in facts.items() if len(v) > 1 and is_hard(k) and HARD.get(k) != "key"]
    if mixed and not force:
        told = "; ".join(difference_text(k, facts[k][:1], facts[k][1:]) for k in mixed)
        raise Refused(f"{name}: its launches are not of one kind: {told}")
    return facts


def sample_of(name, launches, force=False):
    """Refused: none is usable, or they were made under conditions that do not compare."""
    usable = [x for x in launches if x.exit_code in ORDERLY]
    if not usable:
        raise Refused(f"{name}: no launch that came to an orderly end")
    out = Sample(name, len(usable), max(x.ended for x in usable), parts=usable)
    out.facts = merge_facts(name, usable, force)
    out.rows = merge_rows(usable)
    if len(usable) < len(launches):
        out.notes.append(f"{count_text(len(launches) - len(usable), 'launch')} of "
                         f"{len(launches)} failed and did not count")
    return out
