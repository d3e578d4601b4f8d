/*
 * The ib wire's threads and executors that sleep: each is woken by what it sleeps for. Sleeps last
 * ten seconds, so one that is missed shows.
 */
#define _GNU_SOURCE
#include "ib_double.h"
#include "transport/ib_int.h"

static void test_a_sleeping_wire_is_woken(void)
{
    enum { ROUNDS = 1000 };
    struct ib_how how = ib_usual();
    struct double_setup setup = double_usual();
    struct ib_side s[2];
    int64_t until = ib_soon(), start;
    int i = 0;

    how.p.spins = 0;
    how.verbs = verbs_double();
    verbs_double_begin(&setup);
    CHECK(ib_pair(s, &how), "no pair");
    while (cm_ib_stats(s[0].ib).sleeps == 0 && cm_now_ns() < until)
        sched_yield();
    start = cm_now_ns();
    for (; i < ROUNDS && !test_state.broken && cm_now_ns() < start + CM_NS_PER_S; i++) {
        int64_t t = cm_now_ns();

        CHECK(proxied_put(&s[0].p, 0), "slot %d", i);
        cm_ib_progress(s[0].ib);
        while (proxied_get(&s[1].p, 0) == 0 && cm_now_ns() < until)
            sched_yield();
        cm_ib_progress(s[1].ib);
        /* Without the event it sleeps for ten seconds. */
        t = cm_now_ns() - t;
        CHECK(t < 5LL * CM_NS_PER_S, "slot %d took %.3f s", i, (double)t / CM_NS_PER_S);
        while (atomic_load(&s[0].p.send[0]->head) + 2 < s[0].p.sent[0] && cm_now_ns() < until)
            sched_yield();
    }
    CHECK(cm_ib_stats(s[0].ib).wakes > 0, "nobody was woken");
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("sleep", 0);
}

/* Springs once, in the thread of side 1, as it is about to ask for an event. */
static struct trap {
    struct ib_side *from;
    const struct ibv_cq *cq;
    _Atomic bool due;
} trap;

static int notify_late(struct ibv_cq *cq, int solicited_only)
{
    if (atomic_load(&trap.due) && cq == trap.cq && atomic_exchange(&trap.due, false)) {
        proxied_put(&trap.from->p, 0);
        while (verbs_double_pending(cq) == 0)
            cm_ib_progress(trap.from->ib);
    }
    return verbs_double()->req_notify_cq(cq, solicited_only);
}

/* A completion that comes just before the event is asked for gives none. */
static void test_no_completion_is_slept_through(void)
{
    struct ib_how how = ib_usual();
    struct double_setup setup = double_usual();
    struct ib_side s[2];
    struct cm_verbs late;
    int64_t start;

    verbs_double_begin(&setup);
    late = *verbs_double();
    late.req_notify_cq = notify_late;
    how.verbs = &late;
    how.p.spins = 0;
    how.p.mode[0] = CM_PROXY_INLINE;
    CHECK(ib_pair(s, &how), "no pair");
    trap.from = &s[0];
    trap.cq = s[1].ib->cq;
    atomic_store(&trap.due, true);
    start = cm_now_ns();
    while (proxied_get(&s[1].p, 0) == 0 && cm_now_ns() < start + 8LL * CM_NS_PER_S) {
        if (atomic_load(&trap.due))
            cm_ib_progress(s[1].ib);
        sched_yield();
    }
    start = cm_now_ns() - start;
    CHECK(start < 5LL * CM_NS_PER_S, "it slept for %.3f s", (double)start / CM_NS_PER_S);
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("late event", 0);
}

/* Who waits inline sleeps until something comes. */
static void test_an_executor_that_dozes_is_woken(void)
{
    struct ib_how how = ib_usual();
    struct double_setup setup = double_usual();
    struct ib_side s[2];
    int64_t start = cm_now_ns();
    int dozes = 0;

    how.p.mode[0] = how.p.mode[1] = CM_PROXY_INLINE;
    how.verbs = verbs_double();
    verbs_double_begin(&setup);
    CHECK(ib_pair(s, &how), "no pair");
    proxied_put(&s[0].p, 0);
    cm_ib_progress(s[0].ib);
    for (; proxied_get(&s[1].p, 0) == 0 && dozes < 100; dozes++)
        cm_ib_doze(s[1].ib, 8LL * CM_NS_PER_S);
    CHECK(s[1].p.got[0] == 1 && cm_now_ns() < start + 5LL * CM_NS_PER_S, "%d dozes, %.1f s", dozes,
          (double)(cm_now_ns() - start) / CM_NS_PER_S);
    start = cm_now_ns();
    cm_ib_doze(s[1].ib, 20LL * CM_NS_PER_MS);
    cm_ib_doze(s[1].ib, 20LL * CM_NS_PER_MS); /* no event is left that would end it at once */
    CHECK(cm_now_ns() >= start + 20LL * CM_NS_PER_MS, "it did not doze");
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("doze", 0);
}

/* Inline: what executors leave when they cease to wait, the thread finishes. */
static void test_the_thread_finishes_what_is_left(void)
{
    struct ib_how how = ib_usual();
    struct double_setup setup = double_usual();
    struct ib_side s[2];
    int64_t until = ib_soon();
    int put = 0, got = 0;

    how.p.mode[0] = CM_PROXY_INLINE;
    how.p.depth = 2;
    how.verbs = verbs_double();
    verbs_double_begin(&setup);
    CHECK(ib_pair(s, &how), "no pair");
    while (put < 4 && cm_now_ns() < until) {
        put += proxied_put(&s[0].p, 0);
        cm_ib_progress(s[0].ib);
    }
    cm_ib_rest(s[0].ib); /* and nobody drives side 0 any more */
    while (got < put && cm_now_ns() < until) {
        got += proxied_get(&s[1].p, 0);
        cm_ib_progress(s[1].ib);
        sched_yield();
    }
    CHECK(got == put, "%d slots came of %d", got, put);
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("rest", 0);
}

int main(void)
{
    RUN(test_a_sleeping_wire_is_woken);
    RUN(test_no_completion_is_slept_through);
    RUN(test_an_executor_that_dozes_is_woken);
    RUN(test_the_thread_finishes_what_is_left);
    return test_end();
}
