/*
 * The definition of right: what each collective makes of whole host arrays of
 * all ranks. Slow and obvious; the tests hold everything else against it.
 */
#ifndef CM_COMMON_REF_H
#define CM_COMMON_REF_H

#include <stddef.h>

#include "base/dtype.h"
#include "base/plan.h"

struct cm_ref {
    enum cm_coll coll;
    enum cm_dtype dtype;
    enum cm_op op;
    int n, root;
    size_t count;         /* elements of a block, as cm_op_args.count */
    const size_t *matrix; /* alltoallv: elements from row to column, else NULL */
};

/*
 * in[n], out[n]: the ranks' send and receive buffers, disjoint. Writes what the
 * collective writes and nothing else. Reductions go from rank 0 upwards in the
 * accumulation type: float for floats of up to 32 bits, double for double,
 * modulo 2^64 for integers; rounded to the type once, at the end.
 */
void cm_ref_run(const struct cm_ref *r, const void *const *in, void *const *out);

/* One element of a reduction: combine `n` values at `in[rank] + offset` bytes into *out. */
void cm_ref_reduce(const struct cm_ref *r, const void *const *in, size_t offset, void *out);

#endif
