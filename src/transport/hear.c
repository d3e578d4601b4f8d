/*
 * What a neighbour's frames do. Whatever it sends is held against what it may
 * send: nothing it says makes us write outside of a free slot, or of a place that
 * an executor offers for a payload of that very length.
 *
 * Invariant: a socket carries the frames of a port in order, so slot k comes
 * after k-1; anything else is garbage.
 */
#include "transport/tcp.h"

static enum cm_status garbage(void *arg, const char *what)
{
    return cm_peer_blame(((struct cm_sock *)arg)->peer, CM_ESYS, "sent %s", what);
}

static enum cm_status hear_ports(struct cm_sock *s, const struct cm_frame *f)
{
    struct cm_peer *p = s->peer;

    if (s->greeted)
        return garbage(s, "its ports twice");
    s->greeted = true;
    if (f->port == (uint32_t)p->nrecv && f->number == (uint64_t)p->a->depth &&
        f->sig == p->a->slot_bytes)
        return CM_OK;
    return cm_peer_blame(p, CM_EMISMATCH,
                         "has %u ports of %llu slots of %llu bytes to process %d, which expects "
                         "%d of %d of %zu",
                         f->port, (unsigned long long)f->number, (unsigned long long)f->sig,
                         p->a->proc, p->nrecv, p->a->depth, p->a->slot_bytes);
}

static enum cm_status hear_slot(struct cm_sock *s, const struct cm_frame *f, void **to)
{
    struct cm_peer *p = s->peer;
    struct cm_port_end *e;
    struct cm_slot_head *h;
    uint64_t freed;

    if (f->port >= (uint32_t)p->nrecv || (int)f->port % p->a->sockets != s->index)
        return garbage(s, "a slot of a port that is not there");
    e = &p->recv[f->port];
    if (f->bytes > p->a->slot_bytes)
        return garbage(s, "a slot that is too large");
    freed = atomic_load_explicit(&e->lines->head, memory_order_acquire);
    if (f->number != e->moved || e->moved - freed >= (uint64_t)p->a->depth)
        return garbage(s, "a slot out of turn");
    h = cm_slot_at(p, e, e->moved);
    h->sig = f->sig;
    h->bytes = f->bytes;
    *to = cm_slot_payload(h, (size_t)f->bytes);
    return CM_OK;
}

/* Take the place that an executor offers for a payload of this length. */
static bool place(void *arg, const struct cm_frame *f, bool last, unsigned char **to)
{
    const struct cm_peer *p = ((struct cm_sock *)arg)->peer;
    const struct cm_port_end *e = &p->recv[f->port];
    struct cm_slot_head *h = cm_slot_at(p, e, e->moved);
    uint64_t at;

    if (!last && atomic_load_explicit(&h->far_at, memory_order_relaxed) == 0)
        return false;
    at = atomic_exchange_explicit(&h->far_at, CM_FAR_CLOSED, memory_order_acquire);
    if (at <= CM_FAR_CLOSED || h->far_bytes != f->bytes)
        return true;
    atomic_store_explicit(&h->far_at, at, memory_order_relaxed);
    *to = (unsigned char *)(uintptr_t)at;
    return true;
}

static enum cm_status hear_credit(struct cm_sock *s, const struct cm_frame *f)
{
    struct cm_peer *p = s->peer;
    struct cm_port_end *e;

    if (f->port >= (uint32_t)p->nsend)
        return garbage(s, "credit for a port that is not there");
    e = &p->send[f->port];
    if (f->number < e->credit || f->number > e->moved)
        return garbage(s, "credit for slots it never got");
    e->credit = f->number;
    return CM_OK;
}

static enum cm_status begin(void *arg, const struct cm_frame *f, void **to)
{
    struct cm_sock *s = arg;

    if (s->bye)
        return garbage(s, "more after its farewell");
    if (!s->greeted && f->type != CM_FRAME_PORTS)
        return garbage(s, "a frame before its ports");
    if (f->bytes > 0 && f->type != CM_FRAME_SLOT && f->type != CM_FRAME_CONTROL)
        return garbage(s, "a frame with more than its head");
    switch (f->type) {
    case CM_FRAME_PORTS:
        return hear_ports(s, f);
    case CM_FRAME_SLOT:
        return hear_slot(s, f, to);
    case CM_FRAME_CREDIT:
        return hear_credit(s, f);
    case CM_FRAME_CONTROL:
        *to = s->peer->message;
        if (s->index != 0 || f->bytes > CM_CONTROL_BYTES)
            return garbage(s, "a message that is too long, or on the wrong socket");
        return CM_OK;
    default:
        return CM_OK;
    }
}

/* The flag is for executors that poll it (LL), tail for the others: both are always set. */
static void publish(struct cm_peer *p, struct cm_port_end *e)
{
    struct cm_slot_head *h = cm_slot_at(p, e, e->moved);

    e->moved++;
    atomic_store_explicit(&h->flag, e->moved, memory_order_release);
    atomic_store_explicit(&e->lines->tail, e->moved, memory_order_release);
}

static enum cm_status end(void *arg, const struct cm_frame *f)
{
    struct cm_sock *s = arg;
    struct cm_peer *p = s->peer;
    const struct cm_proxy_events *ev = &p->a->events;

    if (f->type == CM_FRAME_SLOT) {
        publish(p, &p->recv[f->port]);
        p->stats->slots_got++;
        p->stats->payload_got += f->bytes;
    } else if (f->type == CM_FRAME_CONTROL && ev->message != NULL) {
        ev->message(ev->arg, p->proc, f->port, p->message, (size_t)f->bytes);
    } else if (f->type == CM_FRAME_BYE) {
        s->bye = true;
        atomic_store(&p->closed, true);
    }
    return CM_OK;
}

struct cm_frame_sink cm_peer_sink(struct cm_sock *s)
{
    return (struct cm_frame_sink){
        .arg = s, .begin = begin, .place = place, .end = end, .garbage = garbage};
}
