/*
 * sendrecv: a shift by one around the ring of ranks: rank r sends to r + 1 and receives
 * from r - 1. There is no in-place form. -o only names the column, as in nccl-tests.
 */
#include "common/coll.h"

static void counts(size_t elems, size_t bytes, int n, struct cm_counts *out)
{
    (void)bytes;
    (void)n;
    *out = (struct cm_counts){.send = elems, .recv = elems, .param = elems, .alg = elems};
}

static const struct cm_bench bench = {
    .coll = CM_SENDRECV,
    .what = "send to the next rank while receiving from the one before",
    .counts = counts,
    .bus_factor = cm_bus_once,
};

CM_MAIN(bench)
