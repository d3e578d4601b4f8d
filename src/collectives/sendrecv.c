/*
 * sendrecv: a shift by one around the ring of ranks: rank r sends to r + 1 and receives
 * from r - 1. There is no in-place form. -o only names the column, as in nccl-tests.
 */
#include "common/coll.h"

static const struct cm_bench bench = {
    .coll = CM_SENDRECV,
    .what = "send to the next rank while receiving from the one before",
    .bus_factor = cm_bus_once,
};

CM_MAIN(bench)
