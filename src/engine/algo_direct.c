/*
 * Direct: every rank exchanges with every other, in one or two hops. Right
 * where all pairs are equally near: shared memory, a switch.
 *
 * Direct mode reads each input byte once and writes each output byte once, the
 * lower bound: all data moves by loads from the peers' IN and stores to their
 * OUT. The exit waits guard the user's next use of a buffer that a peer still
 * touches. In copy mode everything is sent first and taken afterwards.
 */
#include <stddef.h>

#include "engine/build.h"

static struct cm_operand own(const struct cm_plan *p, enum cm_space space, int chunk)
{
    return cm_place(space, p->rank, cm_at(chunk));
}

/* The k-th rank after me: all start at another peer, so that they do not crowd at one. */
static int after(const struct cm_plan *p, int k)
{
    return (p->rank + k) % p->n;
}

/* Copy mode: send IN chunk r to rank r, for all others. */
static void send_to_each(struct cm_plan *p)
{
    for (int k = 1; k < p->n; k++) {
        int r = after(p, k);

        cm_copy_fold(p, own(p, CM_IN, r), cm_port(r, CM_IN, cm_at(r)));
    }
}

/* Copy mode: take OUT chunk r from rank r, for all others, in the order in which they send. */
static void recv_from_each(struct cm_plan *p)
{
    for (int k = 1; k < p->n; k++) {
        int r = after(p, p->n - k);

        cm_copy_fold(p, cm_port(r, CM_OUT, cm_at(r)), own(p, CM_OUT, r));
    }
}

/* Add the open fold's destination at every other rank. */
static void to_others(struct cm_plan *p, enum cm_space numbering, int chunk)
{
    for (int k = 1; k < p->n; k++)
        cm_to(p, cm_port(after(p, k), numbering, cm_at(chunk)));
}

static void leave(struct cm_plan *p)
{
    cm_add_fold(p);
    cm_wait_others(p, CM_PHASE_DONE);
}

/*
 * Rank r reduces piece r. Copy: two hops, each rank sends 2(n-1)/n of the
 * vector. Direct: one pass, loads and stores of the same amount.
 */
static enum cm_status all_reduce(const struct cm_build_args *a, struct cm_plan *p)
{
    int me = a->rank;

    p->pieces = a->n;
    cm_add_worker(p, 0);
    if (a->mode == CM_MODE_COPY) {
        p->min_depth = 2; /* the result follows the contribution through the same port */
        send_to_each(p);
        cm_add_fold(p);
        cm_from_all(p, cm_at(me));
        cm_to(p, own(p, CM_OUT, me));
        to_others(p, CM_OUT, me);
        cm_complete(p);
        recv_from_each(p);
        return p->status;
    }
    cm_arrive(p);
    cm_add_fold(p);
    cm_wait_others(p, 1);
    cm_from_all(p, cm_at(me));
    for (int k = 0; k < a->n; k++)
        cm_to(p, cm_place(CM_OUT, after(p, k), cm_at(me)));
    cm_complete(p);
    leave(p);
    return p->status;
}

/* One hop, (n-1)/n of the vector. */
static enum cm_status reduce_scatter(const struct cm_build_args *a, struct cm_plan *p)
{
    cm_add_worker(p, 0);
    if (a->mode == CM_MODE_COPY)
        send_to_each(p);
    else
        cm_arrive(p);
    cm_add_fold(p);
    if (a->mode == CM_MODE_DIRECT)
        cm_wait_others(p, 1);
    cm_from_all(p, cm_at(a->rank));
    cm_to(p, own(p, CM_OUT, 0));
    cm_complete(p);
    if (a->mode == CM_MODE_DIRECT)
        leave(p);
    return p->status;
}

/* Direct mode: load IN chunk `k` of every rank, one fold each, so that early ranks come first. */
static void pull_from_each(struct cm_plan *p, int k)
{
    cm_arrive(p);
    cm_copy_fold(p, own(p, CM_IN, k), own(p, CM_OUT, p->rank));
    for (int d = 1; d < p->n; d++) {
        int r = after(p, d);

        cm_copy_fold(p, cm_place(CM_IN, r, cm_at(k)), own(p, CM_OUT, r));
        cm_wait_rank(p, r, 1);
    }
    leave(p);
}

/* One hop, (n-1)/n of the vector. */
static enum cm_status all_gather(const struct cm_build_args *a, struct cm_plan *p)
{
    cm_add_worker(p, 0);
    if (a->mode == CM_MODE_DIRECT) {
        pull_from_each(p, 0);
        return p->status;
    }
    cm_copy_fold(p, own(p, CM_IN, 0), own(p, CM_OUT, a->rank));
    to_others(p, CM_IN, 0);
    recv_from_each(p);
    return p->status;
}

/* One hop, (n-1)/n of the vector. alltoallv is the same plan over blocks of unequal lengths. */
static enum cm_status alltoall(const struct cm_build_args *a, struct cm_plan *p)
{
    cm_add_worker(p, 0);
    if (a->mode == CM_MODE_DIRECT) {
        pull_from_each(p, a->rank);
        return p->status;
    }
    send_to_each(p);
    cm_copy_fold(p, own(p, CM_IN, a->rank), own(p, CM_OUT, a->rank));
    recv_from_each(p);
    return p->status;
}

/* Direct mode: load IN chunk `k` of the root; only the root has anything to wait for afterwards. */
static void pull_from_root(struct cm_plan *p, int k)
{
    if (p->rank == p->root) {
        cm_arrive(p);
        cm_copy_fold(p, own(p, CM_IN, k), own(p, CM_OUT, 0));
        leave(p);
    } else {
        cm_copy_fold(p, cm_place(CM_IN, p->root, cm_at(k)), own(p, CM_OUT, 0));
        cm_wait_rank(p, p->root, 1);
    }
}

static void recv_from_root(struct cm_plan *p)
{
    cm_copy_fold(p, cm_port(p->root, CM_OUT, cm_at(0)), own(p, CM_OUT, 0));
}

/* One hop. Copy: the root sends the vector n-1 times; direct: each other rank loads it once. */
static enum cm_status broadcast(const struct cm_build_args *a, struct cm_plan *p)
{
    cm_add_worker(p, 0);
    if (a->mode == CM_MODE_DIRECT) {
        pull_from_root(p, 0);
    } else if (a->rank == a->root) {
        cm_copy_fold(p, own(p, CM_IN, 0), own(p, CM_OUT, 0));
        to_others(p, CM_IN, 0);
    } else {
        recv_from_root(p);
    }
    return p->status;
}

/* One hop. Copy: the root sends (n-1)/n of the vector; direct: each other rank loads 1/n. */
static enum cm_status scatter(const struct cm_build_args *a, struct cm_plan *p)
{
    cm_add_worker(p, 0);
    if (a->mode == CM_MODE_DIRECT) {
        pull_from_root(p, a->rank);
    } else if (a->rank == a->root) {
        send_to_each(p);
        cm_copy_fold(p, own(p, CM_IN, a->rank), own(p, CM_OUT, 0));
    } else {
        recv_from_root(p);
    }
    return p->status;
}

static void send_to_root(struct cm_plan *p)
{
    cm_copy_fold(p, own(p, CM_IN, 0), cm_port(p->root, CM_IN, cm_at(0)));
}

/*
 * One hop. Copy: every rank sends the vector, the root reduces. Direct: all
 * share the work, rank r reduces piece r of all inputs into the root's OUT.
 */
static enum cm_status reduce(const struct cm_build_args *a, struct cm_plan *p)
{
    bool direct = a->mode == CM_MODE_DIRECT;
    int piece = direct ? a->rank : 0;

    cm_add_worker(p, 0);
    if (!direct && a->rank != a->root) {
        send_to_root(p);
        return p->status;
    }
    if (direct) {
        p->pieces = a->n;
        cm_arrive(p);
    }
    cm_add_fold(p);
    if (direct)
        cm_wait_others(p, 1);
    cm_from_all(p, cm_at(piece));
    cm_to(p, cm_place(CM_OUT, a->root, cm_at(piece)));
    cm_complete(p);
    if (direct)
        leave(p);
    return p->status;
}

/* One hop. Copy: each other rank sends its block; direct: it stores it into the root's OUT. */
static enum cm_status gather(const struct cm_build_args *a, struct cm_plan *p)
{
    bool direct = a->mode == CM_MODE_DIRECT;

    cm_add_worker(p, 0);
    if (a->rank == a->root) {
        if (direct)
            cm_arrive(p);
        cm_copy_fold(p, own(p, CM_IN, 0), own(p, CM_OUT, a->rank));
        if (direct)
            leave(p);
        else
            recv_from_each(p);
    } else if (direct) {
        cm_copy_fold(p, own(p, CM_IN, 0), cm_place(CM_OUT, a->root, cm_at(a->rank)));
        cm_wait_rank(p, a->root, 1);
    } else {
        send_to_root(p);
    }
    return p->status;
}

enum cm_status cm_build_sendrecv(const struct cm_build_args *a, struct cm_plan *p)
{
    int next = after(p, 1), prev = after(p, p->n - 1);

    cm_add_worker(p, 0);
    if (a->mode == CM_MODE_COPY) {
        cm_copy_fold(p, own(p, CM_IN, 0), cm_port(next, CM_IN, cm_at(0)));
        cm_copy_fold(p, cm_port(prev, CM_OUT, cm_at(0)), own(p, CM_OUT, 0));
        return p->status;
    }
    cm_arrive(p);
    cm_copy_fold(p, cm_place(CM_IN, prev, cm_at(0)), own(p, CM_OUT, 0));
    cm_wait_rank(p, prev, 1);
    cm_add_fold(p);
    cm_wait_rank(p, next, CM_PHASE_DONE);
    return p->status;
}

/*
 * One-shot all_reduce, for short messages: every rank reduces everything, in
 * one hop; n-1 times the vector. Direct mode reduces into SCRATCH and stores
 * to OUT when all have read, because OUT may be the IN that others still read.
 */
static enum cm_status oneshot(const struct cm_build_args *a, struct cm_plan *p)
{
    cm_add_worker(p, 0);
    if (a->mode == CM_MODE_COPY) {
        cm_add_fold(p);
        cm_from(p, own(p, CM_IN, 0));
        to_others(p, CM_IN, 0);
        cm_add_fold(p);
        cm_from_all(p, cm_at(0));
        cm_to(p, own(p, CM_OUT, 0));
        cm_complete(p);
        return p->status;
    }
    p->scratch = 1;
    cm_arrive(p);
    cm_add_fold(p);
    cm_wait_others(p, 1);
    cm_from_all(p, cm_at(0));
    cm_to(p, own(p, CM_SCRATCH, 0));
    cm_complete(p);
    cm_post(p);
    cm_copy_fold(p, own(p, CM_SCRATCH, 0), own(p, CM_OUT, 0));
    cm_wait_others(p, 2);
    return p->status;
}

cm_build_fn *const cm_direct_builders[CM_NCOLLS] = {
    [CM_ALL_REDUCE] = all_reduce,
    [CM_ALL_GATHER] = all_gather,
    [CM_REDUCE_SCATTER] = reduce_scatter,
    [CM_BROADCAST] = broadcast,
    [CM_REDUCE] = reduce,
    [CM_ALLTOALL] = alltoall,
    [CM_ALLTOALLV] = alltoall,
    [CM_GATHER] = gather,
    [CM_SCATTER] = scatter,
    [CM_SENDRECV] = cm_build_sendrecv,
};

cm_build_fn *const cm_oneshot_builders[CM_NCOLLS] = {
    [CM_ALL_REDUCE] = oneshot,
};
