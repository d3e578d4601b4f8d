"""Port of protocol simple: slots with payload, tail and head with release and acquire.

Rank A fills slots of a ring in B's memory, B empties them. Of each block thread 0 waits, writes or
reads the slot's signature, and posts; both threads move payload. As in exec_plan.h.

Bounds: two blocks of two threads, depth 1, 3 steps: each slot is filled three times, so a credit
is awaited twice.
"""

from ptxprog import Program

STEPS = 3


def build(mutant=None, far=True, scope="sys"):
    p = Program(mutant)
    a, b = p.cta("a", 0), p.cta("b", 1 if far else 0)
    for step in range(1, STEPS + 1):
        if step > 1:
            a[0].poll("head", lambda v, s=step: v >= s - 1, f"acquire.{scope}", "credit")
        a[0].st("sig", step)
        p.bar(a, "after credit")
        for i in range(2):
            a[i].st(f"slot{i}", step)
        p.bar(a, "before tail")
        a[0].st("tail", step, f"release.{scope}", "tail")
    for step in range(1, STEPS + 1):
        b[0].poll("tail", lambda v, s=step: v >= s, f"acquire.{scope}", "full")
        b[0].ld("sig", step)
        p.bar(b, "after full")
        for i in range(2):
            b[i].ld(f"slot{i}", step)
        p.bar(b, "before head")
        b[0].st("head", step, f"release.{scope}", "head")
    return p


SURVIVORS = {}
SAFE = {
    "gpu scope between blocks of one GPU": {"far": False, "scope": "gpu"},
}
UNSAFE = {
    "gpu scope between two GPUs": {"scope": "gpu"},
    "cta scope between blocks of one GPU": {"far": False, "scope": "cta"},
}
