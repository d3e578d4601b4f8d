/*
 * The proxy's life, and what other threads ask of it.
 *
 * Invariant: the sockets are the proxy's from the moment cm_proxy_open()
 * succeeds. Only one thread drives at a time; after the stop it is the one
 * that closes.
 */
#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/net.h"
#include "transport/proxy_int.h"

/* Somebody has to send it, and perhaps nobody drives. */
static void call_thread(struct cm_proxy *p)
{
    if (p->a.mode == CM_PROXY_THREAD)
        cm_proxy_progress(p);
    else if (!atomic_exchange(&p->handed, true))
        eventfd_write(p->wake, 1);
}

enum cm_status cm_proxy_send(struct cm_proxy *p, int proc, uint32_t type, const void *bytes,
                             size_t n)
{
    for (int i = 0; i < p->a.npeers; i++) {
        enum cm_status st;

        if (p->peers[i].proc != proc)
            continue;
        st = cm_peer_queue(&p->peers[i], type, bytes, n);
        if (st == CM_OK)
            call_thread(p);
        return st;
    }
    return CM_FAIL(CM_EINVAL, "message to process %d, which is no neighbour", proc);
}

void cm_proxy_send_all(struct cm_proxy *p, uint32_t type, const void *bytes, size_t n)
{
    for (int i = 0; i < p->a.npeers; i++)
        if (cm_peer_queue(&p->peers[i], type, bytes, n) == CM_OK)
            call_thread(p);
}

bool cm_proxy_told(struct cm_proxy *p)
{
    bool left = false;

    while (atomic_exchange_explicit(&p->busy, true, memory_order_acquire))
        sched_yield(); /* for a turn */
    for (int i = 0; i < p->a.npeers && !left; i++) {
        const struct cm_peer *peer = &p->peers[i];

        left = !peer->lost && !peer->socks[0].bye &&
               (peer->socks[0].out.n > 0 || atomic_load(&peer->waiting));
    }
    atomic_store_explicit(&p->busy, false, memory_order_release);
    return !left;
}

enum cm_status cm_proxy_status(const struct cm_proxy *p)
{
    return (enum cm_status)atomic_load_explicit(&p->status, memory_order_acquire);
}

struct cm_proxy_stats cm_proxy_stats(struct cm_proxy *p)
{
    struct cm_proxy_stats s;

    while (atomic_exchange_explicit(&p->busy, true, memory_order_acquire))
        sched_yield(); /* for a turn */
    s = p->stats;
    atomic_store_explicit(&p->busy, false, memory_order_release);
    s.sleeps = atomic_load_explicit(&p->sleeps, memory_order_relaxed);
    s.wakes = atomic_load_explicit(&p->wakes, memory_order_relaxed);
    return s;
}

static void destroy(struct cm_proxy *p)
{
    for (int i = 0; p->peers != NULL && i < p->a.npeers; i++)
        cm_peer_destroy(&p->peers[i]);
    if (p->epoll >= 0)
        close(p->epoll);
    if (p->wake >= 0)
        close(p->wake);
    free(p->peers);
    free(p->socks);
    free(p);
}

static enum cm_status watch(struct cm_proxy *p, int fd, struct cm_sock *s)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};

    return CM_SYS(epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &ev) == 0, "epoll");
}

static enum cm_status take_peer(struct cm_proxy *p, const struct cm_proxy_peer *from,
                                struct cm_peer *peer)
{
    enum cm_status st = cm_peer_init(peer, &p->a, from, &p->stats);

    peer->heard_ns = peer->said_ns = p->ticked_ns;
    for (int k = 0; k < p->a.sockets && st == CM_OK; k++) {
        peer->socks[k].fd = from->fds[k];
        p->socks[p->nsocks++] = &peer->socks[k];
    }
    return st;
}

static enum cm_status start_socket(struct cm_proxy *p, struct cm_sock *s)
{
    enum cm_status st = CM_SYS(cm_net_tune(s->fd, p->a.silence_ns), "options of a socket");

    return st == CM_OK ? watch(p, s->fd, s) : st;
}

static enum cm_status start(struct cm_proxy *p, const struct cm_proxy_args *a)
{
    size_t n = (size_t)a->npeers;
    enum cm_status st = CM_OK;
    int err;

    p->peers = calloc(n + 1, sizeof(*p->peers));
    p->socks = calloc(n * (size_t)a->sockets + 1, sizeof(struct cm_sock *));
    if (p->peers == NULL || p->socks == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d neighbours", a->npeers);
    for (int i = 0; i < a->npeers && st == CM_OK; i++)
        st = take_peer(p, &a->peers[i], &p->peers[i]);
    if (st != CM_OK)
        return st;
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->epoll < 0 || p->wake < 0)
        return cm_fail_errno("epoll");
    if (a->mode == CM_PROXY_THREAD) /* else the thread alone looks at it */
        st = watch(p, p->wake, NULL);
    for (int i = 0; st == CM_OK && i < p->nsocks; i++)
        st = start_socket(p, p->socks[i]);
    if (st != CM_OK)
        return st;
    err = pthread_create(&p->thread, NULL,
                         a->mode == CM_PROXY_THREAD ? cm_proxy_run : cm_proxy_keep_alive, p);
    return err == 0 ? CM_OK : CM_FAIL(CM_ESYS, "thread of the proxy: %s", strerror(err));
}

enum cm_status cm_proxy_open(const struct cm_proxy_args *a, struct cm_proxy **out)
{
    struct cm_proxy *p = aligned_alloc(alignof(struct cm_proxy), sizeof(*p));
    enum cm_status st;

    assert(a->depth > 0 && (a->depth & (a->depth - 1)) == 0);
    if (p == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for a proxy");
    *p = (struct cm_proxy){.a = *a, .epoll = -1, .wake = -1, .ticked_ns = cm_now_ns()};
    st = start(p, a);
    if (st != CM_OK) {
        for (int i = 0; i < p->nsocks; i++)
            p->socks[i]->fd = -1; /* still the caller's */
        destroy(p);
        return st;
    }
    *out = p;
    return CM_OK;
}

static bool done_with(const struct cm_proxy *p, const struct cm_peer *peer)
{
    return peer->lost || (cm_peer_drained(peer) && cm_proxy_heard_bye(p, peer));
}

/* After the deadline: who is missing. */
static enum cm_status unfinished(const struct cm_proxy *p)
{
    enum cm_status st = CM_OK;

    for (int i = 0; i < p->a.npeers; i++) {
        const struct cm_peer *peer = &p->peers[i];

        if (!done_with(p, peer))
            st = CM_FAIL(CM_ETIMEOUT, "process %d (host %s) %s", peer->proc, peer->host,
                         cm_peer_drained(peer) ? "did not say farewell"
                                               : "does not take what was sent to it");
    }
    return st;
}

static bool all_done(const struct cm_proxy *p)
{
    for (int i = 0; i < p->a.npeers; i++)
        if (!done_with(p, &p->peers[i]))
            return false;
    return true;
}

static enum cm_status say_farewell(struct cm_proxy *p, int64_t until_ns)
{
    struct epoll_event ev[1];

    for (int i = 0; i < p->a.npeers; i++) {
        p->peers[i].leaving = true;
        atomic_store(&p->peers[i].closed, true);
    }
    while (!all_done(p)) {
        if (cm_now_ns() > until_ns)
            return unfinished(p);
        if (!cm_proxy_drive(p, true))
            epoll_wait(p->epoll, ev, 1, 1);
    }
    return cm_proxy_status(p);
}

enum cm_status cm_proxy_close(struct cm_proxy *p, int64_t until_ns)
{
    enum cm_status st = CM_OK;

    if (p == NULL)
        return CM_OK;
    atomic_store(&p->stop, true);
    eventfd_write(p->wake, 1);
    pthread_join(p->thread, NULL);
    if (until_ns != 0)
        st = say_farewell(p, until_ns);
    destroy(p);
    return st;
}
