/* The reference against results worked out by hand, on tiny arrays. */
#include <stdint.h>
#include <string.h>

#include "base/status.h"
#include "common/ref.h"
#include "test.h"

enum { N = 3, COUNT = 2, MOST = 6 };

/* IN of rank r, element i is 10 (r + 1) + i; 99 marks what nobody may write. */
struct movement {
    enum cm_coll coll;
    int root;
    int32_t want[N][MOST];
};

static const size_t matrix[N * N] = {1, 2, 0, /**/ 0, 1, 3, /**/ 2, 0, 1};

static const struct movement movements[] = {
    {CM_ALL_REDUCE,
     0,
     {{60, 63, 99, 99, 99, 99}, {60, 63, 99, 99, 99, 99}, {60, 63, 99, 99, 99, 99}}},
    {CM_REDUCE, 1, {{99, 99, 99, 99, 99, 99}, {60, 63, 99, 99, 99, 99}, {99, 99, 99, 99, 99, 99}}},
    {CM_REDUCE_SCATTER,
     0,
     {{60, 63, 99, 99, 99, 99}, {66, 69, 99, 99, 99, 99}, {72, 75, 99, 99, 99, 99}}},
    {CM_BROADCAST,
     2,
     {{30, 31, 99, 99, 99, 99}, {30, 31, 99, 99, 99, 99}, {30, 31, 99, 99, 99, 99}}},
    {CM_ALL_GATHER,
     0,
     {{10, 11, 20, 21, 30, 31}, {10, 11, 20, 21, 30, 31}, {10, 11, 20, 21, 30, 31}}},
    {CM_HYPERCUBE,
     0,
     {{10, 11, 20, 21, 30, 31}, {10, 11, 20, 21, 30, 31}, {10, 11, 20, 21, 30, 31}}},
    {CM_GATHER, 1, {{99, 99, 99, 99, 99, 99}, {10, 11, 20, 21, 30, 31}, {99, 99, 99, 99, 99, 99}}},
    {CM_SCATTER, 1, {{20, 21, 99, 99, 99, 99}, {22, 23, 99, 99, 99, 99}, {24, 25, 99, 99, 99, 99}}},
    {CM_ALLTOALL,
     0,
     {{10, 11, 20, 21, 30, 31}, {12, 13, 22, 23, 32, 33}, {14, 15, 24, 25, 34, 35}}},
    {CM_ALLTOALLV,
     0,
     {{10, 30, 31, 99, 99, 99}, {11, 12, 20, 99, 99, 99}, {21, 22, 23, 32, 99, 99}}},
    {CM_SENDRECV,
     0,
     {{30, 31, 99, 99, 99, 99}, {10, 11, 99, 99, 99, 99}, {20, 21, 99, 99, 99, 99}}},
};

static void test_every_collective_moves_what_its_definition_says(void)
{
    bool seen[CM_NCOLLS] = {false};

    for (size_t k = 0; k < CM_LEN(movements); k++) {
        const struct movement *m = &movements[k];
        struct cm_ref ref = {m->coll, CM_INT32, CM_SUM, N, m->root, COUNT, matrix};
        int32_t in[N][MOST], out[N][MOST];
        const void *from[N];
        void *to[N];

        for (int r = 0; r < N; r++) {
            for (int i = 0; i < MOST; i++) {
                in[r][i] = 10 * (r + 1) + i;
                out[r][i] = 99;
            }
            from[r] = in[r];
            to[r] = out[r];
        }
        cm_ref_run(&ref, from, to);
        for (int r = 0; r < N; r++)
            for (int i = 0; i < MOST; i++)
                CHECK(out[r][i] == m->want[r][i], "%s rank %d element %d: got %d, want %d",
                      cm_colls[m->coll].name, r, i, out[r][i], m->want[r][i]);
        seen[m->coll] = true;
    }
    for (int c = 0; c < CM_NCOLLS; c++)
        CHECK(seen[c], "%s is not tested", cm_colls[c].name);
}

struct reduction {
    enum cm_dtype type;
    enum cm_op op;
    double in[N], want;
};

static const struct reduction reductions[] = {
    {CM_INT8, CM_SUM, {100, 100, 1}, -55},
    {CM_INT8, CM_PROD, {3, 5, -7}, -105},
    {CM_INT8, CM_AVG, {-100, -20, -8}, -42},
    {CM_INT8, CM_AVG, {100, 100, 100}, 14}, /* 300 wraps to 44 */
    {CM_UINT8, CM_AVG, {100, 100, 100}, 14},
    {CM_UINT8, CM_MAX, {200, 3, 100}, 200},
    {CM_INT8, CM_MAX, {-56, 3, 100}, 100},
    {CM_INT8, CM_MIN, {-56, 3, 100}, -56},
    {CM_INT32, CM_MULSUM, {1, 10, 100}, 121},
    {CM_FLOAT, CM_MULSUM, {1, 10, 100}, 121},
    {CM_FLOAT, CM_SUM, {16777216, 1, 1}, 16777216}, /* in float, in rank order */
    {CM_DOUBLE, CM_SUM, {16777216, 1, 1}, 16777218},
    {CM_HALF, CM_SUM, {2048, 1, 1}, 2050}, /* rounded once */
    {CM_BFLOAT16, CM_AVG, {1, 2, 4}, 2.328125},
    {CM_F8E4M3, CM_SUM, {16, 1, 1}, 18},
    {CM_F8E5M2, CM_PROD, {-2, 3, 4}, -24},
    {CM_FLOAT, CM_AVG, {-6, 2, 1}, -1},
    {CM_DOUBLE, CM_MIN, {-6, 2, 1}, -6},
};

static void test_every_reduction_rounds_as_defined(void)
{
    for (size_t k = 0; k < CM_LEN(reductions); k++) {
        const struct reduction *t = &reductions[k];
        struct cm_ref ref = {.coll = CM_ALL_REDUCE, .dtype = t->type, .op = t->op, .n = N};
        uint64_t in[N], out = 0;
        const void *from[N];

        for (int r = 0; r < N; r++) {
            cm_store(t->type, &in[r], t->in[r]);
            from[r] = &in[r];
        }
        cm_ref_reduce(&ref, from, 0, &out);
        CHECK(cm_load(t->type, &out) == t->want, "%s %s of %g %g %g: got %.17g, want %.17g",
              cm_dtypes[t->type].name, cm_ops[t->op].name, t->in[0], t->in[1], t->in[2],
              cm_load(t->type, &out), t->want);
    }
}

int main(void)
{
    RUN(test_every_collective_moves_what_its_definition_says);
    RUN(test_every_reduction_rounds_as_defined);
    return test_end();
}
