/*
 * Inner parts of the verifier: an abstract machine that runs the plans of all
 * ranks on symbolic values. verify_step.c steps the workers; memory, values,
 * the order of events and the user have a file each.
 */
#ifndef CM_ENGINE_VERIFY_INT_H
#define CM_ENGINE_VERIFY_INT_H

#include "engine/verify.h"

/* Plans with ports run two passes in every second call, so that their boundaries are seen too. */
enum { VM_PASSES = 2, VM_UNDEFINED = 0, VM_NONE = -1 };

/* Which ranks' contributions to which chunk a value holds; the set itself lies in vm->sets. */
struct vm_value {
    uint64_t order; /* hash of the expression that made it */
    int32_t chunk;  /* IN chunk that the contributions come from */
    int32_t extent; /* which length it has */
    int32_t run;    /* number of the call and pass */
    bool raw;       /* stands in a user's buffer, IN's factors (mulsum) not yet applied */
    bool reduced;   /* came through a `complete` fold */
};

/* One load of a cell, remembered until a store that is ordered after it. */
struct vm_load {
    int32_t thread, next;
    uint32_t clock;
};

/* One chunk, share of one channel, of one rank's buffer; aliased places are one cell. */
struct vm_cell {
    int32_t value;
    int32_t input;  /* original input here, or VM_UNDEFINED */
    int32_t writer; /* thread of the last store, at its `clock` */
    uint32_t clock;
    int32_t loads; /* list, VM_NONE: empty */
};

/* FIFO from one rank to another on one channel, `depth` slots. */
struct vm_port {
    int src, dst;           /* ranks */
    int producer, consumer; /* threads, VM_NONE: not known yet */
    uint64_t head, tail;    /* slots published and released so far */
    uint64_t stamp;         /* last fold that named it: a fold may do so once */
    int32_t *values;
    uint32_t *clocks; /* full slot: its writer's; free slot: its reader's */
};

/* A post of a worker. */
struct vm_mark {
    int call;
    int64_t phase;
};

/* A worker of a rank, all calls long. */
struct vm_thread {
    int rank, worker, channel;
    int call, pass;
    int pc;          /* relative to the worker's first fold */
    int level;       /* loops open */
    int body[2];     /* pc after each open LOOP */
    int32_t left[2]; /* trips left, this one included */
    int64_t i[2];    /* loop variables */
    int64_t phase;   /* posts in this call */
    int enter;       /* pc at which all passes but the first begin */
    int exit;        /* pc at which its line shows DONE: the trailing folds only wait */
    bool done;       /* it does */
    bool over;       /* waits for the other workers of its rank */
    int folds;       /* run in the first call and pass */
    struct vm_mark *marks;
    int nmarks, cap_marks;
    uint32_t *marked; /* clocks at all marks, nthreads each */
};

struct vm_access {
    const struct cm_operand *operand;
    struct vm_port *port; /* PORT, else NULL */
    struct vm_cell *cell; /* else */
    int64_t chunk;
};

struct vm {
    struct cm_plan *const *plans;
    int n;
    const struct cm_verify_args *args;
    struct cm_proof *proof;
    enum cm_status status; /* CM_ENOMEM ends the run */
    const struct cm_coll_info *info;
    enum cm_coll coll;
    int pieces, nchannels, scratch; /* scratch: the largest of all plans */
    int in_chunks, out_chunks;

    struct vm_thread *threads;
    int nthreads;
    int *first;       /* first thread of each rank; n + 1 entries */
    uint32_t *clocks; /* nthreads vectors of nthreads */

    struct vm_cell *cells;
    int rank_cells;
    struct vm_load *loads;
    int nloads, cap_loads, free_loads;
    struct vm_value *values;
    uint64_t *sets;
    int nvalues, cap_values, words;
    uint64_t *expected_order; /* per OUT chunk and channel, 0: not known yet */

    struct vm_port **ports; /* n x n x channels, made on first use */
    uint64_t stamp;
    struct vm_access *access; /* of the fold at hand: sources, then destinations */
    int32_t *sources;         /* values of its sources */
    uint64_t *units;          /* traffic per rank, in chunk shares, first call and pass */
};

/* Record the first fault (or note that memory is out) and return false. `t` may be NULL. */
bool vm_fault(struct vm *vm, const struct vm_thread *t, const char *fmt, ...) CM_PRINTF(3, 4);
bool vm_nomem(struct vm *vm);
static inline bool vm_failed(const struct vm *vm)
{
    return !vm->proof->ok || vm->status != CM_OK;
}
/* Room for element number n of a pool. False: out of memory. */
bool vm_grow(struct vm *vm, void **pool, int n, int *cap, size_t size);

static inline int vm_passes(const struct vm *vm, int call)
{
    return vm->plans[0]->ports ? 1 + call % VM_PASSES : 1;
}
static inline int vm_run(int call, int pass)
{
    return call * VM_PASSES + pass;
}
static inline int vm_id(const struct vm *vm, const struct vm_thread *t)
{
    return (int)(t - vm->threads);
}
static inline uint32_t *vm_clock(const struct vm *vm, const struct vm_thread *t)
{
    return vm->clocks + (size_t)vm_id(vm, t) * (size_t)vm->nthreads;
}

/* verify_step.c: run to the end, or to a fault. */
void vm_run_all(struct vm *vm);

/* verify_user.c: the user touches all buffers of a rank, after call `call` and before it. */
bool vm_user_checks(struct vm *vm, int rank, int call);
bool vm_user_writes(struct vm *vm, int rank, int call);

/* verify_mem.c */
bool vm_mem_open(struct vm *vm);
void vm_mem_close(struct vm *vm);
struct vm_cell *vm_cell(const struct vm *vm, enum cm_space space, int rank, int64_t chunk,
                        int channel, int pass);
/* The cell that a worker means; NULL after a fault: there is no such chunk. */
struct vm_cell *vm_cell_at(struct vm *vm, const struct vm_thread *t, enum cm_space space, int rank,
                           int64_t chunk);
/* Note that `t` stores now; a fault that names `what` if that is a race. */
bool vm_note_store(struct vm *vm, const struct vm_thread *t, struct vm_cell *c, const char *what);
/* Value of a source as the executor would read it, VM_NONE after a fault. */
int vm_load(struct vm *vm, const struct vm_thread *t, const struct vm_access *x);
bool vm_store(struct vm *vm, const struct vm_thread *t, const struct vm_access *x, int value);

/* verify_value.c */
bool vm_value_open(struct vm *vm);
void vm_value_close(struct vm *vm);
/* A rank's input chunk: two values in a row, raw and as read; VM_NONE: out of memory. */
int vm_new_input(struct vm *vm, int rank, int chunk, int run);
uint64_t vm_leaf_order(int rank);
bool vm_is_full(const struct vm *vm, int value); /* holds every rank's contribution */
/* What length an operand of `t` has, VM_NONE: SCRATCH has none of its own. */
int vm_extent(const struct vm *vm, const struct vm_thread *t, const struct vm_access *x);
/* Value of a fold over its sources, VM_NONE after a fault. */
int vm_combine(struct vm *vm, const struct vm_thread *t, const struct cm_fold *f,
               const int32_t *sources);

/* verify_sync.c */
bool vm_sync_open(struct vm *vm);
void vm_sync_close(struct vm *vm);
void vm_join(const struct vm *vm, struct vm_thread *t, const uint32_t *clocks);
void vm_tick(const struct vm *vm, struct vm_thread *t);
/* Publish the clock of `t` as `phase` of its line. */
bool vm_mark_phase(struct vm *vm, struct vm_thread *t, int64_t phase);
/* The clocks under which a wait of `t` ends; NULL: not yet, or a fault. */
const uint32_t *vm_line_at(struct vm *vm, const struct vm_thread *t, const struct cm_wait_on *w);
struct vm_port *vm_port_of(struct vm *vm, const struct vm_thread *t, const struct cm_operand *o,
                           bool sends);
uint32_t *vm_slot_clock(const struct vm *vm, const struct vm_port *q, uint64_t slot);

#endif
