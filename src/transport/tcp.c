/*
 * Sockets of the proxy. Frames leave in batches, one call for many; a call
 * that the kernel cuts short is continued where it stopped.
 *
 * Invariant: a batch is filled only when the one before it has left, so what
 * it points to (slots, messages) is given back in order.
 */
#define _GNU_SOURCE
#include "transport/tcp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    BATCH_BYTES = 512 << 10, /* then the other direction gets its turn */
    TURNS = 8                /* calls on one socket before the others get theirs */
};

bool cm_batch_room(const struct cm_writer *w)
{
    return w->n < CM_BATCH && w->bytes < BATCH_BYTES;
}

void cm_batch_add(struct cm_writer *w, const struct cm_frame *f, const void *payload,
                  struct cm_note *note)
{
    int k = w->n++;

    assert(k < CM_BATCH);
    w->frames[k] = *f;
    w->frames[k].magic = CM_FRAME_MAGIC;
    w->notes[k] = note;
    w->iov[w->niov++] = (struct iovec){&w->frames[k], sizeof(w->frames[k])};
    if (f->bytes > 0)
        w->iov[w->niov++] = (struct iovec){(void *)(uintptr_t)payload, (size_t)f->bytes};
    w->iov_end[k] = w->niov;
    w->bytes += sizeof(*f) + (size_t)f->bytes;
}

/* `n` bytes have left: frames that are complete give back what they were made of. */
static void advance(struct cm_sock *s, size_t n)
{
    struct cm_writer *w = &s->out;

    while (w->at < w->niov && n >= w->iov[w->at].iov_len)
        n -= w->iov[w->at++].iov_len;
    if (n > 0) {
        w->iov[w->at].iov_base = (char *)w->iov[w->at].iov_base + n;
        w->iov[w->at].iov_len -= n;
    }
    for (; w->done < w->n && w->iov_end[w->done] <= w->at; w->done++)
        cm_peer_left(s, &w->frames[w->done], w->notes[w->done]);
    if (w->done < w->n)
        return;
    w->n = w->done = w->niov = w->at = 0;
    w->bytes = 0;
}

/* The connection broke: what the error means to who reads the message. */
static enum cm_status broken(const struct cm_sock *s, int err)
{
    struct cm_peer *p = s->peer;

    if (err == ETIMEDOUT)
        return cm_peer_blame(p, CM_ETIMEOUT,
                             "does not acknowledge what is sent: its host is down, or the way to "
                             "it is cut");
    if (err == 0 || err == ECONNRESET || err == EPIPE)
        return cm_peer_blame(p, CM_ESYS, "died: its connection %s",
                             err == 0 ? "ended without a farewell" : "was reset");
    return cm_peer_blame(p, CM_ESYS, "cannot be reached any more: %s", strerror(err));
}

/* Who has said farewell need not hear ours. */
static enum cm_status abandon(struct cm_sock *s)
{
    struct cm_writer *w = &s->out;

    for (; w->done < w->n; w->done++)
        free(w->notes[w->done]);
    w->n = w->done = w->niov = w->at = 0;
    s->told_bye = true;
    return CM_OK;
}

static bool would_block(int err)
{
    return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

enum cm_status cm_sock_write(struct cm_sock *s, bool *moved)
{
    struct cm_writer *w = &s->out;

    for (int turn = 0; turn < TURNS; turn++) {
        struct msghdr m = {0};
        ssize_t n;

        if (w->n == 0)
            cm_peer_fill(s);
        if (w->n == 0)
            return CM_OK;
        m.msg_iov = &w->iov[w->at];
        m.msg_iovlen = (size_t)(w->niov - w->at);
        n = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        s->peer->stats->writes++;
        if (n < 0 && !would_block(errno))
            return s->bye ? abandon(s) : broken(s, errno);
        if (n > 0) {
            advance(s, (size_t)n);
            s->peer->said = true;
            *moved = true;
        }
        s->full = w->n > 0; /* the kernel took less than there was */
        if (s->full)
            return CM_OK;
    }
    return CM_OK;
}

/* Was this the rest of what the socket had? Then another call would come back empty. */
static bool drained(const struct iovec *at, int areas, size_t n)
{
    size_t room = at[0].iov_len + (areas > 1 ? at[1].iov_len : 0);

    return n < room;
}

enum cm_status cm_sock_read(struct cm_sock *s, bool *moved)
{
    enum cm_status st = cm_reader_resume(&s->in);

    for (int turn = 0; turn < TURNS && st == CM_OK; turn++) {
        struct iovec at[2];
        int areas = cm_reader_where(&s->in, at);
        ssize_t n = readv(s->fd, at, areas);

        s->peer->stats->reads++;
        if (n < 0 && would_block(errno))
            return CM_OK;
        if (n == 0 && s->bye)
            return CM_OK;
        if (n <= 0)
            return broken(s, n == 0 ? 0 : errno);
        s->peer->heard = true;
        *moved = true;
        st = cm_reader_took(&s->in, (size_t)n);
        if (s->in.put_off || drained(at, areas, (size_t)n))
            return st;
    }
    return st;
}
