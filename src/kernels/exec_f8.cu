/*
 * The engine's kernels for 8-bit floats, on every architecture: CUDA converts
 * in hardware where there is some and in integer code elsewhere. Finite values
 * saturate; infinity stays in e5m2 and saturates in e4m3, which has none.
 */
#include <cuda_fp8.h>

#include "kernels/exec_kernels.h"

template <__nv_fp8_interpretation_t Kind> struct cm_f8_type : cm_float_type<uint32_t, float> {
    typedef uint8_t bits;
    static CM_FN float load(bits b)
    {
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(b, Kind)));
    }
};

struct cm_type_e4m3 : cm_f8_type<__NV_E4M3> {
    static CM_FN bits store(float f)
    {
        return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3);
    }
};

struct cm_type_e5m2 : cm_f8_type<__NV_E5M2> {
    static CM_FN bits store(float f)
    {
        uint32_t b = cm_type_f32::store(f);

        if ((b & 0x7fffffff) == 0x7f800000) /* infinity */
            return (bits)(b >> 24 & 0x80) | 0x7c;
        return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E5M2);
    }
};

CM_EXEC_KERNELS(e4m3)
CM_EXEC_KERNELS(e5m2)
