/*
 * The dialect of the kernels: everything that differs between nvcc and the
 * CPU simulator of tests/sim, and the only file with PTX in it.
 *
 * Rules (CONTRIBUTING.md, "Kernels"): a kernel is CM_KERNEL(name, Args) with one plain
 * struct by value; global memory is touched through the accessors below; flags
 * are uint64_t on a line of their own, never accessed weakly; no bare fence:
 * publish = block barrier, then cm_st_release_sys by the thread that owns the
 * flag; consume = one thread polls cm_ld_acquire_sys, then block barrier.
 * Scopes are in the names. LL lines rely on single 8-byte accesses only.
 *
 *   cm_tid() cm_nthr() cm_bid_x() cm_bid_y() cm_nblk_x()   position, 32 bits
 *   cm_bar()             block barrier; all threads arrive
 *   cm_bar_or(v)         block barrier; true on all if v is true on any
 *   CM_SHARED(T, name)   block-shared variable; undefined until written
 *   cm_pause_ns(n)       let others run; a hint
 *   cm_prefetch(p)       bring a line near; a hint
 *   CM_DEV, CM_FN        qualifiers of device functions and of member functions
 */
#ifndef CM_KERNELS_CM_DEVICE_H
#define CM_KERNELS_CM_DEVICE_H

#include <stdint.h>
#include <string.h>

enum { CM_MAX_THREADS = 512 /* of a block */ };

/* Sixteen bytes, loaded and stored at once; not atomic as a whole. */
struct alignas(16) cm_vec16 {
    uint32_t w[4];
};

#ifdef CM_SIM
#include "cmsim.h"
#define CM_FN inline __attribute__((always_inline))
#else

#define CM_DEV static __device__ __forceinline__
#define CM_FN __device__ __forceinline__
#define CM_KERNEL(name, Args)                                       \
    extern "C" __global__ void __launch_bounds__(CM_MAX_THREADS, 1) \
        name(const __grid_constant__ Args a)
#define CM_SHARED(T, name) __shared__ T name

CM_DEV uint32_t cm_tid()
{
    return threadIdx.x;
}
CM_DEV uint32_t cm_nthr()
{
    return blockDim.x;
}
CM_DEV uint32_t cm_bid_x()
{
    return blockIdx.x;
}
CM_DEV uint32_t cm_bid_y()
{
    return blockIdx.y;
}
CM_DEV uint32_t cm_nblk_x()
{
    return gridDim.x;
}
CM_DEV void cm_bar()
{
    __syncthreads();
}
CM_DEV bool cm_bar_or(bool v)
{
    return __syncthreads_or(v) != 0;
}
CM_DEV void cm_pause_ns(uint32_t ns)
{
    asm volatile("nanosleep.u32 %0;" ::"r"(ns));
}

/* weak: payload and own counters, ordered by barriers and flags */
template <class T> CM_DEV T cm_ld(const T *p)
{
    return *p;
}
template <class T> CM_DEV void cm_st(T *p, T v)
{
    *p = v;
}
CM_DEV cm_vec16 cm_ld16(const void *p)
{
    cm_vec16 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(p)
                 : "memory");
    return v;
}
CM_DEV void cm_st16(void *p, cm_vec16 v)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.w[0]), "r"(v.w[1]),
                 "r"(v.w[2]), "r"(v.w[3])
                 : "memory");
}

/* flags */
CM_DEV uint64_t cm_ld_acquire_sys(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
CM_DEV void cm_st_release_sys(uint64_t *p, uint64_t v)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
CM_DEV uint32_t cm_ld_relaxed_sys(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
CM_DEV void cm_st_relaxed_sys(uint32_t *p, uint32_t v)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
/* words that may be rewritten while others look at them in vain */
CM_DEV uint64_t cm_ld_relaxed_sys_u64(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
CM_DEV void cm_st_relaxed_sys_u64(uint64_t *p, uint64_t v)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

/* LL: half a line, payload and flag in one 8-byte access */
struct cm_ll_half {
    uint32_t data, flag;
};
CM_DEV cm_ll_half cm_ld_ll(const void *p)
{
    cm_ll_half h;
    uint64_t v;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    h.data = (uint32_t)v;
    h.flag = (uint32_t)(v >> 32);
    return h;
}
CM_DEV void cm_st_ll(void *p, uint32_t data, uint32_t flag)
{
    uint64_t v = (uint64_t)flag << 32 | data;
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

/* Bring a line near; no effect on what is read. */
CM_DEV void cm_prefetch(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

/* counters of results: relaxed, one GPU */
CM_DEV uint64_t cm_add_relaxed_gpu(uint64_t *p, uint64_t v)
{
    uint64_t old;
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(p), "l"(v)
                 : "memory");
    return old;
}

#endif

#endif
