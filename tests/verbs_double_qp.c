/* The double's queue pairs: what they complete, their states, what may be posted to them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_double_int.h"

enum { LARGE = 8192 /* a signal should not carry more where packets overtake each other */ };

/* ---- completions ---- */

void dbl_complete(struct ibv_cq *q, const struct ibv_wc *wc)
{
    struct dbl_cq *cq = (struct dbl_cq *)q;

    if (cq->n == cq->size) {
        dbl_violation("a completion queue of %d overflows", cq->size);
        return;
    }
    cq->wc[(cq->first + cq->n++) % cq->size] = *wc;
    if (!cq->armed || q->channel == NULL)
        return;
    cq->armed = false;
    if (write(((struct dbl_channel *)q->channel)->events, &q, sizeof(q)) < 0)
        abort();
}

struct dbl_qp *dbl_pair(uint32_t number)
{
    for (int i = 0; i < dbl.nqps; i++)
        if (dbl.qps[i]->qp.qp_num == number)
            return dbl.qps[i];
    return NULL;
}

/* A completion gives back the places of its request and of the silent ones before it. */
static void give_back(const struct ibv_wc *wc)
{
    struct dbl_qp *q = dbl_pair(wc->qp_num);

    if (q == NULL || (wc->opcode & IBV_WC_RECV) != 0)
        return;
    while (q->released < q->acked) {
        uint64_t id = q->sq[q->released++ % q->cap.max_send_wr].wr.wr_id;

        if (id == wc->wr_id)
            return;
    }
}

int dbl_poll_cq(struct ibv_cq *q, int n, struct ibv_wc *wc)
{
    struct dbl_cq *cq = (struct dbl_cq *)q;
    int got = 0;

    pthread_mutex_lock(&dbl.lock);
    for (; got < n && cq->n > 0; got++, cq->n--) {
        wc[got] = cq->wc[cq->first];
        cq->first = (cq->first + 1) % cq->size;
        give_back(&wc[got]);
        if (wc[got].status != IBV_WC_SUCCESS)
            wc[got].opcode = 0x55; /* as the specification has it: not valid */
    }
    pthread_mutex_unlock(&dbl.lock);
    return got;
}

int dbl_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    (void)solicited_only;
    pthread_mutex_lock(&dbl.lock);
    ((struct dbl_cq *)cq)->armed = true;
    pthread_mutex_unlock(&dbl.lock);
    return 0;
}

/* ---- states ---- */

static const struct double_port *port_of(const struct dbl_qp *q)
{
    return &((const struct dbl_device *)q->qp.context->device)->what->port[q->attr.port_num - 1];
}

/* Is the address right for the port? */
static bool valid_rtr(const struct dbl_qp *q, const struct ibv_qp_attr *a)
{
    const struct double_port *p = port_of(q);
    const struct ibv_ah_attr *ah = &a->ah_attr;
    bool ethernet = p->link_layer == IBV_LINK_LAYER_ETHERNET;

    if (a->path_mtu < IBV_MTU_256 || a->path_mtu > p->mtu || a->dest_qp_num > 0xffffff ||
        a->rq_psn > 0xffffff || ah->port_num != q->attr.port_num)
        return false;
    if (ethernet)
        return ah->is_global && ah->grh.sgid_index < DOUBLE_GIDS &&
               p->gid[ah->grh.sgid_index] != NULL && ah->grh.hop_limit > 1;
    return ah->dlid != 0;
}

struct step {
    enum ibv_qp_state from, to;
    int mask;
};

int dbl_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
    static const struct step steps[] = {
        {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
        {IBV_QPS_INIT, IBV_QPS_RTR,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER},
        {IBV_QPS_RTR, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC},
    };
    struct dbl_qp *q = (struct dbl_qp *)qp;
    int rc = EINVAL;

    pthread_mutex_lock(&dbl.lock);
    if (a->qp_state == IBV_QPS_ERR) {
        dbl_break(q);
        rc = 0;
    }
    for (size_t i = 0; rc != 0 && i < sizeof(steps) / sizeof(steps[0]); i++) {
        const struct step *s = &steps[i];

        if (qp->state != s->from || a->qp_state != s->to || mask != (s->mask | IBV_QP_STATE) ||
            (s->to == IBV_QPS_RTR && !valid_rtr(q, a)))
            continue;
        qp->state = s->to;
        rc = 0;
        if (s->to == IBV_QPS_INIT)
            q->attr = *a;
        if (s->to == IBV_QPS_RTR) {
            q->attr.ah_attr = a->ah_attr;
            q->attr.path_mtu = a->path_mtu;
            q->attr.dest_qp_num = a->dest_qp_num;
            q->attr.rq_psn = a->rq_psn;
        }
        if (s->to == IBV_QPS_RTS) {
            q->attr.sq_psn = a->sq_psn;
            q->attr.retry_cnt = a->retry_cnt;
            q->attr.rnr_retry = a->rnr_retry;
        }
    }
    if (rc != 0)
        dbl_violation("queue pair from state %d to %d: refused", (int)qp->state, (int)a->qp_state);
    pthread_mutex_unlock(&dbl.lock);
    return rc;
}

/* ---- posting ---- */

static bool fits(const struct dbl_qp *q, const struct ibv_send_wr *wr)
{
    bool is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;
    const struct ibv_sge *s = wr->sg_list;

    if (wr->num_sge == 0)
        return true;
    if (wr->num_sge != 1)
        return false;
    if (is_inline)
        return s->length <= q->cap.max_inline_data && s->length <= DOUBLE_INLINE;
    return dbl_region(s->lkey, false, s->addr, s->length) != NULL;
}

static int post_one(struct dbl_qp *q, const struct ibv_send_wr *wr)
{
    struct dbl_request *r = &q->sq[q->posted % q->cap.max_send_wr];
    bool large = wr->num_sge == 1 && wr->sg_list->length > LARGE;

    if (q->qp.state != IBV_QPS_RTS && q->qp.state != IBV_QPS_ERR)
        return EINVAL;
    if (q->posted - q->released >= q->cap.max_send_wr) {
        dbl_violation("more than %u send requests", q->cap.max_send_wr);
        return ENOMEM;
    }
    if (!fits(q, wr)) {
        dbl_violation("a request whose memory is not registered, or too long for inline");
        return EINVAL;
    }
    if (dbl.s.adaptive && wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && large)
        dbl_violation("a signal that its own data can overtake");
    *r = (struct dbl_request){.wr = *wr};
    r->wr.next = NULL;
    if (wr->num_sge == 1)
        r->sge = *wr->sg_list;
    if ((wr->send_flags & IBV_SEND_INLINE) != 0 && wr->num_sge == 1)
        memcpy(r->copy, (void *)(uintptr_t)r->sge.addr, r->sge.length);
    if (dbl.fail_after >= 0 && dbl.fail_after-- == 0)
        r->status = dbl.fail_with;
    q->posted++;
    return 0;
}

int dbl_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct dbl_qp *q = (struct dbl_qp *)qp;
    int rc = 0;

    pthread_mutex_lock(&dbl.lock);
    for (; wr != NULL && rc == 0; wr = wr->next) {
        *bad = wr;
        rc = post_one(q, wr);
    }
    if (qp->state == IBV_QPS_ERR)
        dbl_break(q);
    pthread_cond_signal(&dbl.news);
    pthread_mutex_unlock(&dbl.lock);
    return rc;
}

int dbl_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct dbl_qp *q = (struct dbl_qp *)qp;
    int rc = 0;

    pthread_mutex_lock(&dbl.lock);
    for (; wr != NULL && rc == 0; wr = wr->next) {
        *bad = wr;
        if (qp->state == IBV_QPS_RESET || q->received - q->taken >= q->cap.max_recv_wr) {
            dbl_violation("more than %u receives, or too early", q->cap.max_recv_wr);
            rc = ENOMEM;
        } else {
            q->rq[q->received++ % q->cap.max_recv_wr] = wr->wr_id;
        }
    }
    if (qp->state == IBV_QPS_ERR)
        dbl_break(q);
    pthread_mutex_unlock(&dbl.lock);
    return rc;
}
