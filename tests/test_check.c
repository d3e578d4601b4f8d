/*
 * The checker against results it must accept (expectation and reference are
 * equal for every collective) and faults it must see and name.
 */
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/ref.h"
#include "test.h"

enum { MAX_N = 5, COUNT = 96, ROOM = COUNT * MAX_N * 8 };

static const size_t matrix[MAX_N * MAX_N] = {16, 0, 32, 48, 96, 1, 2,  3, 4,  5,  0,  0, 0,
                                             0,  0, 96, 96, 96, 8, 96, 7, 11, 13, 17, 19};

/* All ranks of one operation; each buffer has its guards. */
struct world {
    struct cm_ref ref;
    uint64_t seed;
    unsigned char in[MAX_N][ROOM + 2 * CM_GUARD_BYTES], out[MAX_N][ROOM + 2 * CM_GUARD_BYTES];
    size_t send[MAX_N], recv[MAX_N];
};

static struct world *world_new(enum cm_coll coll, enum cm_dtype t, enum cm_op op, int n)
{
    struct world *w = calloc(1, sizeof(*w));

    if (w == NULL)
        abort();
    w->ref = (struct cm_ref){coll, t, op, n, n - 1, COUNT, matrix};
    for (int r = 0; r < n; r++) {
        w->send[r] = COUNT * (size_t)(cm_colls[coll].in_per_rank ? n : 1);
        w->recv[r] = COUNT * (size_t)(cm_colls[coll].out_per_rank ? n : 1);
        for (int p = 0; coll == CM_ALLTOALLV && p < n; p++) {
            w->send[r] = (p > 0 ? w->send[r] : 0) + matrix[r * n + p];
            w->recv[r] = (p > 0 ? w->recv[r] : 0) + matrix[p * n + r];
        }
    }
    return w;
}

static unsigned char *in_of(struct world *w, int r)
{
    return w->in[r] + CM_GUARD_BYTES;
}

static unsigned char *out_of(struct world *w, int r)
{
    return w->out[r] + CM_GUARD_BYTES;
}

static struct cm_data data_of(const struct world *w)
{
    return (struct cm_data){w->ref.coll, w->ref.dtype, w->ref.op, w->ref.n, w->seed};
}

/* Fill and let the reference do the operation. */
static void operate(struct world *w, uint64_t seed)
{
    size_t width = cm_dtypes[w->ref.dtype].bytes;
    const void *in[MAX_N];
    void *out[MAX_N];
    struct cm_data d;

    w->seed = seed;
    d = data_of(w);
    for (int r = 0; r < w->ref.n; r++) {
        cm_data_input(&d, r, 0, w->send[r], in_of(w, r));
        cm_poison(out_of(w, r), w->recv[r] * width, seed);
        cm_guard_fill(in_of(w, r), w->send[r] * width);
        cm_guard_fill(out_of(w, r), w->recv[r] * width);
        in[r] = in_of(w, r);
        out[r] = out_of(w, r);
    }
    cm_ref_run(&w->ref, in, out);
}

static struct cm_check check(struct world *w, int rank)
{
    size_t width = cm_dtypes[w->ref.dtype].bytes;
    struct cm_check_args a = {.expect = {.data = data_of(w),
                                         .rank = rank,
                                         .root = w->ref.root,
                                         .count = COUNT,
                                         .matrix = matrix},
                              .in = in_of(w, rank),
                              .out = out_of(w, rank),
                              .in_count = w->send[rank],
                              .out_count = w->recv[rank],
                              .poison_seed = w->seed,
                              .has_stale = true,
                              .stale_seed = w->seed - 1};
    struct cm_check c = {0};

    cm_check_output(&a, &c);
    cm_check_input(&a, &c);
    cm_check_guard(a.in, a.in_count * width, &c);
    cm_check_guard(a.out, a.out_count * width, &c);
    return c;
}

static void test_right_results_of_all_collectives_pass(void)
{
    for (int k = 0; k < CM_NCOLLS * CM_NDTYPES; k++) {
        enum cm_coll coll = (enum cm_coll)(k / CM_NDTYPES);
        struct world *w = world_new(coll, (enum cm_dtype)(k % CM_NDTYPES), CM_AVG, MAX_N);

        operate(w, (uint64_t)k);
        for (int r = 0; r < MAX_N; r++) {
            struct cm_check c = check(w, r);

            CHECK(c.wrong == 0, "%s %s rank %d: %lld wrong, first at %zu", cm_colls[coll].name,
                  cm_dtypes[w->ref.dtype].name, r, (long long)c.wrong, c.faults[0].index);
        }
        free(w);
    }
}

/* A fault of an all_reduce or all_gather of floats on rank 1, and what must be said of it. */
struct fault {
    const char *name;
    enum cm_coll coll;
    void (*make)(struct world *w);
    int64_t wrong;
    enum cm_wrong_kind kind;
    size_t index;
    enum cm_likeness like;
    int like_rank;
};

static float *floats(unsigned char *p, size_t i)
{
    return (float *)(void *)p + i;
}

static void flip(struct world *w)
{
    out_of(w, 1)[4 * 7 + 1] ^= 0x10;
}

static void leave_out(struct world *w)
{
    size_t bytes = w->recv[1] * sizeof(float);
    unsigned char *poison = malloc(bytes);

    cm_poison(poison, bytes, w->seed);
    memcpy(out_of(w, 1) + 32, poison + 32, 16);
    free(poison);
}

static void stay_stale(struct world *w)
{
    struct world *old = world_new(w->ref.coll, w->ref.dtype, w->ref.op, w->ref.n);

    operate(old, w->seed - 1);
    memcpy(floats(out_of(w, 1), 20), floats(out_of(old, 1), 20), 5 * sizeof(float));
    free(old);
}

static void swap_ranks(struct world *w)
{
    memcpy(floats(out_of(w, 1), 2 * COUNT), in_of(w, 3), COUNT * sizeof(float));
}

static void add(struct world *w, int rank, float times)
{
    for (size_t i = 40; i < 50; i++)
        *floats(out_of(w, 1), i) += times * *floats(in_of(w, rank), i);
}

static void lose(struct world *w)
{
    add(w, 2, -1);
}

static void double_up(struct world *w)
{
    add(w, 4, 1);
}

static void spoil_input(struct world *w)
{
    *floats(in_of(w, 1), 11) = 0;
}

static void write_before(struct world *w)
{
    out_of(w, 1)[-3] ^= 1;
}

static void write_behind(struct world *w)
{
    in_of(w, 1)[w->send[1] * sizeof(float) + 100] ^= 1;
}

static const struct fault faults[] = {
    {"flip", CM_ALL_REDUCE, flip, 1, CM_WRONG_OUTPUT, 7, CM_LIKE_NOTHING, -1},
    {"leave out", CM_ALL_REDUCE, leave_out, 4, CM_WRONG_OUTPUT, 8, CM_LIKE_POISON, -1},
    {"leave out", CM_ALL_GATHER, leave_out, 4, CM_WRONG_OUTPUT, 8, CM_LIKE_POISON, -1},
    {"stale", CM_ALL_REDUCE, stay_stale, 5, CM_WRONG_OUTPUT, 20, CM_LIKE_STALE, -1},
    {"stale", CM_ALL_GATHER, stay_stale, 5, CM_WRONG_OUTPUT, 20, CM_LIKE_STALE, -1},
    {"swap", CM_ALL_GATHER, swap_ranks, COUNT, CM_WRONG_OUTPUT, 2 * COUNT, CM_LIKE_RANK, 3},
    {"lose", CM_ALL_REDUCE, lose, 10, CM_WRONG_OUTPUT, 40, CM_LIKE_LOST, 2},
    {"double", CM_ALL_REDUCE, double_up, 10, CM_WRONG_OUTPUT, 40, CM_LIKE_TWICE, 4},
    {"input", CM_ALL_REDUCE, spoil_input, 1, CM_WRONG_INPUT, 11, CM_LIKE_NOTHING, -1},
    {"before", CM_ALL_REDUCE, write_before, 1, CM_WRONG_GUARD, 0, CM_LIKE_NOTHING, -1},
    {"behind", CM_ALL_REDUCE, write_behind, 1, CM_WRONG_GUARD, 0, CM_LIKE_NOTHING, -1},
    {"not root", CM_REDUCE, flip, 1, CM_WRONG_UNTOUCHED, 7, CM_LIKE_NOTHING, -1},
};

static void test_faults_are_seen_and_named(void)
{
    for (size_t k = 0; k < CM_LEN(faults); k++) {
        const struct fault *f = &faults[k];
        struct world *w = world_new(f->coll, CM_FLOAT, CM_SUM, MAX_N);
        const struct cm_wrong *first;
        struct cm_check c;

        operate(w, 100 + k);
        f->make(w);
        c = check(w, 1);
        first = &c.faults[0];
        CHECK(c.wrong == f->wrong && c.nfaults >= 1, "%s in %s: %lld wrong, want %lld", f->name,
              cm_colls[f->coll].name, (long long)c.wrong, (long long)f->wrong);
        CHECK(first->kind == f->kind && first->index == f->index && first->like == f->like &&
                  first->like_rank == f->like_rank,
              "%s in %s: kind %d index %zu like %d rank %d", f->name, cm_colls[f->coll].name,
              first->kind, first->index, first->like, first->like_rank);
        CHECK(check(w, 0).wrong == 0, "%s in %s: rank 0 is blamed", f->name,
              cm_colls[f->coll].name);
        free(w);
    }
}

/* In place: one buffer; ranks without a result must find their own input and the poison again. */
static void test_in_place_places_that_stay(void)
{
    static const enum cm_coll colls[] = {CM_REDUCE, CM_GATHER, CM_SCATTER, CM_BROADCAST};

    for (size_t k = 0; k < CM_LEN(colls); k++) {
        struct world *w = world_new(colls[k], CM_INT32, CM_SUM, MAX_N);
        size_t send = w->send[1], recv = w->recv[1], most = send > recv ? send : recv;
        unsigned char *region = out_of(w, 1);
        struct cm_check_args a = {
            .expect = {.data = data_of(w), .rank = 1, .root = 4, .count = COUNT},
            .in = region + (recv > send ? COUNT * 4 : 0),
            .out = region + (send > recv ? COUNT * 4 : 0),
            .in_count = send,
            .out_count = recv,
            .in_place = true,
            .poisoned = region};
        struct cm_check c = {0};

        cm_poison(region, most * 4, 0);
        if (cm_data_reads(colls[k], 1, 4))
            cm_data_input(&a.expect.data, 1, 0, send, (unsigned char *)a.in);
        if (cm_data_writes(colls[k], 1, 4))
            cm_data_expect(&a.expect, 0, recv, (unsigned char *)a.out);
        cm_check_output(&a, &c);
        CHECK(c.wrong == 0, "%s: %lld wrong, first at %zu", cm_colls[colls[k]].name,
              (long long)c.wrong, c.faults[0].index);
        for (size_t i = 0; i < most; i += 31) {
            c = (struct cm_check){0};
            region[i * 4] ^= 1;
            cm_check_output(&a, &c);
            CHECK(c.wrong == 1, "%s: element %zu changed unseen", cm_colls[colls[k]].name, i);
            region[i * 4] ^= 1;
        }
        free(w);
    }
}

static void test_poison_depends_on_the_seed_and_is_nan(void)
{
    unsigned char a[64], b[64];

    for (uint64_t seed = 0; seed < 100; seed++) {
        cm_poison(a, sizeof(a), seed);
        cm_poison(b, sizeof(b), seed + 1);
        CHECK(memcmp(a, b, sizeof(a)) != 0, "seeds %d and next", (int)seed);
        CHECK(cm_load(CM_FLOAT, a) != cm_load(CM_FLOAT, a) &&
                  cm_load(CM_BFLOAT16, a) != cm_load(CM_BFLOAT16, a) &&
                  cm_load(CM_HALF, a) != cm_load(CM_HALF, a) &&
                  cm_load(CM_DOUBLE, a) != cm_load(CM_DOUBLE, a),
              "seed %d is a number", (int)seed);
    }
}

int main(void)
{
    RUN(test_right_results_of_all_collectives_pass);
    RUN(test_faults_are_seen_and_named);
    RUN(test_in_place_places_that_stay);
    RUN(test_poison_depends_on_the_seed_and_is_nan);
    return test_end();
}
