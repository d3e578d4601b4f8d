/* Blocks of test data, shared by data.c and data_reduce.c only. */
#ifndef CM_COMMON_DATA_BLOCK_H
#define CM_COMMON_DATA_BLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/data_gen.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { CM_BLOCK = 512 };

/* A block of elements in the making: one word each, narrowed when it is stored. */
union cm_block {
    uint32_t u32[CM_BLOCK]; /* types of up to 32 bits */
    uint64_t u64[CM_BLOCK];
};

/* A run of indices with one value of the upper 32 bits. */
struct span {
    uint32_t page, low, n;
};

static inline struct span span_of(size_t first, size_t count)
{
    uint32_t low = (uint32_t)first;
    uint64_t room = ((uint64_t)1 << 32) - low;
    uint64_t n = count < CM_BLOCK ? count : CM_BLOCK;

    return (struct span){(uint32_t)((uint64_t)first >> 32), low, (uint32_t)(n < room ? n : room)};
}

static inline void block_store(const union cm_block *b, uint32_t n, size_t bytes, void *dst)
{
    uint8_t narrow8[CM_BLOCK];
    uint16_t narrow16[CM_BLOCK];

    switch (bytes) {
    case 1:
        for (uint32_t j = 0; j < n; j++)
            narrow8[j] = (uint8_t)b->u32[j];
        memcpy(dst, narrow8, n);
        return;
    case 2:
        for (uint32_t j = 0; j < n; j++)
            narrow16[j] = (uint16_t)b->u32[j];
        memcpy(dst, narrow16, n * sizeof(narrow16[0]));
        return;
    case 4:
        memcpy(dst, b->u32, n * sizeof(b->u32[0]));
        return;
    default:
        memcpy(dst, b->u64, n * sizeof(b->u64[0]));
    }
}

/* One block of rank's IN. */
void cm_data_input_block(const struct cm_gen *g, int rank, struct span s, size_t bytes,
                         union cm_block *out);

#endif
