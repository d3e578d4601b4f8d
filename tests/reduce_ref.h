/* The scalar reference of the reduction kernels, and the comparison with it. */
#ifndef CM_TESTS_REDUCE_REF_H
#define CM_TESTS_REDUCE_REF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

static inline float combine_float(enum cm_op op, float a, float b)
{
    switch (op) {
    case CM_PROD:
        return a * b;
    case CM_MAX:
        return a > b || isnan(b) ? a : b;
    case CM_MIN:
        return a < b || isnan(b) ? a : b;
    default:
        return a + b;
    }
}

static inline double combine_double(enum cm_op op, double a, double b)
{
    switch (op) {
    case CM_PROD:
        return a * b;
    case CM_MAX:
        return a > b || isnan(b) ? a : b;
    case CM_MIN:
        return a < b || isnan(b) ? a : b;
    default:
        return a + b;
    }
}

static inline uint64_t combine_int(enum cm_op op, bool is_signed, uint64_t a, uint64_t b)
{
    bool above = is_signed ? (int64_t)a > (int64_t)b : a > b;

    switch (op) {
    case CM_PROD:
        return a * b;
    case CM_MAX:
        return above ? a : b;
    case CM_MIN:
        return above ? b : a;
    default:
        return a + b;
    }
}

/* Scale of source s in a call; 1 where there is none. */
static inline int scale_of(const struct cm_reduce *r, int s)
{
    return r->scale != NULL ? r->scale[s] : 1;
}

static inline double reference_float(enum cm_dtype t, enum cm_op op, const struct cm_reduce *r,
                                     size_t at)
{
    float acc = (float)cm_load(t, (const char *)r->src[0] + at) * (float)scale_of(r, 0);

    for (int s = 1; s < r->nsrc; s++) {
        float x = (float)cm_load(t, (const char *)r->src[s] + at) * (float)scale_of(r, s);

        acc = combine_float(op, acc, x);
    }
    return (double)(acc / (float)r->divisor);
}

static inline double reference_double(enum cm_op op, const struct cm_reduce *r, size_t at)
{
    double acc = cm_load(CM_DOUBLE, (const char *)r->src[0] + at) * scale_of(r, 0);

    for (int s = 1; s < r->nsrc; s++)
        acc = combine_double(op, acc,
                             cm_load(CM_DOUBLE, (const char *)r->src[s] + at) * scale_of(r, s));
    return acc / r->divisor;
}

static inline void reference_int(enum cm_dtype t, enum cm_op op, const struct cm_reduce *r,
                                 size_t at, void *out)
{
    bool is_signed = cm_dtypes[t].kind == CM_KIND_INT;
    uint64_t acc = 0;

    for (int s = 0; s < r->nsrc; s++) {
        uint64_t x = cm_int_load(t, (const char *)r->src[s] + at) * (uint64_t)scale_of(r, s);

        cm_int_store(t, out, x); /* wraps to the type before a comparison */
        x = cm_int_load(t, out);
        acc = s == 0 ? x : combine_int(op, is_signed, acc, x);
    }
    cm_int_store(t, out, acc);
    acc = cm_int_load(t, out);
    if (is_signed)
        acc = (uint64_t)((int64_t)acc / r->divisor);
    else
        acc /= (uint64_t)r->divisor;
    cm_int_store(t, out, acc);
}

/* The definition of right, one element after the other, to `out`; r->dst is not used. */
static inline void reference(enum cm_dtype t, enum cm_op op, const struct cm_reduce *r, void *out)
{
    size_t bytes = cm_dtypes[t].bytes;

    for (size_t at = 0; at < r->n * bytes; at += bytes) {
        void *p = (char *)out + at;

        if (cm_dtypes[t].kind != CM_KIND_FLOAT)
            reference_int(t, op, r, at, p);
        else if (t == CM_DOUBLE)
            cm_store(t, p, reference_double(op, r, at));
        else
            cm_store(t, p, reference_float(t, op, r, at));
    }
}

/* First byte of the first differing element, or n * bytes. Which NaN came out does not count. */
static inline size_t first_difference(enum cm_dtype t, const void *a, const void *b, size_t n)
{
    size_t bytes = cm_dtypes[t].bytes;

    if (memcmp(a, b, n * bytes) == 0)
        return n * bytes;
    for (size_t at = 0; at < n * bytes; at += bytes) {
        const char *x = (const char *)a + at, *y = (const char *)b + at;
        bool nan = cm_dtypes[t].kind == CM_KIND_FLOAT && isnan(cm_load(t, x)) &&
                   isnan(cm_load(t, y));

        if (!nan && memcmp(x, y, bytes) != 0)
            return at;
    }
    return n * bytes;
}

#endif
