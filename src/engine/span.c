/*
 * Chunk arithmetic. Invariant: for equal arguments every rank computes equal
 * spans, the pieces of a block cover it once, and the first piece is the
 * longest, so that passes counted from it suffice for all.
 */
#include "engine/span.h"

#include "base/share.h"

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

struct cm_span cm_share(size_t len, int i, int parts, size_t esize)
{
    size_t each = cm_share_each(len, (uint32_t)parts, (uint32_t)esize);
    size_t at = each * (size_t)i;

    if (at >= len)
        return (struct cm_span){len, 0};
    return (struct cm_span){at, len - at < each ? len - at : each};
}

/* alltoallv: blocks are packed in rank order, so a block starts where the ones before it end. */
static struct cm_span matrix_span(const struct cm_extent *e, enum cm_space space, int rank,
                                  int block)
{
    const size_t *m = e->matrix;
    size_t n = (size_t)e->n, r = (size_t)rank, b = (size_t)block;
    struct cm_span s = {0, space == CM_IN ? m[r * n + b] : m[b * n + r]};

    for (size_t k = 0; k < b; k++)
        s.at += space == CM_IN ? m[r * n + k] : m[k * n + r];
    return s;
}

struct cm_span cm_chunk_span(const struct cm_extent *e, enum cm_space space, int rank,
                             int64_t chunk)
{
    int block = (int)(chunk / e->pieces), piece = (int)(chunk % e->pieces);
    struct cm_span s;

    if (e->matrix != NULL)
        s = matrix_span(e, space, rank, block);
    else
        s = (struct cm_span){(size_t)block * e->count, e->count};
    if (e->pieces > 1) {
        struct cm_span p = cm_share(s.len, piece, e->pieces, e->esize);

        s.at += p.at;
        s.len = p.len;
    }
    return s;
}

size_t cm_longest_chunk(const struct cm_extent *e)
{
    size_t longest = e->count;

    if (e->matrix != NULL) {
        longest = 0;
        for (size_t i = 0; i < (size_t)e->n * (size_t)e->n; i++)
            longest = max_size(longest, e->matrix[i]);
    }
    return cm_share(longest, 0, e->pieces, e->esize).len;
}

size_t cm_space_elems(const struct cm_extent *e, enum cm_space space, int rank, int blocks)
{
    size_t n = (size_t)e->n, r = (size_t)rank, sum = 0;

    if (e->matrix == NULL)
        return e->count * (size_t)blocks;
    for (size_t b = 0; b < n; b++)
        sum += space == CM_IN ? e->matrix[r * n + b] : e->matrix[b * n + r];
    return sum;
}
