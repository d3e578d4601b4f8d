/*
 * Algorithms: pure functions that write a plan for one rank.
 */
#ifndef CM_ENGINE_ALGO_H
#define CM_ENGINE_ALGO_H

#include "base/plan.h"

/* Everything a plan may depend on; no message size, no addresses. */
struct cm_build_args {
    enum cm_coll coll;
    enum cm_mode mode;
    int rank, n, root;
    const int32_t *order; /* ring order, grouped by node: position -> rank (NULL: 0..n-1) */
    const int32_t *node;  /* node map: rank -> node, any numbers (NULL: one node) */
};

typedef enum cm_status cm_build_fn(const struct cm_build_args *a, struct cm_plan *p);

struct cm_algo {
    const char *name;          /* "ring" */
    const char *what;          /* one line for --list */
    cm_build_fn *const *build; /* CM_NCOLLS entries; NULL: no form of that collective */
    bool by_node;              /* goes by the node map; on several nodes direct mode is mixed */
};

/* Rows, NULL-named last. Order is that of --list. */
extern const struct cm_algo cm_algos[];
const struct cm_algo *cm_algo_find(
    const char *name); /* case-insensitive; NULL: no such algorithm */

/*
 * Build the plan of one rank. *out belongs to the caller: cm_plan_free().
 * CM_EUNSUP: the algorithm has no such form (silent). CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_plan_build(const struct cm_algo *algo,
                                           const struct cm_build_args *a, struct cm_plan **out);
void cm_plan_free(struct cm_plan *p); /* NULL is fine */

/* Ring order of a node map: by node (that of the lowest rank first), then by rank. */
void cm_order_by_node(const int32_t *node, int n, int32_t *order);
bool cm_one_node(const int32_t *node, int n);   /* also true for NULL */
int cm_count_nodes(const int32_t *node, int n); /* different numbers; NULL: 1 */

/* Whom rank a->rank deals with in tree 0 or 1 of the double binary tree of all_reduce. */
struct cm_tree_place {
    int parent; /* rank, -1: it is the top */
    int nkids, kids[2];
};
struct cm_tree_place cm_tree_place(const struct cm_build_args *a, int which);

/* Blocks of IN and OUT for a collective of n ranks (1 or n). */
int cm_in_blocks(enum cm_coll c, int n);
int cm_out_blocks(enum cm_coll c, int n);

#endif
