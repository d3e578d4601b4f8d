/*
 * all_gather: every rank gets the blocks of all ranks, in rank order.
 * The size counts the gathered array, so one of n blocks is already there.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_ALL_GATHER,
    .what = "collect the blocks of all ranks on every rank",
    .bus_factor = cm_bus_all_but_own,
    .redop_column = "none",
};

CM_MAIN(bench)
