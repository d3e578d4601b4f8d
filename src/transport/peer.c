/*
 * A neighbour of the proxy: its ports, its sockets, and the queue of messages
 * to it. What is said to it is in speak.c, what its frames do in hear.c.
 *
 * Invariant: the queue is the only part that other threads touch; `waiting`
 * tells the driving thread about it without the lock.
 */
#include "transport/tcp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUEUE_BYTES = 256 << 10 };

static struct cm_port_end *new_ends(void *const *ports, int n)
{
    struct cm_port_end *e = calloc((size_t)n + 1, sizeof(*e));

    for (int i = 0; e != NULL && i < n; i++)
        e[i] = (struct cm_port_end){
            .lines = ports[i],
            .slots = (unsigned char *)ports[i] + sizeof(struct cm_port_lines),
        };
    return e;
}

enum cm_status cm_peer_init(struct cm_peer *p, const struct cm_proxy_args *a,
                            const struct cm_proxy_peer *from, struct cm_proxy_stats *stats)
{
    memset(p, 0, sizeof(*p));
    pthread_mutex_init(&p->lock, NULL);
    p->a = a;
    p->stats = stats;
    p->proc = from->proc;
    strncpy(p->host, from->host, sizeof(p->host) - 1);
    p->nsend = from->nsend;
    p->nrecv = from->nrecv;
    p->send = new_ends(from->send, from->nsend);
    p->recv = new_ends(from->recv, from->nrecv);
    p->socks = calloc((size_t)a->sockets, sizeof(*p->socks));
    for (int k = 0; p->socks != NULL && k < a->sockets; k++) {
        struct cm_frame_sink sink = cm_peer_sink(&p->socks[k]);

        p->socks[k].peer = p;
        p->socks[k].fd = -1;
        p->socks[k].index = p->socks[k].next = k;
        cm_reader_init(&p->socks[k].in, &sink);
    }
    if (p->send == NULL || p->recv == NULL || p->socks == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for the connection with process %d (host %s)", p->proc,
                       p->host);
    return CM_OK;
}

enum cm_status cm_peer_blame(struct cm_peer *p, enum cm_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->why, sizeof(p->why), fmt, ap);
    va_end(ap);
    return st;
}

static void free_notes(struct cm_note *n)
{
    while (n != NULL) {
        struct cm_note *next = n->next;

        free(n);
        n = next;
    }
}

void cm_peer_destroy(struct cm_peer *p)
{
    for (int k = 0; p->socks != NULL && k < p->a->sockets; k++) {
        struct cm_sock *s = &p->socks[k];

        for (int f = s->out.done; f < s->out.n; f++)
            free(s->out.notes[f]);
        if (s->fd >= 0)
            close(s->fd);
    }
    free_notes(p->first);
    free(p->send);
    free(p->recv);
    free(p->socks);
    if (p->a != NULL)
        pthread_mutex_destroy(&p->lock);
    memset(p, 0, sizeof(*p));
}

static enum cm_status append(struct cm_peer *p, struct cm_note *n)
{
    enum cm_status st = CM_OK;

    pthread_mutex_lock(&p->lock);
    if (p->queued + n->bytes + sizeof(*n) > QUEUE_BYTES) {
        st = CM_ENOMEM;
    } else {
        p->queued += n->bytes + sizeof(*n);
        if (p->last != NULL)
            p->last->next = n;
        else
            p->first = n;
        p->last = n;
        atomic_store(&p->waiting, true);
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

enum cm_status cm_peer_queue(struct cm_peer *p, uint32_t type, const void *bytes, size_t n)
{
    struct cm_note *note;

    if (n > CM_CONTROL_BYTES)
        return CM_FAIL(CM_EINVAL, "message of %zu bytes to process %d: at most %d", n, p->proc,
                       CM_CONTROL_BYTES);
    if (atomic_load(&p->closed))
        return CM_EABORT;
    note = malloc(sizeof(*note) + n);
    if (note == NULL)
        return CM_ENOMEM;
    *note = (struct cm_note){.type = type, .bytes = (uint32_t)n};
    if (n > 0)
        memcpy(note->payload, bytes, n);
    if (append(p, note) == CM_OK)
        return CM_OK;
    free(note);
    return CM_ENOMEM;
}
