"""Port of protocol LL: data and flag in the same 8 bytes, credit by head.

Rank A stores half lines (flag, data) into a slot of B's memory, B polls each half and takes its
data with the flag; there is no tail. B gives the slot back with head.

Bounds: two blocks of two threads, one line of two halves per thread, depth 1, 3 steps.
"""

from ptxprog import Program

STEPS = 3


def flagged(step):
    return lambda v: v != 0 and v[0] == step


def build(mutant=None, credit=True, used=False):
    """used: the slot holds payload that protocol simple left there, which looks like a flag."""
    p = Program(mutant)
    a, b = p.cta("a", 0), p.cta("b", 1)
    if used:
        a[0].st("line0.0", (1, "payload"))
        p.bar(a + b)
    for step in range(1, STEPS + 1):
        if step > 1 and credit:
            a[0].poll("head", lambda v, s=step: v >= s - 1, "acquire.sys", "credit")
        p.bar(a, "after credit")
        for i in range(2):
            for half in "01":
                a[i].st(f"line{i}.{half}", (step, f"data{step}"), "relaxed.sys", "store" + half)
    for step in range(1, STEPS + 1):
        for i in range(2):
            for half in "01":
                b[i].poll(f"line{i}.{half}", flagged(step), "relaxed.sys", "flag" + half,
                          expect=(step, f"data{step}"))
        p.bar(b, "before head")
        b[0].st("head", step, "release.sys", "head")
    return p


SURVIVORS = {
    ("credit", "relaxed.sys"): "polls accept one flag only, and a poll before head has succeeded",
    ("head", "relaxed.sys"): "the same from the other side",
}
SAFE = {}
UNSAFE = {
    "no credit": {"credit": False},
    "a slot that protocol simple used before": {"used": True},
}
