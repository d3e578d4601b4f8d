/*
 * An executor's end of a FIFO: its slots, and payloads outside of them (struct
 * cm_slot_head.far_at). Private to exec_host.c.
 */
#ifndef CM_ENGINE_EXEC_PORT_H
#define CM_ENGINE_EXEC_PORT_H

#include "engine/comm_int.h"

/* The slot that is filled, or taken, next. */
static inline struct cm_slot_head *cm_port_slot(const struct cm_comm *c, const struct cm_port *p)
{
    uint64_t k = p->count & (uint64_t)(c->layout->depth - 1);

    return (struct cm_slot_head *)(p->slots + k * c->slot_stride);
}

/* Where a slot keeps its payload: beside the flag if it fits there. */
static inline void *cm_port_payload(struct cm_slot_head *h, size_t bytes)
{
    return bytes <= sizeof(h->near) ? h->near : (unsigned char *)(h + 1);
}

/* Receiver: where the payload of a full slot is. */
static inline void *cm_port_arrived(const struct cm_port *p, struct cm_slot_head *h, size_t bytes)
{
    uint64_t at = CM_FAR_CLOSED;

    if (p->far && bytes >= CM_FAR_BYTES)
        at = atomic_load_explicit(&h->far_at, memory_order_relaxed);
    return at > CM_FAR_CLOSED ? (void *)(uintptr_t)at : cm_port_payload(h, bytes);
}

/* Receiver: offer a place for the payload of the next slot, which is not full yet. */
static inline void cm_port_offer(const struct cm_port *p, struct cm_slot_head *h, void *to,
                                 size_t bytes)
{
    uint64_t none = 0;

    if (!p->far || bytes < CM_FAR_BYTES || atomic_load(&h->far_at) != 0)
        return;
    h->far_bytes = bytes;
    atomic_compare_exchange_strong(&h->far_at, &none, (uint64_t)(uintptr_t)to);
}

/*
 * Sender: write the head of the next slot. `from`: where its payload lies until the
 * operation ends, or NULL. True if the payload is to be written into the slot.
 */
static inline bool cm_port_begin(struct cm_port *p, struct cm_slot_head *h, size_t bytes,
                                 const void *from)
{
    bool refers = p->far && from != NULL && bytes >= CM_FAR_BYTES;

    h->bytes = bytes;
    if (p->far)
        atomic_store_explicit(&h->far_at, refers ? (uint64_t)(uintptr_t)from : 0,
                              memory_order_relaxed);
    if (refers)
        p->owing = p->count + 1;
    return !refers;
}

/* Sender: make the filled slot visible. */
static inline void cm_port_publish(struct cm_port *p, struct cm_slot_head *h, bool ll)
{
    p->count++;
    if (ll)
        atomic_store_explicit(&h->flag, p->count, memory_order_release);
    atomic_store_explicit(&p->lines->tail, p->count, memory_order_release);
}

/* Receiver: free the slot. */
static inline void cm_port_release(struct cm_port *p, struct cm_slot_head *h)
{
    if (p->far)
        atomic_store_explicit(&h->far_at, 0, memory_order_relaxed);
    p->count++;
    atomic_store_explicit(&p->lines->head, p->count, memory_order_release);
}

/* Sender: have all slots left whose payloads are the user's memory? */
static inline bool cm_port_has_left(const struct cm_port *p)
{
    return atomic_load_explicit(&p->lines->head, memory_order_acquire) >= p->owing;
}

#endif
