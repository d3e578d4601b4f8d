/*
 * alltoallv: alltoall with a size of its own for every pair of ranks, from a generated
 * spread or a traffic matrix (common/matrix.c), which the harness puts in the place of
 * the even sizes. There is no in-place form.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_ALLTOALLV,
    .what = "exchange blocks of different sizes between every two ranks",
    .bus_factor = cm_bus_all_but_own,
    .redop_column = "none",
};

CM_MAIN(bench)
