/*
 * LL: small operations in one exchange. A rank publishes its whole send buffer
 * in one of its own slots, flag and payload together; whoever needs it loads
 * it from there. One writer, many readers, no arrive and no exit wait.
 *
 * This is the direct plan in copy mode with the n - 1 ports of a sender folded
 * into one slot, as coherent memory allows (tests hold both against one reference).
 *
 * Reuse. Operation e writes slot e mod CM_LL_DEPTH, so its readers must have
 * finished operation e - CM_LL_DEPTH. Evidence, cheapest first: a flag of a
 * later operation seen from that reader; its line 0, which it sets to DONE at
 * the end of each operation (a store to its own cache line, read only here).
 */
#include <string.h>

#include "base/wait.h"
#include "engine/comm_int.h"

enum { SIG_BITS = 24 };

static bool set_shape(struct cm_ll_shape *s, bool publish, enum cm_ll_take take, size_t in,
                      size_t at)
{
    s->publish = publish;
    s->publish_bytes = in;
    s->take = take;
    s->take_at = at;
    return in <= CM_LL_BYTES;
}

bool cm_ll_shape(const struct cm_comm *c, const struct cm_key *k, struct cm_ll_shape *out)
{
    size_t block = k->count * cm_dtypes[k->dtype].bytes;
    size_t mine = (size_t)c->rank * block, all = (size_t)c->n * block;
    bool root = c->rank == k->root;

    if (k->count > CM_LL_BYTES || c->n == 1)
        return false;
    *out = (struct cm_ll_shape){.from = k->root, .take_bytes = block};
    switch (k->coll) {
    case CM_ALL_REDUCE:
        return set_shape(out, true, CM_LL_REDUCE, block, 0);
    case CM_REDUCE_SCATTER:
        return set_shape(out, true, CM_LL_REDUCE, all, mine);
    case CM_ALL_GATHER:
        return set_shape(out, true, CM_LL_CONCAT, block, 0);
    case CM_ALLTOALL:
        return set_shape(out, true, CM_LL_CONCAT, all, mine);
    case CM_BROADCAST:
        return set_shape(out, root, CM_LL_COPY, block, 0);
    case CM_SCATTER:
        return set_shape(out, root, CM_LL_COPY, all, mine);
    case CM_REDUCE:
        return set_shape(out, !root, root ? CM_LL_REDUCE : CM_LL_NOTHING, block, 0);
    case CM_GATHER:
        return set_shape(out, !root, root ? CM_LL_CONCAT : CM_LL_NOTHING, block, 0);
    case CM_SENDRECV:
        out->from = (c->rank + c->n - 1) % c->n;
        return set_shape(out, true, CM_LL_COPY, block, 0);
    default: /* alltoallv: unequal blocks; hypercube: its exchanges are what is measured */
        return false;
    }
}

static uint64_t flag_of(uint64_t op, uint64_t sig)
{
    return op << SIG_BITS | sig >> (64 - SIG_BITS);
}

static unsigned char *payload(struct cm_ll_slot *s, size_t bytes)
{
    return bytes <= CM_LL_INLINE ? s->near : s->far;
}

/* The latest operation that a rank with this line value has finished. */
static uint64_t finished_op(uint64_t seq)
{
    uint64_t op = seq >> CM_PHASE_BITS;

    return (seq & CM_PHASE_DONE) == CM_PHASE_DONE || op == 0 ? op : op - 1;
}

/* Wait until `reader` has finished operation `op`. */
static enum cm_status wait_finished(struct cm_comm *c, int reader, uint64_t op)
{
    const struct cm_line *line = cm_line_of(c, reader, 0);
    struct cm_spin spin = cm_spin_start();

    while (c->finished[reader] < op) {
        enum cm_status st;

        c->finished[reader] = finished_op(atomic_load_explicit(&line->seq, memory_order_acquire));
        if (c->finished[reader] >= op)
            break;
        st = cm_spin(&spin, c->waiter, c->world[reader]);
        if (st != CM_OK)
            return st;
    }
    return CM_OK;
}

/* Wait until this operation's slot has been read by the readers of its last use. */
static enum cm_status wait_slot(struct cm_comm *c)
{
    uint64_t old = c->op - CM_LL_DEPTH, min = UINT64_MAX;

    if (c->op <= CM_LL_DEPTH || c->finished_min >= old)
        return CM_OK;
    for (int r = 0; r < c->n; r++) {
        enum cm_status st;

        if (r == c->rank)
            continue;
        st = wait_finished(c, r, old);
        if (st != CM_OK)
            return st;
        min = c->finished[r] < min ? c->finished[r] : min;
    }
    c->finished_min = min;
    return CM_OK;
}

static void publish(struct cm_comm *c, const struct cm_bound *b, const void *in)
{
    struct cm_ll_slot *s = &c->self->ll[c->op % CM_LL_DEPTH];

    memcpy(payload(s, b->shape.publish_bytes), in, b->shape.publish_bytes);
    atomic_store_explicit(&s->flag, flag_of(c->op, b->sig), memory_order_release);
}

/* Wait for what `from` publishes in this operation; *at: my part of it. */
static enum cm_status receive(struct cm_comm *c, const struct cm_bound *b, int from, size_t bytes,
                              const void **at)
{
    struct cm_ll_slot *s = &c->peer[from]->ll[c->op % CM_LL_DEPTH];
    uint64_t want = flag_of(c->op, b->sig);
    struct cm_spin spin = cm_spin_start();

    for (;;) {
        uint64_t flag = atomic_load_explicit(&s->flag, memory_order_acquire);
        enum cm_status st;

        if (flag == want)
            break;
        if (flag >> SIG_BITS == c->op)
            return cm_comm_mismatch(c, from);
        st = cm_spin(&spin, c->waiter, c->world[from]);
        if (st != CM_OK)
            return st;
    }
    c->finished[from] = c->op - 1;
    *at = payload(s, bytes) + b->shape.take_at;
    return CM_OK;
}

/* Collect all ranks' parts in rank order in c->src; own part from `in`. */
static enum cm_status receive_all(struct cm_comm *c, const struct cm_bound *b, const void *in)
{
    const struct cm_ll_shape *s = &b->shape;

    for (int r = 0; r < c->n; r++) {
        enum cm_status st = CM_OK;

        if (r == c->rank)
            c->src[r] = (const char *)in + s->take_at;
        else
            st = receive(c, b, r, s->publish_bytes, &c->src[r]);
        if (st != CM_OK)
            return st;
    }
    c->finished_min = c->op - 1;
    return CM_OK;
}

static enum cm_status take_reduce(struct cm_comm *c, const struct cm_bound *b,
                                  const struct cm_op_args *a)
{
    enum cm_status st = receive_all(c, b, a->in);

    if (st != CM_OK)
        return st;
    for (int r = 0; b->premul && r < c->n; r++)
        c->scale[r] = cm_mulsum_scalar(r);
    b->reduce(&(struct cm_reduce){.n = a->count,
                                  .nsrc = c->n,
                                  .ndst = 1,
                                  .src = c->src,
                                  .dst = &(void *){a->out},
                                  .scale = b->premul ? c->scale : NULL,
                                  .divisor = b->divisor});
    return CM_OK;
}

static enum cm_status take_concat(struct cm_comm *c, const struct cm_bound *b,
                                  const struct cm_op_args *a)
{
    size_t bytes = b->shape.take_bytes;
    enum cm_status st = receive_all(c, b, a->in);

    for (int r = 0; st == CM_OK && r < c->n; r++)
        if ((char *)a->out + (size_t)r * bytes != c->src[r])
            memcpy((char *)a->out + (size_t)r * bytes, c->src[r], bytes);
    return st;
}

static enum cm_status take_copy(struct cm_comm *c, const struct cm_bound *b,
                                const struct cm_op_args *a)
{
    const void *src = (const char *)a->in + b->shape.take_at;
    enum cm_status st = CM_OK;

    if (b->shape.from != c->rank)
        st = receive(c, b, b->shape.from, b->shape.publish_bytes, &src);
    if (st == CM_OK && src != a->out)
        memcpy(a->out, src, b->shape.take_bytes);
    return st;
}

enum cm_status cm_ll_run(struct cm_comm *c, const struct cm_bound *b, const struct cm_op_args *a)
{
    enum cm_status st = CM_OK;

    if (b->shape.publish) {
        st = wait_slot(c);
        if (st != CM_OK)
            return st;
        publish(c, b, a->in);
    }
    switch (b->shape.take) {
    case CM_LL_REDUCE:
        st = take_reduce(c, b, a);
        break;
    case CM_LL_CONCAT:
        st = take_concat(c, b, a);
        break;
    case CM_LL_COPY:
        st = take_copy(c, b, a);
        break;
    case CM_LL_NOTHING:
        break;
    }
    cm_publish_sig(c, b->sig);
    if (st == CM_OK)
        atomic_store_explicit(&c->self->lines[0].seq, cm_seq(c->op, CM_PHASE_DONE),
                              memory_order_release);
    return st;
}
