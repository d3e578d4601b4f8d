/* The engine's kernels for elements of type f64 (gpu_types.h). */
#include "kernels/exec_kernels.h"

CM_EXEC_KERNELS(f64)
