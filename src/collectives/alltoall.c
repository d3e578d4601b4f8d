/*
 * alltoall: block p of rank r becomes block r of rank p. One of n blocks stays at home.
 * There is no in-place form.
 */
#include "common/coll.h"

static void counts(size_t elems, size_t bytes, int n, struct cm_counts *out)
{
    size_t base = cm_block_of(elems, bytes, n);

    *out = (struct cm_counts){
        .send = base * (size_t)n, .recv = base * (size_t)n, .param = base, .alg = base * (size_t)n};
}

static const struct cm_bench bench = {
    .coll = CM_ALLTOALL,
    .what = "exchange a block between every two ranks",
    .counts = counts,
    .bus_factor = cm_bus_all_but_own,
    .redop_column = "none",
};

CM_MAIN(bench)
