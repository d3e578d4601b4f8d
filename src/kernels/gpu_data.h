/*
 * Launching the kernels that fill and check a rank's buffers on its device.
 * Linked only into builds with CUDA.
 *
 * All enqueue one launch on `stream` (cudaStream_t) of the current device and
 * do not block; the arguments are copied. Memory they need on the device,
 * besides the buffers themselves:
 *
 *   a->table   CM_GPU_TABLE_BYTES at most; the host copies there what
 *              cm_gpu_table_of() gives, before the check (not for fills)
 *   a->found   struct cm_gpu_result, any content before (not for fills)
 *
 * Both must stay as they are until the launches have ended. A fill, a check:
 *
 *   cm_gpu_fill_of(&args, &a);  cm_gpu_data_fill(&a, stream);
 *
 *   bytes = cm_gpu_table_of(&args, host_table);  if (bytes > 0) copy it to table
 *   cm_gpu_check_of(&args, &a);  a.table = table;  a.found = found;
 *   cm_gpu_data_check(&a, stream);  copy found->found back
 *   if cm_gpu_wrong() > 0: cm_gpu_data_list(&a, stream);  copy it back again
 *   cm_gpu_found_to(&args, &f, ..., &check): what the host's check would have said
 *
 * CM_ESYS: CUDA refused; logged.
 */
#ifndef CM_KERNELS_GPU_DATA_H
#define CM_KERNELS_GPU_DATA_H

#include "base/data_gpu.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Store the parts' content. Knows no results: those are the collective's to store. */
CM_MUST_CHECK enum cm_status cm_gpu_data_fill(const struct cm_gpu_data *a, void *stream);

/* Count the wrong elements of each part: found.wrong. */
CM_MUST_CHECK enum cm_status cm_gpu_data_check(const struct cm_gpu_data *a, void *stream);

/* List the first faults of a check just made, with the same arguments: found.nfirst, first. */
CM_MUST_CHECK enum cm_status cm_gpu_data_list(const struct cm_gpu_data *a, void *stream);

/* Load the code of these kernels on the current device: see cm_gpu_preload(). */
CM_MUST_CHECK enum cm_status cm_gpu_data_preload(void);

#ifdef __cplusplus
}
#endif

#endif
