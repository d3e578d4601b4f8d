/*
 * What is said to a neighbour: slots, credit, farewell. Requests are posted in
 * chains, and all but the last and every 16th of them in silence.
 *
 * A slot is one write: signature, length and payload lie behind its flag in one
 * piece, and the immediate value of the write is the signal. Where packets may
 * take several ways a large payload is a write of its own, before: only what
 * comes with the signal by itself would be there in time no matter which way it took.
 *
 * Credit is told once half the slots are due, so at most two such messages of a
 * port are under way, and the neighbour has receives for them.
 *
 * A slot goes back to the executor when the adapter is done with it: at once if
 * it was copied (inline) and none before it is kept, else with a completion of
 * it or of a later request. Invariant: slots of a port go back in order.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "transport/ib_int.h"

enum {
    HEAD_AT = offsetof(struct cm_slot_head, sig), /* what is sent of a slot starts here */
    HEAD_BYTES = sizeof(uint64_t) * 2,            /* signature and length */
    SPLIT_FROM = 8192,   /* payload that is worth a request of its own, as NCCL has it */
    SILENT_BYTES = 65536 /* payload that is posted without asking for a completion */
};

/* Requests that are posted together. */
struct chain {
    struct cm_ib_qp *q;
    int n;
    struct ibv_send_wr wr[CM_IB_CHAIN];
    struct ibv_sge sge[CM_IB_CHAIN];
    int copied[CM_IB_CHAIN]; /* whose slot goes back as soon as the request is posted */
};

/* ---- what there is to say ---- */

static bool filled(const struct cm_ib_end *e)
{
    return atomic_load_explicit(&e->lines->tail, memory_order_acquire) > e->moved;
}

static bool sendable(const struct cm_ib *ib, const struct cm_ib_end *e)
{
    return e->moved - e->credit < (uint64_t)ib->a.depth && filled(e);
}

/* Slots that the executor freed here and the neighbour does not know of, if it should. */
static uint64_t credit_due(const struct cm_ib *ib, const struct cm_ib_end *e)
{
    uint64_t half = ib->a.depth > 1 ? (uint64_t)ib->a.depth / 2 : 1;
    uint64_t due = atomic_load_explicit(&e->lines->head, memory_order_acquire) - e->credit;

    return due >= half ? due : 0;
}

/* A slot may need two requests. */
static bool room(const struct cm_ib_qp *q)
{
    return (uint64_t)q->link->ib->send_queue - (q->posted - q->done) >= 2;
}

static bool drained(const struct cm_ib_qp *q)
{
    const struct cm_ib_link *l = q->link;

    for (int i = q->nth; i < l->nsend; i += l->ib->a.choice.qps)
        if (filled(&l->send[i]))
            return false;
    return true;
}

/* Who has said farewell takes no slots any more. */
static bool may_leave(const struct cm_ib_qp *q)
{
    return q->link->leaving && (q->bye || drained(q));
}

bool cm_ib_has_news(const struct cm_ib_qp *q)
{
    const struct cm_ib_link *l = q->link;
    const struct cm_ib *ib = l->ib;

    if (l->lost || q->told_bye || !room(q))
        return false;
    if (may_leave(q))
        return true;
    if (q->bye)
        return false;
    for (int i = q->nth; i < l->nsend; i += ib->a.choice.qps)
        if (sendable(ib, &l->send[i]))
            return true;
    for (int i = q->nth; i < l->nrecv; i += ib->a.choice.qps)
        if (credit_due(ib, &l->recv[i]) > 0)
            return true;
    return false;
}

bool cm_ib_owes(const struct cm_ib_qp *q)
{
    if (q->link->lost || q->bye)
        return false;
    return q->signalled > q->done || !drained(q) || cm_ib_has_news(q);
}

/* ---- requests ---- */

static bool has_room(const struct chain *c)
{
    uint64_t under_way = c->q->posted + (uint64_t)c->n - c->q->done;

    return c->n + 2 <= CM_IB_CHAIN && under_way + 2 <= (uint64_t)c->q->link->ib->send_queue;
}

/* Whose slot leaves with a request that is under way. */
static int32_t *port_of(const struct cm_ib_qp *q, uint64_t number)
{
    return &q->ports[number % (uint64_t)q->link->ib->send_queue];
}

/* A new request of the chain: an empty write with an immediate value, or none yet. */
static struct ibv_send_wr *add(struct chain *c, uint32_t imm)
{
    struct cm_ib_qp *q = c->q;
    uint64_t number = q->posted + (uint64_t)c->n;
    struct ibv_send_wr *wr = &c->wr[c->n];

    *wr = (struct ibv_send_wr){.wr_id = (uint64_t)q->index << 32 | (uint32_t)number,
                               .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                               .imm_data = htonl(imm)};
    if (c->n > 0)
        c->wr[c->n - 1].next = wr;
    *port_of(q, number) = CM_IB_NO_PORT;
    c->copied[c->n++] = CM_IB_NO_PORT;
    if (number + 1 - q->signalled >= CM_IB_SIGNAL_EVERY || q->silent >= SILENT_BYTES) {
        wr->send_flags = IBV_SEND_SIGNALED;
        q->signalled = number + 1;
        q->silent = 0;
        q->owed = false;
    }
    return wr;
}

/* Let the request write `bytes` of a slot, from `from` on, to the same place of the far end. */
static void carry(struct chain *c, struct ibv_send_wr *wr, const struct cm_ib_end *e,
                  const void *from, size_t bytes)
{
    const struct cm_ib *ib = c->q->link->ib;
    struct ibv_sge *sge = &c->sge[wr - c->wr];

    *sge = (struct ibv_sge){(uintptr_t)from, (uint32_t)bytes, e->key};
    wr->sg_list = sge;
    wr->num_sge = 1;
    wr->wr.rdma.remote_addr = e->remote + (uint64_t)((const unsigned char *)from - e->slots);
    wr->wr.rdma.rkey = e->remote_key;
    if (bytes <= ib->inline_bytes)
        wr->send_flags |= IBV_SEND_INLINE;
}

static void give_back(struct cm_ib_end *e)
{
    e->left++;
    atomic_store_explicit(&e->lines->head, e->left, memory_order_release);
}

/* The last request of the chain is the last of a slot; `copied`: and has all of it. */
static void keep(struct chain *c, int port, bool copied)
{
    struct cm_ib_qp *q = c->q;
    struct cm_ib_end *e = &q->link->send[port];

    if (copied && e->kept == 0) {
        c->copied[c->n - 1] = port;
        return;
    }
    e->kept++;
    *port_of(q, q->posted + (uint64_t)(c->n - 1)) = port;
    if ((c->wr[c->n - 1].send_flags & IBV_SEND_SIGNALED) == 0)
        q->owed = true;
}

static void add_slot(struct chain *c, int port)
{
    struct cm_ib *ib = c->q->link->ib;
    struct cm_ib_end *e = &c->q->link->send[port];
    const struct cm_slot_head *h = cm_ib_slot(ib, e, e->moved);
    const unsigned char *head = (const unsigned char *)h + HEAD_AT;
    size_t bytes = (size_t)h->bytes;
    size_t whole = bytes <= sizeof(h->near) ? HEAD_BYTES + bytes : sizeof(*h) - HEAD_AT + bytes;
    bool split = ib->split && bytes > SPLIT_FROM;
    struct ibv_send_wr *wr;

    assert(bytes <= ib->a.slot_bytes);
    if (split) {
        wr = add(c, 0);
        wr->opcode = IBV_WR_RDMA_WRITE;
        carry(c, wr, e, h + 1, bytes);
    }
    wr = add(c, cm_ib_imm(CM_IB_SLOT, port, e->moved));
    carry(c, wr, e, head, split ? HEAD_BYTES : whole);
    c->q->silent += bytes;
    e->moved++;
    ib->stats.slots_sent++;
    ib->stats.payload_sent += bytes;
    keep(c, port, !split && (wr->send_flags & IBV_SEND_INLINE) != 0);
}

/* ---- posting ---- */

/* Slots that were copied as they were posted. */
static void give_back_copied(const struct chain *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->copied[i] != CM_IB_NO_PORT)
            give_back(&c->q->link->send[c->copied[i]]);
}

/* Slots in this chain that only a completion gives back need one. */
static void signal_last(struct chain *c)
{
    struct cm_ib_qp *q = c->q;

    if (!q->owed)
        return;
    c->wr[c->n - 1].send_flags |= IBV_SEND_SIGNALED;
    q->signalled = q->posted + (uint64_t)c->n;
    q->silent = 0;
    q->owed = false;
}

static bool flush(struct chain *c)
{
    struct cm_ib_qp *q = c->q;
    struct cm_ib *ib = q->link->ib;
    struct ibv_send_wr *bad;
    int rc;

    if (c->n == 0)
        return false;
    signal_last(c);
    rc = ib->verbs.post_send(q->qp, c->wr, &bad);
    if (rc != 0) {
        cm_ib_lose(q->link, CM_ESYS, "the adapter takes no request: %s",
                   strerror(rc > 0 ? rc : errno));
        return true;
    }
    ib->stats.posts++;
    q->posted += (uint64_t)c->n;
    give_back_copied(c);
    c->n = 0;
    return true;
}

void cm_ib_retire(struct cm_ib_qp *q, uint64_t upto)
{
    for (; q->done < upto; q->done++) {
        int port = *port_of(q, q->done);

        if (port == CM_IB_NO_PORT)
            continue;
        q->link->send[port].kept--;
        give_back(&q->link->send[port]);
    }
}

static void say_credits(struct chain *c)
{
    struct cm_ib_link *l = c->q->link;

    for (int i = c->q->nth; i < l->nrecv && has_room(c); i += l->ib->a.choice.qps) {
        uint64_t due = credit_due(l->ib, &l->recv[i]);

        if (due == 0)
            continue;
        l->recv[i].credit += due;
        add(c, cm_ib_imm(CM_IB_CREDIT, i, l->recv[i].credit));
    }
}

static void say_slots_of(struct chain *c, int port)
{
    while (has_room(c) && sendable(c->q->link->ib, &c->q->link->send[port]))
        add_slot(c, port);
}

/* From the port after the one that was served last. */
static void say_slots(struct chain *c)
{
    const struct cm_ib_link *l = c->q->link;
    int qps = l->ib->a.choice.qps;
    int first = c->q->next < l->nsend ? c->q->next : c->q->nth;

    for (int i = first; i < l->nsend; i += qps)
        say_slots_of(c, i);
    for (int i = c->q->nth; i < first && i < l->nsend; i += qps)
        say_slots_of(c, i);
    c->q->next = first + qps;
}

bool cm_ib_speak(struct cm_ib_qp *q)
{
    struct chain c;

    if (!cm_ib_has_news(q))
        return false;
    c.q = q;
    c.n = 0;
    if (!q->bye) {
        say_credits(&c);
        say_slots(&c);
    }
    if (has_room(&c) && may_leave(q)) {
        add(&c, cm_ib_imm(CM_IB_BYE, 0, 0));
        q->owed = true; /* its completion ends the connection */
        q->told_bye = true;
    }
    return flush(&c);
}
