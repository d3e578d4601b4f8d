"""Litmus tests: what the checker itself must allow and forbid.

Two to four threads, each in a block of its own; "near" on one GPU, "far" each on its own. At most
8 accesses, no loops. A test names the outcome of interest and whether PTX allows it.
"""

from ptxprog import Program


def threads(n, far=True, one_block=False):
    p = Program()
    if one_block:
        return p, p.cta("t", 0, n)
    return p, [p.cta(f"t{i}", i if far else 0, 1)[0] for i in range(n)]


def mp(store, load, far=True, data="weak"):
    p, (a, b) = threads(2, far)
    a.st("x", 1, data)
    a.st("f", 1, store)
    b.ld("f", None, load, "f")
    b.ld("x", None, data, "x")
    return p


def mp_barrier(first, second):
    """Data by one thread of a block, the flag by another; the same on the other side."""
    p = Program()
    a, b = p.cta("a", 0), p.cta("b", 1)
    a[1].st("x", 1)
    if first:
        p.bar(a)
    a[0].st("f", 1, "release.sys")
    b[0].ld("f", None, "acquire.sys", "f")
    if second:
        p.bar(b)
    b[1].ld("x", None, "weak", "x")
    return p


def isa2(middle_store, middle_load):
    """Cumulativity: what the first released reaches the third through the second."""
    p, (a, b, c) = threads(3)
    a.st("x", 1)
    a.st("f", 1, "release.sys")
    b.poll("f", lambda v: v == 1, middle_load)
    b.st("g", 1, middle_store)
    c.ld("g", None, "acquire.sys", "g")
    c.ld("x", None, "weak", "x")
    return p


def sb(store, load):
    p, (a, b) = threads(2)
    a.st("x", 1, store)
    a.ld("y", None, load, "y")
    b.st("y", 1, store)
    b.ld("x", None, load, "x")
    return p


def lb(load, store, polls=False):
    p, (a, b) = threads(2)
    for t, mine, other in ((a, "x", "y"), (b, "y", "x")):
        if polls:
            t.poll(mine, lambda v: v == 1, load, mine)
        else:
            t.ld(mine, None, load, mine)
        t.st(other, 1, store)
    return p


def iriw(load):
    p, (a, b, c, d) = threads(4)
    a.st("x", 1, "release.sys")
    b.st("y", 1, "release.sys")
    c.ld("x", None, load, "cx")
    c.ld("y", None, load, "cy")
    d.ld("y", None, load, "dy")
    d.ld("x", None, load, "dx")
    return p


def corr(order, far=True):
    p, (a, b) = threads(2, far)
    a.st("x", 1, order)
    b.ld("x", None, order, "1st")
    b.ld("x", None, order, "2nd")
    return p


def coww(order):
    """Two writers, two readers: do all see one order?"""
    p, (a, b, c, d) = threads(4)
    a.st("x", 1, order)
    b.st("x", 2, order)
    for t, name in ((c, "c"), (d, "d")):
        t.ld("x", None, order, name + "1")
        t.ld("x", None, order, name + "2")
    return p


def same_block_mp():
    p, (a, b) = threads(2, one_block=True)
    a.st("x", 1)
    a.st("f", 1, "release.cta")
    b.ld("f", None, "acquire.cta", "f")
    b.ld("x", None, "weak", "x")
    return p


def release_sequence(second):
    """The acquire sees a later relaxed store of the releasing thread."""
    p, (a, b) = threads(2)
    a.st("x", 1)
    a.st("f", 1, "release.sys")
    a.st("f", 2, second)
    b.ld("f", None, "acquire.sys", "f")
    b.ld("x", None, "weak", "x")
    return p


STALE = {"f": 1, "x": 0}
TESTS = [
    # name, program, outcome, allowed
    ("MP", mp("release.sys", "acquire.sys"), STALE, False),
    ("MP in order", mp("release.sys", "acquire.sys"), {"f": 1, "x": 1}, True),
    ("MP, relaxed store", mp("relaxed.sys", "acquire.sys"), STALE, True),
    ("MP, relaxed load", mp("release.sys", "relaxed.sys"), STALE, True),
    ("MP, weak store", mp("weak", "acquire.sys"), STALE, True),
    ("MP, release.gpu to another GPU", mp("release.gpu", "acquire.sys"), STALE, True),
    ("MP, acquire.gpu from another GPU", mp("release.sys", "acquire.gpu"), STALE, True),
    ("MP, gpu scope on one GPU", mp("release.gpu", "acquire.gpu", far=False), STALE, False),
    ("MP, cta scope on one GPU", mp("release.cta", "acquire.gpu", far=False), STALE, True),
    ("MP, cta scope in one block", same_block_mp(), STALE, False),
    ("MP, relaxed data", mp("relaxed.sys", "relaxed.sys", data="relaxed.sys"), STALE, True),
    ("MP, barriers on both sides", mp_barrier(True, True), STALE, False),
    ("MP, no barrier before the store", mp_barrier(False, True), STALE, True),
    ("MP, no barrier after the load", mp_barrier(True, False), STALE, True),
    ("release sequence", release_sequence("relaxed.sys"), {"f": 2, "x": 0}, False),
    ("release sequence, weak", release_sequence("weak"), {"f": 2, "x": 0}, True),
    ("ISA2", isa2("release.sys", "acquire.sys"), {"g": 1, "x": 0}, False),
    ("ISA2, middle store relaxed", isa2("relaxed.sys", "acquire.sys"), {"g": 1, "x": 0}, True),
    ("ISA2, middle load relaxed", isa2("release.sys", "relaxed.sys"), {"g": 1, "x": 0}, True),
    ("ISA2, middle store gpu", isa2("release.gpu", "acquire.sys"), {"g": 1, "x": 0}, True),
    ("SB", sb("release.sys", "acquire.sys"), {"x": 0, "y": 0}, True),
    ("LB, acquire and release", lb("acquire.sys", "release.sys"), {"x": 1, "y": 1}, False),
    ("LB, relaxed", lb("relaxed.sys", "relaxed.sys"), {"x": 1, "y": 1}, True),
    ("LB, polls: no thin air", lb("relaxed.sys", "relaxed.sys", True), {"x": 1, "y": 1}, False),
    ("IRIW, acquire", iriw("acquire.sys"), {"cx": 1, "cy": 0, "dy": 1, "dx": 0}, True),
    ("CoRR, relaxed", corr("relaxed.sys"), {"1st": 1, "2nd": 0}, False),
    ("CoRR, weak", corr("weak"), {"1st": 1, "2nd": 0}, True),
    ("CoRR, relaxed.gpu on two GPUs", corr("relaxed.gpu"), {"1st": 1, "2nd": 0}, True),
    ("CoRR, relaxed.gpu on one", corr("relaxed.gpu", far=False), {"1st": 1, "2nd": 0}, False),
    ("CoWW", coww("relaxed.sys"), {"c1": 1, "c2": 2, "d1": 2, "d2": 1}, False),
    ("CoWW in order", coww("relaxed.sys"), {"c1": 1, "c2": 2, "d1": 1, "d2": 2}, True),
]
