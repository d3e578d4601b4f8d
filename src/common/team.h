/*
 * The team: all ranks of the job, as the harness synchronises them between
 * measurements (barrier, small all-gather). Runs over the shared segment, so
 * each wait has the job's deadline and abort word, and no thread calls MPI.
 * Source of the method: flat single-writer sequence lines; O(n) reads per rank.
 * Between domains of memory one rank of each exchanges messages (control.h).
 */
#ifndef CM_COMMON_TEAM_H
#define CM_COMMON_TEAM_H

#include "base/wait.h"

struct cm_control;

/* One rank's handle; a plain value owned by the rank's thread. */
struct cm_team {
    int rank, n;
    const struct cm_waiter *waiter;
    void *base;
    const struct cm_layout *layout;
    uint64_t seq; /* operations so far; starts at 0 on every rank */
    /* Set for one rank of each domain of memory: it exchanges with the others. NULL: not I. */
    struct cm_control *control;
};

/* Blocks until all n ranks called it. CM_ETIMEOUT, CM_EABORT as cm_spin_slow. */
CM_MUST_CHECK enum cm_status cm_team_barrier(struct cm_team *t);

/*
 * Gather `bytes` (<= CM_TEAM_BYTES) of every rank into all[n * bytes] on every
 * rank, in rank order; also a barrier. Errors as above.
 */
CM_MUST_CHECK enum cm_status cm_team_gather(struct cm_team *t, const void *mine, size_t bytes,
                                            void *all);

/* OR of a flag over all ranks; also a barrier. Errors as above, *any untouched then. */
CM_MUST_CHECK enum cm_status cm_team_or(struct cm_team *t, bool mine, bool *any);

#endif
