/*
 * Measuring one pair, as one rank of it does: a communicator of its ranks alone, and
 * everything else as for a row. A pair that does not end is given up, and the job goes on.
 */
#ifndef CM_COMMON_FIND_MEASURE_H
#define CM_COMMON_FIND_MEASURE_H

#include "common/coll.h"
#include "common/find_judge.h"
#include "common/launch.h"

/* What a rank tells the others after a round. Plain data. */
struct cm_find_record {
    int32_t outcome;  /* enum cm_find_outcome; of who had nothing to run: CM_FIND_RIGHT */
    int32_t stop;     /* why to stop; 0: no reason */
    int32_t apart;    /* ranks of its unit share no memory with it */
    int64_t ns;       /* the timed loop, by its median step */
    int64_t noise_ns; /* deviation of that */
    int64_t wrong;
};

/* A rank's means; belongs to its thread. */
struct cm_find_side;
CM_MUST_CHECK enum cm_status cm_find_side_open(const struct cm_bench *b, struct cm_rank *r,
                                               struct cm_find_side **out); /* CM_ENOMEM */
void cm_find_side_close(struct cm_find_side *s);                           /* NULL is fine */

/*
 * Run the driver's collective on the `n` world ranks of `members`, of which this is one.
 * Collective over them. `epoch`: the same on all of them, larger each time, from 1. Blocks;
 * a wait that lasts longer than a quarter of the row's deadline (20 s at most), or all of it
 * longer than half, ends it as CM_FIND_HUNG. Any status but CM_OK ends the job.
 */
CM_MUST_CHECK enum cm_status cm_find_measure(struct cm_find_side *s, const int32_t *members, int n,
                                             uint64_t epoch, struct cm_find_record *out);

/* Microseconds of an operation, and its bandwidth as cm_find_run has it, from the loop's time. */
void cm_find_figures(const struct cm_bench *b, const struct cm_opts *o, int n, double ns,
                     struct cm_find_run *run);

#endif
