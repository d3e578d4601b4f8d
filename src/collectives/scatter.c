/*
 * scatter: rank r gets block r of the root's array. The root's own block need not travel.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_SCATTER,
    .what = "hand out the blocks of the root's array",
    .bus_factor = cm_bus_all_but_own,
    .redop_column = "none",
};

CM_MAIN(bench)
