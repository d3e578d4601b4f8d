/* The engine's kernels for elements of type u8 (gpu_types.h). */
#include "kernels/exec_kernels.h"

CM_EXEC_KERNELS(u8)
