/*
 * scatter: rank r gets block r of the root's array. The root's own block need not travel.
 */
#include "common/coll.h"

static void counts(size_t elems, size_t bytes, int n, struct cm_counts *out)
{
    size_t base = cm_block_of(elems, bytes, n);

    *out = (struct cm_counts){.send = base * (size_t)n,
                              .recv = base,
                              .param = base,
                              .alg = base * (size_t)n,
                              .out_step = base};
}

static const struct cm_bench bench = {
    .coll = CM_SCATTER,
    .what = "hand out the blocks of the root's array",
    .counts = counts,
    .bus_factor = cm_bus_all_but_own,
    .redop_column = "none",
};

CM_MAIN(bench)
