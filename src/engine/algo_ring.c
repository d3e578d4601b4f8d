/*
 * Ring: each rank talks to its neighbours in ring order only. Chains (rooted
 * collectives) are rings cut at the root.
 *
 * Everything is a sequence of equal steps: take what the previous rank sent,
 * fold my own chunk into it, keep it, send it on. Sending is, in copy mode, a
 * slot of the port; in direct mode the store into a place of mine that the
 * next rank reads: OUT, where the chunk is an output here anyway, or one of
 * two alternating chunks of SCRATCH. A line counts finished steps.
 *
 * Sources: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms (2009).
 */
#include <stddef.h>

#include "engine/build.h"

/* What a step does, in this order. */
enum {
    RECV = 1,     /* take what the previous rank sent */
    OWN = 2,      /* take my IN chunk */
    KEEP = 4,     /* store to my OUT */
    SEND = 8,     /* hand on to the next rank */
    COMPLETE = 16 /* the result holds every contribution */
};

enum {
    STAGES = 2,  /* SCRATCH chunks that sending alternates between */
    PIPELINE = 8 /* pieces in flight along a chain, direct mode */
};

struct ring {
    struct cm_plan *p;
    bool copy;
    int prev, next;        /* ranks */
    int lag;               /* a step takes what prev sent `lag` steps before: rings 1, chains 0 */
    enum cm_space stage;   /* direct mode: where the next rank finds what I send */
    struct cm_index chunk; /* chunk of step 0 and change from step to step */
    int done;              /* steps written so far */
    bool sends;
};

static struct ring open_ring(const struct cm_build_args *a, struct cm_plan *p)
{
    int pos = cm_position(a, a->rank);

    cm_add_worker(p, 0);
    return (struct ring){
        .p = p,
        .copy = a->mode == CM_MODE_COPY,
        .prev = cm_rank_at(a, cm_wrap(pos - 1, a->n)),
        .next = cm_rank_at(a, cm_wrap(pos + 1, a->n)),
        .stage = CM_OUT,
    };
}

/* Step s handles the chunk that belongs to ring position first - s. */
static void walk_back(struct ring *r, const struct cm_build_args *a, int first)
{
    r->chunk = cm_modulo(first, -1, a->n);
    r->chunk.perm = true;
    cm_add_perm(r->p, a);
}

/* Step s sends to stage (s mod STAGES). */
static void use_scratch(struct ring *r)
{
    r->stage = CM_SCRATCH;
    r->p->scratch = r->copy ? 0 : STAGES;
}

/* The chunk of this step; 0 in a space of one block where the other has one block per rank. */
static struct cm_index chunk_in(const struct ring *r, enum cm_space space)
{
    const struct cm_coll_info *info = &cm_colls[r->p->coll];
    bool many = space == CM_IN ? info->in_per_rank : info->out_per_rank;
    bool other = space == CM_IN ? info->out_per_rank : info->in_per_rank;
    struct cm_index c = r->chunk;

    if (other && !many)
        return cm_at(0);
    c.base += c.c0 * r->done;
    return c;
}

/* Where `rank` leaves what it sends in its step `ago` steps before this one. */
static struct cm_operand staged(const struct ring *r, int rank, int ago)
{
    if (r->stage == CM_OUT)
        return cm_place(CM_OUT, rank, chunk_in(r, CM_OUT));
    return cm_place(CM_SCRATCH, rank, cm_modulo(r->done - ago, 1, STAGES));
}

static struct cm_operand port(const struct ring *r, int peer)
{
    enum cm_space numbering = cm_colls[r->p->coll].in_per_rank ? CM_IN : CM_OUT;

    return cm_port(peer, numbering, chunk_in(r, numbering));
}

static void recv_chunk(const struct ring *r)
{
    if (r->copy) {
        cm_from(r->p, port(r, r->prev));
        return;
    }
    cm_wait(r->p, r->prev, 0, cm_affine(r->done + 1 - r->lag, 1));
    cm_from(r->p, staged(r, r->prev, r->lag));
}

/*
 * Send, in each of `count` steps. From step STAGES on a stage of SCRATCH is
 * free when the next rank has taken what I sent STAGES steps before.
 */
static void send_chunk(const struct ring *r, int count, bool kept)
{
    if (r->copy) {
        cm_to(r->p, port(r, r->next));
        return;
    }
    if (r->stage == CM_SCRATCH && r->done + count > STAGES)
        cm_wait(r->p, r->next, 0, cm_affine(r->done + 1 + r->lag - STAGES, 1));
    if (r->stage == CM_SCRATCH || !kept)
        cm_to(r->p, staged(r, r->p->rank, 0));
}

/* Does a neighbour look for these steps in my line: next for what I sent, prev for a free stage? */
static bool is_counted(const struct ring *r, int count, int what)
{
    bool last = count == 1 && (what & RECV);

    return !r->copy && ((what & SEND) || (r->stage == CM_SCRATCH && !last));
}

/* Write `count` equal steps. */
static void steps(struct ring *r, int count, int what)
{
    struct cm_plan *p = r->p;

    if (count <= 0)
        return;
    if (count > 1)
        cm_add_loop(p, count);
    cm_add_fold(p);
    if (what & RECV)
        recv_chunk(r);
    if (what & OWN)
        cm_from(p, cm_place(CM_IN, p->rank, chunk_in(r, CM_IN)));
    if (what & KEEP)
        cm_to(p, cm_place(CM_OUT, p->rank, chunk_in(r, CM_OUT)));
    if (what & SEND)
        send_chunk(r, count, what & KEEP);
    if (what & COMPLETE)
        cm_complete(p);
    if (is_counted(r, count, what))
        cm_post(p);
    if (count > 1)
        cm_add_end(p);
    r->done += count;
    r->sends = r->sends || (what & SEND);
}

/* Leave when the next rank has taken all that I sent. */
static enum cm_status close_ring(struct ring *r)
{
    if (!r->copy && r->sends) {
        cm_add_fold(r->p);
        cm_wait_rank(r->p, r->next, CM_PHASE_DONE);
    }
    return r->p->status;
}

/*
 * 2(n-1) steps, each rank sends 2(n-1)/n of the vector, no scratch. Piece k
 * starts at position k + 1, gathers one contribution per step until it is
 * complete at position k, then travels once more as a copy.
 */
static enum cm_status all_reduce(const struct cm_build_args *a, struct cm_plan *p)
{
    struct ring r = open_ring(a, p);

    p->pieces = a->n;
    p->min_depth = 2; /* taking and sending in one fold, around a ring */
    walk_back(&r, a, cm_position(a, a->rank) - 1);
    r.lag = 1;
    steps(&r, 1, OWN | SEND);
    steps(&r, a->n - 2, RECV | OWN | SEND);
    steps(&r, 1, RECV | OWN | KEEP | SEND | COMPLETE);
    steps(&r, a->n - 2, RECV | KEEP | SEND);
    steps(&r, 1, RECV | KEEP);
    return close_ring(&r);
}

/* The first half of all_reduce: n-1 steps, (n-1)/n of the vector, two blocks of scratch. */
static enum cm_status reduce_scatter(const struct cm_build_args *a, struct cm_plan *p)
{
    struct ring r = open_ring(a, p);

    p->min_depth = a->n > 2 ? 2 : 1;
    walk_back(&r, a, cm_position(a, a->rank) - 1);
    use_scratch(&r);
    r.lag = 1;
    steps(&r, 1, OWN | SEND);
    steps(&r, a->n - 2, RECV | OWN | SEND);
    steps(&r, 1, RECV | OWN | KEEP | COMPLETE);
    return close_ring(&r);
}

/* The second half: n-1 steps, (n-1)/n of the vector, no scratch. */
static enum cm_status all_gather(const struct cm_build_args *a, struct cm_plan *p)
{
    struct ring r = open_ring(a, p);

    p->min_depth = a->n > 2 ? 2 : 1;
    walk_back(&r, a, cm_position(a, a->rank));
    r.lag = 1;
    steps(&r, 1, OWN | KEEP | SEND);
    steps(&r, a->n - 2, RECV | KEEP | SEND);
    steps(&r, 1, RECV | KEEP);
    return close_ring(&r);
}

/* Steps along the ring from one rank to another. */
static int distance(const struct cm_build_args *a, int from, int to)
{
    return cm_wrap(cm_position(a, to) - cm_position(a, from), a->n);
}

/* In copy mode the passes are the pipeline. */
static void use_pieces(struct ring *r)
{
    r->p->pieces = r->copy ? 1 : PIPELINE;
    r->chunk = cm_affine(0, 1);
}

/* Chain from the root: every rank but the last sends the vector once; n-1 hops, pipelined. */
static enum cm_status broadcast(const struct cm_build_args *a, struct cm_plan *p)
{
    int hops = distance(a, a->root, a->rank);
    struct ring r = open_ring(a, p);

    use_pieces(&r);
    steps(&r, p->pieces, (hops == 0 ? OWN : RECV) | KEEP | (hops < a->n - 1 ? SEND : 0));
    return close_ring(&r);
}

/* Chain to the root: every other rank sends the vector once, two pieces of scratch. */
static enum cm_status reduce(const struct cm_build_args *a, struct cm_plan *p)
{
    int hops = distance(a, a->rank, a->root);
    struct ring r = open_ring(a, p);

    use_pieces(&r);
    use_scratch(&r);
    steps(&r, p->pieces, (hops < a->n - 1 ? RECV : 0) | OWN | (hops > 0 ? SEND : KEEP | COMPLETE));
    return close_ring(&r);
}

/*
 * Chain to the root: a rank sends its own block, then hands on those of the
 * ranks behind it, nearest first. The root's neighbour sends (n-1)/n of the
 * vector; two blocks of scratch.
 */
static enum cm_status gather(const struct cm_build_args *a, struct cm_plan *p)
{
    int hops = distance(a, a->rank, a->root);
    struct ring r = open_ring(a, p);

    walk_back(&r, a, cm_position(a, a->rank));
    use_scratch(&r);
    r.lag = 1;
    steps(&r, 1, OWN | (hops > 0 ? SEND : KEEP));
    steps(&r, a->n - 1 - hops, RECV | (hops > 0 ? SEND : KEEP));
    return close_ring(&r);
}

/* The reverse: the farthest rank's block leaves first, each rank keeps the last one it gets. */
static enum cm_status scatter(const struct cm_build_args *a, struct cm_plan *p)
{
    int hops = distance(a, a->root, a->rank);
    int source = hops == 0 ? OWN : RECV;
    struct ring r = open_ring(a, p);

    walk_back(&r, a, cm_position(a, a->root) - 1);
    use_scratch(&r);
    steps(&r, a->n - 1 - hops, source | SEND);
    steps(&r, 1, source | KEEP);
    return close_ring(&r);
}

cm_build_fn *const cm_ring_builders[CM_NCOLLS] = {
    [CM_ALL_REDUCE] = all_reduce,
    [CM_ALL_GATHER] = all_gather,
    [CM_REDUCE_SCATTER] = reduce_scatter,
    [CM_BROADCAST] = broadcast,
    [CM_REDUCE] = reduce,
    [CM_GATHER] = gather,
    [CM_SCATTER] = scatter,
    [CM_SENDRECV] = cm_build_sendrecv,
};
