/*
 * Element types and reductions of the kernels, as traits.
 *
 * A type says how its bits become an accumulator and back. Floats of 16 and 8
 * bits accumulate in float32 within one fold and round once; integers wrap in
 * 32 or 64 bits and are cut when stored. Signed and unsigned integers share a
 * type: they differ in division only, and minimum and maximum are one
 * reduction over bits that are turned before and after (args.flip).
 * Bit-equal to reduce_generic.c; no expression may be contracted (--fmad=false).
 */
#ifndef CM_KERNELS_GPU_TYPES_H
#define CM_KERNELS_GPU_TYPES_H

#include "kernels/cm_device.h"

#include "base/gpu.h"

template <class Bits, class Signed, class Acc> struct cm_int_type {
    typedef Bits bits;
    typedef Acc acc;
    static CM_FN acc load(bits b)
    {
        return b;
    }
    static CM_FN bits store(acc a)
    {
        return (bits)a;
    }
    static CM_FN acc larger(acc a, acc b)
    {
        return a > b ? a : b;
    }
    static CM_FN acc divide(acc a, int32_t d, uint32_t is_signed)
    {
        if (is_signed)
            return (acc)(bits)((Signed)(bits)a / d);
        return (acc)((bits)a / (bits)d);
    }
};

/* n ranks are fewer than 256, so the divisor fits in every type; int8 divides in int as C does. */
typedef cm_int_type<uint8_t, int8_t, uint32_t> cm_type_u8;
typedef cm_int_type<uint32_t, int32_t, uint32_t> cm_type_u32;
typedef cm_int_type<uint64_t, int64_t, uint64_t> cm_type_u64;

template <class Bits, class Float> struct cm_float_type {
    typedef Bits bits;
    typedef Float acc;
    static CM_FN acc load(bits b)
    {
        acc a;
        memcpy(&a, &b, sizeof(a));
        return a;
    }
    static CM_FN bits store(acc a)
    {
        bits b;
        memcpy(&b, &a, sizeof(b));
        return b;
    }
    /* the operand that is not NaN */
    static CM_FN acc larger(acc a, acc b)
    {
        return a > b || b != b ? a : b;
    }
    static CM_FN acc divide(acc a, int32_t d, uint32_t)
    {
        return a / (acc)d;
    }
};
typedef cm_float_type<uint32_t, float> cm_type_f32;
typedef cm_float_type<uint64_t, double> cm_type_f64;

/* ---- reductions ---- */

template <class Type> struct cm_sum : Type {
    enum { turns = 0 };
    static CM_FN typename Type::acc combine(typename Type::acc a, typename Type::acc b)
    {
        return a + b;
    }
};
template <class Type> struct cm_prod : Type {
    enum { turns = 0 };
    static CM_FN typename Type::acc combine(typename Type::acc a, typename Type::acc b)
    {
        return a * b;
    }
};
template <class Type> struct cm_extreme : Type {
    enum { turns = 1 };
    static CM_FN typename Type::acc combine(typename Type::acc a, typename Type::acc b)
    {
        return Type::larger(a, b);
    }
};

/* What a reduction does to elements, with the constants of the launch. */
template <class F> struct cm_reducer {
    typedef typename F::bits bits;
    typedef typename F::acc acc;
    bits flip;
    int32_t divisor;
    uint32_t is_signed;

    CM_FN acc load(bits b, bool twice) const
    {
        acc a = F::load(F::turns ? (bits)(b ^ flip) : b);
        return twice ? a + a : a;
    }
    CM_FN bits store(acc a, bool divide) const
    {
        bits b = F::store(divide && divisor > 1 ? F::divide(a, divisor, is_signed) : a);
        return F::turns ? (bits)(b ^ flip) : b;
    }
};

#endif
