/*
 * One element of the test data, as inline functions that compile as C and as
 * CUDA C++: a big buffer is filled where it lies, by the same arithmetic.
 *
 * An input is a function of (seed, rank, index). What it looks like depends on
 * what the collective does with it (enum cm_gen_kind):
 *
 *   BITS     copies: hashed bits; floats are normal numbers of the middle half of
 *            the exponents, so never 0, NaN, infinite or denormal
 *   EXTREME  min, max: the same; beyond 8 ranks only a few ranks per index (the
 *            insiders) can win, so that 8-bit results do not saturate
 *   WRAP     integer sums: a(i) + w(rank) s(i) modulo 2^bits
 *   EXACT    float sums: +- f(t) 2^k(i), t = (h(i) + rank) mod window. f takes small
 *            integers such that the magnitudes of any n neighbours add up to at most
 *            2^mantissa: every partial sum in every order is exact
 *   ODD      integer products: odd factors g(t), so never degenerate to 0
 *   POWERS   float products: +- 2^e(t) with bounded sums of exponents
 *
 * In ODD and POWERS one rank per index, the star, also brings a factor of its
 * own. A result over all ranks is a table of `window` sums (or products), taken
 * at h(i): constant work per element whatever n is (data_want.h).
 */
#ifndef CM_BASE_DATA_GEN_H
#define CM_BASE_DATA_GEN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define CM_GEN static inline __host__ __device__ __attribute__((always_inline))
#else
#define CM_GEN static inline __attribute__((always_inline))
#endif

enum cm_gen_kind {
    CM_GEN_BITS,
    CM_GEN_EXTREME,
    CM_GEN_WRAP,
    CM_GEN_EXACT,
    CM_GEN_ODD,
    CM_GEN_POWERS
};

/* Everything that all ranks and indices share. Plain data, filled by cm_gen_of(). */
struct cm_gen {
    enum cm_gen_kind kind;
    uint32_t n;
    uint64_t index_key, rank_key, table_key;
    uint64_t sign, top,
        second;           /* BITS, EXTREME: sign bit, first and second exponent bit; integers: 0 */
    uint64_t pair, loser; /* EXTREME, integers: the two top bits, and their value in outsiders */
    bool outsiders_negative; /* EXTREME, floats */
    uint32_t insider_mask;   /* EXTREME: insiders are where (h(i) + rank) & mask is 0 */
    uint32_t window_mask;    /* window - 1, the window is a power of two >= 2 n */
    uint32_t sparse_mask;    /* EXACT, POWERS: f(t) is 0 unless t & mask is 0 */
    uint64_t amplitude;      /* EXACT, POWERS: f takes -amplitude .. amplitude without 0 */
    int scale;               /* EXACT: smallest k(i); k(i) = scale + 0..3 */
    /* Storage of floats of up to 32 bits, from float32: drop `shift` bits, move the exponent. */
    uint32_t shift, rebias, sign_shift;
    uint32_t mantissa_bits; /* stored ones */
};

/* What is constant over one rank's indices with equal upper 32 bits (`page`). */
struct cm_gen_lane {
    uint32_t rank, page;
    uint32_t index_key, rank_key, rank_mul;
    uint64_t rank_key64, rank_mul64;
};

CM_GEN uint32_t cm_mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    return x;
}

CM_GEN uint64_t cm_mix64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 29;
    return x;
}

/* A strong mix, for keys only. */
CM_GEN uint64_t cm_mix_key(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

CM_GEN struct cm_gen_lane cm_gen_lane_of(const struct cm_gen *g, uint32_t rank, uint32_t page)
{
    uint64_t k = cm_mix_key(g->rank_key + rank);
    struct cm_gen_lane l;

    l.rank = rank;
    l.page = page;
    l.index_key = (uint32_t)g->index_key + page * 0x9e3779b1u;
    l.rank_key = (uint32_t)k + page * 0x85ebca6bu;
    l.rank_mul = (uint32_t)(k >> 32) | 1;
    l.rank_key64 = k;
    l.rank_mul64 = cm_mix_key(k) | 1;
    return l;
}

/* h(i): what all ranks agree on about an index. */
CM_GEN uint32_t cm_gen_index(const struct cm_gen_lane *l, uint32_t i)
{
    return cm_mix32(i * 0x9e3779b1u + l->index_key);
}

CM_GEN uint32_t cm_gen_window(const struct cm_gen *g, uint32_t h, uint32_t rank)
{
    return (h + rank) & g->window_mask;
}

/* A second hash of the index, and the rank that is its star. */
CM_GEN uint32_t cm_gen_second(uint32_t h)
{
    return cm_mix32(h ^ 0x5bd1e995u);
}

CM_GEN uint32_t cm_gen_star(const struct cm_gen *g, uint32_t second)
{
    return ((second >> 16) * g->n) >> 16;
}

/* Floats: make the two first exponent bits differ. Integers: nothing (top = second = 0). */
CM_GEN uint64_t cm_gen_tame(const struct cm_gen *g, uint64_t x)
{
    return (x & ~g->second) | (~(x >> 1) & g->second);
}

CM_GEN uint64_t cm_gen_wide(const struct cm_gen_lane *l, uint32_t i)
{
    return cm_mix64((i | (uint64_t)l->page << 32) * l->rank_mul64 + l->rank_key64);
}

CM_GEN uint32_t cm_gen_narrow(const struct cm_gen_lane *l, uint32_t i)
{
    return cm_mix32(i * l->rank_mul + l->rank_key);
}

CM_GEN bool cm_gen_outsider(const struct cm_gen *g, uint32_t h, uint32_t rank)
{
    return ((h + rank) & g->insider_mask) != 0;
}

/* Outsiders lose against every insider, whatever the bits are. */
CM_GEN uint64_t cm_gen_ranked(const struct cm_gen *g, uint64_t x, bool outsider)
{
    if (g->top != 0 && outsider) { /* one sign, large magnitude */
        x = (x & ~(g->second | g->sign)) | g->top;
        return g->outsiders_negative ? x | g->sign : x;
    }
    if (g->top != 0)
        return (x & ~g->top) | g->second;
    if (outsider)
        return (x & ~g->pair) | g->loser;
    return (x & g->pair) == g->loser ? x ^ (g->pair & (g->pair >> 1)) : x;
}

CM_GEN uint64_t cm_gen_extreme(const struct cm_gen *g, const struct cm_gen_lane *l, uint32_t i,
                               uint64_t bits)
{
    if (g->insider_mask == 0)
        return cm_gen_tame(g, bits);
    return cm_gen_ranked(g, bits, cm_gen_outsider(g, cm_gen_index(l, i), l->rank));
}

/* WRAP: the two words of an index; a rank's weight is its key. */
CM_GEN uint32_t cm_gen_wrap_slope(uint32_t h)
{
    return cm_gen_second(h) | 1;
}

CM_GEN uint64_t cm_gen_wrap_base64(const struct cm_gen *g, const struct cm_gen_lane *l, uint32_t i)
{
    return cm_mix64((i | (uint64_t)l->page << 32) * 0x9e3779b97f4a7c15u + g->index_key);
}

CM_GEN uint64_t cm_gen_wrap_slope64(uint64_t base)
{
    return cm_mix64(base ^ 0xc2b2ae3d27d4eb4fu) | 1;
}

/* f(t) and the random bits left over, for small and for large amplitudes. */
CM_GEN uint32_t cm_gen_table_bits(const struct cm_gen *g, uint32_t t)
{
    return cm_mix32(t * 0x9e3779b1u + (uint32_t)g->table_key);
}

CM_GEN uint64_t cm_gen_table_bits64(const struct cm_gen *g, uint32_t t)
{
    return cm_mix64(t * 0x9e3779b97f4a7c15u + g->table_key);
}

CM_GEN int32_t cm_gen_small(const struct cm_gen *g, uint32_t t, uint32_t bits)
{
    int32_t v = (int32_t)(bits & (2 * (uint32_t)g->amplitude - 1)) - (int32_t)g->amplitude;

    v += v >= 0;
    return (t & g->sparse_mask) != 0 ? 0 : v;
}

CM_GEN int64_t cm_gen_large(const struct cm_gen *g, uint32_t t, uint64_t bits)
{
    int64_t v = (int64_t)(bits & (2 * g->amplitude - 1)) - (int64_t)g->amplitude;

    v += v >= 0;
    return (t & g->sparse_mask) != 0 ? 0 : v;
}

CM_GEN uint32_t cm_float_bits(float f)
{
    uint32_t b;

    memcpy(&b, &f, sizeof(b));
    return b;
}

CM_GEN float cm_bits_float(uint32_t b)
{
    float f;

    memcpy(&f, &b, sizeof(f));
    return f;
}

CM_GEN uint64_t cm_double_bits(double f)
{
    uint64_t b;

    memcpy(&b, &f, sizeof(b));
    return b;
}

CM_GEN double cm_bits_double(uint64_t b)
{
    double f;

    memcpy(&f, &b, sizeof(f));
    return f;
}

/* float32 bits of a number that the type holds exactly as a normal number, or of +0, as stored. */
CM_GEN uint32_t cm_gen_encode(const struct cm_gen *g, uint32_t bits)
{
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t code = magnitude != 0 ? (magnitude >> g->shift) - g->rebias : 0;

    return code | (bits >> 31) << g->sign_shift;
}

/* EXACT: the sum `v` of f over some ranks, times +- 2^k(i). */
CM_GEN float cm_gen_scaled(const struct cm_gen *g, uint32_t h, int32_t v)
{
    uint32_t k = (uint32_t)(127 + g->scale) + (h >> 28 & 3);

    return (float)(h >> 31 ? -v : v) * cm_bits_float(k << 23);
}

CM_GEN double cm_gen_scaled64(const struct cm_gen *g, uint32_t h, int64_t v)
{
    uint64_t k = (uint64_t)(1023 + g->scale) + (h >> 28 & 3);

    return (double)(h >> 31 ? -v : v) * cm_bits_double(k << 52);
}

/* POWERS: sign of f's rank: three of four are negative, so that a lost or doubled one shows. */
CM_GEN uint32_t cm_gen_power_sign(uint32_t bits)
{
    return (bits >> 30) != 0;
}

/* POWERS: +- 2^e, with the star's mantissa or none. */
CM_GEN uint32_t cm_gen_power(const struct cm_gen *g, uint32_t negative, int32_t e,
                             uint32_t mantissa)
{
    uint32_t bits = mantissa & ((1u << g->mantissa_bits) - 1);

    bits <<= 23 - g->mantissa_bits;
    return cm_gen_encode(g, negative << 31 | (uint32_t)(127 + e) << 23 | bits);
}

CM_GEN uint64_t cm_gen_power64(uint64_t negative, int64_t e, uint64_t mantissa)
{
    return negative << 63 | (uint64_t)(1023 + e) << 52 | (mantissa & (((uint64_t)1 << 52) - 1));
}

/* Input `i` of the lane, types of up to 32 bits: the low bits of the result are what is stored. */
CM_GEN uint32_t cm_gen_input32(const struct cm_gen *g, const struct cm_gen_lane *l, uint32_t i,
                               enum cm_gen_kind kind)
{
    uint32_t h, t, second, bits;

    if (kind == CM_GEN_BITS)
        return (uint32_t)cm_gen_tame(g, cm_gen_narrow(l, i));
    if (kind == CM_GEN_EXTREME)
        return (uint32_t)cm_gen_extreme(g, l, i, cm_gen_narrow(l, i));
    h = cm_gen_index(l, i);
    if (kind == CM_GEN_WRAP)
        return h + (uint32_t)l->rank_key64 * cm_gen_wrap_slope(h);
    t = cm_gen_window(g, h, l->rank);
    bits = cm_gen_table_bits(g, t);
    if (kind == CM_GEN_EXACT)
        return cm_gen_encode(g, cm_float_bits(cm_gen_scaled(g, h, cm_gen_small(g, t, bits))));
    second = cm_gen_second(h);
    if (kind == CM_GEN_ODD)
        return (bits | 1) * (l->rank == cm_gen_star(g, second) ? second | 1 : 1);
    return cm_gen_power(g, cm_gen_power_sign(bits), cm_gen_small(g, t, bits),
                        l->rank == cm_gen_star(g, second) ? second : 0);
}

/* The same for types of 64 bits. */
CM_GEN uint64_t cm_gen_input64(const struct cm_gen *g, const struct cm_gen_lane *l, uint32_t i,
                               enum cm_gen_kind kind)
{
    uint32_t h, t, second;
    uint64_t bits;

    if (kind == CM_GEN_BITS)
        return cm_gen_tame(g, cm_gen_wide(l, i));
    if (kind == CM_GEN_EXTREME)
        return cm_gen_extreme(g, l, i, cm_gen_wide(l, i));
    if (kind == CM_GEN_WRAP) {
        bits = cm_gen_wrap_base64(g, l, i);
        return bits + l->rank_key64 * cm_gen_wrap_slope64(bits);
    }
    h = cm_gen_index(l, i);
    t = cm_gen_window(g, h, l->rank);
    bits = cm_gen_table_bits64(g, t);
    if (kind == CM_GEN_EXACT)
        return cm_double_bits(cm_gen_scaled64(g, h, cm_gen_large(g, t, bits)));
    second = cm_gen_second(h);
    if (kind == CM_GEN_ODD)
        return (bits | 1) * (l->rank == cm_gen_star(g, second) ? cm_mix_key(second) | 1 : 1);
    return cm_gen_power64(cm_gen_power_sign((uint32_t)(bits >> 32)), cm_gen_large(g, t, bits),
                          l->rank == cm_gen_star(g, second) ? cm_mix_key(second) : 0);
}

#endif
