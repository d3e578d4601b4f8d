/*
 * Reduction kernels for any CPU: 16-byte vectors, which compilers map to SSE2
 * or NEON or take apart, and half in integer arithmetic. No streaming: the
 * portable C has no such store. The results define what other sets must give.
 */
enum { VEC_BYTES = 16 };

#include "kernels/reduce_vec.h"

static const struct vec_small vec_half = {15, 10, 15, 0x7c00, 0x47800000, 0, 0x7e00}; /* 65536 */

CM_INLINE vec vec_load_half(const void *p)
{
    return vec_widen(vec_half, vec_load_top16(p));
}

/* NaN keeps the leading bits of its mantissa, as the x86 instruction does. */
CM_INLINE vec vec_to_half(vec v)
{
    vec nan = vec_above(v & F32_ABS, F32_INF);

    return vec_narrow(vec_half, v) | ((v >> (F32_MANTISSA - 10)) & nan & 0x3ff);
}

CM_INLINE void vec_store_half(void *p, vec v)
{
    vec_store_low16(p, vec_to_half(v));
}

CM_INLINE struct block block_load_half(const void *p)
{
    vec x = vec_load(p), y = vec_load((const char *)p + VEC_BYTES);

    return (struct block){vec_widen(vec_half, x << 16), vec_widen(vec_half, x),
                          vec_widen(vec_half, y << 16), vec_widen(vec_half, y)};
}

CM_INLINE void block_store_half(void *p, struct block x)
{
    vec_store(p, vec_to_half(x.a) | vec_to_half(x.b) << 16);
    vec_store((char *)p + VEC_BYTES, vec_to_half(x.c) | vec_to_half(x.d) << 16);
}

#define STREAM_STORE(mem) NULL
#define STREAM_KERNEL(kind)

#include "kernels/reduce_loop.h"

static const struct cm_reduce_table cached = REDUCE_TABLE(cached);

const struct cm_reduce_table *cm_reduce_table_generic(void)
{
    return &cached;
}
