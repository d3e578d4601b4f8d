/*
 * What every byte of a rank's buffers must be, element by element, as inline
 * functions for C and CUDA C++: results of reductions, where copied results
 * come from, poison and guards. Inputs are in data_gen.h.
 *
 * The host's loops, block by block (data.c, data_reduce.c), and the kernels, a
 * thread per few elements, are both made of these. Words are 32 bits wide for
 * types of up to 32 bits, whose low bits are the element, and 64 bits for the rest.
 */
#ifndef CM_BASE_DATA_WANT_H
#define CM_BASE_DATA_WANT_H

#include "base/data_gen.h"

/* What a part of a buffer holds. */
enum cm_content {
    CM_CONTENT_INPUT,  /* this rank's IN */
    CM_CONTENT_RESULT, /* what OUT must be */
    CM_CONTENT_POISON, /* so far no data */
    CM_CONTENT_GUARD   /* never any */
};

/* ---- bytes that are no data ------------------------------------------------------------------ */

/* The poison's pattern: NaN in the larger floats, no likely value of any type. */
CM_GEN uint64_t cm_poison_word(uint64_t seed)
{
    uint64_t mixed = (seed ^ 0x2545f4914f6cdd1du) * 0x9e3779b97f4a7c15u;

    return 0xfff0fff0fff0fff0u | ((mixed >> 16) & 0x000f000f000f000fu);
}

/* Its eight bytes from `phase` bytes behind the pattern's start. Little endian. */
CM_GEN uint64_t cm_poison_at(uint64_t word, uint64_t phase)
{
    uint32_t shift = 8 * (uint32_t)(phase % 8);

    return shift == 0 ? word : word >> shift | word << (64 - shift);
}

/* Byte `i` of a guard zone. */
CM_GEN uint8_t cm_guard_byte(uint64_t i)
{
    return (uint8_t)(0x5c ^ (i * 29));
}

/* ---- where a result comes from --------------------------------------------------------------- */

/* A run of OUT that copies one rank's IN, or reduces the same run of all ranks' INs (rank -1). */
struct cm_source {
    int32_t rank;
    uint64_t index;  /* first element in that IN */
    uint64_t length; /* elements until the source changes, >= 1 */
};

/* alltoallv: what a rank sent begins here in OUT, and there in its IN. */
struct cm_run {
    uint64_t start, index;
};

enum { CM_FROM_ALL = -1, CM_FROM_BLOCKS = -2, CM_FROM_RUNS = -3 };

/*
 * Sources of all of one rank's OUT. `from`: the rank whose IN, or ALL: all
 * ranks', elements `base` and up; BLOCKS: block b is rank b's, elements `base`
 * and up; RUNS: in `nruns` runs, of one rank each.
 */
struct cm_route {
    int32_t from;
    uint32_t nruns;
    uint64_t base, block; /* elements */
};

/*
 * RUNS: the source of OUT's element `index` is the last run that starts at or
 * before it, as empty ones start where the next one does.
 */
CM_GEN struct cm_source cm_route_run(uint32_t nruns, const struct cm_run *runs, uint64_t index)
{
    struct cm_source s = {0, 0, ~(uint64_t)0};
    uint32_t next = nruns;

    while (s.rank + 1 < (int32_t)next) {
        uint32_t middle = ((uint32_t)s.rank + next) / 2;

        if (runs[middle].start <= index)
            s.rank = (int32_t)middle;
        else
            next = middle;
    }
    if (next < nruns)
        s.length = runs[next].start - index;
    s.index = runs[s.rank].index + (index - runs[s.rank].start);
    return s;
}

/* Source of OUT's element `index`. RUNS have cm_route_run(). */
CM_GEN struct cm_source cm_route_at(const struct cm_route *r, uint64_t index)
{
    struct cm_source s = {r->from, r->base + index, ~(uint64_t)0};

    if (r->from == CM_FROM_BLOCKS) {
        uint64_t offset = index % r->block;

        s.rank = (int32_t)(index / r->block);
        s.index = r->base + offset;
        s.length = r->block - offset;
    }
    return s;
}

/* ---- reductions ------------------------------------------------------------------------------ */

/*
 * Constants of the results over all ranks. Besides them, sums and products of
 * EXACT, ODD and POWERS take `sums`, gen.window_mask + 1 of them (cm_sums_of()).
 */
struct cm_want {
    struct cm_gen gen;
    uint64_t weight[2]; /* WRAP: over all ranks, sum of the factors, and of factor x weight */
    uint64_t sign;      /* EXTREME: the word's sign bit if the type has one */
    int32_t divisor;    /* avg: ranks, else 1 */
    uint32_t width;     /* bytes of an element */
    uint32_t unused;    /* bits of a word above the element */
    bool is_signed, is_float, min;
};

/* avg of integers: C division of the wrapped sum in the element's own range. */
CM_GEN uint32_t cm_want_divide32(const struct cm_want *w, uint32_t sum)
{
    uint32_t top = sum << w->unused;

    if (w->is_signed)
        return (uint32_t)(((int32_t)top >> w->unused) / w->divisor);
    return (top >> w->unused) / (uint32_t)w->divisor;
}

CM_GEN uint64_t cm_want_divide64(const struct cm_want *w, uint64_t sum)
{
    if (w->is_signed)
        return (uint64_t)((int64_t)sum / w->divisor);
    return sum / (uint64_t)w->divisor;
}

CM_GEN uint32_t cm_want_wrap32(const struct cm_want *w, uint32_t h)
{
    return (uint32_t)w->weight[0] * h + (uint32_t)w->weight[1] * cm_gen_wrap_slope(h);
}

CM_GEN uint64_t cm_want_wrap64(const struct cm_want *w, const struct cm_gen_lane *l, uint32_t i)
{
    uint64_t base = cm_gen_wrap_base64(&w->gen, l, i);

    return w->weight[0] * base + w->weight[1] * cm_gen_wrap_slope64(base);
}

CM_GEN float cm_want_sum32(const struct cm_want *w, const int64_t *sums, uint32_t h)
{
    return cm_gen_scaled(&w->gen, h, (int32_t)sums[h & w->gen.window_mask]);
}

CM_GEN uint32_t cm_want_exact32(const struct cm_want *w, const int64_t *sums, uint32_t h)
{
    return cm_gen_encode(&w->gen, cm_float_bits(cm_want_sum32(w, sums, h)));
}

/* v >> shift, rounded to nearest, ties to even; shift in [1, 31]. */
CM_GEN uint32_t cm_want_shift(uint32_t v, uint32_t shift)
{
    uint32_t q = v >> shift, rest = v & ((1u << shift) - 1), tie = 1u << (shift - 1);

    return q + (rest > tie || (rest == tie && (q & 1)));
}

/* float32 bits of a finite number, rounded once to the type, whose range it must not exceed. */
CM_GEN uint32_t cm_want_round(const struct cm_gen *g, uint32_t bits)
{
    uint32_t abs = bits & 0x7fffffffu, exponent = abs >> 23;
    uint32_t least = g->rebias >> g->mantissa_bits; /* up to this exponent the type is subnormal */
    uint32_t code, shift;

    if (g->shift == 0)
        return bits;
    if (exponent > least || least == 0) {
        code = cm_want_shift(abs, g->shift) - g->rebias;
    } else {
        shift = g->shift + least + 1 - exponent;
        code = shift > 31 ? 0 : cm_want_shift((abs & 0x7fffffu) | 0x800000u, shift);
    }
    return code | (bits >> 31) << g->sign_shift;
}

/* avg: one division in float32, one rounding to the type, as the kernels do. */
CM_GEN uint32_t cm_want_average32(const struct cm_want *w, const int64_t *sums, uint32_t h)
{
    float quotient = cm_want_sum32(w, sums, h) / (float)w->divisor;

    return cm_want_round(&w->gen, cm_float_bits(quotient));
}

CM_GEN uint64_t cm_want_exact64(const struct cm_want *w, const int64_t *sums, uint32_t h)
{
    double sum = cm_gen_scaled64(&w->gen, h, sums[h & w->gen.window_mask]);

    return cm_double_bits(w->divisor == 1 ? sum : sum / w->divisor);
}

CM_GEN uint32_t cm_want_odd32(const struct cm_want *w, const int64_t *sums, uint32_t h)
{
    return (uint32_t)sums[h & w->gen.window_mask] * (cm_gen_second(h) | 1);
}

CM_GEN uint64_t cm_want_odd64(const struct cm_want *w, const int64_t *sums, uint32_t h)
{
    return (uint64_t)sums[h & w->gen.window_mask] * (cm_mix_key(cm_gen_second(h)) | 1);
}

/* sums: of exponents, times 2, plus the sign */
CM_GEN uint32_t cm_want_powers32(const struct cm_want *w, const int64_t *sums, uint32_t h)
{
    int32_t p = (int32_t)sums[h & w->gen.window_mask];

    return cm_gen_power(&w->gen, (uint32_t)p & 1, p >> 1, cm_gen_second(h));
}

CM_GEN uint64_t cm_want_powers64(const struct cm_want *w, const int64_t *sums, uint32_t h)
{
    int64_t p = sums[h & w->gen.window_mask];

    return cm_gen_power64((uint64_t)p & 1, p >> 1, cm_mix_key(cm_gen_second(h)));
}

/* An element as a number in the word's top bits, the larger of which wins; and back. */
CM_GEN uint32_t cm_want_key32(const struct cm_want *w, uint32_t x)
{
    uint32_t sign = (uint32_t)w->sign;

    x <<= w->unused;
    x = w->is_float && (x & sign) ? ~x : x ^ sign;
    return w->min ? ~x : x;
}

CM_GEN uint32_t cm_want_unkey32(const struct cm_want *w, uint32_t x)
{
    uint32_t sign = (uint32_t)w->sign;

    x = w->min ? ~x : x;
    x = w->is_float && !(x & sign) ? ~x : x ^ sign;
    return x >> w->unused;
}

CM_GEN uint64_t cm_want_key64(const struct cm_want *w, uint64_t x)
{
    x = w->is_float && (x & w->sign) ? ~x : x ^ w->sign;
    return w->min ? ~x : x;
}

CM_GEN uint64_t cm_want_unkey64(const struct cm_want *w, uint64_t x)
{
    x = w->min ? ~x : x;
    return w->is_float && !(x & w->sign) ? ~x : x ^ w->sign;
}

/* Minimum, maximum: of the insiders, one rank in (mask + 1); of all ranks if there is no mask. */
CM_GEN uint32_t cm_want_extreme32(const struct cm_want *w, const struct cm_gen_lane *l, uint32_t i)
{
    uint32_t mask = w->gen.insider_mask, r = (0 - cm_gen_index(l, i)) & mask, best = 0;

    for (; r < w->gen.n; r += mask + 1) {
        struct cm_gen_lane lane = cm_gen_lane_of(&w->gen, r, l->page);
        uint32_t k = cm_want_key32(w, cm_gen_input32(&w->gen, &lane, i, CM_GEN_EXTREME));

        best = k > best ? k : best;
    }
    return cm_want_unkey32(w, best);
}

CM_GEN uint64_t cm_want_extreme64(const struct cm_want *w, const struct cm_gen_lane *l, uint32_t i)
{
    uint32_t mask = w->gen.insider_mask, r = (0 - cm_gen_index(l, i)) & mask;
    uint64_t best = 0;

    for (; r < w->gen.n; r += mask + 1) {
        struct cm_gen_lane lane = cm_gen_lane_of(&w->gen, r, l->page);
        uint64_t k = cm_want_key64(w, cm_gen_input64(&w->gen, &lane, i, CM_GEN_EXTREME));

        best = k > best ? k : best;
    }
    return cm_want_unkey64(w, best);
}

/* Result `i` over all ranks, types of up to 32 bits. `l`: any rank's lane of this page. */
CM_GEN uint32_t cm_want_reduced32(const struct cm_want *w, const int64_t *sums,
                                  const struct cm_gen_lane *l, uint32_t i, enum cm_gen_kind kind)
{
    uint32_t h = cm_gen_index(l, i), sum;

    switch (kind) {
    case CM_GEN_EXTREME:
        return cm_want_extreme32(w, l, i);
    case CM_GEN_WRAP:
        sum = cm_want_wrap32(w, h);
        return w->divisor == 1 ? sum : cm_want_divide32(w, sum);
    case CM_GEN_EXACT:
        return w->divisor == 1 ? cm_want_exact32(w, sums, h) : cm_want_average32(w, sums, h);
    case CM_GEN_ODD:
        return cm_want_odd32(w, sums, h);
    case CM_GEN_POWERS:
        return cm_want_powers32(w, sums, h);
    case CM_GEN_BITS:
        break;
    }
    return 0; /* copies do not reduce */
}

/* The same for types of 64 bits. */
CM_GEN uint64_t cm_want_reduced64(const struct cm_want *w, const int64_t *sums,
                                  const struct cm_gen_lane *l, uint32_t i, enum cm_gen_kind kind)
{
    uint32_t h = cm_gen_index(l, i);
    uint64_t sum;

    switch (kind) {
    case CM_GEN_EXTREME:
        return cm_want_extreme64(w, l, i);
    case CM_GEN_WRAP:
        sum = cm_want_wrap64(w, l, i);
        return w->divisor == 1 ? sum : cm_want_divide64(w, sum);
    case CM_GEN_EXACT:
        return cm_want_exact64(w, sums, h);
    case CM_GEN_ODD:
        return cm_want_odd64(w, sums, h);
    case CM_GEN_POWERS:
        return cm_want_powers64(w, sums, h);
    case CM_GEN_BITS:
        break;
    }
    return 0;
}

#endif
