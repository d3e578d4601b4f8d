/*
 * Process 0's side of the meeting: one poll loop over the listener, who has
 * joined, and guests: connections that have not shown yet who they are.
 *
 * Invariant: a socket is in a guest's place or in a link, never in both. There
 * are places for all processes and some more; if they are full, who has been
 * silent for longest goes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/hub_int.h"
#include "transport/shake.h"

enum { SPARE = 32, NOTES = 8, POLL_MS = 50, OTHER_FILES = 64 };
static const int64_t guest_ns = 2LL * CM_NS_PER_S;     /* so long a stranger may keep silent */
static const int64_t settled_ns = 20LL * CM_NS_PER_MS; /* a guest this old may be shown out */
static const int64_t linger_ns = 1LL * CM_NS_PER_S;    /* late-comers still learn of a failure */

struct guest {
    struct cm_shake shake; /* fd -1: the place is free */
    struct cm_hub_link link;
    int64_t since_ns;
};

struct meeting {
    struct cm_hub *hub;
    int listener;
    struct guest *guests;
    int nguests;
    struct pollfd *fds; /* listener, links, guests */
    int joined;         /* have been seated, or told of the failure */
    int notes;
    int64_t until_ns;
    enum cm_status st; /* of the job */
};

/* ---- guests ---- */

static void note(struct meeting *m, int fd, const char *why)
{
    struct cm_net_addr a = cm_net_remote(fd);
    char text[CM_NET_TEXT];

    if (m->notes < NOTES)
        cm_log("rendezvous: dropped a connection from %s: %s",
               a.version != 0 ? cm_net_format(&a, text) : "?", why);
    else if (m->notes == NOTES)
        cm_log("rendezvous: dropped another connection; no more of them will be noted");
    m->notes++;
}

static void leave_place(struct guest *g)
{
    if (g->shake.fd >= 0)
        close(g->shake.fd);
    g->shake.fd = -1;
}

static void show_out(struct meeting *m, struct guest *g, const char *why)
{
    note(m, g->shake.fd, why);
    leave_place(g);
}

/* A place for one more: a free one, or that of the oldest. NULL: all have only just come. */
static struct guest *find_place(struct meeting *m, int64_t now)
{
    struct guest *oldest = &m->guests[0];

    for (int i = 0; i < m->nguests; i++) {
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
    struct cm_hello h = {.sockets = 1};

    memcpy(h.token, m->hub->a.token, sizeof(h.token));
    for (int i = 0; i < m->nguests; i++) {
        struct guest *g = find_place(m, now);
        int fd = g != NULL ? accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

        if (fd < 0)
            return; /* nobody is there, or one who has left again */
        cm_shake_accepted(&g->shake, fd, &h);
        g->since_ns = now;
    }
}

/* ---- who joins ---- */

/* The job cannot go on. Those who come in the next moment still hear why. */
static void fail(struct meeting *m, enum cm_status st)
{
    if (m->st != CM_OK)
        return;
    m->st = st;
    m->until_ns = cm_now_ns() + linger_ns;
}

/* Whether rank and size of the one who wants in fit; if not, the job ends. */
static bool fits(struct meeting *m, int rank, const struct cm_hub_join *j)
{
    const struct cm_hub_args *a = &m->hub->a;
    const struct cm_hub_join *before;

    if (m->st != CM_OK)
        return true;
    if (j->nprocs != (uint32_t)a->nprocs) {
        fail(m, cm_hub_give_up(m->hub, CM_EINVAL,
                               "%s=%u of rank %d (host %s) differs from %s=%d of "
                               "rank 0 (host %s)",
                               a->size_name, j->nprocs, rank, j->host, a->size_name, a->nprocs,
                               a->host));
        return false;
    }
    if (rank < 1 || rank >= a->nprocs) {
        fail(m, cm_hub_give_up(m->hub, CM_EINVAL,
                               "host %s joins with %s=%d, which is not from 1 to "
                               "%d",
                               j->host, a->rank_name, rank, a->nprocs - 1));
        return false;
    }
    before = &m->hub->links[rank].peer;
    if (m->hub->links[rank].fd < 0 || before->who == j->who)
        return true;
    fail(m, cm_hub_give_up(m->hub, CM_EINVAL, "two processes have %s=%d, on hosts %s and %s",
                           a->rank_name, rank, before->host, j->host));
    return false;
}

/* From its place to its link. One that tries again takes the place of its former self. */
static void seat(struct meeting *m, struct guest *g, int rank)
{
    struct cm_hub_link *l = &m->hub->links[rank];

    m->joined += l->fd < 0;
    cm_link_drop(l);
    *l = g->link;
    cm_net_tune(l->fd, m->hub->a.patience_ns);
    l->state = CM_LINK_GOT; /* watched for its end */
    g->shake.fd = -1;
}

/* After a failure: the answer to joining is the reason. */
static void turn_away(struct meeting *m, struct guest *g)
{
    struct cm_hub_head h = {.type = CM_HUB_FAIL,
                            .code = m->hub->code,
                            .bytes = strlen(m->hub->text),
                            .loud = g->link.peer.machine != m->hub->a.machine};

    cm_link_say(&g->link, &h, m->hub->text);
    cm_link_step(&g->link, POLLOUT);
    shutdown(g->shake.fd, SHUT_WR);
    leave_place(g);
    m->joined++;
}

/* Who has shown the token says the rest. */
static void step_join(struct meeting *m, struct guest *g, short revents)
{
    int rank = (int)g->shake.theirs.from;

    cm_link_step(&g->link, revents | POLLIN);
    if (g->link.state == CM_LINK_LOST)
        show_out(m, g, "hung up before it joined");
    else if (g->link.state == CM_LINK_ODD || g->link.state == CM_LINK_FAILED)
        show_out(m, g, "not our protocol");
    if (g->shake.fd < 0 || g->link.state != CM_LINK_GOT)
        return;
    g->link.peer.host[CM_HUB_HOST - 1] = '\0';
    if (!fits(m, rank, &g->link.peer) || m->st != CM_OK)
        turn_away(m, g);
    else
        seat(m, g, rank);
}

static void step_guest(struct meeting *m, struct guest *g, short revents, int64_t now)
{
    if (g->shake.fd < 0)
        return;
    if (g->shake.state == CM_SHAKE_DONE) {
        step_join(m, g, revents);
    } else {
        cm_shake_step(&g->shake);
        if (g->shake.state == CM_SHAKE_ASKED)
            cm_shake_admit(&g->shake);
        if (g->shake.state == CM_SHAKE_DONE) {
            cm_link_init(&g->link, g->shake.fd);
            cm_link_expect(&g->link, CM_HUB_JOIN, 0, &g->link.peer, sizeof(g->link.peer));
        }
    }
    if (g->shake.fd < 0)
        return;
    if (g->shake.state == CM_SHAKE_REFUSED)
        show_out(m, g, g->shake.why);
    else if (g->shake.state == CM_SHAKE_LOST)
        show_out(m, g, "closed before it said who it is");
    else if (now - g->since_ns > guest_ns)
        show_out(m, g, "too slow to say who it is");
}

/* One that had joined ends or gives up: so does the job. */
static void step_link(struct meeting *m, int rank, short revents)
{
    struct cm_hub_link *l = &m->hub->links[rank];
    char list[CM_HUB_TEXT / 4];

    cm_link_step(l, revents);
    if (l->fd < 0 || l->state <= CM_LINK_GOT || m->st != CM_OK)
        return;
    cm_hub_missing(m->hub, true, list, sizeof(list));
    if (l->state == CM_LINK_FAILED)
        fail(m, cm_hub_give_up(m->hub, cm_hub_status((enum cm_exit)l->in.code),
                               "rank %d (host %s) does not wait any longer; missing: rank %s", rank,
                               l->peer.host, list));
    else
        fail(m, cm_hub_give_up(m->hub, CM_ESYS, "rank %d (host %s) died while rank %s was awaited",
                               rank, l->peer.host, list));
}

/* ---- the loop ---- */

static void await(struct meeting *m, int64_t now)
{
    const struct cm_hub *h = m->hub;
    int64_t left_ms = (m->until_ns - now) / CM_NS_PER_MS + 1;
    struct pollfd *p = m->fds;

    *p++ = (struct pollfd){.fd = m->listener, .events = POLLIN};
    for (int i = 0; i < h->nlinks; i++)
        *p++ = (struct pollfd){.fd = h->links[i].fd, .events = cm_link_events(&h->links[i])};
    for (int i = 0; i < m->nguests; i++) {
        const struct guest *g = &m->guests[i];
        bool shaken = g->shake.state == CM_SHAKE_DONE;

        *p++ = (struct pollfd){.fd = g->shake.fd,
                               .events = shaken ? POLLIN : cm_shake_events(&g->shake)};
    }
    poll(m->fds, (nfds_t)(p - m->fds), left_ms < POLL_MS ? (int)left_ms : POLL_MS);
}

static enum cm_status not_all_came(struct meeting *m)
{
    char list[CM_HUB_TEXT / 4];
    int n = cm_hub_missing(m->hub, true, list, sizeof(list));

    return cm_hub_give_up(m->hub, CM_ETIMEOUT,
                          "rendezvous at %s: %d of %d processes did not come within %.1f s: "
                          "rank%s %s",
                          m->hub->where, n, m->hub->a.nprocs,
                          (double)m->hub->a.meet_ns / CM_NS_PER_S, n == 1 ? "" : "s", list);
}

static enum cm_status run(struct meeting *m)
{
    int64_t now = cm_now_ns();
    int n = m->hub->nlinks;

    m->until_ns = now + m->hub->a.meet_ns;
    while (m->joined < n - 1) {
        if (now >= m->until_ns)
            return m->st != CM_OK ? m->st : not_all_came(m);
        welcome(m, now);
        await(m, now);
        now = cm_now_ns();
        for (int i = 1; i < n; i++)
            if (m->fds[1 + i].fd == m->hub->links[i].fd)
                step_link(m, i, m->fds[1 + i].revents);
        for (int i = 0; i < m->nguests; i++)
            step_guest(m, &m->guests[i], m->fds[1 + n + i].revents, now);
    }
    return m->st;
}

/* Sockets of all processes, as many guests, and what else is open. */
static enum cm_status allow_files(int nprocs)
{
    rlim_t need = 2 * (rlim_t)nprocs + SPARE + OTHER_FILES;
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= need)
        return CM_OK;
    if (l.rlim_max < need)
        return CM_FAIL(CM_ESYS, "%d processes need %llu open files, the limit (ulimit -Hn) is %llu",
                       nprocs, (unsigned long long)need, (unsigned long long)l.rlim_max);
    l.rlim_cur = need;
    return CM_SYS(setrlimit(RLIMIT_NOFILE, &l) == 0, "raising the limit of open files");
}

/* All are here: nobody else is wanted, and the others may go on. */
static void let_go(struct cm_hub *h)
{
    struct cm_hub_head ready = {.type = CM_HUB_READY};
    int64_t until = cm_now_ns() + h->a.patience_ns;

    for (int p = 1; p < h->nlinks; p++)
        cm_link_say(&h->links[p], &ready, NULL);
    while (cm_hub_busy(h) > 0 && cm_now_ns() < until)
        cm_hub_step(h, until);
}

enum cm_status cm_hub_host(const struct cm_hub_args *a, int listener, const char *where,
                           struct cm_hub **out)
{
    enum cm_status st = allow_files(a->nprocs);
    struct meeting m = {.listener = listener, .nguests = a->nprocs + SPARE};

    if (st != CM_OK)
        return st;
    m.hub = cm_hub_new(a, a->nprocs, where);
    m.guests = calloc((size_t)m.nguests, sizeof(*m.guests));
    m.fds = calloc((size_t)(1 + a->nprocs + m.nguests), sizeof(*m.fds));
    if (m.hub == NULL || m.guests == NULL || m.fds == NULL)
        st = CM_FAIL(CM_ENOMEM, "no memory to meet %d processes", a->nprocs);
    for (int i = 0; st == CM_OK && i < m.nguests; i++)
        m.guests[i].shake.fd = -1;
    if (st == CM_OK)
        st = run(&m);
    for (int i = 0; m.guests != NULL && m.fds != NULL && m.hub != NULL && i < m.nguests; i++)
        leave_place(&m.guests[i]);
    free(m.guests);
    free(m.fds);
    if (st != CM_OK) {
        cm_hub_close(m.hub);
        return st;
    }
    let_go(m.hub);
    *out = m.hub;
    return CM_OK;
}
