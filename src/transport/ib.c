/*
 * The life of the ib wire.
 *
 * Invariant: until cm_ib_start() one thread has it all; after the stop it is
 * the one that closes.
 */
#include "transport/ib.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/ib_int.h"

enum {
    MIN_SEND_QUEUE = 2 * CM_IB_SIGNAL_EVERY,
    MIN_RECV_QUEUE = 16,
    FAREWELL_MS = 1 /* between looks, should an event be missed */
};

const char *const cm_ib_what = "InfiniBand or RoCE between machines (libibverbs)";

struct cm_ib_choice cm_ib_usual(void)
{
    return (struct cm_ib_choice){
        .numa = -1, .gid = -1, .qps = 1, .timeout = 18, .retries = 7, .adaptive = -1};
}

bool cm_ib_available(const struct cm_ib_choice *c, char *why, size_t size)
{
    struct cm_verbs v;
    struct cm_ib_dev dev;
    char text[CM_TEXT];

    if (!cm_verbs_load(&v, why, size))
        return false;
    if (cm_ib_dev_open(&v, "/sys", c, &dev, text) != CM_OK) {
        snprintf(why, size, "%s", text);
        return false;
    }
    cm_ib_dev_close(&dev);
    return true;
}

/* ---- arguments ---- */

static bool is_mtu(int mtu)
{
    return mtu == 0 || (mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0);
}

static enum cm_status check_choice(const struct cm_ib_choice *c)
{
    const struct {
        const char *what;
        int value, lo, hi;
    } rows[] = {
        {"GID index", c->gid, -1, 255},          {"queue pairs", c->qps, 1, CM_IB_QPS},
        {"timeout exponent", c->timeout, 1, 31}, {"retries", c->retries, 0, 7},
        {"traffic class", c->tc, 0, 255},        {"service level", c->sl, 0, 15},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++)
        if (rows[i].value < rows[i].lo || rows[i].value > rows[i].hi)
            return CM_FAIL(CM_EINVAL, "ib wire: %s %d is not in %d to %d", rows[i].what,
                           rows[i].value, rows[i].lo, rows[i].hi);
    if (!is_mtu(c->mtu))
        return CM_FAIL(CM_EINVAL, "ib wire: MTU %d is not 256, 512, 1024, 2048 or 4096", c->mtu);
    return CM_OK;
}

static enum cm_status check_mtu(const struct cm_ib *ib)
{
    int active = 128 << ib->dev.attr.active_mtu;

    if (ib->a.choice.mtu <= active)
        return CM_OK;
    return CM_FAIL(CM_EINVAL, "ib wire: MTU %d, but %s:%d has %d", ib->a.choice.mtu, ib->dev.name,
                   ib->dev.port, active);
}

/* ---- opening ---- */

static enum cm_status open_device(struct cm_ib *ib)
{
    char why[CM_TEXT];
    enum cm_status st;

    if (ib->a.verbs != NULL)
        ib->verbs = *ib->a.verbs;
    else if (!cm_verbs_load(&ib->verbs, why, sizeof(why)))
        return CM_FAIL(CM_EUNSUP, "ib wire: %s", why);
    /* For children of this process. Where it is refused the kernel copies for them anyway. */
    ib->verbs.fork_init();
    st = cm_ib_dev_open(&ib->verbs, ib->a.sysfs != NULL ? ib->a.sysfs : "/sys", &ib->a.choice,
                        &ib->dev, why);
    return st == CM_OK ? check_mtu(ib) : CM_FAIL(st, "ib wire: %s", why);
}

/* Receives that a queue pair of the neighbour can need: see ib_qp.c. */
static int receives_for(const struct cm_ib *ib, const struct cm_ib_peer *p)
{
    int qps = ib->a.choice.qps;
    int64_t recv = (p->nrecv + qps - 1) / qps, send = (p->nsend + qps - 1) / qps;
    int64_t all = recv * ib->a.depth + send * CM_IB_CREDITS_AHEAD + 1; /* and its farewell */

    return all < CM_IB_RECV_QUEUE ? (int)all : CM_IB_RECV_QUEUE;
}

/* Depths of all queues, so that no completion can find its queue full. */
static enum cm_status size_queues(struct cm_ib *ib, int *entries)
{
    const struct ibv_device_attr *max = &ib->dev.limits;
    int64_t qps = ib->nqps > 0 ? ib->nqps : 1, each;

    ib->send_queue = max->max_qp_wr < CM_IB_SEND_QUEUE ? max->max_qp_wr : CM_IB_SEND_QUEUE;
    ib->recv_queue = MIN_RECV_QUEUE;
    for (int i = 0; i < ib->a.npeers; i++)
        if (receives_for(ib, &ib->a.peers[i]) > ib->recv_queue)
            ib->recv_queue = receives_for(ib, &ib->a.peers[i]);
    if (ib->recv_queue > max->max_qp_wr)
        ib->recv_queue = max->max_qp_wr;
    each = max->max_cqe / qps;
    if (each < ib->send_queue + ib->recv_queue)
        ib->recv_queue = (int)(each - ib->send_queue);
    if (ib->send_queue < MIN_SEND_QUEUE || ib->recv_queue < MIN_RECV_QUEUE)
        return CM_FAIL(CM_EUNSUP,
                       "%s has queues of %d requests and %d completions: too few for %d neighbours "
                       "of %d queue pairs",
                       ib->dev.name, max->max_qp_wr, max->max_cqe, ib->a.npeers, ib->a.choice.qps);
    *entries = (int)(qps * (ib->send_queue + ib->recv_queue));
    return CM_OK;
}

static enum cm_status refused(const struct cm_ib *ib, const char *what)
{
    return CM_FAIL(errno == ENOMEM ? CM_ENOMEM : CM_ESYS, "%s:%d: %s: %s", ib->dev.name,
                   ib->dev.port, what, strerror(errno));
}

static enum cm_status open_queues(struct cm_ib *ib)
{
    const struct cm_verbs *v = &ib->verbs;
    int entries = 0;
    enum cm_status st = size_queues(ib, &entries);

    if (st != CM_OK)
        return st;
    ib->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ib->wake < 0)
        return cm_fail_errno("eventfd");
    ib->pd = v->alloc_pd(ib->dev.context);
    if (ib->pd == NULL)
        return refused(ib, "protection domain");
    ib->channel = v->create_comp_channel(ib->dev.context);
    if (ib->channel == NULL || fcntl(ib->channel->fd, F_SETFL, O_NONBLOCK) != 0)
        return refused(ib, "completion channel");
    ib->cq = v->create_cq(ib->dev.context, entries, NULL, ib->channel, 0);
    return ib->cq != NULL ? CM_OK : refused(ib, "completion queue");
}

static enum cm_status open_link(struct cm_ib *ib, const struct cm_ib_peer *from,
                                struct cm_ib_link *l)
{
    int qps = ib->a.choice.qps;
    enum cm_status st;

    l->ib = ib;
    l->proc = from->proc;
    strncpy(l->host, from->host, sizeof(l->host) - 1);
    l->nsend = from->nsend;
    l->nrecv = from->nrecv;
    l->send = calloc((size_t)from->nsend + 1, sizeof(*l->send));
    l->recv = calloc((size_t)from->nrecv + 1, sizeof(*l->recv));
    l->qps = calloc((size_t)qps, sizeof(*l->qps));
    if (l->send == NULL || l->recv == NULL || l->qps == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for the connection with process %d (host %s)", l->proc,
                       l->host);
    st = cm_ib_add_ports(ib, from->send, from->nsend, 0, l->send);
    if (st == CM_OK)
        st = cm_ib_add_ports(ib, from->recv, from->nrecv,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, l->recv);
    for (int k = 0; k < qps && st == CM_OK; k++) {
        struct cm_ib_qp *q = &l->qps[k];

        *q = (struct cm_ib_qp){.link = l, .nth = k, .next = k, .index = (uint32_t)ib->nqps};
        ib->qps[ib->nqps++] = q;
        st = cm_ib_qp_open(ib, q);
    }
    return st;
}

static void destroy(struct cm_ib *ib)
{
    const struct cm_verbs *v = &ib->verbs;

    for (int i = 0; i < ib->nqps; i++)
        cm_ib_qp_close(ib, ib->qps[i]);
    cm_ib_release_memory(ib);
    if (ib->cq != NULL)
        v->destroy_cq(ib->cq);
    if (ib->channel != NULL)
        v->destroy_comp_channel(ib->channel);
    if (ib->pd != NULL)
        v->dealloc_pd(ib->pd);
    cm_ib_dev_close(&ib->dev);
    for (int i = 0; ib->links != NULL && i < ib->a.npeers; i++) {
        free(ib->links[i].send);
        free(ib->links[i].recv);
        free(ib->links[i].qps);
    }
    if (ib->wake >= 0)
        close(ib->wake);
    free(ib->links);
    free(ib->qps);
    free(ib);
}

static enum cm_status open_all(struct cm_ib *ib)
{
    const struct cm_ib_args *a = &ib->a;
    size_t n = (size_t)a->npeers, qps = n * (size_t)a->choice.qps;
    enum cm_status st = open_device(ib);

    if (st != CM_OK)
        return st;
    ib->split = a->choice.adaptive >= 0 ? a->choice.adaptive != 0 : ib->dev.framing == CM_IB_NATIVE;
    ib->links = calloc(n + 1, sizeof(*ib->links));
    ib->qps = calloc(qps + 1, sizeof(struct cm_ib_qp *));
    if (ib->links == NULL || ib->qps == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d neighbours", a->npeers);
    ib->nqps = (int)qps;
    st = open_queues(ib);
    ib->nqps = 0;
    for (int i = 0; i < a->npeers && st == CM_OK; i++)
        st = open_link(ib, &a->peers[i], &ib->links[i]);
    return st;
}

enum cm_status cm_ib_open(const struct cm_ib_args *a, struct cm_ib **out)
{
    struct cm_ib *ib;
    enum cm_status st = check_choice(&a->choice);

    assert(a->depth > 0 && a->depth <= CM_IB_NUMBERS / 4 && (a->depth & (a->depth - 1)) == 0);
    for (int i = 0; i < a->npeers && st == CM_OK; i++)
        if (a->peers[i].nsend > CM_IB_PORTS || a->peers[i].nrecv > CM_IB_PORTS)
            st = CM_FAIL(CM_EUNSUP, "ib wire: more than %d ports to process %d", CM_IB_PORTS,
                         a->peers[i].proc);
    if (st != CM_OK)
        return st;
    ib = aligned_alloc(alignof(struct cm_ib), sizeof(*ib));
    if (ib == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for the ib wire");
    *ib = (struct cm_ib){.a = *a, .wake = -1};
    st = open_all(ib);
    ib->a.peers = NULL;
    if (st == CM_OK)
        *out = ib;
    else
        destroy(ib);
    return st;
}

enum cm_status cm_ib_start(struct cm_ib *ib)
{
    int err = pthread_create(&ib->thread, NULL,
                             ib->a.mode == CM_PROXY_THREAD ? cm_ib_run : cm_ib_keep_going, ib);

    if (err != 0)
        return CM_FAIL(CM_ESYS, "thread of the ib wire: %s", strerror(err));
    ib->started = true;
    return CM_OK;
}

enum cm_status cm_ib_status(const struct cm_ib *ib)
{
    return (enum cm_status)atomic_load_explicit(&ib->status, memory_order_acquire);
}

const char *cm_ib_describe(const struct cm_ib *ib, char *buf)
{
    char gid[CM_IB_GID_TEXT];
    int active = 128 << ib->dev.attr.active_mtu;

    snprintf(buf, CM_IB_TEXT, "%s:%d %s gid %d (%s) %g Gb/s mtu %d", ib->dev.name, ib->dev.port,
             cm_ib_framing_text(ib->dev.framing), ib->dev.gid_index,
             cm_ib_gid_text(ib->dev.gid.raw, gid), ib->dev.gbits,
             ib->a.choice.mtu != 0 ? ib->a.choice.mtu : active);
    return buf;
}

/* ---- the end ---- */

static bool done_with(const struct cm_ib_qp *q)
{
    return q->link->lost || (q->told_bye && q->bye && q->done == q->posted);
}

static bool all_done(const struct cm_ib *ib)
{
    for (int i = 0; i < ib->nqps; i++)
        if (!done_with(ib->qps[i]))
            return false;
    return true;
}

/* After the deadline: who is missing. */
static enum cm_status unfinished(const struct cm_ib *ib)
{
    enum cm_status st = CM_OK;

    for (int i = 0; i < ib->nqps; i++) {
        const struct cm_ib_qp *q = ib->qps[i];

        if (!done_with(q) && !(q->bye && q->told_bye))
            st = CM_FAIL(
                CM_ETIMEOUT, "process %d (host %s) %s on the ib wire", q->link->proc, q->link->host,
                q->told_bye ? "did not say farewell" : "does not take what was sent to it");
    }
    return st;
}

static enum cm_status say_farewell(struct cm_ib *ib, int64_t until_ns)
{
    for (int i = 0; i < ib->a.npeers; i++)
        ib->links[i].leaving = true;
    while (!all_done(ib)) {
        if (cm_now_ns() > until_ns)
            return unfinished(ib);
        ib->verbs.req_notify_cq(ib->cq, 0);
        if (!cm_ib_drive(ib))
            cm_ib_await(ib, true, FAREWELL_MS);
    }
    return cm_ib_status(ib);
}

enum cm_status cm_ib_close(struct cm_ib *ib, int64_t until_ns)
{
    enum cm_status st = CM_OK;

    if (ib == NULL)
        return CM_OK;
    if (ib->started) {
        atomic_store(&ib->stop, true);
        eventfd_write(ib->wake, 1);
        pthread_join(ib->thread, NULL);
        if (until_ns != 0)
            st = say_farewell(ib, until_ns);
    }
    destroy(ib);
    return st;
}
