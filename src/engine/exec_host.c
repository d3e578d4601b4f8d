/*
 * The host executor: interprets bound folds on CPU memory.
 *
 * One thread runs all workers of its rank as resumable state: a fold that is
 * not ready yields to the next worker, so no wait blocks progress. Invariant:
 * a fold is started only when everything it waits for is there, and then runs
 * to its end; what has been checked is not checked again on resumption.
 */
#include "base/wait.h"
#include "engine/exec_port.h"

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
    bool owes;      /* slots were published whose payloads are the user's memory */
};

static struct cm_port *port_of(struct run *r, struct cm_port *side, int peer, int channel)
{
    return &side[(size_t)peer * (size_t)r->c->layout->channels + (size_t)channel];
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
    struct cm_slot_head *h = cm_port_slot(r->c, p);

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
    size_t bytes = s.n * r->b->esize;
    struct cm_port *p;

    if (o->space != CM_PORT)
        return space_base(r, o) + o->at + s.at;
    p = port_of(r, from ? r->c->recv : r->c->send, o->rank, channel);
    if (from)
        return cm_port_arrived(p, cm_port_slot(r->c, p), bytes);
    return cm_port_payload(cm_port_slot(r->c, p), bytes);
}

static struct slice slice_of(const struct cm_bound *b, const struct cm_bound_fold *f, size_t pass)
{
    size_t at = pass * b->cap;

    if (at >= f->len)
        return (struct slice){0, f->len * b->esize};
    return (struct slice){cm_min_size(b->cap, f->len - at), at * b->esize};
}

/* While a fold waits for its slot: let the payload come where the fold would copy it. */
static void offer_place(struct run *r, const struct cm_bound_fold *f, size_t pass, int channel)
{
    struct slice s = slice_of(r->b, f, pass);
    const struct cm_port *p;

    if (f->place < 0)
        return;
    p = port_of(r, r->c->recv, r->b->operands[f->from].rank, channel);
    cm_port_offer(p, cm_port_slot(r->c, p),
                  address(r, &r->b->operands[f->place], false, channel, s), s.n * r->b->esize);
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
        if (!operand_ready(r, &b->operands[f->from + s->waited - f->nwait], true, channel)) {
            offer_place(r, f, s->pass, channel);
            return false;
        }
    for (; s->waited < f->nwait + f->nfrom + f->nto; s->waited++)
        if (!operand_ready(r, &b->operands[f->to + s->waited - f->nwait - f->nfrom], false,
                           channel))
            return false;
    return true;
}

/* Begin a slot that the fold fills. False: its payload stays where it is. */
static bool begin_slot(struct run *r, const struct cm_bound_fold *f,
                       const struct cm_bound_operand *o, int channel, struct slice s)
{
    struct cm_port *p = port_of(r, r->c->send, o->rank, channel);
    struct cm_slot_head *h = cm_port_slot(r->c, p);
    const void *from = NULL;
    bool inside;

    if (f->refer >= 0)
        from = address(r, &r->b->operands[f->refer], true, channel, s);
    h->sig = r->b->sig;
    inside = cm_port_begin(p, h, s.n * r->b->esize, from);
    r->owes |= !inside;
    return inside;
}

/* Fill c->dst: all places but slots whose payload stays outside. How many. */
static int list_places(struct run *r, const struct cm_bound_fold *f, int channel, struct slice s)
{
    int n = 0;

    for (int k = 0; k < f->nto; k++) {
        const struct cm_bound_operand *o = &r->b->operands[f->to + k];

        if (o->space != CM_PORT || begin_slot(r, f, o, channel, s))
            r->c->dst[n++] = address(r, o, false, channel, s);
    }
    return n;
}

/* Reduce or copy one slice. */
static void move(struct run *r, const struct cm_bound_fold *f, int channel, struct slice s)
{
    const struct cm_bound *b = r->b;
    struct cm_comm *c = r->c;
    bool scaled = false, stream = b->stream && !f->fills;
    int ndst = list_places(r, f, channel, s);

    for (int k = 0; k < f->nfrom; k++) {
        const struct cm_bound_operand *o = &b->operands[f->from + k];

        c->src[k] = address(r, o, true, channel, s);
        c->scale[k] = b->premul && o->space == CM_IN ? cm_mulsum_scalar(o->rank) : 1;
        scaled |= c->scale[k] != 1;
    }
    if (s.n == 0 || ndst == 0)
        return;
    if (f->nfrom == 1 && !scaled && !(f->divide && b->divisor > 1)) {
        if (ndst > 1 || c->dst[0] != c->src[0])
            cm_copy(c->dst, ndst, c->src[0], s.n * b->esize, stream);
        return;
    }
    (stream ? b->reduce
            : b->reduce_cached)(&(struct cm_reduce){.n = s.n,
                                                    .nsrc = f->nfrom,
                                                    .ndst = ndst,
                                                    .src = c->src,
                                                    .dst = c->dst,
                                                    .scale = scaled ? c->scale : NULL,
                                                    .divisor = f->divide ? b->divisor : 1});
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
    for (int k = 0; k < f->nfrom; k++) {
        const struct cm_bound_operand *o = &b->operands[f->from + k];
        struct cm_port *p;

        if (o->space != CM_PORT)
            continue;
        p = port_of(r, r->c->recv, o->rank, w->channel);
        cm_port_release(p, cm_port_slot(r->c, p));
    }
    for (int k = 0; k < f->nto; k++) {
        const struct cm_bound_operand *o = &b->operands[f->to + k];
        struct cm_port *p;

        if (o->space != CM_PORT)
            continue;
        p = port_of(r, r->c->send, o->rank, w->channel);
        cm_port_publish(p, cm_port_slot(r->c, p), b->choice.proto == CM_PROTO_LL);
    }
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
        bool last = s->pass + 1 >= r->b->npasses;

        if (s->fold == (last ? w->nfolds : w->exit)) {
            s->fold = w->enter;
            s->pass++;
            *done = last;
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

/* Payloads that lie in the user's memory must have left before it is the user's again. */
static enum cm_status await_departures(struct run *r)
{
    struct cm_comm *c = r->c;
    int channels = c->layout->channels;

    for (int k = 0; r->owes && k < c->n * channels; k++) {
        struct cm_spin spin = cm_spin_start();

        while (!cm_port_has_left(&c->send[k])) {
            enum cm_status st = cm_spin_moving(&spin, c->waiter, c->world[k / channels]);

            if (st != CM_OK)
                return st;
        }
    }
    return CM_OK;
}

enum cm_status cm_exec_host(struct cm_comm *c, const struct cm_bound *b, const struct cm_op_args *a)
{
    struct run r = {.c = c, .b = b, .a = a, .blocked_on = c->rank, .stranger = -1};
    struct worker_state state[CM_MAX_WORKERS] = {{0, 0, 0, 0, false}};
    bool done[CM_MAX_WORKERS] = {false};
    struct cm_spin spin = cm_spin_start();
    int left = b->nworkers;
    enum cm_status st;

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
            st = cm_spin_moving(&spin, c->waiter, c->world[r.blocked_on]);
            if (st != CM_OK)
                return st;
        }
    }
    if (c->remote == NULL)
        return CM_OK;
    st = await_departures(&r);
    c->remote->rest(c->remote->arg);
    return st;
}
