/*
 * Double binary tree: two trees over the ranks, each carries one half of the
 * vector (a channel), and no rank is an inner node of both, so that every rank
 * sends and receives about the same amount in 2 log2 n hops.
 *
 * A tree is the in-order binary tree over places 1 .. m: place k stands at the
 * height of its lowest set bit, odd places are leaves. The second tree uses
 * the mirror image (m even) or a shift by one (m odd), which swaps odd and
 * even. all_reduce: m = n. Rooted: m = n - 1, the root stands above both trees.
 * In copy mode the passes are the pipeline, in direct mode the pieces are.
 *
 * Source: Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth
 * broadcast, reduction and scan (2009).
 */
#include <stddef.h>

#include "engine/build.h"

enum {
    TREES = 2,
    STAGES = 2,  /* SCRATCH chunks that a rank's partial results alternate between */
    PIPELINE = 8 /* pieces in flight, direct mode */
};

struct tree {
    const struct cm_build_args *a;
    struct cm_plan *p;
    bool copy;
    int which;           /* 0 or 1; also the channel */
    int m;               /* places */
    int top;             /* rank above the tree, -1: none */
    int start;           /* ring position of the first place */
    int up, down;        /* number of the workers towards and from the top, the same on all ranks */
    enum cm_space stage; /* direct mode: where a parent finds the partial result of an inner node */
};

struct node {
    int parent; /* rank, -1: none */
    int nkids;
    int nbefore; /* so many children stand before this rank in the order of reduction */
    int kids[2];
};

/* The place above k (0: k is the top): its regular parent, or the next ancestor that exists. */
static int place_above(int k, int m)
{
    int bit = k & -k;
    int up = (k ^ bit) | bit << 1;

    return up <= m ? up : k ^ bit;
}

/* Place 0 is the root of a rooted tree, which starts behind it in ring order. */
static int rank_at_place(const struct tree *t, int k)
{
    int x = k - 1;

    if (k == 0)
        return t->top;
    if (t->which == 1)
        x = t->m % 2 == 0 ? t->m - 1 - x : cm_wrap(x - 1, t->m);
    return cm_rank_at(t->a, (x + t->start) % t->a->n);
}

static int place_of(const struct tree *t, int rank)
{
    int k = t->top >= 0 ? 0 : 1;

    while (rank_at_place(t, k) != rank)
        k++;
    return k;
}

static struct node node_of(const struct tree *t, int rank)
{
    int k = place_of(t, rank);
    struct node v = {.parent = k == 0 ? -1 : rank_at_place(t, place_above(k, t->m))};

    for (int c = 1; c <= t->m; c++) {
        if (place_above(c, t->m) != k)
            continue;
        v.nbefore += c < k;
        v.kids[v.nkids++] = rank_at_place(t, c);
    }
    return v;
}

static struct cm_index piece(void)
{
    return cm_affine(0, 1);
}

static struct cm_operand staged(const struct tree *t, int rank)
{
    return cm_place(t->stage, rank, t->stage == CM_OUT ? piece() : cm_modulo(0, 1, STAGES));
}

/* Take the partial result of a child. A leaf's is its IN, there as soon as it has arrived. */
static void from_kid(const struct tree *t, int kid)
{
    if (t->copy) {
        cm_from(t->p, cm_port(kid, CM_IN, piece()));
    } else if (node_of(t, kid).nkids == 0) {
        cm_wait(t->p, kid, t->up, cm_at(1));
        cm_from(t->p, cm_place(CM_IN, kid, piece()));
    } else {
        cm_wait(t->p, kid, t->up, cm_affine(1, 1));
        cm_from(t->p, staged(t, kid));
    }
}

/* Give mine to the parent. A stage of SCRATCH is free when the parent took what it held before. */
static void to_parent(const struct tree *t, int parent)
{
    if (t->copy) {
        cm_to(t->p, cm_port(parent, CM_IN, piece()));
        return;
    }
    if (t->stage == CM_SCRATCH)
        cm_wait(t->p, parent, t->up, cm_affine(1 - STAGES, 1));
    cm_to(t->p, staged(t, t->p->rank));
}

/* Open the fold that combines the children's results with mine, in the order of places. */
static void fold_kids(const struct tree *t, const struct node *v)
{
    cm_add_fold(t->p);
    for (int k = 0; k < v->nbefore; k++)
        from_kid(t, v->kids[k]);
    cm_from(t->p, cm_place(CM_IN, t->p->rank, piece()));
    for (int k = v->nbefore; k < v->nkids; k++)
        from_kid(t, v->kids[k]);
}

/* Give the open fold's result to the children: they read my OUT, or take it from their ports. */
static void to_kids(const struct tree *t, const struct node *v)
{
    for (int k = 0; t->copy && k < v->nkids; k++)
        cm_to(t->p, cm_port(v->kids[k], CM_OUT, piece()));
}

/* End a fold whose result is final: keep it; in direct mode a post shows it to the children. */
static void keep(const struct tree *t, const struct node *v)
{
    cm_to(t->p, cm_place(CM_OUT, t->p->rank, piece()));
    if (!t->copy && v->nkids > 0)
        cm_post(t->p);
}

/* Worker towards the top, for a rank that has a parent. */
static void climb(const struct tree *t, const struct node *v)
{
    if (!t->copy && v->nkids == 0) {
        cm_arrive(t->p); /* the parent reads my IN */
        return;
    }
    cm_add_loop(t->p, t->p->pieces);
    fold_kids(t, v);
    to_parent(t, v->parent);
    if (!t->copy)
        cm_post(t->p);
    cm_add_end(t->p);
}

/* Worker at the top of a reduction. */
static void reduce_at_top(const struct tree *t, const struct node *v)
{
    cm_add_loop(t->p, t->p->pieces);
    fold_kids(t, v);
    keep(t, v);
    if (t->p->coll == CM_ALL_REDUCE)
        to_kids(t, v);
    cm_complete(t->p);
    cm_add_end(t->p);
}

/* Worker from the top: take from the parent, or my IN at the top of a broadcast. */
static void descend(const struct tree *t, const struct node *v)
{
    cm_add_loop(t->p, t->p->pieces);
    cm_add_fold(t->p);
    if (v->parent < 0) {
        cm_from(t->p, cm_place(CM_IN, t->p->rank, piece()));
    } else if (t->copy) {
        cm_from(t->p, cm_port(v->parent, CM_OUT, piece()));
    } else {
        cm_wait(t->p, v->parent, t->down, cm_affine(1, 1));
        cm_from(t->p, cm_place(CM_OUT, v->parent, piece()));
    }
    keep(t, v);
    to_kids(t, v);
    cm_add_end(t->p);
}

/* Direct mode: leave when worker `worker` of those ranks has taken all it reads of mine. */
static void leave(const struct tree *t, const int *ranks, int count, int worker)
{
    if (t->copy || count == 0)
        return;
    cm_add_fold(t->p);
    for (int k = 0; k < count; k++)
        cm_wait(t->p, ranks[k], worker, cm_at(CM_PHASE_DONE));
}

/* Tree `which`; a rooted one has one worker per rank, else one up and one down. */
static struct tree plant(const struct cm_build_args *a, struct cm_plan *p, int which)
{
    bool rooted = cm_colls[a->coll].rooted;

    p->pieces = a->mode == CM_MODE_COPY ? 1 : PIPELINE;
    return (struct tree){
        .a = a,
        .p = p,
        .copy = a->mode == CM_MODE_COPY,
        .which = which,
        .m = rooted ? a->n - 1 : a->n,
        .top = rooted ? a->root : -1,
        .start = rooted ? cm_position(a, a->root) + 1 : 0,
        .up = rooted ? which : TREES * which,
        .down = rooted ? which : TREES * which + 1,
        .stage = rooted ? CM_SCRATCH : CM_OUT,
    };
}

/*
 * 2 log2 n hops; a rank sends at most 2 vectors in all (up and down), no
 * scratch. The top of a tree folds and sends down at once, in its worker down.
 */
static enum cm_status all_reduce(const struct cm_build_args *a, struct cm_plan *p)
{
    for (int which = 0; which < TREES; which++) {
        struct tree t = plant(a, p, which);
        struct node v = node_of(&t, a->rank);

        cm_add_worker(p, which);
        if (v.parent >= 0)
            climb(&t, &v);
        cm_add_worker(p, which);
        if (v.parent >= 0)
            descend(&t, &v);
        else
            reduce_at_top(&t, &v);
        leave(&t, v.kids, v.nkids, t.down);
    }
    return p->status;
}

/* log2 n + 1 hops; every other rank sends the vector once; two pieces of scratch. */
static enum cm_status reduce(const struct cm_build_args *a, struct cm_plan *p)
{
    for (int which = 0; which < TREES; which++) {
        struct tree t = plant(a, p, which);
        struct node v = node_of(&t, a->rank);

        p->scratch = t.copy ? 0 : STAGES;
        cm_add_worker(p, which);
        if (v.parent >= 0)
            climb(&t, &v);
        else
            reduce_at_top(&t, &v);
        leave(&t, &v.parent, v.parent >= 0, t.up);
    }
    return p->status;
}

/* log2 n + 1 hops; a rank sends the vector once in all; no scratch. */
static enum cm_status broadcast(const struct cm_build_args *a, struct cm_plan *p)
{
    for (int which = 0; which < TREES; which++) {
        struct tree t = plant(a, p, which);
        struct node v = node_of(&t, a->rank);

        cm_add_worker(p, which);
        descend(&t, &v);
        leave(&t, v.kids, v.nkids, t.down);
    }
    return p->status;
}

struct cm_tree_place cm_tree_place(const struct cm_build_args *a, int which)
{
    struct tree t = {.a = a, .which = which, .m = a->n, .top = -1};
    struct node v = node_of(&t, a->rank);

    return (struct cm_tree_place){v.parent, v.nkids, {v.kids[0], v.kids[1]}};
}

cm_build_fn *const cm_tree_builders[CM_NCOLLS] = {
    [CM_ALL_REDUCE] = all_reduce,
    [CM_BROADCAST] = broadcast,
    [CM_REDUCE] = reduce,
};
