/* The verdict where nobody is to be accused, or nobody can be; and what noise does to it. */
#include "find_cluster.h"

static void test_equal_nodes_are_not_accused(void)
{
    static const char *const pairs[] = {"all", "sample=1", "anchor=x"};

    for (size_t k = 0; k < CM_LEN(pairs); k++)
        for (int n = 2; n <= 9; n++) {
            struct score s = {pairs[k], n, 0, 0};

            EACH_SEED(s)
            {
                struct cluster c = cluster_of(n, seed);
                struct cm_find_verdict v;

                judge(&c, n == 2 && k == 1 ? "all" : pairs[k], &limits, &v);
                s.right += cm_find_worst(&v, n) == CM_FIND_GOOD;
                cm_find_verdict_free(&v);
            }
            end(&s);
        }
}

static void test_two_nodes_cannot_be_told_apart(void)
{
    struct cluster c = cluster_of(2, 1);
    struct cm_find_verdict v;

    c.node[1] = 0.1;
    judge(&c, "all", &limits, &v);
    CHECK(!v.compared && cm_find_worst(&v, 2) == CM_FIND_GOOD, "class %d", cm_find_worst(&v, 2));
    cm_find_verdict_free(&v);
    c.hangs = 1;
    judge(&c, "all", &limits, &v);
    CHECK(v.nlinks == 1 && v.links[0].class == CM_FIND_HANGS, "%zu links", v.nlinks);
    CHECK(v.units[0].class == CM_FIND_UNKNOWN && v.units[1].class == CM_FIND_UNKNOWN, "units");
    cm_find_verdict_free(&v);
}

/* Without a reference nothing is wrong with a cluster whose nodes are all slow. */
static void test_all_slow_needs_a_minimum(void)
{
    struct cm_find_limits with = limits;
    struct cm_find_verdict v;

    with.min_gbs = 9;
    for (int n = 2; n <= 9; n++) {
        struct cluster c = cluster_of(n, 3);

        judge(&c, "all", &with, &v);
        CHECK(cm_find_worst(&v, n) == CM_FIND_GOOD, "n=%d: good ones", n);
        cm_find_verdict_free(&v);
        for (int u = 0; u < n; u++)
            c.node[u] = 0.5;
        judge(&c, "all", &limits, &v);
        CHECK(cm_find_worst(&v, n) == CM_FIND_GOOD, "n=%d: without a minimum", n);
        cm_find_verdict_free(&v);
        judge(&c, "all", &with, &v);
        for (int u = 0; u < n; u++)
            CHECK(v.units[u].class == CM_FIND_SLOW, "n=%d: node %d", n, u);
        cm_find_verdict_free(&v);
    }
}

/* Two racks: many pairs are slow, and no node or link stands out. */
static void test_an_uneven_network_accuses_nobody(void)
{
    static struct cm_find_run runs[64];
    static const int ranks[8] = {4, 4, 4, 4, 4, 4, 4, 4};
    struct cm_find_data d = {.n = 8, .ranks = ranks, .runs = runs};
    struct cm_find_verdict v;

    for (int a = 0; a < 8; a++)
        for (int b = a + 1; b < 8; b++)
            runs[d.nruns++] = (struct cm_find_run){
                .a = a, .b = b, .wrong_rank = -1, .gbs = a / 4 == b / 4 ? 12 : 6};
    CHECK(cm_find_judge(&d, &limits, &v) == CM_OK, "judge");
    CHECK(cm_find_worst(&v, 8) == CM_FIND_GOOD, "class %d", cm_find_worst(&v, 8));
    cm_find_verdict_free(&v);
}

/* Nodes with fewer ranks are compared with their like. */
static void test_unequal_nodes(void)
{
    struct score s = {"unequal nodes", 8, 0, 0};

    EACH_SEED(s)
    {
        struct cluster c = cluster_of(8, seed);
        struct cm_find_verdict v;

        c.ranks[6] = c.ranks[7] = 4;
        c.node[2] = 0.6;
        judge(&c, "all", &limits, &v);
        s.right += only(&v, 8, 2, -1, CM_FIND_SLOW);
        cm_find_verdict_free(&v);
    }
    end(&s);
}

static void test_noise_widens_the_limit(void)
{
    struct score s = {"noise of +-20 %", 8, 0, 0};

    EACH_SEED(s)
    {
        struct cluster c = cluster_of(8, seed);
        struct cm_find_verdict v;

        c.noise = 0.2;
        judge(&c, "all", &limits, &v);
        s.right += cm_find_worst(&v, 8) == CM_FIND_GOOD && v.limit_pct > 30;
        cm_find_verdict_free(&v);
    }
    end(&s);
}

/* Of three pairs only they themselves can say how noisy they are. */
static void test_noise_of_few_pairs(void)
{
    static struct cm_find_run runs[] = {{.a = 0, .b = 1, .wrong_rank = -1, .gbs = 12},
                                        {.a = 0, .b = 2, .wrong_rank = -1, .gbs = 9},
                                        {.a = 1, .b = 2, .wrong_rank = -1, .gbs = 8}};
    static const int ranks[] = {1, 1, 1};
    const struct cm_find_data d = {.n = 3, .ranks = ranks, .runs = runs, .nruns = 3};
    struct cm_find_verdict v;

    CHECK(cm_find_judge(&d, &limits, &v) == CM_OK, "judge");
    CHECK(v.units[2].class == CM_FIND_SLOW, "quiet: class %d", v.units[2].class);
    cm_find_verdict_free(&v);
    for (size_t i = 0; i < CM_LEN(runs); i++)
        runs[i].noise = 0.1;
    CHECK(cm_find_judge(&d, &limits, &v) == CM_OK, "judge");
    CHECK(cm_find_worst(&v, 3) == CM_FIND_GOOD, "noisy: class %d", cm_find_worst(&v, 3));
    cm_find_verdict_free(&v);
}

/* A run that ended early accuses nobody of being slow, but of hanging. */
static void test_an_unfinished_run(void)
{
    static struct cm_find_run runs[16];
    static const int ranks[] = {1, 1, 1, 1, 1};
    struct cm_find_data d = {.n = 5, .ranks = ranks, .runs = runs, .unfinished = true};
    struct cm_find_verdict v;

    for (int a = 0; a < 4; a++)
        for (int b = a + 1; b < 4; b++)
            runs[d.nruns++] =
                (struct cm_find_run){.a = a, .b = b, .wrong_rank = -1, .gbs = b == 3 ? 4 : 12};
    runs[d.nruns++] = (struct cm_find_run){.a = 4, .b = 4, .outcome = CM_FIND_HUNG};
    CHECK(cm_find_judge(&d, &limits, &v) == CM_OK, "judge");
    CHECK(v.units[3].class == CM_FIND_UNKNOWN, "slow: class %d", v.units[3].class);
    CHECK(v.units[4].class == CM_FIND_HANGS, "hung: class %d", v.units[4].class);
    CHECK(v.units[0].class == CM_FIND_GOOD, "good: class %d", v.units[0].class);
    cm_find_verdict_free(&v);
}

static void test_nothing_known(void)
{
    static const int ranks[3] = {1, 1, 1};
    struct cm_find_data d = {.n = 3, .ranks = ranks};
    struct cm_find_verdict v;

    CHECK(cm_find_judge(&d, &limits, &v) == CM_OK, "judge");
    for (int u = 0; u < 3; u++)
        CHECK(v.units[u].class == CM_FIND_UNKNOWN && isnan(v.units[u].gbs), "unit %d", u);
    CHECK(v.nlinks == 0 && isnan(v.expected), "%zu links", v.nlinks);
    cm_find_verdict_free(&v);
}

int main(void)
{
    RUN(test_equal_nodes_are_not_accused);
    RUN(test_two_nodes_cannot_be_told_apart);
    RUN(test_all_slow_needs_a_minimum);
    RUN(test_an_uneven_network_accuses_nobody);
    RUN(test_unequal_nodes);
    RUN(test_noise_widens_the_limit);
    RUN(test_noise_of_few_pairs);
    RUN(test_an_unfinished_run);
    RUN(test_nothing_known);
    return test_end();
}
