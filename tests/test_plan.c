/*
 * Every plan of every algorithm is proved: collectives x algorithms x modes x
 * in and out of place x ranks x roots x node maps x FIFO depths, several
 * operations in a row. CM_FULL=1 in the environment, or any argument, takes the whole grid.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/algo.h"
#include "engine/verify.h"
#include "node_maps.h"
#include "test.h"

enum { MAX_N = 64, CALLS = 3 };

static bool full_grid;

struct grid_case {
    const struct cm_algo *algo;
    struct cm_build_args build;
    struct cm_verify_args verify;
};

static void free_plans(struct cm_plan **plans, int n)
{
    for (int r = 0; r < n; r++)
        cm_plan_free(plans[r]);
}

static bool build_plans(const struct grid_case *g, struct cm_plan **plans)
{
    for (int r = 0; r < g->build.n; r++) {
        struct cm_build_args a = g->build;
        enum cm_status st;

        a.rank = r;
        st = cm_plan_build(g->algo, &a, &plans[r]);
        CHECK(st == CM_OK, "%s %s n=%d rank=%d: status %d", cm_colls[a.coll].name, g->algo->name,
              a.n, r, (int)st);
        if (st != CM_OK) {
            free_plans(plans, r);
            return false;
        }
    }
    return true;
}

/* The node map, if there is one: "0,0,1". */
static const char *map_text(const struct grid_case *g, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int r = 0; g->build.node != NULL && r < g->build.n && used < size; r++)
        used +=
            (size_t)snprintf(buf + used, size - used, "%s%d", r > 0 ? "," : "", g->build.node[r]);
    return buf;
}

static void prove(const struct grid_case *g, struct cm_plan **plans)
{
    struct cm_proof proof;
    enum cm_status st = cm_verify(plans, g->build.n, &g->verify, &proof);
    char map[256];

    CHECK(st == CM_OK && proof.ok,
          "%s %s %s n=%d root=%d in_place=%d depth=%d order=%d nodes=%s: %s",
          cm_colls[g->build.coll].name, g->algo->name,
          g->build.mode == CM_MODE_COPY ? "copy" : "direct", g->build.n, g->build.root,
          g->verify.in_place, g->verify.depth, g->build.order != NULL,
          map_text(g, map, sizeof(map)), proof.why);
}

/* Both placements, and with ports the depths. */
static void prove_placements(struct grid_case g)
{
    struct cm_plan *plans[MAX_N];
    int depths[3] = {1, 2, 8}, ndepths;

    if (!build_plans(&g, plans))
        return;
    ndepths = plans[0]->ports ? 3 : 1;
    depths[0] = plans[0]->min_depth;
    for (int d = 0; d < ndepths; d++) {
        g.verify.depth = depths[d];
        if (d > 0 && depths[d] == depths[0])
            continue;
        for (int in_place = 0; in_place <= cm_colls[g.build.coll].in_place; in_place++) {
            g.verify.in_place = in_place;
            prove(&g, plans);
        }
    }
    free_plans(plans, g.build.n);
}

static void prove_roots(struct grid_case g)
{
    int n = g.build.n;

    for (int root = 0; root < n; root++) {
        if (root > 0 && !cm_colls[g.build.coll].rooted)
            break;
        if (n > (full_grid ? 9 : 5) && root > 1 && root < n - 1)
            continue;
        g.build.root = root;
        prove_placements(g);
    }
}

/* In copy mode every rank stands on a node of its own: nothing but ports may be used. */
static void prove_modes(const struct cm_algo *algo, enum cm_coll coll, int n)
{
    int32_t shuffled[MAX_N], apart[MAX_N];
    struct grid_case g = {
        .algo = algo, .build = {.coll = coll, .n = n}, .verify = {.calls = CALLS}};

    for (int k = 0; k < n; k++) {
        shuffled[k] = n % 5 ? (5 * k + 2) % n : (3 * k + 2) % n;
        apart[k] = k;
    }
    for (int mode = CM_MODE_COPY; mode <= CM_MODE_DIRECT; mode++) {
        g.build.mode = mode;
        g.verify.node = mode == CM_MODE_COPY ? apart : NULL;
        g.build.order = NULL;
        prove_roots(g);
        if (n % 15 == 0 || n > 17)
            continue; /* not a permutation, or too much of the same */
        g.build.order = shuffled;
        prove_roots(g);
    }
}

static void prove_algo(const char *name)
{
    static const int quick[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 33};
    static const int full[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                               12, 13, 14, 15, 16, 17, 24, 31, 32, 33, 64};
    const struct cm_algo *algo = cm_algo_find(name);
    size_t count = full_grid ? CM_LEN(full) : CM_LEN(quick);

    for (int coll = 0; coll < CM_NCOLLS; coll++) {
        for (size_t k = 0; algo->build[coll] != NULL && k < count; k++)
            prove_modes(algo, coll, full_grid ? full[k] : quick[k]);
    }
}

static void test_direct(void)
{
    prove_algo("direct");
}

static void test_oneshot(void)
{
    prove_algo("oneshot");
}

static void test_ring(void)
{
    prove_algo("ring");
}

static void test_tree(void)
{
    prove_algo("tree");
}

static void test_recdbl(void)
{
    prove_algo("recdbl");
}

static int local_index(const int32_t *node, int rank)
{
    int local = 0;

    for (int r = 0; r < rank; r++)
        local += node[r] == node[rank];
    return local;
}

/* Between nodes data goes along the rails only: between ranks of equal local index. */
static void check_rails(const struct grid_case *g)
{
    const int32_t *node = g->build.node;
    struct cm_plan *plans[MAX_N];
    char map[256];

    if (!build_plans(g, plans))
        return;
    for (int r = 0; r < g->build.n; r++) {
        for (int k = 0; k < plans[r]->noperands; k++) {
            int peer = plans[r]->operands[k].rank;

            CHECK(node[peer] == node[r] || local_index(node, peer) == local_index(node, r),
                  "%s %s nodes=%s: rank %d with rank %d", cm_colls[g->build.coll].name,
                  g->algo->name, map_text(g, map, sizeof(map)), r, peer);
        }
    }
    free_plans(plans, g->build.n);
}

static void prove_maps(const struct cm_algo *algo, enum cm_coll coll, int n)
{
    int32_t node[MAX_N];
    struct grid_case g = {.algo = algo,
                          .build = {.coll = coll, .n = n, .node = node},
                          .verify = {.calls = CALLS, .node = node}};

    for (size_t k = 0; k < CM_LEN(node_maps); k++) {
        fill_map(&node_maps[k], n, node);
        for (int mode = CM_MODE_COPY; mode <= CM_MODE_DIRECT; mode++) {
            g.build.mode = mode;
            g.build.root = n - 1;
            if (coll != CM_GATHER && coll != CM_SCATTER) /* there each node has one agent */
                check_rails(&g);
            prove_roots(g);
        }
    }
}

static void test_node_maps(void)
{
    static const int quick[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 17};

    for (const struct cm_algo *algo = cm_algos; algo->name != NULL; algo++) {
        for (int coll = 0; coll < CM_NCOLLS; coll++) {
            if (!algo->by_node || algo->build[coll] == NULL)
                continue;
            for (int k = 0; k < (full_grid ? 17 : (int)CM_LEN(quick)); k++)
                prove_maps(algo, coll, full_grid ? k + 1 : quick[k]);
        }
    }
}

/* Build, prove, and compare the traffic of the busiest rank and the steps. */
static void check_cost(const struct grid_case *g, int num, int den, int longest)
{
    struct cm_verify_args v = {.depth = 2, .calls = 1, .node = g->verify.node};
    struct cm_plan *plans[MAX_N];
    struct cm_proof proof;

    if (!build_plans(g, plans))
        return;
    CHECK(cm_verify(plans, g->build.n, &v, &proof) == CM_OK && proof.ok, "%s", proof.why);
    CHECK(proof.bytes_num * (uint64_t)den == proof.bytes_den * (uint64_t)num &&
              proof.longest == longest,
          "%s %s mode %d: %llu/%llu of the vector, longest %d", g->algo->name,
          cm_colls[g->build.coll].name, (int)g->build.mode, (unsigned long long)proof.bytes_num,
          (unsigned long long)proof.bytes_den, proof.longest);
    free_plans(plans, g->build.n);
}

/*
 * Two nodes of four ranks, then 3 + 5, and one rank each: against the closed forms in the builders'
 * comments. Two ranks on two nodes reduce in one exchange: send to the other, add what comes.
 */
static void test_costs_on_nodes(void)
{
    static const int32_t even[] = {0, 0, 0, 0, 1, 1, 1, 1}, uneven[] = {0, 0, 0, 1, 1, 1, 1, 1};
    static const struct {
        const char *algo;
        enum cm_coll coll;
        enum cm_mode mode;
        const int32_t *node;
        int n, num, den, longest;
    } cases[] = {
        {"hier", CM_ALL_REDUCE, CM_MODE_COPY, even, 8, 14, 8, 15},
        {"hier", CM_ALL_GATHER, CM_MODE_COPY, even, 8, 7, 8, 8},
        {"hier", CM_REDUCE_SCATTER, CM_MODE_COPY, even, 8, 7, 8, 8},
        {"hier", CM_BROADCAST, CM_MODE_COPY, even, 8, 7, 4, 4},
        {"hier", CM_REDUCE, CM_MODE_COPY, even, 8, 1, 1, 7},
        {"hier", CM_ALLTOALL, CM_MODE_COPY, even, 8, 10, 8, 18},
        {"hierdbl", CM_ALL_REDUCE, CM_MODE_COPY, even, 8, 7, 4, 8},
        {"hier", CM_ALL_REDUCE, CM_MODE_COPY, uneven, 8, 7, 3, 12},
        {"hier", CM_ALL_REDUCE, CM_MODE_DIRECT, even, 8, 14, 8, 6},
        {"hier", CM_ALL_GATHER, CM_MODE_DIRECT, even, 8, 7, 8, 5},
        {"hier", CM_REDUCE_SCATTER, CM_MODE_DIRECT, even, 8, 7, 8, 5},
        {"hier", CM_BROADCAST, CM_MODE_DIRECT, even, 8, 5, 4, 4},
        {"hier", CM_REDUCE, CM_MODE_DIRECT, even, 8, 1, 1, 4},
        {"hier", CM_ALLTOALL, CM_MODE_DIRECT, even, 8, 10, 8, 15},
        {"hier", CM_GATHER, CM_MODE_DIRECT, even, 8, 7, 8, 9},
        {"hierdbl", CM_ALL_REDUCE, CM_MODE_DIRECT, even, 8, 7, 4, 5},
        {"hierdbl", CM_ALL_REDUCE, CM_MODE_DIRECT, NULL, 2, 1, 1, 2},
        {"hierdbl", CM_ALL_REDUCE, CM_MODE_COPY, NULL, 2, 1, 1, 2},
        {"hier", CM_ALL_REDUCE, CM_MODE_DIRECT, NULL, 2, 1, 1, 3},
    };
    static const int32_t apart[] = {0, 1};

    for (size_t k = 0; k < CM_LEN(cases); k++) {
        const int32_t *node = cases[k].node != NULL ? cases[k].node : apart;
        struct grid_case g = {
            .algo = cm_algo_find(cases[k].algo),
            .build = {.coll = cases[k].coll, .mode = cases[k].mode, .n = cases[k].n, .node = node},
            .verify = {.node = node}};

        check_cost(&g, cases[k].num, cases[k].den, cases[k].longest);
    }
}

/* Traffic of the busiest rank and steps, against the closed forms. */
static void test_costs(void)
{
    static const struct {
        const char *algo;
        enum cm_coll coll;
        enum cm_mode mode;
        int n, num, den, longest;
    } cases[] = {
        {"ring", CM_ALL_REDUCE, CM_MODE_COPY, 8, 14, 8, 15},
        {"ring", CM_ALL_REDUCE, CM_MODE_DIRECT, 8, 14, 8, 16},
        {"ring", CM_ALL_GATHER, CM_MODE_COPY, 8, 7, 8, 8},
        {"ring", CM_REDUCE_SCATTER, CM_MODE_COPY, 8, 7, 8, 8},
        {"ring", CM_BROADCAST, CM_MODE_COPY, 8, 1, 1, 1},
        {"ring", CM_SCATTER, CM_MODE_COPY, 8, 7, 8, 8},
        {"direct", CM_ALL_REDUCE, CM_MODE_COPY, 8, 14, 8, 15},
        {"direct", CM_ALL_REDUCE, CM_MODE_DIRECT, 8, 14, 8, 3},
        {"direct", CM_ALLTOALL, CM_MODE_DIRECT, 8, 7, 8, 10},
        {"direct", CM_REDUCE, CM_MODE_DIRECT, 8, 8, 8, 3},
        {"oneshot", CM_ALL_REDUCE, CM_MODE_COPY, 8, 7, 1, 2},
        {"tree", CM_ALL_REDUCE, CM_MODE_COPY, 8, 2, 1, 1},
        {"tree", CM_BROADCAST, CM_MODE_COPY, 8, 1, 1, 1},
        {"recdbl", CM_ALL_REDUCE, CM_MODE_COPY, 8, 3, 1, 6},
        {"recdbl", CM_ALL_GATHER, CM_MODE_COPY, 8, 7, 8, 15},
    };

    for (size_t k = 0; k < CM_LEN(cases); k++) {
        struct grid_case g = {
            .algo = cm_algo_find(cases[k].algo),
            .build = {.coll = cases[k].coll, .mode = cases[k].mode, .n = cases[k].n}};

        check_cost(&g, cases[k].num, cases[k].den, cases[k].longest);
    }
}

static void test_names(void)
{
    struct cm_build_args a = {.coll = CM_ALLTOALL, .n = 4};
    struct cm_plan *p = NULL;

    CHECK(cm_coll_find("alltoallv") == CM_ALLTOALLV, "%d", cm_coll_find("alltoallv"));
    CHECK(cm_coll_find("all") == -1, "%d", cm_coll_find("all"));
    CHECK(cm_algo_find("RecDbl") != NULL && cm_algo_find("rin") == NULL, "case, prefix");
    CHECK(cm_plan_build(cm_algo_find("tree"), &a, &p) == CM_EUNSUP && p == NULL, "tree alltoall");
    for (int c = 0; c < CM_NCOLLS; c++) {
        CHECK(cm_coll_find(cm_colls[c].name) == c, "%s", cm_colls[c].name);
        CHECK(c == CM_HYPERCUBE || cm_algo_find("direct")->build[c] != NULL, "%s",
              cm_colls[c].name);
    }
}

static void test_text(void)
{
    struct cm_build_args a = {.coll = CM_ALL_REDUCE, .mode = CM_MODE_COPY, .rank = 1, .n = 4};
    static const char *const want[] = {"all_reduce ring copy, rank 1 of 4",
                                       "depth >= 2",
                                       "w0 ch0: {IN[order[0]]} -> {port->2}",
                                       "loop i < 2",
                                       "w0 ch0:   {port<-0, IN[order[(3-i)%4]]} -> {port->2}",
                                       " complete"};
    struct cm_plan *p = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (f == NULL || cm_plan_build(cm_algo_find("ring"), &a, &p) != CM_OK) {
        CHECK(false, "cannot start");
        return;
    }
    cm_plan_print(p, f);
    fclose(f);
    for (size_t k = 0; k < CM_LEN(want); k++)
        CHECK(strstr(text, want[k]) != NULL, "no \"%s\" in:\n%s", want[k], text);
    free(text);
    cm_plan_free(p);
}

int main(int argc, char **argv)
{
    const char *env = getenv("CM_FULL");

    (void)argv;
    full_grid = argc > 1 || (env != NULL && strcmp(env, "0") != 0 && *env != '\0');
    RUN(test_names);
    RUN(test_text);
    RUN(test_costs);
    RUN(test_costs_on_nodes);
    RUN(test_direct);
    RUN(test_oneshot);
    RUN(test_ring);
    RUN(test_tree);
    RUN(test_recdbl);
    RUN(test_node_maps);
    return test_end();
}
