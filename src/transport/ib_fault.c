/*
 * What goes wrong, in words: who, over which port, what the adapter said, and
 * what is usually the cause.
 *
 * Invariant: a neighbour is lost once. Its queue pairs are put into the error
 * state, so that nothing of it is written to our memory any more.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "transport/ib_int.h"

/* ---- losing a neighbour ---- */

/* Those that are in it already, or break in it, need no report of their own. */
static void stop_queue_pairs(struct cm_ib_link *l)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

    for (int k = 0; k < l->ib->a.choice.qps; k++)
        l->ib->verbs.modify_qp(l->qps[k].qp, &a, IBV_QP_STATE);
}

void cm_ib_lose(struct cm_ib_link *l, enum cm_status st, const char *fmt, ...)
{
    struct cm_ib *ib = l->ib;
    char why[CM_TEXT], text[CM_TEXT / 2], gid[CM_IB_GID_TEXT];
    uint32_t ok = CM_OK;
    va_list ap;

    if (l->lost)
        return;
    l->lost = true;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(why, sizeof(why), "is lost over %s:%d (%s, GID index %d, %s): %s", ib->dev.name,
             ib->dev.port, cm_ib_framing_text(ib->dev.framing), ib->dev.gid_index,
             cm_ib_gid_text(ib->dev.gid.raw, gid), text);
    stop_queue_pairs(l);
    atomic_compare_exchange_strong(&ib->status, &ok, (uint32_t)st);
    if (ib->a.events.lost != NULL)
        ib->a.events.lost(ib->a.events.arg, l->proc, st, why);
    else
        cm_log("process %d (host %s) %s", l->proc, l->host, why);
}

/* ---- completions ---- */

struct meaning {
    enum ibv_wc_status status;
    enum cm_status st;
    const char *roce, *native; /* what to look at; native NULL: the same */
};

static const struct meaning meanings[] = {
    {IBV_WC_RETRY_EXC_ERR, CM_ETIMEOUT,
     "nothing acknowledges what is sent: the process died, a cable, a firewall (UDP port 4791), "
     "lost packets (PFC, ECN), or a GID index of another network or RoCE version",
     "nothing acknowledges what is sent: the process died, a cable, or a switch"},
    {IBV_WC_RNR_RETRY_EXC_ERR, CM_ETIMEOUT,
     "the far end does not take what is sent: its process is stopped", NULL},
    {IBV_WC_REM_ACCESS_ERR, CM_ESYS,
     "the far end's adapter refused the address: its memory is gone, or the ends disagree about it",
     NULL},
    {IBV_WC_REM_INV_REQ_ERR, CM_ESYS,
     "the far end's adapter refused the request: different versions of this program?", NULL},
    {IBV_WC_REM_OP_ERR, CM_ESYS, "the far end's adapter failed", NULL},
    {IBV_WC_REM_ABORT_ERR, CM_ESYS, "the far end gave up", NULL},
    {IBV_WC_LOC_PROT_ERR, CM_ESYS, "memory of this process is not registered any more", NULL},
    {IBV_WC_LOC_LEN_ERR, CM_ESYS, "a request is too long for this adapter", NULL},
    {IBV_WC_LOC_QP_OP_ERR, CM_ESYS, "this adapter failed; see the kernel's log", NULL},
    {IBV_WC_LOC_ACCESS_ERR, CM_ESYS, "memory of this process may not be written", NULL},
    {IBV_WC_RESP_TIMEOUT_ERR, CM_ETIMEOUT, "the far end's adapter does not answer", NULL},
    {IBV_WC_WR_FLUSH_ERR, CM_ESYS, "the connection had broken before", NULL},
    {IBV_WC_FATAL_ERR, CM_ESYS, "the adapter failed; see the kernel's log", NULL},
};

static const struct meaning *meaning_of(enum ibv_wc_status status)
{
    static const struct meaning other = {IBV_WC_GENERAL_ERR, CM_ESYS,
                                         "see the kernel's log of both hosts", NULL};

    for (size_t i = 0; i < CM_LEN(meanings); i++)
        if (meanings[i].status == status)
            return &meanings[i];
    return &other;
}

void cm_ib_bad_completion(struct cm_ib_qp *q, const struct ibv_wc *wc)
{
    struct cm_ib *ib = q->link->ib;
    const struct meaning *m = meaning_of(wc->status);
    bool native = ib->dev.framing == CM_IB_NATIVE && m->native != NULL;

    if (q->bye) { /* who has said farewell need not hear ours */
        q->told_bye = true;
        q->done = q->signalled = q->posted;
        return;
    }
    /* Flushed: what broke the queue pair may be known to the adapter only. */
    if (wc->status == IBV_WC_WR_FLUSH_ERR)
        cm_ib_async_events(ib);
    cm_ib_lose(q->link, m->st, "%s (queue pair %u, vendor error 0x%x): %s",
               ib->verbs.wc_status_str(wc->status), q->qp->qp_num, wc->vendor_err,
               native ? m->native : m->roce);
}

/* ---- events that no request caused ---- */

static struct cm_ib_link *owner_of(const struct cm_ib *ib, const struct ibv_qp *qp)
{
    for (int i = 0; i < ib->nqps; i++)
        if (ib->qps[i]->qp == qp)
            return ib->qps[i]->link;
    return NULL;
}

static void lose_all(struct cm_ib *ib, const char *what)
{
    for (int i = 0; i < ib->a.npeers; i++)
        cm_ib_lose(&ib->links[i], CM_ESYS, "%s", what);
}

static bool concerns_port(const struct cm_ib *ib, const struct ibv_async_event *e)
{
    return e->element.port_num == ib->dev.port;
}

static void take_event(struct cm_ib *ib, const struct ibv_async_event *e)
{
    const char *text = ib->verbs.event_type_str(e->event_type);
    struct cm_ib_link *l;

    switch (e->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        l = owner_of(ib, e->element.qp);
        if (l != NULL)
            cm_ib_lose(l, CM_ESYS, "%s", text);
        break;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
        lose_all(ib, text);
        break;
    case IBV_EVENT_PORT_ERR: /* it may come back; if not, requests will say so */
        if (concerns_port(ib, e))
            cm_log("%s:%d went down: cable or switch", ib->dev.name, ib->dev.port);
        break;
    case IBV_EVENT_PORT_ACTIVE:
        if (concerns_port(ib, e))
            cm_log("%s:%d is up again", ib->dev.name, ib->dev.port);
        break;
    case IBV_EVENT_GID_CHANGE:
        if (concerns_port(ib, e))
            cm_log("%s:%d: its addresses change", ib->dev.name, ib->dev.port);
        break;
    default: /* nothing that we use */
        break;
    }
}

void cm_ib_async_events(struct cm_ib *ib)
{
    struct pollfd news = {.fd = ib->dev.context->async_fd, .events = POLLIN};
    struct ibv_async_event e;

    while (poll(&news, 1, 0) > 0 && ib->verbs.get_async_event(ib->dev.context, &e) == 0) {
        take_event(ib, &e);
        ib->verbs.ack_async_event(&e);
    }
}
