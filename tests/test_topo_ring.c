/* The ring search: the best ring of known machines, and against all rings of random ones. */
#include <string.h>

#include "engine/topo_int.h"
#include "test.h"

enum { MAX_N = CM_TOPO_GPUS };

struct worth {
    int64_t weakest, sum;
    int weak;
};

static struct worth worth_of(const int64_t *m, int n, const int *ring)
{
    struct worth w = {.weakest = INT64_MAX};

    for (int i = 0; i < n; i++) {
        int64_t link = m[ring[i] * n + ring[(i + 1) % n]];

        w.weak = link < w.weakest ? 1 : w.weak + (link == w.weakest);
        w.weakest = link < w.weakest ? link : w.weakest;
        w.sum += link;
    }
    return w;
}

static bool is_better(const struct worth *a, const struct worth *b)
{
    if (a->weakest != b->weakest)
        return a->weakest > b->weakest;
    return a->weak != b->weak ? a->weak < b->weak : a->sum > b->sum;
}

/* Best of all orders of ring[at .. n-1], by plain enumeration. */
static void enumerate(const int64_t *m, int n, int *ring, int at, struct worth *best)
{
    if (at == n) {
        struct worth w = worth_of(m, n, ring);

        if (is_better(&w, best))
            *best = w;
        return;
    }
    for (int i = at; i < n; i++) {
        int first = ring[at];

        ring[at] = ring[i];
        ring[i] = first;
        enumerate(m, n, ring, at + 1, best);
        ring[i] = ring[at];
        ring[at] = first;
    }
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Strengths 1 .. kinds. */
static void fill(int64_t *m, int n, int kinds, uint64_t *state)
{
    for (int a = 0; a < n; a++)
        for (int b = 0; b <= a; b++)
            m[a * n + b] = m[b * n + a] = 1 + (int64_t)(random_next(state) % (uint64_t)kinds);
}

static bool is_ring(const int *order, int n)
{
    uint64_t seen = 0;

    for (int i = 0; i < n; i++)
        if (order[i] >= 0 && order[i] < n)
            seen |= (uint64_t)1 << order[i];
    return seen == (n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1) && order[0] == 0 &&
           (n < 3 || order[1] < order[n - 1]);
}

static void test_small_rings_are_the_best(void)
{
    uint64_t state = 1;

    for (int n = 1; n <= 8; n++)
        for (int kinds = 1; kinds <= 9; kinds += 2) {
            int order[MAX_N] = {0}, ring[MAX_N];
            struct worth best = {.weakest = -1}, w;
            int64_t m[MAX_N * MAX_N];

            fill(m, n, kinds, &state);
            for (int i = 0; i < n; i++)
                ring[i] = i;
            enumerate(m, n, ring, 1, &best);
            cm_ring_search(m, n, order);
            w = worth_of(m, n, order);
            CHECK(is_ring(order, n), "n=%d kinds %d", n, kinds);
            CHECK(n == 1 || !is_better(&best, &w), "n=%d kinds %d: weakest %lld of %lld", n, kinds,
                  (long long)w.weakest, (long long)best.weakest);
        }
}

/* Above 8 the search may miss the best ring; of these it finds all. */
static void test_rings_of_nine_reach_the_best(void)
{
    uint64_t state = 3;

    for (int i = 0; i < 12; i++) {
        int order[MAX_N], ring[MAX_N], n = 9;
        struct worth best = {.weakest = -1}, w;
        int64_t m[81];

        fill(m, n, 2 + i % 4, &state);
        for (int k = 0; k < n; k++)
            ring[k] = k;
        enumerate(m, n, ring, 1, &best);
        cm_ring_search(m, n, order);
        w = worth_of(m, n, order);
        CHECK(is_ring(order, n) && !is_better(&best, &w), "matrix %d: weakest %lld of %lld", i,
              (long long)w.weakest, (long long)best.weakest);
    }
}

static void test_large_rings_are_rings_and_always_the_same(void)
{
    static const int sizes[] = {9, 16, 33, 64};
    uint64_t state = 2;

    for (size_t i = 0; i < CM_LEN(sizes); i++) {
        int n = sizes[i], order[MAX_N], again[MAX_N], plain[MAX_N];
        int64_t m[MAX_N * MAX_N];
        struct worth w, of_plain;

        fill(m, n, 5, &state);
        cm_ring_search(m, n, order);
        cm_ring_search(m, n, again);
        for (int k = 0; k < n; k++)
            plain[k] = k;
        w = worth_of(m, n, order);
        of_plain = worth_of(m, n, plain);
        CHECK(is_ring(order, n) && memcmp(order, again, (size_t)n * sizeof(order[0])) == 0, "n=%d",
              n);
        CHECK(!is_better(&of_plain, &w), "n=%d: worse than the order of numbers", n);
    }
}

/* Groups that are joined well inside: each is entered once, however its members are numbered. */
static void test_large_rings_enter_each_group_once(void)
{
    static const struct {
        int n, groups;
    } cases[] = {{12, 3}, {16, 2}, {16, 4}, {32, 4}, {64, 8}};

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        int n = cases[i].n, order[MAX_N];
        int64_t m[MAX_N * MAX_N];
        struct worth w;

        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                m[a * n + b] = a % cases[i].groups == b % cases[i].groups ? 9 : 1;
        cm_ring_search(m, n, order);
        w = worth_of(m, n, order);
        CHECK(is_ring(order, n) && w.weak == cases[i].groups, "%d in %d groups: %d weak links", n,
              cases[i].groups, w.weak);
    }
}

static void test_rings_of_machines(void)
{
    static const struct {
        const char *machine;
        int gpus[8], n, want[8];
        enum cm_topo_class weakest;
        double gbs;
    } cases[] = {
        {"v100-cube", {0, 1, 2, 3, 4, 5, 6, 7}, 8, {0, 3, 2, 1, 5, 6, 7, 4}, CM_TOPO_NV, 50},
        {"v100-cube", {3, 2, 1, 0}, 4, {3, 2, 1, 0}, CM_TOPO_NV, 25},
        {"pcie-4+4", {0, 4, 1, 5, 2, 6, 3, 7}, 8, {0, 4, 5, 6, 7, 2, 3, 1}, CM_TOPO_SYS, 31.5},
        {"a100-nvswitch", {7, 3, 5}, 3, {7, 3, 5}, CM_TOPO_NV, 300},
        {"pcie-4+4", {6, 2}, 2, {6, 2}, CM_TOPO_SYS, 31.5},
        {"laptop", {0}, 1, {0}, CM_TOPO_X, 0},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_topo_link l;
        struct cm_topo *t = NULL;
        char path[64];
        int order[8] = {0};

        snprintf(path, sizeof(path), "tests/topo/%s.topo", cases[i].machine);
        CHECK(cm_topo_read(path, &t) == CM_OK, "%s", path);
        if (t == NULL)
            continue;
        l = cm_topo_ring(t, cases[i].gpus, cases[i].n, order);
        CHECK(l.kind == cases[i].weakest && l.gbs > cases[i].gbs - 0.001 &&
                  l.gbs < cases[i].gbs + 0.001,
              "case %zu: class %d, %g GB/s", i, l.kind, l.gbs);
        for (int k = 0; k < cases[i].n; k++)
            CHECK(order[k] == cases[i].want[k], "case %zu: place %d has GPU %d, want %d", i, k,
                  order[k], cases[i].want[k]);
        cm_topo_free(t);
    }
}

int main(void)
{
    RUN(test_small_rings_are_the_best);
    RUN(test_rings_of_nine_reach_the_best);
    RUN(test_large_rings_are_rings_and_always_the_same);
    RUN(test_large_rings_enter_each_group_once);
    RUN(test_rings_of_machines);
    return test_end();
}
