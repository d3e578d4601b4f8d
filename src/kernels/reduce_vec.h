/*
 * Vectors of the instruction set that the including file compiles for: memory
 * to accumulators and back, and the arithmetic of every type. Internal; include
 * after defining `enum { VEC_BYTES }`.
 *
 * One register type, `vec`, serves all element types; functions cast it to the
 * lanes they mean. A vector of accumulators covers VEC_BYTES of memory, half of
 * that for 16-bit floats and a quarter for fp8, which accumulate in float32.
 * Per kind of memory there are load/store for one vector, in order, and for a
 * block of four, which leaves the elements of small types in the word where
 * they lie (element i of a word goes to vector i), so that nothing is shuffled.
 */
#ifndef CM_KERNELS_REDUCE_VEC_H
#define CM_KERNELS_REDUCE_VEC_H

#include <stdint.h>
#include <string.h>

#define CM_INLINE static inline __attribute__((always_inline))
#define CM_VECTOR(bytes) __attribute__((vector_size(bytes)))

typedef uint32_t vec CM_VECTOR(VEC_BYTES);
typedef int8_t vec_i8 CM_VECTOR(VEC_BYTES);
typedef uint8_t vec_u8 CM_VECTOR(VEC_BYTES);
typedef int32_t vec_i32 CM_VECTOR(VEC_BYTES);
typedef uint32_t vec_u32 CM_VECTOR(VEC_BYTES);
typedef int64_t vec_i64 CM_VECTOR(VEC_BYTES);
typedef uint64_t vec_u64 CM_VECTOR(VEC_BYTES);
typedef float vec_f32 CM_VECTOR(VEC_BYTES);
typedef double vec_f64 CM_VECTOR(VEC_BYTES);
typedef uint16_t half_u16 CM_VECTOR(VEC_BYTES / 2);  /* memory of 16-bit floats */
typedef uint8_t quarter_u8 CM_VECTOR(VEC_BYTES / 4); /* memory of fp8 */

CM_INLINE vec vec_load(const void *p)
{
    vec v;

    memcpy(&v, p, sizeof(v));
    return v;
}

CM_INLINE void vec_store(void *p, vec v)
{
    memcpy(p, &v, sizeof(v));
}

/* Four vectors by name: an array would tempt compilers to keep it in memory. */
struct block {
    vec a, b, c, d;
};

CM_INLINE struct block block_load(const void *p)
{
    const char *q = p;

    return (struct block){vec_load(q), vec_load(q + VEC_BYTES), vec_load(q + 2 * VEC_BYTES),
                          vec_load(q + 3 * VEC_BYTES)};
}

CM_INLINE void block_store(void *p, struct block x)
{
    char *q = p;

    vec_store(q, x.a);
    vec_store(q + VEC_BYTES, x.b);
    vec_store(q + 2 * VEC_BYTES, x.c);
    vec_store(q + 3 * VEC_BYTES, x.d);
}

/* Lanes of `a` where the mask is all ones, of `b` where it is zero. */
CM_INLINE vec vec_select(vec mask, vec a, vec b)
{
    return (a & mask) | (b & ~mask);
}

/* Lane-wise a > b of numbers below 2^31 (the signed compare is one instruction). */
CM_INLINE vec vec_above(vec a, uint32_t b)
{
    return (vec)((vec_i32)a > (int32_t)b);
}

enum { F32_MANTISSA = 23, F32_BIAS = 127, F32_ABS = 0x7fffffff, F32_INF = 0x7f800000 };

/* 16-bit elements to the top of 32-bit lanes, and back from the bottom. */
CM_INLINE vec vec_load_top16(const void *p)
{
    half_u16 h;

    memcpy(&h, p, sizeof(h));
    return __builtin_convertvector(h, vec) << 16;
}

CM_INLINE void vec_store_low16(void *p, vec v)
{
    half_u16 h = __builtin_convertvector(v, half_u16);

    memcpy(p, &h, sizeof(h));
}

CM_INLINE vec vec_load_top8(const void *p)
{
    quarter_u8 q;

    memcpy(&q, p, sizeof(q));
    return __builtin_convertvector(q, vec) << 24;
}

CM_INLINE void vec_store_low8(void *p, vec v)
{
    quarter_u8 q = __builtin_convertvector(v, quarter_u8);

    memcpy(p, &q, sizeof(q));
}

/* bfloat16 is the upper half of a float. The lower half of the result is rubbish. */
CM_INLINE vec vec_round_bf16(vec v)
{
    vec nan = (vec)((vec_f32)v != (vec_f32)v);
    vec half_ulp = (vec)((v & 0x10000) == 0) + 0x8000; /* a tie goes up only from odd */

    return (v + (half_ulp & ~nan)) | (nan & 0x400000); /* a NaN must not carry away */
}

CM_INLINE vec vec_load_bf16(const void *p)
{
    return vec_load_top16(p);
}

CM_INLINE void vec_store_bf16(void *p, vec v)
{
    vec_store_low16(p, vec_round_bf16(v) >> 16);
}

CM_INLINE struct block block_load_bf16(const void *p)
{
    vec x = vec_load(p), y = vec_load((const char *)p + VEC_BYTES);

    return (struct block){x << 16, x & 0xffff0000, y << 16, y & 0xffff0000};
}

CM_INLINE vec vec_pack_bf16(vec low, vec high)
{
    return (vec_round_bf16(low) >> 16) | (vec_round_bf16(high) & 0xffff0000);
}

CM_INLINE void block_store_bf16(void *p, struct block x)
{
    vec_store(p, vec_pack_bf16(x.a, x.b));
    vec_store((char *)p + VEC_BYTES, vec_pack_bf16(x.c, x.d));
}

/* The smaller floats. Codes are without the sign; see base/dtype.c. */
struct vec_small {
    int sign_bit, mantissa, bias;
    uint32_t special; /* first code that is infinity or NaN */
    uint32_t limit; /* float bits of the largest finite value, or of the power of two that is inf */
    uint32_t inf_step; /* code of infinity minus code of limit */
    uint32_t nan;
};

/*
 * Codes at the top of each lane, rubbish below, to float. Read with float's
 * bias the number is too small by a power of two: exact, subnormals too.
 */
CM_INLINE vec vec_widen(const struct vec_small f, vec top)
{
    const int exponent = f.sign_bit - f.mantissa, unit = F32_MANTISSA - f.mantissa;
    const uint32_t abs_mask = (1u << (F32_MANTISSA + exponent)) - (1u << unit);
    vec bits = (vec)((vec_i32)top >> (8 - exponent)) & (abs_mask | 0x80000000);
    vec ratio = (vec){0} + ((uint32_t)(2 * F32_BIAS - f.bias) << F32_MANTISSA); /* bits of it */
    vec special = vec_above(bits & abs_mask, (f.special << unit) - 1);

    return (vec)((vec_f32)bits * (vec_f32)ratio) | (special & F32_INF);
}

/*
 * Floats to codes at the bottom of each lane, to nearest even. Normal results
 * round the bits in place and may carry into the exponent; for subnormal ones
 * adding a power of two whose last bit is the smallest subnormal lets the
 * adder round.
 */
CM_INLINE vec vec_narrow(const struct vec_small f, vec v)
{
    const int shift = F32_MANTISSA - f.mantissa;
    const uint32_t least = (uint32_t)(F32_BIAS + 1 - f.bias) << F32_MANTISSA; /* smallest normal */
    const uint32_t rebias = (uint32_t)(F32_BIAS - f.bias) << F32_MANTISSA;
    const vec magic = (vec){0} + (least + ((uint32_t)shift << F32_MANTISSA));
    vec full = v & F32_ABS, sign = (v >> (31 - f.sign_bit)) & (1u << f.sign_bit);
    vec abs = vec_select(vec_above(full, f.limit), (vec){0} + f.limit, full);
    vec normal = (abs + ((1u << (shift - 1)) - 1 - rebias) + ((abs >> shift) & 1)) >> shift;
    vec tiny = (vec)((vec_f32)abs + (vec_f32)magic) - magic;
    vec code = vec_select(vec_above(abs, least - 1), normal, tiny);

    code += (vec)(full == F32_INF) & f.inf_step;
    return sign | code | (vec_above(full, F32_INF) & f.nan);
}

static const struct vec_small vec_e4m3 = {7, 3, 7, 0x7f, 0x43e00000, 0, 0x7f};  /* 448 */
static const struct vec_small vec_e5m2 = {7, 2, 15, 0x7c, 0x47600000, 1, 0x7f}; /* 57344 */

CM_INLINE struct block block_widen8(const struct vec_small f, vec x)
{
    return (struct block){vec_widen(f, x << 24), vec_widen(f, x << 16), vec_widen(f, x << 8),
                          vec_widen(f, x)};
}

CM_INLINE vec block_narrow8(const struct vec_small f, struct block x)
{
    return vec_narrow(f, x.a) | vec_narrow(f, x.b) << 8 | vec_narrow(f, x.c) << 16 |
           vec_narrow(f, x.d) << 24;
}

#define VEC_FP8_MEMORY(name)                                   \
    CM_INLINE vec vec_load_##name(const void *p)               \
    {                                                          \
        return vec_widen(vec_##name, vec_load_top8(p));        \
    }                                                          \
    CM_INLINE void vec_store_##name(void *p, vec v)            \
    {                                                          \
        vec_store_low8(p, vec_narrow(vec_##name, v));          \
    }                                                          \
    CM_INLINE struct block block_load_##name(const void *p)    \
    {                                                          \
        return block_widen8(vec_##name, vec_load(p));          \
    }                                                          \
    CM_INLINE void block_store_##name(void *p, struct block x) \
    {                                                          \
        vec_store(p, block_narrow8(vec_##name, x));            \
    }

VEC_FP8_MEMORY(e4m3)
VEC_FP8_MEMORY(e5m2)

/*
 * Arithmetic of one integer type: S its lanes with the right sign, U the same
 * unsigned, in which sums and products wrap without undefined behaviour; `wide`
 * holds an element and the divisor. The
 * division is scalar (there is no vector one) and stays a call.
 */
#define VEC_INT_OPS(name, S, U, unsigned_elem, wide)                       \
    CM_INLINE vec name##_sum(vec a, vec b)                                 \
    {                                                                      \
        return (vec)((U)a + (U)b);                                         \
    }                                                                      \
    CM_INLINE vec name##_prod(vec a, vec b)                                \
    {                                                                      \
        return (vec)((U)a * (U)b);                                         \
    }                                                                      \
    CM_INLINE vec name##_max(vec a, vec b)                                 \
    {                                                                      \
        return vec_select((vec)((S)a > (S)b), a, b);                       \
    }                                                                      \
    CM_INLINE vec name##_min(vec a, vec b)                                 \
    {                                                                      \
        return vec_select((vec)((S)a < (S)b), a, b);                       \
    }                                                                      \
    CM_INLINE vec name##_scale(vec a, int factor)                          \
    {                                                                      \
        return (vec)((U)a * ((U){0} + (unsigned_elem)factor));             \
    }                                                                      \
    static __attribute__((noinline)) vec name##_divide(vec a, int divisor) \
    {                                                                      \
        __typeof__(((S){0})[0]) x[VEC_BYTES / sizeof(((S){0})[0])];        \
                                                                           \
        memcpy(x, &a, sizeof(x));                                          \
        for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)              \
            x[i] = (__typeof__(x[0]))(x[i] / (wide)divisor);               \
        memcpy(&a, x, sizeof(x));                                          \
        return a;                                                          \
    }

VEC_INT_OPS(i8, vec_i8, vec_u8, uint8_t, int)
VEC_INT_OPS(u8, vec_u8, vec_u8, uint8_t, int)
VEC_INT_OPS(i32, vec_i32, vec_u32, uint32_t, int)
VEC_INT_OPS(u32, vec_u32, vec_u32, uint32_t, uint32_t)
VEC_INT_OPS(i64, vec_i64, vec_u64, uint64_t, int64_t)
VEC_INT_OPS(u64, vec_u64, vec_u64, uint64_t, uint64_t)

/*
 * Arithmetic of one accumulating float type. max and min take the operand that
 * is not NaN; of two equal ones (zeros of either sign) the second.
 */
#define VEC_FLOAT_OPS(name, F, elem)                                       \
    CM_INLINE vec name##_sum(vec a, vec b)                                 \
    {                                                                      \
        return (vec)((F)a + (F)b);                                         \
    }                                                                      \
    CM_INLINE vec name##_prod(vec a, vec b)                                \
    {                                                                      \
        return (vec)((F)a * (F)b);                                         \
    }                                                                      \
    CM_INLINE vec name##_max(vec a, vec b)                                 \
    {                                                                      \
        return vec_select((vec)((F)a > (F)b) | (vec)((F)b != (F)b), a, b); \
    }                                                                      \
    CM_INLINE vec name##_min(vec a, vec b)                                 \
    {                                                                      \
        return vec_select((vec)((F)a < (F)b) | (vec)((F)b != (F)b), a, b); \
    }                                                                      \
    CM_INLINE vec name##_scale(vec a, int factor)                          \
    {                                                                      \
        return (vec)((F)a * (elem)factor);                                 \
    }                                                                      \
    CM_INLINE vec name##_divide(vec a, int divisor)                        \
    {                                                                      \
        return (vec)((F)a / (elem)divisor);                                \
    }

VEC_FLOAT_OPS(f32, vec_f32, float)
VEC_FLOAT_OPS(f64, vec_f64, double)

#endif
