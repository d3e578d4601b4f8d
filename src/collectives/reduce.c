/*
 * reduce: the root gets the reduction of all ranks' arrays. The root's link is the
 * bottleneck, so busbw is algbw.
 */
#include "common/coll.h"

static void counts(size_t elems, size_t bytes, int n, struct cm_counts *out)
{
    (void)bytes;
    (void)n;
    *out = (struct cm_counts){.send = elems, .recv = elems, .param = elems, .alg = elems};
}

static const struct cm_bench bench = {
    .coll = CM_REDUCE,
    .what = "reduce the arrays of all ranks, result on the root",
    .counts = counts,
    .bus_factor = cm_bus_once,
};

CM_MAIN(bench)
