/*
 * The table of algorithms, and the life of a plan. A row names the build
 * function of each collective; one rank alone needs no algorithm, whatever
 * the row.
 */
#include "engine/algo.h"

#include <stdlib.h>
#include <strings.h>

#include "engine/build.h"

/* clang-format off */
const struct cm_algo cm_algos[] = {
    {"direct", "everybody with everybody, one or two hops", cm_direct_builders, false},
    {"oneshot", "everybody sends all to all and reduces all itself", cm_oneshot_builders, false},
    {"ring", "neighbours in ring order; chains to and from a root", cm_ring_builders, false},
    {"tree", "double binary tree, half of the vector on each", cm_tree_builders, false},
    {"recdbl", "recursive doubling, distances 1, 2, 4, ...", cm_recdbl_builders, false},
    {"hier", "direct inside a node, a ring per local rank between nodes", cm_hier_builders, true},
    {"hierdbl", "likewise, recursive doubling between nodes", cm_hierdbl_builders, true},
    {NULL, NULL, NULL, false},
};
/* clang-format on */

const struct cm_algo *cm_algo_find(const char *name)
{
    for (const struct cm_algo *a = cm_algos; a->name != NULL; a++) {
        if (strcasecmp(a->name, name) == 0)
            return a;
    }
    return NULL;
}

enum cm_status cm_plan_build(const struct cm_algo *algo, const struct cm_build_args *a,
                             struct cm_plan **out)
{
    cm_build_fn *build = algo->build[a->coll];
    enum cm_status st;
    struct cm_plan *p;

    if (build == NULL)
        return CM_EUNSUP;
    p = calloc(1, sizeof(*p));
    if (p == NULL)
        return CM_FAIL(CM_ENOMEM, "plan: %zu bytes", sizeof(*p));
    p->coll = a->coll;
    p->mode = a->mode;
    p->algo = algo->name;
    p->rank = a->rank;
    p->n = a->n;
    p->root = cm_colls[a->coll].rooted ? a->root : 0;
    p->pieces = 1;
    p->min_depth = 1;
    st = a->n == 1 ? cm_build_alone(a, p) : build(a, p);
    p->ports = a->mode == CM_MODE_COPY || (algo->by_node && !cm_one_node(a->node, a->n));
    if (!p->ports)
        p->min_depth = 1;
    if (st != CM_OK) {
        cm_plan_free(p);
        return st;
    }
    *out = p;
    return CM_OK;
}

void cm_plan_free(struct cm_plan *p)
{
    if (p == NULL)
        return;
    free(p->folds);
    free(p->operands);
    free(p->waits);
    free(p->perm);
    free(p);
}

void cm_order_by_node(const int32_t *node, int n, int32_t *order)
{
    int at = 0;

    for (int r = 0; r < n; r++) {
        bool first = true;

        for (int k = 0; k < r && first; k++)
            first = node[k] != node[r];
        for (int k = r; first && k < n; k++)
            if (node[k] == node[r])
                order[at++] = k;
    }
}

bool cm_one_node(const int32_t *node, int n)
{
    int r = 0;

    while (node != NULL && r < n && node[r] == node[0])
        r++;
    return node == NULL || r == n;
}

int cm_count_nodes(const int32_t *node, int n)
{
    int count = node == NULL;

    for (int r = 0; node != NULL && r < n; r++) {
        int k = 0;

        while (node[k] != node[r])
            k++;
        count += k == r;
    }
    return count;
}

int cm_in_blocks(enum cm_coll c, int n)
{
    return cm_colls[c].in_per_rank ? n : 1;
}

int cm_out_blocks(enum cm_coll c, int n)
{
    return cm_colls[c].out_per_rank ? n : 1;
}
