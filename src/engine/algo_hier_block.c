/*
 * Hierarchical forms of the collectives that have a block for each rank. The
 * block of local index i belongs to rail i mod L, in round i / L: with even
 * nodes there is one round. Rounds follow each other, so that a node without a
 * block in some round still passes on those of the others in the same order.
 */
#include "engine/algo_hier.h"

static int rounds(const struct cm_hier *h)
{
    return (h->largest + h->rails - 1) / h->rails;
}

/* The block of `rail` and `round` that belongs to a node: its rank, -1: the node has none. */
static int block_of(const struct cm_hier *h, int node, int rail, int round)
{
    int i = round * h->rails + rail;

    return i < cm_node_size(h, node) ? cm_node_rank(h, node, i) : -1;
}

/* The block of my rail, -1 also if I lead none. */
static int my_block(const struct cm_hier *h, int node, int round)
{
    return cm_leads_rail(h) ? block_of(h, node, h->local, round) : -1;
}

/* all_gather: the block of local index i of my node, if it is of this round. */
static void gather_mate(const struct cm_hier *h, int round, int i)
{
    bool mine = i % h->rails == h->local;
    struct cm_index block = cm_at(cm_mate(h, i));

    if (i / h->rails != round || (h->mixed && !mine))
        return;
    cm_add_fold(h->p);
    if (h->mixed) { /* the mate itself stores to my OUT */
        cm_from(h->p, cm_place(CM_IN, cm_mate(h, i), cm_at(0)));
    } else {
        cm_from(h->p, cm_port(cm_mate(h, i), CM_OUT, block));
        cm_to(h->p, cm_mine(h, CM_OUT, block));
    }
    if (mine)
        cm_to(h->p, cm_port(cm_rail_peer(h, 1), CM_OUT, block));
}

/* all_gather: the ranks of this round show their blocks to the node; leaders send them on. */
static void show_own(const struct cm_hier *h, int round)
{
    int size = cm_node_size(h, h->node);
    struct cm_index mine = cm_at(h->p->rank);

    if (h->local / h->rails == round) {
        cm_copy_fold(h->p, cm_mine(h, CM_IN, cm_at(0)), cm_mine(h, CM_OUT, mine));
        if (round == 0)
            cm_to(h->p, cm_port(cm_rail_peer(h, 1), CM_OUT, mine));
        cm_to_mates(h, CM_OUT, mine, -1);
    }
    for (int k = 1; k < size; k++)
        gather_mate(h, round, cm_mate_after(h, size - k));
}

/* all_gather: the blocks that come from `step` nodes before. */
static void pass_on(const struct cm_hier *h, int round, int step)
{
    int from = cm_node_after(h, -step), size = cm_node_size(h, h->node);
    int block = my_block(h, from, round);

    if (block >= 0) {
        cm_copy_fold(h->p, cm_port(cm_rail_peer(h, -1), CM_OUT, cm_at(block)),
                     cm_mine(h, CM_OUT, cm_at(block)));
        if (step < h->nodes - 1)
            cm_to(h->p, cm_port(cm_rail_peer(h, 1), CM_OUT, cm_at(block)));
        cm_to_mates(h, CM_OUT, cm_at(block), -1);
    }
    for (int k = 1; !h->mixed && k < size; k++) {
        int rail = cm_mate_after(h, size - k);

        block = rail < h->rails ? block_of(h, from, rail, round) : -1;
        if (block >= 0)
            cm_copy_fold(h->p, cm_port(cm_mate(h, rail), CM_OUT, cm_at(block)),
                         cm_mine(h, CM_OUT, cm_at(block)));
    }
}

/*
 * M steps a round, all but one along the rail; V = n blocks. A leader sends
 * (M-1)/M of the blocks of its rail along it and all of them to its mates: in
 * all (n-1)/n V with even nodes.
 */
static void write_all_gather(const struct cm_hier *h)
{
    h->p->min_depth = h->nodes > 2 ? 2 : 1;
    for (int round = 0; round < rounds(h); round++) {
        show_own(h, round);
        for (int step = 1; step < h->nodes; step++)
            pass_on(h, round, step);
    }
}

const struct cm_hier_form cm_hier_all_gather = {write_all_gather, 1, CM_ACT_ALL};

/* reduce_scatter: my inputs to the leaders, for the blocks of node `to`. */
static void give_blocks(const struct cm_hier *h, int round, int to)
{
    for (int k = 1; !h->mixed && k < cm_node_size(h, h->node); k++) {
        int rail = cm_mate_after(h, k);
        int block = rail < h->rails ? block_of(h, to, rail, round) : -1;

        if (block >= 0)
            cm_copy_fold(h->p, cm_mine(h, CM_IN, cm_at(block)),
                         cm_port(cm_mate(h, rail), CM_IN, cm_at(block)));
    }
}

/* reduce_scatter: what came along the rail, plus this node; the last step is at home. */
static void add_up(const struct cm_hier *h, int round, int step, int block)
{
    bool last = step == h->nodes - 1;

    cm_add_fold(h->p);
    if (step > 0)
        cm_from(h->p, cm_port(cm_rail_peer(h, -1), CM_IN, cm_at(block)));
    cm_from_mates(h, cm_at(block));
    if (!last)
        cm_to(h->p, cm_port(cm_rail_peer(h, 1), CM_IN, cm_at(block)));
    else if (round == 0 || h->mixed)
        cm_to(h->p, cm_place(CM_OUT, block, cm_at(0)));
    else
        cm_to(h->p, cm_port(block, CM_IN, cm_at(block)));
    if (last)
        cm_complete(h->p);
}

/*
 * The reverse of all_gather: M steps a round, a leader sends (M-1)/M of the
 * blocks of its rail along it, every rank its inputs for the other rails to
 * their leaders: in all (n-1)/n V with even nodes.
 */
static void write_reduce_scatter(const struct cm_hier *h)
{
    h->p->min_depth = h->nodes > 2 ? 2 : 1;
    for (int round = 0; round < rounds(h); round++) {
        for (int step = 0; step < h->nodes; step++) {
            int to = cm_node_after(h, -1 - step), block = my_block(h, to, round);

            give_blocks(h, round, to);
            if (block >= 0)
                add_up(h, round, step, block);
        }
        if (!h->mixed && round > 0 && h->local / h->rails == round)
            cm_copy_fold(h->p, cm_port(cm_mate(h, h->local % h->rails), CM_OUT, cm_at(0)),
                         cm_mine(h, CM_OUT, cm_at(0)));
    }
}

const struct cm_hier_form cm_hier_reduce_scatter = {write_reduce_scatter, 1, CM_ACT_LEADERS};

/* alltoall inside the node, mixed. */
static void pull(const struct cm_hier *h)
{
    for (int k = 0; k < cm_node_size(h, h->node); k++) {
        int r = cm_mate(h, cm_mate_after(h, k));

        cm_copy_fold(h->p, cm_place(CM_IN, r, cm_at(h->p->rank)), cm_mine(h, CM_OUT, cm_at(r)));
    }
}

/* The same through ports. */
static void exchange(const struct cm_hier *h)
{
    int size = cm_node_size(h, h->node);
    struct cm_index self = cm_at(h->p->rank);

    for (int k = 1; k < size; k++) {
        int r = cm_mate(h, cm_mate_after(h, k));

        cm_copy_fold(h->p, cm_mine(h, CM_IN, cm_at(r)), cm_port(r, CM_IN, cm_at(r)));
    }
    cm_copy_fold(h->p, cm_mine(h, CM_IN, self), cm_mine(h, CM_OUT, self));
    for (int k = 1; k < size; k++) {
        int r = cm_mate(h, cm_mate_after(h, size - k));

        cm_copy_fold(h->p, cm_port(r, CM_OUT, cm_at(r)), cm_mine(h, CM_OUT, cm_at(r)));
    }
}

/* One turn of a shift of alltoall: leader l handles source number l + turn of the sending node. */
struct shift {
    int to, from; /* nodes: where my node's blocks go, and whose come here */
    int round;    /* of the destinations */
    int turn;
};

/* Give a block to the leader whose turn it is, and send on what I lead. */
static void send_off(const struct cm_hier *h, const struct shift *s)
{
    int size = cm_node_size(h, h->node), rail = cm_wrap(h->local - s->turn, size);
    int source = cm_mate_after(h, s->turn), block;

    if (s->turn >= size)
        return;
    block = rail < h->rails && rail != h->local ? block_of(h, s->to, rail, s->round) : -1;
    if (block >= 0 && !h->mixed)
        cm_copy_fold(h->p, cm_mine(h, CM_IN, cm_at(block)),
                     cm_port(cm_mate(h, rail), CM_IN, cm_at(block)));
    block = my_block(h, s->to, s->round);
    if (block >= 0)
        cm_copy_fold(h->p,
                     h->mixed || source == h->local
                         ? cm_place(CM_IN, cm_mate(h, source), cm_at(block))
                         : cm_port(cm_mate(h, source), CM_IN, cm_at(block)),
                     cm_port(cm_node_rank(h, s->to, h->local), CM_IN, cm_at(block)));
}

/* Take what comes along my rail, for me or a mate; take what a leader has for me. */
static void receive(const struct cm_hier *h, const struct shift *s)
{
    int size = cm_node_size(h, s->from), rail = h->local % h->rails;
    int peer = cm_node_rank(h, s->from, rail), mate = my_block(h, h->node, s->round);
    struct cm_index block = cm_at(cm_node_rank(h, s->from, (rail + s->turn) % size));

    if (s->turn >= size)
        return;
    if (mate == h->p->rank || (mate >= 0 && h->mixed))
        cm_copy_fold(h->p, cm_port(peer, CM_OUT, block), cm_place(CM_OUT, mate, block));
    else if (mate >= 0)
        cm_copy_fold(h->p, cm_port(peer, CM_OUT, block), cm_port(mate, CM_OUT, block));
    else if (!h->mixed && !cm_leads_rail(h) && h->local / h->rails == s->round)
        cm_copy_fold(h->p, cm_port(cm_mate(h, rail), CM_OUT, block), cm_mine(h, CM_OUT, block));
}

/*
 * A block changes to the rail of its destination inside the sender's node, then
 * crosses the network once, between ranks of that rail: M - 1 peers instead of
 * n - s. With even nodes a rank sends (n-s)/n V along its rail, as it must, and
 * (n-M)/n V inside the node. (A block keeps its length on the way, a forwarder
 * does not know others: there is no such form of alltoallv.)
 */
static void write_alltoall(const struct cm_hier *h)
{
    if (h->mixed)
        pull(h);
    else
        exchange(h);
    for (int shift = 1; shift < h->nodes; shift++) {
        struct shift s = {.to = cm_node_after(h, shift), .from = cm_node_after(h, -shift)};

        for (s.round = 0; s.round < rounds(h); s.round++) {
            for (s.turn = 0; s.turn < h->largest; s.turn++) {
                send_off(h, &s);
                receive(h, &s);
            }
        }
    }
}

const struct cm_hier_form cm_hier_alltoall = {write_alltoall, 1, CM_ACT_ALL};
