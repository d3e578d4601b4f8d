/*
 * What ptx2c.py's output is made of: PTX operations as C++ on raw registers.
 *
 * A register is an unsigned integer of its width (a predicate: bool) and holds
 * bits; an instruction's type says what they mean. get<T>() reads an operand as
 * T, set() writes a result: wider registers are filled by zeros or the sign,
 * as T is unsigned or signed. Signed overflow wraps, as it does in PTX.
 */
#ifndef CM_TESTS_SIM_PTX2C_H
#define CM_TESTS_SIM_PTX2C_H

#include "kernels/cm_device.h"

#include <limits>
#include <math.h>
#include <string.h>
#include <type_traits>

namespace ptx
{

template <size_t N> struct alignas(16) bytes {
    unsigned char b[N];
};

template <size_t N>
using word = std::conditional_t<
    N == 1, uint8_t,
    std::conditional_t<N == 2, uint16_t, std::conditional_t<N == 4, uint32_t, uint64_t>>>;

template <class To, class From> static inline To cast(From f)
{
    static_assert(sizeof(To) == sizeof(From), "same width");
    To t;
    memcpy(&t, &f, sizeof(t));
    return t;
}

template <class T, class R> static inline T get(R r)
{
    if constexpr (std::is_floating_point_v<T>)
        return cast<T>((word<sizeof(T)>)r);
    else
        return (T)r;
}

template <class R, class T> static inline void set(R &r, T v)
{
    if constexpr (std::is_floating_point_v<T>)
        r = (R)cast<word<sizeof(T)>>(v);
    else
        r = (R)v;
}

/* ---- arithmetic; integers wrap ---- */

template <class T> using wrap = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

template <class T> static inline T add(T a, T b)
{
    return (T)((wrap<T>)a + (wrap<T>)b);
}
template <class T> static inline T sub(T a, T b)
{
    return (T)((wrap<T>)a - (wrap<T>)b);
}
template <class T> static inline T mul(T a, T b)
{
    return (T)((wrap<T>)a * (wrap<T>)b);
}
template <class T> static inline T mul_lo(T a, T b)
{
    return mul<T>(a, b);
}
template <class T> static inline T mul_hi(T a, T b)
{
    return (T)((__int128)a * (__int128)b >> 8 * sizeof(T));
}
template <> inline uint64_t mul_hi(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}
template <class T>
using wider =
    std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 2, int32_t, int64_t>,
                       std::conditional_t<sizeof(T) == 2, uint32_t, uint64_t>>;
template <class T> static inline wider<T> mul_wide(T a, T b)
{
    return (wider<T>)a * (wider<T>)b;
}
template <class T> static inline T fma_rn(T a, T b, T c)
{
    return (T)::fma((double)a, (double)b, (double)c);
}
template <> inline float fma_rn(float a, float b, float c)
{
    return ::fmaf(a, b, c);
}

/* By zero PTX has no defined result; all bits set is what GPUs give. */
template <class T> static inline T div(T a, T b)
{
    if constexpr (std::is_integral_v<T>) {
        if (b == 0)
            return (T)-1;
        if (std::is_signed_v<T> && b == (T)-1)
            return sub<T>(0, a);
    }
    return a / b;
}
template <class T> static inline T rem(T a, T b)
{
    if (b == 0)
        return a;
    return std::is_signed_v<T> && b == (T)-1 ? 0 : a % b;
}
template <class T> static inline T neg(T a)
{
    if constexpr (std::is_floating_point_v<T>)
        return -a;
    else
        return sub<T>(0, a);
}
template <class T> static inline T abs(T a)
{
    if constexpr (std::is_floating_point_v<T>)
        return ::fabs(a);
    else
        return a < 0 ? neg<T>(a) : a;
}
template <class T> static inline T min(T a, T b)
{
    if constexpr (std::is_floating_point_v<T>)
        return a != a ? b : b != b ? a : a == b ? (::signbit(a) ? a : b) : a < b ? a : b;
    else
        return a < b ? a : b;
}
template <class T> static inline T max(T a, T b)
{
    if constexpr (std::is_floating_point_v<T>)
        return a != a ? b : b != b ? a : a == b ? (::signbit(a) ? b : a) : a > b ? a : b;
    else
        return a > b ? a : b;
}

/* ---- bits ---- */

template <class T> static inline T shl(T a, uint32_t n)
{
    return n < 8 * sizeof(T) ? (T)((uint64_t)a << n) : 0;
}
template <class T> static inline T shr(T a, uint32_t n)
{
    if (n >= 8 * sizeof(T))
        return std::is_signed_v<T> && a < 0 ? (T)-1 : 0;
    return (T)(a >> n);
}
template <class T> static inline T shf_l_wrap(T a, T b, T n)
{
    return (T)((((uint64_t)b << 32 | a) << (n & 31)) >> 32);
}
template <class T> static inline T shf_r_wrap(T a, T b, T n)
{
    return (T)(((uint64_t)b << 32 | a) >> (n & 31));
}
template <class T> static inline T mask(uint32_t len)
{
    return len >= 8 * sizeof(T) ? (T)-1 : (T)(((T)1 << len) - 1);
}
template <class T> static inline T bfi(T a, T b, uint32_t pos, uint32_t len)
{
    T field = shl<T>(mask<T>(len & 255), pos & 255);

    return (b & ~field) | (shl<T>(a, pos & 255) & field);
}
template <class T> static inline T bfe(T a, uint32_t pos, uint32_t len)
{
    typedef std::make_unsigned_t<T> U;
    uint32_t p = pos & 255, n = len & 255, width = 8 * sizeof(T);
    U field = shr<U>((U)a, p) & mask<U>(n);
    uint32_t top = p + n - 1 < width ? p + n - 1 : width - 1;
    bool sign = std::is_signed_v<T> && n != 0 && ((U)a >> top & 1);

    return (T)(sign ? field | (U)~mask<U>(n) : field);
}
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t select)
{
    uint64_t all = (uint64_t)b << 32 | a;
    uint32_t out = 0;

    for (int i = 0; i < 4; i++) {
        uint32_t s = select >> 4 * i & 15, byte = all >> 8 * (s & 7) & 255;

        if (s & 8)
            byte = byte & 128 ? 255 : 0;
        out |= byte << 8 * i;
    }
    return out;
}

/* ---- comparison; u: true if unordered ---- */

#define PTX_COMPARE(name, op)                                     \
    template <class T> static inline bool cmp_##name(T a, T b)    \
    {                                                             \
        return a op b;                                            \
    }                                                             \
    template <class T> static inline bool cmp_##name##u(T a, T b) \
    {                                                             \
        return a != a || b != b || a op b;                        \
    }
PTX_COMPARE(eq, ==)
PTX_COMPARE(lt, <)
PTX_COMPARE(le, <=)
PTX_COMPARE(gt, >)
PTX_COMPARE(ge, >=)
#undef PTX_COMPARE
template <class T> static inline bool cmp_ne(T a, T b)
{
    return a != b && a == a && b == b;
}
template <class T> static inline bool cmp_neu(T a, T b)
{
    return a != b;
}
template <class T> static inline bool cmp_nan(T a, T b)
{
    return a != a || b != b;
}
template <class T> static inline bool cmp_num(T a, T b)
{
    return a == a && b == b;
}

/* ---- conversion ---- */

/* To an integer: saturates, NaN becomes 0. `v` is rounded already. */
template <class I, class F> static inline I to_int(F v)
{
    typedef std::numeric_limits<I> limits;

    if (v != v)
        return 0;
    if (v <= (F)limits::min())
        return limits::min();
    return v >= (F)limits::max() ? limits::max() : (I)v;
}

/* A small float: exponent bits, mantissa bits; `finite`: no infinity, all ones is NaN (e4m3). */
struct format {
    int exponent, mantissa;
    bool finite;
};
static constexpr format f16 = {5, 10, false}, bf16 = {8, 7, false}, e5m2 = {5, 2, false},
                        e4m3 = {4, 3, true};

static inline float widen(format f, uint32_t x)
{
    int bias = (1 << (f.exponent - 1)) - 1;
    uint32_t top = (1u << f.exponent) - 1, m = x & ((1u << f.mantissa) - 1);
    uint32_t e = x >> f.mantissa & top, sign = x >> (f.exponent + f.mantissa) << 31;
    float v;

    if (f.finite ? e == top && m == (1u << f.mantissa) - 1 : e == top && m != 0)
        return cast<float>(sign | 0x7fc00000 | m << (23 - f.mantissa));
    if (!f.finite && e == top)
        v = INFINITY;
    else
        v = ldexpf(e ? (float)(m | 1u << f.mantissa) : (float)m,
                   (int)(e ? e : 1) - bias - f.mantissa);
    return cast<float>(cast<uint32_t>(v) | sign);
}

/* Nearest, ties to even. saturate: what is too large becomes the largest number. */
static inline uint32_t narrow(format f, float x, bool saturate)
{
    int bias = (1 << (f.exponent - 1)) - 1, e;
    uint32_t inf = ((1u << f.exponent) - 1) << f.mantissa, sign = cast<uint32_t>(x) >> 31;
    uint32_t largest = f.finite ? inf | ((1u << f.mantissa) - 2) : inf - 1, bits;
    float a = fabsf(x), ulp;

    sign <<= f.exponent + f.mantissa;
    if (x != x)
        return f.finite || saturate ? (inf | ((1u << f.mantissa) - 1)) : (inf << 1 | inf) & 0x7fff;
    frexpf(a, &e);
    e = e - 1 < 1 - bias || a == 0 ? 1 - bias : e - 1;
    ulp = ldexpf(1, e - f.mantissa);
    bits = isinf(a) ? inf + 1 : (uint32_t)rintf(a / ulp) + ((uint32_t)(e + bias - 1) << f.mantissa);
    if (bits > largest)
        bits = saturate ? largest : inf;
    return sign | bits;
}

static inline uint32_t widen2_f16(format f, uint32_t pair)
{
    return narrow(f16, widen(f, pair >> 8 & 255), false) << 16 |
           narrow(f16, widen(f, pair & 255), false);
}

/* ---- vectors: loaded and stored at once ---- */

template <class T, size_t N> struct vector {
    T v[N];
};
template <class T, size_t N> static inline vector<T, N> load(uint64_t p, CMSIM_SITE)
{
    vector<T, N> out;

    if constexpr (sizeof(out) == 16) {
        cm_vec16 v = cm_ld16((const void *)p, file, line);
        memcpy(&out, &v, 16);
    } else {
        typedef word<sizeof(out)> W __attribute__((may_alias));
        W w = cm_ld((const W *)p, file, line);
        memcpy(&out, &w, sizeof(out));
    }
    return out;
}
template <class T, size_t N> static inline void store(uint64_t p, vector<T, N> v, CMSIM_SITE)
{
    if constexpr (sizeof(v) == 16) {
        cm_vec16 w;
        memcpy(&w, &v, 16);
        cm_st16((void *)p, w, file, line);
    } else {
        typedef word<sizeof(v)> W __attribute__((may_alias));
        W w;
        memcpy(&w, &v, sizeof(v));
        cm_st((W *)p, w, file, line);
    }
}
/* Shared memory and parameters are no memory that other blocks see: plain accesses. */
template <class T, size_t N> static inline vector<T, N> load_own(uint64_t p)
{
    vector<T, N> out;

    for (size_t i = 0; i < N; i++)
        out.v[i] = ((const T *)p)[i];
    return out;
}
template <class T, size_t N> static inline void store_own(uint64_t p, vector<T, N> v)
{
    for (size_t i = 0; i < N; i++)
        ((T *)p)[i] = v.v[i];
}

} // namespace ptx

#endif
