/*
 * Hierarchical: between nodes a rail for each local rank, inside a node direct
 * exchange. On one node it is the direct algorithm, with one rank in every
 * node the ring.
 *
 * A rail is a ring over the nodes, and each of its steps also does the work of
 * the node: the fold that adds this node's part to what came along the rail
 * takes that part from the ports of all ranks here, and the fold that brings a
 * result hands it to them. So nothing is staged, and the sum of a node is
 * never stored. All ranks walk through the same steps in the same order, which
 * is why two slots are enough whatever the sizes of the nodes are. The passes
 * are the pipeline along a rail, and channels, which run independently,
 * overlap the phases inside and between nodes.
 *
 * Uneven nodes: there are as many rails as the smallest node has ranks. More
 * would gain nothing, since that node's ranks send all it has to send.
 *
 * In what follows V is the vector, n the number of ranks, M that of nodes, s
 * the ranks of a node, L the rails.
 *
 * Sources: Cho et al., BlueConnect: decomposing all-reduce for deep learning
 * on heterogeneous network hierarchy (2019); Thakur, Rabenseifner, Gropp:
 * Optimization of collective communication operations in MPICH (2005), for the
 * doubling; NVIDIA, Doubling all2all performance with NCCL 2.12 (2022), for
 * the change of rails inside the sender's node.
 */
#include "engine/algo_hier.h"

#include <stdlib.h>

/* What a step does, in this order. */
enum {
    RECV = 1,     /* the leader takes what came along the rail */
    SUM = 2,      /* all ranks of the node add their inputs, through the leader */
    SEND = 4,     /* the leader hands on */
    SHARE = 8,    /* all ranks of the node get the result from the leader */
    COMPLETE = 16 /* which holds every contribution */
};

/* Fill in who is where. False: no memory. */
static bool survey(struct cm_hier *h, const struct cm_build_args *a)
{
    size_t n = (size_t)a->n;

    h->rank = malloc((2 * n + 1) * sizeof(*h->rank));
    if (h->rank == NULL)
        return false;
    h->start = h->rank + n;
    cm_order_by_node(a->node, a->n, h->rank);
    for (int k = 0; k < a->n; k++) {
        if (k == 0 || a->node[h->rank[k]] != a->node[h->rank[k - 1]])
            h->start[h->nodes++] = k;
        if (h->rank[k] == a->rank) {
            h->node = h->nodes - 1;
            h->local = k - h->start[h->node];
        }
        if (h->rank[k] == h->p->root) {
            h->root_node = h->nodes - 1;
            h->root_local = k - h->start[h->root_node];
        }
    }
    h->start[h->nodes] = a->n;
    h->rails = a->n;
    for (int x = 0; x < h->nodes; x++) {
        int size = cm_node_size(h, x);

        h->rails = size < h->rails ? size : h->rails;
        h->largest = size > h->largest ? size : h->largest;
    }
    return true;
}

static bool acts(const struct cm_hier *h, const struct cm_hier_form *form, int local)
{
    switch (form->actors) {
    case CM_ACT_LEADERS:
        return local < h->rails;
    case CM_ACT_AGENT:
        return cm_mate(h, local) == cm_agent(h, h->node);
    default:
        return true;
    }
}

/* Mixed: add waits for the mates that act, or for all, to have reached `phase`; none: no fold. */
static void wait_mates(const struct cm_hier *h, const struct cm_hier_form *form, bool all,
                       int phase)
{
    bool open = false;

    for (int k = 1; k < cm_node_size(h, h->node); k++) {
        int mate = cm_mate_after(h, k);

        if (!all && !acts(h, form, mate))
            continue;
        if (!open)
            cm_add_fold(h->p);
        open = true;
        cm_wait_rank(h->p, cm_mate(h, mate), phase);
    }
}

/* Mixed: let the mates at my buffers, if any comes; who acts waits until it may touch theirs. */
static void enter(const struct cm_hier *h, const struct cm_hier_form *form)
{
    bool visited = false;

    for (int k = 1; k < cm_node_size(h, h->node); k++)
        visited |= acts(h, form, cm_mate_after(h, k));
    if (visited)
        cm_arrive(h->p);
    if (acts(h, form, h->local))
        wait_mates(h, form, true, 1);
}

/* Mixed: stay until the mates that act have done all they do to my buffers. */
static void leave(const struct cm_hier *h, const struct cm_hier_form *form)
{
    wait_mates(h, form, false, CM_PHASE_DONE);
}

enum cm_status cm_hier_build(const struct cm_build_args *a, struct cm_plan *p,
                             const struct cm_hier_form *form)
{
    struct cm_hier h = {.p = p, .mixed = a->mode == CM_MODE_DIRECT};

    if (cm_one_node(a->node, a->n))
        return cm_direct_builders[a->coll](a, p);
    if (!survey(&h, a))
        return CM_FAIL(CM_ENOMEM, "plan: node map of %d ranks", a->n);
    h.cuts = form->cuts == 0 ? h.nodes : form->cuts;
    cm_add_worker(p, 0);
    if (h.mixed)
        enter(&h, form);
    form->write(&h);
    if (h.mixed)
        leave(&h, form);
    free(h.rank);
    return p->status;
}

struct cm_index cm_rail_piece(const struct cm_hier *h, int rail, int step)
{
    struct cm_index x;

    if (h->cuts == 1)
        return cm_at(rail);
    x = cm_modulo(h->node - 1 - step, -1, h->cuts);
    x.add = rail * h->cuts;
    return x;
}

void cm_give_pieces(const struct cm_hier *h, int step)
{
    for (int k = 1; !h->mixed && k < cm_node_size(h, h->node); k++) {
        int rail = cm_mate_after(h, k);
        struct cm_index piece = cm_rail_piece(h, rail, step);

        if (rail < h->rails)
            cm_copy_fold(h->p, cm_mine(h, CM_IN, piece), cm_port(cm_mate(h, rail), CM_IN, piece));
    }
}

void cm_take_pieces(const struct cm_hier *h, int step)
{
    for (int k = 1; !h->mixed && k < cm_node_size(h, h->node); k++) {
        int rail = cm_mate_after(h, k);
        struct cm_index piece = cm_rail_piece(h, rail, step);

        if (rail < h->rails)
            cm_copy_fold(h->p, cm_port(cm_mate(h, rail), CM_OUT, piece), cm_mine(h, CM_OUT, piece));
    }
}

void cm_from_mates(const struct cm_hier *h, struct cm_index chunk)
{
    for (int i = 0; i < cm_node_size(h, h->node); i++) {
        bool here = h->mixed || i == h->local;

        cm_from(h->p, here ? cm_place(CM_IN, cm_mate(h, i), chunk)
                           : cm_port(cm_mate(h, i), CM_IN, chunk));
    }
}

void cm_to_mates(const struct cm_hier *h, enum cm_space numbering, struct cm_index chunk,
                 int except)
{
    for (int k = 1; k < cm_node_size(h, h->node); k++) {
        int mate = cm_mate(h, cm_mate_after(h, k));

        if (mate != except)
            cm_to(h->p, h->mixed ? cm_place(CM_OUT, mate, chunk) : cm_port(mate, numbering, chunk));
    }
}

/* The leader's fold of a step. */
static void lead(const struct cm_hier *h, int step, int what)
{
    struct cm_index piece = cm_rail_piece(h, h->local, step);

    cm_add_fold(h->p);
    if (what & RECV)
        cm_from(h->p, cm_port(cm_rail_peer(h, -1), CM_IN, piece));
    if (what & SUM)
        cm_from_mates(h, piece);
    if (what & SHARE)
        cm_to(h->p, cm_mine(h, CM_OUT, piece));
    if (what & SEND)
        cm_to(h->p, cm_port(cm_rail_peer(h, 1), CM_IN, piece));
    if (what & SHARE)
        cm_to_mates(h, CM_OUT, piece, -1);
    if (what & COMPLETE)
        cm_complete(h->p);
}

/* `count` equal steps from number `step` on; the number of the next. */
static int steps(const struct cm_hier *h, int step, int count, int what)
{
    if (count <= 0 || (h->mixed && !cm_leads_rail(h)))
        return step + count;
    if (count > 1)
        cm_add_loop(h->p, count);
    if (what & SUM)
        cm_give_pieces(h, step);
    if (cm_leads_rail(h))
        lead(h, step, what);
    if (what & SHARE)
        cm_take_pieces(h, step);
    if (count > 1)
        cm_add_end(h->p);
    return step + count;
}

/*
 * 2M - 1 steps, 2(M-1) of them along the rail. Rail l carries 1/L of V, in M
 * pieces, one a node; as in the ring a piece starts behind its node, is
 * complete there and goes round once more. A leader sends 2(M-1)/(ML) V along
 * the rail, (L-1)/L V of its input and (s-1)/L V of results inside the node;
 * with even nodes that is 2(n-1)/n V, as for the ring.
 */
static void write_all_reduce(const struct cm_hier *h)
{
    int m = h->nodes, step = 0;

    h->p->pieces = h->rails * h->cuts;
    h->p->min_depth = 2; /* around a ring, and results follow inputs through the same port */
    step = steps(h, step, 1, SUM | SEND);
    step = steps(h, step, m - 2, RECV | SUM | SEND);
    step = steps(h, step, 1, RECV | SUM | SEND | SHARE | COMPLETE);
    step = steps(h, step, m - 2, RECV | SEND | SHARE);
    steps(h, step, 1, RECV | SHARE);
}

static const struct cm_hier_form all_reduce_form = {.write = write_all_reduce};

/* Of the node's partial sum in OUT and what peer node `peer` sent, in the order of nodes. */
static void from_two(const struct cm_hier *h, int peer, struct cm_index piece)
{
    struct cm_operand mine = cm_mine(h, CM_OUT, piece);
    struct cm_operand port = cm_port(cm_node_rank(h, peer, h->local), CM_OUT, piece);

    cm_from(h->p, peer < h->node ? port : mine);
    cm_from(h->p, peer < h->node ? mine : port);
}

/* The node that step k of the doubling is with; the first of an acting node is with its pair. */
static int partner(const struct cm_group *g, int node, int k)
{
    return k < 0 ? node - 1 : cm_group_partner(g, node, k);
}

/* A leader whose node is active: doubling from step `first` on, each result sent on at once. */
static void double_up(const struct cm_hier *h, const struct cm_group *g, struct cm_index piece)
{
    int first = cm_group_has_pair(g, h->node) ? -1 : 0;

    cm_add_fold(h->p);
    cm_from_mates(h, piece);
    for (int k = first; k < g->steps; k++) {
        cm_to(h->p, cm_mine(h, CM_OUT, piece));
        if (k >= 0)
            cm_to(h->p, cm_port(cm_node_rank(h, partner(g, h->node, k), h->local), CM_OUT, piece));
        cm_add_fold(h->p);
        from_two(h, partner(g, h->node, k), piece);
    }
    cm_complete(h->p);
    cm_to(h->p, cm_mine(h, CM_OUT, piece));
    if (first < 0)
        cm_to(h->p, cm_port(cm_rail_peer(h, -1), CM_OUT, piece));
    cm_to_mates(h, CM_OUT, piece, -1);
}

/* A leader whose node is idle: give the node's sum to the next node, get the result. */
static void stand_by(const struct cm_hier *h, struct cm_index piece)
{
    struct cm_operand port = cm_port(cm_rail_peer(h, 1), CM_OUT, piece);

    cm_add_fold(h->p);
    cm_from_mates(h, piece);
    cm_to(h->p, port);
    cm_copy_fold(h->p, port, cm_mine(h, CM_OUT, piece));
    cm_to_mates(h, CM_OUT, piece, -1);
}

/*
 * For short messages: log2 M steps along the rail (two more if M is no power
 * of two), a leader sends log2 M / L V along it. The partial sum lives in OUT.
 */
static void write_doubling(const struct cm_hier *h)
{
    struct cm_group g = cm_group_of(h->nodes);
    struct cm_index piece = cm_rail_piece(h, h->local, 0);

    h->p->pieces = h->rails;
    cm_give_pieces(h, 0);
    if (cm_leads_rail(h) && cm_group_idle(&g, h->node))
        stand_by(h, piece);
    else if (cm_leads_rail(h))
        double_up(h, &g, piece);
    cm_take_pieces(h, 0);
}

static const struct cm_hier_form doubling_form = {.write = write_doubling, .cuts = 1};

static enum cm_status all_reduce(const struct cm_build_args *a, struct cm_plan *p)
{
    return cm_hier_build(a, p, &all_reduce_form);
}

static enum cm_status all_reduce_doubling(const struct cm_build_args *a, struct cm_plan *p)
{
    return cm_hier_build(a, p, &doubling_form);
}

static enum cm_status all_gather(const struct cm_build_args *a, struct cm_plan *p)
{
    return cm_hier_build(a, p, &cm_hier_all_gather);
}

static enum cm_status reduce_scatter(const struct cm_build_args *a, struct cm_plan *p)
{
    return cm_hier_build(a, p, &cm_hier_reduce_scatter);
}

static enum cm_status alltoall(const struct cm_build_args *a, struct cm_plan *p)
{
    return cm_hier_build(a, p, &cm_hier_alltoall);
}

static enum cm_status broadcast(const struct cm_build_args *a, struct cm_plan *p)
{
    return cm_hier_build(a, p, &cm_hier_broadcast);
}

static enum cm_status reduce(const struct cm_build_args *a, struct cm_plan *p)
{
    return cm_hier_build(a, p, &cm_hier_reduce);
}

static enum cm_status gather(const struct cm_build_args *a, struct cm_plan *p)
{
    return cm_hier_build(a, p, &cm_hier_gather);
}

static enum cm_status scatter(const struct cm_build_args *a, struct cm_plan *p)
{
    return cm_hier_build(a, p, &cm_hier_scatter);
}

cm_build_fn *const cm_hier_builders[CM_NCOLLS] = {
    [CM_ALL_REDUCE] = all_reduce,
    [CM_ALL_GATHER] = all_gather,
    [CM_REDUCE_SCATTER] = reduce_scatter,
    [CM_BROADCAST] = broadcast,
    [CM_REDUCE] = reduce,
    [CM_ALLTOALL] = alltoall,
    [CM_GATHER] = gather,
    [CM_SCATTER] = scatter,
};

cm_build_fn *const cm_hierdbl_builders[CM_NCOLLS] = {
    [CM_ALL_REDUCE] = all_reduce_doubling,
};
