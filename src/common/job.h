/* A process of the job while it lives. Private to launch.c and ranks.c. */
#ifndef CM_COMMON_JOB_H
#define CM_COMMON_JOB_H

#include <pthread.h>

#include "common/launch.h"
#include "common/watchdog.h"
#include "common/world.h"

/* One rank of this process. */
struct cm_member {
    struct cm_job *job;
    struct cm_rank r;
    pthread_t thread;
    enum cm_status status;
};

struct cm_job {
    const struct cm_opts *opts;
    enum cm_status (*arena)(const struct cm_opts *o, int n, void *arg, size_t *out);
    cm_rank_fn *body;
    void *arg;
    int64_t setup_ns, rows_ns, teardown_ns; /* deadlines */
    const struct cm_launcher *launcher;
    struct cm_boot boot; /* gather NULL: not started */
    struct cm_watchdog *watchdog;
    struct cm_world world;
    struct cm_inject inject;
    struct cm_trace trace;
    const struct cm_wire *wire;
    struct cm_layout layout;
    struct cm_segment *segment;
    struct cm_member *members; /* of this process; NULL: set-up did not get that far */
    int local, started;        /* how many there are, how many have threads */
    bool has_library;
    char library[256];
};

/* Run the job's body on all ranks of this process; blocks until they are back. The job's status. */
CM_MUST_CHECK enum cm_status cm_ranks_run(struct cm_job *j);

/* After an abort: have all ranks of the job left, or do they within a second? Without: true. */
bool cm_ranks_left(const struct cm_job *j);

/* Statuses with which all ranks run to their end: CM_OK, CM_EDATA, CM_ETRUNC. */
bool cm_status_is_orderly(enum cm_status st);

#endif
