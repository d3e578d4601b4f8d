/*
 * gather: the root gets the blocks of all ranks, in rank order. Its own block need not
 * travel.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_GATHER,
    .what = "collect the blocks of all ranks on the root",
    .bus_factor = cm_bus_all_but_own,
    .redop_column = "none",
};

CM_MAIN(bench)
