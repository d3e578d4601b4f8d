/*
 * The two-shot direct plan in one pass and without a plan: all ranks arrive,
 * each block loads its share from the sources, reduces, stores to every
 * destination, all ranks leave. With all ranks as sources and destinations of
 * rank r's slice it is an all-reduce that reads every input byte once and
 * writes every output byte once.
 */
#ifndef CM_KERNELS_EXEC_PASS_H
#define CM_KERNELS_EXEC_PASS_H

#include "kernels/gpu_move.h"
#include "kernels/gpu_sync.h"

/* Wait for `phase` of every peer's block of the same index; with `find`, learn the addresses. */
CM_DEV bool cm_pass_meet(const cm_block &b, const cm_gpu_rank &r, uint32_t phase, bool find,
                         cm_move &m)
{
    uint32_t parity = b.op & 1;
    bool ok = true;

#pragma unroll 1
    for (uint32_t p = cm_tid(); ok && p < b.n; p += cm_nthr()) {
        uint64_t data = cm_ld(&b.state->peers[p].data);
        const cm_gpu_line *line;

        ok = cm_wait_line(b, p, b.index, phase, &line);
        if (!ok || !find)
            continue;
        if ((int32_t)p >= r.from && (int32_t)p < r.from + r.nfrom)
            m.src[p - r.from] = data + cm_ld(&line->in[parity]) + r.from_at;
        if ((int32_t)p >= r.to && (int32_t)p < r.to + r.nto)
            m.dst[p - r.to] = data + cm_ld(&line->out[parity]) + r.to_at;
    }
    return ok;
}

/* This block's share of the fold: operands move to its start. */
template <class Bits>
CM_DEV uint64_t cm_pass_share(const cm_block &b, const cm_gpu_rank &r, cm_move &m, bool premul)
{
    uint64_t at = cm_min(r.each * b.index, r.len);

#pragma unroll 1
    for (uint32_t i = cm_tid(); i < (uint32_t)r.nfrom; i += cm_nthr()) {
        m.src[i] += at * sizeof(Bits);
        m.twice[i] = premul && ((r.from + i) & 1);
    }
#pragma unroll 1
    for (uint32_t i = cm_tid(); i < (uint32_t)r.nto; i += cm_nthr())
        m.dst[i] += at * sizeof(Bits);
    return cm_min(r.len - at, r.each);
}

template <class F> CM_DEV void cm_exec_pass(const cm_gpu_args &a)
{
    CM_SHARED(cm_move, m);
    const cm_gpu_rank &r = a.rank[cm_bid_y()];
    cm_block b = cm_block_begin(a, r);
    cm_reducer<F> f = {(typename F::bits)a.flip, a.divisor, a.is_signed};
    cm_work e;

    cm_post(b, 1, true);
    if (cm_bar_or(cm_stopped(b) || !cm_pass_meet(b, r, 1, true, m)))
        return;
    e.n = cm_pass_share<typename F::bits>(b, r, m, a.premul);
    e.nsrc = (uint32_t)r.nfrom;
    e.ndst = (uint32_t)r.nto;
    e.divide = true;
    e.thread = cm_tid();
    e.threads = cm_nthr();
    cm_bar();
    cm_move_all<F, cm_vec<F>::GROUP>(f, m, e);
    cm_bar();
    cm_post(b, CM_PHASE_DONE, false);
    if (cm_bar_or(!cm_pass_meet(b, r, CM_PHASE_DONE, false, m)))
        return;
    cm_finish(b);
}

#endif
