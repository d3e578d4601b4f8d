/*
 * The star as a whole: made, polled, and dissolved when the job fails.
 *
 * Invariant: process 0 alone judges. It logs what it found once, tells all who
 * are connected, and from then on every call of every process fails; so all
 * end with one exit code, and no process waits for one that has left.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "transport/hub_int.h"

struct cm_hub *cm_hub_new(const struct cm_hub_args *a, int nlinks, const char *where)
{
    struct cm_hub *h = calloc(1, sizeof(*h));

    if (h != NULL) {
        h->links = calloc((size_t)nlinks, sizeof(*h->links));
        h->fds = calloc((size_t)nlinks, sizeof(*h->fds));
    }
    if (h == NULL || h->links == NULL || h->fds == NULL) {
        cm_hub_close(h);
        cm_log("no memory for connections with %d processes", nlinks);
        return NULL;
    }
    h->a = *a;
    h->nlinks = nlinks;
    snprintf(h->where, sizeof(h->where), "%s", where);
    for (int i = 0; i < nlinks; i++)
        cm_link_init(&h->links[i], -1);
    return h;
}

void cm_hub_close(struct cm_hub *h)
{
    if (h == NULL)
        return;
    for (int i = 0; h->links != NULL && i < h->nlinks; i++)
        cm_link_drop(&h->links[i]);
    free(h->links);
    free(h->fds);
    free(h);
}

/* ---- polling ---- */

void cm_hub_step(struct cm_hub *h, int64_t until_ns)
{
    int64_t left_ms = (until_ns - cm_now_ns()) / CM_NS_PER_MS + 1;

    for (int i = 0; i < h->nlinks; i++)
        h->fds[i] = (struct pollfd){.fd = h->links[i].fd, .events = cm_link_events(&h->links[i])};
    if (poll(h->fds, (nfds_t)h->nlinks, left_ms > 0 ? (int)left_ms : 0) <= 0)
        return;
    for (int i = 0; i < h->nlinks; i++)
        cm_link_step(&h->links[i], h->fds[i].revents);
}

int cm_hub_busy(const struct cm_hub *h)
{
    int n = 0;

    for (int i = 0; i < h->nlinks; i++) {
        const struct cm_hub_link *l = &h->links[i];

        n += l->fd >= 0 &&
             (l->state == CM_LINK_UP || (l->state == CM_LINK_GOT && !cm_link_sent(l)));
    }
    return n;
}

int cm_hub_missing(const struct cm_hub *h, bool any, char *buf, size_t size)
{
    size_t len = 0;
    int n = 0, first = 0;

    buf[0] = '\0';
    for (int p = 1; p <= h->nlinks; p++) {
        const struct cm_hub_link *l = &h->links[p < h->nlinks ? p : 0];
        bool missing = p < h->nlinks && (any ? l->fd < 0 : l->fd >= 0 && l->state != CM_LINK_GOT);

        n += missing;
        if (missing && first == 0)
            first = p;
        if (missing || first == 0)
            continue;
        if (len + 32 > size)
            len += (size_t)snprintf(buf + len, size - len, "%s", len + 6 > size ? "" : ", ...");
        else if (first == p - 1)
            len += (size_t)snprintf(buf + len, size - len, "%s%d", len > 0 ? ", " : "", first);
        else
            len += (size_t)snprintf(buf + len, size - len, "%s%d-%d", len > 0 ? ", " : "", first,
                                    p - 1);
        first = 0;
    }
    return n;
}

/* ---- the end of a failed job ---- */

/* Is link i the first one on a machine other than process 0's? */
static bool speaks_for_its_machine(const struct cm_hub *h, int i)
{
    uint64_t machine = h->links[i].peer.machine;

    for (int k = 1; k < i; k++)
        if (h->links[k].fd >= 0 && h->links[k].peer.machine == machine)
            return false;
    return machine != h->a.machine;
}

/* Read on without looking, so that the connection ends without a reset. */
static void drain(struct cm_hub_link *l)
{
    char junk[4096];
    ssize_t n;

    while ((n = recv(l->fd, junk, sizeof(junk), MSG_DONTWAIT)) > 0)
        ;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        cm_link_drop(l);
}

/* Tell it as soon as the message on its way is out; then wait until it hangs up. */
static void dismiss(struct cm_hub *h, int i)
{
    struct cm_hub_link *l = &h->links[i];
    struct cm_hub_head fail = {.type = CM_HUB_FAIL, .code = h->code, .bytes = strlen(h->text)};

    if (l->fd < 0)
        return;
    if (l->state == CM_LINK_LOST)
        cm_link_drop(l);
    else if (l->put == 0 || (cm_link_sent(l) && l->out.type != CM_HUB_FAIL)) {
        fail.loud = speaks_for_its_machine(h, i);
        cm_link_say(l, &fail, h->text);
    }
}

static bool anybody(const struct cm_hub *h)
{
    for (int i = 0; i < h->nlinks; i++)
        if (h->links[i].fd >= 0)
            return true;
    return false;
}

void cm_hub_dismiss(struct cm_hub *h)
{
    int64_t now = cm_now_ns(), until = now + CM_HUB_FAREWELL_MS * (int64_t)CM_NS_PER_MS;

    for (int i = 0; i < h->nlinks; i++)
        if (h->links[i].state != CM_LINK_LOST)
            h->links[i].state = CM_LINK_GOT; /* nothing they say matters any more */
    while (anybody(h) && now < until) {
        for (int i = 0; i < h->nlinks; i++) {
            dismiss(h, i);
            h->fds[i] = (struct pollfd){.fd = h->links[i].fd, .events = POLLIN};
            if (!cm_link_sent(&h->links[i]))
                h->fds[i].events |= POLLOUT;
        }
        poll(h->fds, (nfds_t)h->nlinks, (int)((until - now) / CM_NS_PER_MS) + 1);
        for (int i = 0; i < h->nlinks; i++) {
            cm_link_step(&h->links[i], h->fds[i].revents & POLLOUT);
            if (h->links[i].fd >= 0 && (h->fds[i].revents & ~POLLOUT) != 0)
                drain(&h->links[i]);
        }
        now = cm_now_ns();
    }
}

enum cm_status cm_hub_give_up(struct cm_hub *h, enum cm_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(h->text, sizeof(h->text), fmt, ap);
    va_end(ap);
    h->broken = true;
    h->code = cm_status_exit(st);
    cm_log("%s", h->text);
    cm_hub_dismiss(h);
    return st;
}

enum cm_status cm_hub_status(enum cm_exit code)
{
    enum cm_status st = CM_EINVAL;

    if (code == CM_EXIT_SYSTEM)
        return CM_EABORT;
    while (st < CM_ETRUNC && cm_status_exit(st) != code)
        st++;
    return cm_status_exit(st) == code ? st : CM_EABORT;
}

enum cm_status cm_hub_obey(struct cm_hub *h, const struct cm_hub_link *l)
{
    h->broken = true;
    h->code = (enum cm_exit)l->in.code;
    if (l->in.loud)
        cm_log("%s", h->text);
    cm_link_drop(&h->links[0]);
    return cm_hub_status(h->code);
}

void cm_hub_kill(struct cm_hub *h, enum cm_exit code)
{
    h->broken = true;
    h->code = code;
    h->text[0] = '\0';
    cm_hub_dismiss(h);
}
