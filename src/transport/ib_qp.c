/*
 * Queue pairs: made, brought through their states, ended.
 *
 * Invariant: receives are posted for every message that the neighbour can have
 * under way by the rules of credit (up to CM_IB_RECV_QUEUE; beyond that the
 * adapters repeat), and they carry no memory: data goes to the ports.
 *
 * Source of the attributes' values: NCCL's net_ib; of the states: InfiniBand
 * specification, volume 1, 11.2.5 (modify queue pair).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "transport/ib_int.h"

enum {
    RNR_TIMER = 12, /* 0.64 ms until a message is sent again for which no receive was */
    RNR_FOR_EVER = 7,
    HOPS = 255
};

/* ---- states ---- */

static int modify(const struct cm_ib_dev *d, struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
    int rc = d->v->modify_qp(qp, a, mask | IBV_QP_STATE);

    return rc >= 0 ? rc : errno;
}

int cm_ib_to_init(const struct cm_ib_dev *d, struct ibv_qp *qp, unsigned access)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = d->port, .qp_access_flags = access};

    return modify(d, qp, &a, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int cm_ib_to_rtr(const struct cm_ib_dev *d, struct ibv_qp *qp, const struct cm_ib_choice *c,
                 const struct cm_ib_far *far)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = (enum ibv_mtu)far->mtu,
                            .dest_qp_num = far->number,
                            .rq_psn = far->psn,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = RNR_TIMER,
                            .ah_attr = {.dlid = (uint16_t)far->lid,
                                        .sl = (uint8_t)c->sl,
                                        .port_num = d->port,
                                        .grh = {.sgid_index = (uint8_t)d->gid_index,
                                                .hop_limit = HOPS,
                                                .traffic_class = (uint8_t)c->tc}}};

    memcpy(a.ah_attr.grh.dgid.raw, far->gid, sizeof(far->gid));
    a.ah_attr.is_global = d->framing != CM_IB_NATIVE ||
                          a.ah_attr.grh.dgid.global.subnet_prefix != d->gid.global.subnet_prefix;
    return modify(d, qp, &a,
                  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int cm_ib_to_rts(const struct cm_ib_dev *d, struct ibv_qp *qp, const struct cm_ib_choice *c,
                 uint32_t psn)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = (uint8_t)c->timeout,
                            .retry_cnt = (uint8_t)c->retries,
                            .rnr_retry = RNR_FOR_EVER,
                            .sq_psn = psn,
                            .max_rd_atomic = 1};

    return modify(d, qp, &a,
                  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC);
}

/* ---- life ---- */

/* As much inline data as the adapter has; how much is known only by trying. */
static struct ibv_qp *create(struct cm_ib *ib, struct ibv_qp_init_attr *a)
{
    static const uint32_t inline_bytes[] = {256, sizeof(struct cm_slot_head), 0};
    struct ibv_qp *qp = NULL;

    for (size_t i = 0; qp == NULL && i < CM_LEN(inline_bytes); i++) {
        a->cap = (struct ibv_qp_cap){.max_send_wr = (uint32_t)ib->send_queue,
                                     .max_recv_wr = (uint32_t)ib->recv_queue,
                                     .max_send_sge = 1,
                                     .max_recv_sge = 1,
                                     .max_inline_data = inline_bytes[i]};
        qp = ib->verbs.create_qp(ib->pd, a);
        if (qp != NULL)
            ib->inline_bytes = inline_bytes[i];
    }
    return qp;
}

enum cm_status cm_ib_qp_open(struct cm_ib *ib, struct cm_ib_qp *q)
{
    struct ibv_qp_init_attr init = {.send_cq = ib->cq, .recv_cq = ib->cq, .qp_type = IBV_QPT_RC};
    int err;

    q->ports = calloc((size_t)ib->send_queue, sizeof(*q->ports));
    if (q->ports == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for a queue pair");
    if (getrandom(&q->psn, sizeof(q->psn), 0) != (ssize_t)sizeof(q->psn))
        return cm_fail_errno("random number");
    q->psn &= CM_IB_NUMBER_MASK;
    q->qp = create(ib, &init);
    if (q->qp == NULL)
        return CM_FAIL(CM_ESYS, "%s:%d: queue pair %d (%d sends, %d receives): %s", ib->dev.name,
                       ib->dev.port, ib->nqps + 1, ib->send_queue, ib->recv_queue, strerror(errno));
    err = cm_ib_to_init(&ib->dev, q->qp, IBV_ACCESS_REMOTE_WRITE);
    if (err == 0)
        err = cm_ib_post_receives(q, ib->recv_queue);
    if (err == 0)
        return CM_OK;
    return CM_FAIL(CM_ESYS, "%s:%d: queue pair to process %d (host %s): %s", ib->dev.name,
                   ib->dev.port, q->link->proc, q->link->host, strerror(err));
}

void cm_ib_qp_close(struct cm_ib *ib, struct cm_ib_qp *q)
{
    if (q->qp != NULL)
        ib->verbs.destroy_qp(q->qp);
    free(q->ports);
    q->qp = NULL;
    q->ports = NULL;
}

int cm_ib_post_receives(struct cm_ib_qp *q, int n)
{
    struct ibv_recv_wr wr[CM_IB_CHAIN], *bad;

    for (int k; n > 0; n -= k) {
        int rc;

        k = n < CM_IB_CHAIN ? n : CM_IB_CHAIN;
        for (int i = 0; i < k; i++)
            wr[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)q->index << 32,
                                         .next = i + 1 < k ? &wr[i + 1] : NULL};
        rc = q->link->ib->verbs.post_recv(q->qp, wr, &bad);
        if (rc != 0)
            return rc > 0 ? rc : errno;
    }
    return 0;
}
