/* The order and number of rows of a sweep. */
#include <stdint.h>

#include "base/status.h"
#include "common/sweep.h"
#include "test.h"

struct sizes {
    size_t min, max, step;
    int factor;
    size_t want[6]; /* ends with SIZE_MAX */
};

static const struct sizes sizes[] = {
    {8, 64, 0, 2, {8, 16, 32, 64, SIZE_MAX}},
    {8, 63, 0, 2, {8, 16, 32, SIZE_MAX}},
    {3, 100, 0, 5, {3, 15, 75, SIZE_MAX}},
    {0, 9, 4, 1, {0, 4, 8, SIZE_MAX}},
    {1, 1000, 333, 1, {1, 334, 667, 1000, SIZE_MAX}},
    {64, 64, 0, 1, {64, SIZE_MAX}},
    {64, 64, 8, 2, {64, SIZE_MAX}},
    {0, 8, 0, 2, {0, SIZE_MAX}}, /* would not grow: ends */
    {SIZE_MAX / 2, SIZE_MAX - 1, 0, 3, {SIZE_MAX / 2, SIZE_MAX}},
    {SIZE_MAX - 5, SIZE_MAX - 1, 4, 1, {SIZE_MAX - 5, SIZE_MAX - 1, SIZE_MAX}},
};

static void test_sizes(void)
{
    for (size_t k = 0; k < CM_LEN(sizes); k++) {
        const struct sizes *t = &sizes[k];
        struct cm_opts_sweep o = {.min_bytes = t->min,
                                  .max_bytes = t->max,
                                  .step_bytes = t->step,
                                  .step_factor = t->factor,
                                  .cycles = 1};
        struct cm_sweep s = cm_sweep_of(&o, false, false, 4);
        uint64_t total = s.total;
        size_t i = 0;

        for (; cm_sweep_next(&s) && i < CM_LEN(t->want); i++)
            CHECK(s.now.bytes == t->want[i], "case %zu row %zu: %zu bytes, want %zu", k, i,
                  s.now.bytes, t->want[i]);
        CHECK(t->want[i] == SIZE_MAX, "case %zu: ended after %zu rows", k, i);
        CHECK(total == i, "case %zu: total says %llu, got %zu", k, (unsigned long long)total, i);
    }
}

static void test_order_is_type_op_root_cycle_size(void)
{
    struct cm_opts_sweep o = {.min_bytes = 8,
                              .max_bytes = 16,
                              .step_factor = 2,
                              .dtype = CM_ALL,
                              .op = CM_ALL,
                              .root = CM_ALL,
                              .cycles = 2};
    struct cm_sweep s = cm_sweep_of(&o, true, true, 3);
    uint64_t total = s.total, i = 0;

    for (; cm_sweep_next(&s); i++) {
        const struct cm_point *p = &s.now;
        uint64_t at = (uint64_t)p->dtype;

        at = at * CM_NOPS + (uint64_t)p->op;
        at = at * 3 + (uint64_t)p->root;
        at = at * 2 + (uint64_t)p->cycle;
        at = at * 2 + (p->bytes == 16);
        CHECK(at == i, "row %llu is the one of place %llu", (unsigned long long)i,
              (unsigned long long)at);
    }
    CHECK(i == total && i == (uint64_t)CM_NDTYPES * CM_NOPS * 12, "%llu rows, total says %llu",
          (unsigned long long)i, (unsigned long long)total);
}

static void test_chosen_ones_stay(void)
{
    struct cm_opts_sweep o = {.min_bytes = 8,
                              .max_bytes = 8,
                              .step_factor = 2,
                              .dtype = CM_DOUBLE,
                              .op = CM_ALL,
                              .root = 2,
                              .cycles = 1};
    struct cm_sweep s = cm_sweep_of(&o, false, true, 5);

    CHECK(cm_sweep_next(&s) && s.now.dtype == CM_DOUBLE && s.now.op == CM_SUM && s.now.root == 2,
          "type %d op %d root %d", s.now.dtype, s.now.op, s.now.root);
    CHECK(!cm_sweep_next(&s), "a second row");
    s = cm_sweep_of(&o, false, false, 5);
    CHECK(cm_sweep_next(&s) && s.now.root == -1, "root %d without roots", s.now.root);
}

static void test_endless_cycles(void)
{
    struct cm_opts_sweep o = {.min_bytes = 8, .max_bytes = 16, .step_factor = 2, .cycles = 0};
    struct cm_sweep s = cm_sweep_of(&o, false, false, 2);

    CHECK(s.total == 0, "total %llu", (unsigned long long)s.total);
    for (int i = 0; i < 100; i++)
        CHECK(cm_sweep_next(&s) && s.now.cycle == i / 2, "row %d: cycle %d", i, s.now.cycle);
}

int main(void)
{
    RUN(test_sizes);
    RUN(test_order_is_type_op_root_cycle_size);
    RUN(test_chosen_ones_stay);
    RUN(test_endless_cycles);
    return test_end();
}
