/*
 * LL units: 8 bytes of payload in a 16-byte line of two halves, each payload
 * word beside a flag, so that a half that shows the flag holds its payload and
 * nothing has to be fenced. Only single 8-byte accesses are relied on.
 *
 * Flags count modulo mask + 1. A line may keep a flag from earlier; so that no
 * flag is met again one period later, whoever writes lines rewrites all of them
 * in the last rounds of each half period: what is left over then is at most
 * half a period old. (Method: NCCL's LL protocol.)
 */
#ifndef CM_KERNELS_GPU_LL_H
#define CM_KERNELS_GPU_LL_H

#include "kernels/gpu_sync.h"

enum { CM_LL_UNIT = 8, CM_LL_LINE = 16 };

/* Must all lines be rewritten in round `count` (from 0), of which `rounds` share the lines? */
CM_DEV bool cm_ll_cleans(uint64_t count, uint32_t mask, uint32_t rounds)
{
    uint32_t half = mask >> 1;

    return ((uint32_t)count & half) > half - rounds;
}

CM_DEV uint32_t cm_ll_flag(uint64_t count, uint32_t mask)
{
    return (uint32_t)(count + 1) & mask;
}

CM_DEV void cm_ll_put(uint64_t line, uint64_t unit, uint32_t flag)
{
    cm_st_ll((void *)line, (uint32_t)unit, flag);
    cm_st_ll((void *)(line + 8), (uint32_t)(unit >> 32), flag);
}

/* Wait for both halves. false: aborted. */
CM_DEV bool cm_ll_get(const cm_block &b, uint64_t line, uint32_t flag, uint32_t peer,
                      uint64_t *unit)
{
#pragma unroll 1
    for (uint32_t polls = 1;; polls++) {
        cm_ll_half low = cm_ld_ll((const void *)line);
        cm_ll_half high = cm_ld_ll((const void *)(line + 8));

        if (low.flag == flag && high.flag == flag) {
            *unit = (uint64_t)high.data << 32 | low.data;
            return true;
        }
        if (polls % CM_GPU_POLLS == 0 && !cm_go_on(b, peer, polls))
            return false;
    }
}

/* Up to 8 bytes at `p`, which starts at an element of type Bits; bytes beyond `left` are zero. */
template <class Bits> CM_DEV uint64_t cm_unit_load(uint64_t p, uint64_t left)
{
    uint64_t unit = 0;

    if (left >= CM_LL_UNIT && p % CM_LL_UNIT == 0)
        return cm_ld((const uint64_t *)p);
#pragma unroll 1
    for (uint32_t i = 0; i < CM_LL_UNIT / sizeof(Bits) && i * sizeof(Bits) < left; i++)
        unit |= (uint64_t)cm_ld((const Bits *)p + i) << (i * 8 * sizeof(Bits) % 64);
    return unit;
}

template <class Bits> CM_DEV void cm_unit_store(uint64_t p, uint64_t left, uint64_t unit)
{
    if (left >= CM_LL_UNIT && p % CM_LL_UNIT == 0) {
        cm_st((uint64_t *)p, unit);
        return;
    }
#pragma unroll 1
    for (uint32_t i = 0; i < CM_LL_UNIT / sizeof(Bits) && i * sizeof(Bits) < left; i++)
        cm_st((Bits *)p + i, (Bits)(unit >> (i * 8 * sizeof(Bits) % 64)));
}

/* A unit as accumulators. */
template <class F> struct cm_unit {
    enum { LANES = CM_LL_UNIT / sizeof(typename F::bits), BITS = 8 * sizeof(typename F::bits) };
    typename F::acc a[LANES];
};

template <class F>
CM_DEV void cm_unit_take(const cm_reducer<F> &f, cm_unit<F> &u, uint64_t unit, bool twice,
                         bool first)
{
#pragma unroll
    for (int i = 0; i < cm_unit<F>::LANES; i++) {
        typename F::acc e = f.load((typename F::bits)(unit >> (i * cm_unit<F>::BITS % 64)), twice);

        u.a[i] = first ? e : F::combine(u.a[i], e);
    }
}

template <class F>
CM_DEV uint64_t cm_unit_give(const cm_reducer<F> &f, const cm_unit<F> &u, bool divide)
{
    uint64_t unit = 0;

#pragma unroll
    for (int i = 0; i < cm_unit<F>::LANES; i++)
        unit |= (uint64_t)f.store(u.a[i], divide) << (i * cm_unit<F>::BITS % 64);
    return unit;
}

#endif
