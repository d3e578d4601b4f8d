/*
 * Hierarchical forms of broadcast and reduce: each rail carries 1/L of the
 * vector along a chain of nodes that starts or ends at the root's node. The
 * passes are the pipeline.
 */
#include "engine/algo_hier.h"

/* Nodes from the root's to mine, along the ring. */
static int distance(const struct cm_hier *h)
{
    for (int d = 0; d < h->nodes; d++) {
        int node = cm_node_after(h, -d);

        for (int i = 0; i < cm_node_size(h, node); i++) {
            if (cm_node_rank(h, node, i) == h->p->root)
                return d;
        }
    }
    return 0;
}

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

/*
 * M nodes of a chain, and two hops in the root's; a leader sends 1/L V along
 * the rail and (s-1)/L V to its mates, V in all with even nodes. The root
 * sends at most V + (s-1)/L V. Its mates have all of it from each other.
 */
void cm_hier_broadcast(const struct cm_hier *h)
{
    int from_root = distance(h);
    struct cm_index piece = cm_at(h->local);

    h->p->pieces = h->rails;
    if (h->p->rank == h->p->root) {
        start_rails(h);
        return;
    }
    if (cm_leads_rail(h)) {
        int source = from_root == 0 ? h->p->root : cm_rail_peer(h, -1);

        cm_copy_fold(h->p, cm_port(source, CM_OUT, piece), cm_mine(h, CM_OUT, piece));
        if (from_root < h->nodes - 1)
            cm_to(h->p, cm_port(cm_rail_peer(h, 1), CM_OUT, piece));
        cm_to_mates(h, CM_OUT, piece, h->p->root);
    }
    cm_take_pieces(h, 0);
}

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
    else if (h->p->rank == h->p->root)
        cm_to(h->p, cm_mine(h, CM_OUT, piece));
    else
        cm_to(h->p, cm_port(h->p->root, CM_IN, piece));
    if (to_root == 0)
        cm_complete(h->p);
}

/*
 * The reverse: every rank gives (L-1)/L V to the leaders of its node, or all
 * if it leads none; a leader sends 1/L V on. V in all, whatever the nodes.
 */
void cm_hier_reduce(const struct cm_hier *h)
{
    h->p->pieces = h->rails;
    cm_give_pieces(h, 0);
    if (cm_leads_rail(h))
        add_up(h, distance(h));
    if (h->p->rank == h->p->root)
        cm_take_pieces(h, 0);
}
