/*
 * Ends that are not orderly: a rank that is missing, one that runs something
 * else, an abort; and forms that there are not.
 */
#include "exec_forms.h"

static const struct cm_force automatic = {NULL, -1, CM_PROTO_AUTO, 0, 0};
static const struct cm_force pass = {"direct", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0};
static const struct cm_force shot = {"direct", -1, CM_PROTO_LL, 0, 0};
static const struct cm_force ring = {"ring", CM_MODE_COPY, CM_PROTO_SIMPLE, 0, 0};
static const struct cm_force ring_ll = {"ring", CM_MODE_COPY, CM_PROTO_LL, 0, 0};

/* ---- ends that are not orderly --------------------------------------------------------------- */

static const struct rig_op sum = {.coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .count = 100};

/* All ranks but one begin: somebody says that it is missed, and an abort ends them all. */
static void run_missing(const struct cm_force *force, enum rig_reach reach, int missing)
{
    struct rig_setup s = {
        .n = 3, .force = *force, .sim = order_of(1), .threads = 32, .reach = reach};
    struct rig *r;
    bool named = false, strange = false;

    s.sim.external = true;
    r = rig_open(&s);
    for (int k = 0; r != NULL && k < s.n; k++)
        CHECK(k == missing || rig_start(r, k, &sum), "rank %d does not begin", k);
    if (r == NULL)
        return;
    CHECK(!rig_settle(r), "%s: it ended without rank %d", force->algo, missing);
    for (int k = 0; k < s.n; k++) {
        named |= rig_hint(r, k).beats > 0 && (int)rig_hint(r, k).peer == missing;
        strange |= rig_hint(r, k).stranger != 0;
    }
    CHECK(named && !strange, "%s: nobody misses rank %d", force->algo, missing);
    rig_abort(r);
    CHECK(rig_settle(r), "%s: the abort does not end it", force->algo);
    rig_close(r);
}

static void test_missing_rank(void)
{
    const struct cm_force *const ways[] = {&pass, &shot, &ring, &ring_ll};

    for (size_t k = 0; k < CM_LEN(ways); k++)
        for (int missing = 0; missing < 3; missing++)
            run_missing(ways[k], RIG_NEAR, missing);
    for (int missing = 0; missing < 3; missing++)
        run_missing(&ring, RIG_NODES, missing);
}

/* Rank 1 does something else: it is noticed, and an abort ends them all. */
static void run_stranger(const struct cm_force *force, enum rig_reach reach,
                         const struct rig_op *other)
{
    struct rig_setup s = {
        .n = 2, .force = *force, .sim = order_of(1), .threads = 32, .reach = reach};
    struct rig *r;
    bool told;

    s.sim.external = true;
    r = rig_open(&s);
    if (r == NULL)
        return;
    CHECK(rig_start(r, 0, &sum) && rig_start(r, 1, other), "they do not begin");
    CHECK(!rig_settle(r), "%s: it ended", force->algo);
    told = rig_hint(r, 0).stranger == 2 || rig_hint(r, 1).stranger == 1;
    CHECK(told, "%s: nobody has noticed", force->algo);
    rig_abort(r);
    CHECK(rig_settle(r), "%s: the abort does not end it", force->algo);
    rig_close(r);
}

static void test_stranger(void)
{
    struct rig_op other = sum;

    other.op = CM_AVG;
    run_stranger(&pass, RIG_NEAR, &other);
    run_stranger(&ring, RIG_NEAR, &other);
    run_stranger(&ring, RIG_NODES, &other);
    other.coll = CM_REDUCE_SCATTER;
    run_stranger(&pass, RIG_NEAR, &other);
    other = sum;
    other.count--;
    run_stranger(&automatic, RIG_NODES, &other);
}

/*
 * A rank that was seen at the end of our operation, with the signature of the
 * one after the next: it is no stranger if its line turns out to have moved on.
 */
static void test_rank_that_went_on(void)
{
    const struct rig_op op = {.coll = CM_GATHER, .dtype = CM_UINT8, .count = 50};
    struct rig_setup s = {.n = 2, .force = pass, .sim = {.seed = 1, .external = true}};
    struct rig *r = rig_open(&s);
    struct cm_gpu_line *line;

    if (r == NULL)
        return;
    line = (struct cm_gpu_line *)(r->rank[0].area + r->area.lines_at) + CM_GPU_BLOCKS;
    line->sig[1] = 12345;
    line->seq = 1 << CM_PHASE_BITS | CM_PHASE_DONE;
    CHECK(rig_start(r, 0, &op), "it does not begin");
    CHECK(!rig_settle(r), "another signature, and it ended");
    __atomic_store_n(&line->seq, 3 << CM_PHASE_BITS, __ATOMIC_RELEASE);
    CHECK(rig_settle(r), "it does not end");
    rig_close(r);
}

/* What ranks of several nodes cannot have is said, not replaced. */
static void test_no_such_form_between_nodes(void)
{
    static const struct cm_force ways[] = {
        {"direct", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0},
        {"hier", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0},
        {"ring", CM_MODE_COPY, CM_PROTO_LL, 0, 0},
        {NULL, -1, CM_PROTO_LL, 0, 0},
    };
    const struct rig_op op = {.coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .count = 10};

    for (size_t k = 0; k < CM_LEN(ways); k++) {
        struct rig_setup s = {.n = 2, .force = ways[k], .sim = order_of(1), .reach = RIG_NODES};
        struct rig *r = rig_open(&s);

        CHECK(r != NULL && !rig_start(r, 0, &op), "way %zu began", k);
        if (r != NULL)
            rig_close(r);
    }
}

int main(int argc, char **argv)
{
    RUN_NAMED(test_missing_rank);
    RUN_NAMED(test_stranger);
    RUN_NAMED(test_rank_that_went_on);
    RUN_NAMED(test_no_such_form_between_nodes);
    return test_end();
}
