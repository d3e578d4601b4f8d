/*
 * The table of wires, and what all segments have in common.
 *
 * Invariant: a segment is usable from the moment cm_segment_open() returns it
 * on all processes; a failure of one process is a failure of all.
 */
#define _GNU_SOURCE
#include "transport/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/segment.h"

enum { PAGE = 4096 };
/* The last byte a process sends on a link: it leaves in order and is not dead. */
static const char bye = 'b';

const struct cm_wire *const cm_wires[] = {&cm_wire_loop, &cm_wire_shm, NULL};

const struct cm_net_wire cm_net_wires[] = {
    {"tcp", "processes of different nodes: TCP sockets"},
    {"ib", "processes of different nodes: InfiniBand and RoCE (libibverbs)"},
    {NULL, NULL},
};

const struct cm_wire *cm_wire_find(const char *name)
{
    for (const struct cm_wire *const *w = cm_wires; *w != NULL; w++)
        if (strcmp((*w)->name, name) == 0)
            return *w;
    return NULL;
}

const struct cm_net_wire *cm_net_wire_find(const char *name)
{
    for (const struct cm_net_wire *w = cm_net_wires; w->name != NULL; w++)
        if (strcmp(w->name, name) == 0)
            return w;
    return NULL;
}

const struct cm_wire *cm_wire_choose(const struct cm_boot *b)
{
    for (const struct cm_wire *const *w = cm_wires; *w != NULL; w++)
        if ((*w)->reaches(b))
            return *w;
    return NULL;
}

struct cm_segment *cm_segment_new(const struct cm_layout *l, int nprocs)
{
    struct cm_segment *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        cm_log("no memory for a segment");
        return NULL;
    }
    s->fd = -1;
    s->bytes = l->total;
    s->nprocs = nprocs;
    if (nprocs == 1)
        return s;
    s->links = malloc((size_t)nprocs * sizeof(*s->links));
    if (s->links == NULL) {
        cm_log("no memory for links to %d processes", nprocs);
        cm_segment_close(s);
        return NULL;
    }
    for (int p = 0; p < nprocs; p++)
        s->links[p] = -1;
    return s;
}

void cm_segment_advise(struct cm_segment *s, const struct cm_layout *l)
{
    if (s->bytes > l->arenas_at)
        madvise((char *)s->base + l->arenas_at, s->bytes - l->arenas_at, MADV_HUGEPAGE);
}

enum cm_status cm_segment_open(const struct cm_wire *w, const struct cm_boot *b,
                               const struct cm_layout *l, int64_t timeout_ns,
                               struct cm_segment **out)
{
    if (!w->reaches(b))
        return CM_FAIL(CM_EUNSUP, "--wire %s cannot connect %d process%s", w->name, b->nprocs,
                       b->nprocs == 1 ? "" : "es");
    return w->open(b, l, timeout_ns, out);
}

void cm_segment_close(struct cm_segment *s)
{
    if (s == NULL)
        return;
    for (int p = 0; s->links != NULL && p < s->nprocs; p++) {
        if (s->links[p] < 0)
            continue;
        send(s->links[p], &bye, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(s->links[p]);
    }
    free(s->links);
    if (s->base != NULL)
        munmap(s->base, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

void *cm_segment_base(const struct cm_segment *s)
{
    return s->base;
}

/* Broken without the farewell. Whoever said it may be gone too: the byte stays in our queue. */
static bool link_is_dead(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (got > 0)
        return false;
    return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

int cm_segment_dead_proc(struct cm_segment *s)
{
    for (int p = 0; s->links != NULL && p < s->nprocs; p++)
        if (s->links[p] >= 0 && link_is_dead(s->links[p]))
            return p;
    return -1;
}

/* For kernels before MADV_POPULATE_WRITE (5.14). fallocate reports a lack of memory; touching
   private memory cannot, which is why cm_segment_reserve looks at what is available first. */
static int reserve_by_hand(struct cm_segment *s, size_t offset, size_t bytes)
{
    int rc;

    if (s->fd >= 0) {
        do
            rc = fallocate(s->fd, 0, (off_t)offset, (off_t)bytes);
        while (rc != 0 && errno == EINTR);
        return rc;
    }
    for (size_t at = 0; at < bytes; at += PAGE) {
        _Atomic unsigned char *byte = (_Atomic unsigned char *)s->base + offset + at;

        atomic_fetch_add(byte, 0); /* a write that changes nothing */
    }
    return 0;
}

enum cm_status cm_segment_reserve(struct cm_segment *s, size_t offset, size_t bytes)
{
    size_t available = cm_memory_physical();
    int rc;

    if (offset > s->bytes || bytes > s->bytes - offset || offset % PAGE != 0)
        return CM_FAIL(CM_EINVAL, "segment of %zu bytes: cannot reserve %zu at %zu", s->bytes,
                       bytes, offset);
    if (bytes == 0)
        return CM_OK;
    if (bytes > available)
        return CM_FAIL(CM_ENOMEM, "memory for buffers: %zu bytes needed, %zu available", bytes,
                       available);
    rc = madvise((char *)s->base + offset, bytes, MADV_POPULATE_WRITE);
    if (rc != 0 && errno == EINVAL)
        rc = reserve_by_hand(s, offset, bytes);
    if (rc != 0)
        return CM_FAIL(CM_ENOMEM, "memory for buffers: %zu bytes needed, %zu available: %s", bytes,
                       available, strerror(errno));
    return CM_OK;
}
