/*
 * The rig's wire: carries ports between its two nodes as the proxies do
 * (transport/proxy.h), a slot or two of some ports at a time.
 *
 * Invariant: what has left a slot, and what has not arrived in one, is rubbish,
 * so whoever writes too early or reads too early has wrong data.
 */
#include "exec_rig.h"

#include <stdio.h>
#include <string.h>

enum { RUBBISH = 0xa5, AT_ONCE = 2 };

static uint64_t port_of(const struct rig_node *node, int src, int dst)
{
    return (uint64_t)(uintptr_t)node->segment + cm_port_at(&node->layout, src, dst, 0);
}

struct cm_gpu_peer rig_remote_peer(const struct rig *r, int rank, int peer)
{
    const struct rig_node *node = rig_node(r, rank);

    return (struct cm_gpu_peer){.send = port_of(node, rank, peer),
                                .recv = port_of(node, peer, rank)};
}

/* Both ends of a port. */
struct wire {
    struct cm_port_lines *from, *to;
    const struct cm_layout *layout;
};

static struct cm_slot_head *slot_of(const struct wire *w, struct cm_port_lines *end, uint64_t count)
{
    size_t index = count & (uint64_t)(w->layout->depth - 1);

    return (struct cm_slot_head *)((unsigned char *)(end + 1) + index * cm_slot_stride(w->layout));
}

static void *payload_of(struct cm_slot_head *h, size_t bytes)
{
    return bytes <= sizeof(h->near) ? (void *)h->near : (void *)(h + 1);
}

/* All of a slot that executors use. */
static void spoil(struct cm_slot_head *h, const struct cm_layout *l)
{
    h->sig = h->bytes = ~0ull;
    memset(h->near, RUBBISH, sizeof(h->near));
    memset(h + 1, RUBBISH, l->slot_bytes);
}

static bool carry_slot(const struct wire *w, uint64_t count)
{
    struct cm_slot_head *from = slot_of(w, w->from, count), *to = slot_of(w, w->to, count);
    size_t bytes = (size_t)from->bytes;

    if (bytes > w->layout->slot_bytes || from->far_at != 0) {
        fprintf(stderr, "rig: a slot with %zu bytes, far at %#llx\n", bytes,
                (unsigned long long)from->far_at);
        return false;
    }
    spoil(to, w->layout);
    to->sig = from->sig;
    to->bytes = bytes;
    memcpy(payload_of(to, bytes), payload_of(from, bytes), bytes);
    spoil(from, w->layout);
    atomic_store_explicit(&w->to->tail, count + 1, memory_order_release);
    atomic_store_explicit(&w->from->head, count + 1, memory_order_release);
    return true;
}

/* What has arrived is counted by the receiving tail, which only the wire writes. */
static bool carry_port(const struct wire *w, int most)
{
    uint64_t filled = atomic_load_explicit(&w->from->tail, memory_order_acquire);
    uint64_t moved = atomic_load_explicit(&w->to->tail, memory_order_relaxed);
    uint64_t freed = atomic_load_explicit(&w->to->head, memory_order_acquire);

    for (int k = 0; k < most && moved < filled; k++, moved++) {
        if (moved - freed >= (uint64_t)w->layout->depth)
            break;
        if (!carry_slot(w, moved))
            return false;
    }
    return true;
}

/* Some are late, and get one slot across where others get two. */
static int turn_of(struct rig *r)
{
    r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
    return r->set.sim.in_order ? AT_ONCE : (int)((r->random >> 33) % (AT_ONCE + 1));
}

static bool carry_pair(struct rig *r, int src, int dst)
{
    struct rig_node *from = rig_node(r, src), *to = rig_node(r, dst);
    bool ok = true;

    for (int ch = 0; ok && ch < r->set.channels; ch++) {
        const struct wire w = {
            (void *)((char *)from->segment + cm_port_at(&from->layout, src, dst, ch)),
            (void *)((char *)to->segment + cm_port_at(&to->layout, src, dst, ch)), &from->layout};

        ok = carry_port(&w, turn_of(r));
    }
    return ok;
}

bool rig_carry(struct rig *r)
{
    bool ok = true;

    for (int src = 0; ok && src < r->set.n; src++)
        for (int dst = 0; ok && dst < r->set.n; dst++)
            if (rig_node(r, src) != rig_node(r, dst))
                ok = carry_pair(r, src, dst);
    return ok;
}
