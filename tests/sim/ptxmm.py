"""Bounded checker for the PTX memory consistency model: every execution of a small program.

The model is that of the PTX ISA, chapter "Memory Consistency Model", for the generic proxy:
loads and stores that are weak, relaxed, acquire or release with scope cta, gpu or sys, and
barriers between threads. Left out, because the kernels have none of it: fences, atomics with a
read and a write, accesses of mixed sizes, other proxies.

A Program (ptxprog.py) is threads of straight-line code. All values are constants, so an execution
is given by the store that each load reads from; the checker enumerates those choices, derives what
is ordered before what, and keeps the executions that no axiom forbids:

  base causality   program order, barriers, and release patterns seen by acquire patterns whose
                   scopes include each other, transitively
  causality        the same, and a store before what follows a morally strong load of it
  coherence        causality orders the stores of a location; morally strong ones are ordered
  Causality axiom  no load reads a store that it precedes, nor one that is overwritten before it
  Coherence axiom  per location, program order and morally strong communication have no cycle
  No thin air      a poll that succeeded is not fed by stores that depend on its success

A poll is one load, the successful one. Executions in which polls never succeed are enumerated
too: the thread stops there and the value that stays in memory must fail the poll; so a protocol
is proved to make progress as well. Three faults exist: a load gets a value that it must not
(wrong), two accesses conflict, one of them weak, and nothing orders them (race), all that is left
are polls that fail for ever (stuck).
"""

import itertools

from ptxprog import Op, Thread


def morally_strong(a, b):
    """For two accesses of the same location."""
    return a.thread is b.thread or (a.strong and b.strong and a.includes(b) and b.includes(a))


def bits(mask):
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def acyclic(successors):
    """successors: {node: mask}"""
    done = 0
    waiting = dict(successors)
    while waiting:
        ready = [n for n, after in waiting.items() if after & ~done == 0]
        if not ready:
            return False
        for n in ready:
            done |= 1 << n
            del waiting[n]
    return True


class Graph:
    """The operations of one control flow, numbered in an order that program order respects.

    before[i]: mask of those in base causality before i, without communication. `stuck` are polls
    at which their threads stop; threads that would meet those at a barrier stop there.
    """

    def __init__(self, program, stuck=()):
        self.ops, self.before, self.reached = [], [], set()
        locs = sorted({op.loc for t in program.threads for op in t.ops if op.loc})
        host = Thread("init", 0, 0, program)
        for loc in locs:
            self.ops.append(Op("init", host, loc, 0, "weak", None))
            self.before.append(0)
        self.schedule(program, stuck, (1 << len(locs)) - 1)
        numbered = range(len(self.ops))
        self.writes = {loc: [i for i in numbered if self.ops[i].loc == loc and
                             self.ops[i].kind != "ld"] for loc in locs}
        self.reads = [i for i in numbered if self.ops[i].kind == "ld"]
        self.reads_of = {loc: [r for r in self.reads if self.ops[r].loc == loc] for loc in locs}

    def schedule(self, program, stuck, start):
        at = {t: 0 for t in program.threads}
        seen = {t: start for t in program.threads}
        moved = True

        def emit(op, threads):
            mask = 0
            for t in threads:
                mask |= seen[t]
            self.ops.append(op)
            self.before.append(mask)
            for t in threads:
                seen[t] = mask | 1 << len(self.ops) - 1
                at[t] += 1

        while moved:
            moved = False
            for t in program.threads:
                op = t.ops[at[t]] if at[t] < len(t.ops) else None
                if op in stuck:
                    self.reached.add(op)
                elif op and op.kind != "bar":
                    emit(op, (t,))
                    moved = True
                elif op and all(at[u] < len(u.ops) and u.ops[at[u]] is op for u in op.threads):
                    emit(op, op.threads)
                    moved = True

    def static_last(self, loc):
        """Stores that may be the last of their location."""
        writes = self.writes[loc]
        return [w for w in writes if not any(self.before[x] >> w & 1 for x in writes)]


class Search:
    """All consistent executions of a graph: iterate over run()."""

    def __init__(self, graph):
        self.g, self.ops = graph, graph.ops
        # Loads that may order others come first: then the rest is decided one by one.
        self.order = sorted(graph.reads, key=lambda r: (not self.ops[r].strong, r))
        self.rf = {}
        # Pairs of a location that may matter to the coherence axiom, and whether program order
        # has them in this order.
        self.pairs = {loc: list(self.related(graph.writes[loc] + graph.reads_of[loc]))
                      for loc in graph.writes}

    def related(self, accesses):
        for a, b in itertools.permutations(accesses, 2):
            one, two = self.ops[a], self.ops[b]
            if morally_strong(one, two):
                yield a, b, one.thread is two.thread and a < b and one.kind != "init"

    def candidates(self, r, before):
        op = self.ops[r]
        for w in self.g.writes[op.loc]:
            if not before[w] >> r & 1 and (not op.until or op.until(self.ops[w].value)):
                yield w

    def run(self, k=0, before=None):
        before = self.g.before if before is None else before
        if k == len(self.order):
            if not self.from_air():
                for co in self.coherences(before):
                    yield Execution(self.g, dict(self.rf), before, co)
            return
        r = self.order[k]
        for w in self.candidates(r, before):
            self.rf[r] = w
            after = self.synchronise(before, r, w)
            if after is not None and self.consistent(after, before is after and self.ops[r].loc):
                yield from self.run(k + 1, after)
            del self.rf[r]

    def synchronise(self, before, r, w):
        """Base causality with what this load sees; None: it has a cycle."""
        ops, same = self.ops, lambda a, b: ops[a].thread is ops[b].thread and a <= b
        if not (ops[w].strong and ops[r].strong and morally_strong(ops[w], ops[r])):
            return before
        releases = [x for x in self.g.writes[ops[w].loc] if ops[x].sem == "release" and same(x, w)]
        acquires = [y for y in self.g.reads_of[ops[r].loc]
                    if ops[y].sem == "acquire" and same(r, y)]
        for x, y in itertools.product(releases, acquires):
            if morally_strong(ops[x], ops[y]):
                before = self.extend(before, x, y)
                if before is None:
                    return None
        return before

    @staticmethod
    def extend(before, x, y):
        new = before[x] | 1 << x
        if new >> y & 1:
            return None
        if before[y] & new == new:
            return before
        return [m | new if i == y or m >> y & 1 else m for i, m in enumerate(before)]

    def causes(self, before, i):
        """Mask of accesses of i's location that precede i in causality order."""
        mask = before[i]
        for z in self.g.reads_of[self.ops[i].loc]:
            if before[i] >> z & 1 and z in self.rf and self.ops[z].strong:
                w = self.rf[z]
                if morally_strong(self.ops[w], self.ops[z]):
                    mask |= 1 << w
        return mask

    def consistent(self, before, only):
        """Does what is chosen so far break an axiom? Where nothing was loaded yet, nothing can."""
        locs = [only] if only else {self.ops[r].loc for r in self.rf}
        return all(self.location_ok(before, loc, self.forced(before, loc)) for loc in locs)

    def forced(self, before, loc):
        """{store: mask of stores that coherence must put before it}"""
        writes = self.g.writes[loc]
        mine = sum(1 << w for w in writes)
        return {w: self.causes(before, w) & mine for w in writes}

    def location_ok(self, before, loc, co):
        for r in [r for r in self.g.reads_of[loc] if r in self.rf]:
            w, cause = self.rf[r], self.causes(before, r)
            if self.causes(before, w) >> r & 1:
                return False
            if any(co[x] >> w & 1 and cause >> x & 1 for x in co):
                return False
        edges = {i: 0 for i in self.g.reads_of[loc] + self.g.writes[loc]}
        for a, b, program_order in self.pairs[loc]:
            if program_order or self.communicates(a, b, co):
                edges[a] |= 1 << b
        return acyclic(edges)

    def communicates(self, a, b, co):
        """a is read by b, overwritten by b, or reads what b overwrites."""
        if self.ops[b].kind == "ld":
            return self.rf.get(b) == a
        seen = self.rf.get(a) if self.ops[a].kind == "ld" else a
        return seen is not None and bool(co[b] >> seen & 1)

    def coherences(self, before):
        """Every way to order the morally strong stores that causality leaves unordered."""
        choices = []
        for loc, writes in self.g.writes.items():
            co = self.forced(before, loc)
            loose = [(a, b) for a, b in itertools.combinations(writes, 2)
                     if morally_strong(self.ops[a], self.ops[b])
                     and not (co[a] >> b & 1 or co[b] >> a & 1)]
            orders = [o for o in self.orders(co, loose) if self.location_ok(before, loc, o)]
            choices.append(orders)
        for chosen in itertools.product(*choices):
            yield {w: m for co in chosen for w, m in co.items()}

    @staticmethod
    def orders(co, loose):
        for turn in itertools.product((0, 1), repeat=len(loose)):
            new = dict(co)
            for pair, t in zip(loose, turn):
                new[pair[1 - t]] |= 1 << pair[t]
            for k, i in itertools.product(new, new):  # transitive closure
                if new[i] >> k & 1:
                    new[i] |= new[k]
            if not any(new[i] >> i & 1 for i in new):
                yield new

    def from_air(self):
        """A poll is fed by a store that depends on its success."""
        if all(self.ops[r].sem == "acquire" for r in self.order if self.ops[r].until):
            return False
        edges = {i: 0 for i in range(len(self.ops))}
        for r, w in self.rf.items():
            edges[w] |= 1 << r
            if self.ops[r].until:
                for i, op in enumerate(self.ops):
                    if op.kind == "st" and self.g.before[i] >> r & 1:
                        edges[r] |= 1 << i
        return not acyclic(edges)


class Execution:
    def __init__(self, graph, rf, before, co):
        self.g, self.ops, self.rf, self.before, self.co = graph, graph.ops, rf, before, co

    def values(self):
        """{label of a load: its value}"""
        return {self.ops[r].label: self.ops[w].value for r, w in self.rf.items()
                if self.ops[r].label}

    def wrong(self):
        for r, w in sorted(self.rf.items()):
            expect = self.ops[r].expect
            if expect is not None and self.ops[w].value != expect:
                return f"wrong: {self.ops[r]} got {self.ops[w].value}, must get {expect}"
        return None

    def race(self):
        for loc, writes in self.g.writes.items():
            for w, x in itertools.product(writes, writes + self.g.reads_of[loc]):
                if self.unordered(w, x):
                    return f"race: {self.ops[w]} with {self.ops[x]}"
        return None

    def unordered(self, a, b):
        ordered = self.before[a] >> b & 1 or self.before[b] >> a & 1
        return a != b and not ordered and not morally_strong(self.ops[a], self.ops[b])

    def may_stay(self, op):
        """Can a value that fails this poll be the last of its location?"""
        return any(not op.until(self.ops[w].value) and
                   not any(self.co[x] >> w & 1 for x in self.g.writes[op.loc])
                   for w in self.g.writes[op.loc])


def executions(program):
    return Search(Graph(program)).run()


def outcomes(program):
    """The set of results, each a tuple of (label, value) of the labelled loads."""
    return {tuple(sorted(e.values().items())) for e in executions(program)}


def stuck_fault(program):
    polls = [[None] + [op for op in t.ops if op.until] for t in program.threads]
    for chosen in itertools.product(*polls):
        stuck = [op for op in chosen if op]
        if not stuck:
            continue
        graph = Graph(program, stuck)
        if len(graph.reached) != len(stuck) or not all(may_fail(graph, op) for op in stuck):
            continue
        for e in Search(graph).run():
            if all(e.may_stay(op) for op in stuck):
                return "stuck: " + "; ".join(map(str, stuck))
    return None


def may_fail(graph, op):
    return any(not op.until(graph.ops[w].value) for w in graph.static_last(op.loc))


def fault(program, races=True):
    """(None, number of executions) of a safe program, else (text of the first fault, number)."""
    count = 0
    for count, e in enumerate(executions(program), 1):
        text = e.wrong() or (races and e.race())
        if text:
            return text, count
    return stuck_fault(program), count
