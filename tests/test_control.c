/*
 * The control plane while all is well: who talks to whom, operations of the team
 * between domains of memory, and what a survey finds. How jobs end is in
 * test_control_ends.c.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/stuck.h"
#include "domains.h"

/* ---- neighbours ---- */

static bool contains(const int32_t *list, int n, int32_t what)
{
    for (int i = 0; i < n; i++)
        if (list[i] == what)
            return true;
    return false;
}

/* Process 2k + 1 leads domain k of n; 2k is in domain 0. */
static void check_neighbours(int n)
{
    int32_t of_proc[64] = {0}, leader[32], lists[32][64];
    struct cm_domains d = {.n = n, .nprocs = 2 * n, .of_proc = of_proc, .leader = leader};
    int many[32], most = 2;

    for (int k = 0; k < n; k++) {
        leader[k] = k == 0 ? 0 : 2 * k + 1;
        of_proc[leader[k]] = k;
    }
    for (int k = 1; k < n; k *= 2)
        most += 2;
    for (int k = 0; k < n; k++) {
        many[k] = cm_control_neighbours(&d, leader[k], lists[k]);
        CHECK(many[k] <= most && (n == 1 || many[k] > 0), "%d domains: %d neighbours", n, many[k]);
        CHECK(!contains(lists[k], many[k], leader[k]), "%d domains: its own", n);
        for (int i = 0; i < many[k]; i++)
            CHECK(!contains(lists[k], i, lists[k][i]), "%d domains: twice", n);
    }
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            CHECK(contains(lists[a], many[a], leader[b]) == contains(lists[b], many[b], leader[a]),
                  "%d domains: %d and %d differ", n, a, b);
    CHECK(cm_control_neighbours(&d, 2, lists[0]) == 0, "%d domains: who does not lead", n);
}

static void test_neighbours(void)
{
    for (int n = 2; n <= 32; n++)
        check_neighbours(n);
}

/* ---- the team ---- */

enum { ROUNDS = 40 };

static uint32_t mix(uint32_t x)
{
    x = (x ^ x >> 16) * 0x45d9f3bU;
    return x ^ x >> 15;
}

static unsigned char byte_of(int rank, int round, size_t i)
{
    return (unsigned char)(rank * 31 + round * 7 + (int)(i % 251));
}

/* Some ranks come at once, some give way, some sleep a little. */
static void dally(int rank, int round)
{
    uint32_t x = mix((uint32_t)(rank * 1000 + round));
    struct timespec ts = {.tv_nsec = (long)(x % 300) * CM_NS_PER_US};

    if (x % 5 == 0)
        nanosleep(&ts, NULL);
    else if (x % 5 < 3)
        sched_yield();
}

static enum cm_status barrier_round(struct domains_rank *r, int round)
{
    struct domains_stage *s = r->p->stage;
    enum cm_status st;

    atomic_store(&s->arrived[r->waiter.rank], round);
    st = cm_team_barrier(&r->team);
    for (int q = 0; st == CM_OK && q < r->team.n; q++)
        atomic_fetch_add(&s->wrong, atomic_load(&s->arrived[q]) < round);
    return st;
}

static enum cm_status gather_round(struct domains_rank *r, int round)
{
    static const size_t sizes[] = {0, 1, 100, 4071, 4072, 4073, CM_TEAM_BYTES};
    size_t bytes = sizes[(size_t)round % CM_LEN(sizes)];
    unsigned char mine[CM_TEAM_BYTES], all[DOMAINS_RANKS * CM_TEAM_BYTES];
    enum cm_status st;
    int wrong = 0;

    for (size_t i = 0; i < bytes; i++)
        mine[i] = byte_of(r->waiter.rank, round, i);
    st = cm_team_gather(&r->team, mine, bytes, all);
    for (int q = 0; st == CM_OK && q < r->team.n; q++)
        for (size_t i = 0; i < bytes; i++)
            wrong += all[(size_t)q * bytes + i] != byte_of(q, round, i);
    atomic_fetch_add(&r->p->stage->wrong, wrong);
    return st;
}

static enum cm_status or_round(struct domains_rank *r, int round)
{
    bool any = false;
    enum cm_status st = cm_team_or(&r->team, r->waiter.rank == round, &any);

    atomic_fetch_add(&r->p->stage->wrong, st == CM_OK && any != (round < r->team.n));
    return st;
}

static enum cm_status work(struct domains_rank *r)
{
    enum cm_status st = CM_OK;

    for (int round = 1; round <= ROUNDS && st == CM_OK; round++) {
        dally(r->waiter.rank, round);
        st = barrier_round(r, round);
        if (st == CM_OK)
            st = gather_round(r, round);
        if (st == CM_OK)
            st = or_round(r, round);
    }
    return st;
}

static void test_all_ranks_meet(void)
{
    for (int mode = CM_PROXY_THREAD; mode <= CM_PROXY_INLINE; mode++)
        for (size_t i = 0; i < (size_t)DOMAINS_SHAPES; i++) {
            struct domains_job j = domains_shape(i, work);
            int status[DOMAINS_PROCS];
            struct domains_stage *s;

            j.mode = (enum cm_proxy_mode)mode;
            s = domains_run(&j, status);
            CHECK(s->wrong == 0, "shape %zu mode %d: %d wrong", i, mode, s->wrong);
            for (int r = 0; r < domains_all_ranks(&j); r++)
                CHECK(s->status[r] == CM_OK, "shape %zu mode %d rank %d: %u", i, mode, r,
                      s->status[r]);
            for (int p = 0; p < j.nprocs; p++)
                CHECK(status[p] == 0, "shape %zu mode %d process %d: 0x%x", i, mode, p,
                      (unsigned)status[p]);
            munmap(s, sizeof(*s));
        }
}

/* ---- surveys ---- */

static const int64_t stale_ns = 150LL * CM_NS_PER_MS;

static void doze(int64_t ns)
{
    struct timespec ts = {.tv_nsec = (long)ns};

    nanosleep(&ts, NULL);
}

/* One rank asks; the last is busy, the others wait for the first. */
static void pose(struct domains_rank *r)
{
    struct cm_diag *d = r->waiter.diag;
    uint32_t k = (uint32_t)r->waiter.rank;

    d->iter = 100 + k;
    d->bytes = (uint64_t)k << 40;
    d->coll = k % CM_NCOLLS;
    d->op = 200 + k;
    d->sig = 300 + k;
    for (uint32_t i = 0; i < CM_LEN(d->sig_parts); i++)
        d->sig_parts[i] = k * 10 + i;
}

static bool as_posed(const struct cm_diag *d, uint32_t k)
{
    bool right = d->iter == 100 + k && d->bytes == (uint64_t)k << 40 && d->coll == k % CM_NCOLLS &&
                 d->op == 200 + k && d->sig == 300 + k;

    for (uint32_t i = 0; i < CM_LEN(d->sig_parts); i++)
        right = right && d->sig_parts[i] == k * 10 + i;
    return right;
}

/* All ranks but the first and the last wait, as far as `r` can know. */
static bool see_waiting(const struct domains_rank *r)
{
    int n = r->team.n, waiting = 0;

    cm_waiter_survey(&r->waiter);
    for (int q = 1; q < n; q++)
        waiting += cm_diag_waits(r->waiter.diag_of(&r->waiter, q), cm_now_ns(), stale_ns);
    return waiting == n - 2;
}

static enum cm_status ask(struct domains_rank *r)
{
    struct domains_stage *s = r->p->stage;
    int n = r->team.n, last = n - 1;
    int64_t until = cm_now_ns() + 10LL * CM_NS_PER_S;
    enum cm_status st;

    pose(r);
    st = cm_team_barrier(&r->team);
    if (st != CM_OK)
        return st;
    if (r->waiter.rank == last)
        while (atomic_load(&s->arrived[0]) == 0 && cm_now_ns() < until)
            doze(CM_NS_PER_MS);
    if (r->waiter.rank > 0)
        return cm_team_barrier(&r->team);
    do
        doze(2 * stale_ns); /* what ranks have waited for before is then no news any more */
    while (!see_waiting(r) && cm_now_ns() < until);
    for (int q = 0; q < n; q++) {
        const struct cm_diag *d = r->waiter.diag_of(&r->waiter, q);
        uint32_t phase = q == 0 || q == last ? CM_AT_TIMED : CM_AT_SYNC;

        atomic_fetch_add(&s->wrong, !as_posed(d, (uint32_t)q) || d->phase != phase);
    }
    atomic_fetch_add(&s->wrong, cm_now_ns() >= until);
    atomic_store(&s->arrived[0], 1);
    return cm_team_barrier(&r->team);
}

static void test_a_survey_finds_what_ranks_do(void)
{
    for (size_t i = 1; i < DOMAINS_SHAPES; i++) {
        struct domains_job j = domains_shape(i, ask);
        int status[DOMAINS_PROCS];
        struct domains_stage *s;

        j.mode = i % 2 == 0 ? CM_PROXY_INLINE : CM_PROXY_THREAD;
        s = domains_run(&j, status);
        CHECK(s->wrong == 0, "shape %zu: %d wrong", i, s->wrong);
        for (int r = 0; r < domains_all_ranks(&j); r++)
            CHECK(s->status[r] == CM_OK, "shape %zu rank %d: %u", i, r, s->status[r]);
        munmap(s, sizeof(*s));
    }
}

int main(void)
{
    RUN(test_neighbours);
    RUN(test_all_ranks_meet);
    RUN(test_a_survey_finds_what_ranks_do);
    return test_end();
}
