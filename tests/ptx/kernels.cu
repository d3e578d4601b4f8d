/*
 * A cross-section of the engine's kernels, small enough for a quick test: every family for
 * one type, one family for every type. The names are those of the whole set.
 */
#include "kernels/exec_kernels.h"

#undef CM_EXEC_KERNELS
#define CM_EXEC_KERNELS(type) CM_EXEC_KERNEL(shot, sum, type)

#include "kernels/exec_bf16.cu"
#include "kernels/exec_f16.cu"
#include "kernels/exec_f32.cu"
#include "kernels/exec_f64.cu"
#include "kernels/exec_f8.cu"
#include "kernels/exec_u32.cu"
#include "kernels/exec_u64.cu"
#include "kernels/exec_u8.cu"

CM_EXEC_KERNEL(plan, sum, f32)
CM_EXEC_KERNEL(ll, sum, f32)
CM_EXEC_KERNEL(pass, sum, f32)
CM_EXEC_KERNEL(pass, extreme, u8)
