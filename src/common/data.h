/*
 * Test data: value = f(seed, rank, index), and what a collective must make of it.
 *
 * Inputs are as distinct as the type allows, so that a swapped, stale, lost or
 * doubled block shows; sums, products and averages are exact by construction
 * in any order and any grouping of the ranks, so that a check is a comparison
 * of bits. The element functions are inline (base/data_gen.h, data_want.h) and
 * shared by host and device code; this file is their block-wise host side.
 */
#ifndef CM_COMMON_DATA_H
#define CM_COMMON_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/data_want.h"
#include "base/dtype.h"
#include "base/plan.h"

enum { CM_DATA_MIN_WINDOW = 1024, CM_DATA_MAX_WINDOW = 2 * CM_MAX_RANKS };

/* Everything input data depend on, besides rank and index. */
struct cm_data {
    enum cm_coll coll;
    enum cm_dtype dtype;
    enum cm_op op; /* ignored unless the collective reduces */
    int n;         /* ranks of the group, 1 .. CM_MAX_RANKS */
    uint64_t seed; /* changes from check to check: seed of the run mixed with row and iteration */
};

/* The element functions' constants for these data. */
void cm_gen_of(const struct cm_data *d, struct cm_gen *out);

/* Elements [first, first + count) of rank's IN, written to dst. */
void cm_data_input(const struct cm_data *d, int rank, size_t first, size_t count, void *dst);

/*
 * Results over all ranks by position in the data's window: sums, sums of
 * exponents (times 2, plus the sign) or products. 64 KiB; depends on the data only.
 */
struct cm_sums {
    int64_t at[CM_DATA_MAX_WINDOW];
    uint64_t weight[2]; /* integer sums: of the ranks' factors, of factor x weight */
};
void cm_sums_of(const struct cm_data *d, struct cm_sums *out);

/* The constants of results, for data that reduce. */
void cm_want_of(const struct cm_data *d, const struct cm_sums *sums, struct cm_want *out);

/* Where an operation's result comes from; counts in elements. */
struct cm_expect {
    struct cm_data data;
    int rank, root;
    size_t count;         /* block, as cm_op_args.count */
    const size_t *matrix; /* alltoallv or NULL */
    const struct cm_sums
        *sums; /* cm_sums_of(&data) if the caller has it; NULL: made in each call */
};

/*
 * Elements [first, first + count) of what rank's OUT must hold, written to dst.
 * false: OUT is not written by this rank (reduce, gather: not the root) and
 * must keep its old content.
 */
bool cm_data_expect(const struct cm_expect *e, size_t first, size_t count, void *dst);

/* Whether `rank` writes OUT, and whether its IN matters (broadcast, scatter: only the root's). */
bool cm_data_writes(enum cm_coll coll, int rank, int root);
bool cm_data_reads(enum cm_coll coll, int rank, int root);

/* Where OUT's element `index` comes from, and the same for all of OUT. */
struct cm_source cm_data_source(const struct cm_expect *e, size_t index);
void cm_data_route(const struct cm_expect *e, struct cm_route *out);

/* alltoallv: the runs of OUT, one from each of the n ranks. */
void cm_data_runs(const struct cm_expect *e, struct cm_run *runs);

/*
 * Elements [first, first + count) of the reduction over all ranks' INs
 * (data_reduce.c). `sums` as in cm_expect, not NULL. Only for collectives that reduce.
 */
void cm_data_reduced(const struct cm_data *d, const struct cm_sums *sums, size_t first,
                     size_t count, void *dst);

#endif
