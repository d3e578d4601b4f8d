/*
 * Kernels against the definition: every collective, algorithm, mode and
 * protocol; every type and operation in each kernel; counts, ranks, threads,
 * blocks and slots of all kinds; starts of buffers that are not aligned.
 */
#include "exec_forms.h"

/* ---- every form ------------------------------------------------------------------------------ */

/* Sizes and shapes, cut into what a sanitizer has time for. */
static struct rig_setup setup_of(const struct form *f, int n, unsigned k)
{
    static const int threads[] = {0, 32, 64, 128};
    static const size_t slots[] = {1024, 256, 4096};
    struct rig_setup s = {.n = n, .force = f->force, .sim = order_of(k)};

    s.depth = f->depth << k % 2;
    s.slot_bytes = slots[k % CM_LEN(slots)];
    s.threads = with_tsan ? 32 : threads[k % CM_LEN(threads)];
    s.force.channels = (int)(k % (with_tsan ? 3 : 5));
    s.gang = k % 3 == 2;
    return s;
}

/* All collectives of a form; long ones are taken in turns. */
static int row_of(const struct form *f, int n, struct rig_op *ops)
{
    static const size_t all[] = {1, 7, 63, 1000, 5003}, few[] = {7, 63, 700};
    const size_t *counts = with_tsan ? few : all, ncounts = with_tsan ? 3 : 5;
    int nops = 0;

    for (size_t i = 0; i < CM_NCOLLS * ncounts; i++) {
        size_t coll = i / ncounts, k = i % ncounts;
        struct rig_op op = {.coll = (enum cm_coll)coll,
                            .dtype = k % 2 == 0 ? CM_FLOAT : CM_UINT8,
                            .root = (int)(coll + k),
                            .count = counts[k],
                            .in_place = (coll + k) % 2 == 0};

        if (with_tsan && is_ordered_by_data(&f->force, op.coll))
            op.in_place = false;
        if (has_form(&f->force, op.coll) && (k < 4 || is_slow() || (coll + (size_t)n) % 4 == 0))
            nops = add_op(ops, nops, n, op);
    }
    return nops;
}

static void run_forms(int n)
{
    for (size_t k = 0; k < CM_LEN(forms); k++) {
        struct rig_op ops[ROW];
        struct rig_setup s = setup_of(&forms[k], n, (unsigned)k + 3 * (unsigned)n);
        int nops = row_of(&forms[k], n, ops);

        CHECK(rig_once(&s, ops, nops), "%s, n=%d", forms[k].name, n);
    }
}

static void test_alone(void)
{
    run_forms(1);
}

static void test_two_ranks(void)
{
    run_forms(2);
}

static void test_three_ranks(void)
{
    run_forms(3);
}

static void test_four_ranks(void)
{
    if (with_tsan && !is_slow())
        SKIP("ThreadSanitizer: COLLMARK_SLOW is not set");
    else
        run_forms(4);
}

/* Two nodes: every form that has ports only, and counts around what fits beside a slot's head. */
static void run_nodes(const struct form *f, int n, unsigned k)
{
    static const size_t all[] = {1, 6, 7, 24, 25, 700}, few[] = {6, 7, 25, 300};
    const size_t *counts = with_tsan ? few : all, ncounts = with_tsan ? CM_LEN(few) : CM_LEN(all);
    struct rig_setup s = setup_of(f, n, k);
    struct rig_op ops[ROW];
    int nops = 0;

    s.reach = RIG_NODES;
    s.gang = false;
    for (size_t i = 0; i < CM_NCOLLS * ncounts; i++) {
        struct rig_op op = {.coll = (enum cm_coll)(i / ncounts),
                            .dtype = i % 2 == 0 ? CM_FLOAT : CM_UINT8,
                            .root = (int)i,
                            .count = counts[i % ncounts],
                            .in_place = i % 3 == 0,
                            .in_skew = (int)(i % 4)};

        if (has_form(&f->force, op.coll))
            nops = add_op(ops, nops, n, op);
    }
    CHECK(rig_once(&s, ops, nops), "%s, n=%d on two nodes", f->name, n);
}

static void test_two_nodes(void)
{
    for (size_t k = 0; k < CM_LEN(remote_forms); k++) {
        run_nodes(&remote_forms[k], 3, (unsigned)k);
        if (!with_tsan || is_slow())
            run_nodes(&remote_forms[k], k % 2 == 0 ? 4 : 2, (unsigned)k + 1);
    }
}

static void test_eight_ranks(void)
{
    if (is_slow())
        run_forms(8);
    else
        SKIP("COLLMARK_SLOW is not set");
}

/* ---- types and operations -------------------------------------------------------------------- */

static const struct form kernels[CM_GPU_NKERNELS] = {
    [CM_GPU_PLAN] = {"PLAN", {"ring", CM_MODE_COPY, CM_PROTO_SIMPLE, 0, 0}, 2},
    [CM_GPU_LL] = {"LL", {"ring", CM_MODE_COPY, CM_PROTO_LL, 0, 0}, 2},
    [CM_GPU_SHOT] = {"SHOT", {"direct", -1, CM_PROTO_LL, 0, 0}, 1},
    [CM_GPU_PASS] = {"PASS", {"direct", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0}, 1},
};

/* All types and operations; two counts: less than 16 bytes at the ends, and long. */
static void run_types(enum cm_gpu_kernel k, int n)
{
    struct rig_setup s = {.n = n, .force = kernels[k].force, .inbox_bytes = 4096, .threads = 32};
    int before = rig_launches[k], nops = 0;
    struct rig_op ops[ROW];

    s.sim = order_of((unsigned)k + 1);
    for (int t = 0; t < CM_NDTYPES; t++) {
        for (int o = 0; o < CM_NOPS; o++) {
            struct rig_op op = {.coll = o % 2 == 0 ? CM_ALL_REDUCE : CM_REDUCE_SCATTER,
                                .dtype = (enum cm_dtype)t,
                                .op = (enum cm_op)o,
                                .count = o < 3 ? 11 : 131,
                                .in_place = t % 2 == 0};

            nops = add_op(ops, nops, n, op);
            op.count = o < 3 ? 301 : 5;
            op.coll = CM_ALL_REDUCE;
            nops = add_op(ops, nops, n, op);
        }
    }
    CHECK(rig_once(&s, ops, nops), "%s, n=%d", kernels[k].name, n);
    CHECK(rig_launches[k] - before == nops * n, "%s ran %d times", kernels[k].name,
          rig_launches[k] - before);
}

static void test_types_in_plan(void)
{
    run_types(CM_GPU_PLAN, 3);
}

static void test_types_in_ll(void)
{
    run_types(CM_GPU_LL, 3);
}

static void test_types_in_shot(void)
{
    run_types(CM_GPU_SHOT, 3);
}

static void test_types_in_pass(void)
{
    run_types(CM_GPU_PASS, 3);
}

/* ---- starts that are not aligned, and counts around a vector --------------------------------- */

static void run_skews(enum cm_gpu_kernel k, enum cm_dtype t)
{
    static const int skews[][2] = {{1, 0}, {0, 1}, {3, 3}, {1, 2}, {15, 7}};
    static const size_t around[] = {3, 16, 17, 40, 200, 1025};
    struct rig_setup s = {.n = 3, .force = kernels[k].force, .inbox_bytes = 8192, .threads = 64};
    struct rig_op ops[ROW];
    int nops = 0;

    s.sim = order_of((unsigned)k + 2);
    s.force.channels = 2;
    for (size_t i = 0; i < CM_LEN(skews); i++) {
        for (size_t c = 0; c < CM_LEN(around); c++) {
            struct rig_op op = {.coll = c % 2 == 0 ? CM_ALL_REDUCE : CM_ALL_GATHER,
                                .dtype = t,
                                .count = around[c],
                                .in_skew = skews[i][0],
                                .out_skew = skews[i][1],
                                .in_place = i % 2 == 1};

            nops = add_op(ops, nops, s.n, op);
            op.coll = c % 2 == 0 ? CM_REDUCE_SCATTER : CM_BROADCAST;
            nops = add_op(ops, nops, s.n, op);
        }
    }
    CHECK(rig_once(&s, ops, nops), "%s %s", kernels[k].name, cm_dtypes[t].name);
}

static void test_unaligned(void)
{
    for (int k = 0; k < CM_GPU_NKERNELS; k++) {
        run_skews((enum cm_gpu_kernel)k, CM_UINT8);
        run_skews((enum cm_gpu_kernel)k, CM_FLOAT);
    }
}

/* ---- the order of reduction ------------------------------------------------------------------ */

/*
 * Sums that are not exact: one exchange and one pass give what the interpreter
 * gives of the direct plan, bit for bit, because all equal the definition, which goes
 * from rank 0 upwards and rounds once.
 */
static void run_arbitrary(const struct rig_setup *like)
{
    static const enum cm_op some[] = {CM_SUM, CM_PROD, CM_AVG, CM_MULSUM};
    struct rig_setup s = *like;
    struct rig_op ops[ROW];
    int nops = 0;

    for (int t = 0; t < CM_NDTYPES; t++) {
        for (size_t o = 0; o < CM_LEN(some); o++) {
            struct rig_op op = {.coll = o % 2 == 0 ? CM_ALL_REDUCE : CM_REDUCE_SCATTER,
                                .dtype = (enum cm_dtype)t,
                                .op = some[o],
                                .count = 77,
                                .arbitrary = true};

            nops = add_op(ops, nops, s.n, op);
        }
        nops = add_op(
            ops, nops, s.n,
            (struct rig_op){
                .coll = CM_ALL_GATHER, .dtype = (enum cm_dtype)t, .count = 77, .arbitrary = true});
    }
    CHECK(rig_once(&s, ops, nops), "%s mode %d interpret %d", s.force.algo, s.force.mode,
          s.interpret);
}

static void test_order_of_reduction(void)
{
    struct rig_setup s = {.n = 4, .sim = order_of(3), .threads = 32};

    s.force = kernels[CM_GPU_PASS].force;
    s.force.channels = 2;
    run_arbitrary(&s);
    s.interpret = true;
    run_arbitrary(&s);
    s.interpret = false;
    s.force = kernels[CM_GPU_SHOT].force;
    run_arbitrary(&s);
    s.force = (struct cm_force){"direct", CM_MODE_COPY, CM_PROTO_LL, 2, 0};
    run_arbitrary(&s);
    s.force.proto = CM_PROTO_SIMPLE;
    run_arbitrary(&s);
}

int main(int argc, char **argv)
{
    RUN_NAMED(test_alone);
    RUN_NAMED(test_two_ranks);
    RUN_NAMED(test_three_ranks);
    RUN_NAMED(test_four_ranks);
    RUN_NAMED(test_eight_ranks);
    RUN_NAMED(test_two_nodes);
    RUN_NAMED(test_types_in_plan);
    RUN_NAMED(test_types_in_ll);
    RUN_NAMED(test_types_in_shot);
    RUN_NAMED(test_types_in_pass);
    RUN_NAMED(test_unaligned);
    RUN_NAMED(test_order_of_reduction);
    return test_end();
}
