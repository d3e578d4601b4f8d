/*
 * Expected results of reductions, in constant time per element.
 *
 * Sums and products: rank r contributes f((h(i) + r) mod window), so the total
 * over the ranks depends on h(i) only and stands in a table of `window`
 * entries, which a sliding window over f fills once per seed. Integer sums are
 * n a(i) + (sum of the ranks' weights) s(i). Minima and maxima look at the few
 * ranks that can win. The formulas are in data_want.h; here are the tables, and
 * loops of one formula each, so that they vectorise.
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

void cm_want_of(const struct cm_data *d, const struct cm_sums *sums, struct cm_want *out)
{
    const struct cm_dtype_info *t = &cm_dtypes[d->dtype];
    uint32_t word = t->bytes == 8 ? 64 : 32;

    *out = (struct cm_want){.weight = {sums->weight[0], sums->weight[1]},
                            .sign = t->kind == CM_KIND_UINT ? 0 : (uint64_t)1 << (word - 1),
                            .divisor = d->op == CM_AVG ? d->n : 1,
                            .width = (uint32_t)t->bytes,
                            .unused = word - 8 * (uint32_t)t->bytes,
                            .is_signed = t->kind == CM_KIND_INT,
                            .is_float = t->kind == CM_KIND_FLOAT,
                            .min = d->op == CM_MIN};
    cm_gen_of(d, &out->gen);
}

/* The block being computed. */
struct job {
    const struct cm_want *want;
    const int64_t *sums;
    struct cm_gen_lane lane; /* any rank: the index hash only */
    struct span span;
};

/*
 * One formula over a block. The constants are copied, so that the compiler
 * knows that stores leave them alone.
 */
static ALWAYS_INLINE void each32(const struct job *b, enum cm_gen_kind kind, uint32_t *out)
{
    const struct cm_want want = *b->want;
    const struct cm_gen_lane lane = b->lane;

    for (uint32_t j = 0; j < b->span.n; j++)
        out[j] = cm_want_reduced32(&want, b->sums, &lane, b->span.low + j, kind);
}

static ALWAYS_INLINE void each64(const struct job *b, enum cm_gen_kind kind, uint64_t *out)
{
    const struct cm_want want = *b->want;
    const struct cm_gen_lane lane = b->lane;

    for (uint32_t j = 0; j < b->span.n; j++)
        out[j] = cm_want_reduced64(&want, b->sums, &lane, b->span.low + j, kind);
}

/* Few ranks: rank after rank over the whole block, which vectorises. */
static void extreme32(const struct job *b, uint32_t *out)
{
    const struct cm_want want = *b->want;
    union cm_block in;

    memset(out, 0, b->span.n * sizeof(*out));
    for (uint32_t r = 0; r < want.gen.n; r++) {
        cm_data_input_block(&want.gen, (int)r, b->span, 4, &in);
        for (uint32_t j = 0; j < b->span.n; j++) {
            uint32_t k = cm_want_key32(&want, in.u32[j]);

            out[j] = k > out[j] ? k : out[j];
        }
    }
    for (uint32_t j = 0; j < b->span.n; j++)
        out[j] = cm_want_unkey32(&want, out[j]);
}

static void extreme64(const struct job *b, uint64_t *out)
{
    const struct cm_want want = *b->want;
    union cm_block in;

    memset(out, 0, b->span.n * sizeof(*out));
    for (uint32_t r = 0; r < want.gen.n; r++) {
        cm_data_input_block(&want.gen, (int)r, b->span, 8, &in);
        for (uint32_t j = 0; j < b->span.n; j++) {
            uint64_t k = cm_want_key64(&want, in.u64[j]);

            out[j] = k > out[j] ? k : out[j];
        }
    }
    for (uint32_t j = 0; j < b->span.n; j++)
        out[j] = cm_want_unkey64(&want, out[j]);
}

static void reduce_block32(const struct job *b, uint32_t *out)
{
    switch (b->want->gen.kind) {
    case CM_GEN_BITS:
        assert(!"copies do not reduce");
        return;
    case CM_GEN_EXTREME:
        return b->want->gen.insider_mask == 0 ? extreme32(b, out) : each32(b, CM_GEN_EXTREME, out);
    case CM_GEN_WRAP:
        return each32(b, CM_GEN_WRAP, out);
    case CM_GEN_EXACT:
        return each32(b, CM_GEN_EXACT, out);
    case CM_GEN_ODD:
        return each32(b, CM_GEN_ODD, out);
    case CM_GEN_POWERS:
        return each32(b, CM_GEN_POWERS, out);
    }
}

static void reduce_block64(const struct job *b, uint64_t *out)
{
    switch (b->want->gen.kind) {
    case CM_GEN_BITS:
        assert(!"copies do not reduce");
        return;
    case CM_GEN_EXTREME:
        return b->want->gen.insider_mask == 0 ? extreme64(b, out) : each64(b, CM_GEN_EXTREME, out);
    case CM_GEN_WRAP:
        return each64(b, CM_GEN_WRAP, out);
    case CM_GEN_EXACT:
        return each64(b, CM_GEN_EXACT, out);
    case CM_GEN_ODD:
        return each64(b, CM_GEN_ODD, out);
    case CM_GEN_POWERS:
        return each64(b, CM_GEN_POWERS, out);
    }
}

void cm_data_reduced(const struct cm_data *d, const struct cm_sums *sums, size_t first,
                     size_t count, void *dst)
{
    size_t bytes = cm_dtypes[d->dtype].bytes;
    unsigned char *to = dst;
    union cm_block block;
    struct cm_want want;
    struct job job = {.want = &want, .sums = sums->at};

    cm_want_of(d, sums, &want);
    while (count > 0) {
        job.span = span_of(first, count);
        job.lane = cm_gen_lane_of(&want.gen, 0, job.span.page);
        if (bytes == 8)
            reduce_block64(&job, block.u64);
        else
            reduce_block32(&job, block.u32);
        block_store(&block, job.span.n, bytes, to);
        to += job.span.n * bytes;
        first += job.span.n;
        count -= job.span.n;
    }
}
