/*
 * hypercube: an all_gather by recursive doubling, block exchanges with rank xor 2^k.
 * algbw counts what a rank receives, all blocks but its own; busbw is the same.
 */
#include "common/coll.h"

static void counts(size_t elems, size_t bytes, int n, struct cm_counts *out)
{
    size_t base = cm_block_of(elems, bytes, n);

    *out = (struct cm_counts){.send = base,
                              .recv = base * (size_t)n,
                              .param = base,
                              .alg = base * (size_t)(n - 1),
                              .in_step = base};
}

static const struct cm_bench bench = {
    .coll = CM_HYPERCUBE,
    .what = "all_gather by exchanges along the edges of a hypercube",
    .counts = counts,
    .bus_factor = cm_bus_once,
    .redop_column = "",
};

CM_MAIN(bench)
