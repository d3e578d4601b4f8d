/*
 * Hello and answer. Each side judges the other's bytes as they come, so that
 * somebody who speaks another protocol is known by the first four.
 *
 * Invariant: exactly sizeof(struct cm_hello) bytes are read; what follows
 * belongs to the frames. The token is sent only by who dialled, or to who had it.
 */
#define _GNU_SOURCE
#include "transport/shake.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

_Static_assert(sizeof(struct cm_hello) == 40, "no gaps: it travels as it is");

static void start(struct cm_shake *s, int fd, const struct cm_hello *mine, bool dialled)
{
    memset(s, 0, sizeof(*s));
    s->fd = fd;
    s->dialled = dialled;
    s->mine = *mine;
    s->mine.magic = CM_HELLO_MAGIC;
    s->mine.version = CM_NET_VERSION;
    s->mine.answer = !dialled;
    s->state = dialled ? CM_SHAKE_CONNECTING : CM_SHAKE_ASKING;
}

void cm_shake_dialled(struct cm_shake *s, int fd, const struct cm_hello *mine)
{
    start(s, fd, mine, true);
}

void cm_shake_accepted(struct cm_shake *s, int fd, const struct cm_hello *mine)
{
    start(s, fd, mine, false);
}

short cm_shake_events(const struct cm_shake *s)
{
    switch (s->state) {
    case CM_SHAKE_CONNECTING:
        return POLLOUT;
    case CM_SHAKE_ASKING:
        return s->dialled ? POLLOUT : POLLIN;
    case CM_SHAKE_ANSWERING:
        return s->dialled ? POLLIN : POLLOUT;
    default:
        return 0;
    }
}

static void lose(struct cm_shake *s, int err)
{
    s->err = err;
    s->state = CM_SHAKE_LOST;
}

static void refuse(struct cm_shake *s, const char *why)
{
    s->why = why;
    s->state = CM_SHAKE_REFUSED;
}

static void finish_connecting(struct cm_shake *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};
    int err = 0;
    socklen_t len = sizeof(err);

    if (poll(&p, 1, 0) != 1)
        return;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
        err = errno;
    if (err != 0)
        lose(s, err);
    else
        s->state = CM_SHAKE_ASKING;
}

/* Did a call that moved nothing fail for good? */
static bool failed(ssize_t n)
{
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static void put_mine(struct cm_shake *s, enum cm_shake_state next)
{
    ssize_t n = send(s->fd, (char *)&s->mine + s->put, sizeof(s->mine) - s->put,
                     MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n > 0)
        s->put += (size_t)n;
    else if (failed(n))
        lose(s, n == 0 ? ECONNRESET : errno);
    if (s->put == sizeof(s->mine))
        s->state = next;
}

/* An old or new release deserves to be told; it gets no token. */
static void tell_version(struct cm_shake *s)
{
    struct cm_hello h = s->mine;

    memset(h.token, 0, sizeof(h.token));
    if (!s->dialled)
        (void)!send(s->fd, &h, sizeof(h), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Does not tell by its duration how many bytes are right. */
static bool same_token(const unsigned char *a, const unsigned char *b)
{
    unsigned differ = 0;

    for (int i = 0; i < CM_NET_TOKEN; i++)
        differ |= (unsigned)(a[i] ^ b[i]);
    return differ == 0;
}

static void judge(struct cm_shake *s)
{
    const struct cm_hello *h = &s->theirs;

    if (h->version != CM_NET_VERSION) {
        tell_version(s);
        refuse(s, "another version of the protocol");
    } else if (!same_token(h->token, s->mine.token)) {
        refuse(s, "another job's token");
    } else if (h->answer != s->dialled || h->to != s->mine.from || h->sockets != s->mine.sockets ||
               (s->dialled && (h->from != s->mine.to || h->index != s->mine.index))) {
        refuse(s, "a hello meant for somebody else");
    } else {
        s->state = s->dialled ? CM_SHAKE_DONE : CM_SHAKE_ASKED;
    }
}

static void get_theirs(struct cm_shake *s)
{
    ssize_t n = recv(s->fd, (char *)&s->theirs + s->got, sizeof(s->theirs) - s->got, MSG_DONTWAIT);

    if (n > 0)
        s->got += (size_t)n;
    else if (failed(n))
        lose(s, n == 0 ? ECONNRESET : errno);
    if (s->got >= sizeof(s->theirs.magic) && s->theirs.magic != CM_HELLO_MAGIC)
        refuse(s, "not our protocol");
    else if (s->got == sizeof(s->theirs))
        judge(s);
}

static void step(struct cm_shake *s)
{
    switch (s->state) {
    case CM_SHAKE_CONNECTING:
        finish_connecting(s);
        break;
    case CM_SHAKE_ASKING:
        if (s->dialled)
            put_mine(s, CM_SHAKE_ANSWERING);
        else
            get_theirs(s);
        break;
    case CM_SHAKE_ANSWERING:
        if (s->dialled)
            get_theirs(s);
        else
            put_mine(s, CM_SHAKE_DONE);
        break;
    default:
        break;
    }
}

void cm_shake_step(struct cm_shake *s)
{
    enum cm_shake_state before;

    do {
        before = s->state;
        step(s);
    } while (s->state != before);
}

void cm_shake_admit(struct cm_shake *s)
{
    s->mine.to = s->theirs.from;
    s->mine.index = s->theirs.index;
    s->state = CM_SHAKE_ANSWERING;
    cm_shake_step(s);
}
