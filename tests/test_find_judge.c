/*
 * The verdict on made-up clusters with every kind of fault: 3 to 9 nodes, noise of +-5 %,
 * many seeds.
 */
#include "find_cluster.h"

static void test_a_slow_node_is_found(void)
{
    for (int n = 3; n <= 9; n++) {
        struct score s = {"slow node", n, 0, 0};

        EACH_SEED(s)
        {
            struct cluster c = cluster_of(n, seed);
            int bad = (int)(seed % (uint64_t)n);
            struct cm_find_verdict v;

            c.node[bad] = 0.6;
            judge(&c, "all", &limits, &v);
            s.right += only(&v, n, bad, -1, CM_FIND_SLOW) && v.units[bad].again;
            cm_find_verdict_free(&v);
        }
        end(&s);
    }
}

/* A bad cable loses packets: its pairs are slow, and so noisy that alone they prove nothing. */
static void test_a_slow_and_noisy_node_is_found(void)
{
    for (int n = 3; n <= 5; n++) {
        struct cm_find_run runs[16];
        struct cm_find_verdict v;
        struct cluster c = cluster_of(n, 1);
        struct cm_find_data d = {.n = n, .ranks = c.ranks, .runs = runs};

        for (int a = 0; a < n; a++)
            for (int b = a + 1; b < n; b++)
                runs[d.nruns++] = (struct cm_find_run){.a = a,
                                                       .b = b,
                                                       .wrong_rank = -1,
                                                       .gbs = b == n - 1 ? 0.01 * (a + 1) : 2,
                                                       .noise = b == n - 1 ? 3 : 0.02};
        CHECK(cm_find_judge(&d, &limits, &v) == CM_OK, "%d nodes", n);
        CHECK(only(&v, n, n - 1, -1, CM_FIND_SLOW), "%d nodes: limit %.0f %%", n, v.limit_pct);
        cm_find_verdict_free(&v);
    }
}

static void test_a_slow_link_is_found(void)
{
    for (int n = 3; n <= 9; n++) {
        struct score s = {"slow link", n, 0, 0};

        EACH_SEED(s)
        {
            struct cluster c = cluster_of(n, seed);
            struct cm_find_verdict v;

            c.link = 0.5;
            c.link_a = (int)(seed % (uint64_t)n);
            c.link_b = (c.link_a + 1) % n;
            judge(&c, "all", &limits, &v);
            s.right += only_link(&v, n, c.link_a, c.link_b, CM_FIND_SLOW) && v.links[0].again;
            cm_find_verdict_free(&v);
        }
        end(&s);
    }
}

/* Two of them, in a sample perhaps paired with each other, and of different badness. */
static void test_two_slow_nodes_are_found(void)
{
    for (int n = 5; n <= 9; n++) {
        struct score s = {"two slow nodes", n, 0, 0};

        EACH_SEED(s)
        {
            struct cluster c = cluster_of(n, seed);
            int a = (int)(seed % (uint64_t)n), b = (a + 1 + (int)(seed / 10) % (n - 1)) % n;
            struct cm_find_verdict v;

            c.node[a] = 0.4;
            c.node[b] = 0.7;
            judge(&c, "all", &limits, &v);
            s.right += only(&v, n, a, b, CM_FIND_SLOW);
            cm_find_verdict_free(&v);
        }
        end(&s);
    }
}

static void test_a_sample_finds_it_by_retests(void)
{
    struct score s = {"sample", 24, 0, 0};

    EACH_SEED(s)
    {
        struct cluster c = cluster_of(24, seed);
        int bad = (int)(seed % 24);
        struct cm_find_verdict v;

        c.node[bad] = 0.6;
        judge(&c, "sample=1", &limits, &v);
        s.right += only(&v, 24, bad, -1, CM_FIND_SLOW);
        cm_find_verdict_free(&v);
    }
    end(&s);
}

static void test_a_node_slow_by_itself_is_found(void)
{
    for (int n = 4; n <= 9; n++) {
        struct score s = {"slow by itself", n, 0, 0};

        EACH_SEED(s)
        {
            struct cluster c = cluster_of(n, seed);
            int bad = (int)(seed % (uint64_t)n);
            struct cm_find_verdict v;

            c.alone[bad] = 0.5;
            judge(&c, "all", &limits, &v);
            s.right += only(&v, n, bad, -1, CM_FIND_SLOW) && v.units[bad].by_itself;
            cm_find_verdict_free(&v);
        }
        end(&s);
    }
}

static void test_a_hanging_node_is_found(void)
{
    for (int n = 3; n <= 9; n++)
        for (int bad = 0; bad < n; bad++) {
            struct cluster c = cluster_of(n, 1);
            struct cm_find_verdict v;

            c.hangs = bad;
            judge(&c, "all", &limits, &v);
            CHECK(only(&v, n, bad, -1, CM_FIND_HANGS), "n=%d: node %d", n, bad);
            cm_find_verdict_free(&v);
        }
}

static void test_two_hanging_nodes_are_found(void)
{
    for (int n = 5; n <= 9; n++)
        for (int bad = 1; bad < n; bad++) {
            struct cluster c = cluster_of(n, 1);
            struct cm_find_verdict v;

            c.hangs = 0;
            c.hangs_too = bad;
            judge(&c, "all", &limits, &v);
            CHECK(only(&v, n, 0, bad, CM_FIND_HANGS), "n=%d: nodes 0 and %d", n, bad);
            cm_find_verdict_free(&v);
        }
}

static void test_a_link_that_hangs_or_corrupts_is_found(void)
{
    static const enum cm_find_class classes[] = {
        [CM_FIND_WRONG] = CM_FIND_CORRUPT, [CM_FIND_HUNG] = CM_FIND_HANGS};

    for (int n = 3; n <= 9; n++)
        for (int k = CM_FIND_WRONG; k <= CM_FIND_HUNG; k++) {
            struct cluster c = cluster_of(n, 1);
            struct cm_find_verdict v;

            c.link_a = n - 1;
            c.link_b = 0;
            c.link_outcome = (enum cm_find_outcome)k;
            judge(&c, "all", &limits, &v);
            CHECK(only_link(&v, n, 0, n - 1, classes[k]), "n=%d outcome %d", n, k);
            cm_find_verdict_free(&v);
        }
}

static void test_a_corrupt_node_is_found_and_its_rank_named(void)
{
    for (int n = 3; n <= 9; n++) {
        struct cluster c = cluster_of(n, 1);
        struct cm_find_verdict v;

        c.corrupt = n - 2;
        judge(&c, "all", &limits, &v);
        CHECK(only(&v, n, n - 2, -1, CM_FIND_CORRUPT), "n=%d", n);
        CHECK(v.units[n - 2].wrong_rank == 10 * (n - 2), "n=%d: rank %d", n,
              v.units[n - 2].wrong_rank);
        cm_find_verdict_free(&v);
    }
}

int main(void)
{
    RUN(test_a_slow_node_is_found);
    RUN(test_a_slow_and_noisy_node_is_found);
    RUN(test_a_slow_link_is_found);
    RUN(test_two_slow_nodes_are_found);
    RUN(test_a_sample_finds_it_by_retests);
    RUN(test_a_node_slow_by_itself_is_found);
    RUN(test_a_hanging_node_is_found);
    RUN(test_two_hanging_nodes_are_found);
    RUN(test_a_link_that_hangs_or_corrupts_is_found);
    RUN(test_a_corrupt_node_is_found_and_its_rank_named);
    return test_end();
}
