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
    void *base;           /* segment as mapped here */
    const struct cm_layout *layout;
    const struct cm_waiter *waiter;   /* how this rank waits; must outlive the communicator */
    size_t scratch_at, scratch_bytes; /* offset in the segment of this rank's SCRATCH */
    struct cm_force force;
    const struct cm_trace *trace; /* told what is chosen and bound; must outlive it; NULL: nobody */
    const struct cm_comm_gpu *gpu; /* NULL: host. Copied */
};

struct cm_comm;

/*
 * Local. *out untouched unless CM_OK. CM_ENOMEM, CM_EINVAL. A rank opens one
 * communicator in the life of a segment: operations are counted in it.
 */
CM_MUST_CHECK enum cm_status cm_comm_open(const struct cm_comm_args *a, struct cm_comm **out);
void cm_comm_close(struct cm_comm *c); /* NULL is fine */

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

/* Ring order of the communicator (position -> rank), grouped by node; n entries. */
const int32_t *cm_comm_order(const struct cm_comm *c);

/* Bytes of SCRATCH that any plan may need for operations up to `bytes` on n ranks. */
size_t cm_comm_scratch_bytes(size_t bytes, int n);

#endif
