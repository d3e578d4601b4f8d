#define _GNU_SOURCE
#include "transport/swap.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

static bool would_block(int err)
{
    return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

static bool done(const struct cm_swap *s)
{
    return s->put == s->out_bytes && s->got == s->in_bytes;
}

static enum cm_status broken(const struct cm_swap *s, int err)
{
    return CM_FAIL(CM_ESYS, "process %d (host %s): its connection broke during set-up: %s", s->proc,
                   s->host, err == 0 ? "it has ended" : strerror(err));
}

/* As far as it goes. */
static enum cm_status step(struct cm_swap *s)
{
    ssize_t n;

    while (s->put < s->out_bytes) {
        n = send(s->fd, (const char *)s->out + s->put, s->out_bytes - s->put, MSG_NOSIGNAL);
        if (n < 0 && would_block(errno))
            break;
        if (n < 0)
            return broken(s, errno);
        s->put += (size_t)n;
    }
    while (s->got < s->in_bytes) {
        n = recv(s->fd, (char *)s->in + s->got, s->in_bytes - s->got, 0);
        if (n < 0 && would_block(errno))
            break;
        if (n <= 0)
            return broken(s, n == 0 ? 0 : errno);
        s->got += (size_t)n;
    }
    return CM_OK;
}

static enum cm_status late(const struct cm_swap *swaps, int n)
{
    for (int i = 0; i < n; i++)
        if (!done(&swaps[i]))
            return CM_FAIL(CM_ETIMEOUT, "process %d (host %s) did not answer during set-up",
                           swaps[i].proc, swaps[i].host);
    return CM_OK;
}

/* How many are not done; `fds` is set up to wait for them. */
static int pending(const struct cm_swap *swaps, int n, struct pollfd *fds)
{
    int left = 0;

    for (int i = 0; i < n; i++) {
        const struct cm_swap *s = &swaps[i];
        short events =
            (short)((s->put < s->out_bytes ? POLLOUT : 0) | (s->got < s->in_bytes ? POLLIN : 0));

        fds[i] = (struct pollfd){.fd = events != 0 ? s->fd : -1, .events = events};
        left += !done(s);
    }
    return left;
}

enum cm_status cm_swap_all(struct cm_swap *swaps, int n, int64_t until_ns)
{
    struct pollfd *fds = calloc((size_t)n + 1, sizeof(*fds));
    enum cm_status st = fds != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "no memory for %d neighbours", n);

    while (st == CM_OK && pending(swaps, n, fds) > 0) {
        int64_t left_ns = until_ns - cm_now_ns();

        if (left_ns <= 0) {
            st = late(swaps, n);
            break;
        }
        poll(fds, (nfds_t)n, (int)(left_ns / CM_NS_PER_MS) + 1);
        for (int i = 0; i < n && st == CM_OK; i++)
            if (fds[i].revents != 0)
                st = step(&swaps[i]);
    }
    free(fds);
    return st;
}
