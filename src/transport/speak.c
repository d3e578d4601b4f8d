/*
 * What is said to a neighbour: slots, credit, messages, signs of life.
 *
 * A slot is freed at the sending end as soon as the kernel has it. How many may
 * be under way is a matter of credit: the far executor must have freed all but
 * `depth` of them. So a FIFO between machines holds up to twice its depth, and
 * a sender seldom waits for the way back and forth.
 *
 * Credit is told with whatever else goes to the neighbour, or by itself once
 * half the slots are due. Invariant: what is held back is less than half of
 * them, so an empty FIFO takes at least one slot from the sending end, and an
 * executor can always fill `depth` slots before the other frees one.
 */
#include "transport/tcp.h"

#include <stdlib.h>

static bool filled(const struct cm_port_end *e)
{
    return atomic_load_explicit(&e->lines->tail, memory_order_acquire) > e->moved;
}

static bool sendable(const struct cm_peer *p, const struct cm_port_end *e)
{
    return e->moved - e->credit < (uint64_t)p->a->depth && filled(e);
}

/* Slots that the executor freed here and the neighbour does not know of. */
static uint64_t credit_due(const struct cm_port_end *e)
{
    return atomic_load_explicit(&e->lines->head, memory_order_acquire) - e->credit;
}

/* Once all ports of the socket are empty, nothing follows. */
static bool sock_drained(const struct cm_sock *s)
{
    const struct cm_peer *p = s->peer;

    for (int i = s->index; i < p->nsend; i += p->a->sockets)
        if (filled(&p->send[i]))
            return false;
    return s->index != 0 || !atomic_load(&p->waiting);
}

bool cm_peer_owes(struct cm_sock *s)
{
    return s->out.n > 0 || !sock_drained(s) || cm_peer_has_news(s);
}

static bool may_leave(const struct cm_sock *s)
{
    return s->peer->leaving && (s->bye || sock_drained(s));
}

bool cm_peer_has_news(struct cm_sock *s)
{
    const struct cm_peer *p = s->peer;
    uint64_t half = p->a->depth > 1 ? (uint64_t)p->a->depth / 2 : 1;

    if (s->told_bye)
        return false;
    if (!s->told_ports || may_leave(s))
        return true;
    if (s->bye)
        return false;
    if (s->index == 0 && (p->beat || atomic_load_explicit(&p->waiting, memory_order_relaxed)))
        return true;
    for (int i = s->index; i < p->nsend; i += p->a->sockets)
        if (sendable(p, &p->send[i]))
            return true;
    for (int i = s->index; i < p->nrecv; i += p->a->sockets)
        if (credit_due(&p->recv[i]) >= half)
            return true;
    return false;
}

static void say(struct cm_sock *s, enum cm_frame_type type)
{
    const struct cm_frame f = {.type = (uint16_t)type};

    cm_batch_add(&s->out, &f, NULL, NULL);
}

static void say_ports(struct cm_sock *s)
{
    const struct cm_proxy_args *a = s->peer->a;
    const struct cm_frame f = {.type = CM_FRAME_PORTS,
                               .port = (uint32_t)s->peer->nsend,
                               .number = (uint64_t)a->depth,
                               .sig = a->slot_bytes};

    cm_batch_add(&s->out, &f, NULL, NULL);
    s->told_ports = true;
}

/* All that is due, as long as half the batch remains for slots. */
static void say_credits(struct cm_sock *s)
{
    struct cm_peer *p = s->peer;

    for (int i = s->index; i < p->nrecv && s->out.n < CM_BATCH / 2; i += p->a->sockets) {
        uint64_t due = credit_due(&p->recv[i]);
        struct cm_frame f = {.type = CM_FRAME_CREDIT, .port = (uint32_t)i};

        if (due == 0)
            continue;
        p->recv[i].credit += due;
        f.number = p->recv[i].credit;
        cm_batch_add(&s->out, &f, NULL, NULL);
    }
}

static void say_notes(struct cm_sock *s)
{
    struct cm_peer *p = s->peer;

    if (!atomic_load_explicit(&p->waiting, memory_order_relaxed))
        return;
    pthread_mutex_lock(&p->lock);
    while (p->first != NULL && cm_batch_room(&s->out)) {
        struct cm_note *n = p->first;
        const struct cm_frame f = {.type = CM_FRAME_CONTROL, .port = n->type, .bytes = n->bytes};

        p->first = n->next;
        p->queued -= n->bytes + sizeof(*n);
        cm_batch_add(&s->out, &f, n->payload, n);
    }
    if (p->first == NULL) {
        p->last = NULL;
        atomic_store(&p->waiting, false);
    }
    pthread_mutex_unlock(&p->lock);
}

static void say_slots_of(struct cm_sock *s, int port)
{
    struct cm_peer *p = s->peer;
    struct cm_port_end *e = &p->send[port];

    while (cm_batch_room(&s->out) && sendable(p, e)) {
        struct cm_slot_head *h = cm_slot_at(p, e, e->moved);
        const struct cm_frame f = {.type = CM_FRAME_SLOT,
                                   .port = (uint32_t)port,
                                   .number = e->moved++,
                                   .sig = h->sig,
                                   .bytes = h->bytes};

        cm_batch_add(&s->out, &f, cm_slot_source(h), NULL);
    }
}

/* From the port after the one that was served last. */
static void say_slots(struct cm_sock *s)
{
    const struct cm_peer *p = s->peer;
    int first = s->next < p->nsend ? s->next : s->index;

    for (int i = first; i < p->nsend; i += p->a->sockets)
        say_slots_of(s, i);
    for (int i = s->index; i < first && i < p->nsend; i += p->a->sockets)
        say_slots_of(s, i);
    s->next = first + p->a->sockets;
}

void cm_peer_fill(struct cm_sock *s)
{
    if (!cm_peer_has_news(s))
        return;
    if (!s->told_ports)
        say_ports(s);
    if (!s->bye) {
        say_credits(s);
        if (s->index == 0)
            say_notes(s);
        say_slots(s);
    }
    if (s->index == 0 && s->peer->beat) {
        s->peer->beat = false;
        if (s->out.n == 0)
            say(s, CM_FRAME_BEAT);
    }
    if (s->out.n < CM_BATCH && may_leave(s)) {
        say(s, CM_FRAME_BYE);
        s->told_bye = true;
    }
}

void cm_peer_left(struct cm_sock *s, const struct cm_frame *f, struct cm_note *note)
{
    struct cm_peer *p = s->peer;

    free(note);
    if (f->type != CM_FRAME_SLOT)
        return;
    atomic_store_explicit(&p->send[f->port].lines->head, f->number + 1, memory_order_release);
    p->stats->slots_sent++;
    p->stats->payload_sent += f->bytes;
}

bool cm_peer_drained(const struct cm_peer *p)
{
    for (int k = 0; k < p->a->sockets; k++)
        if (!p->socks[k].told_bye || p->socks[k].out.n > 0)
            return false;
    return true;
}
