/*
 * Row sizes of every collective, from the shape of its buffers: a collective
 * whose buffers hold one block each takes the whole size; otherwise the size
 * is that of the buffer with a block per rank, and in place the other buffer
 * is the rank's own block of it.
 */
#include "common/coll.h"

enum { BLOCK_ALIGN = 16 };

static size_t block_of(size_t elems, size_t bytes, int n)
{
    size_t unit = bytes < BLOCK_ALIGN ? BLOCK_ALIGN / bytes : 1;

    return elems / (size_t)n / unit * unit;
}

void cm_counts_of(const struct cm_bench *b, size_t elems, size_t bytes, int n,
                  struct cm_counts *out)
{
    const struct cm_coll_info *c = &cm_colls[b->coll];
    bool whole = !c->in_per_rank && !c->out_per_rank;
    size_t block = whole ? elems : block_of(elems, bytes, n);
    size_t send = c->in_per_rank ? block * (size_t)n : block;
    size_t recv = c->out_per_rank ? block * (size_t)n : block;

    *out = (struct cm_counts){
        .send = send,
        .recv = recv,
        .param = block,
        .alg = (send > recv ? send : recv) - (b->without_own ? block : 0),
        .in_step = c->out_per_rank && !c->in_per_rank ? block : 0,
        .out_step = c->in_per_rank && !c->out_per_rank ? block : 0,
    };
}
