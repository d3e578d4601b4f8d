/*
 * One exchange through the LL inboxes: the one-shot plan without a plan.
 *
 * Every rank stores its part for each peer into its inbox there, then takes
 * what the peers stored in its own and reduces it in rank order, or puts it
 * side by side. One hop, no fence, no block barrier before the end. A thread
 * owns units of 8 bytes; the same unit of all operands, so in-place is safe.
 *
 * Reuse. Inboxes have two halves, by parity of the epoch. Each rank sends at
 * least one line to each peer and waits for one from each, so when it ends
 * epoch e + 1, every peer has begun e + 1 and ended e: half (e & 1) is free
 * for e + 2, whichever block wrote or read it.
 */
#ifndef CM_KERNELS_EXEC_SHOT_H
#define CM_KERNELS_EXEC_SHOT_H

#include "kernels/gpu_ll.h"
#include "kernels/gpu_types.h"

enum { CM_SHOT_BATCH = 4 }; /* inboxes whose lines are loaded before one is looked at */

struct cm_shot {
    cm_block block;
    const cm_gpu_rank *r;
    uint64_t epoch, inbox_bytes, inbox_at;
    uint32_t flag, mask;
    uint32_t thread, threads; /* this thread among all of the rank's */
    uint32_t premul;
};

CM_DEV cm_shot cm_shot_begin(const cm_gpu_args &a, const cm_gpu_rank &r)
{
    cm_shot s;
    const cm_gpu_area *area;

    s.block = cm_block_begin(a, r);
    s.r = &r;
    area = &s.block.state->area;
    s.epoch = cm_ld(&s.block.state->epoch[s.block.index]) + 1;
    s.inbox_bytes = cm_ld(&area->inbox_bytes);
    s.inbox_at = cm_ld(&area->inbox_at);
    s.mask = cm_ld(&area->ll_mask);
    s.flag = cm_ll_flag(s.epoch - 1, s.mask);
    s.thread = s.block.index * cm_nthr() + cm_tid();
    s.threads = s.block.blocks * cm_nthr();
    s.premul = a.premul;
    return s;
}

/* First line of the inbox that `sender` fills in an area. */
CM_DEV uint64_t cm_inbox(const cm_shot &s, uint64_t area, uint32_t sender)
{
    uint64_t half = s.epoch & 1;

    return area + s.inbox_at + (half * s.block.n + sender) * 2 * s.inbox_bytes;
}

CM_DEV bool cm_is_among(int32_t which, uint32_t rank)
{
    return which == CM_GPU_ALL || which == (int32_t)rank;
}

/* The peer `i` places after mine: so that not all ranks store to the same one at a time. */
CM_DEV uint32_t cm_turn(const cm_block &b, uint32_t i)
{
    uint32_t p = b.rank + i;

    return p < b.n ? p : p - b.n;
}

/* My part for peer `p`; at least one line. In some rounds all lines (gpu_ll.h). */
template <class Bits> CM_DEV void cm_shot_send(const cm_shot &s, uint32_t p)
{
    uint64_t to = cm_inbox(s, cm_ld(&s.block.state->peers[p].theirs), s.block.rank);
    uint64_t bytes = cm_is_among(s.r->send_to, p) ? s.r->bytes : 0;
    uint64_t from = s.r->in + p * s.r->send_step, units = (bytes + CM_LL_UNIT - 1) / CM_LL_UNIT;
    uint64_t u = s.thread;

#pragma unroll 1
    for (; u < units; u += s.threads)
        cm_ll_put(to + u * CM_LL_LINE,
                  cm_unit_load<Bits>(from + u * CM_LL_UNIT, bytes - u * CM_LL_UNIT), s.flag);
    if (units == 0 && u == 0) {
        cm_ll_put(to, 0, s.flag);
        u += s.threads;
    }
    if (cm_ll_cleans(s.epoch - 1, s.mask, 2))
#pragma unroll 1
        for (; u < s.inbox_bytes / CM_LL_UNIT; u += s.threads)
            cm_ll_put(to + u * CM_LL_LINE, 0, s.flag);
}

/* Unit `u` from rank `p`, which may be myself. */
template <class Bits>
CM_DEV bool cm_shot_fetch(const cm_shot &s, uint32_t p, uint64_t u, uint64_t left, uint64_t *unit)
{
    const cm_block &b = s.block;

    if (p == b.rank) {
        *unit = cm_unit_load<Bits>(s.r->in + p * s.r->send_step + u * CM_LL_UNIT, left);
        return true;
    }
    return cm_ll_get(b, cm_inbox(s, cm_ld(&b.state->peers[p].mine), p) + u * CM_LL_LINE, s.flag, p,
                     unit);
}

/* Ask for the lines of several inboxes at once; whoever looks at them next finds them near. */
CM_DEV void cm_shot_prefetch(const cm_shot &s, uint32_t p, uint64_t u)
{
#pragma unroll 1
    for (uint32_t k = p; k < p + CM_SHOT_BATCH && k < s.block.n; k++)
        if (k != s.block.rank)
            cm_prefetch((const void *)(cm_inbox(s, cm_ld(&s.block.state->peers[k].mine), k) +
                                       u * CM_LL_LINE));
}

/* All ranks' unit `u`, reduced in rank order. */
template <class F> CM_DEV bool cm_shot_reduce(const cm_shot &s, const cm_reducer<F> &f, uint64_t u)
{
    typedef typename F::bits bits;
    uint64_t left = s.r->bytes - u * CM_LL_UNIT, unit;
    cm_unit<F> acc = {};

#pragma unroll 1
    for (uint32_t p = 0; p < s.block.n; p++) {
        if (p % CM_SHOT_BATCH == 0)
            cm_shot_prefetch(s, p, u);
        if (!cm_shot_fetch<bits>(s, p, u, left, &unit))
            return false;
        cm_unit_take<F>(f, acc, unit, s.premul && (p & 1), p == 0);
    }
    cm_unit_store<bits>(s.r->out + u * CM_LL_UNIT, left, cm_unit_give<F>(f, acc, true));
    return true;
}

/* The ranks' unit `u` side by side. */
template <class Bits> CM_DEV bool cm_shot_gather(const cm_shot &s, uint64_t u)
{
    uint64_t left = s.r->bytes - u * CM_LL_UNIT, unit;

#pragma unroll 1
    for (uint32_t i = 0; i < s.block.n; i++) {
        uint32_t p = cm_turn(s.block, i);

        if (!cm_is_among(s.r->recv_from, p))
            continue;
        if (!cm_shot_fetch<Bits>(s, p, u, left, &unit))
            return false;
        cm_unit_store<Bits>(s.r->out + p * s.r->recv_step + u * CM_LL_UNIT, left, unit);
    }
    return true;
}

/* The first line of every peer, also of those that sent no payload. Block 0. */
CM_DEV bool cm_shot_meet(const cm_shot &s)
{
    const cm_block &b = s.block;
    uint64_t unit;
    bool ok = true;

#pragma unroll 1
    for (uint32_t p = cm_tid(); ok && b.index == 0 && p < b.n; p += cm_nthr())
        if (p != b.rank)
            ok = cm_ll_get(b, cm_inbox(s, cm_ld(&b.state->peers[p].mine), p), s.flag, p, &unit);
    return ok;
}

template <class F> CM_DEV void cm_exec_shot(const cm_gpu_args &a)
{
    typedef typename F::bits bits;
    const cm_gpu_rank &r = a.rank[cm_bid_y()];
    cm_shot s = cm_shot_begin(a, r);
    cm_reducer<F> f = {(bits)a.flip, a.divisor, a.is_signed};
    uint64_t units = r.recv_from == CM_GPU_NOBODY ? 0 : (r.bytes + CM_LL_UNIT - 1) / CM_LL_UNIT;
    bool ok = !cm_stopped(s.block);

#pragma unroll 1
    for (uint32_t i = 1; ok && i < a.n; i++)
        cm_shot_send<bits>(s, cm_turn(s.block, i));
#pragma unroll 1
    for (uint64_t u = s.thread; ok && u < units; u += s.threads)
        ok = a.reduces ? cm_shot_reduce<F>(s, f, u) : cm_shot_gather<bits>(s, u);
    ok = ok && cm_shot_meet(s);
    if (cm_bar_or(!ok))
        return;
    cm_advance(s.block, s.block.state->epoch, s.epoch);
    cm_finish(s.block);
}

#endif
