/* An open CUDA device, and CUDA's errors as a status. Private to dev_cuda.c, dev_graph_cuda.c. */
#ifndef CM_BASE_DEV_CUDA_H
#define CM_BASE_DEV_CUDA_H

#include <cuda_runtime_api.h>

#include "base/device.h"

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

#endif
