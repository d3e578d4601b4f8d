/*
 * The n-ary fold of a block: load what the sources have, reduce in their
 * order, store to every destination.
 *
 * A thread owns vectors of 16 bytes, `stride` threads apart, several at a time
 * so that enough loads are in flight; the loads of the next source are issued
 * before the present one is added. Ragged ends go element by element, and so
 * does everything where operands do not start at the same place in 16 bytes.
 * Each destination equals a source or is disjoint from all of them: every
 * operand of an index is loaded before a store of it, by the same thread.
 */
#ifndef CM_KERNELS_GPU_MOVE_H
#define CM_KERNELS_GPU_MOVE_H

#include "kernels/gpu_types.h"

enum { CM_GPU_OPERANDS = CM_GPU_RANKS + 1 };

/* Operands of the fold that runs, block-shared. */
struct cm_move {
    uint64_t src[CM_GPU_OPERANDS], dst[CM_GPU_OPERANDS];
    uint8_t twice[CM_GPU_OPERANDS]; /* mulsum: this source counts double */
};

/* A thread's work in a fold; all but `thread` is the same on all threads. */
struct cm_work {
    uint32_t nsrc, ndst;
    uint64_t n; /* elements */
    bool divide;
    uint32_t thread, threads; /* this thread among those that share the fold */
};

template <class F> struct cm_vec {
    enum { LANES = 16 / sizeof(typename F::bits) };
    /* vectors at a time: so many that neither kernel spills registers on any architecture */
    enum { GROUP = LANES >= 16 ? 1 : LANES == 8 ? 2 : 4, SMALL_GROUP = LANES >= 8 ? 1 : 2 };
    typename F::acc a[LANES];
};

template <class F>
CM_DEV void cm_vec_take(const cm_reducer<F> &f, cm_vec<F> &v, const cm_vec16 &x, bool twice,
                        bool first)
{
    typename F::bits b[cm_vec<F>::LANES];

    memcpy(b, &x, sizeof(b));
#pragma unroll
    for (int i = 0; i < cm_vec<F>::LANES; i++) {
        typename F::acc e = f.load(b[i], twice);

        v.a[i] = first ? e : F::combine(v.a[i], e);
    }
}

template <class F>
CM_DEV cm_vec16 cm_vec_give(const cm_reducer<F> &f, const cm_vec<F> &v, bool divide)
{
    typename F::bits b[cm_vec<F>::LANES];
    cm_vec16 x;

#pragma unroll
    for (int i = 0; i < cm_vec<F>::LANES; i++)
        b[i] = f.store(v.a[i], divide);
    memcpy(&x, b, sizeof(x));
    return x;
}

/* U vectors per thread, `stride` bytes apart, at byte `at` of every operand. */
template <class F, int U>
CM_DEV void cm_reduce_vectors(const cm_reducer<F> &f, const cm_move &m, const cm_work &e,
                              uint64_t at, uint64_t stride)
{
    cm_vec16 now[U], next[U];
    cm_vec<F> v[U];

#pragma unroll
    for (int k = 0; k < U; k++)
        now[k] = cm_ld16((const char *)m.src[0] + at + k * stride);
#pragma unroll 1
    for (uint32_t s = 0; s < e.nsrc; s++) {
        bool more = s + 1 < e.nsrc;

#pragma unroll
        for (int k = 0; k < U; k++)
            if (more)
                next[k] = cm_ld16((const char *)m.src[s + 1] + at + k * stride);
#pragma unroll
        for (int k = 0; k < U; k++)
            cm_vec_take<F>(f, v[k], now[k], m.twice[s], s == 0);
#pragma unroll
        for (int k = 0; k < U; k++)
            now[k] = next[k];
    }
#pragma unroll
    for (int k = 0; k < U; k++)
        now[k] = cm_vec_give<F>(f, v[k], e.divide);
#pragma unroll 1
    for (uint32_t d = 0; d < e.ndst; d++)
#pragma unroll
        for (int k = 0; k < U; k++)
            cm_st16((char *)m.dst[d] + at + k * stride, now[k]);
}

/* One source, unchanged: no accumulators, twice the loads in flight. */
template <int U>
CM_DEV void cm_copy_vectors(const cm_move &m, const cm_work &e, uint64_t at, uint64_t stride)
{
    cm_vec16 x[U];

#pragma unroll
    for (int k = 0; k < U; k++)
        x[k] = cm_ld16((const char *)m.src[0] + at + k * stride);
#pragma unroll 1
    for (uint32_t d = 0; d < e.ndst; d++)
#pragma unroll
        for (int k = 0; k < U; k++)
            cm_st16((char *)m.dst[d] + at + k * stride, x[k]);
}

template <class F>
CM_DEV bool cm_is_copy(const cm_reducer<F> &f, const cm_move &m, const cm_work &e)
{
    return e.nsrc == 1 && !m.twice[0] && !(e.divide && f.divisor > 1);
}

/* In place: the data is there already, and peers may be reading it. */
template <class F>
CM_DEV bool cm_is_there(const cm_reducer<F> &f, const cm_move &m, const cm_work &e)
{
    return cm_is_copy<F>(f, m, e) && e.ndst == 1 && m.dst[0] == m.src[0];
}

/* One element of every operand. A plain copy keeps its bits, NaN and all. */
template <class F>
CM_DEV void cm_reduce_element(const cm_reducer<F> &f, const cm_move &m, const cm_work &e,
                              uint64_t i)
{
    typedef typename F::bits bits;
    bits b = cm_ld((const bits *)m.src[0] + i);

    if (!cm_is_copy<F>(f, m, e)) {
        typename F::acc a = f.load(b, m.twice[0]);

#pragma unroll 1
        for (uint32_t s = 1; s < e.nsrc; s++)
            a = F::combine(a, f.load(cm_ld((const bits *)m.src[s] + i), m.twice[s]));
        b = f.store(a, e.divide);
    }
#pragma unroll 1
    for (uint32_t d = 0; d < e.ndst; d++)
        cm_st((bits *)m.dst[d] + i, b);
}

/* Do all operands start at the same place in 16 bytes? */
CM_DEV bool cm_in_step(const cm_move &m, const cm_work &e)
{
    uint64_t differ = 0;

#pragma unroll 1
    for (uint32_t s = 1; s < e.nsrc; s++)
        differ |= m.src[s] ^ m.src[0];
#pragma unroll 1
    for (uint32_t d = 0; d < e.ndst; d++)
        differ |= m.dst[d] ^ m.src[0];
    return (differ & 15) == 0;
}

/* Vectors [0, count) from byte `at` on, in groups, then one by one. */
template <class F, int U>
CM_DEV void cm_move_vectors(const cm_reducer<F> &f, const cm_move &m, const cm_work &e, uint64_t at,
                            uint64_t count)
{
    enum { COPIES = 4 };
    uint64_t stride = (uint64_t)e.threads * 16, v = e.thread;
    bool copy = cm_is_copy<F>(f, m, e);

#pragma unroll 1
    for (; copy && v + (COPIES - 1) * (uint64_t)e.threads < count;
         v += COPIES * (uint64_t)e.threads)
        cm_copy_vectors<COPIES>(m, e, at + v * 16, stride);
#pragma unroll 1
    for (; copy && v < count; v += e.threads)
        cm_copy_vectors<1>(m, e, at + v * 16, stride);
#pragma unroll 1
    for (; v + (U - 1) * (uint64_t)e.threads < count; v += U * (uint64_t)e.threads)
        cm_reduce_vectors<F, U>(f, m, e, at + v * 16, stride);
#pragma unroll 1
    for (; U > 1 && v < count; v += e.threads)
        cm_reduce_vectors<F, 1>(f, m, e, at + v * 16, stride);
}

/* The fold, U vectors at a time. */
template <class F, int U>
CM_DEV void cm_move_all(const cm_reducer<F> &f, const cm_move &m, const cm_work &e)
{
    enum { SIZE = sizeof(typename F::bits), LANES = 16 / SIZE };
    uint64_t head = (16 - (m.src[0] & 15)) % 16 / SIZE, vectors, tail;

    if (cm_is_there<F>(f, m, e))
        return;
    if (!cm_in_step(m, e) || e.n < head + LANES) {
#pragma unroll 1
        for (uint64_t i = e.thread; i < e.n; i += e.threads)
            cm_reduce_element<F>(f, m, e, i);
        return;
    }
    vectors = (e.n - head) / LANES;
    tail = head + vectors * LANES;
    cm_move_vectors<F, U>(f, m, e, head * SIZE, vectors);
#pragma unroll 1
    for (uint64_t i = e.thread; i < head; i += e.threads)
        cm_reduce_element<F>(f, m, e, i);
#pragma unroll 1
    for (uint64_t i = tail + e.thread; i < e.n; i += e.threads)
        cm_reduce_element<F>(f, m, e, i);
}

#endif
