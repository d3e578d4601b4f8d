/*
 * Reduction kernels for x86 with AVX2 and F16C; compiled with their flags, run
 * only where the CPU has them. Bit for bit the results of the generic set: the
 * same operations in the same order, on wider vectors, with products and sums
 * kept apart (-ffp-contract=off; FMA would round once less).
 */
#include "kernels/reduce_table.h"

#if defined(__AVX2__) && defined(__F16C__)

#include <immintrin.h>

enum { VEC_BYTES = 32 };

#include "kernels/reduce_vec.h"

CM_INLINE vec vec_load_half(const void *p)
{
    __m128i h;

    memcpy(&h, p, sizeof(h));
    return (vec)_mm256_cvtph_ps(h);
}

CM_INLINE __m128i vec_to_half(vec v)
{
    return _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
}

CM_INLINE void vec_store_half(void *p, vec v)
{
    __m128i h = vec_to_half(v);

    memcpy(p, &h, sizeof(h));
}

CM_INLINE struct block block_load_half(const void *p)
{
    const __m128i *q = p;

    return (struct block){vec_load_half(q), vec_load_half(q + 1), vec_load_half(q + 2),
                          vec_load_half(q + 3)};
}

CM_INLINE void block_store_half(void *p, struct block x)
{
    __m128i *q = p;

    vec_store_half(q, x.a);
    vec_store_half(q + 1, x.b);
    vec_store_half(q + 2, x.c);
    vec_store_half(q + 3, x.d);
}

CM_INLINE void block_stream(void *p, struct block x)
{
    __m256i *q = p;

    _mm256_stream_si256(q, (__m256i)x.a);
    _mm256_stream_si256(q + 1, (__m256i)x.b);
    _mm256_stream_si256(q + 2, (__m256i)x.c);
    _mm256_stream_si256(q + 3, (__m256i)x.d);
}

CM_INLINE void block_stream_half(void *p, struct block x)
{
    __m128i *q = p;

    _mm_stream_si128(q, vec_to_half(x.a));
    _mm_stream_si128(q + 1, vec_to_half(x.b));
    _mm_stream_si128(q + 2, vec_to_half(x.c));
    _mm_stream_si128(q + 3, vec_to_half(x.d));
}

CM_INLINE void block_stream_bf16(void *p, struct block x)
{
    __m256i *q = p;

    _mm256_stream_si256(q, (__m256i)vec_pack_bf16(x.a, x.b));
    _mm256_stream_si256(q + 1, (__m256i)vec_pack_bf16(x.c, x.d));
}

/* Streamed data pass by the store order; the fence puts them before a later release store. */
#define STREAM_STORE(mem) block_stream##mem
#define STREAM_KERNEL(kind)                              \
    static void kind##_stream(const struct cm_reduce *r) \
    {                                                    \
        reduce_stream(&kind, r);                         \
        _mm_sfence();                                    \
    }

#include "kernels/reduce_loop.h"

static const struct cm_reduce_table cached = REDUCE_TABLE(cached);
static const struct cm_reduce_table streaming = REDUCE_TABLE(stream);

const struct cm_reduce_table *cm_reduce_table_avx2(bool stream)
{
    return stream ? &streaming : &cached;
}

#else

const struct cm_reduce_table *cm_reduce_table_avx2(bool stream)
{
    (void)stream;
    return NULL;
}

#endif
