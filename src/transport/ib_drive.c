/*
 * The wire's loop: take completions, post what is due. Whoever drives holds
 * `busy`, and nobody waits for it. Sleeping and waking are as in the proxy
 * (drive.c): both sides change `asleep` by an exchange.
 *
 * Before it sleeps the thread asks the adapter for an event with the next
 * completion, and looks once more.
 *
 * In inline mode the thread finishes what executors left when they ceased to
 * wait, and looks at what the adapter reports by itself.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/wait.h"
#include "transport/ib_int.h"

enum {
    TURNS_PER_LOOK = 4096,   /* at events that no request caused */
    LONGEST_SLEEP_MS = 10000 /* nothing is expected of its end */
};

/* ---- one turn; busy is held ---- */

static bool turn(struct cm_ib *ib)
{
    bool moved = cm_ib_hear(ib);

    for (int i = 0; i < ib->nqps; i++)
        moved |= cm_ib_speak(ib->qps[i]);
    if (ib->turns++ % TURNS_PER_LOOK == 0)
        cm_ib_async_events(ib);
    return moved;
}

static void take_busy(struct cm_ib *ib)
{
    while (atomic_exchange_explicit(&ib->busy, true, memory_order_acquire))
        sched_yield(); /* for a turn */
}

static void release_busy(struct cm_ib *ib)
{
    atomic_store_explicit(&ib->busy, false, memory_order_release);
}

bool cm_ib_drive(struct cm_ib *ib)
{
    bool moved;

    if (atomic_load_explicit(&ib->busy, memory_order_relaxed) ||
        atomic_exchange_explicit(&ib->busy, true, memory_order_acquire))
        return false;
    moved = turn(ib);
    release_busy(ib);
    return moved;
}

bool cm_ib_unfinished(struct cm_ib *ib)
{
    bool left = false;

    take_busy(ib);
    for (int i = 0; i < ib->nqps && !left; i++)
        left = cm_ib_owes(ib->qps[i]);
    release_busy(ib);
    return left;
}

struct cm_ib_stats cm_ib_stats(struct cm_ib *ib)
{
    struct cm_ib_stats s;

    take_busy(ib);
    s = ib->stats;
    release_busy(ib);
    s.sleeps = atomic_load_explicit(&ib->sleeps, memory_order_relaxed);
    s.wakes = atomic_load_explicit(&ib->wakes, memory_order_relaxed);
    return s;
}

/* ---- waiting for the adapter ---- */

static void take_completion_events(struct cm_ib *ib)
{
    struct ibv_cq *cq;
    void *arg;
    unsigned n = 0;

    while (ib->verbs.get_cq_event(ib->channel, &cq, &arg) == 0)
        n++;
    if (n > 0)
        ib->verbs.ack_cq_events(ib->cq, n);
}

void cm_ib_await(struct cm_ib *ib, bool completions, int ms)
{
    struct pollfd news[] = {{.fd = ib->wake, .events = POLLIN},
                            {.fd = ib->dev.context->async_fd, .events = POLLIN},
                            {.fd = completions ? ib->channel->fd : -1, .events = POLLIN}};
    eventfd_t count;

    poll(news, CM_LEN(news), ms);
    if ((news[0].revents & POLLIN) != 0)
        (void)!eventfd_read(ib->wake, &count);
    if ((news[1].revents & POLLIN) != 0) {
        take_busy(ib);
        cm_ib_async_events(ib);
        release_busy(ib);
    }
    if ((news[2].revents & POLLIN) != 0)
        take_completion_events(ib);
}

/* ---- the thread ---- */

/* Somebody may be at it: then after him, for he need not have seen what we have. */
static bool surely_drive(struct cm_ib *ib)
{
    bool moved;

    take_busy(ib);
    moved = turn(ib);
    release_busy(ib);
    return moved;
}

static void sleep_until_news(struct cm_ib *ib)
{
    eventfd_t count;

    atomic_exchange(&ib->asleep, true);
    ib->verbs.req_notify_cq(ib->cq, 0);
    if (!surely_drive(ib)) {
        atomic_fetch_add_explicit(&ib->sleeps, 1, memory_order_relaxed);
        cm_ib_await(ib, true, LONGEST_SLEEP_MS);
    }
    if (!atomic_exchange(&ib->asleep, false))
        (void)!eventfd_read(ib->wake, &count); /* somebody woke us, or is just about to */
}

void *cm_ib_run(void *arg)
{
    struct cm_ib *ib = arg;
    int idle = 0;

    while (!atomic_load(&ib->stop)) {
        if (cm_ib_drive(ib)) {
            idle = 0;
        } else if (++idle > ib->a.spins) {
            sleep_until_news(ib);
            idle = 0;
        } else if (ib->a.crowded) {
            sched_yield();
        } else {
            cm_pause();
        }
    }
    return NULL;
}

/* Until nothing is left, or executors have to do something first. */
static void finish(struct cm_ib *ib)
{
    ib->verbs.req_notify_cq(ib->cq, 0);
    while (surely_drive(ib))
        continue;
    atomic_store(&ib->handed, false); /* first: who hands over from now on calls again */
    if (cm_ib_unfinished(ib))
        atomic_store(&ib->handed, true);
}

void *cm_ib_keep_going(void *arg)
{
    struct cm_ib *ib = arg;

    while (!atomic_load(&ib->stop)) {
        cm_ib_await(ib, atomic_load(&ib->handed), LONGEST_SLEEP_MS);
        if (atomic_load(&ib->handed))
            finish(ib);
    }
    return NULL;
}

/* ---- what executors call ---- */

bool cm_ib_progress(struct cm_ib *ib)
{
    if (ib->a.mode == CM_PROXY_INLINE)
        return cm_ib_drive(ib);
    if (atomic_exchange(&ib->asleep, false)) {
        atomic_fetch_add_explicit(&ib->wakes, 1, memory_order_relaxed);
        eventfd_write(ib->wake, 1);
    }
    return false;
}

/* Several may doze: who comes late to an event finds the channel empty, which does not block. */
void cm_ib_doze(struct cm_ib *ib, int64_t ns)
{
    bool drives = ib->a.mode == CM_PROXY_INLINE;
    struct pollfd news = {.fd = drives ? ib->channel->fd : -1, .events = POLLIN};
    struct timespec most = {.tv_sec = ns / CM_NS_PER_S, .tv_nsec = ns % CM_NS_PER_S};

    if (drives)
        ib->verbs.req_notify_cq(ib->cq, 0);
    if (drives && cm_ib_drive(ib))
        return;
    if (ppoll(&news, 1, &most, NULL) > 0)
        take_completion_events(ib);
}

void cm_ib_rest(struct cm_ib *ib)
{
    if (ib->a.mode == CM_PROXY_THREAD) {
        cm_ib_progress(ib);
        return;
    }
    while (cm_ib_drive(ib))
        continue;
    if (cm_ib_unfinished(ib) && !atomic_exchange(&ib->handed, true))
        eventfd_write(ib->wake, 1);
}
