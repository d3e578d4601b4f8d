/* Where chunks lie: from chunk numbers to element ranges, for one operation's sizes. */
#ifndef CM_ENGINE_SPAN_H
#define CM_ENGINE_SPAN_H

#include "base/plan.h"

/* A range of elements. */
struct cm_span {
    size_t at, len;
};

/* What spans depend on. A block has `count` elements unless there is a `matrix` (n x n). */
struct cm_extent {
    int n, pieces;
    size_t count;
    size_t esize;
    const size_t *matrix;
};

/* Chunk `chunk` of IN or OUT of `rank`. */
struct cm_span cm_chunk_span(const struct cm_extent *e, enum cm_space space, int rank,
                             int64_t chunk);

/* The longest chunk of any rank; passes and SCRATCH strides come from it. */
size_t cm_longest_chunk(const struct cm_extent *e);

/* Share `i` of `parts` nearly equal shares of `len` elements; the first is never the smallest. */
struct cm_span cm_share(size_t len, int i, int parts, size_t esize);

/* Elements of IN or OUT of `rank` with `blocks` blocks. */
size_t cm_space_elems(const struct cm_extent *e, enum cm_space space, int rank, int blocks);

#endif
