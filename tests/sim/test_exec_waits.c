/*
 * What happens between operations: flags that
 * wrap, lines and counters that are used again by other blocks, replays, ranks
 * that reach each other through host memory or by a wire only, gangs.
 */
#include "exec_forms.h"

static const struct cm_force automatic = {NULL, -1, CM_PROTO_AUTO, 0, 0};
static const struct cm_force pass = {"direct", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0};
static const struct cm_force shot = {"direct", -1, CM_PROTO_LL, 0, 0};
static const struct cm_force ring = {"ring", CM_MODE_COPY, CM_PROTO_SIMPLE, 0, 0};
static const struct cm_force ring_ll = {"ring", CM_MODE_COPY, CM_PROTO_LL, 0, 0};
static const struct cm_force tree_ll = {"tree", CM_MODE_COPY, CM_PROTO_LL, 0, 0};

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

/* As many runs with different orders as there is time for. */
static unsigned seeds(unsigned few, unsigned many)
{
    return is_slow() ? many : with_tsan && few > 3 ? few / 4 + 2 : few;
}

/* ---- LL flags that wrap ---------------------------------------------------------------------- */

enum { PERIOD = 16, ROUNDS = 2 * PERIOD + 12 };

/*
 * Long in few rounds of a period, always with the same flag: what they left is
 * met again unless it is cleaned, in one of the last rounds of either half.
 */
static size_t length_in(int round, size_t most, bool late)
{
    int at = round % PERIOD;
    bool is_long = late ? at == PERIOD - 2 : at == 3 || at == 6;

    return is_long ? most - (size_t)(round % 3) : (size_t)(1 + round % 5);
}

static void test_flags_wrap_in_inboxes(void)
{
    static const enum cm_coll colls[] = {CM_ALL_REDUCE, CM_ALL_GATHER, CM_BROADCAST, CM_REDUCE};

    for (unsigned k = 0; k < seeds(6, 60); k++) {
        struct rig_setup s = {.n = 3, .force = shot, .ll_mask = PERIOD - 1, .sim = order_of(k)};
        struct rig_op ops[ROW];
        int nops = 0;

        s.inbox_bytes = k % 2 == 0 ? 256 : 9216; /* the latter takes three blocks */
        s.threads = 32;
        for (int i = 0; i < ROUNDS; i++)
            nops = add_op(ops, nops, s.n,
                          (struct rig_op){.coll = colls[k % 4],
                                          .dtype = CM_UINT8,
                                          .root = i,
                                          .count = length_in(i, s.inbox_bytes, k % 3 == 2)});
        CHECK(rig_once(&s, ops, nops), "seed %u", k);
    }
}

static void test_flags_wrap_in_slots(void)
{
    for (unsigned k = 0; k < seeds(6, 60); k++) {
        struct rig_setup s = {.n = 2 + (int)k % 2, .ll_mask = PERIOD - 1, .sim = order_of(k)};
        struct rig_op ops[ROW];
        int nops = 0;

        s.force = (struct cm_force){"direct", CM_MODE_COPY, CM_PROTO_LL, 1, 0};
        s.depth = 1 << k % 3;
        s.slot_bytes = 512;
        s.threads = 32;
        for (int i = 0; i < ROUNDS; i++)
            nops = add_op(ops, nops, s.n,
                          (struct rig_op){.coll = CM_SENDRECV,
                                          .dtype = CM_UINT8,
                                          .count = length_in(i, 256, k >= 3)});
        CHECK(rig_once(&s, ops, nops), "seed %u, depth %d", k, s.depth);
    }
}

/* Payload of protocol simple that looks like the flags which protocol LL waits for next. */
static void test_payload_is_no_flag(void)
{
    for (unsigned k = 0; k < seeds(6, 60); k++) {
        struct rig_setup s = {.n = 2, .ll_mask = PERIOD - 1, .depth = 1, .sim = order_of(k)};
        struct rig_op ops[ROW];
        int nops = 0;

        s.threads = 32;
        for (int i = 0; i < ROUNDS; i++) {
            struct rig_op op = {
                .coll = CM_SENDRECV, .dtype = CM_UINT8, .count = 256, .forces = true};

            op.force = (struct cm_force){"direct", CM_MODE_COPY, CM_PROTO_SIMPLE, 1, 0};
            op.count += (size_t)i; /* another key, or the forced protocol is not looked at */
            op.word = (uint32_t)(i + 2) % PERIOD;
            if (i % 2 == 1)
                op.force.proto = CM_PROTO_LL;
            nops = add_op(ops, nops, s.n, op);
        }
        CHECK(rig_once(&s, ops, nops), "seed %u", k);
    }
}

/* ---- rows of all kinds ----------------------------------------------------------------------- */

static struct rig_op any_op(uint64_t *random, size_t most)
{
    struct rig_op op = {.coll = (enum cm_coll)(next(random) % CM_NCOLLS),
                        .dtype = next(random) % 2 == 0 ? CM_FLOAT : CM_UINT8,
                        .op = (enum cm_op)(next(random) % CM_NOPS),
                        .root = (int)(next(random) % RIG_RANKS),
                        .count = 1 + next(random) % most,
                        .in_place = next(random) % 2 == 0,
                        .in_skew = (int)(next(random) % 4),
                        .forces = true};

    op.force = forms[next(random) % CM_LEN(forms)].force;
    op.force.channels = 1 + (int)(next(random) % 4);
    return op;
}

/* Is it a plan of loads from and stores to peers' buffers? */
static bool needs_reach(const struct rig_op *op)
{
    return op->force.mode == CM_MODE_DIRECT;
}

/* One exchange, one pass, ports of both protocols and plans after each other, by 1 to 4 blocks. */
static void run_mix(const struct rig_setup *s, int length, size_t most)
{
    uint64_t random = s->sim.seed;
    struct rig_op ops[ROW];
    int nops = 0;

    while (nops < length) {
        struct rig_op op = any_op(&random, most);

        if (!has_form(&op.force, op.coll) || (s->reach != RIG_NEAR && needs_reach(&op)))
            continue;
        if (with_tsan && is_ordered_by_data(&op.force, op.coll))
            op.in_place = false;
        nops = add_op(ops, nops, s->n, op);
    }
    CHECK(rig_once(s, ops, nops), "n=%d seed %llu", s->n, (unsigned long long)s->sim.seed);
}

static void test_one_after_the_other(void)
{
    for (unsigned k = 0; k < seeds(16, 400); k++) {
        struct rig_setup s = {.n = 2 + (int)k % 3, .force = automatic, .sim = order_of(k + 1)};

        s.inbox_bytes = 512;
        s.ll_mask = k % 2 == 0 ? PERIOD - 1 : 0;
        s.threads = 32;
        s.gang = k % 5 == 4;
        run_mix(&s, 40, 600);
    }
}

/*
 * Ranks that do not wait for each other get two operations apart: the line
 * that one of them still looks at is rewritten by the other.
 */
static void test_two_operations_ahead(void)
{
    for (unsigned k = 0; k < seeds(40, 400); k++) {
        struct rig_setup s = {.n = 4, .force = pass, .sim = order_of(k + 1)};
        struct rig_op ops[ROW];
        int nops = 0;

        s.threads = 1; /* the fewer switches an operation takes, the sooner two are over */
        for (int i = 0; i < 48; i++)
            nops = add_op(ops, nops, s.n,
                          (struct rig_op){.coll = i % 4 == 0 ? CM_ALL_GATHER : CM_GATHER,
                                          .dtype = CM_UINT8,
                                          .root = i + (int)k,
                                          .count = (size_t)(10 + i)});
        CHECK(rig_once(&s, ops, nops), "seed %u", k);
    }
}

static void test_replays(void)
{
    const struct cm_force *const ways[] = {&pass, &shot, &ring, &ring_ll, &tree_ll};

    for (size_t k = 0; k < CM_LEN(ways); k++) {
        struct rig_setup s = {.n = 3, .force = *ways[k], .sim = order_of((unsigned)k + 1)};
        struct rig_op op = {.coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .count = 200, .again = 4};
        struct rig_op ops[] = {op, op, op};

        ops[1].count = 31;
        s.ll_mask = 15;
        CHECK(rig_once(&s, ops, (int)CM_LEN(ops)), "%s", s.force.algo);
    }
}

/* The memory of plans is full again and again. */
static void test_plans_are_uploaded_anew(void)
{
    struct rig_setup s = {.n = 3, .force = ring, .sim = order_of(1), .threads = 32};
    struct rig *r = rig_open(&s);
    struct rig_op ops[ROW];
    int nops = 0;

    if (r == NULL) {
        CHECK(false, "no rig");
        return;
    }
    for (int k = 0; k < s.n; k++)
        ((struct cm_cuda *)r->rank[k].comm->state)->size = 4096;
    for (int i = 0; i < 12; i++)
        nops = add_op(ops, nops, s.n,
                      (struct rig_op){.coll = i % 2 ? CM_ALL_REDUCE : CM_ALL_GATHER,
                                      .dtype = CM_FLOAT,
                                      .count = (size_t)(5 + i % 5)});
    CHECK(rig_run(r, ops, nops), "a row");
    CHECK(((struct cm_cuda *)r->rank[0].comm->state)->upload > 1, "it was never full");
    rig_close(r);
}

static void test_nothing_to_send(void)
{
    static const size_t nothing[9] = {0}, little[9] = {0, 0, 0, 40, 0, 0, 0, 0, 1};
    const struct cm_force ways[] = {pass,
                                    {"direct", CM_MODE_COPY, CM_PROTO_SIMPLE, 2, 0},
                                    {"direct", CM_MODE_COPY, CM_PROTO_LL, 2, 0}};

    for (size_t k = 0; k < CM_LEN(ways); k++) {
        struct rig_setup s = {.n = 3, .force = ways[k], .sim = order_of((unsigned)k + 1)};
        const struct rig_op ops[] = {
            {.coll = CM_ALLTOALLV, .dtype = CM_FLOAT, .matrix = nothing},
            {.coll = CM_ALLTOALLV, .dtype = CM_FLOAT, .matrix = little, .again = 2},
            {.coll = CM_ALLTOALLV, .dtype = CM_FLOAT, .matrix = nothing}};

        CHECK(rig_once(&s, ops, (int)CM_LEN(ops)), "way %zu", k);
    }
}

/* ---- far ranks, gangs ------------------------------------------------------------------------ */

static void test_far_ranks(void)
{
    for (unsigned k = 0; k < seeds(8, 100); k++) {
        struct rig_setup s = {.n = 3 + (int)k % 2, .force = automatic, .sim = order_of(k / 2)};

        s.reach = k % 2 == 0 ? RIG_FAR : RIG_HALVES;
        s.threads = 32;
        s.inbox_bytes = 512;
        run_mix(&s, 20, 500);
    }
}

/* Operations of all kinds follow each other while the wire is late, by other blocks each time. */
static void test_two_nodes(void)
{
    for (unsigned k = 0; k < seeds(12, 200); k++) {
        struct rig_setup s = {.n = 2 + (int)k % 3, .force = automatic, .sim = order_of(k)};
        uint64_t random = k + 1;
        struct rig_op ops[ROW];
        int nops = 0;

        s.reach = RIG_NODES;
        s.threads = 32;
        s.slot_bytes = 256;
        while (nops < 20) {
            struct rig_op op = any_op(&random, 400);

            op.force = remote_forms[next(&random) % CM_LEN(remote_forms)].force;
            op.force.channels = 1 + (int)(next(&random) % 4);
            op.again = next(&random) % 4 == 0;
            if (has_form(&op.force, op.coll))
                nops = add_op(ops, nops, s.n, op);
        }
        CHECK(rig_once(&s, ops, nops), "n=%d seed %u", s.n, k);
    }
}

static void test_gangs(void)
{
    const struct cm_force *const ways[] = {&automatic, &pass, &shot, &ring, &ring_ll};

    for (unsigned k = 0; k < CM_LEN(ways); k++) {
        struct rig_setup s = {.n = 4, .force = *ways[k], .sim = order_of(k + 1), .gang = true};
        const struct rig_op ops[] = {
            {.coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .count = 900},
            {.coll = CM_BROADCAST, .dtype = CM_UINT8, .count = 77, .root = 2},
            {.coll = CM_ALL_GATHER, .dtype = CM_UINT8, .count = 300, .again = 2}};

        s.force.channels = 3;
        CHECK(rig_once(&s, ops, (int)CM_LEN(ops)), "way %u", k);
    }
}

int main(int argc, char **argv)
{
    RUN_NAMED(test_flags_wrap_in_inboxes);
    RUN_NAMED(test_flags_wrap_in_slots);
    RUN_NAMED(test_payload_is_no_flag);
    RUN_NAMED(test_one_after_the_other);
    RUN_NAMED(test_two_operations_ahead);
    RUN_NAMED(test_replays);
    RUN_NAMED(test_plans_are_uploaded_anew);
    RUN_NAMED(test_nothing_to_send);
    RUN_NAMED(test_far_ranks);
    RUN_NAMED(test_two_nodes);
    RUN_NAMED(test_gangs);
    return test_end();
}
