/* Equal shares of a range: how channels, pieces and thread blocks divide a chunk. */
#ifndef CM_BASE_SHARE_H
#define CM_BASE_SHARE_H

#include <stdint.h>

enum { CM_SHARE_LINE = 64, CM_SHARE_ROUND_FROM = 4 };

/*
 * Length of all but the last of `parts` shares of `len` elements of `esize`
 * bytes: whole cache lines once there are several in a share. Share i is
 * [i * each, i * each + each), cut at len; the first is never the smallest.
 */
static inline uint64_t cm_share_each(uint64_t len, uint32_t parts, uint32_t esize)
{
    uint64_t each = len / parts + (len % parts != 0);
    uint32_t line = CM_SHARE_LINE / esize;

    if (each >= CM_SHARE_ROUND_FROM * line)
        each = (each + line - 1) / line * line;
    return each;
}

#endif
