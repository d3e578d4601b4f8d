/*
 * alltoallv: alltoall with a size of its own for every pair of ranks, from a generated
 * spread or a traffic matrix (common/matrix.c). These are the sizes of the even case;
 * the harness puts the traffic's in their place. There is no in-place form.
 */
#include "common/coll.h"

static void counts(size_t elems, size_t bytes, int n, struct cm_counts *out)
{
    size_t base = cm_block_of(elems, bytes, n);

    *out = (struct cm_counts){
        .send = base * (size_t)n, .recv = base * (size_t)n, .param = base, .alg = base * (size_t)n};
}

static const struct cm_bench bench = {
    .coll = CM_ALLTOALLV,
    .what = "exchange blocks of different sizes between every two ranks",
    .counts = counts,
    .bus_factor = cm_bus_all_but_own,
    .redop_column = "none",
};

CM_MAIN(bench)
