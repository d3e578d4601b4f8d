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

enum { GUESTS = 32, NOTES = 8, POLL_MS = 50 };
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
    bool hopeless;    /* no other try will do better */
    char why[CM_MEET_WHY];
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
    int missing;        /* sockets that are not there yet ... */
    int hopeless;       /* ... of which these will never be */
    int64_t since_ns;
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

static void give_up(struct meeting *m, struct dial *d, const char *what, const char *how)
{
    snprintf(d->why, sizeof(d->why), "%s%s", what, how);
    drop(&d->shake.fd);
    d->hopeless = true;
    m->hopeless++;
}

static void dial(struct meeting *m, struct dial *d)
{
    struct cm_hello h = hello_to(m->a, d->peer->proc, d->index);
    int fd = cm_net_dial(m->a->on, &d->peer->addr);

    if (fd < 0)
        give_up(m, d, "", strerror(errno));
    else
        cm_shake_dialled(&d->shake, fd, &h);
}

/* A connection that was up and broke is tried again: the other side may have taken us for a
   stranger in a crowd. One that never was up will not be better the next time. */
static void dial_lost(struct meeting *m, struct dial *d, bool was_up, int64_t now)
{
    d->err = d->shake.err;
    d->again_ns = now + redial_ns;
    if (was_up)
        drop(&d->shake.fd);
    else
        give_up(m, d, "", strerror(d->err));
}

static void step_dial(struct meeting *m, struct dial *d, int64_t now)
{
    bool was_up = d->shake.put > 0;

    if (d->hopeless || d->peer->fds[d->index] >= 0)
        return;
    if (d->shake.fd < 0) {
        if (now >= d->again_ns)
            dial(m, d);
        return;
    }
    cm_shake_step(&d->shake);
    if (d->shake.state == CM_SHAKE_LOST) {
        dial_lost(m, d, was_up || d->shake.put > 0, now);
    } else if (d->shake.state == CM_SHAKE_REFUSED) {
        give_up(m, d, "somebody else is there, who answered with ", d->shake.why);
    } else if (d->shake.state == CM_SHAKE_DONE) {
        d->peer->fds[d->index] = d->shake.fd;
        d->shake.fd = -1;
        m->missing--;
    }
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

/* The dial that says most about a neighbour without a connection; NULL: it should dial us. */
static const struct dial *worst_dial(const struct meeting *m, const struct cm_meet_peer *p)
{
    const struct dial *worst = NULL;

    for (int i = 0; i < m->ndials; i++) {
        const struct dial *d = &m->dials[i];

        if (d->peer == p && p->fds[d->index] < 0 && (worst == NULL || d->hopeless || d->err != 0))
            worst = d;
    }
    return worst;
}

static void describe(const struct meeting *m, const struct dial *d, char why[CM_MEET_WHY])
{
    double s = (double)(m->a->until_ns - m->since_ns) / CM_NS_PER_S;

    if (d == NULL)
        snprintf(why, CM_MEET_WHY, "did not connect within %.1f s", s);
    else if (d->hopeless)
        memcpy(why, d->why, CM_MEET_WHY);
    else if (d->err != 0)
        snprintf(why, CM_MEET_WHY, "no connection within %.1f s, last: %s", s, strerror(d->err));
    else
        snprintf(why, CM_MEET_WHY, "no answer within %.1f s", s);
}

static enum cm_status tell(const struct meeting *m, struct cm_meet_trouble *t)
{
    for (int p = 0; p < m->a->npeers; p++) {
        const struct cm_meet_peer *peer = &m->a->peers[p];
        const struct dial *d = worst_dial(m, peer);

        if (complete(m, peer))
            continue;
        if (t->missing++ > 0 && (t->dialled || d == NULL))
            continue;
        t->proc = peer->proc;
        t->dialled = d != NULL;
        describe(m, d, t->why);
    }
    return m->hopeless > 0 ? CM_ESYS : CM_ETIMEOUT;
}

static void run(struct meeting *m)
{
    int64_t now = cm_now_ns();

    m->since_ns = now;
    while (m->missing > m->hopeless) {
        welcome(m, now);
        for (int i = 0; i < GUESTS; i++)
            step_guest(m, &m->guests[i], now);
        for (int i = 0; i < m->ndials; i++)
            if (m->dials[i].shake.fd < 0 || m->fds[1 + i].revents != 0)
                step_dial(m, &m->dials[i], now);
        if (now >= m->a->until_ns || m->missing == m->hopeless)
            return;
        await(m, now);
        now = cm_now_ns();
    }
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

enum cm_status cm_meet(const struct cm_meet_args *a, struct cm_meet_trouble *trouble)
{
    size_t most = (size_t)a->npeers * (size_t)a->sockets;
    struct meeting m = {.a = a};
    enum cm_status st;

    assert(a->sockets >= 1 && a->sockets <= CM_NET_SOCKETS);
    memset(trouble, 0, sizeof(*trouble));
    m.dials = calloc(most + 1, sizeof(*m.dials));
    m.fds = calloc(most + 1 + GUESTS, sizeof(*m.fds));
    if (m.dials == NULL || m.fds == NULL) {
        st = CM_FAIL(CM_ENOMEM, "no memory to connect with %d processes", a->npeers);
    } else {
        prepare(&m);
        run(&m);
        st = m.missing == 0 ? CM_OK : tell(&m, trouble);
        leave(&m, st);
    }
    free(m.dials);
    free(m.fds);
    return st;
}
