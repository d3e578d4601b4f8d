/*
 * The team's barrier and gather: threads, processes and both; deadlines and
 * aborts. A barrier is right if nobody passes it before all have arrived.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "capture.h"
#include "common/team.h"
#include "forked.h"
#include "test.h"
#include "transport/wire.h"

enum { MAX_N = 64, ROUNDS = 60, FEW_ROUNDS = 6, LATE_ROUNDS = 3 };
static const int64_t long_ns = 20LL * CM_NS_PER_S;
static const int64_t short_ns = 100 * CM_NS_PER_MS;

struct world {
    struct cm_layout layout;
    struct cm_segment *segment;
    void *base;
    int64_t timeout_ns;
    int rounds;
    int absent; /* this rank leaves before the last round; -1: nobody */
};

struct member {
    struct world *t;
    struct cm_waiter waiter;
    struct cm_team team;
    pthread_t thread;
    int wrong;
    enum cm_status status;
};

/* Each rank has an arena of one page; its first word counts its arrivals. */
static _Atomic int *arrivals(const struct world *t, int rank)
{
    return (_Atomic int *)((char *)t->base + cm_arena_at(&t->layout, rank));
}

static bool open_world(struct world *t, const struct cm_boot *b, int n)
{
    t->layout = (struct cm_layout){
        .nranks = n, .channels = 1, .depth = 2, .slot_bytes = 64, .arena_bytes = 4096};
    t->absent = -1;
    t->rounds = n > 9 ? FEW_ROUNDS : ROUNDS;
    t->timeout_ns = long_ns;
    if (cm_layout_fill(&t->layout) != CM_OK ||
        cm_segment_open(cm_wire_choose(b), b, &t->layout, long_ns, &t->segment) != CM_OK)
        return false;
    t->base = cm_segment_base(t->segment);
    return true;
}

static void join_team(struct world *t, struct member *m, int rank)
{
    m->t = t;
    m->waiter = (struct cm_waiter){.rank = rank,
                                   .nranks = t->layout.nranks,
                                   .spins = 20,
                                   .timeout_ns = t->timeout_ns,
                                   .abort = &((struct cm_shared *)t->base)->abort,
                                   .diag = &cm_rank_shared(t->base, &t->layout, rank)->diag,
                                   .diag_of = cm_waiter_diag,
                                   .base = t->base,
                                   .layout = &t->layout};
    m->waiter.diag->waits_for = -1;
    m->waiter.diag->phase = CM_AT_TIMED;
    m->waiter.diag->pid = (uint32_t)getpid();
    snprintf(m->waiter.diag->host, sizeof(m->waiter.diag->host), "here");
    m->team = (struct cm_team){.rank = rank,
                               .n = t->layout.nranks,
                               .waiter = &m->waiter,
                               .base = t->base,
                               .layout = &t->layout};
}

static enum cm_status barrier_round(struct member *m, int round)
{
    enum cm_status st;

    atomic_store_explicit(arrivals(m->t, m->team.rank), round, memory_order_relaxed);
    st = cm_team_barrier(&m->team);
    for (int r = 0; st == CM_OK && r < m->team.n; r++)
        m->wrong += atomic_load_explicit(arrivals(m->t, r), memory_order_relaxed) < round;
    return st;
}

/* Records of different length per round, up to the largest. */
static enum cm_status gather_round(struct member *m, int round)
{
    static const size_t sizes[] = {0, 1, 7, 64, 1000, CM_TEAM_BYTES};
    size_t bytes = sizes[(size_t)round % CM_LEN(sizes)];
    unsigned char mine[CM_TEAM_BYTES], *all = malloc((size_t)m->team.n * CM_TEAM_BYTES);
    enum cm_status st;

    if (all == NULL)
        return CM_ENOMEM;
    memset(mine, (m->team.rank * 31 + round) & 255, sizeof(mine));
    st = cm_team_gather(&m->team, mine, bytes, all);
    for (int r = 0; st == CM_OK && r < m->team.n; r++)
        for (size_t i = 0; i < bytes; i++)
            m->wrong += all[(size_t)r * bytes + i] != ((r * 31 + round) & 255);
    free(all);
    return st;
}

static enum cm_status or_round(struct member *m, int round)
{
    bool any = false;
    enum cm_status st = cm_team_or(&m->team, m->team.rank == round, &any);

    m->wrong += st == CM_OK && any != (round < m->team.n);
    return st;
}

static void *work(void *arg)
{
    struct member *m = arg;
    enum cm_status st = CM_OK;

    for (int round = 1; round <= m->t->rounds && st == CM_OK; round++) {
        if (round == LATE_ROUNDS && m->team.rank == m->t->absent)
            break;
        st = barrier_round(m, round);
        if (st == CM_OK)
            st = gather_round(m, round);
        if (st == CM_OK)
            st = or_round(m, round);
    }
    m->status = st;
    return NULL;
}

/* Ranks first .. first + local - 1 as threads of this process; false if anything was wrong. */
static bool work_locally(struct world *t, struct member *m, int first, int local)
{
    bool good = true;

    for (int i = 0; i < local; i++)
        join_team(t, &m[i], first + i);
    for (int i = 0; i < local; i++)
        if (pthread_create(&m[i].thread, NULL, work, &m[i]) != 0)
            abort();
    for (int i = 0; i < local; i++) {
        pthread_join(m[i].thread, NULL);
        good = good && m[i].wrong == 0 && m[i].status == CM_OK;
        good = good && m[i].waiter.diag->phase == CM_AT_TIMED;
    }
    return good;
}

static void test_threads(void)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 64};
    struct cm_boot alone = {.nprocs = 1};

    for (size_t i = 0; i < CM_LEN(sizes); i++) {
        struct member m[MAX_N] = {{.wrong = 0}};
        struct world t;

        CHECK(open_world(&t, &alone, sizes[i]), "%d ranks", sizes[i]);
        CHECK(work_locally(&t, m, 0, sizes[i]), "%d ranks: rank 0 status %d, %d wrong", sizes[i],
              m[0].status, m[0].wrong);
        cm_segment_close(t.segment);
    }
}

/* Process p runs p + 1 ranks (with one process: one). */
static int mixed(struct cm_boot *b, void *arg)
{
    struct member m[MAX_N] = {{.wrong = 0}};
    struct world t;
    int n = b->nprocs * (b->nprocs + 1) / 2;
    bool good;

    (void)arg;
    if (!open_world(&t, b, n))
        return 2;
    good = work_locally(&t, m, b->proc * (b->proc + 1) / 2, b->proc + 1);
    cm_segment_close(t.segment);
    return !good;
}

static void test_processes_with_threads(void)
{
    for (int n = 1; n <= 4; n++) {
        int status[FORKED_MAX];

        CHECK(forked_run(n, mixed, NULL, status), "%d processes", n);
        for (int p = 0; p < n; p++)
            CHECK(WIFEXITED(status[p]) && WEXITSTATUS(status[p]) == 0, "process %d of %d: 0x%x", p,
                  n, (unsigned)status[p]);
    }
}

static void test_an_absent_rank_is_named(void)
{
    struct cm_boot alone = {.nprocs = 1};
    struct member m[4] = {{.wrong = 0}};
    int timeouts = 0, aborts = 0;
    struct capture c;
    struct world t;

    CHECK(open_world(&t, &alone, 4), "4 ranks");
    t.absent = 2;
    t.timeout_ns = short_ns;
    capture_begin(&c, STDERR_FILENO);
    CHECK(!work_locally(&t, m, 0, 4), "nobody noticed");
    capture_end(&c);
    for (int r = 0; r < 4; r++) {
        timeouts += m[r].status == CM_ETIMEOUT;
        aborts += m[r].status == CM_EABORT;
    }
    CHECK(timeouts == 1 && aborts == 2, "%d time-outs, %d aborts", timeouts, aborts);
    CHECK(strstr(c.text, "phase sync") != NULL, "got: %s", c.text);
    CHECK(strstr(c.text, "did not arrive: rank 2 host here") != NULL, "got: %s", c.text);
    cm_segment_close(t.segment);
}

int main(void)
{
    RUN(test_threads);
    RUN(test_processes_with_threads);
    RUN(test_an_absent_rank_is_named);
    return test_end();
}
