/*
 * Arithmetic of many kinds on given bits: what the translation of PTX must not get wrong, beside
 * what the engine's kernels happen to use. Both compilers must give the same results.
 */
#include "kernels/exec_kernels.h"

#undef CM_EXEC_KERNELS
#define CM_EXEC_KERNELS(type)
#include "kernels/exec_bf16.cu"
#include "kernels/exec_f16.cu"
#include "kernels/exec_f8.cu"

struct ops_args {
    uint64_t in, out; /* n pairs of words; n rows of OPS words */
    uint64_t n;
};

enum { OPS = 40 };

CM_DEV uint32_t bits_of(float f)
{
    return cm_type_f32::store(f);
}

/* A number of moderate size from any bits: neither NaN nor infinity comes up. */
CM_DEV float tame(uint64_t x)
{
    return cm_type_f32::load(((uint32_t)x & 0x9fffffff) | 0x20000000);
}

CM_DEV uint32_t integers(uint64_t *out, uint64_t a, uint64_t b)
{
    int64_t sa = (int64_t)a, sb = (int64_t)b, divisor = -(int64_t)(b >> 1 | 2);
    int32_t wa = (int32_t)a, wb = -((int32_t)(b & 0x7fffffff) | 2);
    uint32_t i = 0;

    out[i++] = a + b;
    out[i++] = a * b;
    out[i++] = (uint64_t)((unsigned __int128)a * b >> 64);
    out[i++] = (uint64_t)((__int128)sa * sb >> 64);
    out[i++] = (uint64_t)wa * (uint32_t)wb;
    out[i++] = (uint64_t)((int64_t)wa * wb + sa);
    out[i++] = a / (b | 1);
    out[i++] = (uint64_t)(sa / divisor);
    out[i++] = a % (b >> 40 | 1);
    out[i++] = (uint64_t)(int64_t)(wa / wb);
    out[i++] = (uint32_t)a % (uint32_t)(b | 1);
    out[i++] = sa < sb ? a : b;
    out[i++] = a < b ? b : a;
    out[i++] = (uint64_t)(sa >> (b & 63));
    out[i++] = a >> (b & 63) | a << (63 - (b & 63));
    out[i++] = (uint32_t)a << (b & 31) | (uint32_t)a >> (-b & 31);
    out[i++] = (uint64_t)(int64_t)(int8_t)(a >> 8) + (uint64_t)(int16_t)b;
    out[i++] = (a >> 7 & 0x1ff) | (b & 0xff) << 20;
    out[i++] = (uint64_t)(((wa << 9) >> 20) + ((int32_t)b << 24 >> 24));
    out[i++] = (uint16_t)((uint16_t)a * (uint16_t)b) | (uint64_t)(uint8_t)-a << 32;
    out[i++] = ((uint32_t)a & 0xff00ff) | ((uint32_t)b & 0xff00ff00);
    out[i++] = ~a ^ b;
    return i;
}

CM_DEV uint32_t floats(uint64_t *out, uint64_t a, uint64_t b)
{
    float fa = tame(a), fb = tame(b);
    double da = fa, db = fb;
    uint32_t i = 0;

    out[i++] = bits_of(fa + fb);
    out[i++] = bits_of(fa * fb);
    out[i++] = bits_of(fa / fb);
    out[i++] = bits_of(-fa - fb);
    out[i++] = bits_of(fa < fb ? fa : fb) | (uint64_t)(fa >= fb) << 32;
    out[i++] = cm_type_f64::store(da * db + da / db);
    out[i++] = bits_of((float)(da + db));
    out[i++] = bits_of((float)(int64_t)a) | (uint64_t)bits_of((float)(uint32_t)b) << 32;
    out[i++] = cm_type_f64::store((double)a) ^ cm_type_f64::store((double)(int32_t)b);
    return i;
}

CM_DEV uint32_t conversions(uint64_t *out, uint64_t a, uint64_t b)
{
    float f = tame(a) * cm_type_f32::load(0x3f800000 + ((b & 31) - 16) * 0x800000);
    uint16_t half = (uint16_t)b & 0xbfff;
    uint32_t i = 0;

    out[i++] = bits_of(cm_type_f16::load(half));
    out[i++] = bits_of(cm_type_bf16::load(half));
    out[i++] = bits_of(cm_type_e4m3::load((uint8_t)(b & 0xfe)));
    out[i++] = bits_of(cm_type_e5m2::load((uint8_t)(b & 0xfb)));
    out[i++] = cm_type_f16::store(f);
    out[i++] = cm_type_bf16::store(f);
    out[i++] = cm_type_e4m3::store(f);
    out[i++] = cm_type_e5m2::store(f);
    return i;
}

CM_KERNEL(cm_test_ops, ops_args)
{
    const uint64_t *in = (const uint64_t *)a.in;
    uint64_t *out = (uint64_t *)a.out;

    for (uint64_t i = cm_bid_x() * cm_nthr() + cm_tid(); i < a.n; i += cm_nblk_x() * cm_nthr()) {
        uint64_t x = cm_ld(&in[2 * i]), y = cm_ld(&in[2 * i + 1]), *row = out + i * OPS;

        row += integers(row, x, y);
        row += floats(row, x, y);
        conversions(row, x, y);
    }
}
