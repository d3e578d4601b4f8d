/*
 * broadcast: every rank gets the root's array. The root's link is the bottleneck, so
 * busbw is algbw.
 */
#include "common/coll.h"

static void counts(size_t elems, size_t bytes, int n, struct cm_counts *out)
{
    (void)bytes;
    (void)n;
    *out = (struct cm_counts){.send = elems, .recv = elems, .param = elems, .alg = elems};
}

static const struct cm_bench bench = {
    .coll = CM_BROADCAST,
    .what = "copy the root's array to every rank",
    .counts = counts,
    .bus_factor = cm_bus_once,
    .redop_column = "none",
};

CM_MAIN(bench)
