/* The engine's kernels for elements of type f32 (gpu_types.h). */
#include "kernels/exec_kernels.h"

CM_EXEC_KERNELS(f32)
