/*
 * What the files of the hierarchical algorithms share: who is where, and how
 * data moves inside a node. In copy mode through ports. In direct mode, the
 * mixed form, the ranks that act load from their mates' IN and store to their
 * OUT, so that there is one copy where ports need two; the others only let them.
 *
 * Nodes are numbered 0, 1, ... by their lowest rank, the ranks of a node 0, 1,
 * ... likewise ("local index"). There are as many rails as the smallest node
 * has ranks: rail l joins the ranks of local index l, one in each node, which
 * lead it. The other ranks of a node take part inside it only.
 */
#ifndef CM_ENGINE_ALGO_HIER_H
#define CM_ENGINE_ALGO_HIER_H

#include "engine/build.h"

struct cm_hier {
    struct cm_plan *p;
    int32_t *rank;  /* all ranks, grouped by node */
    int32_t *start; /* first entry in `rank` of each node; nodes + 1 entries */
    int nodes, rails;
    int largest;               /* ranks of the largest node */
    int node;                  /* where this rank is */
    int local;                 /* and its local index */
    int root_node, root_local; /* where the root is */
    int cuts;                  /* pieces of a block that one rail carries */
    bool mixed;                /* direct mode */
};

/* Mixed: which ranks of a node load from and store to the buffers of the others. */
enum cm_hier_actors { CM_ACT_LEADERS, CM_ACT_ALL, CM_ACT_AGENT };

struct cm_hier_form {
    void (*write)(const struct cm_hier *h); /* adds folds to h->p */
    int cuts; /* pieces of a block that a rail carries, 0: one for each node */
    enum cm_hier_actors actors;
};

/* Build by `form`; on one node by direct exchange. */
enum cm_status cm_hier_build(const struct cm_build_args *a, struct cm_plan *p,
                             const struct cm_hier_form *form);

static inline int cm_node_size(const struct cm_hier *h, int node)
{
    return h->start[node + 1] - h->start[node];
}

/* Node `step` nodes behind (ahead of: negative) this one, in a ring. */
static inline int cm_node_after(const struct cm_hier *h, int step)
{
    return cm_wrap(h->node + step, h->nodes);
}

/* Rank number `local` of a node. */
static inline int cm_node_rank(const struct cm_hier *h, int node, int local)
{
    return h->rank[h->start[node] + local];
}

/* Rank number `local` of my node. */
static inline int cm_mate(const struct cm_hier *h, int local)
{
    return cm_node_rank(h, h->node, local);
}

/* Local index of the k-th rank after me in my node: all start at another. */
static inline int cm_mate_after(const struct cm_hier *h, int k)
{
    return (h->local + k) % cm_node_size(h, h->node);
}

/* The rank of my rail `step` nodes on. */
static inline int cm_rail_peer(const struct cm_hier *h, int step)
{
    return cm_node_rank(h, cm_node_after(h, step), h->local);
}

/*
 * gather and scatter: the rank of a node that deals with the root, that of the root's local
 * index or the highest there is. At home it is the root.
 */
static inline int cm_agent(const struct cm_hier *h, int node)
{
    int last = cm_node_size(h, node) - 1;

    return cm_node_rank(h, node, h->root_local < last ? h->root_local : last);
}

/* Nodes from the root's to mine, along the ring. */
static inline int cm_from_root(const struct cm_hier *h)
{
    return cm_wrap(h->node - h->root_node, h->nodes);
}

static inline bool cm_leads_rail(const struct cm_hier *h)
{
    return h->local < h->rails;
}

/* My own place. */
static inline struct cm_operand cm_mine(const struct cm_hier *h, enum cm_space space,
                                        struct cm_index chunk)
{
    return cm_place(space, h->p->rank, chunk);
}

/*
 * The piece that `rail` works on in step `step` (plus the innermost loop
 * variable): with one cut always the same, else one for each node in turn,
 * that of node - 1 - step.
 */
struct cm_index cm_rail_piece(const struct cm_hier *h, int rail, int step);

/* Give my IN piece of each rail to its leader here, but keep that of my own rail. Mixed: nothing,
   as the leader takes it. */
void cm_give_pieces(const struct cm_hier *h, int step);

/* Take the result of each rail but mine from its leader here. Mixed: nothing. */
void cm_take_pieces(const struct cm_hier *h, int step);

/* Sources of the open fold: IN chunk of all ranks of the node, by local index. */
void cm_from_mates(const struct cm_hier *h, struct cm_index chunk);

/* Destinations of the open fold: all other ranks of the node but rank `except` (-1: none). */
void cm_to_mates(const struct cm_hier *h, enum cm_space numbering, struct cm_index chunk,
                 int except);

/* algo_hier_block.c, algo_hier_root.c: forms for the rows of cm_algos. */
extern const struct cm_hier_form cm_hier_all_gather;
extern const struct cm_hier_form cm_hier_reduce_scatter;
extern const struct cm_hier_form cm_hier_alltoall;
extern const struct cm_hier_form cm_hier_broadcast;
extern const struct cm_hier_form cm_hier_reduce;
extern const struct cm_hier_form cm_hier_gather;
extern const struct cm_hier_form cm_hier_scatter;

#endif
