/*
 * A rig for the engine on simulated GPUs: the host code of src/engine as it
 * is, the kernels of src/kernels on the simulator, and between them a device
 * of plain memory instead of CUDA. One process, one thread.
 *
 * Each rank is a communicator with an area of its own. cm_comm_run() does not
 * launch, it records; the rig starts what was recorded in stream order: a
 * rank's next operation begins when its last one has ended, while others may
 * be ahead or behind. As soon as a rank's operation has ended its buffers are
 * compared with the definition (common/ref.h), byte for byte, and rewritten,
 * whatever the other ranks are still doing. So an exit that comes too early
 * shows, as wrong data or as a race.
 *
 * Ranks may be on two nodes, each with a segment of its own. Between two steps the
 * rig then carries some of the ports' slots, as a wire would.
 *
 * Built like the simulator's tests (cmsim.cc), in their flavours; the C files
 * too, with the flavour's C compiler:
 *
 *   plain  gcc   -std=gnu11 -O2 -g -Isrc -Itests/sim -c FILE
 *   ASan   gcc   ... -fsanitize=address,undefined -fno-sanitize-recover=undefined
 *   TSan   clang ... -fsanitize=thread
 *   FILE   tests/sim/{exec_rig*,test_exec_*}.c and
 *          src/engine/{exec_cuda,upload_cuda}.c, which need no CUDA
 *
 * and linked by the flavour's C++ compiler, each test_exec_*.o with
 * all exec_rig*.o, the two engine objects, the kernels' objects of src/kernels/exec_*.cu in the
 * flavour, the runtime's objects (cmsim*.o without sanitizer) and libcollmark.a.
 */
#ifndef CM_TESTS_SIM_EXEC_RIG_H
#define CM_TESTS_SIM_EXEC_RIG_H

#include "cmsim_host.h"
#include "engine/exec_cuda_int.h"

enum { RIG_RANKS = 8 };

enum rig_reach {
    RIG_NEAR,   /* all ranks reach each other's memory */
    RIG_FAR,    /* none do: all through host memory */
    RIG_HALVES, /* the first and the second half of the ranks are far from each other */
    RIG_NODES   /* they are on two nodes */
};

/* What stays the same for a row of operations. Where 0 stands for a default, it is in brackets. */
struct rig_setup {
    int n;
    struct cm_force force;
    int channels, depth;            /* [4], [2] */
    size_t slot_bytes, inbox_bytes; /* [1024], [2048] */
    uint32_t ll_mask;               /* [all bits] */
    size_t room;                    /* bytes for IN and for OUT [256 K] */
    enum rig_reach reach;
    int threads;    /* of a block [what the executor chose] */
    bool gang;      /* one launch plays all ranks */
    bool interpret; /* PLAN kernels run what was bound for PASS */
    struct cmsim_options sim;
};

/* One operation, on all ranks. */
struct rig_op {
    enum cm_coll coll;
    enum cm_dtype dtype;
    enum cm_op op;
    int root;
    size_t count;
    bool in_place;
    const size_t *matrix;
    int in_skew, out_skew; /* elements that IN and OUT start behind 16 bytes */
    bool arbitrary;        /* data whose sums are not exact: the order of reduction shows */
    uint32_t word;         /* not 0: IN holds nothing but this word */
    int again;             /* times that the same launch is replayed afterwards */
    bool forces;           /* what follows is forced from here on, instead of the setup's */
    struct cm_force force;
};

typedef void rig_thunk_fn(void **args);

struct rig_launch {
    enum cm_gpu_kernel kernel;
    rig_thunk_fn *thunk;
    struct cm_gpu_args args;
    int threads;
};

/* Ranks that share memory. */
struct rig_node {
    struct cm_layout layout;
    void *segment;
    int32_t local_of[RIG_RANKS];
};

/* The device of one rank: what was launched last. */
struct cm_gpu {
    struct rig_launch launch;
};

struct rig_rank {
    struct cm_gpu gpu;
    struct cm_gang *gang;
    struct cm_p2p p2p;
    struct cm_comm_gpu link;
    struct cm_waiter waiter;
    struct cm_comm *comm;
    unsigned char *area, *far;   /* far: in host memory, or NULL */
    unsigned char *room[2];      /* IN's and OUT's, in the area */
    int at, round, wait, launch; /* operation, replay, steps before it starts, simulator's id */
};

struct rig {
    struct rig_setup set;
    struct cm_gpu_area area;
    struct rig_node node[2]; /* the second with RIG_NODES only */
    struct cm_remote remote; /* what the other node is to a waiter; with RIG_NODES only */
    size_t scratch_at;
    uint64_t random;
    const struct rig_op *ops;
    int nops;
    struct rig_data **data; /* of each operation, once a rank has begun it */
    struct rig_rank rank[RIG_RANKS];
};

/* Launches of each kernel so far, and races that ThreadSanitizer has reported. */
extern int rig_launches[CM_GPU_NKERNELS];
extern int rig_races;

/* A kernel; NULL if the program is linked without those of this type or operation. */
rig_thunk_fn *rig_thunk(enum cm_gpu_kernel k, enum cm_dtype t, enum cm_op op);

/* NULL: it said why. */
struct rig *rig_open(const struct rig_setup *set);
void rig_close(struct rig *r);

/*
 * Run all operations on all ranks and check them. false: something was wrong,
 * and the first few messages on stderr say what; the rig can only be closed.
 */
bool rig_run(struct rig *r, const struct rig_op *ops, int nops);

/* The same in one: a rig for one row of operations. */
bool rig_once(const struct rig_setup *set, const struct rig_op *ops, int nops);

/* By hand: begin `op` on one rank, as operation 0 of nobody's row; nothing is checked. */
bool rig_start(struct rig *r, int rank, const struct rig_op *op);
/* Run for a while. true: all launches have ended. */
bool rig_settle(struct rig *r);
void rig_abort(struct rig *r);
struct cm_gpu_hint rig_hint(const struct rig *r, int rank); /* what its kernels tell the host */

/* The node of a rank. */
struct rig_node *rig_node(const struct rig *r, int rank);

/* ---- exec_rig_run.c needs of exec_rig.c ------------------------------------------------------ */

/* Let the executor enqueue `op` for a rank whose buffers these are; it is in rank->gpu.launch. */
bool rig_enqueue(struct rig *r, int rank, const struct rig_op *op, void *in, void *out);
/* ... into the simulator: the launch of a rank, or with RIG_RANKS one for all. -1: an error. */
int rig_submit(struct rig *r, int rank);
/* Only between these two may anybody touch a rank's buffers (AddressSanitizer). */
void rig_unlock(struct rig *r, int rank);
void rig_lock(struct rig *r, int rank);

/* ---- exec_rig_wire.c: ports between two nodes ------------------------------------------------ */

/* How a rank's kernels reach one on the other node, as cm_p2p_open() would fill it. */
struct cm_gpu_peer rig_remote_peer(const struct rig *r, int rank, int peer);
/* Carry some of what is filled; on one node nothing. false: a slot is no slot, it said how. */
bool rig_carry(struct rig *r);

/* ---- exec_rig_data.c: buffers before and after an operation ---------------------------------- */

struct rig_data;
struct rig_data *rig_data_make(const struct rig *r, const struct rig_op *op, uint64_t seed);
void rig_data_free(struct rig_data *d);
/* Write a rank's rooms as they must be before the operation; *in and *out are its buffers. */
void rig_data_fill(const struct rig_data *d, int rank, unsigned char *const room[2], void **in,
                   void **out);
/* Are they as they must be afterwards? If not, says where. */
bool rig_data_check(const struct rig_data *d, int rank, unsigned char *const room[2]);

#endif
