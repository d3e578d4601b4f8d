/*
 * reduce_scatter: rank r gets block r of the reduction of all ranks' arrays.
 * The size counts the array that goes in.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_REDUCE_SCATTER,
    .what = "reduce the arrays of all ranks, one block of the result to each",
    .bus_factor = cm_bus_all_but_own,
};

CM_MAIN(bench)
