/*
 * Interpreter of a bound plan: one block runs one worker's folds.
 *
 * Grid (workers x reps, ranks): the `reps` blocks of a worker share each chunk.
 * A fold is: threads wait, each for one line or port, and look up one operand's
 * address; barrier; all threads move; barrier; threads publish slots, free
 * slots and post. Ports are of protocol simple: payload, then the tail with
 * release. The other side of every barrier is in gpu_sync.h.
 */
#ifndef CM_KERNELS_EXEC_PLAN_H
#define CM_KERNELS_EXEC_PLAN_H

#include "kernels/gpu_move.h"
#include "kernels/gpu_ports.h"

/* The worker that a block plays. */
struct cm_walk {
    cm_block block;
    const cm_gpu_plan *plan;
    cm_gpu_worker worker;
    uint32_t rep, reps, channel; /* channel: of its ports */
    uint64_t scratch_at;         /* of the block's part, from the start of what the worker has */
    uint32_t premul;
    bool ports;
};

/* A block's part of a fold in one pass. */
struct cm_slice {
    uint64_t at, n;
};

/* Block-shared state of the interpreter; what is the same for all threads needs no registers. */
struct cm_plan_shared {
    cm_walk walk;
    cm_gpu_fold fold[2]; /* the one that runs and the one after it */
    cm_move move;
    cm_port_counts counts;
    uint64_t slot[2 * CM_GPU_OPERANDS]; /* of each operand that is a port: the slot's number */
    /* addresses of the peers' buffers, learnt from their lines; 0: not yet */
    uint64_t in[CM_GPU_RANKS], out[CM_GPU_RANKS];
};

CM_DEV cm_walk cm_walk_begin(const cm_gpu_args &a, const cm_gpu_rank &r)
{
    cm_walk w;
    uint32_t number;

    w.block = cm_block_begin(a, r);
    w.plan = cm_at<const cm_gpu_plan>(r.plan, 0);
    w.reps = cm_ld(&w.plan->reps);
    number = w.block.index / w.reps;
    w.rep = w.block.index % w.reps;
    w.worker = cm_ld(&w.plan->workers[number]);
    w.channel = w.worker.channel * w.reps + w.rep;
    w.scratch_at = w.rep * cm_ld(&w.plan->scratch_step);
    w.premul = a.premul;
    w.ports = cm_ld(&w.plan->ports) != 0;
    return w;
}

/* Learn where `peer` has its buffers from a line of it that was waited for. */
CM_DEV void cm_learn(cm_plan_shared &s, uint32_t peer, const cm_gpu_line *line)
{
    const cm_walk &w = s.walk;
    uint64_t data = cm_ld(&w.block.state->peers[peer].data);
    uint32_t parity = w.block.op & 1;

    s.in[peer] = data + cm_ld(&line->in[parity]);
    s.out[peer] = data + cm_ld(&line->out[parity]);
}

CM_DEV bool cm_wait_fold(cm_plan_shared &s, const cm_gpu_fold &f)
{
    const cm_walk &w = s.walk;
    const cm_gpu_wait *waits = cm_at<const cm_gpu_wait>(cm_ld(&w.plan->waits), 0);
    const cm_gpu_line *line;
    bool ok = true;

#pragma unroll 1
    for (uint32_t i = cm_tid(); ok && i < f.nwait; i += cm_nthr()) {
        cm_gpu_wait on = cm_ld(&waits[f.wait + i]);

        ok = cm_wait_line(w.block, (uint32_t)on.rank, on.line * w.reps + w.rep, on.phase, &line);
        if (ok && on.learn)
            cm_learn(s, (uint32_t)on.rank, line);
    }
    return ok;
}

/* A full slot from `peer`: wait for it, compare its signature. */
CM_DEV bool cm_wait_full(const cm_walk &w, uint32_t peer, uint64_t count, const uint64_t *sig)
{
    const cm_block &b = w.block;
    cm_gpu_hint *hint = (cm_gpu_hint *)cm_ld(&b.state->hint);
    uint64_t seen;

    if (!cm_wait_word(b, cm_tail_from(b, peer, w.channel), count + 1, peer, &seen))
        return false;
    if (cm_ld(sig) == b.sig)
        return true;
    cm_st_relaxed_sys(&hint->stranger, peer + 1);
#pragma unroll 1
    for (uint32_t beats = 1; cm_go_on(b, peer, beats); beats++)
        cm_pause_ns(1000);
    return false;
}

/* The port's slot `count`, once it is full: the address of its `bytes` of payload. */
CM_DEV bool cm_resolve_from(const cm_walk &w, uint32_t peer, uint64_t count, uint64_t bytes,
                            uint64_t *address)
{
    cm_place slot = cm_place_from(w.block, peer, w.channel, count, bytes);

    *address = slot.payload;
    return cm_wait_full(w, peer, count, slot.sig);
}

/* The same once it is free. */
CM_DEV bool cm_resolve_to(const cm_walk &w, uint32_t peer, uint64_t count, uint64_t bytes,
                          uint64_t *address)
{
    cm_place slot = cm_place_to(w.block, peer, w.channel, count, bytes);

    *address = slot.payload;
    if (!cm_wait_credit(w.block, peer, w.channel, count))
        return false;
    cm_st(slot.sig, w.block.sig);
    if (slot.bytes != NULL)
        cm_st(slot.bytes, bytes);
    return true;
}

/*
 * Start of IN or OUT of a peer that no wait named yet (it is ready by way of
 * others): any post of its block tells, and the first comes at once.
 */
CM_DEV bool cm_find_space(const cm_walk &w, uint32_t peer, bool in, uint64_t *start)
{
    const cm_gpu_line *line;
    uint32_t parity = w.block.op & 1;

    if (!cm_wait_line(w.block, peer, w.block.index, 0, &line))
        return false;
    *start = cm_ld(&w.block.state->peers[peer].data) +
             (in ? cm_ld(&line->in[parity]) : cm_ld(&line->out[parity]));
    return true;
}

/* Address of an operand that is not a port. */
CM_DEV bool cm_resolve_place(const cm_plan_shared &s, const cm_gpu_operand &o, uint64_t shift,
                             uint64_t *address)
{
    const cm_walk &w = s.walk;
    uint32_t peer = (uint32_t)o.rank;
    bool in = o.space == CM_IN;
    uint64_t start = in ? s.in[peer] : s.out[peer];

    if (o.space == CM_SCRATCH) {
        *address = cm_ld(&w.block.state->peers[peer].scratch) + o.at + w.scratch_at;
        return true;
    }
    if (start == 0 && !cm_find_space(w, peer, in, &start))
        return false;
    *address = start + o.at + shift;
    return true;
}

/* One operand per thread: its slot or line awaited, its address found. The slice is in bytes. */
CM_DEV bool cm_resolve_fold(cm_plan_shared &s, const cm_gpu_fold &f, const cm_slice &slice)
{
    const cm_walk &w = s.walk;
    const cm_gpu_operand *operands = cm_at<const cm_gpu_operand>(cm_ld(&w.plan->operands), 0);
    bool ok = true;

#pragma unroll 1
    for (uint32_t i = cm_tid(); ok && i < f.nfrom + f.nto; i += cm_nthr()) {
        cm_gpu_operand o = cm_ld(&operands[f.from + i]);
        bool from = i < f.nfrom;
        uint64_t *address = from ? &s.move.src[i] : &s.move.dst[i - f.nfrom];

        if (o.space == CM_PORT) {
            s.slot[i] = cm_take_slot(s.counts, (uint32_t)o.rank, from);
            ok = from ? cm_resolve_from(w, (uint32_t)o.rank, s.slot[i], slice.n, address)
                      : cm_resolve_to(w, (uint32_t)o.rank, s.slot[i], slice.n, address);
        } else {
            ok = cm_resolve_place(s, o, slice.at, address);
        }
        if (from)
            s.move.twice[i] = w.premul && o.space == CM_IN && (o.rank & 1);
    }
    return ok;
}

/*
 * Behind the barrier: free what was read, publish what was filled. A thread does
 * the operands that it resolved; others may resolve the next fold by now.
 */
CM_DEV void cm_settle_ports(const cm_plan_shared &s, const cm_gpu_fold &f)
{
    const cm_walk &w = s.walk;
    const cm_gpu_operand *operands = cm_at<const cm_gpu_operand>(cm_ld(&w.plan->operands), 0);
    const cm_block &b = w.block;

#pragma unroll 1
    for (uint32_t i = cm_tid(); i < f.nfrom + f.nto; i += cm_nthr()) {
        cm_gpu_operand o = cm_ld(&operands[f.from + i]);
        uint32_t peer = (uint32_t)o.rank;

        if (o.space != CM_PORT)
            continue;
        if (i < f.nfrom)
            cm_give_credit(b, peer, w.channel, s.slot[i] + 1);
        else
            cm_st_release_sys(cm_tail_to(b, peer, w.channel), s.slot[i] + 1);
    }
}

/* What this thread does of a fold over `n` elements. */
CM_DEV cm_work cm_work_of(const cm_gpu_fold &f, uint64_t n)
{
    cm_work e;

    e.nsrc = f.nfrom;
    e.ndst = f.nto;
    e.n = n;
    e.divide = (f.flags & CM_GPU_DIVIDE) != 0;
    e.thread = cm_tid();
    e.threads = cm_nthr();
    return e;
}

/* In elements. */
CM_DEV cm_slice cm_slice_of(const cm_walk &w, const cm_gpu_fold &f, uint64_t pass)
{
    uint64_t cap = cm_ld(&w.plan->cap);
    uint64_t start = cm_min(f.each * w.rep, f.len), end = cm_min(start + f.each, f.len);
    cm_slice s;

    s.at = cm_min(start + pass * cap, end);
    s.n = cm_min(end - s.at, cap);
    return s;
}

/* Fetch fold `next` into the place of the one before the present one, which all have left. */
CM_DEV void cm_fetch_fold(cm_plan_shared &s, uint32_t next)
{
    const cm_gpu_fold *folds = cm_at<const cm_gpu_fold>(cm_ld(&s.walk.plan->folds), 0);

    if (cm_tid() == 0)
        s.fold[next & 1] = cm_ld(&folds[s.walk.worker.first + next % s.walk.worker.nfolds]);
}

/* Fold `at`. false: aborted. */
template <class F>
CM_DEV bool cm_run_fold(cm_plan_shared &s, const cm_reducer<F> &reducer, uint32_t at, uint64_t pass)
{
    enum { SIZE = sizeof(typename F::bits) };
    const cm_gpu_fold &f = s.fold[at & 1];
    cm_slice slice = cm_slice_of(s.walk, f, pass);
    bool ok = cm_wait_fold(s, f);

    if (f.nwait > 0 && cm_bar_or(!ok))
        return false;
    ok = cm_resolve_fold(s, f, {slice.at * SIZE, slice.n * SIZE});
    if (cm_bar_or(!ok))
        return false;
    cm_fetch_fold(s, at + 1);
    if (f.nfrom > 0)
        cm_move_all<F, cm_vec<F>::SMALL_GROUP>(reducer, s.move, cm_work_of(f, slice.n));
    return true;
}

/* A worker that does not begin with a post tells by itself where its buffers are. */
CM_DEV bool cm_announces(const cm_plan_shared &s)
{
    const cm_gpu_fold &first = s.fold[0];

    return s.walk.worker.nfolds == 0 || !(first.flags & CM_GPU_POST) || first.nwait != 0;
}

/* All folds of the worker, all passes. */
template <class F> CM_DEV bool cm_run_folds(cm_plan_shared &s, const cm_reducer<F> &reducer)
{
    const cm_walk &w = s.walk;
    uint32_t nfolds = w.worker.nfolds, at = 0, phase = 0;
    uint64_t npasses = nfolds == 0 ? 0 : cm_ld(&w.plan->npasses);
    bool exiting = w.ports; /* copy plans have no lines to post to */
    bool tells = !cm_announces(s);

#pragma unroll 1
    for (uint64_t pass = 0; pass < npasses; pass++) {
#pragma unroll 1
        for (uint32_t i = 0; i < nfolds; i++, at++) {
            const cm_gpu_fold &f = s.fold[at & 1];

            if ((f.flags & CM_GPU_DONE_FIRST) && !exiting) {
                cm_post(w.block, CM_PHASE_DONE, false);
                exiting = true;
            }
            if (!cm_run_fold<F>(s, reducer, at, pass))
                return false;
            cm_bar();
            if (w.ports)
                cm_settle_ports(s, f);
            if (f.flags & CM_GPU_POST) {
                cm_post(w.block, ++phase, tells);
                tells = false;
            }
        }
    }
    if (!exiting)
        cm_post(w.block, CM_PHASE_DONE, false);
    return true;
}

/* Fill the block-shared state: the worker, its first fold, its ports' counters. false: aborted. */
CM_DEV bool cm_plan_begin(cm_plan_shared &s, const cm_gpu_args &a, const cm_gpu_rank &r, bool ll)
{
    if (cm_tid() == 0) {
        s.walk = cm_walk_begin(a, r);
        if (ll) /* ports of its own, see CM_GPU_PROTOS */
            s.walk.channel += cm_ld(&s.walk.block.state->area.channels);
        if (s.walk.worker.nfolds > 0)
            cm_fetch_fold(s, 0);
    }
    cm_bar();
#pragma unroll 1
    for (uint32_t p = cm_tid(); p < a.n; p += cm_nthr()) {
        s.in[p] = p == s.walk.block.rank ? r.in : 0;
        s.out[p] = p == s.walk.block.rank ? r.out : 0;
    }
    if (s.walk.ports)
        cm_counts_load(s.walk.block, s.counts, s.walk.channel);
    else if (cm_announces(s))
        cm_post(s.walk.block, 0, true);
    return !cm_bar_or(cm_stopped(s.walk.block));
}

CM_DEV void cm_plan_end(cm_plan_shared &s)
{
    const cm_block &b = s.walk.block;

    cm_bar();
    if (s.walk.ports)
        cm_counts_store(b, s.counts, s.walk.channel);
    cm_finish(b);
}

template <class F> CM_DEV void cm_exec_plan(const cm_gpu_args &a)
{
    CM_SHARED(cm_plan_shared, s);
    cm_reducer<F> reducer = {(typename F::bits)a.flip, a.divisor, a.is_signed};

    if (cm_plan_begin(s, a, a.rank[cm_bid_y()], false) && cm_run_folds<F>(s, reducer))
        cm_plan_end(s);
}

#endif
