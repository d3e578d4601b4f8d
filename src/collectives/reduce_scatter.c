/*
 * reduce_scatter: rank r gets block r of the reduction of all ranks' arrays.
 * The size counts the array that goes in.
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
    .coll = CM_REDUCE_SCATTER,
    .what = "reduce the arrays of all ranks, one block of the result to each",
    .counts = counts,
    .bus_factor = cm_bus_all_but_own,
};

CM_MAIN(bench)
