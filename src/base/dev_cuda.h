/* An open CUDA device, and CUDA's errors as a status. For dev*_cuda.c and launchers in .cu. */
#ifndef CM_BASE_DEV_CUDA_H
#define CM_BASE_DEV_CUDA_H

#include <cuda_runtime_api.h>

#include "base/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cm_gpu {
    struct cm_gpu_info info;
    bool null_stream;
    cudaStream_t stream; /* NULL: the NULL stream */
};

/*
 * CM_OK for cudaSuccess. Else log "GPU 0: <what>: <CUDA's text> (<its name>)",
 * clear the error and return CM_ENOMEM or CM_ESYS. device -1: none.
 */
CM_MUST_CHECK enum cm_status cm_cuda_status(cudaError_t e, int device, const char *what);

#ifdef __cplusplus
}
#endif

#endif
