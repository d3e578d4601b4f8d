/*
 * The reduction loop, once for all types, operations and instruction sets.
 * Internal; before it come reduce_vec.h and, from the including file, the half
 * conversions vec_load_half, vec_store_half, block_load_half, block_store_half,
 * and two macros:
 *   STREAM_STORE(mem)    the non-temporal twin of block_store##mem, or NULL
 *   STREAM_KERNEL(kind)  the definition of the kernel <kind>_stream, or nothing
 *
 * Everything counts in bytes, from `at` to `end` of every operand. A block of
 * four vectors is accumulated in registers over all sources and then stored to
 * all destinations; so a destination may be a source, and each byte is touched
 * once. What is left takes single vectors, then parts of one.
 *
 * A kernel is reduce_all() with a constant `struct kind`: the compiler inlines
 * the functions it points to, so that one loop source becomes one tight loop
 * per type and operation.
 */
#ifndef CM_KERNELS_REDUCE_LOOP_H
#define CM_KERNELS_REDUCE_LOOP_H

#include "kernels/kernels.h"
#include "kernels/reduce_table.h"
#include "kernels/reduce_vec.h"

enum {
    BLOCK = 4,         /* vectors: enough to hide the latency of an addition */
    STREAM_ALIGN = 64, /* non-temporal stores fill whole cache lines */
    PART = 8           /* bytes: ends of ranges go through a 64-bit register */
};

/* One element type with one operation. */
struct kind {
    size_t elem;  /* bytes of an element */
    size_t bytes; /* of memory under one vector; a block has BLOCK times as many */
    bool is_sum;
    vec (*load)(const void *p);
    void (*store)(void *p, vec v);
    struct block (*load_block)(const void *p);
    void (*store_block)(void *p, struct block x);
    void (*stream_block)(void *p, struct block x); /* p aligned to VEC_BYTES; NULL: none */
    vec (*combine)(vec a, vec b);
    vec (*scale)(vec a, int factor);
    vec (*divide)(vec a, int divisor);
    void (*rest)(const struct cm_reduce *r, size_t at, size_t end); /* reduce_rest() of this kind */
};

/* is_sum by the name of the operation */
enum { IS_SUM_sum = true, IS_SUM_prod = false, IS_SUM_max = false, IS_SUM_min = false };

/* Copy n < PART bytes without a call: this is on the path of the smallest messages. */
CM_INLINE void copy_short(void *to, const void *from, size_t n)
{
    char *t = to;
    const char *f = from;

    if (n & 4) {
        memcpy(t, f, 4);
        t += 4;
        f += 4;
    }
    if (n & 2) {
        memcpy(t, f, 2);
        t += 2;
        f += 2;
    }
    if (n & 1)
        *t = *f;
}

/* n <= PART bytes as a word; bytes beyond are zero. */
CM_INLINE uint64_t load_word(const void *p, size_t n)
{
    uint64_t whole, part = 0;

    if (n == PART) {
        memcpy(&whole, p, sizeof(whole));
        return whole;
    }
    copy_short(&part, p, n);
    return part;
}

CM_INLINE void store_word(void *p, uint64_t word, size_t n)
{
    uint64_t part = word;

    if (n == PART)
        memcpy(p, &word, sizeof(word));
    else
        copy_short(p, &part, n);
}

/* n <= PART bytes as a vector whose other elements are zero. */
CM_INLINE vec load_part(const struct kind *k, const void *p, size_t n)
{
    vec v = (vec)(vec_u64){load_word(p, n)};

    return k->load(&v);
}

CM_INLINE void store_part(const struct kind *k, const struct cm_reduce *r, size_t at, size_t n,
                          vec v)
{
    vec memory = {0};

    k->store(&memory, v);
    for (int d = 0; d < r->ndst; d++)
        store_word((char *)r->dst[d] + at, ((vec_u64)memory)[0], n);
}

/* One vector of source s; part > 0: only that many bytes of it. */
CM_INLINE vec fetch(const struct kind *k, const struct cm_reduce *r, int s, size_t at, size_t part)
{
    const char *p = (const char *)r->src[s] + at;
    vec v = part > 0 ? load_part(k, p, part) : k->load(p);

    return r->scale != NULL ? k->scale(v, r->scale[s]) : v;
}

/* The result at one vector; part as above. */
CM_INLINE vec reduce_vector(const struct kind *k, const struct cm_reduce *r, size_t at, size_t part)
{
    vec acc = fetch(k, r, 0, at, part);

    for (int s = 1; s < r->nsrc; s++)
        acc = k->combine(acc, fetch(k, r, s, at, part));
    return r->divisor != 1 ? k->divide(acc, r->divisor) : acc;
}

/* The range in single vectors and parts: short messages, ragged heads and tails. */
CM_INLINE void reduce_rest(const struct kind *k, const struct cm_reduce *r, size_t at, size_t end)
{
    for (; end - at >= k->bytes; at += k->bytes) {
        vec v = reduce_vector(k, r, at, 0);

        for (int d = 0; d < r->ndst; d++)
            k->store((char *)r->dst[d] + at, v);
    }
    for (; end - at >= PART; at += PART)
        store_part(k, r, at, PART, reduce_vector(k, r, at, PART));
    if (at < end)
        store_part(k, r, at, end - at, reduce_vector(k, r, at, end - at));
}

CM_INLINE struct block block_combine(const struct kind *k, struct block x, struct block y)
{
    return (struct block){k->combine(x.a, y.a), k->combine(x.b, y.b), k->combine(x.c, y.c),
                          k->combine(x.d, y.d)};
}

CM_INLINE struct block block_apply(vec (*f)(vec, int), struct block x, int n)
{
    return (struct block){f(x.a, n), f(x.b, n), f(x.c, n), f(x.d, n)};
}

/* To every destination; non-temporal where that is asked for and its alignment allows. */
CM_INLINE void block_spread(const struct kind *k, const struct cm_reduce *r, size_t at, bool stream,
                            struct block x)
{
    for (int d = 0; d < r->ndst; d++) {
        char *p = (char *)r->dst[d] + at;

        if (stream && k->stream_block != NULL && (uintptr_t)p % VEC_BYTES == 0)
            k->stream_block(p, x);
        else
            k->store_block(p, x);
    }
}

/* A call without scale and divisor: its inner loop has no branches for them. */
CM_INLINE bool is_plain(const struct cm_reduce *r)
{
    return r->scale == NULL && r->divisor == 1;
}

/* The block at `at`, from any number of sources. */
CM_INLINE struct block gather_plain(const struct kind *k, const struct cm_reduce *r, size_t at)
{
    struct block acc = k->load_block((const char *)r->src[0] + at);

    for (int s = 1; s < r->nsrc; s++)
        acc = block_combine(k, acc, k->load_block((const char *)r->src[s] + at));
    return acc;
}

/* The same with scale and divisor. */
CM_INLINE struct block gather_full(const struct kind *k, const struct cm_reduce *r, size_t at)
{
    struct block acc = k->load_block((const char *)r->src[0] + at);

    if (r->scale != NULL)
        acc = block_apply(k->scale, acc, r->scale[0]);
    for (int s = 1; s < r->nsrc; s++) {
        struct block x = k->load_block((const char *)r->src[s] + at);

        if (r->scale != NULL)
            x = block_apply(k->scale, x, r->scale[s]);
        acc = block_combine(k, acc, x);
    }
    return r->divisor != 1 ? block_apply(k->divide, acc, r->divisor) : acc;
}

/*
 * Whole blocks, any number of operands. Returns where it stopped: at once for
 * scale or divisor with another operation than sum, which nobody asks for in
 * earnest; reduce_rest() then does it all.
 */
CM_INLINE size_t reduce_blocks(const struct kind *k, const struct cm_reduce *r, size_t at,
                               size_t end, bool stream)
{
    const size_t step = BLOCK * k->bytes;

    if (is_plain(r))
        for (; end - at >= step; at += step)
            block_spread(k, r, at, stream, gather_plain(k, r, at));
    else if (k->is_sum)
        for (; end - at >= step; at += step)
            block_spread(k, r, at, stream, gather_full(k, r, at));
    return at;
}

/* Plain, two sources, one destination: the most frequent fold. Returns where it stopped. */
CM_INLINE size_t reduce_pair(const struct kind *k, const struct cm_reduce *r, size_t end)
{
    const char *x = r->src[0], *y = r->src[1];
    char *to = r->dst[0];
    size_t at = 0;

    for (; end - at >= BLOCK * k->bytes; at += BLOCK * k->bytes)
        k->store_block(to + at, block_combine(k, k->load_block(x + at), k->load_block(y + at)));
    return at;
}

CM_INLINE void reduce_cached(const struct kind *k, const struct cm_reduce *r)
{
    size_t end = r->n * k->elem, at;

    if (r->nsrc == 2 && r->ndst == 1 && is_plain(r))
        at = reduce_pair(k, r, end);
    else
        at = reduce_blocks(k, r, 0, end, false);
    if (at < end)
        k->rest(r, at, end);
}

/*
 * Bytes before the first destination reaches a cache line, whole elements. Other
 * destinations stream if they are aligned from there on too.
 */
CM_INLINE size_t head_bytes(const struct kind *k, const struct cm_reduce *r, size_t end)
{
    size_t head = -(uintptr_t)r->dst[0] % STREAM_ALIGN;

    if (head % k->elem != 0)
        return 0;
    return head < end ? head : end;
}

/* Non-temporal stores; the caller adds the fence. */
CM_INLINE void reduce_stream(const struct kind *k, const struct cm_reduce *r)
{
    size_t end = r->n * k->elem, at = head_bytes(k, r, end);

    k->rest(r, 0, at);
    at = reduce_blocks(k, r, at, end, true);
    k->rest(r, at, end);
}

/* One type with one operation; STREAM_KERNEL(kind) adds what the instruction set has beyond. */
#define REDUCE_KERNEL(type, op, arith, mem, stream_store, elem_bytes, share)                       \
    static void type##_##op##_rest(const struct cm_reduce *r, size_t at, size_t end);              \
    static const struct kind type##_##op = {                                                       \
        .elem = (elem_bytes),                                                                      \
        .bytes = VEC_BYTES / (share),                                                              \
        .is_sum = IS_SUM_##op,                                                                     \
        .load = vec_load##mem,                                                                     \
        .store = vec_store##mem,                                                                   \
        .load_block = block_load##mem,                                                             \
        .store_block = block_store##mem,                                                           \
        .stream_block = stream_store,                                                              \
        .combine = arith##_##op,                                                                   \
        .scale = arith##_scale,                                                                    \
        .divide = arith##_divide,                                                                  \
        .rest = type##_##op##_rest,                                                                \
    };                                                                                             \
    static __attribute__((noinline)) void type##_##op##_rest(const struct cm_reduce *r, size_t at, \
                                                             size_t end)                           \
    {                                                                                              \
        reduce_rest(&type##_##op, r, at, end);                                                     \
    }                                                                                              \
    static void type##_##op##_cached(const struct cm_reduce *r)                                    \
    {                                                                                              \
        reduce_cached(&type##_##op, r);                                                            \
    }                                                                                              \
    STREAM_KERNEL(type##_##op)

/* type: name in the table; arith: its arithmetic; mem: load and store; share: 1/n of a vector. */
#define REDUCE_TYPE(type, arith, mem, stream_store, elem_bytes, share)     \
    REDUCE_KERNEL(type, sum, arith, mem, stream_store, elem_bytes, share)  \
    REDUCE_KERNEL(type, prod, arith, mem, stream_store, elem_bytes, share) \
    REDUCE_KERNEL(type, max, arith, mem, stream_store, elem_bytes, share)  \
    REDUCE_KERNEL(type, min, arith, mem, stream_store, elem_bytes, share)

REDUCE_TYPE(int8, i8, , STREAM_STORE(), 1, 1)
REDUCE_TYPE(uint8, u8, , STREAM_STORE(), 1, 1)
REDUCE_TYPE(int32, i32, , STREAM_STORE(), 4, 1)
REDUCE_TYPE(uint32, u32, , STREAM_STORE(), 4, 1)
REDUCE_TYPE(int64, i64, , STREAM_STORE(), 8, 1)
REDUCE_TYPE(uint64, u64, , STREAM_STORE(), 8, 1)
REDUCE_TYPE(half, f32, _half, STREAM_STORE(_half), 2, 2)
REDUCE_TYPE(float, f32, , STREAM_STORE(), 4, 1)
REDUCE_TYPE(double, f64, , STREAM_STORE(), 8, 1)
REDUCE_TYPE(bfloat16, f32, _bf16, STREAM_STORE(_bf16), 2, 2)
REDUCE_TYPE(f8e4m3, f32, _e4m3, NULL, 1, 4)
REDUCE_TYPE(f8e5m2, f32, _e5m2, NULL, 1, 4)

#define REDUCE_ROW(type, suffix)                                          \
    {                                                                     \
        [CM_SUM] = type##_sum_##suffix, [CM_PROD] = type##_prod_##suffix, \
        [CM_MAX] = type##_max_##suffix, [CM_MIN] = type##_min_##suffix,   \
        [CM_AVG] = type##_sum_##suffix, [CM_MULSUM] = type##_sum_##suffix \
    }

#define REDUCE_TABLE(suffix)                                                                   \
    {                                                                                          \
        {                                                                                      \
            [CM_INT8] = REDUCE_ROW(int8, suffix), [CM_UINT8] = REDUCE_ROW(uint8, suffix),      \
            [CM_INT32] = REDUCE_ROW(int32, suffix), [CM_UINT32] = REDUCE_ROW(uint32, suffix),  \
            [CM_INT64] = REDUCE_ROW(int64, suffix), [CM_UINT64] = REDUCE_ROW(uint64, suffix),  \
            [CM_HALF] = REDUCE_ROW(half, suffix), [CM_FLOAT] = REDUCE_ROW(float, suffix),      \
            [CM_DOUBLE] = REDUCE_ROW(double, suffix),                                          \
            [CM_BFLOAT16] = REDUCE_ROW(bfloat16, suffix),                                      \
            [CM_F8E4M3] = REDUCE_ROW(f8e4m3, suffix), [CM_F8E5M2] = REDUCE_ROW(f8e5m2, suffix) \
        }                                                                                      \
    }

#endif
