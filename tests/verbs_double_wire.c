/*
 * The double's wire: a thread takes steps of queue pairs in random order. A
 * send request is delivered (its data in two halves, then its signal), and some
 * time later it is acknowledged; only then it gives a completion. Requests of a
 * queue pair are delivered, and acknowledged, in order.
 */
#include <sched.h>
#include <string.h>

#include "verbs_double_int.h"

enum { ROUNDS_PER_YIELD = 16 };

static void acknowledge(struct dbl_qp *q, enum ibv_wc_status status)
{
    const struct dbl_request *r = &q->sq[q->acked++ % q->cap.max_send_wr];
    struct ibv_wc wc = {.wr_id = r->wr.wr_id,
                        .status = status,
                        .opcode = IBV_WC_RDMA_WRITE,
                        .qp_num = q->qp.qp_num,
                        .vendor_err = status != IBV_WC_SUCCESS ? 0x42 : 0};

    if (status != IBV_WC_SUCCESS || (r->wr.send_flags & IBV_SEND_SIGNALED) != 0)
        dbl_complete(q->qp.send_cq, &wc);
}

void dbl_break(struct dbl_qp *q)
{
    q->qp.state = IBV_QPS_ERR;
    while (q->acked < q->posted)
        acknowledge(q, IBV_WC_WR_FLUSH_ERR);
    q->delivered = q->acked;
    while (q->taken < q->received) {
        struct ibv_wc wc = {.wr_id = q->rq[q->taken++ % q->cap.max_recv_wr],
                            .status = IBV_WC_WR_FLUSH_ERR,
                            .opcode = IBV_WC_RECV,
                            .qp_num = q->qp.qp_num};

        dbl_complete(q->qp.recv_cq, &wc);
    }
}

/* The request ends badly: those before it have arrived, those after it never will. */
static void fail(struct dbl_qp *q, enum ibv_wc_status status)
{
    while (q->acked < q->delivered)
        acknowledge(q, IBV_WC_SUCCESS);
    acknowledge(q, status);
    dbl_break(q);
}

/* The far end, if packets get there: it may be gone, not ready yet, or another than was meant. */
static struct dbl_qp *reach(const struct dbl_qp *q)
{
    struct dbl_qp *far = dbl.cut ? NULL : dbl_pair(q->attr.dest_qp_num);

    if (far == NULL || (far->qp.state != IBV_QPS_RTR && far->qp.state != IBV_QPS_RTS))
        return NULL;
    if (far->attr.dest_qp_num != q->qp.qp_num || far->attr.rq_psn != q->attr.sq_psn ||
        far->attr.path_mtu != q->attr.path_mtu)
        return NULL;
    return far;
}

static void copy_part(const struct dbl_request *r, uint32_t from, uint32_t to)
{
    const char *data = (r->wr.send_flags & IBV_SEND_INLINE) != 0
                           ? (const char *)r->copy
                           : (const char *)(uintptr_t)r->sge.addr;

    if (to > from)
        memcpy((char *)(uintptr_t)r->wr.wr.rdma.remote_addr + from, data + from, to - from);
}

static void signal_far(struct dbl_qp *far, const struct dbl_request *r)
{
    struct ibv_wc wc = {.wr_id = far->rq[far->taken++ % far->cap.max_recv_wr],
                        .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                        .byte_len = r->wr.num_sge == 1 ? r->sge.length : 0,
                        .imm_data = r->wr.imm_data,
                        .qp_num = far->qp.qp_num,
                        .wc_flags = IBV_WC_WITH_IMM};

    dbl_complete(far->qp.recv_cq, &wc);
}

/* May the far end's memory be touched so? */
static struct dbl_mr *permitted(const struct dbl_qp *far, const struct dbl_request *r)
{
    int access = r->wr.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ
                                                  : IBV_ACCESS_REMOTE_WRITE;
    struct dbl_mr *m =
        dbl_region(r->wr.wr.rdma.rkey, true, r->wr.wr.rdma.remote_addr, r->sge.length);

    if (m == NULL || m->mr.pd != far->qp.pd || (m->access & access) == 0 ||
        ((int)far->attr.qp_access_flags & access) == 0)
        return NULL;
    return m;
}

static void read_far(struct dbl_mr *m, const struct dbl_request *r)
{
    m->reads++;
    memcpy((void *)(uintptr_t)r->sge.addr, (void *)(uintptr_t)r->wr.wr.rdma.remote_addr,
           r->sge.length);
}

static void deliver(struct dbl_qp *q)
{
    struct dbl_request *r = &q->sq[q->delivered % q->cap.max_send_wr];
    struct dbl_qp *far = reach(q);
    uint32_t bytes = r->wr.num_sge == 1 ? r->sge.length : 0;
    struct dbl_mr *m = NULL;

    if (r->status != IBV_WC_SUCCESS) {
        fail(q, r->status);
        return;
    }
    if (far == NULL) {
        if (++q->tries > DOUBLE_TRIES * (q->attr.retry_cnt + 1))
            fail(q, IBV_WC_RETRY_EXC_ERR);
        return;
    }
    if (bytes > 0 && (m = permitted(far, r)) == NULL) {
        dbl_violation("a request for memory that it may not touch");
        fail(q, IBV_WC_REM_ACCESS_ERR);
        dbl_break(far);
        return;
    }
    if (r->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM && far->taken == far->received) {
        dbl.rnr++;
        return;
    }
    q->tries = 0;
    if (r->wr.opcode == IBV_WR_RDMA_READ) {
        read_far(m, r);
    } else if (!r->half) {
        copy_part(r, bytes / 2, bytes);
        r->half = true;
        return;
    } else {
        copy_part(r, 0, bytes / 2);
    }
    q->delivered++;
    if (r->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        signal_far(far, r);
}

/* One chance for each queue pair, from a random one on. True: something is left to be done. */
static bool round_of_steps(void)
{
    int first = dbl.nqps > 0 ? (int)(dbl_random() % (uint64_t)dbl.nqps) : 0;
    bool left = false;

    for (int i = 0; i < dbl.nqps; i++) {
        struct dbl_qp *q = dbl.qps[(first + i) % dbl.nqps];
        uint64_t chance = dbl_random();

        if (q->delivered < q->posted && chance % (uint64_t)dbl.s.laziness == 0)
            deliver(q);
        if (q->acked < q->delivered && chance / 64 % (uint64_t)dbl.s.laziness == 0)
            acknowledge(q, IBV_WC_SUCCESS);
        left |= q->acked < q->posted;
    }
    return left;
}

void *dbl_wire(void *unused)
{
    unsigned rounds = 0;

    pthread_mutex_lock(&dbl.lock);
    while (!dbl.stop) {
        if (!round_of_steps()) {
            pthread_cond_wait(&dbl.news, &dbl.lock);
            continue;
        }
        /* On a busy machine a yield may take long: not after every round. */
        pthread_mutex_unlock(&dbl.lock);
        if (++rounds % ROUNDS_PER_YIELD == 0)
            sched_yield();
        pthread_mutex_lock(&dbl.lock);
    }
    pthread_mutex_unlock(&dbl.lock);
    return unused;
}
