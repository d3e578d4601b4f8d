/*
 * Compute kernels: n-ary reduce and copy, host side. The CUDA launchers join
 * this header later; the contract is the same.
 */
#ifndef CM_KERNELS_H
#define CM_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

/*
 * Reduce `nsrc` arrays of `n` elements into `ndst` identical results.
 *
 *   src     nsrc >= 1 pointers, combined in the order given: ((s0 op s1) op s2) ...
 *           Element-aligned; no further alignment is assumed.
 *   scale   NULL, or nsrc integer factors that multiply each source first (mulsum)
 *   dst     ndst >= 1 pointers; each may equal a source exactly (same address) or
 *           be disjoint from it. Every operand of an index is loaded before a store of it.
 *   divisor 1, or the number the result is divided by at the end (avg): floats in
 *           the accumulation type, integers by C division after wrapping
 *
 * Floats of 16 and 8 bits accumulate in float32 and round once; float in
 * float, double in double. Integers wrap. min and max return the operand that
 * is not NaN. CM_AVG and CM_MULSUM combine like CM_SUM. Never blocks.
 */
struct cm_reduce {
    size_t n;
    int nsrc;
    int ndst;
    const void *const *src;
    void *const *dst;
    const int *scale;
    int divisor;
};
typedef void cm_reduce_fn(const struct cm_reduce *r);

/*
 * The fastest kernel of this CPU for (type, op), chosen at run time. `stream`:
 * non-temporal stores, right when the operands do not stay in cache; ends with
 * the store fence, so that a later release store publishes the data. Never NULL.
 */
cm_reduce_fn *cm_reduce_kernel(enum cm_dtype t, enum cm_op op, bool stream);

/* The portable kernel, which the tests hold against the fast one. Never NULL. */
cm_reduce_fn *cm_reduce_generic(enum cm_dtype t, enum cm_op op);

/* Copy `bytes` to `ndst` places, reading the source once. src may equal a dst. */
void cm_copy(void *const *dst, int ndst, const void *src, size_t bytes, bool stream);

/* Name of the instruction set in use ("avx2+f16c", "generic"), for the report's header. */
const char *cm_kernel_isa(void);

#endif
