/*
 * Ports over libibverbs. The sockets that the neighbours have connected carry
 * what their queue pairs must know of each other; later the proxy has them,
 * for control messages and to notice who is silent.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "common/fabric_int.h"
#include "transport/swap.h"

static const char wire_ib[] = "ib";

static struct cm_ib_choice choice_of(const struct cm_fabric *f)
{
    const struct cm_opts_net *o = &f->a.opts->net;
    const struct cm_rank_info *info = &f->a.world->infos[f->pairs.first];
    struct cm_ib_choice c = cm_ib_usual();

    c.hca = o->ib_hca;
    c.nearest = f->nic[0] != '\0' ? f->nic : NULL;
    c.numa = info->numa;
    c.gid = o->ib_gid;
    c.qps = o->ib_qps;
    c.mtu = o->ib_mtu;
    c.adaptive = o->ib_adaptive;
    c.timeout = o->ib_timeout;
    c.retries = o->ib_retries;
    c.tc = o->ib_tc;
    c.sl = o->ib_sl;
    for (int p = 0; p < f->a.boot->proc; p++)
        c.nth += strcmp(f->a.world->infos[f->a.world->first_of[p]].boot_id, info->boot_id) == 0;
    return c;
}

/* What one process can say to the question whether the job uses ib. */
struct answer {
    uint32_t can;
    char why[CM_IB_TEXT];
};

/* Unless --wire says so, ib is used if all have it; who has not is told if it was asked for. */
static enum cm_status ask_all(struct cm_fabric *f, bool forced)
{
    const struct cm_boot *b = f->a.boot;
    const struct cm_ib_choice c = choice_of(f);
    struct answer mine = {0, ""}, *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status st = cm_boot_agree(
        b, all != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs));

    mine.can = cm_ib_available(&c, mine.why, sizeof(mine.why));
    if (st == CM_OK)
        st = b->gather(b, &mine, sizeof(mine), all);
    f->over_ib = st == CM_OK;
    for (int p = 0; st == CM_OK && p < b->nprocs; p++) {
        if (all[p].can)
            continue;
        f->over_ib = false;
        if (forced)
            st = CM_REFUSE(b, CM_EUNSUP, "--wire/--net ib: process %d on host %s: %s", p,
                           f->a.world->infos[f->a.world->first_of[p]].host, all[p].why);
    }
    free(all);
    return st;
}

enum cm_status cm_fabric_choose_ib(struct cm_fabric *f)
{
    const struct cm_opts_net *o = &f->a.opts->net;
    const char *wire = f->a.opts->launch.wire;
    bool forced = o->use == CM_NET_USE_IB || (wire != NULL && strcmp(wire, wire_ib) == 0);

    if (o->ib_disable || o->use == CM_NET_USE_TCP || (wire != NULL && !forced))
        return CM_OK; /* that these go together was checked with the options */
    if (!cm_world_nic(f->a.world, f->pairs.first, f->nic))
        f->nic[0] = '\0';
    return ask_all(f, forced);
}

/* ---- opening ---- */

static enum cm_status open_device(struct cm_fabric *f, struct cm_proxy_events events)
{
    struct cm_ib_peer *to = calloc((size_t)f->npeers + 1, sizeof(*to));
    const struct cm_ib_args a = {.proc = f->a.boot->proc,
                                 .depth = f->a.layout->depth,
                                 .slot_bytes = f->a.layout->slot_bytes,
                                 .peers = to,
                                 .npeers = f->npeers,
                                 .choice = choice_of(f),
                                 .mode = f->mode,
                                 .spins = cm_fabric_spins(f),
                                 .crowded = f->a.world->oversubscribed,
                                 .events = {.arg = events.arg, .lost = events.lost}};
    enum cm_status st;

    if (to == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d neighbours", f->npeers);
    for (int k = 0; k < f->npeers; k++)
        to[k] = (struct cm_ib_peer){.proc = f->peers[k].proc,
                                    .host = cm_fabric_host(f, f->peers[k].proc),
                                    .send = f->peers[k].send,
                                    .recv = f->peers[k].recv,
                                    .nsend = f->peers[k].nsend,
                                    .nrecv = f->peers[k].nrecv};
    st = cm_ib_open(&a, &f->ib);
    free(to);
    return st;
}

/* Room for what goes out and comes in; the swap of a neighbour owns both. */
static enum cm_status prepare_swap(const struct cm_fabric *f, int k, struct cm_swap *s)
{
    const struct cm_fabric_peer *p = &f->peers[k];
    void *out;

    s->fd = p->fds[0];
    s->proc = p->proc;
    s->host = cm_fabric_host(f, p->proc);
    s->out_bytes = cm_ib_offer_bytes(p->nrecv);
    s->in_bytes = cm_ib_offer_bytes(p->nsend);
    s->out = out = malloc(s->out_bytes);
    s->in = malloc(s->in_bytes);
    if (out == NULL || s->in == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory to connect with %d neighbours", f->npeers);
    cm_ib_offer(f->ib, k, out);
    return CM_OK;
}

static enum cm_status swap_offers(struct cm_fabric *f)
{
    struct cm_swap *swaps = calloc((size_t)f->npeers + 1, sizeof(*swaps));
    enum cm_status st = CM_OK;

    if (swaps == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory to connect with %d neighbours", f->npeers);
    for (int k = 0; st == CM_OK && k < f->npeers; k++)
        st = prepare_swap(f, k, &swaps[k]);
    if (st == CM_OK)
        st = cm_swap_all(swaps, f->npeers, cm_now_ns() + f->a.setup_ns);
    for (int k = 0; st == CM_OK && k < f->npeers; k++)
        st = cm_ib_connect(f->ib, k, swaps[k].in, swaps[k].in_bytes);
    for (int k = 0; k < f->npeers; k++) {
        free((void *)(uintptr_t)swaps[k].out);
        free(swaps[k].in);
    }
    free(swaps);
    return st;
}

enum cm_status cm_fabric_open_ib(struct cm_fabric *f, struct cm_proxy_events events)
{
    const struct cm_boot *b = f->a.boot;
    enum cm_status st;

    if (!f->over_ib)
        return CM_OK;
    st = cm_boot_agree(b, open_device(f, events));
    if (st == CM_OK)
        st = cm_boot_agree(b, swap_offers(f)); /* and so all have connected */
    return st == CM_OK ? cm_ib_start(f->ib) : st;
}
