/*
 * The peers of a rank: every rule of the tuning table that fits, every root,
 * both modes where both may come; a plan of each, and its port operands. A
 * port names its peer by number, whatever loops do with the chunk.
 */
#include "engine/peers.h"

#include "engine/algo.h"
#include "engine/tune.h"

/* Index of the END that closes the LOOP at `at`. */
static int loop_end(const struct cm_plan *p, int at)
{
    int depth = 0;

    for (;; at++) {
        depth += p->folds[at].code == CM_LOOP;
        depth -= p->folds[at].code == CM_END;
        if (depth == 0)
            return at;
    }
}

static void mark(const struct cm_operand *o, int count, bool *peers)
{
    for (int k = 0; k < count; k++) {
        if (o[k].space == CM_PORT)
            peers[o[k].rank] = true;
    }
}

void cm_plan_peers(const struct cm_plan *p, bool *send, bool *recv)
{
    for (int k = 0; k < p->nfolds; k++) {
        const struct cm_fold *f = &p->folds[k];

        if (f->code == CM_LOOP && f->trips == 0)
            k = loop_end(p, k);
        if (f->code != CM_FOLD)
            continue;
        mark(p->operands + f->from, f->nfrom, recv);
        mark(p->operands + f->to, f->nto, send);
    }
}

/* One algorithm and mode, for the root or each. */
static enum cm_status add_mode(const struct cm_peers_args *a, const struct cm_algo *algo,
                               enum cm_mode mode, bool *peers[2])
{
    struct cm_build_args b = {.coll = a->coll,
                              .mode = mode,
                              .rank = a->rank,
                              .n = a->n,
                              .order = a->order,
                              .node = a->node};
    bool all = cm_colls[a->coll].rooted && a->root == CM_ANY_ROOT;
    int last = all ? a->n - 1 : cm_colls[a->coll].rooted ? a->root : 0;

    for (b.root = all ? 0 : last; b.root <= last; b.root++) {
        struct cm_plan *p = NULL;
        enum cm_status st = cm_plan_build(algo, &b, &p);

        if (st != CM_OK)
            return st == CM_EUNSUP ? CM_OK : st;
        cm_plan_peers(p, peers[0], peers[1]);
        cm_plan_free(p);
    }
    return CM_OK;
}

/* Where memory is shared the mode may be either; the ports of both are marked. */
static enum cm_status add_algo(const struct cm_peers_args *a, const char *name, bool *peers[2])
{
    const struct cm_algo *algo = cm_algo_find(name);
    enum cm_status st = CM_OK;

    if (algo == NULL)
        return CM_OK;
    if (a->force.mode != CM_MODE_DIRECT)
        st = add_mode(a, algo, CM_MODE_COPY, peers);
    if (st == CM_OK && a->force.mode != CM_MODE_COPY && algo->by_node)
        st = add_mode(a, algo, CM_MODE_DIRECT, peers);
    return st;
}

static enum cm_status add_rules(const struct cm_peers_args *a, const struct cm_tune *tune,
                                bool *peers[2])
{
    int nodes = cm_count_nodes(a->node, a->n), at = 0;
    enum cm_status st = CM_OK;
    struct cm_choice choice;

    while (st == CM_OK && cm_tune_next(tune, a->coll, a->n, nodes, &at, &choice))
        st = add_algo(a, choice.algo, peers);
    return st;
}

enum cm_status cm_peers(const struct cm_peers_args *a, bool *send, bool *recv)
{
    bool *peers[2] = {send, recv};
    struct cm_tune *tune = NULL;
    enum cm_status st = CM_OK;

    if (a->force.algo != NULL)
        return add_algo(a, a->force.algo, peers);
    if (a->rules != NULL)
        st = add_rules(a, a->rules, peers);
    if (st == CM_OK)
        st = cm_tune_parse(a->shipped != NULL ? a->shipped : cm_tune_default,
                           "built-in tuning table", &tune);
    if (st == CM_OK)
        st = add_rules(a, tune, peers);
    cm_tune_free(tune);
    return st;
}
