/*
 * Interpreter of copy plans over LL ports. Like exec_plan.h, but payload goes
 * in LL lines: a thread waits for the units that it needs, so neither the
 * filling of a slot nor its reading needs a barrier or a tail. The head gives
 * slots back as with protocol simple.
 */
#ifndef CM_KERNELS_EXEC_LL_H
#define CM_KERNELS_EXEC_LL_H

#include "kernels/exec_plan.h"
#include "kernels/gpu_ll.h"

/* Block-shared: the plan's, and what is an LL slot among the operands. */
struct cm_ll_shared {
    cm_plan_shared plan;
    uint32_t src_flag[CM_GPU_OPERANDS], dst_flag[CM_GPU_OPERANDS];
    uint16_t src_peer[CM_GPU_OPERANDS];
    bool src_port[CM_GPU_OPERANDS], dst_port[CM_GPU_OPERANDS];
    bool cleans[CM_GPU_OPERANDS]; /* this destination slot is rewritten whole */
};

/* Address of a slot's lines, and its flag; towards a peer once there is credit. */
CM_DEV bool cm_ll_resolve_port(cm_ll_shared &s, uint32_t i, uint32_t nfrom, uint32_t peer)
{
    const cm_walk &w = s.plan.walk;
    const cm_block &b = w.block;
    uint32_t mask = cm_ld(&b.state->area.ll_mask), depth = cm_ld(&b.state->area.depth);
    bool from = i < nfrom;
    uint32_t k = from ? i : i - nfrom;
    uint64_t count = cm_take_slot(s.plan.counts, peer, from);
    uint64_t slot = from ? cm_slot(b, cm_mine(b, peer), peer, w.channel, count)
                         : cm_slot(b, cm_theirs(b, peer), b.rank, w.channel, count);

    s.plan.slot[i] = count;
    if (from) {
        s.plan.move.src[k] = slot + CM_GPU_LINE;
        s.src_flag[k] = cm_ll_flag(count, mask);
        s.src_peer[k] = (uint16_t)peer;
        return true;
    }
    s.plan.move.dst[k] = slot + CM_GPU_LINE;
    s.dst_flag[k] = cm_ll_flag(count, mask);
    s.cleans[k] = cm_ll_cleans(count, mask, depth);
    return cm_wait_credit(b, peer, w.channel, count);
}

CM_DEV bool cm_ll_resolve_fold(cm_ll_shared &s, const cm_gpu_fold &f, uint64_t shift)
{
    const cm_walk &w = s.plan.walk;
    const cm_gpu_operand *operands = cm_at<const cm_gpu_operand>(cm_ld(&w.plan->operands), 0);
    bool ok = true;

#pragma unroll 1
    for (uint32_t i = cm_tid(); ok && i < f.nfrom + f.nto; i += cm_nthr()) {
        cm_gpu_operand o = cm_ld(&operands[f.from + i]);
        bool from = i < f.nfrom, port = o.space == CM_PORT;
        uint32_t k = from ? i : i - f.nfrom;

        (from ? s.src_port : s.dst_port)[k] = port;
        if (from)
            s.plan.move.twice[k] = w.premul && o.space == CM_IN && (o.rank & 1);
        if (port)
            ok = cm_ll_resolve_port(s, i, f.nfrom, (uint32_t)o.rank);
        else
            ok = cm_resolve_place(s.plan, o, shift,
                                  from ? &s.plan.move.src[k] : &s.plan.move.dst[k]);
    }
    return ok;
}

/* Unit `u` of source `k`. false: aborted. */
template <class F>
CM_DEV bool cm_ll_fetch(const cm_ll_shared &s, uint32_t k, uint64_t u, uint64_t left,
                        uint64_t *unit)
{
    const cm_walk &w = s.plan.walk;

    if (s.src_port[k])
        return cm_ll_get(w.block, s.plan.move.src[k] + u * CM_LL_LINE, s.src_flag[k], s.src_peer[k],
                         unit);
    *unit = cm_unit_load<typename F::bits>(s.plan.move.src[k] + u * CM_LL_UNIT, left);
    return true;
}

template <class F>
CM_DEV void cm_ll_deliver(const cm_ll_shared &s, uint32_t k, uint64_t u, uint64_t left,
                          uint64_t unit)
{
    if (s.dst_port[k])
        cm_ll_put(s.plan.move.dst[k] + u * CM_LL_LINE, unit, s.dst_flag[k]);
    else
        cm_unit_store<typename F::bits>(s.plan.move.dst[k] + u * CM_LL_UNIT, left, unit);
}

/* One unit of every operand. A plain copy keeps its bits. */
template <class F>
CM_DEV bool cm_ll_reduce_unit(const cm_ll_shared &s, const cm_reducer<F> &reducer, const cm_work &e,
                              uint64_t u)
{
    uint64_t left = e.n * sizeof(typename F::bits) - u * CM_LL_UNIT, unit;
    cm_unit<F> acc = {};

    if (!cm_ll_fetch<F>(s, 0, u, left, &unit))
        return false;
    if (!cm_is_copy<F>(reducer, s.plan.move, e)) {
        cm_unit_take<F>(reducer, acc, unit, s.plan.move.twice[0], true);
#pragma unroll 1
        for (uint32_t k = 1; k < e.nsrc; k++) {
            if (!cm_ll_fetch<F>(s, k, u, left, &unit))
                return false;
            cm_unit_take<F>(reducer, acc, unit, s.plan.move.twice[k], false);
        }
        unit = cm_unit_give<F>(reducer, acc, e.divide);
    }
#pragma unroll 1
    for (uint32_t k = 0; k < e.ndst; k++)
        cm_ll_deliver<F>(s, k, u, left, unit);
    return true;
}

/* See gpu_ll.h: in some rounds all lines of a slot get the flag, also those without payload. */
CM_DEV void cm_ll_clean(const cm_ll_shared &s, const cm_gpu_fold &f, uint64_t used)
{
    const cm_walk &w = s.plan.walk;
    uint64_t all = cm_ld(&w.block.state->area.slot_bytes) / CM_LL_LINE;

#pragma unroll 1
    for (uint32_t k = 0; k < f.nto; k++)
#pragma unroll 1
        for (uint64_t u = used + cm_tid(); s.dst_port[k] && s.cleans[k] && u < all; u += cm_nthr())
            cm_ll_put(s.plan.move.dst[k] + u * CM_LL_LINE, 0, s.dst_flag[k]);
}

/* Behind the barrier: slots that were read go back. Threads as in cm_ll_resolve_fold(). */
CM_DEV void cm_ll_settle(const cm_ll_shared &s, const cm_gpu_fold &f)
{
    const cm_walk &w = s.plan.walk;
    const cm_gpu_operand *operands = cm_at<const cm_gpu_operand>(cm_ld(&w.plan->operands), 0);

#pragma unroll 1
    for (uint32_t i = cm_tid(); i < f.nfrom; i += cm_nthr()) {
        cm_gpu_operand o = cm_ld(&operands[f.from + i]);

        if (o.space == CM_PORT)
            cm_give_credit(w.block, (uint32_t)o.rank, w.channel, s.plan.slot[i] + 1);
    }
}

/* A slot without payload carries one line all the same: its flag is what the receiver waits for. */
template <class F>
CM_DEV bool cm_ll_move(const cm_ll_shared &s, const cm_reducer<F> &reducer, const cm_gpu_fold &f,
                       const cm_work &e)
{
    uint64_t units = (e.n * sizeof(typename F::bits) + CM_LL_UNIT - 1) / CM_LL_UNIT;
    uint64_t unit;
    bool ok = true;

#pragma unroll 1
    for (uint64_t u = cm_tid(); ok && u < units; u += cm_nthr())
        ok = cm_ll_reduce_unit<F>(s, reducer, e, u);
    if (units == 0 && cm_tid() == 0) {
#pragma unroll 1
        for (uint32_t k = 0; ok && k < f.nfrom; k++)
            ok = !s.src_port[k] || cm_ll_fetch<F>(s, k, 0, 0, &unit);
#pragma unroll 1
        for (uint32_t k = 0; k < f.nto; k++)
            if (s.dst_port[k])
                cm_ll_put(s.plan.move.dst[k], 0, s.dst_flag[k]);
    }
    cm_ll_clean(s, f, units == 0 ? 1 : units);
    return ok;
}

/* Fold `at`. false: aborted. */
template <class F>
CM_DEV bool cm_ll_run_fold(cm_ll_shared &s, const cm_reducer<F> &reducer, uint32_t at,
                           uint64_t pass)
{
    enum { SIZE = sizeof(typename F::bits) };
    const cm_gpu_fold &f = s.plan.fold[at & 1];
    cm_slice slice = cm_slice_of(s.plan.walk, f, pass);
    bool ok = cm_ll_resolve_fold(s, f, slice.at * SIZE);

    if (cm_bar_or(!ok))
        return false;
    cm_fetch_fold(s.plan, at + 1);
    ok = f.nfrom == 0 || cm_ll_move<F>(s, reducer, f, cm_work_of(f, slice.n));
    return !cm_bar_or(!ok);
}

template <class F> CM_DEV bool cm_ll_run_folds(cm_ll_shared &s, const cm_reducer<F> &reducer)
{
    const cm_walk &w = s.plan.walk;
    uint64_t npasses = w.worker.nfolds == 0 ? 0 : cm_ld(&w.plan->npasses);
    uint32_t at = 0;

#pragma unroll 1
    for (uint64_t pass = 0; pass < npasses; pass++) {
#pragma unroll 1
        for (uint32_t i = 0; i < w.worker.nfolds; i++, at++) {
            if (!cm_ll_run_fold<F>(s, reducer, at, pass))
                return false;
            cm_ll_settle(s, s.plan.fold[at & 1]);
        }
    }
    return true;
}

template <class F> CM_DEV void cm_exec_ll(const cm_gpu_args &a)
{
    CM_SHARED(cm_ll_shared, s);
    cm_reducer<F> reducer = {(typename F::bits)a.flip, a.divisor, a.is_signed};

    if (cm_plan_begin(s.plan, a, a.rank[cm_bid_y()], true) && cm_ll_run_folds<F>(s, reducer))
        cm_plan_end(s.plan);
}

#endif
