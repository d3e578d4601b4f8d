/*
 * Opening: choose an interface, listen, tell all where, connect with the
 * neighbours, hand their sockets and ports to the proxy.
 *
 * Invariant: steps that may fail in one process are followed by an agreement,
 * as in launch.c.
 */
#include "common/fabric.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/fabric_int.h"
#include "common/interface.h"

enum { SPINS = 2000, SPINS_CROWDED = 2 };
static const int64_t silence_most_ns = 10LL * CM_NS_PER_S;
static const int64_t silence_least_ns = 100LL * CM_NS_PER_MS;

/* ---- interface and addresses ---- */

static enum cm_status choose_interface(struct cm_fabric *f)
{
    const struct cm_opts_net *o = &f->a.opts->net;
    struct cm_net_ports ports = {0, 0};
    enum cm_status st = o->ports != NULL ? cm_net_parse_ports(o->ports, &ports) : CM_OK;

    if (st == CM_OK)
        st = cm_interface_choose(o, &f->on);
    return st == CM_OK ? cm_net_listen(&f->on, ports, &f->listener, &f->at) : st;
}

/* What each process tells all: where it listens. The token is process 0's. */
static enum cm_status exchange_addresses(struct cm_fabric *f)
{
    const struct cm_boot *b = f->a.boot;
    struct cm_fabric_card mine = {.at = f->at};
    enum cm_status st = CM_OK;

    if (b->proc == 0 && getrandom(mine.token, sizeof(mine.token), 0) != (ssize_t)sizeof(mine.token))
        st = cm_fail_errno("getrandom");
    f->cards = calloc((size_t)b->nprocs, sizeof(*f->cards));
    if (f->cards == NULL)
        st = CM_FAIL(CM_ENOMEM, "no memory for the addresses of %d processes", b->nprocs);
    st = cm_boot_agree(b, st);
    return st == CM_OK ? b->gather(b, &mine, sizeof(mine), f->cards) : st;
}

/* ---- connections ---- */

const char *cm_fabric_host(const struct cm_fabric *f, int proc)
{
    return f->a.world->infos[f->a.world->first_of[proc]].host;
}

/* Ranks that share CPUs, or have the process for themselves, move their data while they wait. */
static enum cm_proxy_mode mode_of(const struct cm_fabric *f)
{
    int progress = f->a.opts->net.progress;

    if (progress == CM_PROGRESS_AUTO)
        return f->pairs.local == 1 || f->a.world->oversubscribed ? CM_PROXY_INLINE
                                                                 : CM_PROXY_THREAD;
    return progress == CM_PROGRESS_INLINE ? CM_PROXY_INLINE : CM_PROXY_THREAD;
}

static int64_t silence_of(const struct cm_fabric *f)
{
    int64_t ns = f->a.rows_ns / 2 < silence_most_ns ? f->a.rows_ns / 2 : silence_most_ns;

    return ns > silence_least_ns ? ns : silence_least_ns;
}

int cm_fabric_spins(const struct cm_fabric *f)
{
    return f->a.world->oversubscribed ? SPINS_CROWDED : SPINS;
}

/* Beside ib it carries no ports: then it sleeps until there is a message. */
static enum cm_status open_proxy(struct cm_fabric *f)
{
    struct cm_proxy_peer *to = calloc((size_t)f->npeers + 1, sizeof(*to));
    struct cm_proxy_args a = {.proc = f->a.boot->proc,
                              .sockets = f->sockets,
                              .depth = f->a.layout->depth,
                              .slot_bytes = f->a.layout->slot_bytes,
                              .peers = to,
                              .npeers = f->npeers,
                              .mode = f->over_ib ? CM_PROXY_THREAD : f->mode,
                              .spins = f->over_ib ? SPINS_CROWDED : cm_fabric_spins(f),
                              .crowded = f->a.world->oversubscribed,
                              .silence_ns = silence_of(f),
                              .events = cm_control_events(f->control)};
    enum cm_status st;

    if (to == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d neighbours", f->npeers);
    for (int k = 0; k < f->npeers; k++) {
        struct cm_fabric_peer *p = &f->peers[k];

        to[k] = (struct cm_proxy_peer){.proc = p->proc,
                                       .host = cm_fabric_host(f, p->proc),
                                       .fds = p->fds,
                                       .send = p->send,
                                       .recv = p->recv,
                                       .nsend = f->over_ib ? 0 : p->nsend,
                                       .nrecv = f->over_ib ? 0 : p->nrecv};
    }
    st = cm_proxy_open(&a, &f->proxy);
    free(to);
    if (st != CM_OK)
        return st;
    f->connected = true;
    cm_control_attach(f->control, f->proxy);
    return CM_OK;
}

static enum cm_status open_control(struct cm_fabric *f)
{
    const struct cm_control_args a = {.proc = f->a.boot->proc,
                                      .domains = &f->a.world->domains,
                                      .infos = f->a.world->infos,
                                      .base = f->a.base,
                                      .layout = f->a.layout,
                                      .timeout_ns = f->a.rows_ns};

    return cm_control_open(&a, &f->control);
}

/* ---- what ranks see ---- */

static bool progress(void *arg)
{
    struct cm_fabric *f = arg;

    return f->over_ib ? cm_ib_progress(f->ib) : cm_proxy_progress(f->proxy);
}

static void doze(void *arg, int64_t ns)
{
    struct cm_fabric *f = arg;

    if (f->over_ib)
        cm_ib_doze(f->ib, ns);
    else
        cm_proxy_doze(f->proxy, ns);
}

static void rest(void *arg)
{
    struct cm_fabric *f = arg;

    if (f->over_ib)
        cm_ib_rest(f->ib);
    else
        cm_proxy_rest(f->proxy);
}

static void survey(void *arg)
{
    cm_control_survey(((struct cm_fabric *)arg)->control);
}

const struct cm_remote *cm_fabric_remote(const struct cm_fabric *f)
{
    return f != NULL ? &f->remote : NULL;
}

struct cm_control *cm_fabric_control(const struct cm_fabric *f)
{
    return f != NULL ? f->control : NULL;
}

const struct cm_network *cm_fabric_network(const struct cm_fabric *f)
{
    return f != NULL ? &f->network : NULL;
}

const struct cm_pairs *cm_fabric_pairs(const struct cm_fabric *f)
{
    return f != NULL ? &f->pairs : NULL;
}

/* ---- open and close ---- */

/* Everything that needs nobody else. */
static enum cm_status prepare(struct cm_fabric *f)
{
    enum cm_status st = choose_interface(f);

    if (st == CM_OK)
        st = cm_pairs_find(f->a.opts, f->a.world, f->a.boot->proc, &f->pairs);
    if (st == CM_OK)
        st = cm_fabric_list_neighbours(f);
    if (st == CM_OK)
        st = cm_fabric_list_ports(f);
    f->mode = mode_of(f);
    return st;
}

static enum cm_status open_all(struct cm_fabric *f)
{
    const struct cm_boot *b = f->a.boot;
    enum cm_status st = cm_boot_agree(b, prepare(f));

    if (st == CM_OK)
        st = exchange_addresses(f);
    if (st == CM_OK)
        st = cm_fabric_choose_ib(f);
    if (st == CM_OK) {
        f->sockets = f->a.opts->net.sockets > 0 ? f->a.opts->net.sockets : 1;
        st = cm_fabric_connect(f);
    }
    if (st == CM_OK)
        st = cm_boot_agree(b, open_control(f));
    if (st == CM_OK)
        st = cm_fabric_open_ib(f, cm_control_events(f->control));
    if (st == CM_OK)
        st = cm_boot_agree(b, open_proxy(f));
    return st == CM_OK ? cm_fabric_describe(f) : st;
}

enum cm_status cm_fabric_open(const struct cm_fabric_args *a, struct cm_fabric **out)
{
    struct cm_fabric *f = calloc(1, sizeof(*f));
    enum cm_status st = cm_boot_agree(
        a->boot, f != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "no memory to connect with other nodes"));

    if (st == CM_OK) {
        f->a = *a;
        f->listener = -1;
        f->remote = (struct cm_remote){
            .arg = f, .progress = progress, .doze = doze, .rest = rest, .survey = survey};
        st = open_all(f);
    }
    if (st != CM_OK) {
        cm_fabric_close(f, false, 0);
        return st;
    }
    f->remote.far = !f->over_ib; /* memory outside of the segment's ports is not registered */
    *out = f;
    return CM_OK;
}

static void close_sockets(struct cm_fabric *f)
{
    for (int k = 0; k < f->npeers && !f->connected; k++)
        for (int i = 0; i < CM_NET_SOCKETS; i++)
            if (f->peers[k].fds[i] >= 0)
                close(f->peers[k].fds[i]);
    if (f->listener >= 0)
        close(f->listener);
}

enum cm_status cm_fabric_close(struct cm_fabric *f, bool orderly, int64_t until_ns)
{
    enum cm_status st;

    if (f == NULL)
        return CM_OK;
    if (f->control != NULL) {
        if (!orderly)
            cm_control_settle(f->control);
        cm_control_attach(f->control, NULL);
    }
    st = cm_ib_close(f->ib, orderly ? until_ns : 0);
    if (st == CM_OK)
        st = cm_proxy_close(f->proxy, orderly ? until_ns : 0);
    else
        cm_proxy_close(f->proxy, 0);
    cm_control_close(f->control);
    close_sockets(f);
    for (int k = 0; k < f->npeers; k++) {
        free(f->peers[k].send);
        free(f->peers[k].recv);
    }
    free(f->peers);
    free(f->cards);
    cm_pairs_free(&f->pairs);
    free(f);
    return st;
}
