/*
 * The rig's device: what the executor calls of base/device.h and
 * kernels/gpu_launch.h, on plain memory. A launch is only recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "exec_rig.h"

int rig_launches[CM_GPU_NKERNELS];

enum cm_status cm_gpu_alloc(struct cm_gpu *g, size_t bytes, void **out)
{
    (void)g;
    *out = calloc(1, bytes);
    return *out != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "%zu bytes", bytes);
}

void cm_gpu_free(struct cm_gpu *g, void *p)
{
    (void)g;
    free(p);
}

enum cm_status cm_gpu_put(struct cm_gpu *g, void *dst, const void *host, size_t bytes)
{
    (void)g;
    memcpy(dst, host, bytes);
    return CM_OK;
}

void *cm_gpu_stream(const struct cm_gpu *g)
{
    return (void *)(uintptr_t)g;
}

/* The executor asks before it reuses memory of plans: only between a rank's operations here. */
enum cm_status cm_gpu_done(struct cm_gpu *g, bool *done)
{
    (void)g;
    *done = true;
    return CM_OK;
}

#define TYPES(X, kind, reduction) \
    X(kind, reduction, u8)        \
    X(kind, reduction, u32)       \
    X(kind, reduction, u64)       \
    X(kind, reduction, f16)       \
    X(kind, reduction, bf16)      \
    X(kind, reduction, f32)       \
    X(kind, reduction, f64) X(kind, reduction, e4m3) X(kind, reduction, e5m2)
#define REDUCTIONS(X, kind) \
    TYPES(X, kind, sum)     \
    TYPES(X, kind, prod)    \
    TYPES(X, kind, extreme)
/* Weak: a program may be linked with the kernels of a few types only. */
#define DECLARE(kind, reduction, type) \
    __attribute__((weak)) void cm_##kind##_##reduction##_##type##_thunk(void **args);
#define ENTRY(kind, reduction, type) cm_##kind##_##reduction##_##type##_thunk,

REDUCTIONS(DECLARE, plan)
REDUCTIONS(DECLARE, ll)
REDUCTIONS(DECLARE, shot)
REDUCTIONS(DECLARE, pass)

enum { STORAGES = 9, ALL = 3 * STORAGES };

rig_thunk_fn *rig_thunk(enum cm_gpu_kernel k, enum cm_dtype t, enum cm_op op)
{
    static rig_thunk_fn *const thunks[CM_GPU_NKERNELS][ALL] = {
        {REDUCTIONS(ENTRY, plan)},
        {REDUCTIONS(ENTRY, ll)},
        {REDUCTIONS(ENTRY, shot)},
        {REDUCTIONS(ENTRY, pass)},
    };
    static const int storage[CM_NDTYPES] = {0, 0, 1, 1, 2, 2, 3, 5, 6, 4, 7, 8};
    int reduction = op == CM_PROD ? 1 : op == CM_MIN || op == CM_MAX ? 2 : 0;

    return thunks[k][reduction * STORAGES + storage[t]];
}

enum cm_status cm_gpu_launch(const struct cm_launch *l, void *stream)
{
    struct cm_gpu *g = stream;
    rig_thunk_fn *thunk = rig_thunk(l->kernel, l->dtype, l->op);

    g->launch = (struct rig_launch){l->kernel, thunk, l->args, l->threads};
    return thunk != NULL ? CM_OK : CM_FAIL(CM_EUNSUP, "no kernel for this type");
}
