/*
 * alltoall: block p of rank r becomes block r of rank p. One of n blocks stays at home.
 * There is no in-place form.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_ALLTOALL,
    .what = "exchange a block between every two ranks",
    .bus_factor = cm_bus_all_but_own,
    .redop_column = "none",
};

CM_MAIN(bench)
