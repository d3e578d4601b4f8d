/*
 * Host kernels: the fast and the streaming kernel give the bits of the generic
 * one, and that one those of a scalar reference; for every type, operation,
 * number of operands, length and alignment, in place and not, with guards.
 * The inputs are random bit patterns: subnormals, infinities and NaN included.
 */
#include "kernels/kernels.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"
#include "reduce_ref.h"
#include "test.h"

enum {
    MAX_SRC = 17,
    MAX_DST = 3,
    MAX_COUNT = 1037,
    GUARD = 64,
    ROOM = GUARD + 256 + MAX_COUNT * 8 + GUARD, /* 256: for the shifts */
    FILL = 0xa5
};

static const int nsrcs[] = {1, 2, 3, 4, 5, 8, 9, 17};
static const size_t counts[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100, 127, 255, MAX_COUNT};

/* How the operands start, in elements past a cache line: sources and destinations by index. */
static const struct shift {
    int src_step, dst_first, dst_step;
} shifts[] = {{0, 0, 0}, {3, 1, 5}, {1, 3, 0}, {5, 0, 1}};

/* Working memory of this program; a case rewrites what it uses. */
static struct {
    _Alignas(64) unsigned char src[MAX_SRC][ROOM];
    _Alignas(64) unsigned char dst[MAX_DST][ROOM];
    _Alignas(64) unsigned char want[ROOM];
} mem;

struct config {
    enum cm_dtype t;
    enum cm_op op;
    int nsrc, ndst;
    size_t n;
    struct shift shift;
    bool in_place;
};

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fill_random(void *p, size_t bytes, uint64_t seed)
{
    unsigned char *b = p;
    uint64_t r = 0;

    for (size_t i = 0; i < bytes; i++, r >>= 8) {
        if (i % 8 == 0)
            r = next_random(&seed);
        b[i] = (unsigned char)r;
    }
}

static bool all_fill(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++)
        if (*from != FILL)
            return false;
    return true;
}

static unsigned char *payload(unsigned char *room, const struct config *c, int shift)
{
    return room + GUARD + (size_t)shift * cm_dtypes[c->t].bytes;
}

static void check_results(const struct config *c, const char *name)
{
    size_t bytes = c->n * cm_dtypes[c->t].bytes;

    for (int d = 0; d < c->ndst; d++) {
        unsigned char *p = payload(mem.dst[d], c, c->shift.dst_first + d * c->shift.dst_step);
        size_t at = first_difference(c->t, p, mem.want, c->n);

        CHECK(at == bytes,
              "%s %s %s, %d -> %d, n=%zu, shifts %d %d %d, in place %d: dst %d byte %zu", name,
              cm_dtypes[c->t].name, cm_ops[c->op].name, c->nsrc, c->ndst, c->n, c->shift.src_step,
              c->shift.dst_first, c->shift.dst_step, c->in_place, d, at);
        CHECK(all_fill(p - GUARD, p) && all_fill(p + bytes, p + bytes + GUARD),
              "%s %s %s, %d -> %d, n=%zu: dst %d written outside", name, cm_dtypes[c->t].name,
              cm_ops[c->op].name, c->nsrc, c->ndst, c->n, d);
    }
}

/* One call of one kernel; mem.want holds what must come out. */
static void check_kernel(const struct config *c, const struct cm_reduce *plain, const char *name,
                         cm_reduce_fn *fn)
{
    struct cm_reduce r = *plain;
    const void *src[MAX_SRC];
    void *dst[MAX_DST];
    size_t bytes = c->n * cm_dtypes[c->t].bytes;

    for (int d = 0; d < c->ndst; d++) {
        dst[d] = payload(mem.dst[d], c, c->shift.dst_first + d * c->shift.dst_step);
        memset((char *)dst[d] - GUARD, FILL, bytes + 2 * GUARD);
    }
    memcpy(src, plain->src, (size_t)c->nsrc * sizeof(src[0]));
    if (c->in_place) {
        memcpy(dst[0], src[0], bytes);
        src[0] = dst[0];
    }
    r.src = src;
    r.dst = dst;
    fn(&r);
    check_results(c, name);
}

static void check_config(struct config *c)
{
    static const int scale[MAX_SRC] = {1, 2, 1, 2, 1, 2, 3, -1, 2, 1, 2, 1, 2, 3, 1, 2, 1};
    const void *src[MAX_SRC];
    struct cm_reduce r = {.n = c->n, .nsrc = c->nsrc, .src = src, .divisor = 1};

    if (c->op == CM_MULSUM)
        r.scale = scale;
    if (c->op == CM_AVG)
        r.divisor = c->nsrc;
    for (int s = 0; s < c->nsrc; s++)
        src[s] = payload(mem.src[s], c, s * c->shift.src_step);
    reference(c->t, c->op, &r, mem.want);
    for (c->ndst = 1; c->ndst <= MAX_DST; c->ndst++) {
        r.ndst = c->ndst;
        for (int in_place = 0; in_place < 2; in_place++) {
            c->in_place = in_place;
            check_kernel(c, &r, "generic", cm_reduce_generic(c->t, c->op));
            check_kernel(c, &r, "cached", cm_reduce_kernel(c->t, c->op, false));
            check_kernel(c, &r, "stream", cm_reduce_kernel(c->t, c->op, true));
        }
    }
}

static void check_counts(struct config *c)
{
    for (size_t i = 0; i < CM_LEN(nsrcs); i++)
        for (size_t k = 0; k < CM_LEN(counts); k++) {
            c->nsrc = nsrcs[i];
            c->n = counts[k];
            check_config(c);
        }
}

static void check_type(enum cm_dtype t)
{
    struct config c = {.t = t};

    for (int op = 0; op < CM_NOPS; op++)
        for (size_t i = 0; i < CM_LEN(shifts); i++) {
            c.op = (enum cm_op)op;
            c.shift = shifts[i];
            check_counts(&c);
        }
}

static void test_integers(void)
{
    for (int t = 0; t < CM_NDTYPES; t++)
        if (cm_dtypes[t].kind != CM_KIND_FLOAT)
            check_type((enum cm_dtype)t);
}

static void test_floats(void)
{
    for (int t = 0; t < CM_NDTYPES; t++)
        if (cm_dtypes[t].kind == CM_KIND_FLOAT)
            check_type((enum cm_dtype)t);
}

/* Scale and divisor with every operation, not only with those that need them. */
static void test_scale_and_divisor_everywhere(void)
{
    static const int scale[MAX_SRC] = {3, 2, 7};
    struct config c = {.nsrc = 3, .ndst = 2, .n = 101, .shift = {1, 1, 1}};

    for (int t = 0; t < CM_NDTYPES; t++)
        for (int op = 0; op < CM_NOPS; op++) {
            const void *src[MAX_SRC];
            struct cm_reduce r = {
                .n = c.n, .nsrc = c.nsrc, .ndst = c.ndst, .src = src, .scale = scale, .divisor = 5};

            c.t = (enum cm_dtype)t;
            c.op = (enum cm_op)op;
            for (int s = 0; s < c.nsrc; s++)
                src[s] = payload(mem.src[s], &c, s);
            reference(c.t, c.op, &r, mem.want);
            check_kernel(&c, &r, "generic", cm_reduce_generic(c.t, c.op));
            check_kernel(&c, &r, "cached", cm_reduce_kernel(c.t, c.op, false));
            check_kernel(&c, &r, "stream", cm_reduce_kernel(c.t, c.op, true));
        }
}

/* A divisor beyond the range of a small type is still that number. */
static void test_large_divisor(void)
{
    static const int8_t in8[1] = {-100};
    static const uint8_t inu[1] = {200};
    int8_t out8 = 1;
    uint8_t outu = 1;
    struct cm_reduce r = {.n = 1, .nsrc = 1, .ndst = 1, .divisor = 300};

    r.src = (const void *const[]){in8};
    r.dst = (void *const[]){&out8};
    cm_reduce_kernel(CM_INT8, CM_AVG, false)(&r);
    r.src = (const void *const[]){inu};
    r.dst = (void *const[]){&outu};
    cm_reduce_kernel(CM_UINT8, CM_AVG, false)(&r);
    CHECK(out8 == 0 && outu == 0, "-100 / 300 = %d, 200 / 300 = %d", out8, outu);
}

/* Every pattern of the small floats, with many partners: conversions in and out. */
static void test_all_patterns(void)
{
    static const enum cm_dtype types[] = {CM_HALF, CM_BFLOAT16, CM_F8E4M3, CM_F8E5M2};
    static const enum cm_op ops[] = {CM_SUM, CM_PROD, CM_MAX, CM_MIN};
    enum { PATTERNS = 65536 };
    static uint16_t x[PATTERNS], y[PATTERNS], want[PATTERNS], got[PATTERNS];

    for (size_t i = 0; i < PATTERNS; i++)
        x[i] = (uint16_t)i;
    for (size_t i = 0; i < CM_LEN(types) * CM_LEN(ops); i++) {
        enum cm_dtype t = types[i % CM_LEN(types)];
        enum cm_op op = ops[i / CM_LEN(types)];
        struct cm_reduce r = {.n = sizeof(x) / cm_dtypes[t].bytes,
                              .nsrc = 2,
                              .ndst = 1,
                              .src = (const void *const[]){x, y},
                              .dst = (void *const[]){got},
                              .divisor = 1};

        fill_random(y, sizeof(y), 77 + i);
        reference(t, op, &r, want);
        cm_reduce_generic(t, op)(&r);
        CHECK(first_difference(t, got, want, r.n) == sizeof(x), "generic %s %s: byte %zu",
              cm_dtypes[t].name, cm_ops[op].name, first_difference(t, got, want, r.n));
        cm_reduce_kernel(t, op, false)(&r);
        CHECK(first_difference(t, got, want, r.n) == sizeof(x), "fast %s %s: byte %zu",
              cm_dtypes[t].name, cm_ops[op].name, first_difference(t, got, want, r.n));
    }
}

/* min and max: the operand that is not NaN, from either side; NaN of two. */
static void test_nan_loses(void)
{
    float a[9], b[9], out[9];
    struct cm_reduce r = {.n = 9,
                          .nsrc = 2,
                          .ndst = 1,
                          .src = (const void *const[]){a, b},
                          .dst = (void *const[]){out},
                          .divisor = 1};

    for (int i = 0; i < 9; i++) {
        a[i] = i % 3 != 1 ? NAN : 7;
        b[i] = i % 3 != 2 ? NAN : 7;
    }
    for (int op = CM_MAX; op <= CM_MIN; op++) {
        cm_reduce_kernel(CM_FLOAT, (enum cm_op)op, false)(&r);
        for (int i = 0; i < 9; i++)
            CHECK(i % 3 == 0 ? isnan(out[i]) : out[i] == 7, "%s(%g, %g) = %g", cm_ops[op].name,
                  (double)a[i], (double)b[i], (double)out[i]);
    }
}

static void check_copy(size_t bytes, int ndst, int shift, bool stream)
{
    void *dst[MAX_DST] = {NULL};
    const unsigned char *src = mem.src[0] + shift;

    for (int d = 0; d < ndst; d++) {
        dst[d] = mem.dst[d] + GUARD + shift * d;
        memset((char *)dst[d] - GUARD, FILL, bytes + 2 * GUARD);
    }
    cm_copy(dst, ndst, src, bytes, stream);
    for (int d = 0; d < ndst; d++) {
        const unsigned char *p = dst[d];

        CHECK(memcmp(p, src, bytes) == 0, "%zu bytes, dst %d of %d, shift %d, stream %d", bytes, d,
              ndst, shift, stream);
        CHECK(all_fill(p - GUARD, p) && all_fill(p + bytes, p + bytes + GUARD),
              "%zu bytes, dst %d of %d, shift %d, stream %d: outside", bytes, d, ndst, shift,
              stream);
    }
    dst[0] = (void *)src; /* onto itself: nothing may change */
    memcpy(mem.want, src, bytes);
    cm_copy(dst, ndst, src, bytes, stream);
    CHECK(memcmp(mem.want, src, bytes) == 0, "%zu bytes onto itself, stream %d", bytes, stream);
}

static void test_copies(void)
{
    static const size_t sizes[] = {0, 1, 7, 8, 31, 32, 63, 65, 128, 129, 1000, 4096, 4097, 8200};

    for (size_t i = 0; i < CM_LEN(sizes); i++)
        for (int ndst = 1; ndst <= MAX_DST; ndst++)
            for (int shift = 0; shift < 4; shift++) {
                check_copy(sizes[i], ndst, shift, false);
                check_copy(sizes[i], ndst, shift, true);
            }
}

int main(void)
{
    printf("kernels: %s\n", cm_kernel_isa());
    for (int s = 0; s < MAX_SRC; s++)
        fill_random(mem.src[s], ROOM, (uint64_t)s + 1);
    RUN(test_integers);
    RUN(test_floats);
    RUN(test_scale_and_divisor_everywhere);
    RUN(test_large_divisor);
    RUN(test_all_patterns);
    RUN(test_nan_loses);
    RUN(test_copies);
    return test_end();
}
