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
#include "common/launch.h"
#include "engine/comm.h"

/* A rank that measures. Belongs to the rank's thread; big, so on the heap. */
struct cm_meter {
    const struct cm_bench *bench;
    struct cm_rank *rank;
    struct cm_comm *comm;
    struct cm_buffers buffers;
    struct cm_diag *diag;
    uint64_t epoch;      /* fills so far: each has its own data */
    int lines;           /* of explanations of faults still to be printed */
    int64_t *sample_ns;  /* time of each timed iteration, or NULL: not wanted */
    struct cm_sums sums; /* of the present data */
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
    int64_t total_ns; /* the timed loop: iters x agg_iters operations */
    int64_t cpu_ns;   /* CPU time of this rank's thread in it, -1: mixed with checks */
    int64_t wrong;    /* wrong elements and guard bytes on this rank, in all checks */
    bool checked;
};

/*
 * The trial of a row: `op` without its buffers, `c` the row's counts; `send`
 * and `recv` are this rank's own.
 */
struct cm_trial cm_trial_of(const struct cm_meter *m, const struct cm_op_args *op,
                            const struct cm_counts *c, size_t send, size_t recv);

/* Collective over all ranks of the job. Any failure ends the job. */
CM_MUST_CHECK enum cm_status cm_measure(struct cm_meter *m, struct cm_trial *t,
                                        struct cm_reading *out);

#endif
