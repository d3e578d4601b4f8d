"""Launches by the distance between the cores of their ranks: "placement" in a report.

The host of a virtual machine may move its cores within seconds, and small operations then take two
to three times as long. So only launches with the same tag are held against each other:

* Tags are near, far and mixed; a launch whose cores moved while it ran is of none, "moved"; where
  nothing was probed (GPUs, more ranks than cores, an older program) the tag is "unknown".
* OLD and NEW are compared by the launches of one tag: that of which both sides have enough, else
  that of which both have any; of several the one with more launches, moved last. The others are
  left out, and that is said. Without a common tag nothing is compared, unless --force.
* Of a side that knows no tag at all, nothing can be chosen by it: then all launches count on both
  sides, and that is said.
"""
from collections import Counter

from .common import count_text
from .stats import LEAST_LAUNCHES

UNKNOWN = "unknown"
ORDER = ("near", "mixed", "far", UNKNOWN, "moved")  # of equals the first


def tag_in(doc):
    """Of a driver's report."""
    return (doc.get("placement") or {}).get("tag") or UNKNOWN


def tag_of(launch):
    return launch.facts.get("placement", UNKNOWN)


def grouped(launches):
    """tag -> launches, the largest group first."""
    groups = {}
    for launch in launches:
        groups.setdefault(tag_of(launch), []).append(launch)
    return dict(sorted(groups.items(), key=lambda g: (-len(g[1]), rank(g[0]))))


def rank(tag):
    return ORDER.index(tag) if tag in ORDER else len(ORDER)


def counts(sample):
    """How many launches a sample has of each tag. A baseline's are of one."""
    if sample.parts:
        return Counter(tag_of(x) for x in sample.parts)
    tags = sample.facts.get("placement", [UNKNOWN])
    return Counter({tags[0] if len(tags) == 1 else UNKNOWN: sample.launches})


def common_tag(old, new):
    """The tag by which two counts are compared: (tag, why there is none, or None)."""
    if set(old) == {UNKNOWN} or set(new) == {UNKNOWN}:
        return None, None
    both = [t for t in old if t in new]
    if not both:
        return None, f"placement: {told(old)} -> {told(new)}"

    def worth(tag):
        least = min(old[tag], new[tag])
        return least >= LEAST_LAUNCHES, tag != "moved", least, old[tag] + new[tag], -rank(tag)

    return max(both, key=worth), None


def told(tags):
    return " | ".join(sorted(tags, key=rank))


def left_out(chosen, launches):
    """What to say of launches that do not count, or None."""
    others = Counter(tag_of(x) for x in launches if tag_of(x) != chosen)
    if not others:
        return None
    listed = ", ".join(f"{others[t]} {t}" for t in sorted(others, key=rank))
    return (f"placement {chosen}: {count_text(len(launches) - sum(others.values()), 'launch')} of "
            f"{len(launches)} count, left out: {listed}")


def matched(old, new):
    """(old, new, tag, refusal): both samples by their launches of the common tag, which is None if
    all count; and why they cannot be compared, or None."""
    tags = counts(old), counts(new)
    tag, refusal = common_tag(*tags)
    if tag is not None:
        return old.only(tag), new.only(tag), tag, None
    if refusal is None:
        for sample, mine in ((old, tags[0]), (new, tags[1])):
            if len(mine) > 1:
                sample.notes.append(f"launches of unlike placement ({told(mine)}) count alike, "
                                    f"since the other side knows none")
    return old, new, None, refusal
