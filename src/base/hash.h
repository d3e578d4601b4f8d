/* FNV-1a of bytes, in 64 bits: equal for equal bytes on all machines. Not against an attacker. */
#ifndef CM_BASE_HASH_H
#define CM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define CM_HASH_START 0xcbf29ce484222325U

/* Go on with `h`, which is CM_HASH_START or an earlier result. */
static inline uint64_t cm_hash(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 0x100000001b3U;
    return h;
}

#endif
