/* Test data: closed forms against the reference, exactness in any order, sensitivity, shape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/data_gen.h"
#include "common/data.h"
#include "common/ref.h"
#include "test.h"

enum { ELEMS = 384, MAX_N = 100 };

static const int ranks[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 100};

/* The INs of all ranks, and room for results. */
struct arrays {
    uint64_t in[MAX_N][ELEMS];
    const void *from[MAX_N];
    uint64_t want[ELEMS], got[ELEMS], other[ELEMS];
    struct cm_sums sums;
};

static struct arrays *arrays_new(void)
{
    struct arrays *a = malloc(sizeof(*a));

    if (a == NULL)
        abort();
    for (int r = 0; r < MAX_N; r++)
        a->from[r] = a->in[r];
    return a;
}

static void fill(struct arrays *a, const struct cm_data *d, size_t first)
{
    for (int r = 0; r < d->n; r++)
        cm_data_input(d, r, first, ELEMS, a->in[r]);
    cm_sums_of(d, &a->sums);
}

static struct cm_ref ref_of(const struct cm_data *d, int n)
{
    return (struct cm_ref){.coll = CM_ALL_REDUCE, .dtype = d->dtype, .op = d->op, .n = n};
}

static void reduce_all(const struct arrays *a, const struct cm_data *d, void *out)
{
    struct cm_ref ref = ref_of(d, d->n);
    size_t bytes = cm_dtypes[d->dtype].bytes;

    for (size_t i = 0; i < ELEMS; i++)
        cm_ref_reduce(&ref, a->from, i * bytes, (char *)out + i * bytes);
}

static size_t differing(const void *a, const void *b, size_t bytes)
{
    size_t n = 0;

    for (size_t i = 0; i < ELEMS; i++)
        n += memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, bytes) != 0;
    return n;
}

typedef void case_fn(struct arrays *a, const struct cm_data *d);

/* Every type, op and number of ranks. */
static void for_all_reductions(case_fn *run)
{
    struct arrays *a = arrays_new();

    for (int t = 0; t < CM_NDTYPES; t++)
        for (int o = 0; o < CM_NOPS; o++)
            for (size_t k = 0; k < CM_LEN(ranks); k++) {
                struct cm_data d = {CM_ALL_REDUCE, (enum cm_dtype)t, (enum cm_op)o, ranks[k],
                                    (uint64_t)(t * 1000 + o * 100 + ranks[k])};

                run(a, &d);
            }
    free(a);
}

static void equals_reference(struct arrays *a, const struct cm_data *d)
{
    static const size_t first[] = {0, 12345, ((size_t)1 << 32) - 77, ((size_t)5 << 32) + 3};
    size_t bytes = cm_dtypes[d->dtype].bytes;

    for (size_t k = 0; k < CM_LEN(first); k++) {
        fill(a, d, first[k]);
        reduce_all(a, d, a->want);
        cm_data_reduced(d, &a->sums, first[k], ELEMS, a->got);
        CHECK(memcmp(a->want, a->got, ELEMS * bytes) == 0, "%s %s n=%d first=%zu: %zu of %d differ",
              cm_dtypes[d->dtype].name, cm_ops[d->op].name, d->n, first[k],
              differing(a->want, a->got, bytes), ELEMS);
    }
}

static void test_closed_forms_equal_the_reference(void)
{
    for_all_reductions(equals_reference);
}

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((*state >> 32) * n) >> 32);
}

/* Combine two random entries, rounded to the type, until one is left. */
static void reduce_randomly(const struct arrays *a, const struct cm_data *d, size_t i,
                            uint64_t *state, void *out)
{
    struct cm_ref pair = ref_of(d, 2);
    size_t bytes = cm_dtypes[d->dtype].bytes;
    uint64_t value[MAX_N];
    int left = d->n;

    pair.op = d->op == CM_MULSUM ? CM_SUM : d->op;
    for (int r = 0; r < d->n; r++) {
        memcpy(&value[r], (const char *)a->in[r] + i * bytes, bytes);
        if (d->op == CM_MULSUM && (r & 1))
            cm_store(d->dtype, &value[r], 2 * cm_load(d->dtype, &value[r]));
    }
    while (left > 1) {
        int x = (int)random_below(state, (uint32_t)left), y;
        const void *two[2];

        do
            y = (int)random_below(state, (uint32_t)left);
        while (y == x);
        two[0] = &value[x];
        two[1] = &value[y];
        cm_ref_reduce(&pair, two, 0, &value[x]);
        value[y] = value[--left];
    }
    memcpy(out, &value[0], bytes);
}

static void exact_in_any_order(struct arrays *a, const struct cm_data *d)
{
    size_t bytes = cm_dtypes[d->dtype].bytes;
    uint64_t state = d->seed;

    if (cm_dtypes[d->dtype].kind != CM_KIND_FLOAT || d->op == CM_AVG)
        return; /* integers wrap: any order by nature; avg is a sum, divided once */
    fill(a, d, 0);
    cm_data_reduced(d, &a->sums, 0, ELEMS, a->want);
    for (size_t i = 0; i < ELEMS; i++)
        reduce_randomly(a, d, i, &state, (char *)a->got + i * bytes);
    CHECK(memcmp(a->want, a->got, ELEMS * bytes) == 0, "%s %s n=%d: %zu of %d depend on the order",
          cm_dtypes[d->dtype].name, cm_ops[d->op].name, d->n, differing(a->want, a->got, bytes),
          ELEMS);
}

static void test_every_order_and_grouping_is_exact(void)
{
    for_all_reductions(exact_in_any_order);
}

/* Replace rank r's input by `stand_in` and count the results that change. */
static size_t changed_by(struct arrays *a, const struct cm_data *d, int r, const void *stand_in)
{
    const void *kept = a->from[r];
    size_t n;

    a->from[r] = stand_in;
    reduce_all(a, d, a->other);
    n = differing(a->want, a->other, cm_dtypes[d->dtype].bytes);
    a->from[r] = kept;
    return n;
}

/*
 * A fault in one rank's contribution must show at a share of the indices: a
 * third where every rank contributes, 1/n or so where only few can.
 */
static size_t least_changes(const struct cm_data *d, const struct cm_gen *g)
{
    if (d->op == CM_MIN || d->op == CM_MAX)
        return d->n <= 33 ? ELEMS / (8 * (size_t)d->n) : 0; /* too few indices to ask for one */
    if (d->op == CM_AVG && g->kind == CM_GEN_WRAP && cm_dtypes[d->dtype].bytes == 1)
        return d->n < 64 ? ELEMS / 64 : 0; /* the quotient has 256 / n values at most */
    if (g->sparse_mask != 0)
        return ELEMS / (4 * ((size_t)g->sparse_mask + 1));
    return ELEMS / 3;
}

static void every_rank_matters(struct arrays *a, const struct cm_data *d)
{
    size_t bytes = cm_dtypes[d->dtype].bytes, need;
    struct cm_data stale = *d;
    uint64_t nothing[ELEMS] = {0}, old[ELEMS];
    struct cm_gen g;

    if (d->op == CM_AVG && d->dtype == CM_F8E4M3 && d->n > 33)
        return; /* quotients run into the denormals */
    cm_gen_of(d, &g);
    need = least_changes(d, &g);
    fill(a, d, 0);
    reduce_all(a, d, a->want);
    stale.seed++;
    for (int r = 0; r < d->n; r += 1 + d->n / 4) {
        size_t lost =
            changed_by(a, d, r, a->in[(r + 1) % d->n]); /* lost, and another one doubled */

        CHECK(d->n == 1 || d->op == CM_MULSUM || lost >= need,
              "%s %s n=%d rank %d replaced by its neighbour: %zu changes, need %zu",
              cm_dtypes[d->dtype].name, cm_ops[d->op].name, d->n, r, lost, need);
        cm_data_input(&stale, r, 0, ELEMS, old);
        lost = changed_by(a, d, r, old);
        CHECK(lost >= need, "%s %s n=%d rank %d stale: %zu changes, need %zu",
              cm_dtypes[d->dtype].name, cm_ops[d->op].name, d->n, r, lost, need);
        lost = changed_by(a, d, r, nothing);
        CHECK(lost >= need, "%s %s n=%d rank %d lost: %zu changes, need %zu",
              cm_dtypes[d->dtype].name, cm_ops[d->op].name, d->n, r, lost, need);
    }
    cm_data_reduced(&stale, (cm_sums_of(&stale, &a->sums), &a->sums), 0, ELEMS, a->got);
    CHECK(differing(a->want, a->got, bytes) >= need, "%s %s n=%d: another seed, same results",
          cm_dtypes[d->dtype].name, cm_ops[d->op].name, d->n);
}

static void test_every_rank_matters(void)
{
    for_all_reductions(every_rank_matters);
}

static bool is_plain(enum cm_dtype t, const void *p)
{
    double v = cm_load(t, p), least = ldexp(1, 2 - cm_dtypes[t].max_exp - 1);

    return isfinite(v) && fabs(v) >= least / 2;
}

static void test_copies_are_distinct_plain_numbers(void)
{
    static const int n = 9;
    struct arrays *a = arrays_new();

    for (int t = 0; t < CM_NDTYPES; t++) {
        struct cm_data d = {CM_ALL_GATHER, (enum cm_dtype)t, CM_SUM, n, 7};
        size_t bytes = cm_dtypes[t].bytes;
        size_t odd = 0, same = 0, chance = bytes == 1 ? ELEMS / 20 : bytes == 2 ? 3 : 0;

        fill(a, &d, 0);
        for (size_t i = 0; i < ELEMS; i++)
            odd += cm_dtypes[t].kind == CM_KIND_FLOAT &&
                   !is_plain((enum cm_dtype)t, (char *)a->in[0] + i * bytes);
        CHECK(odd == 0, "%s: %zu values are not normal numbers", cm_dtypes[t].name, odd);
        for (int r = 1; r < n; r++) {
            same = ELEMS - differing(a->in[0], a->in[r], bytes);
            CHECK(same <= chance, "%s: ranks 0 and %d agree at %zu of %d", cm_dtypes[t].name, r,
                  same, ELEMS);
        }
        cm_data_input(&d, 0, 1, ELEMS, a->got);
        same = ELEMS - differing(a->in[0], a->got, bytes);
        CHECK(same <= chance, "%s: equal to itself shifted by one at %zu", cm_dtypes[t].name, same);
    }
    free(a);
}

static void test_blocks_do_not_depend_on_how_they_are_cut(void)
{
    struct arrays *a = arrays_new();

    for (int t = 0; t < CM_NDTYPES; t++) {
        struct cm_data d = {CM_REDUCE, (enum cm_dtype)t, CM_AVG, 5, 99};
        size_t bytes = cm_dtypes[t].bytes, at = 0;

        fill(a, &d, 100);
        for (size_t step = 1; at < ELEMS; at += step, step = step * 3 % 101) {
            size_t n = step < ELEMS - at ? step : ELEMS - at;

            cm_data_input(&d, 3, 100 + at, n, (char *)a->got + at * bytes);
        }
        CHECK(memcmp(a->got, a->in[3], ELEMS * bytes) == 0, "%s", cm_dtypes[t].name);
    }
    free(a);
}

static uint32_t converted(enum cm_dtype t, float f)
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

/* Averages are rounded by a function of their own, which a GPU has too. */
static void rounds_like_the_conversion(enum cm_dtype t, const struct cm_gen *g, uint32_t bits)
{
    float f = cm_bits_float(bits), largest = (float)ldexp(1, cm_dtypes[t].max_exp);

    if (fabsf(f) > largest)
        return; /* not asked of it */
    CHECK(cm_want_round(g, bits) == converted(t, f), "%s: %a becomes 0x%x, want 0x%x",
          cm_dtypes[t].name, (double)f, cm_want_round(g, bits), converted(t, f));
}

static void test_averages_are_rounded_like_all_floats(void)
{
    static const enum cm_dtype types[] = {CM_HALF, CM_BFLOAT16, CM_F8E4M3, CM_F8E5M2, CM_FLOAT};
    uint64_t state = 1;
    struct cm_gen g;

    for (size_t k = 0; k < CM_LEN(types); k++) {
        cm_gen_of(&(struct cm_data){CM_ALL_REDUCE, types[k], CM_AVG, 3, 0}, &g);
        for (uint32_t top = 0; top < 0x7f80; top++) {
            static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};

            for (size_t i = 0; i < CM_LEN(low); i++)
                rounds_like_the_conversion(types[k], &g, (top << 16 | low[i]) ^ top << 31);
            rounds_like_the_conversion(types[k], &g, top << 16 | random_below(&state, 1 << 16));
        }
    }
}

static void test_thousands_of_ranks(void)
{
    static const enum cm_dtype types[] = {CM_FLOAT, CM_F8E5M2, CM_INT8, CM_DOUBLE, CM_BFLOAT16};
    static const int n = 4096;
    struct cm_sums *sums = malloc(sizeof(*sums));
    unsigned char *in = malloc((size_t)n * 16 * 8);
    const void **from = malloc((size_t)n * sizeof(*from));

    for (size_t k = 0; k < CM_LEN(types) * CM_NOPS; k++) {
        struct cm_data d = {CM_ALL_REDUCE, types[k / CM_NOPS], (enum cm_op)(k % CM_NOPS), n, k};
        struct cm_ref ref = ref_of(&d, n);
        size_t bytes = cm_dtypes[d.dtype].bytes;
        uint64_t want[16], got[16];

        for (int r = 0; r < n; r++) {
            from[r] = in + (size_t)r * 16 * 8;
            cm_data_input(&d, r, 0, 16, in + (size_t)r * 16 * 8);
        }
        cm_sums_of(&d, sums);
        cm_data_reduced(&d, sums, 0, 16, got);
        for (size_t i = 0; i < 16; i++)
            cm_ref_reduce(&ref, from, i * bytes, (char *)want + i * bytes);
        CHECK(memcmp(want, got, 16 * bytes) == 0, "%s %s n=%d", cm_dtypes[d.dtype].name,
              cm_ops[d.op].name, n);
    }
    free(from);
    free(in);
    free(sums);
}

int main(void)
{
    RUN(test_closed_forms_equal_the_reference);
    RUN(test_every_order_and_grouping_is_exact);
    RUN(test_every_rank_matters);
    RUN(test_copies_are_distinct_plain_numbers);
    RUN(test_blocks_do_not_depend_on_how_they_are_cut);
    RUN(test_averages_are_rounded_like_all_floats);
    RUN(test_thousands_of_ranks);
    return test_end();
}
