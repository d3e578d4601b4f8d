/*
 * Who is a neighbour, and the ports of each connection. Both ends list them in
 * the same order (by sender, receiver, channel), which they derive from the same plans.
 */
#include <stdlib.h>

#include "common/fabric_int.h"

/* ---- neighbours ---- */

/* Does any rank of mine exchange slots with any of process `proc`? */
static bool has_pairs(const struct cm_fabric *f, int proc)
{
    const int32_t *first_of = f->a.world->first_of;
    const struct cm_pairs *p = &f->pairs;

    for (int i = 0; i < p->local; i++)
        for (int r = first_of[proc]; r < first_of[proc + 1]; r++)
            if (p->send[i * p->n + r] || p->recv[i * p->n + r])
                return true;
    return false;
}

static void add_peer(struct cm_fabric *f, int proc)
{
    struct cm_fabric_peer *peer = &f->peers[f->npeers++];

    peer->proc = proc;
    for (int i = 0; i < CM_NET_SOCKETS; i++)
        peer->fds[i] = -1;
}

enum cm_status cm_fabric_list_neighbours(struct cm_fabric *f)
{
    const struct cm_domains *d = &f->a.world->domains;
    bool *wanted = calloc((size_t)d->nprocs, sizeof(*wanted));
    int32_t *control = calloc((size_t)d->n + 2, sizeof(*control));
    enum cm_status st = CM_OK;
    int n;

    f->peers = calloc((size_t)d->nprocs, sizeof(*f->peers));
    if (wanted == NULL || control == NULL || f->peers == NULL) {
        st = CM_FAIL(CM_ENOMEM, "no memory for %d processes", d->nprocs);
    } else {
        n = cm_control_neighbours(d, f->a.boot->proc, control);
        for (int k = 0; k < n; k++)
            wanted[control[k]] = true;
        for (int p = 0; p < d->nprocs; p++)
            if (wanted[p] || (d->of_proc[p] != d->mine && has_pairs(f, p)))
                add_peer(f, p);
    }
    free(wanted);
    free(control);
    return st;
}

/* ---- ports ---- */

static void add_ports(const struct cm_fabric *f, int src, int dst, void **list, int *n)
{
    for (int ch = 0; ch < f->a.layout->channels; ch++)
        list[(*n)++] = (char *)f->a.base + cm_port_at(f->a.layout, src, dst, ch);
}

static int count_ports(const struct cm_fabric *f, const bool *pairs, int first, int end)
{
    int n = 0;

    for (int i = 0; i < f->pairs.local; i++)
        for (int r = first; r < end; r++)
            n += pairs[i * f->pairs.n + r];
    return n * f->a.layout->channels;
}

/* Sorted by (sender, receiver), on both sides. */
static void fill_ports(struct cm_fabric *f, struct cm_fabric_peer *peer, int first, int end)
{
    const struct cm_pairs *p = &f->pairs;

    for (int i = 0; i < p->local; i++)
        for (int r = first; r < end; r++)
            if (p->send[i * p->n + r])
                add_ports(f, p->first + i, r, peer->send, &peer->nsend);
    for (int r = first; r < end; r++)
        for (int i = 0; i < p->local; i++)
            if (p->recv[i * p->n + r])
                add_ports(f, r, p->first + i, peer->recv, &peer->nrecv);
}

enum cm_status cm_fabric_list_ports(struct cm_fabric *f)
{
    const int32_t *first_of = f->a.world->first_of;

    for (int k = 0; k < f->npeers; k++) {
        struct cm_fabric_peer *peer = &f->peers[k];
        int first = first_of[peer->proc], end = first_of[peer->proc + 1];
        size_t nsend = (size_t)count_ports(f, f->pairs.send, first, end);
        size_t nrecv = (size_t)count_ports(f, f->pairs.recv, first, end);

        peer->send = calloc(nsend + 1, sizeof(*peer->send));
        peer->recv = calloc(nrecv + 1, sizeof(*peer->recv));
        if (peer->send == NULL || peer->recv == NULL)
            return CM_FAIL(CM_ENOMEM, "no memory for %zu ports", nsend + nrecv);
        fill_ports(f, peer, first, end);
        f->nports += peer->nsend + peer->nrecv;
    }
    return CM_OK;
}
