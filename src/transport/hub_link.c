/*
 * One connection of the star: a message out, a message in, as far as the
 * socket lets them go.
 *
 * Invariant: exactly the bytes of the expected message are read; so whatever
 * comes later stays in the kernel until it is expected. A failure may come
 * instead of anything.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport/hub_int.h"

_Static_assert(sizeof(struct cm_hub_head) == 24, "no gaps: it travels as it is");
_Static_assert(sizeof(struct cm_hub_join) == 24 + CM_HUB_HOST, "no gaps: it travels as it is");

void cm_link_init(struct cm_hub_link *l, int fd)
{
    memset(l, 0, sizeof(*l));
    l->fd = fd;
    l->put = sizeof(l->out); /* nothing to send */
}

void cm_link_drop(struct cm_hub_link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

void cm_link_say(struct cm_hub_link *l, const struct cm_hub_head *head, const void *body)
{
    l->out = *head;
    l->out.magic = CM_HUB_MAGIC;
    l->body = body;
    l->put = 0;
}

void cm_link_expect(struct cm_hub_link *l, enum cm_hub_type type, uint32_t turn, void *room,
                    size_t bytes)
{
    if (l->state == CM_LINK_GOT)
        l->state = CM_LINK_UP;
    l->got = 0;
    l->want = type;
    l->want_turn = turn;
    l->room = room;
    l->want_bytes = bytes;
}

bool cm_link_sent(const struct cm_hub_link *l)
{
    return l->put == sizeof(l->out) + l->out.bytes;
}

/* A link whose message is there is only watched for its end. */
short cm_link_events(const struct cm_hub_link *l)
{
    short events = l->state == CM_LINK_UP ? POLLIN : POLLRDHUP;

    return (short)(events | (cm_link_sent(l) ? 0 : POLLOUT));
}

static bool failed(ssize_t n)
{
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static void lose(struct cm_hub_link *l, int err)
{
    l->state = CM_LINK_LOST;
    l->err = err;
}

/* What could not be sent does not count: the other side may have said why before it hung up. */
static void put(struct cm_hub_link *l)
{
    size_t head = l->put < sizeof(l->out) ? sizeof(l->out) - l->put : 0;
    size_t body = l->put > sizeof(l->out) ? l->put - sizeof(l->out) : 0;
    struct iovec at[2] = {
        {(char *)&l->out + l->put, head},
        {(char *)(uintptr_t)l->body + body, l->out.bytes - body},
    };
    struct msghdr m = {.msg_iov = head > 0 ? at : at + 1, .msg_iovlen = head > 0 ? 2 : 1};
    ssize_t n = sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n > 0)
        l->put += (size_t)n;
    else if (failed(n))
        l->put = sizeof(l->out) + l->out.bytes;
}

/* Where the body of the message in `in` goes, NULL: nowhere, it must not come. */
static char *place(const struct cm_hub_link *l)
{
    if (l->in.type == CM_HUB_FAIL)
        return l->text != NULL && l->in.bytes < CM_HUB_TEXT ? l->text : NULL;
    return l->in.type == l->want && l->in.turn == l->want_turn && l->in.bytes == l->want_bytes
               ? l->room
               : NULL;
}

/* The head is complete. */
static void judge(struct cm_hub_link *l)
{
    bool wanted = l->in.type == l->want && l->in.turn == l->want_turn;

    if (l->in.magic != CM_HUB_MAGIC || (l->in.bytes > 0 && place(l) == NULL) ||
        (l->in.type != CM_HUB_FAIL && (!wanted || l->in.bytes != l->want_bytes)))
        l->state = CM_LINK_ODD;
}

static void finish(struct cm_hub_link *l)
{
    if (l->state != CM_LINK_UP || l->got != sizeof(l->in) + l->in.bytes)
        return;
    l->state = l->in.type == CM_HUB_FAIL ? CM_LINK_FAILED : CM_LINK_GOT;
    if (l->state == CM_LINK_FAILED && l->text != NULL)
        l->text[l->in.bytes] = '\0';
}

/* One read, false: nothing more to be had now. */
static bool take(struct cm_hub_link *l)
{
    bool in_head = l->got < sizeof(l->in);
    char *to = in_head ? (char *)&l->in + l->got : place(l) + (l->got - sizeof(l->in));
    size_t room = sizeof(l->in) + (in_head ? 0 : l->in.bytes) - l->got;
    ssize_t n = recv(l->fd, to, room, MSG_DONTWAIT);

    if (n <= 0) {
        if (failed(n))
            lose(l, n == 0 ? 0 : errno);
        return false;
    }
    l->got += (size_t)n;
    if (in_head && l->got == sizeof(l->in))
        judge(l);
    if (!in_head || l->got == sizeof(l->in))
        finish(l);
    return l->state == CM_LINK_UP;
}

void cm_link_step(struct cm_hub_link *l, short revents)
{
    if (revents == 0 || l->fd < 0)
        return;
    if (!cm_link_sent(l) && (revents & (POLLOUT | POLLERR | POLLHUP)) != 0)
        put(l);
    /* The end of one that has said all it should: for what reason? */
    if (l->state == CM_LINK_GOT && (revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0)
        cm_link_expect(l, CM_HUB_FAIL, 0, NULL, 0);
    if (l->state == CM_LINK_UP && (revents & ~POLLOUT) != 0)
        while (take(l))
            ;
}
