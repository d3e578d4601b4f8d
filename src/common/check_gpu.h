/*
 * The check of check.h for buffers on a device: arguments of the kernels, and
 * what their findings mean. Needs no CUDA itself; kernels/gpu_data.h has the
 * order of the calls.
 *
 * The buffers' addresses in cm_check_args are the device's here and are never
 * dereferenced. In place, `poisoned` must be the start of the region.
 */
#ifndef CM_COMMON_CHECK_GPU_H
#define CM_COMMON_CHECK_GPU_H

#include "base/data_gpu.h"
#include "common/check.h"

/*
 * Arguments of a fill: the data in IN where the rank has one, poison and
 * guards everywhere else. expect.sums is not looked at.
 */
void cm_gpu_fill_of(const struct cm_check_args *a, struct cm_gpu_data *out);

/*
 * Arguments of a check of output, input and guards. The caller sets out->table
 * and out->found. expect.sums must not be NULL if the collective reduces.
 */
void cm_gpu_check_of(const struct cm_check_args *a, struct cm_gpu_data *out);

/*
 * The table that the check needs, written to `table` (CM_GPU_TABLE_BYTES,
 * aligned to 8). Returns its bytes; 0: none is needed.
 */
size_t cm_gpu_table_of(const struct cm_check_args *a, void *table);

/* Wrong elements and guard bytes in all parts. */
int64_t cm_gpu_wrong(const struct cm_gpu_found *f);

/* Copies `bytes` at `src` on the device to `host`; its failure is passed on. */
typedef enum cm_status cm_fetch_fn(void *ctx, void *host, const void *src, size_t bytes);

/*
 * Add to *c what the kernels found, as cm_check_output(), cm_check_input() and
 * cm_check_guard() would have done on the host. The wrong elements themselves
 * are fetched, at most CM_MAX_FAULTS times a few.
 */
CM_MUST_CHECK enum cm_status cm_gpu_found_to(const struct cm_check_args *a,
                                             const struct cm_gpu_found *f, cm_fetch_fn *fetch,
                                             void *ctx, struct cm_check *c);

#endif
