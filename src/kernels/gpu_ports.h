/*
 * Ports of a block: counters, slots, credits. One block at a time uses a port:
 * the channel's blocks of sender and receiver. Its counters live in the area
 * between launches and in block-shared memory during one. Ports to other nodes
 * differ in where their words and slots are, and in nothing else: gpu_remote.h.
 */
#ifndef CM_KERNELS_GPU_PORTS_H
#define CM_KERNELS_GPU_PORTS_H

#include "kernels/gpu_remote.h"

/*
 * Slots filled towards each peer and freed from each, on this block's channel.
 * Block-shared. Two blocks of a rank may share a channel, each with ports of
 * its own (up and down a tree): a block writes back what it moved and nothing else.
 */
struct cm_port_counts {
    uint64_t sent[CM_GPU_RANKS], received[CM_GPU_RANKS];
    bool sends[CM_GPU_RANKS], receives[CM_GPU_RANKS];
};

CM_DEV cm_gpu_count *cm_count_of(const cm_block &b, uint32_t peer, uint32_t channel)
{
    const cm_gpu_area &a = b.state->area;

    return cm_at<cm_gpu_count>(b.base, cm_ld(&a.counts_at)) +
           ((uint64_t)peer * CM_GPU_PROTOS * cm_ld(&a.channels) + channel);
}

CM_DEV void cm_counts_load(const cm_block &b, cm_port_counts &c, uint32_t channel)
{
#pragma unroll 1
    for (uint32_t p = cm_tid(); p < b.n; p += cm_nthr()) {
        const cm_gpu_count *from = cm_count_of(b, p, channel);

        c.sent[p] = cm_ld_relaxed_sys_u64(&from->sent);
        c.received[p] = cm_ld_relaxed_sys_u64(&from->received);
        c.sends[p] = c.receives[p] = false;
    }
}

CM_DEV void cm_counts_store(const cm_block &b, const cm_port_counts &c, uint32_t channel)
{
#pragma unroll 1
    for (uint32_t p = cm_tid(); p < b.n; p += cm_nthr()) {
        cm_gpu_count *to = cm_count_of(b, p, channel);

        if (c.sends[p])
            cm_st_relaxed_sys_u64(&to->sent, c.sent[p]);
        if (c.receives[p])
            cm_st_relaxed_sys_u64(&to->received, c.received[p]);
    }
}

/* Number of the slot that comes next on the port from, or to, `peer`; it is taken. */
CM_DEV uint64_t cm_take_slot(cm_port_counts &c, uint32_t peer, bool from)
{
    (from ? c.receives : c.sends)[peer] = true;
    return (from ? c.received : c.sent)[peer]++;
}

/* The word of the port `other` <-> `area's owner` at `words_at` in an area. */
CM_DEV uint64_t *cm_port_word(const cm_block &b, uint64_t area, uint64_t words_at, uint32_t other,
                              uint32_t channel)
{
    uint64_t index = (uint64_t)other * CM_GPU_PROTOS * cm_ld(&b.state->area.channels) + channel;

    return &(cm_at<cm_gpu_word>(area, words_at) + index)->value;
}

/* Slot of the port from `sender`, in the receiver's area; its payload is CM_GPU_LINE behind. */
CM_DEV uint64_t cm_slot(const cm_block &b, uint64_t area, uint32_t sender, uint32_t channel,
                        uint64_t count)
{
    const cm_gpu_area &a = b.state->area;
    uint32_t depth = cm_ld(&a.depth);
    uint64_t port = (uint64_t)sender * CM_GPU_PROTOS * cm_ld(&a.channels) + channel;

    return area + cm_ld(&a.slots_at) +
           (port * depth + (count & (depth - 1))) * cm_ld(&a.slot_stride);
}

CM_DEV uint64_t cm_mine(const cm_block &b, uint32_t peer)
{
    return cm_ld(&b.state->peers[peer].mine);
}

CM_DEV uint64_t cm_theirs(const cm_block &b, uint32_t peer)
{
    return cm_ld(&b.state->peers[peer].theirs);
}

/* Slots that `peer` has filled: I wait for it. */
CM_DEV uint64_t *cm_tail_from(const cm_block &b, uint32_t peer, uint32_t channel)
{
    uint64_t area = cm_mine(b, peer);

    if (area == 0)
        return &cm_remote_from(b, peer, channel)->tail.value;
    return cm_port_word(b, area, cm_ld(&b.state->area.tails_at), peer, channel);
}

/* Slots that I have filled for `peer`: I tell it. */
CM_DEV uint64_t *cm_tail_to(const cm_block &b, uint32_t peer, uint32_t channel)
{
    uint64_t area = cm_theirs(b, peer);

    if (area == 0)
        return &cm_remote_to(b, peer, channel)->tail.value;
    return cm_port_word(b, area, cm_ld(&b.state->area.tails_at), b.rank, channel);
}

/* Slots of mine that `peer`, or the wire, has freed: I wait for it. */
CM_DEV uint64_t *cm_head_to(const cm_block &b, uint32_t peer, uint32_t channel)
{
    uint64_t area = cm_mine(b, peer);

    if (area == 0)
        return &cm_remote_to(b, peer, channel)->head.value;
    return cm_port_word(b, area, cm_ld(&b.state->area.heads_at), peer, channel);
}

/* Slots of `peer` that I have freed: I tell it. */
CM_DEV uint64_t *cm_head_from(const cm_block &b, uint32_t peer, uint32_t channel)
{
    uint64_t area = cm_theirs(b, peer);

    if (area == 0)
        return &cm_remote_from(b, peer, channel)->head.value;
    return cm_port_word(b, area, cm_ld(&b.state->area.heads_at), b.rank, channel);
}

/* Slot `count` of the port from `peer`, of protocol simple, with a payload of `bytes`. */
CM_DEV cm_place cm_place_from(const cm_block &b, uint32_t peer, uint32_t channel, uint64_t count,
                              uint64_t bytes)
{
    uint64_t area = cm_mine(b, peer), slot;

    if (area == 0)
        return cm_remote_place(b, cm_remote_from(b, peer, channel), count, bytes);
    slot = cm_slot(b, area, peer, channel, count);
    return {cm_at<uint64_t>(slot, 0), NULL, slot + CM_GPU_LINE};
}

/* The same of the port to `peer`. */
CM_DEV cm_place cm_place_to(const cm_block &b, uint32_t peer, uint32_t channel, uint64_t count,
                            uint64_t bytes)
{
    uint64_t area = cm_theirs(b, peer), slot;

    if (area == 0)
        return cm_remote_place(b, cm_remote_to(b, peer, channel), count, bytes);
    slot = cm_slot(b, area, b.rank, channel, count);
    return {cm_at<uint64_t>(slot, 0), NULL, slot + CM_GPU_LINE};
}

/* Wait for a free slot towards `peer`, of which `count` were filled so far. */
CM_DEV bool cm_wait_credit(const cm_block &b, uint32_t peer, uint32_t channel, uint64_t count)
{
    uint64_t depth = cm_ld(&b.state->area.depth), seen;

    if (count < depth)
        return true;
    return cm_wait_word(b, cm_head_to(b, peer, channel), count + 1 - depth, peer, &seen);
}

/* Tell `peer` that its slot was read: `count` are freed now. */
CM_DEV void cm_give_credit(const cm_block &b, uint32_t peer, uint32_t channel, uint64_t count)
{
    cm_st_release_sys(cm_head_from(b, peer, channel), count);
}

#endif
