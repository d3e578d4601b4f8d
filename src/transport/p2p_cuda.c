/*
 * Connecting the GPU areas of a node's ranks, and those ranks with other nodes.
 *
 * Each rank allocates its area, tells the others how to reach it, tries to
 * reach theirs, and tells what it could reach. A pair that cannot in both
 * directions uses far areas in pinned host memory; to a rank on another node
 * lead ports only. Invariant: `near` is symmetric and `all_near` equal on all
 * ranks, because both come from gathered data.
 */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "transport/p2p.h"

enum { PAGE = 4096 };

/* How a rank's area can be reached. */
struct card {
    int32_t proc, device, sms, members;
    uint64_t base;    /* address in its process */
    uint64_t scratch; /* offset */
    uint64_t bytes;
    struct cm_gpu_handle handle;
};

struct cm_p2p_inner {
    void *ctx;
    enum cm_status (*gather)(void *ctx, const void *mine, size_t bytes, void *all);
    struct card *cards;   /* n */
    unsigned char **peer; /* n: areas as mapped here, NULL: out of reach */
    bool *imported;       /* n: by cm_gpu_import() */
    /* pinned for kernels; `far` is the caller's, and NULL where no pair needs it */
    void *abort, *hint, **far;
    void **ports; /* 2 n: pinned ones to and from remote ranks, NULL: none */
};

static enum cm_status allocate(struct cm_p2p *p)
{
    size_t n = (size_t)p->n;

    p->near = calloc(n, sizeof(*p->near));
    p->remote = calloc(n, sizeof(*p->remote));
    p->inner = calloc(1, sizeof(*p->inner));
    if (p->near == NULL || p->remote == NULL || p->inner == NULL)
        return CM_FAIL(CM_ENOMEM, "table of %d GPU areas", p->n);
    p->inner->cards = calloc(n, sizeof(*p->inner->cards));
    p->inner->peer = calloc(n, sizeof(*p->inner->peer));
    p->inner->imported = calloc(n, sizeof(*p->inner->imported));
    p->inner->ports = calloc(2 * n, sizeof(*p->inner->ports));
    if (p->inner->cards == NULL || p->inner->peer == NULL || p->inner->imported == NULL ||
        p->inner->ports == NULL)
        return CM_FAIL(CM_ENOMEM, "table of %d GPU areas", p->n);
    return CM_OK;
}

/* Who is on another node; their number is *count. */
static enum cm_status find_remote(struct cm_p2p *p, const struct cm_p2p_remote *r, int *count)
{
    *count = 0;
    for (int k = 0; r != NULL && k < p->n; k++) {
        p->remote[k] = cm_local_of(r->layout, r->world[k]) < 0;
        *count += p->remote[k];
    }
    if (*count > 0 && r->layout->depth != (int)p->area.depth)
        return CM_FAIL(CM_EINVAL, "ports between nodes have %d slots, those of GPUs %u",
                       r->layout->depth, p->area.depth);
    return CM_OK;
}

/* Allocate the area and show it to all. */
static enum cm_status exchange_cards(struct cm_p2p *p, const struct cm_p2p_args *a)
{
    struct card mine = {.proc = a->proc,
                        .device = cm_gpu_index(a->gpu),
                        .sms = cm_gpu_facts(a->gpu)->sms,
                        .members = a->members,
                        .scratch = a->scratch_at,
                        .bytes = a->area.bytes};
    int remote = 0;
    enum cm_status st = find_remote(p, a->remote, &remote);

    if (st == CM_OK)
        st = cm_gpu_alloc(a->gpu, a->area.bytes, (void **)&p->base);
    /* Some containers and virtual GPUs refuse handles: not asked for where all are in one gang. */
    if (st == CM_OK && !a->far_only && a->members < a->n - remote)
        st = cm_gpu_export(a->gpu, p->base, &mine.handle);
    if (st != CM_OK)
        return st;
    mine.base = (uint64_t)(uintptr_t)p->base;
    return a->gather(a->ctx, &mine, sizeof(mine), p->inner->cards);
}

/* The magic number of a peer's area must be what we see there: else the mapping is another's. */
static enum cm_status verify(const struct cm_p2p *p, int r)
{
    uint64_t magic = 0;
    enum cm_status st = cm_gpu_get(p->gpu, &magic, p->inner->peer[r], sizeof(magic));

    if (st == CM_OK && magic != CM_GPU_MAGIC)
        st = CM_FAIL(CM_ESYS, "the GPU area of rank %d is mapped, but holds other data", r);
    return st;
}

/* Try to reach the area of rank `r`; peer[r] stays NULL if that cannot be. */
static enum cm_status reach(struct cm_p2p *p, const struct cm_p2p_args *a, int r)
{
    const struct card *card = &p->inner->cards[r];
    void *at = NULL;
    bool ok = false;
    enum cm_status st;

    if (r == p->rank) {
        p->inner->peer[r] = p->base;
        return CM_OK;
    }
    if (p->remote[r])
        return CM_OK;
    if (a->far_only && !(card->proc == a->proc && card->device == cm_gpu_index(a->gpu)))
        return CM_OK;
    if (card->proc == a->proc) {
        st = cm_gpu_peer(a->gpu, card->device, &ok);
        if (st == CM_OK && ok)
            p->inner->peer[r] = (unsigned char *)(uintptr_t)card->base;
        return st;
    }
    st = cm_gpu_import(a->gpu, &card->handle, &at);
    p->inner->peer[r] = at;
    p->inner->imported[r] = at != NULL;
    return st == CM_OK && at != NULL ? verify(p, r) : st;
}

/* The first fields of the state: what a peer looks for. */
static enum cm_status mark(const struct cm_p2p *p)
{
    const uint64_t magic = CM_GPU_MAGIC;

    return cm_gpu_put(p->gpu, p->base, &magic, sizeof(magic));
}

/* All ranks tell whom they reach; near is what both sides of a pair do. */
static enum cm_status agree(struct cm_p2p *p, const struct cm_p2p_args *a, enum cm_status mine)
{
    struct {
        int32_t status;
        bool reaches[CM_GPU_RANKS];
    } told = {.status = (int32_t)mine}, *all = calloc((size_t)p->n, sizeof(*all));
    enum cm_status st;

    if (all == NULL)
        return CM_FAIL(CM_ENOMEM, "reach of %d GPU areas", p->n);
    for (int r = 0; r < p->n; r++)
        told.reaches[r] = p->inner->peer[r] != NULL;
    st = a->gather(a->ctx, &told, sizeof(told), all);
    p->all_near = true;
    for (int r = 0; st == CM_OK && r < p->n; r++) {
        p->near[r] = told.reaches[r] && all[r].reaches[p->rank];
        for (int k = 0; k < p->n; k++)
            p->all_near &= all[r].reaches[k];
    }
    for (int r = 0; st == CM_OK && r < p->n; r++)
        st = (enum cm_status)all[r].status == CM_OK ? CM_OK : CM_EABORT;
    free(all);
    return mine != CM_OK ? mine : st;
}

static enum cm_status pin(struct cm_gpu *g, void *host, size_t bytes, void **device)
{
    enum cm_status st = cm_gpu_pin(host, bytes);

    return st == CM_OK ? cm_gpu_pinned(g, host, device) : st;
}

/*
 * The ports of all channels from world rank `src` to `dst`, which lie behind each
 * other and on pages of their own; kept in *at until they are unpinned.
 */
static enum cm_status pin_ports(const struct cm_p2p *p, const struct cm_p2p_remote *remote, int src,
                                int dst, void **at, uint64_t *device)
{
    const struct cm_layout *l = remote->layout;
    void *seen = NULL;
    enum cm_status st;

    *at = (unsigned char *)remote->base + cm_port_at(l, src, dst, 0);
    st = pin(p->gpu, *at, cm_port_stride(l) * (size_t)l->channels, &seen);
    *device = (uint64_t)(uintptr_t)seen;
    return st;
}

/* The pair with rank `r` on another node. */
static enum cm_status fill_remote(struct cm_p2p *p, const struct cm_p2p_args *a, int r,
                                  struct cm_gpu_peer *out)
{
    const struct cm_p2p_remote *remote = a->remote;
    int me = remote->world[p->rank], other = remote->world[r];
    void **at = &p->inner->ports[2 * r];
    enum cm_status st = CM_OK;

    if (remote->send[other])
        st = pin_ports(p, remote, me, other, &at[0], &out->send);
    if (st == CM_OK && remote->recv[other])
        st = pin_ports(p, remote, other, me, &at[1], &out->recv);
    return st;
}

/* Bases of the pair with rank `r`. */
static enum cm_status fill_peer(struct cm_p2p *p, const struct cm_p2p_args *a, int r,
                                struct cm_gpu_peer *out)
{
    uint64_t theirs = (uint64_t)(uintptr_t)p->inner->peer[r];
    void *mine_far, *their_far;
    enum cm_status st;

    if (p->remote[r])
        return fill_remote(p, a, r, out);
    if (p->near[r]) {
        *out = (struct cm_gpu_peer){.mine = (uint64_t)(uintptr_t)p->base,
                                    .theirs = theirs,
                                    .data = theirs,
                                    .scratch = theirs + p->inner->cards[r].scratch};
        return CM_OK;
    }
    if (a->far == NULL)
        return CM_FAIL(CM_EUNSUP,
                       "the GPUs of ranks %d and %d cannot reach each other's memory, and there is "
                       "no host memory set aside for that: NCCL_P2P_DISABLE=1 reserves it",
                       p->rank, r);
    st = pin(p->gpu, a->far[p->rank], p->area.sync_bytes, &mine_far);
    if (st == CM_OK)
        st = pin(p->gpu, a->far[r], p->area.sync_bytes, &their_far);
    if (st != CM_OK)
        return st;
    *out = (struct cm_gpu_peer){.mine = (uint64_t)(uintptr_t)mine_far,
                                .theirs = (uint64_t)(uintptr_t)their_far};
    return CM_OK;
}

static enum cm_status write_state(struct cm_p2p *p, const struct cm_p2p_args *a)
{
    struct cm_gpu_state *s = calloc(1, sizeof(*s));
    void *abort = NULL, *hint = NULL;
    enum cm_status st;

    if (s == NULL)
        return CM_FAIL(CM_ENOMEM, "state of rank %d", p->rank);
    st = pin(p->gpu, a->abort, PAGE, &abort);
    if (st == CM_OK)
        st = pin(p->gpu, a->hint, PAGE, &hint);
    p->inner->abort = a->abort;
    p->inner->hint = a->hint;
    p->inner->far = a->far;
    s->magic = CM_GPU_MAGIC;
    s->rank = (uint32_t)p->rank;
    s->abort = (uint64_t)(uintptr_t)abort;
    s->hint = (uint64_t)(uintptr_t)hint;
    s->area = p->area;
    if (a->remote != NULL) {
        s->remote_port = cm_port_stride(a->remote->layout);
        s->remote_slot = cm_slot_stride(a->remote->layout);
    }
    for (int r = 0; st == CM_OK && r < p->n; r++)
        st = fill_peer(p, a, r, &s->peers[r]);
    if (st == CM_OK)
        st = cm_gpu_put(p->gpu, p->base, s, sizeof(*s));
    free(s);
    return st;
}

static const char *describe(const struct cm_p2p *p)
{
    bool ipc = false, near = false, far = false;

    for (int r = 0; r < p->n; r++) {
        ipc |= p->inner->imported[r];
        near |= p->near[r] && r != p->rank;
        far |= !p->near[r] && !p->remote[r];
    }
    if (far)
        return near ? "p2p and pinned host memory" : "pinned host memory";
    return ipc ? "p2p+ipc" : "p2p";
}

/* Blocks that fit on the smallest share of a GPU: one per SM. */
static int resident_blocks(const struct cm_p2p *p)
{
    int least = CM_GPU_BLOCKS;

    for (int r = 0; r < p->n; r++) {
        int own = p->inner->cards[r].sms / p->inner->cards[r].members;

        least = own < least ? own : least;
    }
    return least > 0 ? least : 1;
}

static enum cm_status connect_all(struct cm_p2p *p, const struct cm_p2p_args *a)
{
    enum cm_status st = exchange_cards(p, a);

    if (st == CM_OK)
        st = mark(p);
    if (st == CM_OK)
        st = agree(p, a, CM_OK); /* all areas are marked */
    for (int r = 0; st == CM_OK && r < p->n; r++)
        st = reach(p, a, r);
    st = agree(p, a, st);
    if (st == CM_OK) {
        p->blocks = resident_blocks(p);
        p->how = describe(p);
        st = write_state(p, a);
    }
    return agree(p, a, st); /* nobody launches before all states are written */
}

enum cm_status cm_p2p_open(const struct cm_p2p_args *a, struct cm_p2p **out)
{
    struct cm_p2p *p = calloc(1, sizeof(*p));
    enum cm_status st;

    if (p == NULL)
        return CM_FAIL(CM_ENOMEM, "GPU areas of %d ranks", a->n);
    p->rank = a->rank;
    p->n = a->n;
    p->gpu = a->gpu;
    p->area = a->area;
    st = allocate(p);
    if (st == CM_OK) {
        p->inner->gather = a->gather;
        p->inner->ctx = a->ctx;
        st = connect_all(p, a);
    }
    if (st != CM_OK) {
        cm_p2p_close(p, false);
        return st;
    }
    *out = p;
    return CM_OK;
}

static void unmap(struct cm_p2p *p)
{
    for (int r = 0; p->inner->imported != NULL && r < p->n; r++)
        if (p->inner->imported[r])
            cm_gpu_unimport(p->gpu, p->inner->peer[r]);
}

/* No kernel of this process looks there any more. What another rank has unpinned is fine. */
static void unpin(const struct cm_p2p_inner *in, int n)
{
    cm_gpu_unpin(in->abort);
    cm_gpu_unpin(in->hint);
    for (int r = 0; in->far != NULL && r < n; r++)
        if (in->far[r] != NULL)
            cm_gpu_unpin(in->far[r]);
    for (int k = 0; k < 2 * n; k++)
        if (in->ports[k] != NULL)
            cm_gpu_unpin(in->ports[k]);
}

void cm_p2p_close(struct cm_p2p *p, bool orderly)
{
    struct cm_p2p_args a = {.gather = NULL};
    bool unused = false; /* by anybody else */

    if (p == NULL)
        return;
    if (p->inner != NULL) {
        unmap(p);
        a.gather = p->inner->gather;
        a.ctx = p->inner->ctx;
        unused = orderly && agree(p, &a, CM_OK) == CM_OK;
        if (unused)
            unpin(p->inner, p->n);
        free(p->inner->cards);
        free(p->inner->peer);
        free(p->inner->imported);
        free(p->inner->ports);
        free(p->inner);
    }
    if (unused) /* else kernels of peers may still store there; it goes with the process */
        cm_gpu_free(p->gpu, p->base);
    free(p->near);
    free(p->remote);
    free(p);
}
