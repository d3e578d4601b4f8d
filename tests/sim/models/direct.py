"""Arrive and done lines with direct pull and push, several operations in a row.

Two ranks, a block each. A rank posts its line {seq, in, sig} to the peer; `in` says where IN of
this operation is, sig what is run. Having seen the peer's arrival it loads from the peer's IN (pull) and stores into
the peer's OUT (push), posts done and waits for the peer's done. Then the stream goes on: OUT is
read, IN written anew. As in exec_pass.h, and exec_plan.h with one phase.

A peer may be an operation ahead: its next arrival says that it is done with the last, so a wait
for "done" may see "arrived" of the next operation. What is read from a line after one's own done
is safe by parity only while every operation makes both ranks wait for each other; a copy plan in
between, in which the root waits for nobody, takes that away. So nothing is read then.

Bounds: two blocks of two threads; 3 operations, so that each half of a line is used again.
"""

from ptxprog import Program

ARRIVED, DONE = 1, 9


def seq(op, phase):
    return op * 10 + phase


def reached(op, phase):
    return lambda v: v >= seq(op, phase)


def operation(p, cta, op, half, names, late, bases, sig):
    me, peer = names
    cta[0].st(f"{me}.in[{half}]", op)
    cta[0].st(f"{me}.sig[{half}]", op, sig)
    cta[0].st(f"{me}.seq", seq(op, ARRIVED), "release.sys", "arrive")
    cta[0].poll(f"{peer}.seq", reached(op, ARRIVED), "acquire.sys", "wait arrive")
    cta[0].ld(f"{peer}.sig[{half}]", op, sig)
    cta[0].ld(f"{peer}.in[{half}]", op)
    p.bar(cta, "after arrive")
    for i in range(2):
        cta[i].ld(f"{peer}.IN{i}", op)
        cta[i].st(f"{peer}.OUT{i}", op)
    p.bar(cta, "before done")
    if bases:
        cta[0].st(f"{me}.in[{half}]", op)
    cta[0].st(f"{me}.seq", seq(op, DONE), "release.sys", "done")
    cta[0].poll(f"{peer}.seq", reached(op, DONE), "acquire.sys", "wait done")
    cta[0].ld(f"{peer}.sig[{half}]", None, sig)
    if late:
        cta[0].ld(f"{peer}.in[{half}]", op)
    p.bar(cta, "exit")
    for i in range(2):
        cta[i].ld(f"{me}.OUT{i}", op)


def build(mutant=None, halves=2, late=False, bases=False, one_way=(),
          sig="relaxed.sys"):
    """late: `in` is read after done; bases: done stores `in` again; one_way: operations in which
    these ranks do not wait for each other; sig: how it is stored and loaded."""
    p = Program(mutant)
    for gpu, names in enumerate(("AB", "BA")):
        cta = p.cta(names[0].lower(), gpu)
        for op in range(1, 4):
            for i in range(2):
                cta[i].st(f"{names[0]}.IN{i}", op)
            p.bar(cta, "launch")
            if op not in one_way:
                operation(p, cta, op, op % halves, names, late, bases, sig)
    return p


SURVIVORS = {}
SAFE = {
    "`in` is read after done, all operations mutual": {"late": True},
    "a one-way operation between": {"one_way": [2]},
}
UNSAFE = {
    "`in` is read after done, a one-way operation between": {"late": True, "one_way": [2]},
    "`in` is read after done, one half": {"late": True, "halves": 1},
    "a weak sig, a one-way operation between": {"sig": "weak", "one_way": [2]},
    "done stores the bases again": {"bases": True},
}
