/*
 * Expected results of reductions, in constant time per element.
 *
 * Sums and products: rank r contributes f((h(i) + r) mod window), so the total
 * over the ranks depends on h(i) only and stands in a table of `window`
 * entries, which a sliding window over f fills once per seed. Integer sums are
 * n a(i) + (sum of the ranks' weights) s(i). Minima and maxima look at the few
 * ranks that can win; up to 8 ranks block by block, so that the loops vectorise.
 */
#include <assert.h>
#include <string.h>

#include "common/data.h"
#include "common/data_block.h"

enum { SIGN_BITS = 16 }; /* POWERS: exponents are summed above the count of negative factors */

static int factor_of(const struct cm_data *d, int rank)
{
    return d->op == CM_MULSUM ? cm_mulsum_scalar(rank) : 1;
}

/* f(t), with what is summed beside it. */
static int64_t term_at(const struct cm_gen *g, uint32_t t, bool wide)
{
    uint64_t bits64 = cm_gen_table_bits64(g, t);
    uint32_t bits = cm_gen_table_bits(g, t);
    uint32_t negative = cm_gen_power_sign(wide ? (uint32_t)(bits64 >> 32) : bits);
    int64_t f;

    if (g->kind == CM_GEN_ODD)
        return (int64_t)((wide ? bits64 : bits) | 1);
    f = wide ? cm_gen_large(g, t, bits64) : cm_gen_small(g, t, bits);
    return g->kind == CM_GEN_POWERS ? f * (1 << SIGN_BITS) + negative : f;
}

/* Sums of n neighbours, odd places counted twice if `twice`. */
static void slide_sums(const int64_t *f, uint32_t mask, int n, bool twice, int64_t *at)
{
    int64_t even = 0, odd = 0;

    for (int r = 0; r < n; r++)
        *(r & 1 ? &odd : &even) += f[(uint32_t)r & mask];
    for (uint32_t h = 0; h <= mask; h++) {
        int64_t was_even = even;
        int64_t next = f[(h + (uint32_t)n) & mask];

        at[h] = even + (twice ? 2 * odd : odd);
        even = odd + (n & 1 ? next : 0);
        odd = was_even - f[h] + (n & 1 ? 0 : next);
    }
}

/* Inverse of an odd number modulo 2^64: Newton's iteration doubles the valid bits, 3 to 96. */
static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;

    for (int i = 0; i < 5; i++)
        x *= 2 - odd * x;
    return x;
}

static void slide_products(const int64_t *f, uint32_t mask, int n, int64_t *at)
{
    uint64_t p = 1;

    for (int r = 0; r < n; r++)
        p *= (uint64_t)f[(uint32_t)r & mask];
    for (uint32_t h = 0; h <= mask; h++) {
        at[h] = (int64_t)p;
        p *= inverse((uint64_t)f[h]) * (uint64_t)f[(h + (uint32_t)n) & mask];
    }
}

void cm_sums_of(const struct cm_data *d, struct cm_sums *out)
{
    bool wide = cm_dtypes[d->dtype].bytes == 8;
    int64_t term[CM_DATA_MAX_WINDOW];
    struct cm_gen g;

    cm_gen_of(d, &g);
    out->weight[0] = out->weight[1] = 0;
    for (int r = 0; r < d->n; r++) {
        uint64_t c = (uint64_t)factor_of(d, r);

        out->weight[0] += c;
        out->weight[1] += c * cm_gen_lane_of(&g, (uint32_t)r, 0).rank_key64;
    }
    if (g.kind != CM_GEN_EXACT && g.kind != CM_GEN_ODD && g.kind != CM_GEN_POWERS)
        return;
    for (uint32_t t = 0; t <= g.window_mask; t++)
        term[t] = term_at(&g, t, wide);
    if (g.kind == CM_GEN_ODD) {
        slide_products(term, g.window_mask, d->n, out->at);
        return;
    }
    slide_sums(term, g.window_mask, d->n, d->op == CM_MULSUM, out->at);
    for (uint32_t h = 0; g.kind == CM_GEN_POWERS && h <= g.window_mask; h++)
        out->at[h] = (out->at[h] >> SIGN_BITS) * 2 + (out->at[h] & 1);
}

/* The block being computed. */
struct job {
    const struct cm_data *data;
    const struct cm_gen *gen;
    const struct cm_sums *sums;
    struct cm_gen_lane lane; /* any rank: the index hash only */
    struct span span;
};

static void exact32(const struct job *b, uint32_t *out)
{
    const struct cm_gen g = *b->gen;
    const struct cm_gen_lane lane = b->lane;

    for (uint32_t j = 0; j < b->span.n; j++) {
        uint32_t h = cm_gen_index(&lane, b->span.low + j);
        int32_t v = (int32_t)b->sums->at[h & g.window_mask];

        out[j] = cm_gen_encode(&g, cm_float_bits(cm_gen_scaled(&g, h, v)));
    }
}

static uint32_t float_code(enum cm_dtype t, float f)
{
    switch (t) {
    case CM_HALF:
        return cm_float_to_half(f);
    case CM_BFLOAT16:
        return cm_float_to_bf16(f);
    case CM_F8E4M3:
        return cm_float_to_e4m3(f);
    case CM_F8E5M2:
        return cm_float_to_e5m2(f);
    default:
        return cm_float_bits(f);
    }
}

/* avg: one division in float32, one rounding to the type, as the kernels do. */
static void average32(const struct job *b, uint32_t *out)
{
    for (uint32_t j = 0; j < b->span.n; j++) {
        uint32_t h = cm_gen_index(&b->lane, b->span.low + j);
        int32_t v = (int32_t)b->sums->at[h & b->gen->window_mask];

        out[j] = float_code(b->data->dtype, cm_gen_scaled(b->gen, h, v) / (float)b->data->n);
    }
}

static void exact64(const struct job *b, uint64_t *out)
{
    double divisor = b->data->op == CM_AVG ? b->data->n : 1;

    for (uint32_t j = 0; j < b->span.n; j++) {
        uint32_t h = cm_gen_index(&b->lane, b->span.low + j);
        int64_t v = b->sums->at[h & b->gen->window_mask];

        out[j] = cm_double_bits(cm_gen_scaled64(b->gen, h, v) / divisor);
    }
}

static void wrap32(const struct job *b, uint32_t *out)
{
    const uint32_t all = (uint32_t)b->sums->weight[0], slope = (uint32_t)b->sums->weight[1];
    const struct cm_gen_lane lane = b->lane;

    for (uint32_t j = 0; j < b->span.n; j++) {
        uint32_t h = cm_gen_index(&lane, b->span.low + j);

        out[j] = all * h + slope * cm_gen_wrap_slope(h);
    }
}

static void wrap64(const struct job *b, uint64_t *out)
{
    for (uint32_t j = 0; j < b->span.n; j++) {
        uint64_t base = cm_gen_wrap_base64(b->gen, &b->lane, b->span.low + j);

        out[j] = b->sums->weight[0] * base + b->sums->weight[1] * cm_gen_wrap_slope64(base);
    }
}

/* avg of integers: C division of the wrapped sum in the element's own range. */
static uint64_t divide(const struct cm_data *d, uint64_t sum)
{
    int unused = 64 - 8 * (int)cm_dtypes[d->dtype].bytes;

    if (cm_dtypes[d->dtype].kind == CM_KIND_INT)
        return (uint64_t)(((int64_t)(sum << unused) >> unused) / d->n);
    return ((sum << unused) >> unused) / (uint64_t)d->n;
}

static void divide_block(const struct job *b, size_t bytes, union cm_block *out)
{
    for (uint32_t j = 0; bytes == 8 && j < b->span.n; j++)
        out->u64[j] = divide(b->data, out->u64[j]);
    for (uint32_t j = 0; bytes < 8 && j < b->span.n; j++)
        out->u32[j] = (uint32_t)divide(b->data, out->u32[j]);
}

static void odd32(const struct job *b, uint32_t *out)
{
    for (uint32_t j = 0; j < b->span.n; j++) {
        uint32_t h = cm_gen_index(&b->lane, b->span.low + j);

        out[j] = (uint32_t)b->sums->at[h & b->gen->window_mask] * (cm_gen_second(h) | 1);
    }
}

static void odd64(const struct job *b, uint64_t *out)
{
    for (uint32_t j = 0; j < b->span.n; j++) {
        uint32_t h = cm_gen_index(&b->lane, b->span.low + j);
        uint64_t p = (uint64_t)b->sums->at[h & b->gen->window_mask];

        out[j] = p * (cm_mix_key(cm_gen_second(h)) | 1);
    }
}

static void powers32(const struct job *b, uint32_t *out)
{
    for (uint32_t j = 0; j < b->span.n; j++) {
        uint32_t h = cm_gen_index(&b->lane, b->span.low + j);
        int64_t p = b->sums->at[h & b->gen->window_mask];

        out[j] = cm_gen_power(b->gen, (uint32_t)(p & 1), (int32_t)(p >> 1), cm_gen_second(h));
    }
}

static void powers64(const struct job *b, uint64_t *out)
{
    for (uint32_t j = 0; j < b->span.n; j++) {
        uint32_t h = cm_gen_index(&b->lane, b->span.low + j);
        int64_t p = b->sums->at[h & b->gen->window_mask];

        out[j] = cm_gen_power64((uint64_t)(p & 1), p >> 1, cm_mix_key(cm_gen_second(h)));
    }
}

/* A code whose unsigned order is the order of the values, in the top bits; the larger wins. */
struct order {
    int unused;    /* bits above the element */
    uint64_t sign; /* integers: what flips the sign bit; floats: the sign bit */
    bool is_float, min;
};

static struct order order_of(const struct cm_data *d, int word)
{
    const struct cm_dtype_info *t = &cm_dtypes[d->dtype];
    uint64_t sign = (uint64_t)1 << (word - 1);

    return (struct order){.unused = word - 8 * (int)t->bytes,
                          .sign = t->kind == CM_KIND_UINT ? 0 : sign,
                          .is_float = t->kind == CM_KIND_FLOAT,
                          .min = d->op == CM_MIN};
}

static inline uint32_t key32(struct order o, uint32_t x)
{
    uint32_t sign = (uint32_t)o.sign;

    x <<= o.unused;
    x = o.is_float && (x & sign) ? ~x : x ^ sign;
    return o.min ? ~x : x;
}

static inline uint32_t unkey32(struct order o, uint32_t x)
{
    uint32_t sign = (uint32_t)o.sign;

    x = o.min ? ~x : x;
    x = o.is_float && !(x & sign) ? ~x : x ^ sign;
    return x >> o.unused;
}

static inline uint64_t key64(struct order o, uint64_t x)
{
    x = o.is_float && (x & o.sign) ? ~x : x ^ o.sign;
    return o.min ? ~x : x;
}

static inline uint64_t unkey64(struct order o, uint64_t x)
{
    x = o.min ? ~x : x;
    return o.is_float && !(x & o.sign) ? ~x : x ^ o.sign;
}

/* Few ranks: block by block. */
static void extreme_all(const struct job *b, size_t bytes, union cm_block *out)
{
    struct order o = order_of(b->data, bytes == 8 ? 64 : 32);
    union cm_block in;

    memset(out, 0, sizeof(*out));
    for (int r = 0; r < b->data->n; r++) {
        cm_data_input_block(b->gen, r, b->span, bytes, &in);
        for (uint32_t j = 0; bytes == 8 && j < b->span.n; j++) {
            uint64_t k = key64(o, in.u64[j]);

            out->u64[j] = k > out->u64[j] ? k : out->u64[j];
        }
        for (uint32_t j = 0; bytes < 8 && j < b->span.n; j++) {
            uint32_t k = key32(o, in.u32[j]);

            out->u32[j] = k > out->u32[j] ? k : out->u32[j];
        }
    }
    for (uint32_t j = 0; bytes == 8 && j < b->span.n; j++)
        out->u64[j] = unkey64(o, out->u64[j]);
    for (uint32_t j = 0; bytes < 8 && j < b->span.n; j++)
        out->u32[j] = unkey32(o, out->u32[j]);
}

/* Many ranks: only the insiders of each index, one rank in (mask + 1). */
static void extreme_insiders(const struct job *b, size_t bytes, union cm_block *out)
{
    struct order o = order_of(b->data, bytes == 8 ? 64 : 32);
    uint32_t mask = b->gen->insider_mask;

    for (uint32_t j = 0; j < b->span.n; j++) {
        uint32_t i = b->span.low + j;
        uint32_t r = (0 - cm_gen_index(&b->lane, i)) & mask;
        uint64_t best = 0;

        for (; r < b->gen->n; r += mask + 1) {
            struct cm_gen_lane lane = cm_gen_lane_of(b->gen, r, b->span.page);
            uint64_t k = bytes == 8 ? key64(o, cm_gen_input64(b->gen, &lane, i, CM_GEN_EXTREME))
                                    : key32(o, cm_gen_input32(b->gen, &lane, i, CM_GEN_EXTREME));

            best = k > best ? k : best;
        }
        if (bytes == 8)
            out->u64[j] = unkey64(o, best);
        else
            out->u32[j] = unkey32(o, (uint32_t)best);
    }
}

static void reduce_block(const struct job *b, size_t bytes, union cm_block *out)
{
    switch (b->gen->kind) {
    case CM_GEN_BITS:
        assert(!"copies do not reduce");
        return;
    case CM_GEN_EXTREME:
        if (b->gen->insider_mask == 0)
            extreme_all(b, bytes, out);
        else
            extreme_insiders(b, bytes, out);
        return;
    case CM_GEN_WRAP:
        bytes == 8 ? wrap64(b, out->u64) : wrap32(b, out->u32);
        if (b->data->op == CM_AVG)
            divide_block(b, bytes, out);
        return;
    case CM_GEN_EXACT:
        if (bytes == 8)
            exact64(b, out->u64);
        else if (b->data->op == CM_AVG)
            average32(b, out->u32);
        else
            exact32(b, out->u32);
        return;
    case CM_GEN_ODD:
        bytes == 8 ? odd64(b, out->u64) : odd32(b, out->u32);
        return;
    case CM_GEN_POWERS:
        bytes == 8 ? powers64(b, out->u64) : powers32(b, out->u32);
        return;
    }
}

void cm_data_reduced(const struct cm_data *d, const struct cm_sums *sums, size_t first,
                     size_t count, void *dst)
{
    size_t bytes = cm_dtypes[d->dtype].bytes;
    unsigned char *to = dst;
    union cm_block block;
    struct cm_gen gen;
    struct job job = {.data = d, .gen = &gen, .sums = sums};

    cm_gen_of(d, &gen);
    while (count > 0) {
        job.span = span_of(first, count);
        job.lane = cm_gen_lane_of(&gen, 0, job.span.page);
        reduce_block(&job, bytes, &block);
        block_store(&block, job.span.n, bytes, to);
        to += job.span.n * bytes;
        first += job.span.n;
        count -= job.span.n;
    }
}
