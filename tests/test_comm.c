/*
 * The communicator's refusals: bad arguments, ranks that disagree about an
 * operation, a rank that never comes. No wait may outlive its deadline.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "engine/comm.h"
#include "test.h"

enum { MAX_N = 4, ARENA = 1 << 20, HALF = 1 << 18, TIMEOUT_MS = 600 };

struct side {
    struct cm_op_args op; /* in and out are filled in */
    bool absent;          /* the rank never calls */
    enum cm_status status;
};

struct job {
    int n;
    struct cm_force force;
    int warm;    /* agreed operations before */
    bool reopen; /* open a second communicator afterwards */
    struct side side[MAX_N];
    struct cm_layout layout;
    void *base;
};

struct arg {
    struct job *job;
    int rank;
};

static struct cm_waiter waiter_of(const struct job *j, int rank)
{
    struct cm_waiter w = {.rank = rank,
                          .nranks = j->n,
                          .spins = 20,
                          .timeout_ns = (int64_t)TIMEOUT_MS * CM_NS_PER_MS,
                          .abort = &((struct cm_shared *)j->base)->abort,
                          .diag_of = cm_waiter_diag,
                          .base = j->base,
                          .layout = &j->layout};

    w.diag = cm_waiter_diag(&w, rank);
    return w;
}

static void *run_side(void *p)
{
    static const int32_t world[MAX_N] = {0, 1, 2, 3};
    const struct arg *a = p;
    struct job *j = a->job;
    struct side *s = &j->side[a->rank];
    size_t arena = cm_arena_at(&j->layout, a->rank);
    struct cm_waiter w = waiter_of(j, a->rank);
    struct cm_comm_args ca = {.rank = a->rank,
                              .n = j->n,
                              .world = world,
                              .base = j->base,
                              .layout = &j->layout,
                              .waiter = &w,
                              .scratch_at = arena + 2 * HALF,
                              .scratch_bytes = HALF,
                              .force = j->force};
    struct cm_op_args warm = {.coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .count = 3};
    struct cm_comm *c = NULL;

    s->status = cm_comm_open(&ca, &c);
    s->op.in = warm.in = (char *)j->base + arena;
    s->op.out = warm.out = (char *)j->base + arena + HALF;
    atomic_store(&w.diag->phase, CM_AT_TIMED);
    for (int k = 0; k < j->warm && s->status == CM_OK; k++)
        s->status = cm_comm_run(c, &warm);
    if (s->status == CM_OK && !s->absent)
        s->status = cm_comm_run(c, &s->op);
    cm_comm_close(c);
    c = NULL;
    if (j->reopen)
        s->status = cm_comm_open(&ca, &c);
    return NULL;
}

static bool run_job(struct job *j)
{
    struct arg args[MAX_N];
    pthread_t tid[MAX_N];

    j->layout = (struct cm_layout){
        .nranks = j->n, .channels = 2, .depth = 4, .slot_bytes = 4096, .arena_bytes = ARENA};
    if (cm_layout_fill(&j->layout) != CM_OK)
        return false;
    j->base = mmap(NULL, j->layout.total, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (j->base == MAP_FAILED)
        return false;
    for (int r = 0; r < j->n; r++) {
        args[r] = (struct arg){j, r};
        if (pthread_create(&tid[r], NULL, run_side, &args[r]) != 0)
            abort();
    }
    for (int r = 0; r < j->n; r++)
        pthread_join(tid[r], NULL);
    munmap(j->base, j->layout.total);
    return true;
}

static const struct cm_op_args usual = {
    .coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .op = CM_SUM, .count = 100};

static const struct cm_force ways[] = {
    {NULL, -1, CM_PROTO_AUTO, 0, 0},
    {"direct", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0},
    {"ring", CM_MODE_COPY, CM_PROTO_SIMPLE, 0, 0},
    {"ring", CM_MODE_COPY, CM_PROTO_LL, 0, 0},
    {"tree", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0},
};

static const char *name_of(const struct cm_force *way)
{
    return way->algo != NULL ? way->algo : "auto";
}

/* Rank 1 of three runs another operation: one rank says so, the others end with it. */
static void check_odd_one(const struct cm_force *way, const struct cm_op_args *odd, int warm)
{
    struct job j = {.n = 3, .force = *way, .warm = warm};
    int told = 0;

    for (int r = 0; r < j.n; r++)
        j.side[r].op = r == 1 ? *odd : usual;
    CHECK(run_job(&j), "%s", name_of(way));
    for (int r = 0; r < j.n; r++) {
        enum cm_status st = j.side[r].status;
        bool leaf = st == CM_OK && odd->coll == CM_REDUCE && r == 1; /* it sent and was done */

        told += st == CM_EMISMATCH;
        CHECK(leaf || st == CM_EMISMATCH || st == CM_EABORT, "%s warm %d rank %d: status %d",
              name_of(way), warm, r, st);
    }
    CHECK(told == 1, "%s warm %d: %d ranks told", name_of(way), warm, told);
}

static void test_ranks_that_disagree_are_told(void)
{
    struct cm_op_args odd[5] = {usual, usual, usual, usual, usual};

    odd[0].dtype = CM_INT32;
    odd[1].op = CM_MAX;
    odd[2].count = 101;
    odd[3].coll = CM_REDUCE;
    odd[4].count = 50000; /* left alone, one side takes LL slots, the other direct mode */
    for (size_t way = 0; way < CM_LEN(ways); way++)
        for (size_t k = 0; k < CM_LEN(odd); k++)
            check_odd_one(&ways[way], &odd[k], (int)k * 5);
}

static void test_absent_rank_is_a_time_out(void)
{
    for (size_t way = 0; way < CM_LEN(ways); way++) {
        struct job j = {.n = 3, .force = ways[way], .warm = 2};
        int64_t start = cm_now_ns(), took;
        int told = 0;

        for (int r = 0; r < j.n; r++)
            j.side[r] = (struct side){.op = usual, .absent = r == 2};
        CHECK(run_job(&j), "way %zu", way);
        took = (cm_now_ns() - start) / CM_NS_PER_MS;
        for (int r = 0; r < 2; r++) {
            told += j.side[r].status == CM_ETIMEOUT;
            CHECK(j.side[r].status == CM_ETIMEOUT || j.side[r].status == CM_EABORT,
                  "way %zu rank %d: status %d", way, r, j.side[r].status);
        }
        CHECK(told == 1, "way %zu: %d ranks told", way, told);
        CHECK(took >= TIMEOUT_MS && took < 4 * TIMEOUT_MS, "way %zu: %lld ms", way,
              (long long)took);
    }
}

static void test_bad_arguments_are_refused(void)
{
    struct {
        struct cm_op_args op;
        struct cm_force force;
        enum cm_status want;
    } rows[] = {
        {usual, {.algo = "recdbl", .mode = -1}, CM_OK},
        {{.coll = CM_BROADCAST, .count = 5, .root = 1}, {.mode = -1}, CM_EINVAL},
        {{.coll = CM_BROADCAST, .count = 5, .root = -1}, {.mode = -1}, CM_EINVAL},
        {{.coll = CM_ALLTOALL, .count = 5, .in_place = true}, {.mode = -1}, CM_EUNSUP},
        {{.coll = CM_ALLTOALLV, .count = 5}, {.mode = -1}, CM_EINVAL},
        {{.coll = CM_ALLTOALL, .count = 5}, {.algo = "tree", .mode = -1}, CM_EUNSUP},
        {{.coll = CM_NCOLLS, .count = 5}, {.mode = -1}, CM_EINVAL},
        {{.coll = CM_ALL_REDUCE, .count = 0}, {.mode = -1}, CM_OK},
    };

    for (size_t k = 0; k < CM_LEN(rows); k++) {
        struct job j = {.n = 1, .force = rows[k].force};

        j.side[0].op = rows[k].op;
        CHECK(run_job(&j), "row %zu", k);
        CHECK(j.side[0].status == rows[k].want, "row %zu: status %d", k, j.side[0].status);
    }
}

static void test_second_communicator_is_refused(void)
{
    struct job j = {.n = 2, .force = {.mode = -1}, .warm = 1, .reopen = true};

    j.side[0].op = j.side[1].op = usual;
    CHECK(run_job(&j), "job");
    for (int r = 0; r < j.n; r++)
        CHECK(j.side[r].status == CM_EINVAL, "rank %d: status %d", r, j.side[r].status);
}

static void test_buffers_beyond_the_arena_are_refused(void)
{
    struct job j = {.n = 1, .force = {.mode = -1}};

    j.side[0].op = usual;
    j.side[0].op.count = ARENA;
    CHECK(run_job(&j), "job");
    CHECK(j.side[0].status == CM_EINVAL, "status %d", j.side[0].status);
    j.side[0].op.count = SIZE_MAX / 4;
    CHECK(run_job(&j), "job");
    CHECK(j.side[0].status == CM_EINVAL, "status %d", j.side[0].status);
}

int main(void)
{
    RUN(test_second_communicator_is_refused);
    RUN(test_buffers_beyond_the_arena_are_refused);
    RUN(test_bad_arguments_are_refused);
    RUN(test_ranks_that_disagree_are_told);
    RUN(test_absent_rank_is_a_time_out);
    return test_end();
}
