/*
 * Memory that the adapter may touch: exactly the ports in use. A segment is
 * sparse and huge, and what is registered is pinned; so ports that lie next to
 * each other become one region, and nothing else does.
 *
 * Relaxed ordering is asked for where the library knows it: the only signal is a
 * completion, which is behind all data even so. No word in a port is written by the
 * adapter twice without a completion between.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/ib_int.h"

struct piece {
    char *at;
    int port;
};

static int by_address(const void *a, const void *b)
{
    const char *x = ((const struct piece *)a)->at, *y = ((const struct piece *)b)->at;

    return (x > y) - (x < y);
}

static size_t port_bytes(const struct cm_ib *ib)
{
    return sizeof(struct cm_port_lines) +
           (size_t)ib->a.depth * (sizeof(struct cm_slot_head) + ib->a.slot_bytes);
}

static enum cm_status make_room(struct cm_ib *ib)
{
    int room = ib->mrs_room == 0 ? 16 : 2 * ib->mrs_room;
    struct ibv_mr **mrs;

    if (ib->nmrs < ib->mrs_room)
        return CM_OK;
    mrs = realloc(ib->mrs, (size_t)room * sizeof(struct ibv_mr *));
    if (mrs == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d regions of ports", room);
    ib->mrs = mrs;
    ib->mrs_room = room;
    return CM_OK;
}

static enum cm_status refused(const struct cm_ib *ib, size_t bytes)
{
    if (errno == ENOMEM || errno == EAGAIN || errno == EPERM)
        return CM_FAIL(CM_ENOMEM,
                       "%s:%d: %zu bytes of ports cannot be registered: %s (may this process lock "
                       "so much memory? see ulimit -l)",
                       ib->dev.name, ib->dev.port, bytes, strerror(errno));
    return CM_FAIL(CM_ESYS, "%s:%d: %zu bytes of ports cannot be registered: %s", ib->dev.name,
                   ib->dev.port, bytes, strerror(errno));
}

static enum cm_status add_region(struct cm_ib *ib, char *at, size_t bytes, int access)
{
    const struct cm_verbs *v = &ib->verbs;
    enum cm_status st = make_room(ib);
    struct ibv_mr *mr;

    if (st != CM_OK)
        return st;
    if (v->reg_mr_iova2 != NULL)
        mr = v->reg_mr_iova2(ib->pd, at, bytes, (uintptr_t)at,
                             (unsigned int)access | IBV_ACCESS_RELAXED_ORDERING);
    else
        mr = v->reg_mr(ib->pd, at, bytes, access);
    if (mr == NULL)
        return refused(ib, bytes);
    ib->mrs[ib->nmrs++] = mr;
    return CM_OK;
}

/* Length of the run of pieces that starts at p: they lie in one region but for the rest of pages */
static int run_length(const struct piece *p, int n, size_t bytes)
{
    int k = 1;

    while (k < n && (size_t)(p[k].at - p[k - 1].at) < bytes + CM_PAGE)
        k++;
    return k;
}

static enum cm_status add_pieces(struct cm_ib *ib, const struct piece *p, int n, int access,
                                 struct cm_ib_end *ends)
{
    size_t bytes = port_bytes(ib);

    for (int at = 0, k; at < n; at += k) {
        enum cm_status st;
        const struct ibv_mr *mr;

        k = run_length(&p[at], n - at, bytes);
        st = add_region(ib, p[at].at, (size_t)(p[at + k - 1].at - p[at].at) + bytes, access);
        if (st != CM_OK)
            return st;
        mr = ib->mrs[ib->nmrs - 1];
        for (int i = at; i < at + k; i++)
            ends[p[i].port] = (struct cm_ib_end){
                .lines = (void *)p[i].at,
                .slots = (unsigned char *)p[i].at + sizeof(struct cm_port_lines),
                .key = access != 0 ? mr->rkey : mr->lkey,
            };
    }
    return CM_OK;
}

enum cm_status cm_ib_add_ports(struct cm_ib *ib, void *const *ports, int n, int access,
                               struct cm_ib_end *ends)
{
    struct piece *p = calloc((size_t)n + 1, sizeof(*p));
    enum cm_status st;

    if (p == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d ports", n);
    for (int i = 0; i < n; i++)
        p[i] = (struct piece){ports[i], i};
    qsort(p, (size_t)n, sizeof(*p), by_address);
    st = add_pieces(ib, p, n, access, ends);
    free(p);
    return st;
}

void cm_ib_release_memory(struct cm_ib *ib)
{
    while (ib->nmrs > 0)
        ib->verbs.dereg_mr(ib->mrs[--ib->nmrs]);
    free(ib->mrs);
    ib->mrs = NULL;
}
