/*
 * How processes of a job find each other before they share memory: rank, size
 * and a small all-gather. Implemented by the launchers of floor 4 (alone, MPI;
 * later environment rendezvous). Used by one thread of each process, at
 * set-up only.
 */
#ifndef CM_BASE_BOOT_H
#define CM_BASE_BOOT_H

#include <stddef.h>

#include "base/status.h"

struct cm_boot {
    int proc, nprocs;
    void *ctx;
    /* Gather `bytes` of every process, in process order, into all[nprocs * bytes]. Blocks. */
    enum cm_status (*gather)(const struct cm_boot *b, const void *mine, size_t bytes, void *all);
};

/*
 * The same status on all processes: the first that is not CM_OK, in process
 * order. Collective; the process that failed has logged why.
 */
CM_MUST_CHECK enum cm_status cm_boot_agree(const struct cm_boot *b, enum cm_status mine);

#endif
