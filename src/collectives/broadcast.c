/*
 * broadcast: every rank gets the root's array. The root's link is the bottleneck, so
 * busbw is algbw.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_BROADCAST,
    .what = "copy the root's array to every rank",
    .bus_factor = cm_bus_once,
    .redop_column = "none",
};

CM_MAIN(bench)
