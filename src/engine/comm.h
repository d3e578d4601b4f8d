/*
 * The communicator: one rank's door to the collective engine.
 *
 * A communicator belongs to one thread. Buffers handed to cm_comm_run must lie
 * in the rank's arena of the segment (cm_arena_at), because peers load and
 * store there.
 */
#ifndef CM_ENGINE_COMM_H
#define CM_ENGINE_COMM_H

#include "base/dtype.h"
#include "base/plan.h"
#include "base/shared.h"
#include "base/trace.h"
#include "base/wait.h"

enum cm_proto { CM_PROTO_AUTO, CM_PROTO_SIMPLE, CM_PROTO_LL };

/* What the user forces; NULL, -1 or 0 leave the choice to the tuning table. */
struct cm_force {
    const char *algo; /* name of a row of cm_algos, or NULL */
    int mode;         /* enum cm_mode or -1 */
    enum cm_proto proto;
    int channels; /* 0: automatic; else at most layout->channels */
    size_t chunk; /* payload of a slot in use, 0: automatic; at most layout->slot_bytes */
};

struct cm_gang;
struct cm_tune;
struct cm_gpu;
struct cm_p2p;
struct cm_exec;

/* A rank on a GPU. Everything must outlive the communicator. */
struct cm_comm_gpu {
    const struct cm_exec *exec; /* cm_exec_cuda or cm_exec_staged */
    struct cm_gpu *gpu;         /* in use on this thread */
    struct cm_gang *gang;       /* ranks of this process on the device, and which one I am */
    int member;
    struct cm_p2p *p2p; /* the areas of this communicator's ranks; staged: NULL */
    /* staged: this rank's device memory [arena, arena + bytes), mirrored by its arena in the
       segment at the same offsets */
    unsigned char *arena;
    size_t arena_bytes;
};

struct cm_comm_args {
    int rank, n;          /* in this communicator */
    const int32_t *world; /* world rank of each of the n ranks */
    const int32_t *node;  /* node number of each of the n ranks, or NULL: one node */
    const int32_t *order; /* ring order, grouped by node, or NULL: by node, then by rank */
    void *base;           /* segment as mapped here */
    const struct cm_layout *layout;
    const struct cm_waiter *waiter;   /* how this rank waits; must outlive the communicator */
    size_t scratch_at, scratch_bytes; /* offset in the segment of this rank's SCRATCH */
    struct cm_force force;
    const struct cm_tune *rules;  /* before those of the shipped table; must outlive it; or NULL */
    const struct cm_trace *trace; /* told what is chosen and bound; must outlive it; NULL: nobody */
    const struct cm_comm_gpu *gpu; /* NULL: host. Copied */
    /*
     * Operations of this communicator are numbered from first_op + 1 on, below CM_MAX_OP. The
     * same on all its ranks, and not below the last operation that any of them has run on this
     * segment; 0 for the first communicator.
     */
    uint64_t first_op;
};

/* Numbers of operations have as many bits as flags of the LL protocol leave them. */
#define CM_MAX_OP ((uint64_t)1 << 40)

struct cm_comm;

/*
 * Local. *out untouched unless CM_OK. CM_ENOMEM, CM_EINVAL.
 *
 * A rank may open one communicator after the other on a segment, with other ranks
 * and in another order each time: lines, flags and ports go on counting. Between the
 * last operation on one and the opening of the next, all ranks of both must have met
 * (a barrier of the harness): nobody reads what the former have published any more.
 * CM_EUNSUP: a second one on GPUs whose kernels run the plans.
 */
CM_MUST_CHECK enum cm_status cm_comm_open(const struct cm_comm_args *a, struct cm_comm **out);
void cm_comm_close(struct cm_comm *c); /* NULL is fine */

/*
 * After an operation that did not end: throw away what it left in the ports to world
 * rank `rank` from the `n` world ranks of `from`, all of which share the segment. Each
 * of them calls it, after all have left the operation; they meet again before the next
 * communicator. Ports to ranks elsewhere cannot be used again.
 */
void cm_comm_discard(void *base, const struct cm_layout *l, int rank, const int32_t *from, int n);

/*
 * One operation. count = elements of a block: all of it for all_reduce,
 * broadcast, reduce and sendrecv; per rank for the others (all_gather sends
 * count and receives n x count). in_place: `in` lies inside `out` as
 * nccl-tests has it (all_gather, gather: in = out + rank x count;
 * reduce_scatter, scatter: out = in + rank x count; else in == out).
 */
struct cm_op_args {
    enum cm_coll coll;
    enum cm_dtype dtype;
    enum cm_op op;
    int root;
    size_t count;
    const void *in;
    void *out;
    bool in_place;
    /* alltoallv: elements from row to column, n x n, the same on all ranks; IN and OUT are packed
       in rank order. The array must stay unchanged while the communicator lives. */
    const size_t *matrix;
};

/*
 * Run it: collective over the n ranks, in the same order on all. Blocks until
 * OUT is complete and IN may be rewritten. Failures are logged once:
 * CM_EINVAL, CM_EUNSUP (forced algorithm has no such form), CM_EMISMATCH,
 * CM_ETIMEOUT, CM_EABORT, CM_ENOMEM; after any of them the communicator is unusable.
 */
CM_MUST_CHECK enum cm_status cm_comm_run(struct cm_comm *c, const struct cm_op_args *a);

/*
 * On GPUs (cm_exec_cuda) cm_comm_run() enqueues on the device's stream and
 * returns; buffers are device memory inside the rank's area. The first call
 * with new arguments binds and uploads a plan, so it must not be captured.
 * cm_comm_sync() blocks until everything enqueued on the stream has ended, with
 * the deadline and the abort word of the waiter. On the host it does nothing.
 */
CM_MUST_CHECK enum cm_status cm_comm_sync(struct cm_comm *c);

/* cm_exec_cuda: a number that changes as operations end; while it does, no wait is too long. */
uint32_t cm_comm_progress(const struct cm_comm *c);

/* Does this rank enqueue for its gang (record events, capture)? Always true on the host. */
bool cm_comm_leads(const struct cm_comm *c);

/* Executors of GPUs; linked only into builds with CUDA (exec_cuda.c, exec_staged_cuda.c). */
extern const struct cm_exec cm_exec_cuda;   /* kernels run the plans */
extern const struct cm_exec cm_exec_staged; /* the host runs them on copies of the buffers */

/* What cm_comm_run would choose, for headers and reports. */
struct cm_choice {
    const char *algo;
    enum cm_mode mode;
    enum cm_proto proto;
    int channels;
    size_t chunk; /* slot payload in use; 0 in direct mode */
};
CM_MUST_CHECK enum cm_status cm_comm_choice(const struct cm_comm *c, const struct cm_op_args *a,
                                            struct cm_choice *out);

/* Bytes of SCRATCH that any plan may need for operations up to `bytes` on n ranks. */
size_t cm_comm_scratch_bytes(size_t bytes, int n);

#endif
