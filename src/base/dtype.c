/*
 * The tables of types and operations, and one element to and from double.
 *
 * All small floats (half, bfloat16, two fp8) are one algorithm with a few
 * parameters: a code is sign | exponent | mantissa, and codes of one sign are
 * ordered as their values, so that rounding up may simply carry into the
 * exponent. Conversions to small floats start from double, which holds a float
 * exactly; so each rounds once.
 */
#include "base/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/status.h"

const struct cm_dtype_info cm_dtypes[CM_NDTYPES] = {
    [CM_INT8] = {"int8", 1, CM_KIND_INT, 7, 0},
    [CM_UINT8] = {"uint8", 1, CM_KIND_UINT, 8, 0},
    [CM_INT32] = {"int32", 4, CM_KIND_INT, 31, 0},
    [CM_UINT32] = {"uint32", 4, CM_KIND_UINT, 32, 0},
    [CM_INT64] = {"int64", 8, CM_KIND_INT, 63, 0},
    [CM_UINT64] = {"uint64", 8, CM_KIND_UINT, 64, 0},
    [CM_HALF] = {"half", 2, CM_KIND_FLOAT, 11, 15},
    [CM_FLOAT] = {"float", 4, CM_KIND_FLOAT, 24, 127},
    [CM_DOUBLE] = {"double", 8, CM_KIND_FLOAT, 53, 1023},
    [CM_BFLOAT16] = {"bfloat16", 2, CM_KIND_FLOAT, 8, 127},
    [CM_F8E4M3] = {"f8e4m3", 1, CM_KIND_FLOAT, 4, 8},
    [CM_F8E5M2] = {"f8e5m2", 1, CM_KIND_FLOAT, 3, 15},
};

const struct cm_op_info cm_ops[CM_NOPS] = {
    [CM_SUM] = {"sum", "sum of all ranks"},
    [CM_PROD] = {"prod", "product of all ranks"},
    [CM_MAX] = {"max", "largest value"},
    [CM_MIN] = {"min", "smallest value"},
    [CM_AVG] = {"avg", "sum of all ranks, divided by their number"},
    [CM_MULSUM] = {"mulsum", "sum of inputs times 1 (even ranks) or 2 (odd ranks)"},
};

int cm_dtype_find(const char *name)
{
    for (int t = 0; t < CM_NDTYPES; t++)
        if (strcmp(cm_dtypes[t].name, name) == 0)
            return t;
    return -1;
}

int cm_op_find(const char *name)
{
    for (int o = 0; o < CM_NOPS; o++)
        if (strcmp(cm_ops[o].name, name) == 0)
            return o;
    return -1;
}

/* A small float; codes are without the sign. */
struct small_float {
    int sign_bit;
    int mantissa; /* stored bits */
    int bias;
    uint32_t special;  /* the first code that is infinity or NaN */
    uint32_t overflow; /* what a finite value that rounds beyond the largest becomes */
    uint32_t inf;      /* what infinity becomes */
    uint32_t nan;
    bool payload; /* NaN keeps the leading bits of its mantissa, as x86 conversions do */
};

static const struct small_float half = {15, 10, 15, 0x7c00, 0x7c00, 0x7c00, 0x7e00, true};
static const struct small_float bf16 = {15, 7, 127, 0x7f80, 0x7f80, 0x7f80, 0x7fc0, true};
static const struct small_float e4m3 = {7, 3, 7, 0x7f, 0x7e, 0x7e, 0x7f, false};
static const struct small_float e5m2 = {7, 2, 15, 0x7c, 0x7b, 0x7c, 0x7f, false};

enum { DBL_MANTISSA = 52, DBL_BIAS = 1023 };

static uint64_t double_bits(double v)
{
    uint64_t u;

    memcpy(&u, &v, sizeof(u));
    return u;
}

static double bits_double(uint64_t u)
{
    double v;

    memcpy(&v, &u, sizeof(v));
    return v;
}

/* v >> shift, rounded to nearest, ties to even; shift in [1, 63]. */
static uint64_t shift_round(uint64_t v, int shift)
{
    uint64_t q = v >> shift, rest = v & (((uint64_t)1 << shift) - 1);
    uint64_t tie = (uint64_t)1 << (shift - 1);

    return q + (rest > tie || (rest == tie && (q & 1)));
}

/* Code of the finite positive double whose bits are `abs`. */
static uint32_t small_code(const struct small_float *f, uint64_t abs)
{
    int exponent = (int)(abs >> DBL_MANTISSA) - DBL_BIAS, least = 1 - f->bias;
    int shift = DBL_MANTISSA - f->mantissa;
    uint64_t hidden = (uint64_t)1 << DBL_MANTISSA, significand = (abs & (hidden - 1)) | hidden;
    uint64_t code;

    if (exponent < least) { /* subnormal: fewer bits; its own scale, that of the least exponent */
        shift += least - exponent;
        return shift > 63 ? 0 : (uint32_t)shift_round(significand, shift);
    }
    /* the hidden bit of the significand adds the one that the exponent lacks here */
    code = ((uint64_t)(exponent - least) << f->mantissa) + shift_round(significand, shift);
    return code >= f->overflow ? f->overflow : (uint32_t)code;
}

static uint32_t small_from_double(const struct small_float *f, double v)
{
    uint64_t bits = double_bits(v), abs = bits & INT64_MAX;
    uint32_t code, sign = (uint32_t)(bits >> 63) << f->sign_bit;

    if (isnan(v)) {
        code = f->nan;
        if (f->payload)
            code |= (uint32_t)(abs >> (DBL_MANTISSA - f->mantissa)) & ((1u << f->mantissa) - 1);
    } else if (isinf(v)) {
        code = f->inf;
    } else {
        code = small_code(f, abs);
    }
    return sign | code;
}

static double small_to_double(const struct small_float *f, uint32_t code)
{
    uint32_t abs = code & ((1u << f->sign_bit) - 1);
    uint64_t sign = (uint64_t)(code >> f->sign_bit) << 63;
    uint64_t wide = (uint64_t)abs << (DBL_MANTISSA - f->mantissa);

    if (abs >= f->special)
        wide |= double_bits(INFINITY);
    else if (abs >> f->mantissa == 0)
        wide = double_bits(ldexp(abs, 1 - f->bias - f->mantissa));
    else
        wide += (uint64_t)(DBL_BIAS - f->bias) << DBL_MANTISSA;
    return bits_double(sign | wide);
}

float cm_half_to_float(uint16_t h)
{
    return (float)small_to_double(&half, h);
}

uint16_t cm_float_to_half(float f)
{
    return (uint16_t)small_from_double(&half, f);
}

float cm_bf16_to_float(uint16_t h)
{
    return (float)small_to_double(&bf16, h);
}

uint16_t cm_float_to_bf16(float f)
{
    return (uint16_t)small_from_double(&bf16, f);
}

float cm_e4m3_to_float(uint8_t b)
{
    return (float)small_to_double(&e4m3, b);
}

uint8_t cm_float_to_e4m3(float f)
{
    return (uint8_t)small_from_double(&e4m3, f);
}

float cm_e5m2_to_float(uint8_t b)
{
    return (float)small_to_double(&e5m2, b);
}

uint8_t cm_float_to_e5m2(float f)
{
    return (uint8_t)small_from_double(&e5m2, f);
}

/* The small float of a type, or NULL. */
static const struct small_float *small_float_of(enum cm_dtype t)
{
    switch (t) {
    case CM_HALF:
        return &half;
    case CM_BFLOAT16:
        return &bf16;
    case CM_F8E4M3:
        return &e4m3;
    case CM_F8E5M2:
        return &e5m2;
    default:
        return NULL;
    }
}

/* The low `bytes` bytes of a number, in the machine's byte order. */
static uint64_t bits_load(const void *p, size_t bytes)
{
    uint8_t b;
    uint16_t h;
    uint32_t w;
    uint64_t d;

    switch (bytes) {
    case 1:
        memcpy(&b, p, sizeof(b));
        return b;
    case 2:
        memcpy(&h, p, sizeof(h));
        return h;
    case 4:
        memcpy(&w, p, sizeof(w));
        return w;
    default:
        memcpy(&d, p, sizeof(d));
        return d;
    }
}

static void bits_store(void *p, size_t bytes, uint64_t v)
{
    uint8_t b = (uint8_t)v;
    uint16_t h = (uint16_t)v;
    uint32_t w = (uint32_t)v;

    switch (bytes) {
    case 1:
        memcpy(p, &b, sizeof(b));
        return;
    case 2:
        memcpy(p, &h, sizeof(h));
        return;
    case 4:
        memcpy(p, &w, sizeof(w));
        return;
    default:
        memcpy(p, &v, sizeof(v));
    }
}

uint64_t cm_int_load(enum cm_dtype t, const void *p)
{
    const struct cm_dtype_info *info = &cm_dtypes[t];
    uint64_t v = bits_load(p, info->bytes), sign = (uint64_t)1 << (8 * info->bytes - 1);

    assert(info->kind != CM_KIND_FLOAT);
    return info->kind == CM_KIND_INT ? (v ^ sign) - sign : v;
}

void cm_int_store(enum cm_dtype t, void *p, uint64_t v)
{
    assert(cm_dtypes[t].kind != CM_KIND_FLOAT);
    bits_store(p, cm_dtypes[t].bytes, v);
}

/* v as type `t`, towards zero; the nearest limit if it is out of range, 0 for NaN. */
static uint64_t int_from_double(enum cm_dtype t, double v)
{
    bool is_signed = cm_dtypes[t].kind == CM_KIND_INT;
    uint64_t max = UINT64_MAX >> (64 - cm_dtypes[t].mantissa);
    double limit = ldexp(1, cm_dtypes[t].mantissa);

    if (isnan(v))
        return 0;
    if (v >= limit)
        return max;
    if (!is_signed)
        return v > 0 ? (uint64_t)v : 0;
    return v <= -limit ? ~max : (uint64_t)(int64_t)v;
}

double cm_load(enum cm_dtype t, const void *p)
{
    const struct small_float *f = small_float_of(t);
    float single;
    double v;

    if (f != NULL)
        return small_to_double(f, (uint32_t)bits_load(p, cm_dtypes[t].bytes));
    if (t == CM_DOUBLE) {
        memcpy(&v, p, sizeof(v));
        return v;
    }
    if (t == CM_FLOAT) {
        memcpy(&single, p, sizeof(single));
        return single;
    }
    if (cm_dtypes[t].kind == CM_KIND_INT)
        return (double)(int64_t)cm_int_load(t, p);
    return (double)cm_int_load(t, p);
}

void cm_store(enum cm_dtype t, void *p, double v)
{
    const struct small_float *f = small_float_of(t);
    float single = (float)v;

    if (f != NULL)
        bits_store(p, cm_dtypes[t].bytes, small_from_double(f, v));
    else if (t == CM_DOUBLE)
        memcpy(p, &v, sizeof(v));
    else if (t == CM_FLOAT)
        memcpy(p, &single, sizeof(single));
    else
        cm_int_store(t, p, int_from_double(t, v));
}
