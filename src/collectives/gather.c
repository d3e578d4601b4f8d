/*
 * gather: the root gets the blocks of all ranks, in rank order. Its own block need not
 * travel.
 */
#include "common/coll.h"

static void counts(size_t elems, size_t bytes, int n, struct cm_counts *out)
{
    size_t base = cm_block_of(elems, bytes, n);

    *out = (struct cm_counts){.send = base,
                              .recv = base * (size_t)n,
                              .param = base,
                              .alg = base * (size_t)n,
                              .in_step = base};
}

static const struct cm_bench bench = {
    .coll = CM_GATHER,
    .what = "collect the blocks of all ranks on the root",
    .counts = counts,
    .bus_factor = cm_bus_all_but_own,
    .redop_column = "none",
};

CM_MAIN(bench)
