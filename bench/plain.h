/*
 * A plain loop over two sockets, one for each direction, between the two ranks
 * of a job: non-blocking calls, spinning. It knows neither slots nor credit.
 */
#ifndef CM_BENCH_PLAIN_H
#define CM_BENCH_PLAIN_H

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/interface.h"
#include "common/launch.h"
#include "transport/meet.h"

enum {
    PLAIN_POLLS_PER_CLOCK = 4096,
    PLAIN_SOCKETS = 2,
    PLAIN_CALL_BYTES = 1 << 20 /* of one call, so that both directions get their turns */
};

static const int64_t plain_patience_ns = 20LL * CM_NS_PER_S;

/* One rank's end. */
struct plain {
    int peer;          /* the other rank */
    int out_fd, in_fd; /* -1: none */
};

/* What is left of a message in one direction. */
struct plain_stream {
    int fd;
    char *at;
    size_t left;
};

/* One call; false: the other end is gone. */
static bool plain_move(struct plain_stream *s, bool out)
{
    size_t want = s->left < PLAIN_CALL_BYTES ? s->left : PLAIN_CALL_BYTES;
    ssize_t n;

    if (s->left == 0)
        return true;
    n = out ? send(s->fd, s->at, want, MSG_NOSIGNAL | MSG_DONTWAIT)
            : recv(s->fd, s->at, want, MSG_DONTWAIT);
    if (n > 0) {
        s->at += n;
        s->left -= (size_t)n;
    }
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Send and receive, both at once; either may be of no bytes. CM_ESYS, CM_ETIMEOUT. */
static enum cm_status plain_exchange(const struct plain *p, struct plain_stream out,
                                     struct plain_stream in)
{
    int64_t until = cm_now_ns() + plain_patience_ns;

    out.fd = p->out_fd;
    in.fd = p->in_fd;
    for (int polls = 1; out.left + in.left > 0; polls++) {
        if (!plain_move(&out, true) || !plain_move(&in, false))
            return CM_FAIL(CM_ESYS, "the socket to rank %d is closed", p->peer);
        if (polls % PLAIN_POLLS_PER_CLOCK == 0 && cm_now_ns() > until)
            return CM_FAIL(CM_ETIMEOUT, "rank %d does not take or send its message", p->peer);
    }
    return CM_OK;
}

/* What both ranks tell each other to connect. */
struct plain_card {
    struct cm_net_addr at;
    unsigned char token[CM_NET_TOKEN];
};

static enum cm_status plain_meet(struct plain *p, const struct cm_rank *r,
                                 const struct cm_net_if *on, int listener,
                                 const struct plain_card *cards)
{
    int fds[PLAIN_SOCKETS] = {-1, -1};
    struct cm_meet_peer peer = {
        .proc = p->peer, .host = r->infos[p->peer].host, .addr = cards[p->peer].at, .fds = fds};
    struct cm_meet_args m = {.proc = r->rank,
                             .on = on,
                             .listener = listener,
                             .sockets = PLAIN_SOCKETS,
                             .peers = &peer,
                             .npeers = 1,
                             .until_ns = cm_now_ns() + plain_patience_ns};
    struct cm_meet_trouble trouble;
    enum cm_status st;

    memcpy(m.token, cards[0].token, sizeof(m.token));
    st = cm_meet(&m, &trouble);
    if (st != CM_OK)
        return CM_FAIL(st, "plain sockets to rank %d: %s", p->peer, trouble.why);
    p->out_fd = fds[r->rank];
    p->in_fd = fds[p->peer];
    for (int i = 0; i < PLAIN_SOCKETS && st == CM_OK; i++)
        st = CM_SYS(cm_net_tune(fds[i], plain_patience_ns), "options of a socket");
    return st;
}

/* Collective over two ranks, one per process: connect over the interface that the wire uses. */
static enum cm_status plain_open(struct plain *p, struct cm_rank *r)
{
    struct cm_net_if on;
    struct plain_card mine = {.at = {.version = 0}}, cards[2];
    int listener = -1;
    enum cm_status st = cm_interface_choose(&r->opts->net, &on);

    *p = (struct plain){.peer = !r->rank, .out_fd = -1, .in_fd = -1};
    if (st == CM_OK)
        st = cm_net_listen(&on, (struct cm_net_ports){0, 0}, &listener, &mine.at);
    if (st == CM_OK && getrandom(mine.token, sizeof(mine.token), 0) != sizeof(mine.token))
        st = cm_fail_errno("getrandom");
    if (st == CM_OK)
        st = cm_team_gather(&r->team, &mine, sizeof(mine), cards);
    if (st == CM_OK)
        st = plain_meet(p, r, &on, listener, cards);
    if (listener >= 0)
        close(listener);
    return st;
}

static void plain_close(struct plain *p)
{
    if (p->out_fd >= 0)
        close(p->out_fd);
    if (p->in_fd >= 0)
        close(p->in_fd);
}

#endif
