/* The engine's kernels for half. */
#include <cuda_fp16.h>

#include "kernels/exec_kernels.h"

struct cm_type_f16 : cm_float_type<uint32_t, float> {
    typedef uint16_t bits;
    static CM_FN float load(bits b)
    {
        __half_raw raw;
        raw.x = b;
        return __half2float(__half(raw));
    }
    static CM_FN bits store(float f)
    {
        return static_cast<__half_raw>(__float2half_rn(f)).x;
    }
};

CM_EXEC_KERNELS(f16)
