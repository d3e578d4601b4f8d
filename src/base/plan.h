/*
 * Plans: what one rank does in one collective, as plain data.
 *
 * A plan has one instruction, the fold: wait for what it needs, take one local
 * chunk and/or what peers offer, reduce in the order of its operands, store
 * the result to local and/or remote places, post that it is done. LOOP..END
 * repeats. A plan does not depend on the message size.
 *
 * Space and chunks. IN is the send buffer, OUT the receive buffer, SCRATCH a
 * staging area of the rank. IN has in_blocks blocks, OUT out_blocks blocks
 * (all_gather: 1 and n; alltoall: n and n; all_reduce: 1 and 1); each block is
 * cut into `pieces` nearly equal pieces; chunk = block * pieces + piece. Chunk
 * k of SCRATCH has room for the longest chunk. The length of a fold is that of
 * the chunk of its first IN or OUT operand; with none, of the chunk its first
 * PORT names; with SCRATCH alone, of the longest chunk.
 *
 * Synchronisation, direct mode. Each worker of each rank owns one line, a
 * counter with one writer. fold.post adds one; cm_wait_on compares with a
 * peer's counter. Phase 1 is by convention "arrived": my IN holds its data, my
 * OUT may be written, my addresses are published. A wait for a phase of 0 or less
 * holds at once (first rounds of a loop). The executor posts
 * CM_PHASE_DONE by itself when a worker has done its work: before its trailing
 * folds that only wait (the exit waits, if any), else at its end.
 *
 * Synchronisation, copy mode. A PORT operand is one slot of the bounded FIFO
 * from one rank to another (per channel): as `to` it waits for a free slot,
 * fills and publishes it; as `from` it waits for the next full slot and
 * releases it after the fold. Copy plans need no waits and no posts.
 *
 * Mixed form: direct mode on several nodes. Lines and buffers are those of ranks
 * of the same node only, ports lead to other nodes only.
 *
 * Passes. With ports a chunk may be longer than a slot: then all workers run
 * again and again, each time on the next part of every chunk. Folds without
 * operands at the begin of a worker belong to its first pass only, those at its end
 * (the exit) to the last. SCRATCH is not divided.
 */
#ifndef CM_BASE_PLAN_H
#define CM_BASE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum cm_coll {
    CM_ALL_REDUCE,
    CM_ALL_GATHER,
    CM_REDUCE_SCATTER,
    CM_BROADCAST,
    CM_REDUCE,
    CM_ALLTOALL,
    CM_ALLTOALLV,
    CM_GATHER,
    CM_SCATTER,
    CM_SENDRECV,
    CM_HYPERCUBE,
    CM_NCOLLS
};

/* What a collective is, for engine, harness and tests alike. */
struct cm_coll_info {
    const char *name;  /* "all_reduce" */
    bool rooted;       /* has a root argument */
    bool reduces;      /* has a reduction operation */
    bool in_per_rank;  /* IN has n blocks, else 1 */
    bool out_per_rank; /* OUT has n blocks, else 1 */
    bool in_place;     /* has an in-place form */
};
extern const struct cm_coll_info cm_colls[CM_NCOLLS];
int cm_coll_find(const char *name); /* index or -1 */

enum cm_mode {
    CM_MODE_COPY,  /* payload goes through ports */
    CM_MODE_DIRECT /* payload is loaded from and stored to the peers' buffers, inside a node */
};

enum cm_space { CM_IN, CM_OUT, CM_SCRATCH, CM_PORT };

enum cm_index_how { CM_PLAIN, CM_MODULO, CM_XOR };

/*
 * An index, affine in the two loop variables (i0 the outer, i1 the inner, 0 outside):
 *   v = base + c0 * i0 + c1 * i1;  MODULO: v mod `mod`, never negative;
 *   XOR: base ^ (c0 * i0 + c1 * i1); then, if perm, v = plan->perm[v].
 * At last v = v * mul + add (used to address piece `add` of block v).
 */
struct cm_index {
    int32_t base, c0, c1;
    int32_t mod;
    int32_t mul, add; /* mul 0 means 1 */
    uint8_t how;      /* enum cm_index_how */
    bool perm;
};

struct cm_operand {
    uint8_t space;     /* enum cm_space */
    uint8_t numbering; /* PORT: CM_IN or CM_OUT, whose `chunk` gives the payload's length */
    int32_t rank;      /* owner of IN/OUT/SCRATCH; PORT: the peer */
    struct cm_index chunk;
};

enum { CM_PHASE_DONE = 0xfffff, CM_PHASE_BITS = 20 };

struct cm_wait_on {
    int32_t rank;
    int32_t worker;        /* of that rank */
    struct cm_index phase; /* value its line must have reached, or CM_PHASE_DONE (plain) */
};

enum cm_code { CM_FOLD, CM_LOOP, CM_END };

struct cm_fold {
    uint8_t code;  /* enum cm_code */
    bool post;     /* add one to this worker's line afterwards */
    bool complete; /* the result holds every rank's contribution: avg divides here */
    int32_t trips; /* LOOP: number of repetitions, may be 0 */
    /* FOLD: ranges in the plan's pools */
    int32_t from, nfrom;
    int32_t to, nto;
    int32_t wait, nwait;
};

struct cm_worker {
    int32_t first, nfolds; /* range in plan->folds */
    int32_t channel;       /* which share of every chunk it moves; also the channel of its ports */
};

enum { CM_MAX_CHANNELS = 8, CM_MAX_WORKERS = 16, CM_MAX_RANKS = 4096 };

/* Immutable after building. Owned by who built it: cm_plan_free(). */
struct cm_plan {
    enum cm_coll coll;
    enum cm_mode mode;
    const char *algo; /* static string */
    int rank, n, root;
    int pieces;    /* pieces of a block */
    int scratch;   /* chunks of SCRATCH used */
    bool ports;    /* copy mode, mixed form */
    int min_depth; /* with ports: FIFO depth below which it would deadlock (1 or 2) */
    int nchannels, nworkers;
    struct cm_worker workers[CM_MAX_WORKERS];
    struct cm_fold *folds;
    struct cm_operand *operands;
    struct cm_wait_on *waits;
    int32_t *perm; /* n entries or NULL */
    int nfolds, noperands, nwaits;
    int cap_folds, cap_operands, cap_waits; /* builder's business */
    enum cm_status status;                  /* first failure while building */
};

/* Value of an index for loop variables i0, i1. `perm` may be NULL if ix->perm is not set. */
static inline int64_t cm_index_at(const struct cm_index *ix, const int32_t *perm, int64_t i0,
                                  int64_t i1)
{
    int64_t step = ix->c0 * i0 + ix->c1 * i1;
    int64_t v = ix->base + step;

    if (ix->how == CM_XOR)
        v = (int64_t)((uint32_t)ix->base ^ (uint32_t)step);
    if (ix->how == CM_MODULO) {
        v %= ix->mod;
        v = v < 0 ? v + ix->mod : v;
    }
    if (ix->perm)
        v = perm[v];
    return v * (ix->mul ? ix->mul : 1) + ix->add;
}

#endif
