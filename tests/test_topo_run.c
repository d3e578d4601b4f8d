/*
 * Topology in a run: the ring order of ranks on GPUs, and ranks of this machine
 * that share a core.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/topo_run.h"
#include "engine/algo.h"
#include "test.h"

/* Eight GPUs in a cube mesh: as one node, and as two nodes of interleaved ranks. */
static void test_ring_inside_each_node(void)
{
    static const struct {
        int32_t node[8], want[8];
    } cases[] = {{{0, 0, 0, 0, 0, 0, 0, 0}, {0, 3, 2, 1, 5, 6, 7, 4}},
                 {{0, 1, 0, 1, 0, 1, 0, 1}, {0, 2, 6, 4, 1, 3, 7, 5}},
                 {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}};
    struct cm_topo *t = NULL;

    if (cm_topo_read("tests/topo/v100-cube.topo", &t) != CM_OK)
        abort();
    for (size_t k = 0; k < CM_LEN(cases); k++) {
        int32_t order[8];

        cm_order_by_node(cases[k].node, 8, order);
        cm_topo_order(t, cases[k].node, NULL, 8, order);
        for (int i = 0; i < 8; i++)
            CHECK(order[i] == cases[k].want[i], "case %zu: place %d has rank %d", k, i,
                  (int)order[i]);
    }
    cm_topo_free(t);
}

static void keep(void *arg, const char *text)
{
    strcat(arg, text);
    strcat(arg, "\n");
}

/* Rank 0 .. 4 of two machines; cpu 0 stands for any CPU that there is. */
static const struct cm_rank_info infos[] = {
    {.rank = 0, .host = "a", .boot_id = "x", .cpus = "0"},
    {.rank = 1, .host = "b", .boot_id = "y", .cpus = "0"},
    {.rank = 2, .host = "a", .boot_id = "x", .cpus = "0"},
    {.rank = 3, .host = "a", .boot_id = "x", .cpus = "0-1"},
    {.rank = 4, .host = "a", .boot_id = "x", .cpus = "0"},
};

static void test_lowest_rank_of_a_machine_warns(void)
{
    struct cm_rank r = {.n = CM_LEN(infos), .infos = infos};
    char text[1024] = "";

    if (access("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", R_OK) != 0) {
        SKIP("the system does not show cpu 0");
        return;
    }
    CHECK(cm_topo_run_warnings(&r, keep, text) == 1, "%s", text);
    CHECK(strstr(text, "ranks 0, 2, 4 share the core of cpu 0") != NULL, "%s", text);
    text[0] = '\0';
    for (r.rank = 1; r.rank < r.n; r.rank++)
        CHECK(cm_topo_run_warnings(&r, keep, text) == 0, "rank %d: %s", r.rank, text);
}

/* On the host there is no order to be found, and nobody waits for anybody. */
static void test_no_order_on_the_host(void)
{
    struct cm_rank r = {.n = CM_LEN(infos), .infos = infos};
    int32_t order[CM_LEN(infos)] = {7};
    bool found = true;

    CHECK(cm_topo_run_order(&r, order, &found) == CM_OK && !found && order[0] == 7, "host");
}

int main(void)
{
    RUN(test_ring_inside_each_node);
    RUN(test_lowest_rank_of_a_machine_warns);
    RUN(test_no_order_on_the_host);
    return test_end();
}
