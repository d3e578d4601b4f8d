/*
 * Pairs: which ranks of other domains a rank exchanges slots with, in any
 * operation that its driver may run. Found by building the plans, so nothing
 * has to be asked: both ends come to the same pairs.
 */
#ifndef CM_COMMON_PAIRS_H
#define CM_COMMON_PAIRS_H

#include <stdbool.h>

#include "common/world.h"

/* Of the ranks of one process: send[i * n + r], recv[i * n + r] for its i-th rank and world rank
   r. False for ranks that share memory. */
struct cm_pairs {
    int first, local, n; /* lowest rank of the process, how many it has, world ranks */
    bool *send, *recv;
};

/* Those of process `proc`. Local. CM_ENOMEM. *out may be handed to cm_pairs_free() in any case. */
CM_MUST_CHECK enum cm_status cm_pairs_find(const struct cm_opts *o, const struct cm_world *w,
                                           int proc, struct cm_pairs *out);
void cm_pairs_free(struct cm_pairs *p);

#endif
