/*
 * Slow waiting. A wait that outlives its spins first gives the processor away
 * (the peer may need it), after two milliseconds sleeps, ever longer.
 *
 * Invariant: every slow call looks at the abort word; the clock is read every
 * few yields and at every sleep, and then the deadline is looked at and the
 * rank's own record renewed, so that others see that it is alive and waiting.
 */
#include "base/wait.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/stuck.h"

enum {
    YIELDS_PER_CLOCK = 8,
    YIELD_NS = 2 * CM_NS_PER_MS,          /* so long a wait only yields; ... */
    YIELD_REMOTE_NS = 100 * CM_NS_PER_US, /* ... from where news wake a sleeper, not so long */
    SLEEP_MIN_NS = 50 * CM_NS_PER_US,
    SLEEP_MAX_NS = 500 * CM_NS_PER_US,
    MANY_RANKS = 32,
    MISMATCH_NS = 1 * CM_NS_PER_MS, /* a peer in the same operation comes sooner, mostly */
    SUSPENDED_NS = CM_NS_PER_S      /* a gap longer than this may be ours: see note_time() */
};

static const int64_t survey_ns = 5LL * CM_NS_PER_S; /* longer than a survey takes */

static const char *const phase_words[CM_NPHASES] = {
    [CM_AT_SETUP] = "init",  [CM_AT_WARMUP] = "warmup", [CM_AT_TIMED] = "timed",
    [CM_AT_CHECK] = "check", [CM_AT_SYNC] = "sync",     [CM_AT_FINALIZE] = "finalize",
    [CM_AT_DONE] = "done",   [CM_AT_SILENT] = "silent",
};

const char *cm_phase_text(uint32_t phase)
{
    return phase < CM_NPHASES ? phase_words[phase] : "?";
}

struct cm_diag *cm_waiter_diag(const struct cm_waiter *w, int rank)
{
    return &cm_rank_shared(w->base, w->layout, rank)->diag;
}

bool cm_abort_raise(struct cm_abort *a, enum cm_status st, int rank)
{
    uint32_t running = CM_OK;

    if (!atomic_compare_exchange_strong(&a->status, &running, (uint32_t)st))
        return false;
    atomic_store(&a->rank, (uint32_t)rank);
    return true;
}

enum cm_status cm_abort_status(const struct cm_abort *a)
{
    return (enum cm_status)atomic_load_explicit(&a->status, memory_order_acquire);
}

bool cm_waiter_ended(const struct cm_waiter *w)
{
    return cm_abort_status(w->abort) != CM_OK || (w->attempt != NULL && w->attempt->over);
}

static void set_waits_for(const struct cm_waiter *w, int peer)
{
    atomic_store_explicit(&w->diag->waits_for, peer, memory_order_relaxed);
}

static bool in_operation(const struct cm_diag *d)
{
    uint32_t phase = atomic_load_explicit(&d->phase, memory_order_relaxed);

    return phase == CM_AT_WARMUP || phase == CM_AT_TIMED || phase == CM_AT_CHECK;
}

static bool signatures_differ(const struct cm_waiter *w, int peer)
{
    const struct cm_diag *mine = w->diag, *theirs;

    if (peer < 0 || peer >= w->nranks)
        return false;
    theirs = w->diag_of(w, peer);
    return atomic_load_explicit(&mine->op, memory_order_relaxed) != 0 && in_operation(mine) &&
           in_operation(theirs) &&
           atomic_load_explicit(&theirs->op, memory_order_acquire) ==
               atomic_load_explicit(&mine->op, memory_order_relaxed) &&
           atomic_load_explicit(&theirs->sig, memory_order_relaxed) !=
               atomic_load_explicit(&mine->sig, memory_order_relaxed);
}

/*
 * The peer may be between two operations when we look, with half of its record
 * written. If it has really moved on, what we wait for has come, and the wait
 * ends before the second look.
 */
static bool mismatch_confirmed(struct cm_spin *s, const struct cm_waiter *w, int peer)
{
    bool differ = signatures_differ(w, peer), confirmed = differ && s->suspect;

    s->suspect = differ;
    return confirmed;
}

/* Who asks renews no record. It waits nevertheless, and others who ask should hear so. */
void cm_waiter_survey(const struct cm_waiter *w)
{
    if (w->remote == NULL)
        return;
    atomic_store_explicit(&w->diag->beat_ns, cm_now_ns() + survey_ns, memory_order_relaxed);
    w->remote->survey(w->remote->arg);
    atomic_store_explicit(&w->diag->beat_ns, cm_now_ns(), memory_order_relaxed);
}

/* Ranks outside of it go on. */
static enum cm_status end_attempt(const struct cm_waiter *w, enum cm_status st)
{
    w->attempt->over = true;
    set_waits_for(w, -1);
    return st;
}

enum cm_status cm_fail_mismatch(const struct cm_waiter *w, int peer)
{
    struct cm_text text;

    if (w->attempt != NULL)
        return end_attempt(w, CM_EMISMATCH);
    set_waits_for(w, peer);
    cm_waiter_survey(w);
    cm_mismatch_compose(w, peer, &text);
    set_waits_for(w, -1);
    return cm_abort_because(w, CM_EMISMATCH, &text);
}

static enum cm_status fail_late(const struct cm_spin *s, const struct cm_waiter *w, int peer)
{
    int64_t waited_ns = cm_now_ns() - s->since_ns;
    struct cm_text text;

    cm_waiter_survey(w);
    cm_stuck_compose(w, peer, waited_ns, &text);
    set_waits_for(w, -1);
    return cm_abort_because(w, CM_ETIMEOUT, &text);
}

/*
 * Note that we wait at `now`; returns how long the wait has lasted. A gap of
 * half the deadline means that we were stopped ourselves, not that the peer is
 * late; shorter ones come with a crowded machine and count.
 */
static int64_t note_time(struct cm_spin *s, const struct cm_waiter *w, int peer, int64_t now)
{
    int64_t last = atomic_load_explicit(&w->diag->beat_ns, memory_order_relaxed);

    if (s->since_ns == 0)
        s->since_ns = now;
    else if (now - last > SUSPENDED_NS && now - last > w->timeout_ns / 2)
        s->since_ns += now - last;
    atomic_store_explicit(&w->diag->beat_ns, now, memory_order_relaxed);
    set_waits_for(w, peer);
    return now - s->since_ns;
}

/* With many ranks, longer: their wake-ups alone must leave the processors to who works. */
static int64_t longest_sleep(const struct cm_waiter *w)
{
    return (int64_t)SLEEP_MAX_NS * (1 + w->nranks / MANY_RANKS);
}

static void sleep_longer(struct cm_spin *s, const struct cm_waiter *w)
{
    int64_t ns = s->sleep_ns == 0 ? SLEEP_MIN_NS : s->sleep_ns + s->sleep_ns / 2;
    struct timespec ts;

    s->sleep_ns = ns < longest_sleep(w) ? ns : longest_sleep(w);
    if (w->remote != NULL) {
        w->remote->doze(w->remote->arg, s->sleep_ns);
        return;
    }
    ts = (struct timespec){.tv_sec = 0, .tv_nsec = (long)s->sleep_ns};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL); /* a signal may end it early */
}

enum cm_status cm_spin_slow(struct cm_spin *s, const struct cm_waiter *w, int peer)
{
    int64_t waited, now;

    if (cm_waiter_ended(w)) {
        set_waits_for(w, -1);
        return CM_EABORT;
    }
    if (s->sleep_ns == 0 && s->polls % YIELDS_PER_CLOCK != 0) {
        sched_yield();
        return CM_OK;
    }
    now = cm_now_ns();
    waited = note_time(s, w, peer, now);
    if (w->attempt != NULL && (waited > w->timeout_ns || now > w->attempt->until_ns))
        return end_attempt(w, CM_ETIMEOUT);
    if (waited > w->timeout_ns)
        return fail_late(s, w, peer);
    if (waited >= MISMATCH_NS && mismatch_confirmed(s, w, peer))
        return cm_fail_mismatch(w, peer);
    if (waited < (w->remote != NULL ? YIELD_REMOTE_NS : YIELD_NS) || s->moved)
        sched_yield();
    else
        sleep_longer(s, w);
    return CM_OK;
}
