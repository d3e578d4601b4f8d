/* The engine's kernels for elements of type u32 (gpu_types.h). */
#include "kernels/exec_kernels.h"

CM_EXEC_KERNELS(u32)
