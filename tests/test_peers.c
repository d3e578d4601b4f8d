/*
 * Whom a rank exchanges slots with: both ends find the same pairs, whatever
 * is chosen or forced; nobody is its own peer; and what the plans of a choice
 * use is among them. And node maps, which it depends on.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/algo.h"
#include "engine/peers.h"
#include "engine/tune.h"
#include "node_maps.h"
#include "test.h"

enum { MAX_N = 17 };

/* send[i][j]: i says that it sends to j; recv[i][j]: that it receives from j. */
struct pairs {
    bool send[MAX_N][MAX_N], recv[MAX_N][MAX_N];
};

static void find_pairs(struct cm_peers_args a, struct pairs *p)
{
    memset(p, 0, sizeof(*p));
    for (a.rank = 0; a.rank < a.n; a.rank++)
        CHECK(cm_peers(&a, p->send[a.rank], p->recv[a.rank]) == CM_OK, "rank %d", a.rank);
}

static void check_pairs(const struct cm_peers_args *a, const struct pairs *p, const char *map)
{
    for (int i = 0; i < a->n; i++) {
        CHECK(!p->send[i][i] && !p->recv[i][i], "%s n=%d: rank %d with itself",
              cm_colls[a->coll].name, a->n, i);
        for (int j = 0; j < a->n; j++)
            CHECK(p->send[i][j] == p->recv[j][i], "%s %s mode %d n=%d root=%d %s: %d to %d",
                  cm_colls[a->coll].name, a->force.algo ? a->force.algo : "auto", a->force.mode,
                  a->n, a->root, map, i, j);
    }
}

/* Every pair of `part` is in `all`. */
static void check_within(const struct cm_peers_args *a, const struct pairs *part,
                         const struct pairs *all)
{
    for (int i = 0; i < a->n; i++) {
        for (int j = 0; j < a->n; j++)
            CHECK(all->send[i][j] || !part->send[i][j], "%s %s n=%d root=%d: %d to %d",
                  cm_colls[a->coll].name, a->force.algo, a->n, a->root, i, j);
    }
}

/* One root after the other, and all at once: the same union. */
static void check_roots(struct cm_peers_args a, const char *map)
{
    struct pairs any, one;

    a.root = CM_ANY_ROOT;
    find_pairs(a, &any);
    check_pairs(&a, &any, map);
    for (a.root = 0; a.root < (cm_colls[a.coll].rooted ? a.n : 1); a.root++) {
        find_pairs(a, &one);
        check_pairs(&a, &one, map);
        check_within(&a, &one, &any);
    }
}

static void check_choices(struct cm_peers_args a, const char *map)
{
    a.force = (struct cm_force){.mode = -1};
    check_roots(a, map);
    for (const struct cm_algo *algo = cm_algos; algo->name != NULL; algo++) {
        for (a.force.mode = -1; a.force.mode <= CM_MODE_DIRECT; a.force.mode++) {
            a.force.algo = algo->name;
            if (algo->build[a.coll] != NULL)
                check_roots(a, map);
        }
    }
}

static void test_both_ends_agree(void)
{
    static const int sizes[] = {1, 2, 3, 5, 8, MAX_N};
    int32_t node[MAX_N], order[MAX_N];

    for (size_t k = 0; k < CM_LEN(node_maps) * CM_LEN(sizes); k++) {
        int n = sizes[k % CM_LEN(sizes)];
        char map[16];

        snprintf(map, sizeof(map), "map %zu", k / CM_LEN(sizes));
        fill_map(&node_maps[k / CM_LEN(sizes)], n, node);
        cm_order_by_node(node, n, order);
        for (int coll = 0; coll < CM_NCOLLS; coll++)
            check_choices(
                (struct cm_peers_args){
                    .coll = (enum cm_coll)coll, .n = n, .node = node, .order = order},
                map);
    }
}

/* What the table chooses for some size uses no other pairs. */
static void check_sizes(const char *shipped)
{
    static const size_t bytes[] = {0, 8, 4096, 16385, 65536, 65537, (size_t)1 << 32};
    static const int32_t node[] = {0, 0, 1, 1, 2, 2, 3, 4, 4, 5};
    struct cm_peers_args a = {
        .n = CM_LEN(node), .node = node, .root = CM_ANY_ROOT, .shipped = shipped};
    struct cm_tune *t = NULL;
    struct pairs all, one;

    CHECK(cm_tune_parse(shipped, "shipped", &t) == CM_OK, "shipped table");
    for (size_t k = 0; t != NULL && k < CM_NCOLLS * CM_LEN(bytes); k++) {
        struct cm_choice c = {0};

        a.coll = (enum cm_coll)(k / CM_LEN(bytes));
        a.force = (struct cm_force){.mode = -1};
        find_pairs(a, &all);
        CHECK(cm_tune_find(t, a.coll, a.n, 6, bytes[k % CM_LEN(bytes)], &c), "row %zu", k);
        a.force.algo = c.algo;
        a.force.mode = shipped == cm_tune_gpu ? CM_MODE_COPY : -1; /* all that kernels have */
        find_pairs(a, &one);
        check_within(&a, &one, &all);
    }
    cm_tune_free(t);
}

static void test_every_size_is_covered(void)
{
    check_sizes(cm_tune_default);
    check_sizes(cm_tune_gpu);
}

/* A user's rules may be taken as well as what they leave to the shipped table. */
static void test_users_rules_count(void)
{
    static const int32_t node[] = {0, 1, 2, 3, 4, 5};
    struct cm_peers_args a = {.n = CM_LEN(node), .node = node, .force = {.mode = -1}};
    struct pairs usual, ruled, direct;
    struct cm_tune *t = NULL;

    CHECK(cm_tune_parse("all_reduce 6 6 0-1K direct copy simple 1 -", "text", &t) == CM_OK,
          "parse");
    a.coll = CM_ALL_REDUCE;
    find_pairs(a, &usual);
    a.rules = t;
    find_pairs(a, &ruled);
    a.rules = NULL;
    a.force.algo = "direct";
    find_pairs(a, &direct);
    check_within(&a, &usual, &ruled);
    check_within(&a, &direct, &ruled);
    CHECK(ruled.send[0][5] && !usual.send[0][5], "a pair of the rule only");
    cm_tune_free(t);
}

/* Between nodes the collectives that have a hierarchical form keep to few ranks. */
static void test_few_peers_between_nodes(void)
{
    static const int32_t node[] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    static const enum cm_coll colls[] = {CM_ALL_REDUCE, CM_ALL_GATHER, CM_REDUCE_SCATTER,
                                         CM_BROADCAST,  CM_REDUCE,     CM_ALLTOALL};
    struct pairs p;

    for (size_t k = 0; k < CM_LEN(colls); k++) {
        struct cm_peers_args a = {.coll = colls[k],
                                  .n = CM_LEN(node),
                                  .node = node,
                                  .root = CM_ANY_ROOT,
                                  .force = {.mode = -1}};

        find_pairs(a, &p);
        for (int j = 0; j < a.n; j++)
            CHECK(!p.send[5][j] || node[j] == 1 || j % 4 == 1, "%s: rank 5 sends to %d",
                  cm_colls[a.coll].name, j);
    }
}

/* A loop that runs no times exchanges nothing. */
static void test_empty_loops_are_skipped(void)
{
    struct cm_build_args a = {.coll = CM_ALL_REDUCE, .n = 4};
    bool send[4] = {false}, recv[4] = {false};
    struct cm_plan *p = NULL;

    CHECK(cm_plan_build(cm_algo_find("tree"), &a, &p) == CM_OK, "build");
    for (int k = 0; p != NULL && k < p->nfolds; k++)
        p->folds[k].trips = 0;
    if (p != NULL)
        cm_plan_peers(p, send, recv);
    for (int r = 0; r < 4; r++)
        CHECK(!send[r] && !recv[r], "rank %d", r);
    cm_plan_free(p);
}

static void test_order_by_node(void)
{
    static const int32_t node[] = {7, 3, 7, 0, 3, 7}, want[] = {0, 2, 5, 1, 4, 3};
    static const int32_t one[] = {4, 4};
    int32_t order[CM_LEN(node)];

    cm_order_by_node(node, CM_LEN(node), order);
    for (size_t k = 0; k < CM_LEN(node); k++)
        CHECK(order[k] == want[k], "position %zu: rank %d", k, (int)order[k]);
    CHECK(cm_one_node(NULL, 3) && cm_one_node(one, 2), "one node");
    CHECK(!cm_one_node(node, CM_LEN(node)), "three nodes");
    CHECK(cm_count_nodes(NULL, 3) == 1 && cm_count_nodes(one, 2) == 1 &&
              cm_count_nodes(node, CM_LEN(node)) == 3,
          "count");
}

int main(void)
{
    RUN(test_order_by_node);
    RUN(test_both_ends_agree);
    RUN(test_every_size_is_covered);
    RUN(test_users_rules_count);
    RUN(test_few_peers_between_nodes);
    RUN(test_empty_loops_are_skipped);
    return test_end();
}
