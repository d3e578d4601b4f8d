/*
 * The proxy's loop: say what is due, hear what came, look at the clock. Whoever
 * drives holds `busy`, and nobody waits for it.
 *
 * A thread that finds nothing to do for a while sleeps in epoll. Executors wake
 * it, but only if it sleeps. Invariant: both change `asleep` by an exchange, the
 * thread before its last look at the ports, an executor after its store to
 * them; whichever comes second sees what the other did.
 *
 * In inline mode the thread only keeps the connections alive while no executor
 * calls, e.g. because it computes.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait.h"
#include "transport/proxy_int.h"

enum {
    EVENTS = 64,
    TURNS_PER_TICK = 64,
    BEATS = 4,   /* signs of life in the time that counts as silence */
    IDLE_MS = 50 /* inline mode: so late a message is heard if no executor waits */
};

/* ---- one turn; busy is held ---- */

/* So long this process stood still, just now; 0 unless neighbours must take it for dead. */
static int64_t just_away(struct cm_proxy *p)
{
    int64_t now = cm_now_ns();

    if (now - p->ticked_ns > p->a.silence_ns) {
        p->away_ns = now - p->ticked_ns;
        p->back_ns = now;
    }
    return now - p->back_ns <= p->a.silence_ns ? p->away_ns : 0;
}

static void lose(struct cm_proxy *p, struct cm_peer *peer, enum cm_status st)
{
    int64_t away = just_away(p);
    uint32_t ok = CM_OK;

    if (away > 0)
        st = cm_peer_blame(peer, CM_ETIMEOUT,
                           "has given up this process, which stood still for %.1f s",
                           (double)away / CM_NS_PER_S);
    peer->lost = true;
    atomic_store(&peer->closed, true);
    for (int k = 0; k < p->a.sockets; k++) {
        close(peer->socks[k].fd);
        peer->socks[k].fd = -1;
    }
    atomic_compare_exchange_strong(&p->status, &ok, (uint32_t)st);
    if (p->a.events.lost != NULL)
        p->a.events.lost(p->a.events.arg, peer->proc, st, peer->why);
    else
        cm_log("process %d (host %s) %s", peer->proc, peer->host, peer->why);
}

/* Whether epoll tells when a full socket takes more. */
static void arm(struct cm_proxy *p, struct cm_sock *s, bool on)
{
    struct epoll_event ev = {.data.ptr = s, .events = on ? EPOLLIN | EPOLLOUT : EPOLLIN};

    if (s->armed != on)
        epoll_ctl(p->epoll, EPOLL_CTL_MOD, s->fd, &ev);
    s->armed = on;
}

/*
 * A full socket is left alone until epoll says that a good part of it is free:
 * who tries all the time sends small pieces only.
 */
static void speak(struct cm_proxy *p, struct cm_sock *s, bool *moved)
{
    enum cm_status st;

    if (s->fd < 0 || (s->full && !s->bye) || (s->out.n == 0 && !cm_peer_has_news(s)))
        return;
    st = cm_sock_write(s, moved);
    if (st != CM_OK)
        lose(p, s->peer, st);
    else if (s->full && !s->bye)
        arm(p, s, true);
}

static void hear(struct cm_proxy *p, struct cm_sock *s, bool *moved)
{
    enum cm_status st;

    if (s->fd < 0 || s->bye)
        return;
    st = cm_sock_read(s, moved);
    if (st != CM_OK)
        lose(p, s->peer, st);
    else if (s->bye) /* its end of stream is no news */
        epoll_ctl(p->epoll, EPOLL_CTL_DEL, s->fd, NULL);
}

/* epoll finds out without a lock of the socket's: asking it is cheaper than to read in vain. */
static void hear_ready(struct cm_proxy *p, bool *moved)
{
    struct epoll_event ev[EVENTS];
    eventfd_t count;
    int n;

    n = epoll_wait(p->epoll, ev, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        struct cm_sock *s = ev[i].data.ptr;

        if (s == NULL) {
            (void)!eventfd_read(p->wake, &count);
            continue;
        }
        if (s->fd >= 0 && ev[i].events & EPOLLOUT) {
            s->full = false;
            arm(p, s, false);
        }
        if (ev[i].events & ~(uint32_t)EPOLLOUT)
            hear(p, s, moved);
    }
}

static void silent(struct cm_proxy *p, struct cm_peer *peer, int64_t now)
{
    lose(p, peer,
         cm_peer_blame(peer, CM_ETIMEOUT,
                       "has been silent for %.1f s: it is stopped, or the way to it is cut",
                       (double)(now - peer->heard_ns) / CM_NS_PER_S));
}

bool cm_proxy_heard_bye(const struct cm_proxy *p, const struct cm_peer *peer)
{
    for (int k = 0; k < p->a.sockets; k++)
        if (!peer->socks[k].bye)
            return false;
    return true;
}

/* Signs of life. If we did not run ourselves for long, nobody else is to blame. */
static void tick(struct cm_proxy *p)
{
    int64_t now = cm_now_ns(), gap = now - p->ticked_ns;
    int64_t own = gap > p->a.silence_ns / 2 ? gap : 0;

    just_away(p); /* before the gap is forgotten */
    p->ticked_ns = now;
    for (int i = 0; i < p->a.npeers; i++) {
        struct cm_peer *peer = &p->peers[i];

        if (peer->lost || cm_proxy_heard_bye(p, peer))
            continue;
        peer->heard_ns = peer->heard ? now : peer->heard_ns + own;
        peer->said_ns = peer->said ? now : peer->said_ns;
        peer->heard = peer->said = false;
        peer->beat = now - peer->said_ns >= p->a.silence_ns / BEATS;
        if (now - peer->heard_ns > p->a.silence_ns)
            silent(p, peer, now);
    }
}

static bool turn(struct cm_proxy *p, bool look_at_clock)
{
    bool moved = false;

    for (int i = 0; i < p->nsocks; i++)
        speak(p, p->socks[i], &moved);
    hear_ready(p, &moved);
    if (look_at_clock || p->turns++ % TURNS_PER_TICK == 0)
        tick(p);
    return moved;
}

bool cm_proxy_drive(struct cm_proxy *p, bool look_at_clock)
{
    bool moved;

    if (atomic_exchange_explicit(&p->busy, true, memory_order_acquire))
        return false;
    moved = turn(p, look_at_clock);
    atomic_store_explicit(&p->busy, false, memory_order_release);
    return moved;
}

/* ---- the thread ---- */

/* What the thread would do at once. A socket that is full tells by itself when it is not. */
static bool has_work(const struct cm_proxy *p)
{
    for (int i = 0; i < p->nsocks; i++) {
        struct cm_sock *s = p->socks[i];

        if (s->fd >= 0 && !s->full && (s->out.n > 0 || cm_peer_has_news(s)))
            return true;
    }
    return false;
}

/* So long a sleep may last: signs of life are due. In ms. */
static int longest_sleep(const struct cm_proxy *p)
{
    return (int)(p->a.silence_ns / BEATS / 2 / CM_NS_PER_MS);
}

static void sleep_until_news(struct cm_proxy *p)
{
    struct epoll_event ev[1];
    eventfd_t count;

    atomic_exchange(&p->asleep, true);
    if (!has_work(p)) {
        atomic_fetch_add_explicit(&p->sleeps, 1, memory_order_relaxed);
        epoll_wait(p->epoll, ev, 1, longest_sleep(p)); /* what came is found by the next turn */
    }
    if (!atomic_exchange(&p->asleep, false))
        (void)!eventfd_read(p->wake, &count); /* somebody woke us, or is just about to */
}

void *cm_proxy_run(void *arg)
{
    struct cm_proxy *p = arg;
    int idle = 0;

    while (!atomic_load(&p->stop)) {
        if (cm_proxy_drive(p, false)) {
            idle = 0;
        } else if (++idle > p->a.spins) {
            sleep_until_news(p);
            cm_proxy_drive(p, true);
            idle = 0;
        } else if (p->a.crowded) {
            sched_yield();
        } else {
            cm_pause();
        }
    }
    return NULL;
}

/* Inline mode: somebody has to, while no executor does. Rarely, so that it disturbs none. */
void *cm_proxy_keep_alive(void *arg)
{
    struct cm_proxy *p = arg;
    eventfd_t count;

    while (!atomic_load(&p->stop)) {
        bool handed = atomic_load(&p->handed);
        struct pollfd news[] = {{.fd = p->wake, .events = POLLIN},
                                {.fd = handed ? p->epoll : -1, .events = POLLIN}};

        poll(news, CM_LEN(news), longest_sleep(p) < IDLE_MS ? longest_sleep(p) : IDLE_MS);
        (void)!eventfd_read(p->wake, &count);
        while (cm_proxy_drive(p, true))
            continue;
        if (!handed)
            continue;
        atomic_store(&p->handed, false); /* first: who hands over from now on calls again */
        if (cm_proxy_unfinished(p))
            atomic_store(&p->handed, true);
    }
    return NULL;
}

bool cm_proxy_progress(struct cm_proxy *p)
{
    if (p->a.mode == CM_PROXY_INLINE)
        return cm_proxy_drive(p, false);
    if (atomic_exchange(&p->asleep, false)) {
        atomic_fetch_add_explicit(&p->wakes, 1, memory_order_relaxed);
        eventfd_write(p->wake, 1);
    }
    return false;
}

void cm_proxy_doze(struct cm_proxy *p, int64_t ns)
{
    struct pollfd news = {.fd = p->a.mode == CM_PROXY_INLINE ? p->epoll : -1, .events = POLLIN};
    struct timespec most = {.tv_sec = ns / CM_NS_PER_S, .tv_nsec = ns % CM_NS_PER_S};

    ppoll(&news, 1, &most, NULL);
}

static bool owes(struct cm_sock *s)
{
    return s->fd >= 0 && !s->bye && cm_peer_owes(s);
}

bool cm_proxy_unfinished(struct cm_proxy *p)
{
    bool left = false;

    while (atomic_exchange_explicit(&p->busy, true, memory_order_acquire))
        sched_yield(); /* for a turn */
    for (int i = 0; i < p->nsocks && !left; i++)
        left = owes(p->socks[i]);
    atomic_store_explicit(&p->busy, false, memory_order_release);
    return left;
}

/* Say what there is and hear nothing: the shortest way out of an operation. True: that is all. */
static bool say_all(struct cm_proxy *p)
{
    bool moved, left = false;

    while (atomic_exchange_explicit(&p->busy, true, memory_order_acquire))
        sched_yield(); /* for a turn */
    for (int i = 0; i < p->nsocks; i++) {
        speak(p, p->socks[i], &moved);
        left |= owes(p->socks[i]);
    }
    atomic_store_explicit(&p->busy, false, memory_order_release);
    return !left;
}

void cm_proxy_rest(struct cm_proxy *p)
{
    if (p->a.mode == CM_PROXY_THREAD) {
        cm_proxy_progress(p);
        return;
    }
    if (say_all(p))
        return;
    while (cm_proxy_drive(p, false))
        continue;
    if (cm_proxy_unfinished(p) && !atomic_exchange(&p->handed, true))
        eventfd_write(p->wake, 1);
}
