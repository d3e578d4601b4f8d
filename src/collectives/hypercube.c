/*
 * hypercube: an all_gather by recursive doubling, block exchanges with rank xor 2^k.
 * algbw counts what a rank receives, all blocks but its own; busbw is the same. The
 * redop column says none, where nccl-tests leaves it empty: a row has 13 fields.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_HYPERCUBE,
    .what = "all_gather by exchanges along the edges of a hypercube",
    .bus_factor = cm_bus_once,
    .without_own = true,
    .redop_column = "none",
};

CM_MAIN(bench)
