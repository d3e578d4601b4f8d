/*
 * Hierarchical forms of the rooted collectives. broadcast and reduce: each rail
 * carries 1/L of the vector along a chain of nodes that starts or ends at the
 * root's node; the passes are the pipeline. gather and scatter: one rank of
 * each node deals with the root for its mates.
 */
#include "engine/algo_hier.h"

/* The root gives each rail its piece, and leads its own, if it has one. */
static void start_rails(const struct cm_hier *h)
{
    for (int k = 1; k <= cm_node_size(h, h->node); k++) {
        int rail = cm_mate_after(h, k);
        struct cm_index piece = cm_at(rail);

        if (rail >= h->rails)
            continue;
        cm_copy_fold(h->p, cm_mine(h, CM_IN, piece), cm_mine(h, CM_OUT, piece));
        if (rail != h->local) {
            cm_to(h->p, cm_port(cm_mate(h, rail), CM_IN, piece));
            continue;
        }
        cm_to(h->p, cm_port(cm_rail_peer(h, 1), CM_IN, piece));
        cm_to_mates(h, CM_IN, piece, -1);
    }
}

/* Where a leader has its piece from. */
static struct cm_operand piece_from(const struct cm_hier *h, int from_root)
{
    struct cm_index piece = cm_at(h->local);

    if (from_root > 0)
        return cm_port(cm_rail_peer(h, -1), CM_OUT, piece);
    return h->mixed ? cm_place(CM_IN, h->p->root, piece) : cm_port(h->p->root, CM_OUT, piece);
}

/*
 * M nodes of a chain, and two hops in the root's; a leader sends 1/L V along
 * the rail and (s-1)/L V to its mates, V in all with even nodes. The root
 * sends at most V + (s-1)/L V. Its mates have all of it from each other.
 * Mixed: leaders load from the root and store to all.
 */
static void write_broadcast(const struct cm_hier *h)
{
    int from_root = cm_from_root(h);
    struct cm_index piece = cm_at(h->local);

    h->p->pieces = h->rails;
    if (h->p->rank == h->p->root && !h->mixed) {
        start_rails(h);
        return;
    }
    if (cm_leads_rail(h)) {
        cm_copy_fold(h->p, piece_from(h, from_root), cm_mine(h, CM_OUT, piece));
        if (from_root < h->nodes - 1)
            cm_to(h->p, cm_port(cm_rail_peer(h, 1), CM_OUT, piece));
        cm_to_mates(h, CM_OUT, piece, h->mixed ? -1 : h->p->root);
    }
    cm_take_pieces(h, 0);
}

const struct cm_hier_form cm_hier_broadcast = {write_broadcast, 1, CM_ACT_LEADERS};

/* The leader's fold: what comes from farther nodes, plus this node's. */
static void add_up(const struct cm_hier *h, int to_root)
{
    struct cm_index piece = cm_at(h->local);

    cm_add_fold(h->p);
    if (to_root < h->nodes - 1)
        cm_from(h->p, cm_port(cm_rail_peer(h, 1), CM_IN, piece));
    cm_from_mates(h, piece);
    if (to_root > 0)
        cm_to(h->p, cm_port(cm_rail_peer(h, -1), CM_IN, piece));
    else if (h->p->rank == h->p->root || h->mixed)
        cm_to(h->p, cm_place(CM_OUT, h->p->root, piece));
    else
        cm_to(h->p, cm_port(h->p->root, CM_IN, piece));
    if (to_root == 0)
        cm_complete(h->p);
}

/*
 * The reverse: every rank gives (L-1)/L V to the leaders of its node, or all
 * if it leads none; a leader sends 1/L V on. V in all, whatever the nodes.
 */
static void write_reduce(const struct cm_hier *h)
{
    h->p->pieces = h->rails;
    cm_give_pieces(h, 0);
    if (cm_leads_rail(h))
        add_up(h, cm_from_root(h));
    if (h->p->rank == h->p->root)
        cm_take_pieces(h, 0);
}

const struct cm_hier_form cm_hier_reduce = {write_reduce, 1, CM_ACT_LEADERS};

/* An agent hands the blocks of its node on to the root: loaded, or from its mates' ports. */
static void collect(const struct cm_hier *h)
{
    for (int i = 0; i < cm_node_size(h, h->node); i++) {
        int mate = cm_mate(h, i);
        bool here = h->mixed || i == h->local;

        cm_copy_fold(h->p, here ? cm_place(CM_IN, mate, cm_at(0)) : cm_port(mate, CM_IN, cm_at(0)),
                     cm_port(h->p->root, CM_IN, cm_at(0)));
    }
}

/* The root takes the blocks of a node. */
static void take_node(const struct cm_hier *h, int node)
{
    for (int i = 0; i < cm_node_size(h, node); i++) {
        int rank = cm_node_rank(h, node, i);
        struct cm_index block = cm_at(rank);
        bool home = node == h->node, here = home && (h->mixed || rank == h->p->root);

        cm_copy_fold(h->p,
                     here ? cm_place(CM_IN, rank, cm_at(0))
                          : cm_port(home ? rank : cm_agent(h, node), CM_OUT, block),
                     cm_mine(h, CM_OUT, block));
    }
}

/*
 * Two hops. In each node one rank deals with the root, so that it has M - 1
 * partners outside its node instead of n - s; that one sends s/n V.
 */
static void write_gather(const struct cm_hier *h)
{
    if (h->p->rank == h->p->root) {
        for (int d = 0; d < h->nodes; d++)
            take_node(h, cm_node_after(h, d));
    } else if (h->p->rank == cm_agent(h, h->node)) {
        collect(h);
    } else if (!h->mixed) {
        cm_copy_fold(h->p, cm_mine(h, CM_IN, cm_at(0)),
                     cm_port(cm_agent(h, h->node), CM_IN, cm_at(0)));
    }
}

const struct cm_hier_form cm_hier_gather = {write_gather, 1, CM_ACT_AGENT};

/* An agent hands out what comes from the root for its node. */
static void hand_out(const struct cm_hier *h)
{
    for (int i = 0; i < cm_node_size(h, h->node); i++) {
        int mate = cm_mate(h, i);
        bool here = h->mixed || i == h->local;

        cm_copy_fold(h->p, cm_port(h->p->root, CM_OUT, cm_at(0)),
                     here ? cm_place(CM_OUT, mate, cm_at(0)) : cm_port(mate, CM_OUT, cm_at(0)));
    }
}

/* The root sends a node its blocks. */
static void give_node(const struct cm_hier *h, int node)
{
    for (int i = 0; i < cm_node_size(h, node); i++) {
        int rank = cm_node_rank(h, node, i);
        struct cm_index block = cm_at(rank);
        bool home = node == h->node, here = home && (h->mixed || rank == h->p->root);

        cm_copy_fold(h->p, cm_mine(h, CM_IN, block),
                     here ? cm_place(CM_OUT, rank, cm_at(0))
                          : cm_port(home ? rank : cm_agent(h, node), CM_IN, block));
    }
}

/* The reverse of gather; other nodes first, as they have the longer way. */
static void write_scatter(const struct cm_hier *h)
{
    if (h->p->rank == h->p->root) {
        for (int d = 1; d <= h->nodes; d++)
            give_node(h, cm_node_after(h, d));
    } else if (h->p->rank == cm_agent(h, h->node)) {
        hand_out(h);
    } else if (!h->mixed) {
        cm_copy_fold(h->p, cm_port(cm_agent(h, h->node), CM_OUT, cm_at(0)),
                     cm_mine(h, CM_OUT, cm_at(0)));
    }
}

const struct cm_hier_form cm_hier_scatter = {write_scatter, 1, CM_ACT_AGENT};
