/*
 * Element types: tables, and exact conversions. The slow reference knows only
 * the list of a type's values, which this file computes from the format's
 * definition: the result must be the value nearest by search, of two equally
 * near ones the one with the even code.
 */
#include "base/dtype.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "test.h"

struct format {
    const char *name;
    enum cm_dtype type;
    int exponent, mantissa; /* bits */
    bool saturates;         /* finite values never become infinity */
    bool has_inf;
};
static const struct format formats[] = {
    {"half", CM_HALF, 5, 10, false, true},
    {"bfloat16", CM_BFLOAT16, 8, 7, false, true},
    {"f8e4m3", CM_F8E4M3, 4, 3, true, false},
    {"f8e5m2", CM_F8E5M2, 5, 2, true, true},
};

static float to_float(enum cm_dtype t, uint32_t code)
{
    switch (t) {
    case CM_HALF:
        return cm_half_to_float((uint16_t)code);
    case CM_BFLOAT16:
        return cm_bf16_to_float((uint16_t)code);
    case CM_F8E4M3:
        return cm_e4m3_to_float((uint8_t)code);
    default:
        return cm_e5m2_to_float((uint8_t)code);
    }
}

static uint32_t from_float(enum cm_dtype t, float f)
{
    switch (t) {
    case CM_HALF:
        return cm_float_to_half(f);
    case CM_BFLOAT16:
        return cm_float_to_bf16(f);
    case CM_F8E4M3:
        return cm_float_to_e4m3(f);
    default:
        return cm_float_to_e5m2(f);
    }
}

static uint32_t sign_of(const struct format *f)
{
    return 1u << (f->exponent + f->mantissa);
}

/* Number of finite codes without sign: all below infinity, or below the one NaN. */
static uint32_t finite_codes(const struct format *f)
{
    return f->has_inf ? sign_of(f) - (1u << f->mantissa) : sign_of(f) - 1;
}

/* Value of a code without sign by the definition, as if there were no infinity and NaN. */
static double value_of(const struct format *f, uint32_t code)
{
    int e = (int)(code >> f->mantissa), bias = (1 << (f->exponent - 1)) - 1;
    double m = code & ((1u << f->mantissa) - 1), one = 1u << f->mantissa;

    return e == 0 ? ldexp(m / one, 1 - bias) : ldexp(1 + m / one, e - bias);
}

/* The code whose value is nearest to v >= 0, by bisection over all codes. */
static uint32_t nearest(const struct format *f, double v)
{
    uint32_t lo = 0, hi = finite_codes(f); /* value(lo) <= v < value(hi), the first not finite */
    double below, above;

    if (v >= value_of(f, hi))
        return f->saturates ? hi - 1 : hi;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (value_of(f, mid) <= v)
            lo = mid;
        else
            hi = mid;
    }
    below = v - value_of(f, lo); /* exact: both are within a factor of two, or lo is 0 */
    above = value_of(f, hi) - v;
    if (above < below || (above == below && (hi & 1) == 0))
        lo = hi;
    return lo == finite_codes(f) && f->saturates ? lo - 1 : lo;
}

/* Float and double stores of +v and -v. */
static void check_store(const struct format *f, double v, bool as_float)
{
    uint32_t want = nearest(f, v);

    for (int negative = 0; negative < 2; negative++) {
        uint32_t code = negative ? want | sign_of(f) : want, got = 0;
        double x = negative ? -v : v;
        uint16_t wide = 0;
        uint8_t narrow = 0;

        if (as_float)
            got = from_float(f->type, (float)x);
        CHECK(!as_float || got == code, "%s: %a -> %#x, want %#x", f->name, x, got, code);
        cm_store(f->type, cm_dtypes[f->type].bytes == 1 ? (void *)&narrow : (void *)&wide, x);
        got = cm_dtypes[f->type].bytes == 1 ? narrow : wide;
        CHECK(got == code, "%s: double %a -> %#x, want %#x", f->name, x, got, code);
    }
}

static void test_codes_have_their_values(void)
{
    for (size_t i = 0; i < CM_LEN(formats); i++) {
        const struct format *f = &formats[i];

        for (uint32_t c = 0; c < finite_codes(f); c++) {
            float v = to_float(f->type, c), minus = to_float(f->type, c | sign_of(f));

            CHECK(v == value_of(f, c), "%s %#x: %a", f->name, c, (double)v);
            CHECK(minus == -v && signbit(minus), "%s -%#x: %a", f->name, c, (double)minus);
        }
    }
}

/* All patterns: finite ones and infinities come back, NaN stays NaN of its sign. */
static void test_all_patterns_round_trip(void)
{
    for (size_t i = 0; i < CM_LEN(formats); i++) {
        const struct format *f = &formats[i];

        for (uint32_t c = 0; c < 2 * sign_of(f); c++) {
            uint32_t abs = c & (sign_of(f) - 1), back;
            float v = to_float(f->type, c);
            bool inf = f->has_inf && abs == finite_codes(f);
            bool nan = abs >= finite_codes(f) && !inf;

            back = from_float(f->type, v);
            CHECK(!isnan(v) == !nan && !isinf(v) == !inf, "%s %#x: %a", f->name, c, (double)v);
            if (nan)
                CHECK(isnan(to_float(f->type, back)) && ((back ^ c) & sign_of(f)) == 0,
                      "%s NaN %#x -> %#x", f->name, c, back);
            else
                CHECK(back == c, "%s %#x -> %a -> %#x", f->name, c, (double)v, back);
        }
    }
}

/* Every code, the tie above it, and their neighbours in float and in double. */
static void test_ties_go_to_even(void)
{
    for (size_t i = 0; i < CM_LEN(formats); i++) {
        const struct format *f = &formats[i];

        for (uint32_t c = 0; c < finite_codes(f); c++) {
            double v = value_of(f, c), tie = (v + value_of(f, c + 1)) / 2;

            check_store(f, v, true);
            if (tie <= (double)3.40282347e38f)
                check_store(f, tie, true);
            check_store(f, tie, false);
            check_store(f, nextafterf((float)tie, 0), true);
            if (tie < (double)3.40282347e38f)
                check_store(f, nextafterf((float)tie, INFINITY), true);
            check_store(f, nextafter(tie, 0), false); /* by way of float this would be the tie */
            check_store(f, nextafter(tie, INFINITY), false);
        }
    }
}

static void test_large_values(void)
{
    static const double large[] = {448,   464,   465,   480,   57344, 61439, 61440,
                                   65504, 65519, 65520, 65536, 1e6,   1e30,  3.4e38};

    for (size_t i = 0; i < CM_LEN(formats); i++)
        for (size_t k = 0; k < CM_LEN(large); k++)
            check_store(&formats[i], large[k], true);
    CHECK(cm_float_to_e4m3(INFINITY) == 0x7e, "e4m3 has no infinity: %#x",
          (unsigned int)cm_float_to_e4m3(INFINITY));
    CHECK(cm_float_to_e5m2(-INFINITY) == 0xfc, "e5m2: %#x",
          (unsigned int)cm_float_to_e5m2(-INFINITY));
    CHECK(cm_float_to_half(INFINITY) == 0x7c00 && cm_float_to_bf16(INFINITY) == 0x7f80, "inf");
}

static void test_integers(void)
{
    static const struct {
        enum cm_dtype type;
        double in;
        uint64_t out; /* as cm_int_load shows it */
    } cases[] = {
        {CM_INT8, -1, UINT64_MAX},
        {CM_INT8, 127.9, 127},
        {CM_INT8, 1e9, 127},
        {CM_INT8, -1e9, (uint64_t)-128},
        {CM_INT8, -127.5, (uint64_t)-127},
        {CM_INT8, NAN, 0},
        {CM_UINT8, 255, 255},
        {CM_UINT8, 256, 255},
        {CM_UINT8, -1, 0},
        {CM_INT32, -2147483648.0, (uint64_t)INT32_MIN},
        {CM_INT32, 2147483648.0, INT32_MAX},
        {CM_UINT32, 4294967295.0, UINT32_MAX},
        {CM_INT64, 9.3e18, INT64_MAX},
        {CM_INT64, -9.3e18, (uint64_t)INT64_MIN},
        {CM_UINT64, 1e20, UINT64_MAX},
        {CM_UINT64, 9223372036854775808.0, (uint64_t)1 << 63},
        {CM_UINT64, INFINITY, UINT64_MAX},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        unsigned char p[9];
        size_t bytes = cm_dtypes[cases[i].type].bytes;
        uint64_t got;

        memset(p, 0x5a, sizeof(p));
        cm_store(cases[i].type, p, cases[i].in);
        got = cm_int_load(cases[i].type, p);
        CHECK(got == cases[i].out, "%s %g: got %#" PRIx64, cm_dtypes[cases[i].type].name,
              cases[i].in, got);
        CHECK(p[bytes] == 0x5a, "%s wrote too far", cm_dtypes[cases[i].type].name);
        cm_int_store(cases[i].type, p + 1, got);
        CHECK(cm_int_load(cases[i].type, p + 1) == got, "unaligned");
    }
}

static void test_load_store_every_type(void)
{
    for (int t = 0; t < CM_NDTYPES; t++)
        for (int v = 0; v <= 8; v++) {
            unsigned char p[8];
            double x = cm_dtypes[t].kind == CM_KIND_UINT ? v : -v;

            cm_store((enum cm_dtype)t, p, x);
            CHECK(cm_load((enum cm_dtype)t, p) == x, "%s %g -> %g", cm_dtypes[t].name, x,
                  cm_load((enum cm_dtype)t, p));
        }
}

/* mantissa and max_exp say the same as the conversions. */
static void test_table_figures(void)
{
    for (int t = 0; t < CM_NDTYPES; t++) {
        const struct cm_dtype_info *info = &cm_dtypes[t];
        double odd = ldexp(1, info->mantissa) - 1, top = ldexp(1, info->max_exp);
        unsigned char p[8];

        if (info->kind != CM_KIND_FLOAT ||
            t == CM_DOUBLE) /* double has no wider type to try it with */
            continue;
        cm_store((enum cm_dtype)t, p, odd);
        CHECK(cm_load((enum cm_dtype)t, p) == odd, "%s holds %g", info->name, odd);
        cm_store((enum cm_dtype)t, p, odd * 2 + 1);
        CHECK(cm_load((enum cm_dtype)t, p) != odd * 2 + 1, "%s holds %g", info->name, odd * 2 + 1);
        cm_store((enum cm_dtype)t, p, top);
        CHECK(cm_load((enum cm_dtype)t, p) == top, "%s holds %g", info->name, top);
        cm_store((enum cm_dtype)t, p, top * 2);
        CHECK(!(cm_load((enum cm_dtype)t, p) == top * 2) || isinf(top * 2), "%s holds %g",
              info->name, top * 2);
    }
}

static void test_names_are_found(void)
{
    for (int t = 0; t < CM_NDTYPES; t++)
        CHECK(cm_dtype_find(cm_dtypes[t].name) == t, "%s", cm_dtypes[t].name);
    for (int o = 0; o < CM_NOPS; o++)
        CHECK(cm_op_find(cm_ops[o].name) == o, "%s", cm_ops[o].name);
    CHECK(cm_dtype_find("Float") == -1 && cm_dtype_find("") == -1 && cm_dtype_find("int") == -1,
          "inexact type found");
    CHECK(cm_op_find("SUM") == -1 && cm_op_find("all") == -1, "inexact op found");
}

int main(void)
{
    RUN(test_names_are_found);
    RUN(test_table_figures);
    RUN(test_load_store_every_type);
    RUN(test_integers);
    RUN(test_codes_have_their_values);
    RUN(test_all_patterns_round_trip);
    RUN(test_ties_go_to_even);
    RUN(test_large_values);
    return test_end();
}
