/*
 * Communicators that follow each other on one segment, with other ranks in another
 * order each time: they go on counting, and nothing of the former is taken for news.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "engine/comm.h"
#include "test.h"

enum { WORLD = 6, EPOCH = 1000, LONG = 20000, ARENA = 1 << 20, HALF = 1 << 18 };

static const struct cm_force ways[] = {
    {NULL, -1, CM_PROTO_AUTO, 0, 0},
    {"direct", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0},
    {"ring", CM_MODE_COPY, CM_PROTO_SIMPLE, 0, 0},
    {"ring", CM_MODE_COPY, CM_PROTO_LL, 0, 0},
    {"tree", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0},
};

/* Who is together in a round, in the order of the communicator; -1: no more. */
static const int32_t meetings[][2][WORLD] = {
    {{0, 1, 2, 3, 4, 5}, {-1}},  {{0, 1, -1}, {2, 3, 4, -1}}, {{4, 0, 2, -1}, {5, 3, -1}},
    {{1, -1}, {5, 4, 3, 2, -1}}, {{1, 0, -1}, {3, 2, -1}},    {{5, 4, 3, 2, 1, 0}, {-1}},
};

struct reunion {
    struct cm_layout layout;
    void *base;
    struct cm_force force;
    pthread_barrier_t met;
    _Atomic int wrong, failed;
};

struct guest {
    struct reunion *job;
    int rank;
};

/* An all_reduce of ones, short and long, some times: the sum is the number of ranks. */
static enum cm_status sum_up(struct reunion *j, struct cm_comm *c, float *in, int n)
{
    static const size_t counts[] = {1, 7, 3000, LONG};
    float *out = in + LONG;
    enum cm_status st = CM_OK;

    for (int i = 0; st == CM_OK && i < 12; i++) {
        struct cm_op_args op = {.coll = CM_ALL_REDUCE,
                                .dtype = CM_FLOAT,
                                .count = counts[i % (int)CM_LEN(counts)],
                                .in = in,
                                .out = out};

        for (size_t k = 0; k < op.count; k++)
            in[k] = (float)(i + 1);
        st = cm_comm_run(c, &op);
        for (size_t k = 0; st == CM_OK && k < op.count; k++)
            j->wrong += out[k] != (float)(n * (i + 1));
    }
    return st;
}

static struct cm_waiter waiter_of(const struct reunion *j, int rank)
{
    struct cm_waiter w = {.rank = rank,
                          .nranks = WORLD,
                          .spins = 20,
                          .timeout_ns = 20LL * CM_NS_PER_S,
                          .abort = &((struct cm_shared *)j->base)->abort,
                          .diag_of = cm_waiter_diag,
                          .base = j->base,
                          .layout = &j->layout};

    w.diag = cm_waiter_diag(&w, rank);
    return w;
}

static enum cm_status meet_once(struct reunion *j, int rank, const int32_t *with, uint64_t round)
{
    struct cm_waiter w = waiter_of(j, rank);
    size_t arena = cm_arena_at(&j->layout, rank);
    struct cm_comm_args a = {.world = with,
                             .base = j->base,
                             .layout = &j->layout,
                             .waiter = &w,
                             .scratch_at = arena + 2 * HALF,
                             .scratch_bytes = HALF,
                             .force = j->force,
                             .first_op = (round + 1) * EPOCH};
    struct cm_comm *c = NULL;
    enum cm_status st;

    for (a.n = 0; a.n < WORLD && with[a.n] >= 0; a.n++)
        a.rank = with[a.n] == rank ? a.n : a.rank;
    st = cm_comm_open(&a, &c);
    if (st == CM_OK)
        st = sum_up(j, c, (float *)(void *)((char *)j->base + arena), a.n);
    cm_comm_close(c);
    return st;
}

static bool includes(const int32_t *with, int rank)
{
    for (int i = 0; i < WORLD && with[i] >= 0; i++)
        if (with[i] == rank)
            return true;
    return false;
}

static void *visit(void *arg)
{
    const struct guest *g = arg;

    for (size_t round = 0; round < CM_LEN(meetings); round++) {
        for (int k = 0; k < 2; k++)
            if (includes(meetings[round][k], g->rank) &&
                meet_once(g->job, g->rank, meetings[round][k], round) != CM_OK)
                g->job->failed++;
        pthread_barrier_wait(&g->job->met);
    }
    return NULL;
}

static void reunite(struct reunion *j)
{
    struct guest guests[WORLD];
    pthread_t tid[WORLD];

    pthread_barrier_init(&j->met, NULL, WORLD);
    for (int r = 0; r < WORLD; r++) {
        guests[r] = (struct guest){j, r};
        if (pthread_create(&tid[r], NULL, visit, &guests[r]) != 0)
            abort();
    }
    for (int r = 0; r < WORLD; r++)
        pthread_join(tid[r], NULL);
    pthread_barrier_destroy(&j->met);
}

static bool map_reunion(struct reunion *j)
{
    j->layout = (struct cm_layout){
        .nranks = WORLD, .channels = 2, .depth = 4, .slot_bytes = 4096, .arena_bytes = ARENA};
    if (cm_layout_fill(&j->layout) != CM_OK)
        return false;
    j->base = mmap(NULL, j->layout.total, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return j->base != MAP_FAILED;
}

static void test_communicators_follow_each_other(void)
{
    for (size_t way = 0; way < CM_LEN(ways); way++) {
        struct reunion j = {.force = ways[way]};

        CHECK(map_reunion(&j), "%s", ways[way].algo != NULL ? ways[way].algo : "auto");
        reunite(&j);
        CHECK(j.failed == 0 && j.wrong == 0, "%s mode %d: %d failed, %d wrong",
              ways[way].algo != NULL ? ways[way].algo : "auto", ways[way].mode, j.failed, j.wrong);
        munmap(j.base, j.layout.total);
    }
}

static void test_numbers_must_grow(void)
{
    struct reunion j = {.force = {.mode = -1}};
    static const int32_t alone[] = {3, -1};

    CHECK(map_reunion(&j), "map");
    CHECK(meet_once(&j, 3, alone, 5) == CM_OK, "5");
    CHECK(meet_once(&j, 3, alone, 5) == CM_EINVAL, "5 again");
    CHECK(meet_once(&j, 3, alone, 4) == CM_EINVAL, "4");
    CHECK(meet_once(&j, 3, alone, CM_MAX_OP / EPOCH + 1) == CM_EINVAL, "too large");
    CHECK(meet_once(&j, 3, alone, CM_MAX_OP / EPOCH - 1) == CM_OK, "nearly too large");
    munmap(j.base, j.layout.total);
}

/* What an operation left behind that nobody waited for is not taken for the next one's. */
static void test_left_overs_are_discarded(void)
{
    struct reunion j = {.force = ways[2]};
    static const int32_t both[] = {0, 1};
    struct cm_port_lines *port;

    CHECK(map_reunion(&j), "map");
    port = (struct cm_port_lines *)((char *)j.base + cm_port_at(&j.layout, 0, 1, 1));
    atomic_store(&port->tail, 7);
    atomic_store(&port->head, 4);
    cm_comm_discard(j.base, &j.layout, 1, both, 2);
    CHECK(atomic_load(&port->head) == 7, "head %llu", (unsigned long long)atomic_load(&port->head));
    reunite(&j);
    CHECK(j.failed == 0 && j.wrong == 0, "%d failed, %d wrong", j.failed, j.wrong);
    munmap(j.base, j.layout.total);
}

/* A wait in an attempt ends it, and neither the job nor anybody's output. */
static void test_an_attempt_may_fail_alone(void)
{
    struct reunion j = {.force = ways[2]};
    static const int32_t both[] = {0, 1};
    struct cm_attempt attempt = {.until_ns = INT64_MAX};
    struct cm_waiter w;
    struct cm_comm *c = NULL;
    enum cm_status st;

    CHECK(map_reunion(&j), "map");
    w = waiter_of(&j, 0);
    w.timeout_ns = 20 * CM_NS_PER_MS;
    w.attempt = &attempt;
    st = cm_comm_open(&(struct cm_comm_args){.n = 2,
                                             .world = both,
                                             .base = j.base,
                                             .layout = &j.layout,
                                             .waiter = &w,
                                             .force = j.force},
                      &c);
    CHECK(st == CM_OK, "open: status %d", st);
    st = sum_up(&j, c, (float *)(void *)((char *)j.base + cm_arena_at(&j.layout, 0)), 2);
    CHECK(st == CM_ETIMEOUT && attempt.over, "status %d", st);
    CHECK(cm_abort_status(w.abort) == CM_OK, "the job was ended");
    CHECK(sum_up(&j, c, (float *)(void *)((char *)j.base + cm_arena_at(&j.layout, 0)), 2) ==
              CM_EABORT,
          "after the end");
    cm_comm_close(c);
    munmap(j.base, j.layout.total);
}

int main(void)
{
    RUN(test_communicators_follow_each_other);
    RUN(test_numbers_must_grow);
    RUN(test_left_overs_are_discarded);
    RUN(test_an_attempt_may_fail_alone);
    return test_end();
}
