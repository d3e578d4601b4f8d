/*
 * Measuring one placement of one row, as one rank does it: first call,
 * warm-up, timed loop, checks. All ranks of the job go through the same
 * barriers, also those whose group has nothing to run (idle).
 */
#ifndef CM_COMMON_MEASURE_H
#define CM_COMMON_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffers.h"
#include "common/check.h"
#include "common/coll.h"
#include "common/engine.h"
#include "common/launch.h"
#include "engine/comm.h"

struct cm_cache;
struct cm_meter_gpu;
struct cm_memory;

/* Marks of a timed stretch: CM_MARKS intervals lie between marks 0 .. CM_MARKS. */
enum { CM_MARKS = 1024 };

/* A rank that measures. Belongs to the rank's thread; big, so on the heap. */
struct cm_meter {
    const struct cm_bench *bench;
    struct cm_rank *rank;
    const struct cm_meter_ops *ops;
    struct cm_comm *comm; /* set by ops->open, as are the buffers */
    struct cm_side side;  /* who runs the operations now; zero: comm */
    int steps;            /* of a timed loop; 0: cm_steps_of() */
    struct cm_buffers buffers;
    struct cm_diag *diag;
    /* Barrier of those who measure together; NULL: of all ranks of the job */
    enum cm_status (*meet)(struct cm_meter *m);
    uint64_t first_op;             /* as in struct cm_comm_args */
    int64_t least_ns;              /* --inject bw: the trial's fastest operation; 0: none yet */
    uint64_t epoch;                /* fills so far: each has its own data */
    int lines;                     /* of explanations of faults still to be printed */
    int64_t *sample_ns;            /* time of each timed step, or NULL: not wanted */
    struct cm_sums sums;           /* of the present data */
    bool capturing;                /* -G: operations are recorded now, not run */
    int64_t mark_ns[CM_MARKS + 1]; /* host: clock at each mark */
    struct cm_cache *cache;        /* --cache; NULL: hot */
    struct cm_meter_gpu *gpu;      /* NULL on the host */
};

/* One placement of one row on this rank; set by cm_trial_of(). */
struct cm_trial {
    struct cm_op_args op;
    bool idle;         /* this group runs nothing, but keeps step with the others */
    size_t send, recv; /* elements of this rank's IN and OUT */
    size_t row_bytes;  /* size of the row */
    unsigned char *in, *out;
    unsigned char *region; /* in place: the buffer that holds both */
    size_t region_bytes;
    uint64_t seed, stale_seed; /* of the data in IN, and of those before */
    int fills;
    int64_t ops;    /* operations since the last fill */
    bool unchecked; /* OUT is a result that nobody looked at yet */
};

struct cm_reading {
    int64_t first_ns; /* the first call */
    int64_t total_ns; /* the timed loop: cm_steps_of() x cm_step_ops() operations */
    int64_t cpu_ns;   /* CPU time of this rank's thread in it, -1: mixed with checks */
    int64_t wrong;    /* wrong elements and guard bytes on this rank, in all checks */
    bool checked;
};

/*
 * What measuring needs of a backend. measure.c calls these in its one order of
 * things; operations themselves go straight to cm_comm_run(), or to m->side. All run on the
 * rank's thread. "Blocks" means: until what the rank has enqueued is done, with
 * the waiter's deadline and abort word.
 */
struct cm_meter_ops {
    /* Memory and communicator: m->buffers, m->comm. Collective. close() also if it fails. */
    enum cm_status (*open)(struct cm_meter *m);
    /* orderly: all ranks close, and may wait for each other. Fine after a failed open. */
    void (*close)(struct cm_meter *m, bool orderly);

    /* Data of t->seed in IN, poison and guards everywhere else. May only enqueue it. */
    enum cm_status (*fill)(struct cm_meter *m, const struct cm_trial *t);
    /* Hold all buffers, whose operations are done, against cm_meter_args(). Adds to *c. */
    enum cm_status (*check)(struct cm_meter *m, const struct cm_trial *t, struct cm_check *c);
    /* The fault `corrupt`, after an operation that is done. */
    enum cm_status (*corrupt)(struct cm_meter *m, const struct cm_trial *t,
                              enum cm_phase_name phase, int64_t iter);

    /* Between timed operations: the trial's buffers as m->cache has it. May only enqueue it. NULL:
       this backend measures hot buffers only. */
    enum cm_status (*recache)(struct cm_meter *m, struct cm_trial *t);

    /* Blocks until all operations of the rank are done. */
    enum cm_status (*sync)(struct cm_meter *m);
    /*
     * `ops` more operations are enqueued: blocks while too many are not done, because a launch
     * that blocks for want of room in a queue has no deadline. NULL: operations block themselves.
     */
    enum cm_status (*pace)(struct cm_meter *m, int64_t ops);
    /* Note the time at which what came before is done, as mark k in [0, CM_MARKS]. Never blocks. */
    enum cm_status (*mark)(struct cm_meter *m, int k);
    /* ns[i]: time between marks i and i + 1, for i < n. Blocks until mark n is reached. */
    enum cm_status (*elapsed)(struct cm_meter *m, int n, int64_t *ns);

    /* Graphs (-G); NULL: there are none. One lives at a time. */
    enum cm_status (*capture_begin)(struct cm_meter *m);
    /* Always after a begin; `st`: how recording went, returned if it is a failure. */
    enum cm_status (*capture_end)(struct cm_meter *m, enum cm_status st);
    enum cm_status (*replay)(struct cm_meter *m);
    void (*graph_free)(struct cm_meter *m); /* none is fine */

    /* A named range in a profiler's time line; NULL: none. */
    void (*range_push)(const char *name);
    void (*range_pop)(void);
    /* Memory of the rank's GPU so far, if -M wants to know; NULL: none. */
    enum cm_status (*memory)(struct cm_meter *m, struct cm_memory *out);
};
extern const struct cm_meter_ops cm_meter_host;
extern const struct cm_meter_ops cm_meter_cuda; /* builds with CUDA: through cm_backend_cuda */

/*
 * Timed steps of a row and the operations in each: an iteration has agg_iters;
 * with -G a step is one replay of the whole loop.
 */
static inline int cm_steps_of(const struct cm_opts_run *o)
{
    return o->graph > 0 ? o->graph : o->iters;
}

static inline double cm_step_ops(const struct cm_opts_run *o)
{
    return (double)o->agg_iters * (o->graph > 0 ? o->iters : 1);
}

/* Steps of the meter's timed loop. */
static inline int cm_meter_steps(const struct cm_meter *m)
{
    return m->steps > 0 ? m->steps : cm_steps_of(&m->rank->opts->run);
}

/* Does every step have a mark, or only the whole loop? */
static inline bool cm_meter_marks_steps(const struct cm_meter *m)
{
    const struct cm_opts_run *o = &m->rank->opts->run;

    return m->sample_ns != NULL || o->check_every > 0 || o->blocking == 3 ||
           o->cache != CM_CACHE_HOT;
}

/*
 * The trial of a row: `op` without its buffers, `c` the row's counts; `send`
 * and `recv` are this rank's own.
 */
struct cm_trial cm_trial_of(const struct cm_meter *m, const struct cm_op_args *op,
                            const struct cm_counts *c, size_t send, size_t recv);

/* Collective over all ranks of the job. Any failure ends the job. */
CM_MUST_CHECK enum cm_status cm_measure(struct cm_meter *m, struct cm_trial *t,
                                        struct cm_reading *out);

/*
 * --compare: the same trial by each of the n sides in turns: all warm up, then `rounds` rounds
 * in which each has a timed loop of m->steps, another one first each time, then the checked
 * launches of all. Sides that are idle only keep step. round_ns[i]: time of side i's loops;
 * total_ns of out[i] is their sum. Collective over all ranks of the job. Any failure ends it.
 */
struct cm_contest {
    const struct cm_side *sides;
    int n, rounds;
    bool idle[CM_MAX_SIDES];
    struct cm_reading out[CM_MAX_SIDES];
    int64_t round_ns[CM_MAX_SIDES][CM_MAX_ROUNDS];
};
CM_MUST_CHECK enum cm_status cm_measure_contest(struct cm_meter *m, struct cm_trial *t,
                                                struct cm_contest *c);

/* For backends: the trial's buffers and what they must hold. Sums are those in the meter. */
struct cm_check_args cm_meter_args(const struct cm_meter *m, const struct cm_trial *t);

/*
 * For backends: open m->comm at the rank's place in the segment; `gpu` as in
 * cm_comm_args. m->buffers is set. CM_ENOMEM, CM_EINVAL.
 */
CM_MUST_CHECK enum cm_status cm_meter_open_comm(struct cm_meter *m, const struct cm_comm_gpu *gpu);

#endif
