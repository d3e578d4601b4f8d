/*
 * Recursive doubling: partners at distances 1, 2, 4, ...; log2 n steps, for
 * short messages.
 *
 * all_reduce: in step k two groups of 2^k ranks exchange their partial results
 * and both fold "lower group, higher group", so that all ranks compute the
 * same expression. If n is no power of two, the ranks beyond it first give
 * their input to a neighbour and get the result back at the end.
 * all_gather: in the step at distance d a rank takes the first d blocks of the
 * rank d away (xor for powers of two, else modulo n: dissemination).
 *
 * Sources: Thakur, Rabenseifner, Gropp: Optimization of collective
 * communication operations in MPICH (2005); Bruck et al. (1997).
 */
#include <stddef.h>

#include "engine/build.h"

struct cm_group cm_group_of(int n)
{
    struct cm_group g = {.size = 1};

    while (2 * g.size <= n) {
        g.size *= 2;
        g.steps++;
    }
    g.spare = n - g.size;
    return g;
}

int cm_group_partner(const struct cm_group *g, int member, int k)
{
    int v = cm_group_has_pair(g, member) ? member / 2 : member - g->spare;
    int w = v ^ 1 << k;

    return w < g->spare ? 2 * w + 1 : w + g->spare;
}

/* Two sources in rank order. */
static void from_two(struct cm_plan *p, int peer, struct cm_operand theirs, struct cm_operand mine)
{
    cm_from(p, peer < p->rank ? theirs : mine);
    cm_from(p, peer < p->rank ? mine : theirs);
}

/* S log2 n sent per rank, no scratch: the partial result lives in OUT. */
static void reduce_by_copy(struct cm_plan *p, const struct cm_group *g)
{
    struct cm_operand out = cm_place(CM_OUT, p->rank, cm_at(0));
    struct cm_operand mine = cm_place(CM_IN, p->rank, cm_at(0));
    int first = cm_group_has_pair(g, p->rank) ? -1 : 0;

    for (int k = first; k < g->steps; k++) {
        int peer = k < 0 ? p->rank - 1 : cm_group_partner(g, p->rank, k);
        struct cm_operand port = cm_port(peer, CM_OUT, cm_at(0));

        if (k >= 0)
            cm_copy_fold(p, mine, port);
        cm_add_fold(p);
        from_two(p, peer, port, mine);
        cm_to(p, out);
        if (k == g->steps - 1)
            cm_complete(p);
        mine = out;
    }
    if (first < 0)
        cm_copy_fold(p, out, cm_port(p->rank - 1, CM_OUT, cm_at(0)));
}

/* The idle rank of a pair: give IN, get OUT. */
static void idle_by_copy(struct cm_plan *p)
{
    struct cm_operand port = cm_port(p->rank + 1, CM_OUT, cm_at(0));

    cm_copy_fold(p, cm_place(CM_IN, p->rank, cm_at(0)), port);
    cm_copy_fold(p, port, cm_place(CM_OUT, p->rank, cm_at(0)));
}

/*
 * Direct mode: a rank's j-th partial result; 0 is its IN. They alternate
 * between SCRATCH and OUT, which may be the same memory as IN. Its line shows
 * j + 1 when the j-th can be read.
 */
static struct cm_operand partial(int rank, int j)
{
    return cm_place(j == 0 ? CM_IN : j % 2 ? CM_SCRATCH : CM_OUT, rank, cm_at(0));
}

/* Wait until the partner of step k has made the result of that step: it has read mine. */
static void wait_has_read(struct cm_plan *p, const struct cm_group *g, int k)
{
    int peer = cm_group_partner(g, p->rank, k);

    cm_wait_rank(p, peer, k + 1 + cm_group_has_pair(g, peer) + 1);
}

/* Phase at which the whole result stands in an active rank's OUT. */
static int last_phase(const struct cm_group *g, int rank)
{
    int j = g->steps + cm_group_has_pair(g, rank);

    return j % 2 ? j + 2 : j + 1;
}

/* Fold my j-th partial result and one of `peer` into my next; it overwrites the one before. */
static void reduce_step(struct cm_plan *p, int j, int peer, int their_j)
{
    cm_add_fold(p);
    cm_wait_rank(p, peer, their_j + 1);
    from_two(p, peer, partial(peer, their_j), partial(p->rank, j));
    cm_to(p, partial(p->rank, j + 1));
    cm_post(p);
}

/* S log2 n loaded per rank, one vector of scratch. */
static void reduce_by_loads(struct cm_plan *p, const struct cm_group *g)
{
    int j = cm_group_has_pair(g, p->rank);

    cm_arrive(p);
    if (j > 0)
        reduce_step(p, 0, p->rank - 1, 0);
    for (int k = 0; k < g->steps; k++, j++) {
        int peer = cm_group_partner(g, p->rank, k);

        reduce_step(p, j, peer, k + cm_group_has_pair(g, peer));
        if (k > 0)
            wait_has_read(p, g, k - 1);
        if (k == g->steps - 1)
            cm_complete(p);
    }
    cm_add_fold(p);
    wait_has_read(p, g, g->steps - 1);
    if (j % 2 == 1) {
        cm_from(p, partial(p->rank, j));
        cm_to(p, cm_place(CM_OUT, p->rank, cm_at(0)));
        if (cm_group_has_pair(g, p->rank))
            cm_post(p);
    }
    if (cm_group_has_pair(g, p->rank)) {
        cm_add_fold(p);
        cm_wait_rank(p, p->rank - 1, CM_PHASE_DONE);
    }
}

static void idle_by_loads(struct cm_plan *p, const struct cm_group *g)
{
    int actor = p->rank + 1;

    cm_arrive(p);
    cm_copy_fold(p, cm_place(CM_OUT, actor, cm_at(0)), cm_place(CM_OUT, p->rank, cm_at(0)));
    cm_wait_rank(p, actor, last_phase(g, actor));
}

static enum cm_status all_reduce(const struct cm_build_args *a, struct cm_plan *p)
{
    struct cm_group g = cm_group_of(a->n);

    cm_add_worker(p, 0);
    if (a->mode == CM_MODE_COPY && cm_group_idle(&g, a->rank)) {
        idle_by_copy(p);
    } else if (a->mode == CM_MODE_COPY) {
        reduce_by_copy(p, &g);
    } else {
        p->scratch = 1;
        if (cm_group_idle(&g, a->rank))
            idle_by_loads(p, &g);
        else
            reduce_by_loads(p, &g);
    }
    return p->status;
}

/* The blocks of all_gather in the order in which a rank gets them, its own first. */
static struct cm_index block(const struct cm_plan *p, bool pow2, int k)
{
    return pow2 ? cm_xor(p->rank ^ k, 1) : cm_modulo(p->rank + k, 1, p->n);
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/*
 * log2 n steps, (n-1)/n of the vector, no scratch. In the step at distance d a
 * rank takes from its source the blocks that are number 0 .. d-1 there and
 * become number d .. 2d-1 here. Direct mode: a line counts the blocks held.
 */
static enum cm_status all_gather(const struct cm_build_args *a, struct cm_plan *p)
{
    int me = a->rank, n = a->n;
    bool pow2 = (n & (n - 1)) == 0;
    bool direct = a->mode == CM_MODE_DIRECT;

    cm_add_worker(p, 0);
    cm_copy_fold(p, cm_place(CM_IN, me, cm_at(0)), cm_place(CM_OUT, me, cm_at(me)));
    if (direct)
        cm_post(p);
    for (int d = 1; d < n; d *= 2) {
        int source = pow2 ? me ^ d : (me + d) % n;
        int sink = pow2 ? me ^ d : cm_wrap(me - d, n);
        struct cm_index mine = block(p, pow2, 0), theirs = block(p, pow2, d);

        cm_add_loop(p, min_int(d, n - d));
        if (direct) {
            cm_copy_fold(p, cm_place(CM_OUT, source, theirs), cm_place(CM_OUT, me, theirs));
            cm_wait(p, source, 0, cm_affine(1, 1));
            cm_post(p);
        } else {
            cm_copy_fold(p, cm_place(CM_OUT, me, mine), cm_port(sink, CM_OUT, mine));
            cm_copy_fold(p, cm_port(source, CM_OUT, theirs), cm_place(CM_OUT, me, theirs));
        }
        cm_add_end(p);
    }
    for (int d = 1; direct && d < n; d *= 2) {
        cm_add_fold(p);
        cm_wait_rank(p, pow2 ? me ^ d : cm_wrap(me - d, n), min_int(2 * d, n));
    }
    return p->status;
}

cm_build_fn *const cm_recdbl_builders[CM_NCOLLS] = {
    [CM_ALL_REDUCE] = all_reduce,
    [CM_ALL_GATHER] = all_gather,
    [CM_HYPERCUBE] = all_gather,
};
