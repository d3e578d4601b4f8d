/*
 * Launching the engine's kernels, as C sees it. Linked only into builds with CUDA.
 */
#ifndef CM_KERNELS_GPU_LAUNCH_H
#define CM_KERNELS_GPU_LAUNCH_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/gpu.h"
#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum cm_gpu_kernel {
    CM_GPU_PLAN, /* interpreter of a bound plan: ports of protocol simple, pull and push */
    CM_GPU_LL,   /* the same for copy plans with LL ports */
    CM_GPU_SHOT, /* one exchange through the LL inboxes */
    CM_GPU_PASS, /* arrive, one direct fold, exit */
    CM_GPU_NKERNELS
};

/*
 * Enqueue one launch on `stream` (cudaStream_t) of the current device.
 * `threads` per block: a multiple of 32 in [32, 1024]. `cooperative`: all
 * blocks resident or CM_ESYS; needed where the ranks of one launch, or blocks,
 * wait for each other without that being known. Type and op choose the
 * kernel; copy collectives pass CM_UINT8, CM_SUM and lengths in bytes.
 */
CM_MUST_CHECK enum cm_status cm_gpu_launch(enum cm_gpu_kernel k, enum cm_dtype t, enum cm_op op,
                                           const struct cm_gpu_args *a, int threads,
                                           bool cooperative, void *stream);

/* Blocks of that kernel that fit on one SM of the current device; also loads its code. */
CM_MUST_CHECK enum cm_status cm_gpu_blocks_per_sm(enum cm_gpu_kernel k, enum cm_dtype t,
                                                  enum cm_op op, int threads, int *blocks);

/* Load the code of all kernels now: a load while a kernel spins could wait for ever. */
CM_MUST_CHECK enum cm_status cm_gpu_preload(void);

#ifdef __cplusplus
}
#endif

#endif
