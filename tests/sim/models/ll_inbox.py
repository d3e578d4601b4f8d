"""LL inboxes: one exchange without credits, halves of the inbox by parity of the epoch.

Two ranks of two blocks, a thread each. In each epoch a rank stores its units into the peer's inbox
and polls its own; a flag is the epoch. Sizes and grids change: which block moves a unit differs
from epoch to epoch, and a small one has fewer units; the border between two launches orders the
blocks of a rank. A half is written again two epochs later: by then a line of the epoch between
was seen, which the peer sent only after it had read this half. As in exec_shot.h, where every
rank sends a line to every peer and awaits one from each, whatever the size.

Bounds: 2 ranks x 2 blocks x 1 thread, 3 epochs with 2, 1 and 2 units of one line (two halves).
"""

from ptxprog import Program

# For each epoch the blocks that move unit 0 and unit 1.
EPOCHS = ((0, 1), (0,), (0, 0))


def flagged(epoch):
    return lambda v: v != 0 and v[0] == epoch


def rank(p, blocks, me, peer, halves, epochs):
    for epoch, movers in enumerate(epochs, 1):
        place = epoch % halves
        for unit, mover in enumerate(movers):
            for word in "01":
                blocks[mover].st(f"{peer}.{place}.{unit}.{word}", (epoch, f"{me}{unit}"),
                                 "relaxed.sys", "store" + word)
        for unit, mover in enumerate(movers):
            for word in "01":
                blocks[mover].poll(f"{me}.{place}.{unit}.{word}", flagged(epoch), "relaxed.sys",
                                   "flag" + word, expect=(epoch, f"{peer}{unit}"))
        p.bar(blocks, "launch")


def build(mutant=None, halves=2, epochs=EPOCHS):
    p = Program(mutant)
    for gpu, (me, peer) in enumerate(("AB", "BA")):
        blocks = p.cta(me + "0", gpu, 1) + p.cta(me + "1", gpu, 1)
        rank(p, blocks, me, peer, halves, epochs)
    return p


SURVIVORS = {}
SAFE = {}
UNSAFE = {
    "no parity": {"halves": 1},
    "an epoch in which nothing is sent": {"epochs": ((0, 1), (), (0, 0))},
}
