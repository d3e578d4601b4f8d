/*
 * all_reduce: every rank gets the reduction of all ranks' arrays.
 */
#include "common/coll.h"

/* Every element is added n - 1 times and handed back n - 1 times, on n links: 2 (n - 1) / n. */
static double bus_factor(int n)
{
    return 2.0 * (n - 1) / n;
}

static const struct cm_bench bench = {
    .coll = CM_ALL_REDUCE,
    .what = "reduce the arrays of all ranks, result on every rank",
    .bus_factor = bus_factor,
};

CM_MAIN(bench)
