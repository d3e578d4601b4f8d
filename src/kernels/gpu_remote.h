/*
 * Ports to ranks on other nodes: FIFOs in pinned host memory, which a wire
 * carries (transport/proxy.h, transport/ib.h). A block speaks them as the host's
 * executor does: payload and head of a slot, then the tail with release; the
 * head of the port with release when it has read. Both ends are of this node,
 * so every access is one of host memory.
 *
 * Such a rank has no area here: its bases are 0, which is what a block looks at.
 */
#ifndef CM_KERNELS_GPU_REMOTE_H
#define CM_KERNELS_GPU_REMOTE_H

#include "kernels/gpu_sync.h"

/* A slot: what tells about it, and where its payload is. */
struct cm_place {
    uint64_t *sig;
    uint64_t *bytes; /* NULL: both sides know */
    uint64_t payload;
};

/* The port of a channel; `first` is that of channel 0. */
CM_DEV cm_gpu_port *cm_remote_port(const cm_block &b, uint64_t first, uint32_t channel)
{
    return cm_at<cm_gpu_port>(first, channel * cm_ld(&b.state->remote_port));
}

CM_DEV cm_gpu_port *cm_remote_from(const cm_block &b, uint32_t peer, uint32_t channel)
{
    return cm_remote_port(b, cm_ld(&b.state->peers[peer].recv), channel);
}

CM_DEV cm_gpu_port *cm_remote_to(const cm_block &b, uint32_t peer, uint32_t channel)
{
    return cm_remote_port(b, cm_ld(&b.state->peers[peer].send), channel);
}

/* Slot `count` of a port, with a payload of `bytes`. */
CM_DEV cm_place cm_remote_place(const cm_block &b, cm_gpu_port *port, uint64_t count,
                                uint64_t bytes)
{
    uint64_t index = count & (cm_ld(&b.state->area.depth) - 1);
    cm_gpu_slot_head *h =
        cm_at<cm_gpu_slot_head>((uint64_t)(port + 1), index * cm_ld(&b.state->remote_slot));
    bool near = bytes <= sizeof(h->near);

    return {&h->sig, &h->bytes, near ? (uint64_t)h->near : (uint64_t)(h + 1)};
}

#endif
