/*
 * all_reduce: every rank gets the reduction of all ranks' arrays.
 */
#include "common/coll.h"

static void counts(size_t elems, size_t bytes, int n, struct cm_counts *out)
{
    (void)bytes;
    (void)n;
    *out = (struct cm_counts){.send = elems, .recv = elems, .param = elems, .alg = elems};
}

/* Every element is added n - 1 times and handed back n - 1 times, on n links: 2 (n - 1) / n. */
static double bus_factor(int n)
{
    return 2.0 * (n - 1) / n;
}

static const struct cm_bench bench = {
    .coll = CM_ALL_REDUCE,
    .what = "reduce the arrays of all ranks, result on every rank",
    .counts = counts,
    .bus_factor = bus_factor,
};

CM_MAIN(bench)
