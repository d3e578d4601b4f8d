/*
 * How a block waits and posts: lines of peers, abort, end of an operation.
 *
 * A block of rank r owns one line in each peer's area. Posting is a barrier
 * (by the caller) and then one release store per peer, each by its own thread;
 * waiting is one thread polling with acquire, then a barrier (by the caller).
 * Every wait looks at the abort word and tells the host whom it waits for.
 */
#ifndef CM_KERNELS_GPU_SYNC_H
#define CM_KERNELS_GPU_SYNC_H

#include "kernels/cm_device.h"

#include "base/gpu.h"
#include "base/plan.h"

enum { CM_STRANGER_LOOKS = 256 /* at a line, a microsecond apart, before it is reported */ };

template <class T> CM_DEV T *cm_at(uint64_t base, uint64_t offset)
{
    return (T *)(base + offset);
}

CM_DEV uint64_t cm_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A block at work on one operation of one rank. The same on all its threads. */
struct cm_block {
    const cm_gpu_state *state;
    uint64_t base; /* its address */
    uint64_t in, out, sig;
    uint64_t op;     /* number of the operation, from 1 */
    uint32_t index;  /* of the block within its rank */
    uint32_t blocks; /* of the rank */
    uint32_t rank, n;
};

CM_DEV cm_block cm_block_begin(const cm_gpu_args &a, const cm_gpu_rank &r)
{
    cm_block b;

    b.base = r.base;
    b.state = cm_at<const cm_gpu_state>(r.base, 0);
    b.in = r.in;
    b.out = r.out;
    b.sig = a.sig;
    b.index = cm_bid_x();
    b.blocks = a.blocks;
    b.rank = cm_ld(&b.state->rank);
    b.n = a.n;
    b.op = cm_ld(&b.state->op[b.index]) + 1;
    return b;
}

/*
 * Advance a counter that each block has; block 0 does it for blocks that are
 * not in this launch. Behind a barrier that follows the block's last read of it.
 */
CM_DEV void cm_advance(const cm_block &b, const uint64_t *counters, uint64_t value)
{
    uint64_t *c = (uint64_t *)counters;

    if (cm_tid() == 0)
        cm_st(&c[b.index], value);
    if (b.index == 0)
#pragma unroll 1
        for (uint32_t i = b.blocks + cm_tid(); i < CM_GPU_BLOCKS; i += cm_nthr())
            cm_st(&c[i], value);
}

/* The operation has ended here. One block of the rank tells the host, whose deadline moves. */
CM_DEV void cm_finish(const cm_block &b)
{
    cm_gpu_hint *hint = (cm_gpu_hint *)cm_ld(&b.state->hint);

    if (b.index == 0 && cm_tid() == 0)
        cm_st_relaxed_sys(&hint->done, (uint32_t)b.op);
    cm_advance(b, b.state->op, b.op);
}

/* Line of a block of rank `writer` in an area. */
CM_DEV cm_gpu_line *cm_line(const cm_block &b, uint64_t area, uint32_t writer, uint32_t block)
{
    uint64_t lines = cm_ld(&b.state->area.lines_at);

    return cm_at<cm_gpu_line>(area, lines) + ((uint64_t)writer * CM_GPU_BLOCKS + block);
}

/* A wait takes long: tell the host for whom. false: the job was aborted. */
CM_DEV bool cm_go_on(const cm_block &b, uint32_t peer, uint32_t beats)
{
    cm_gpu_hint *hint = (cm_gpu_hint *)cm_ld(&b.state->hint);

    cm_st_relaxed_sys(&hint->peer, peer);
    cm_st_relaxed_sys(&hint->beats, beats);
    if (cm_ld_relaxed_sys((const uint32_t *)cm_ld(&b.state->abort)) == 0)
        return true;
    cm_st_relaxed_sys((uint32_t *)&b.state->stopped, 1);
    return false;
}

/* Did an earlier launch, or another block of this one, see the abort? Threads may disagree. */
CM_DEV bool cm_stopped(const cm_block &b)
{
    return cm_ld_relaxed_sys(&b.state->stopped) != 0;
}

/* Poll until the word has reached `want`; *seen is its value. false: aborted. */
CM_DEV bool cm_wait_word(const cm_block &b, const uint64_t *word, uint64_t want, uint32_t peer,
                         uint64_t *seen)
{
#pragma unroll 1
    for (uint32_t polls = 1;; polls++) {
        *seen = cm_ld_acquire_sys(word);
        if (*seen >= want)
            return true;
        if (polls % CM_GPU_POLLS == 0 && !cm_go_on(b, peer, polls))
            return false;
    }
}

/*
 * Does the rank of this line, seen in our operation, run another one? Then wait
 * for the abort. The signature is rewritten two operations later, and a rank
 * that does not wait for us may be there by now: then its line has moved on.
 */
CM_DEV bool cm_is_stranger(const cm_block &b, const cm_gpu_line *line, uint64_t seq, uint32_t peer)
{
    cm_gpu_hint *hint = (cm_gpu_hint *)cm_ld(&b.state->hint);

    if (seq >> CM_PHASE_BITS != b.op || cm_ld_relaxed_sys_u64(&line->sig[b.op & 1]) == b.sig)
        return false;
#pragma unroll 1
    for (uint32_t looks = 1; cm_ld_acquire_sys(&line->seq) >> CM_PHASE_BITS == b.op; looks++) {
        if (looks == CM_STRANGER_LOOKS)
            cm_st_relaxed_sys(&hint->stranger, peer + 1);
        if (!cm_go_on(b, peer, looks))
            return true;
        cm_pause_ns(1000);
    }
    return false;
}

/* Wait for `phase` of block `block` of `peer` in this operation; *line is that line. */
CM_DEV bool cm_wait_line(const cm_block &b, uint32_t peer, uint32_t block, uint32_t phase,
                         const cm_gpu_line **line)
{
    uint64_t seq;

    *line = cm_line(b, cm_ld(&b.state->peers[peer].mine), peer, block);
    return cm_wait_word(b, &(*line)->seq, b.op << CM_PHASE_BITS | phase, peer, &seq) &&
           !cm_is_stranger(b, *line, seq, peer);
}

/*
 * Post `phase` to all ranks; with `bases`, in an operation's first post, where
 * the buffers are. All threads call it, behind a barrier that follows what the post publishes.
 */
CM_DEV void cm_post(const cm_block &b, uint32_t phase, bool bases)
{
    uint32_t parity = b.op & 1;

#pragma unroll 1
    for (uint32_t p = cm_tid(); p < b.n; p += cm_nthr()) {
        cm_gpu_line *line = cm_line(b, cm_ld(&b.state->peers[p].theirs), b.rank, b.index);

        if (bases) {
            cm_st(&line->in[parity], b.in - b.base);
            cm_st(&line->out[parity], b.out - b.base);
            cm_st_relaxed_sys_u64(&line->sig[parity], b.sig);
        }
        cm_st_release_sys(&line->seq, b.op << CM_PHASE_BITS | phase);
    }
}

#endif
