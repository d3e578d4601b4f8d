/*
 * How processes of a job find each other before they share memory: rank, size
 * and a small all-gather. Implemented by the launchers of floor 4 (alone, MPI,
 * or by environment and TCP). Used by one thread of each process, at
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

/* For what all processes find out alike: process 0 logs, all return `st`. */
#define CM_REFUSE(b, st, ...) ((b)->proc == 0 ? CM_FAIL((st), __VA_ARGS__) : (st))

#endif
