/*
 * Launchers of the engine's kernels: from (kernel, type, operation) to a
 * function, and its launch. Types that differ in sign only share kernels;
 * sum, avg and mulsum are one reduction, min and max another.
 */
#ifndef CM_SIM
#include <cuda_runtime.h>

#include "base/dev_cuda.h"
#include "kernels/cm_device.h"
#include "kernels/gpu_launch.h"

typedef void kernel_fn(const cm_gpu_args);

#define DECLARE_KERNEL(kind, reduction, type)                    \
    extern "C" __global__ void cm_##kind##_##reduction##_##type( \
        const __grid_constant__ cm_gpu_args a);
#define DECLARE_TYPE(type, reduction)     \
    DECLARE_KERNEL(plan, reduction, type) \
    DECLARE_KERNEL(ll, reduction, type)   \
    DECLARE_KERNEL(shot, reduction, type) \
    DECLARE_KERNEL(pass, reduction, type)
/* clang-format off */
#define FOR_ALL_TYPES(X, reduction)                                                    \
    X(u8, reduction) X(u32, reduction) X(u64, reduction) X(f16, reduction)             \
    X(bf16, reduction) X(f32, reduction) X(f64, reduction) X(e4m3, reduction)          \
    X(e5m2, reduction)
/* clang-format on */

FOR_ALL_TYPES(DECLARE_TYPE, sum)
FOR_ALL_TYPES(DECLARE_TYPE, prod)
FOR_ALL_TYPES(DECLARE_TYPE, extreme)

enum storage { U8, U32, U64, F16, BF16, F32, F64, E4M3, E5M2, NSTORAGES };
enum reduction { SUM, PROD, EXTREME, NREDUCTIONS };

#define TYPE_ROW(type, reduction)                                                            \
    {cm_plan_##reduction##_##type, cm_ll_##reduction##_##type, cm_shot_##reduction##_##type, \
     cm_pass_##reduction##_##type},

/* In the order of enum storage and enum cm_gpu_kernel. */
static kernel_fn *const kernels[NREDUCTIONS][NSTORAGES][CM_GPU_NKERNELS] = {
    {FOR_ALL_TYPES(TYPE_ROW, sum)},
    {FOR_ALL_TYPES(TYPE_ROW, prod)},
    {FOR_ALL_TYPES(TYPE_ROW, extreme)},
};

static enum storage storage_of(enum cm_dtype t)
{
    static const enum storage of[CM_NDTYPES] = {
        U8, U8, U32, U32, U64, U64, F16, F32, F64, BF16, E4M3, E5M2,
    };
    return of[t];
}

static enum reduction reduction_of(enum cm_op op)
{
    if (op == CM_PROD)
        return PROD;
    return op == CM_MIN || op == CM_MAX ? EXTREME : SUM;
}

static const void *find(enum cm_gpu_kernel k, enum cm_dtype t, enum cm_op op)
{
    return (const void *)kernels[reduction_of(op)][storage_of(t)][k];
}

enum cm_status cm_gpu_launch(const struct cm_launch *l, void *stream)
{
    cudaLaunchAttribute attr = {};
    cudaLaunchConfig_t c = {};
    void *args[] = {const_cast<cm_gpu_args *>(&l->args)};

    attr.id = cudaLaunchAttributeCooperative;
    attr.val.cooperative = 1;
    c.gridDim = dim3(l->args.blocks, l->args.nranks);
    c.blockDim = dim3((unsigned)l->threads);
    c.stream = (cudaStream_t)stream;
    c.attrs = &attr;
    c.numAttrs = l->cooperative ? 1 : 0;
    return cm_cuda_status(cudaLaunchKernelExC(&c, find(l->kernel, l->dtype, l->op), args), -1,
                          "launching a collective");
}

enum cm_status cm_gpu_preload(void)
{
    kernel_fn *const *all = &kernels[0][0][0];

    for (int i = 0; i < NREDUCTIONS * NSTORAGES * CM_GPU_NKERNELS; i++) {
        cudaFuncAttributes attr;
        enum cm_status st = cm_cuda_status(cudaFuncGetAttributes(&attr, (const void *)all[i]), -1,
                                           "loading a kernel");

        if (st != CM_OK)
            return st;
    }
    return CM_OK;
}
#endif
