/* The kernels of one element type. A .cu file names the type and includes this once. */
#ifndef CM_KERNELS_EXEC_KERNELS_H
#define CM_KERNELS_EXEC_KERNELS_H

#include "kernels/exec_ll.h"
#include "kernels/exec_pass.h"
#include "kernels/exec_plan.h"
#include "kernels/exec_shot.h"

#define CM_EXEC_KERNEL(kind, reduction, type)                \
    CM_KERNEL(cm_##kind##_##reduction##_##type, cm_gpu_args) \
    {                                                        \
        cm_exec_##kind<cm_##reduction<cm_type_##type>>(a);   \
    }
#define CM_EXEC_REDUCTION(reduction, type) \
    CM_EXEC_KERNEL(plan, reduction, type)  \
    CM_EXEC_KERNEL(ll, reduction, type)    \
    CM_EXEC_KERNEL(shot, reduction, type)  \
    CM_EXEC_KERNEL(pass, reduction, type)
#define CM_EXEC_KERNELS(type)     \
    CM_EXEC_REDUCTION(sum, type)  \
    CM_EXEC_REDUCTION(prod, type) \
    CM_EXEC_REDUCTION(extreme, type)

#endif
