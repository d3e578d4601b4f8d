/*
 * One poll loop over the listener, everybody we dial, and a few places for
 * guests: connections that have not shown yet who they are.
 *
 * Invariant: a socket is in peers[].fds, in dials or in guests, never in two
 * of them; so closing all three closes everything, at any moment.
 */
#define _GNU_SOURCE
#include "transport/meet.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/shake.h"

enum { GUESTS = 32, NOTES = 8, NAMED = 8, POLL_MS = 50 };
static const int64_t guest_ns = 2LL * CM_NS_PER_S;     /* so long a stranger may keep silent */
static const int64_t redial_ns = 50LL * CM_NS_PER_MS;  /* after a connection broke */
static const int64_t settled_ns = 20LL * CM_NS_PER_MS; /* a guest this old may be shown out */

/* One socket that we dial. */
struct dial {
    struct cm_shake shake;
    struct cm_meet_peer *peer;
    int index;
    int err;          /* of the last try that failed */
    int64_t again_ns; /* fd -1: when to try again */
};

struct guest {
    struct cm_shake shake; /* fd -1: the place is free */
    int64_t since_ns;
};

struct meeting {
    const struct cm_meet_args *a;
    struct dial *dials;
    int ndials;
    struct guest guests[GUESTS];
    struct pollfd *fds; /* listener, dials, guests */
    int missing;        /* sockets that are not there yet */
    int notes;
};

static void drop(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static struct cm_hello hello_to(const struct cm_meet_args *a, int proc, int index)
{
    struct cm_hello h = {.from = (uint32_t)a->proc,
                         .to = (uint32_t)proc,
                         .index = (uint16_t)index,
                         .sockets = (uint16_t)a->sockets};

    memcpy(h.token, a->token, sizeof(h.token));
    return h;
}

/* ---- whom we dial ---- */

static enum cm_status dial_failed(const struct meeting *m, const struct dial *d, int err)
{
    char to[CM_NET_TEXT], from[CM_NET_TEXT];

    return CM_FAIL(CM_ESYS, "process %d (host %s) at %s cannot be reached from %s (%s): %s",
                   d->peer->proc, d->peer->host, cm_net_format(&d->peer->addr, to), m->a->on->name,
                   cm_net_format(&m->a->on->addr, from), strerror(err));
}

static enum cm_status dial(struct meeting *m, struct dial *d)
{
    struct cm_hello h = hello_to(m->a, d->peer->proc, d->index);
    int fd = cm_net_dial(m->a->on, &d->peer->addr);

    if (fd < 0)
        return dial_failed(m, d, errno);
    cm_shake_dialled(&d->shake, fd, &h);
    return CM_OK;
}

/* A connection that was up and broke is tried again: the other side may have taken us for a
   stranger in a crowd. One that never was up will not be better the next time. */
static enum cm_status dial_lost(struct meeting *m, struct dial *d, bool was_up, int64_t now)
{
    if (!was_up)
        return dial_failed(m, d, d->shake.err);
    d->err = d->shake.err;
    d->again_ns = now + redial_ns;
    drop(&d->shake.fd);
    return CM_OK;
}

static enum cm_status step_dial(struct meeting *m, struct dial *d, int64_t now)
{
    bool was_up = d->shake.put > 0;
    char to[CM_NET_TEXT];

    if (d->peer->fds[d->index] >= 0)
        return CM_OK;
    if (d->shake.fd < 0)
        return now < d->again_ns ? CM_OK : dial(m, d);
    cm_shake_step(&d->shake);
    if (d->shake.state == CM_SHAKE_LOST)
        return dial_lost(m, d, was_up || d->shake.put > 0, now);
    if (d->shake.state == CM_SHAKE_REFUSED)
        return CM_FAIL(CM_ESYS, "%s should be process %d (host %s), but answered with %s",
                       cm_net_format(&d->peer->addr, to), d->peer->proc, d->peer->host,
                       d->shake.why);
    if (d->shake.state != CM_SHAKE_DONE)
        return CM_OK;
    d->peer->fds[d->index] = d->shake.fd;
    d->shake.fd = -1;
    m->missing--;
    return CM_OK;
}

/* ---- who dials us ---- */

static void note(struct meeting *m, int fd, const char *why)
{
    struct cm_net_addr a = cm_net_remote(fd);
    char text[CM_NET_TEXT];

    if (m->notes < NOTES)
        cm_log("dropped a connection from %s: %s", a.version != 0 ? cm_net_format(&a, text) : "?",
               why);
    else if (m->notes == NOTES)
        cm_log("dropped another connection; no more of them will be noted");
    m->notes++;
}

static void show_out(struct meeting *m, struct guest *g, const char *why)
{
    note(m, g->shake.fd, why);
    drop(&g->shake.fd);
}

/* A place for one more: a free one, or that of the oldest. NULL: all have only just come. */
static struct guest *find_place(struct meeting *m, int64_t now)
{
    struct guest *oldest = &m->guests[0];

    for (int i = 0; i < GUESTS; i++) {
        if (m->guests[i].shake.fd < 0)
            return &m->guests[i];
        if (m->guests[i].since_ns < oldest->since_ns)
            oldest = &m->guests[i];
    }
    if (now - oldest->since_ns < settled_ns)
        return NULL;
    show_out(m, oldest, "too many at once, and it had not said who it is");
    return oldest;
}

static void welcome(struct meeting *m, int64_t now)
{
    struct cm_hello h = hello_to(m->a, 0, 0); /* whom it is for is known when it has said hello */

    for (int i = 0; i < GUESTS && m->a->listener >= 0; i++) {
        struct guest *g = find_place(m, now);
        int fd = g != NULL ? accept4(m->a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

        if (fd < 0)
            return; /* nobody is there, or one who has left again */
        cm_shake_accepted(&g->shake, fd, &h);
        g->since_ns = now;
    }
}

/* The place of the socket that a hello announces, NULL: we expect no such thing. */
static int *place_of(struct meeting *m, const struct cm_hello *h)
{
    for (int p = 0; p < m->a->npeers; p++) {
        struct cm_meet_peer *peer = &m->a->peers[p];

        if ((uint32_t)peer->proc == h->from && peer->proc < m->a->proc)
            return h->index < m->a->sockets ? &peer->fds[h->index] : NULL;
    }
    return NULL;
}

/* A second hello for the same socket comes from one whose first connection broke: it counts. */
static void seat(struct meeting *m, struct guest *g)
{
    int *place = place_of(m, &g->shake.theirs);

    m->missing -= *place < 0;
    drop(place);
    *place = g->shake.fd;
    g->shake.fd = -1;
}

static void step_guest(struct meeting *m, struct guest *g, int64_t now)
{
    if (g->shake.fd < 0)
        return;
    cm_shake_step(&g->shake);
    if (g->shake.state == CM_SHAKE_ASKED) {
        if (place_of(m, &g->shake.theirs) == NULL)
            show_out(m, g, "a process that is no neighbour");
        else
            cm_shake_admit(&g->shake);
    }
    if (g->shake.fd < 0)
        return;
    if (g->shake.state == CM_SHAKE_DONE)
        seat(m, g);
    else if (g->shake.state == CM_SHAKE_REFUSED)
        show_out(m, g, g->shake.why);
    else if (g->shake.state == CM_SHAKE_LOST)
        show_out(m, g, "closed before it said who it is");
    else if (now - g->since_ns > guest_ns)
        show_out(m, g, "too slow to say who it is");
}

/* ---- the loop ---- */

static struct pollfd poll_for(const struct cm_shake *s)
{
    return (struct pollfd){.fd = s->fd, .events = cm_shake_events(s)}; /* poll() skips fd -1 */
}

static void await(struct meeting *m, int64_t now)
{
    int64_t left_ms = (m->a->until_ns - now) / CM_NS_PER_MS + 1;
    struct pollfd *p = m->fds;

    *p++ = (struct pollfd){.fd = m->a->listener, .events = POLLIN};
    for (int i = 0; i < m->ndials; i++)
        *p++ = poll_for(&m->dials[i].shake);
    for (int i = 0; i < GUESTS; i++)
        *p++ = poll_for(&m->guests[i].shake);
    poll(m->fds, (nfds_t)(p - m->fds), left_ms < POLL_MS ? (int)left_ms : POLL_MS);
}

static bool complete(const struct meeting *m, const struct cm_meet_peer *p)
{
    for (int k = 0; k < m->a->sockets; k++)
        if (p->fds[k] < 0)
            return false;
    return true;
}

/* The last error of dialling it, 0: none, or it is for it to dial. */
static int last_error(const struct meeting *m, const struct cm_meet_peer *p)
{
    int err = 0;

    for (int i = 0; i < m->ndials; i++)
        if (m->dials[i].peer == p && m->dials[i].err != 0)
            err = m->dials[i].err;
    return err;
}

static enum cm_status not_all_came(const struct meeting *m)
{
    char from[CM_NET_TEXT], to[CM_NET_TEXT];
    int named = 0, missing = 0;

    for (int p = 0; p < m->a->npeers; p++) {
        const struct cm_meet_peer *peer = &m->a->peers[p];
        int err = last_error(m, peer);

        if (complete(m, peer))
            continue;
        missing++;
        if (named++ >= NAMED)
            continue;
        if (peer->proc < m->a->proc)
            cm_log("process %d (host %s) did not connect to %s (%s)", peer->proc, peer->host,
                   m->a->on->name, cm_net_format(&m->a->on->addr, from));
        else
            cm_log("process %d (host %s) at %s did not answer on %s (%s)%s%s", peer->proc,
                   peer->host, cm_net_format(&peer->addr, to), m->a->on->name,
                   cm_net_format(&m->a->on->addr, from), err != 0 ? ": " : "",
                   err != 0 ? strerror(err) : "");
    }
    return CM_FAIL(CM_ETIMEOUT, "process %d: %d of %d neighbours are not connected", m->a->proc,
                   missing, m->a->npeers);
}

static enum cm_status run(struct meeting *m)
{
    int64_t now = cm_now_ns();
    enum cm_status st = CM_OK;

    while (m->missing > 0) {
        welcome(m, now);
        for (int i = 0; i < GUESTS; i++)
            step_guest(m, &m->guests[i], now);
        for (int i = 0; i < m->ndials && st == CM_OK; i++)
            if (m->dials[i].shake.fd < 0 || m->fds[1 + i].revents != 0)
                st = step_dial(m, &m->dials[i], now);
        if (st != CM_OK || m->missing == 0)
            return st;
        if (now >= m->a->until_ns)
            return not_all_came(m);
        await(m, now);
        now = cm_now_ns();
    }
    return CM_OK;
}

static void prepare(struct meeting *m)
{
    for (int i = 0; i < GUESTS; i++)
        m->guests[i].shake.fd = -1;
    for (int p = 0; p < m->a->npeers; p++) {
        struct cm_meet_peer *peer = &m->a->peers[p];

        assert(peer->proc != m->a->proc);
        for (int k = 0; k < m->a->sockets; k++) {
            peer->fds[k] = -1;
            if (peer->proc > m->a->proc)
                m->dials[m->ndials++] =
                    (struct dial){.shake = {.fd = -1}, .peer = peer, .index = k};
        }
    }
    m->missing = m->a->npeers * m->a->sockets;
}

static void leave(struct meeting *m, enum cm_status st)
{
    for (int i = 0; i < GUESTS; i++)
        drop(&m->guests[i].shake.fd);
    for (int i = 0; i < m->ndials; i++)
        drop(&m->dials[i].shake.fd);
    for (int p = 0; st != CM_OK && p < m->a->npeers; p++)
        for (int k = 0; k < m->a->sockets; k++)
            drop(&m->a->peers[p].fds[k]);
}

enum cm_status cm_meet(const struct cm_meet_args *a)
{
    size_t most = (size_t)a->npeers * (size_t)a->sockets;
    struct meeting m = {.a = a};
    enum cm_status st;

    assert(a->sockets >= 1 && a->sockets <= CM_NET_SOCKETS);
    m.dials = calloc(most + 1, sizeof(*m.dials));
    m.fds = calloc(most + 1 + GUESTS, sizeof(*m.fds));
    if (m.dials == NULL || m.fds == NULL) {
        st = CM_FAIL(CM_ENOMEM, "no memory to connect with %d processes", a->npeers);
    } else {
        prepare(&m);
        st = run(&m);
        leave(&m, st);
    }
    free(m.dials);
    free(m.fds);
    return st;
}
