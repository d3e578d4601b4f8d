/*
 * What completions do. The far end's writes are held against what it may send:
 * slots in order, of their size, and credit for what it got; what it writes
 * elsewhere the adapter refuses.
 *
 * Invariant: receives that were used are posted again before anything is said,
 * so before the neighbour may send more because of it.
 */
#include <arpa/inet.h>
#include <string.h>

#include "transport/ib_int.h"

enum { BATCH = 16 };

static void garbage(struct cm_ib_qp *q, const char *what)
{
    cm_ib_lose(q->link, CM_ESYS, "it sent %s", what);
}

/* Does the port travel on this queue pair? */
static bool belongs(const struct cm_ib_qp *q, int port, int nports)
{
    return port < nports && port % q->link->ib->a.choice.qps == q->nth;
}

/* The flag is for executors that poll it (LL), tail for the others: both are always set. */
static void hear_slot(struct cm_ib_qp *q, int port, uint32_t imm)
{
    struct cm_ib *ib = q->link->ib;
    struct cm_ib_end *e = &q->link->recv[port];
    struct cm_slot_head *h = cm_ib_slot(ib, e, e->moved);
    uint64_t freed = atomic_load_explicit(&e->lines->head, memory_order_acquire);

    if (cm_ib_imm_number(imm, e->moved) != e->moved || e->moved - freed >= (uint64_t)ib->a.depth) {
        garbage(q, "a slot out of turn");
        return;
    }
    if (h->bytes > ib->a.slot_bytes) {
        garbage(q, "a slot that is too large");
        return;
    }
    ib->stats.slots_got++;
    ib->stats.payload_got += h->bytes;
    e->moved++;
    atomic_store_explicit(&h->flag, e->moved, memory_order_release);
    atomic_store_explicit(&e->lines->tail, e->moved, memory_order_release);
}

static void hear_credit(struct cm_ib_qp *q, int port, uint32_t imm)
{
    struct cm_ib_end *e = &q->link->send[port];
    uint64_t credit = cm_ib_imm_number(imm, e->credit);

    if (credit > e->moved)
        garbage(q, "credit for slots it never got");
    else
        e->credit = credit;
}

static void hear_signal(struct cm_ib_qp *q, uint32_t imm)
{
    const struct cm_ib_link *l = q->link;
    uint32_t kind = cm_ib_imm_kind(imm);
    int port = cm_ib_imm_port(imm);

    if (q->bye)
        garbage(q, "more after its farewell");
    else if (kind == CM_IB_SLOT && belongs(q, port, l->nrecv))
        hear_slot(q, port, imm);
    else if (kind == CM_IB_CREDIT && belongs(q, port, l->nsend))
        hear_credit(q, port, imm);
    else if (kind == CM_IB_BYE)
        q->bye = true;
    else
        garbage(q, "a signal of a port that is not there");
}

static void take(struct cm_ib_qp *q, const struct ibv_wc *wc)
{
    if (q->link->lost)
        return;
    if (wc->status != IBV_WC_SUCCESS) {
        cm_ib_bad_completion(q, wc);
    } else if ((wc->opcode & IBV_WC_RECV) != 0) {
        q->spent++;
        hear_signal(q, ntohl(wc->imm_data));
    } else {
        uint32_t ahead = (uint32_t)wc->wr_id - (uint32_t)q->done;

        cm_ib_retire(q, q->done + ahead + 1);
    }
}

static void post_again(struct cm_ib_qp *q)
{
    int n = q->spent, err;

    q->spent = 0;
    if (n == 0 || q->link->lost)
        return;
    err = cm_ib_post_receives(q, n);
    if (err != 0)
        cm_ib_lose(q->link, CM_ESYS, "the adapter takes no receives: %s", strerror(err));
}

bool cm_ib_hear(struct cm_ib *ib)
{
    struct ibv_wc wc[BATCH];
    int n = ib->verbs.poll_cq(ib->cq, BATCH, wc);

    if (n < 0) {
        for (int i = 0; i < ib->a.npeers; i++)
            cm_ib_lose(&ib->links[i], CM_ESYS, "the completion queue broke");
        return false;
    }
    for (int i = 0; i < n; i++)
        take(ib->qps[wc[i].wr_id >> 32], &wc[i]);
    for (int i = 0; i < n; i++)
        post_again(ib->qps[wc[i].wr_id >> 32]);
    ib->stats.completions += (uint64_t)n;
    return n > 0;
}
