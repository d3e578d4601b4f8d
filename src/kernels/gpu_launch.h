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
 * One launch. Type and op choose the kernel among those of its kind; copy
 * collectives use CM_UINT8, CM_SUM and lengths in bytes.
 */
struct cm_launch {
    enum cm_gpu_kernel kernel;
    enum cm_dtype dtype;
    enum cm_op op;
    int threads;      /* of a block: a multiple of 32 in [32, 512] */
    bool cooperative; /* all blocks resident or CM_ESYS: ranks of the launch wait for others */
    struct cm_gpu_args args;
};

/* Enqueue it on `stream` (cudaStream_t) of the current device; copies the arguments. CM_ESYS. */
CM_MUST_CHECK enum cm_status cm_gpu_launch(const struct cm_launch *l, void *stream);

/* Load the code of all kernels now: a load while a kernel spins could wait for ever. */
CM_MUST_CHECK enum cm_status cm_gpu_preload(void);

#ifdef __cplusplus
}
#endif

#endif
