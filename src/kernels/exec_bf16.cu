/* The engine's kernels for bfloat16: the upper half of a float, rounded to nearest even. */
#include "kernels/exec_kernels.h"

struct cm_type_bf16 : cm_float_type<uint32_t, float> {
    typedef uint16_t bits;
    static CM_FN float load(bits b)
    {
        return cm_type_f32::load((uint32_t)b << 16);
    }
    static CM_FN bits store(float f)
    {
        uint32_t b = cm_type_f32::store(f);

        if (f != f)
            return (bits)(b >> 16 | 0x40); /* stays a NaN */
        return (bits)((b + 0x7fff + (b >> 16 & 1)) >> 16);
    }
};

CM_EXEC_KERNELS(bf16)
