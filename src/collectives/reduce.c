/*
 * reduce: the root gets the reduction of all ranks' arrays. The root's link is the
 * bottleneck, so busbw is algbw.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_REDUCE,
    .what = "reduce the arrays of all ranks, result on the root",
    .bus_factor = cm_bus_once,
};

CM_MAIN(bench)
