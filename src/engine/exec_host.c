/*
 * The host executor: interprets bound folds on CPU memory.
 *
 * One thread runs all workers of its rank as resumable state: a fold that is
 * not ready yields to the next worker, so no wait blocks progress. Invariant:
 * a fold is started only when everything it waits for is there, and then runs
 * to its end; what has been checked is not checked again on resumption.
 */
#include "base/wait.h"
#include "engine/comm_int.h"

struct worker_state {
    size_t pass;
    int fold;   /* next fold, from the worker's first */
    int waited; /* waits and ports of that fold already satisfied */
    uint32_t phase;
    bool exiting; /* CM_PHASE_DONE is posted */
};

/* The part of a fold that one pass moves. */
struct slice {
    size_t n;  /* elements */
    size_t at; /* bytes from the operand's start */
};

struct run {
    struct cm_comm *c;
    const struct cm_bound *b;
    const struct cm_op_args *a;
    int blocked_on; /* comm rank the last fold that was not ready waits for */
    int stranger;   /* comm rank found in another operation, -1: none */
};

static struct cm_port *port_of(struct run *r, struct cm_port *side, int peer, int channel)
{
    return &side[(size_t)peer * (size_t)r->c->layout->channels + (size_t)channel];
}

static struct cm_slot_head *slot_at(const struct cm_comm *c, const struct cm_port *p)
{
    uint64_t k = p->count & (uint64_t)(c->layout->depth - 1);

    return (struct cm_slot_head *)(p->slots + k * c->slot_stride);
}

/* Where a slot keeps its payload: beside the flag if it fits there. */
static void *slot_payload(struct cm_slot_head *h, size_t bytes)
{
    return bytes <= sizeof(h->near) ? h->near : (unsigned char *)(h + 1);
}

/*
 * Does that rank run this operation with another signature? The field is
 * reused every second operation, after the one between is done; when that is
 * seen afterwards there is no telling. Pairs with publish_bases().
 */
static bool signature_differs(const struct run *r, int rank)
{
    const struct cm_line *line = cm_line_of(r->c, rank, 0);
    uint64_t op = r->c->op;

    if (atomic_load_explicit(&line->sig[op & 1], memory_order_acquire) == r->b->sig)
        return false;
    return atomic_load_explicit(&line->seq, memory_order_relaxed) < cm_seq(op + 1, CM_PHASE_DONE);
}

/* Has the peer's line reached the phase? While it is in our operation, signatures are compared. */
static bool line_ready(struct run *r, const struct cm_bound_wait *w)
{
    const struct cm_line *line = cm_line_of(r->c, w->rank, w->line);
    uint64_t seq = atomic_load_explicit(&line->seq, memory_order_acquire);
    uint64_t op = r->c->op;

    r->blocked_on = w->rank;
    if (seq < cm_seq(op, w->phase))
        return false;
    if (seq >> CM_PHASE_BITS != op || !signature_differs(r, w->rank))
        return true;
    r->stranger = w->rank;
    return false;
}

static bool slot_full(struct run *r, struct cm_port *p, int peer)
{
    struct cm_slot_head *h = slot_at(r->c, p);

    r->blocked_on = peer;
    if (r->b->choice.proto == CM_PROTO_LL) {
        if (atomic_load_explicit(&h->flag, memory_order_acquire) != p->count + 1)
            return false;
    } else if (p->seen <= p->count) {
        p->seen = atomic_load_explicit(&p->lines->tail, memory_order_acquire);
        if (p->seen <= p->count)
            return false;
    }
    if (h->sig == r->b->sig)
        return true;
    r->stranger = peer;
    return false;
}

static bool slot_free(struct run *r, struct cm_port *p, int peer)
{
    uint64_t depth = (uint64_t)r->c->layout->depth;

    r->blocked_on = peer;
    if (p->count - p->seen < depth)
        return true;
    p->seen = atomic_load_explicit(&p->lines->head, memory_order_acquire);
    return p->count - p->seen < depth;
}

/* Is a port operand's slot there? Other operands always are. */
static bool operand_ready(struct run *r, const struct cm_bound_operand *o, bool from, int channel)
{
    if (o->space != CM_PORT)
        return true;
    if (from)
        return slot_full(r, port_of(r, r->c->recv, o->rank, channel), o->rank);
    return slot_free(r, port_of(r, r->c->send, o->rank, channel), o->rank);
}

/* Go on checking what fold `f` waits for: lines, then full slots, then free slots. */
static bool fold_ready(struct run *r, const struct cm_bound_fold *f, struct worker_state *s,
                       int channel)
{
    const struct cm_bound *b = r->b;

    for (; s->waited < f->nwait; s->waited++)
        if (!line_ready(r, &b->waits[f->wait + s->waited]))
            return false;
    for (; s->waited < f->nwait + f->nfrom; s->waited++)
        if (!operand_ready(r, &b->operands[f->from + s->waited - f->nwait], true, channel))
            return false;
    for (; s->waited < f->nwait + f->nfrom + f->nto; s->waited++)
        if (!operand_ready(r, &b->operands[f->to + s->waited - f->nwait - f->nfrom], false,
                           channel))
            return false;
    return true;
}

/* Start of a space of a rank in this operation, as mapped here. */
static unsigned char *space_base(struct run *r, const struct cm_bound_operand *o)
{
    struct cm_comm *c = r->c;
    unsigned parity = c->op & 1;
    const struct cm_line *line;

    if (o->rank == c->rank) {
        if (o->space == CM_SCRATCH)
            return (unsigned char *)c->base + c->scratch_at;
        return o->space == CM_IN ? (unsigned char *)(uintptr_t)r->a->in : r->a->out;
    }
    line = cm_line_of(c, o->rank, 0);
    switch (o->space) {
    case CM_IN:
        return (unsigned char *)c->base + line->in[parity];
    case CM_OUT:
        return (unsigned char *)c->base + line->out[parity];
    default:
        return (unsigned char *)c->base + line->scratch[parity];
    }
}

/* Address of an operand's slice; ports: the payload of the current slot. */
static void *address(struct run *r, const struct cm_bound_operand *o, bool from, int channel,
                     struct slice s)
{
    if (o->space != CM_PORT)
        return space_base(r, o) + o->at + s.at;
    return slot_payload(slot_at(r->c, port_of(r, from ? r->c->recv : r->c->send, o->rank, channel)),
                        s.n * r->b->esize);
}

static void fill_slot_head(struct run *r, const struct cm_bound_operand *o, int channel,
                           size_t bytes)
{
    struct cm_slot_head *h = slot_at(r->c, port_of(r, r->c->send, o->rank, channel));

    h->sig = r->b->sig;
    h->bytes = bytes;
}

/* Make a filled slot visible. */
static void publish_slot(struct run *r, const struct cm_bound_operand *o, int channel)
{
    struct cm_port *p = port_of(r, r->c->send, o->rank, channel);
    struct cm_slot_head *h = slot_at(r->c, p);

    p->count++;
    if (r->b->choice.proto == CM_PROTO_LL)
        atomic_store_explicit(&h->flag, p->count, memory_order_release);
    atomic_store_explicit(&p->lines->tail, p->count, memory_order_release);
}

static void release_slot(struct run *r, const struct cm_bound_operand *o, int channel)
{
    struct cm_port *p = port_of(r, r->c->recv, o->rank, channel);

    p->count++;
    atomic_store_explicit(&p->lines->head, p->count, memory_order_release);
}

/* Reduce or copy one slice. */
static void move(struct run *r, const struct cm_bound_fold *f, int channel, struct slice s)
{
    const struct cm_bound *b = r->b;
    struct cm_comm *c = r->c;
    bool scaled = false;

    for (int k = 0; k < f->nfrom; k++) {
        const struct cm_bound_operand *o = &b->operands[f->from + k];

        c->src[k] = address(r, o, true, channel, s);
        c->scale[k] = b->premul && o->space == CM_IN ? cm_mulsum_scalar(o->rank) : 1;
        scaled |= c->scale[k] != 1;
    }
    for (int k = 0; k < f->nto; k++) {
        const struct cm_bound_operand *o = &b->operands[f->to + k];

        c->dst[k] = address(r, o, false, channel, s);
        if (o->space == CM_PORT)
            fill_slot_head(r, o, channel, s.n * b->esize);
    }
    if (s.n == 0)
        return;
    if (f->nfrom == 1 && !scaled && !(f->divide && b->divisor > 1)) {
        cm_copy(c->dst, f->nto, c->src[0], s.n * b->esize, b->stream);
        return;
    }
    b->reduce(&(struct cm_reduce){.n = s.n,
                                  .nsrc = f->nfrom,
                                  .ndst = f->nto,
                                  .src = c->src,
                                  .dst = c->dst,
                                  .scale = scaled ? c->scale : NULL,
                                  .divisor = f->divide ? b->divisor : 1});
}

static struct slice slice_of(const struct cm_bound *b, const struct cm_bound_fold *f, size_t pass)
{
    size_t at = pass * b->cap;

    if (at >= f->len)
        return (struct slice){0, f->len * b->esize};
    return (struct slice){cm_min_size(b->cap, f->len - at), at * b->esize};
}

static void post(struct run *r, int line, uint32_t phase)
{
    atomic_store_explicit(&r->c->self->lines[line].seq, cm_seq(r->c->op, phase),
                          memory_order_release);
}

static void run_fold(struct run *r, const struct cm_bound_fold *f, const struct cm_bound_worker *w,
                     struct worker_state *s)
{
    const struct cm_bound *b = r->b;

    if (f->nfrom > 0)
        move(r, f, w->channel, slice_of(b, f, s->pass));
    for (int k = 0; k < f->nfrom; k++)
        if (b->operands[f->from + k].space == CM_PORT)
            release_slot(r, &b->operands[f->from + k], w->channel);
    for (int k = 0; k < f->nto; k++)
        if (b->operands[f->to + k].space == CM_PORT)
            publish_slot(r, &b->operands[f->to + k], w->channel);
    if (f->post)
        post(r, w->line, ++s->phase);
}

/* Run a worker as far as it gets. True if it moved; *done once it has run all its passes. */
static bool run_worker(struct run *r, const struct cm_bound_worker *w, struct worker_state *s,
                       bool *done)
{
    bool moved = false;

    for (;;) {
        const struct cm_bound_fold *f = &r->b->folds[w->first + s->fold];

        if (s->fold == w->nfolds) {
            s->fold = 0;
            *done = ++s->pass >= r->b->npasses || w->nfolds == 0;
            if (*done)
                break;
            continue;
        }
        if (f->done_first && !s->exiting) {
            post(r, w->line, CM_PHASE_DONE);
            s->exiting = true;
        }
        if (!fold_ready(r, f, s, w->channel))
            return moved;
        run_fold(r, f, w, s);
        s->waited = 0;
        s->fold++;
        moved = true;
    }
    if (!s->exiting)
        post(r, w->line, CM_PHASE_DONE);
    return true;
}

/* Publish where this rank's buffers are, before the first post of any worker. */
static void publish_bases(struct run *r)
{
    struct cm_comm *c = r->c;
    struct cm_line *line = &c->self->lines[0];
    unsigned parity = c->op & 1;
    const char *base = c->base;

    line->in[parity] = (uint64_t)((const char *)r->a->in - base);
    line->out[parity] = (uint64_t)((const char *)r->a->out - base);
    line->scratch[parity] = c->scratch_at;
    cm_publish_sig(c, r->b->sig);
}

enum cm_status cm_exec_host(struct cm_comm *c, const struct cm_bound *b, const struct cm_op_args *a)
{
    struct run r = {.c = c, .b = b, .a = a, .blocked_on = c->rank, .stranger = -1};
    struct worker_state state[CM_MAX_WORKERS] = {{0, 0, 0, 0, false}};
    bool done[CM_MAX_WORKERS] = {false};
    struct cm_spin spin = cm_spin_start();
    int left = b->nworkers;

    publish_bases(&r);
    while (left > 0) {
        bool moved = false;

        for (int w = 0; w < b->nworkers; w++) {
            if (done[w])
                continue;
            moved |= run_worker(&r, &b->workers[w], &state[w], &done[w]);
            left -= done[w];
        }
        if (r.stranger >= 0)
            return cm_comm_mismatch(c, r.stranger);
        if (moved) {
            spin = cm_spin_start();
        } else if (left > 0) {
            enum cm_status st = cm_spin(&spin, c->waiter, c->world[r.blocked_on]);

            if (st != CM_OK)
                return st;
        }
    }
    return CM_OK;
}
