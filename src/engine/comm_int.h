/* The communicator's inside, shared by comm.c, bind.c, exec_host.c and ll.c. */
#ifndef CM_ENGINE_COMM_INT_H
#define CM_ENGINE_COMM_INT_H

#include "engine/algo.h"
#include "engine/comm.h"
#include "engine/gang.h"
#include "engine/tune.h"
#include "kernels/kernels.h"

enum { CM_BINDS = 32 };

/* What the memory of the communicator allows. */
struct cm_limits {
    int channels;      /* of a pair's ports */
    int workers;       /* lines of a rank */
    size_t slot_bytes; /* payload of a slot */
};

/* One end of a FIFO. The sender's `seen` caches head, the receiver's caches tail. */
struct cm_port {
    struct cm_port_lines *lines;
    unsigned char *slots;
    uint64_t count; /* slots filled (sender) or freed (receiver) so far */
    uint64_t seen;
    bool far;       /* payloads may stay outside of the slots: struct cm_slot_head.far_at */
    uint64_t owing; /* sender: the last such slot is before this number */
};

/* What makes two operations alike; addresses are not part of it. */
struct cm_key {
    enum cm_coll coll;
    enum cm_dtype dtype;
    enum cm_op op;
    int root;
    size_t count;
    const size_t *matrix;
    bool in_place;
};

struct cm_bound_operand {
    uint8_t space; /* enum cm_space */
    int32_t rank;
    size_t at; /* bytes from the space's start, channel share included */
};

struct cm_bound_wait {
    int32_t rank, line;
    uint32_t phase;
};

/* A fold with loops expanded and offsets resolved. Ranges index the pools of struct cm_bound. */
struct cm_bound_fold {
    int32_t from, nfrom, to, nto, wait, nwait;
    size_t len; /* elements, over all passes */
    bool post, divide;
    bool done_first; /* post CM_PHASE_DONE before this fold: the exit waits begin */
    bool fills;      /* a port is among its `to`: what it stores is read again soon */
    /* Operands, -1: none. The memory that slots to other nodes may be sent from; where a slot
       from another node may arrive instead of being copied there. See bind_far.c. */
    int32_t refer, place;
};

struct cm_bound_worker {
    int32_t first, nfolds;
    int32_t enter, exit; /* passes but the first begin, but the last end there; from `first` */
    int32_t channel, line;
};

/* LL shape: what is published, and how OUT comes from what the peers publish. */
enum cm_ll_take { CM_LL_REDUCE, CM_LL_CONCAT, CM_LL_COPY, CM_LL_NOTHING };
struct cm_ll_shape {
    bool publish;
    size_t publish_bytes;
    enum cm_ll_take take;
    size_t take_at;    /* where my part starts in a published buffer */
    size_t take_bytes; /* its size */
    int from;          /* CM_LL_COPY: whose buffer */
};

struct cm_bound {
    struct cm_key key;
    struct cm_choice choice;
    uint64_t sig;
    size_t esize, in_bytes, out_bytes;    /* of an element, this rank's IN and OUT */
    cm_reduce_fn *reduce, *reduce_cached; /* the latter for folds that fill ports */
    bool stream;
    int divisor;
    bool premul; /* IN operands are scaled by their owner's factor (mulsum) */
    bool ll;
    struct cm_ll_shape shape;
    /* plan, bound */
    int nworkers;
    struct cm_bound_worker workers[CM_MAX_WORKERS];
    struct cm_bound_fold *folds;
    struct cm_bound_operand *operands;
    struct cm_bound_wait *waits;
    int nfolds, noperands, nwaits, cap_folds, cap_operands, cap_waits;
    size_t cap; /* elements of a slot */
    int reps;   /* GPU: blocks that share a worker's chunks; host: 1 */
    size_t npasses;
    size_t scratch_used, scratch_step; /* bytes; the latter: of one block of a worker, GPU */
    /* GPU: where the plan was uploaded to, if `upload` is the executor's present count */
    uint64_t uploaded;
    uint64_t upload;
};

/* An executor of GPUs. The host's is the communicator itself. */
struct cm_exec {
    const char *name;
    const char *tuning; /* table of choices; NULL: the host's */
    bool splits;        /* channels beyond the plan's own are blocks that share its chunks */
    bool reopens;       /* it goes on where an earlier communicator ended (first_op) */
    enum cm_status (*open)(struct cm_comm *c); /* fills c->limits and c->state */
    void (*close)(struct cm_comm *c);          /* also after a failed open */
    /* Last word on a choice, e.g. where GPUs cannot reach each other. */
    enum cm_status (*choose)(const struct cm_comm *c, const struct cm_key *k, struct cm_choice *ch);
    bool (*owns)(const struct cm_comm *c, const void *p, size_t bytes); /* in the rank's arena? */
    enum cm_status (*run)(struct cm_comm *c, struct cm_bound *b, const struct cm_op_args *a);
    enum cm_status (*sync)(struct cm_comm *c);
};

struct cm_comm {
    int rank, n;
    int32_t *world, *order, *node;
    void *base;
    const struct cm_layout *layout;
    const struct cm_waiter *waiter;
    size_t scratch_at, scratch_bytes, arena_at, arena_end;
    struct cm_force force;
    const struct cm_tune *rules; /* the user's, asked first, or NULL */
    struct cm_tune *tune;
    const struct cm_trace *trace; /* or NULL */
    bool contiguous;              /* the ring order is 0..n-1 */
    bool by_topology;             /* it was given, else by node */
    int nodes;                    /* of the node map */
    bool one_node;
    const struct cm_remote *remote; /* some ranks share no memory with this one; NULL: all do */
    struct cm_rank_shared **peer;   /* n */
    struct cm_rank_shared *self;
    uint64_t op;                 /* number of the latest operation started */
    uint64_t first_op;           /* operations of this communicator come behind it */
    uint64_t *finished;          /* n: latest operation known to be finished by that rank */
    uint64_t finished_min;       /* a lower bound of them all */
    struct cm_port *send, *recv; /* n * layout->channels each */
    size_t slot_stride;
    size_t llc_bytes;
    const void **src; /* n + 1 pointers: operands of the fold that runs */
    void **dst;
    int *scale;
    struct cm_bound *last;
    struct cm_bound *binds[CM_BINDS];
    int next_bind;
    struct cm_limits limits;
    const struct cm_exec *exec; /* NULL: host */
    struct cm_comm_gpu gpu;
    void *state; /* the executor's */
};

/* bind.c: plan -> bound folds for a key and a choice; the caller's: cm_bound_free(). */
CM_MUST_CHECK enum cm_status cm_bind(struct cm_comm *c, const struct cm_key *k,
                                     const struct cm_choice *choice, struct cm_bound **out);
void cm_bound_free(struct cm_bound *b);

/* bind_far.c: which payloads need no slots between nodes; all folds are bound. */
void cm_bind_far(const struct cm_comm *c, struct cm_bound *b);

/* exec_host.c, ll.c: run one operation, c->op being its number. Blocks; errors as cm_comm_run. */
CM_MUST_CHECK enum cm_status cm_exec_host(struct cm_comm *c, const struct cm_bound *b,
                                          const struct cm_op_args *a);
CM_MUST_CHECK enum cm_status cm_ll_run(struct cm_comm *c, const struct cm_bound *b,
                                       const struct cm_op_args *a);

/* ll.c: the LL shape of a key; false if the collective has none or it does not fit a slot. */
bool cm_ll_shape(const struct cm_comm *c, const struct cm_key *k, struct cm_ll_shape *out);

/* choose.c: what runs for a key. CM_EUNSUP, logged. */
CM_MUST_CHECK enum cm_status cm_choose(const struct cm_comm *c, const struct cm_key *k,
                                       struct cm_choice *out);

/* choose.c: bytes of the larger buffer of a rank: what the tuning table goes by. */
size_t cm_key_largest(const struct cm_comm *c, const struct cm_key *k);

/* bind.c: bytes of this rank's IN or OUT for a key. */
size_t cm_key_bytes(const struct cm_comm *c, const struct cm_key *k, enum cm_space space);

/* trace.c: tell the trace about the communicator, and about an operation of `bytes` just bound. */
void cm_trace_comm(const struct cm_comm *c);
void cm_trace_bound(const struct cm_comm *c, const struct cm_bound *b, size_t bytes);

/* Report that `peer` (comm rank) runs another operation than we do; ends the job. */
enum cm_status cm_comm_mismatch(struct cm_comm *c, int peer);

static inline struct cm_line *cm_line_of(const struct cm_comm *c, int rank, int worker)
{
    return &c->peer[rank]->lines[worker];
}

/* Line 0 tells which operation a rank is in. Release: whoever sees it sees what came before. */
static inline void cm_publish_sig(struct cm_comm *c, uint64_t sig)
{
    atomic_store_explicit(&c->self->lines[0].sig[c->op & 1], sig, memory_order_release);
}

static inline uint64_t cm_seq(uint64_t op, uint32_t phase)
{
    return op << CM_PHASE_BITS | phase;
}

static inline size_t cm_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif
