/*
 * The choice of kernels for this CPU, and copies, which are reductions of one
 * source: the streaming copy is the streaming byte kernel.
 */
#include <assert.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/reduce_table.h"

enum { COPY_BLOCK = 4096 /* stays in the first cache from one destination to the next */ };

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

/* AVX2 by the builtin, which also asks whether the system saves the wide registers. */
static bool cpu_has_avx2_f16c(void)
{
    unsigned int a, b, c, d;

    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#else
static bool cpu_has_avx2_f16c(void)
{
    return false;
}
#endif

/* The fast set, or NULL if this build or this CPU has none. */
static const struct cm_reduce_table *fast_table(bool stream)
{
    return cpu_has_avx2_f16c() ? cm_reduce_table_avx2(stream) : NULL;
}

cm_reduce_fn *cm_reduce_generic(enum cm_dtype t, enum cm_op op)
{
    assert((unsigned int)t < CM_NDTYPES && (unsigned int)op < CM_NOPS);
    return cm_reduce_table_generic()->fn[t][op];
}

cm_reduce_fn *cm_reduce_kernel(enum cm_dtype t, enum cm_op op, bool stream)
{
    const struct cm_reduce_table *fast = fast_table(stream);

    assert((unsigned int)t < CM_NDTYPES && (unsigned int)op < CM_NOPS);
    return fast != NULL ? fast->fn[t][op] : cm_reduce_generic(t, op);
}

/* By blocks, so that the source comes from memory once for all destinations. */
static void copy_cached(void *const *dst, int ndst, const char *src, size_t bytes)
{
    size_t block = ndst == 1 ? bytes : COPY_BLOCK;

    for (size_t at = 0; at < bytes; at += block) {
        size_t n = bytes - at < block ? bytes - at : block;

        for (int d = 0; d < ndst; d++)
            if (dst[d] != src)
                memcpy((char *)dst[d] + at, src + at, n);
    }
}

void cm_copy(void *const *dst, int ndst, const void *src, size_t bytes, bool stream)
{
    const struct cm_reduce copy = {
        .n = bytes,
        .nsrc = 1,
        .ndst = ndst,
        .src = &src,
        .dst = dst,
        .divisor = 1,
    };

    if (stream && fast_table(true) != NULL)
        cm_reduce_kernel(CM_UINT8, CM_SUM, true)(&copy);
    else
        copy_cached(dst, ndst, src, bytes);
}

const char *cm_kernel_isa(void)
{
    return fast_table(false) != NULL ? "avx2+f16c" : "generic";
}
