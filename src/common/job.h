/* A process of the job while it lives. Private to launch.c and ranks.c. */
#ifndef CM_COMMON_JOB_H
#define CM_COMMON_JOB_H

#include <pthread.h>

#include "common/fabric.h"
#include "common/launch.h"
#include "common/network.h"
#include "common/watchdog.h"
#include "common/world.h"

/* One rank of this process. */
struct cm_member {
    struct cm_job *job;
    struct cm_rank r;
    struct cm_inject inject; /* as it concerns the rank */
    pthread_t thread;
    enum cm_status status;
};

struct cm_job {
    const struct cm_opts *opts;
    cm_arena_fn *arena;
    cm_rank_fn *body;
    void *arg;
    int64_t setup_ns, rows_ns, teardown_ns; /* deadlines */
    const struct cm_launcher *launcher;
    struct cm_boot boot; /* gather NULL: not started */
    struct cm_watchdog *watchdog;
    struct cm_world world;
    struct cm_inject inject;
    struct cm_trace trace;
    struct cm_domain_boot domain_ctx;
    struct cm_boot domain; /* the processes that share memory with this one */
    const struct cm_wire *wire;
    struct cm_layout layout;
    struct cm_segment *segment;
    struct cm_fabric *fabric;         /* to the other domains; NULL: there are none */
    struct cm_room room;              /* what arenas must fit in */
    size_t arena_bytes;               /* of a rank's buffers; in the segment unless on a GPU */
    const struct cm_backend *backend; /* NULL: host. If so, the rest: */
    struct cm_gpus *gpus;
    struct cm_rank_gpu *gpu;   /* of this process's ranks */
    void **far;                /* n: areas in the segment, in the order of world.members; or NULL */
    struct cm_member *members; /* of this process; NULL: set-up did not get that far */
    int local, started;        /* how many there are, how many have threads */
    struct cm_bootstrap bootstrap;
    bool has_library;
    char library[256];
};

/* Open the devices of this process, if the job runs on any. Every process calls it. */
CM_MUST_CHECK enum cm_status cm_job_open_gpus(struct cm_job *j);

/* The scarcest memory of the job, the same on all processes. Every process calls it. */
CM_MUST_CHECK enum cm_status cm_job_room(const struct cm_job *j, struct cm_room *out);

/* Bytes of a rank's arena in the segment, if its buffers have arena_bytes. */
CM_MUST_CHECK enum cm_status cm_job_host_bytes(const struct cm_job *j, size_t *out);

/*
 * Payload of a slot between nodes, where kernels fill and drain them: *out, untouched else.
 * Each pair has the memory pinned, so it is that of the slots between GPUs.
 */
CM_MUST_CHECK enum cm_status cm_job_slot_bytes(const struct cm_job *j, size_t *out);

/* Lay out the ranks' GPU areas, once the segment is open. */
CM_MUST_CHECK enum cm_status cm_job_fill_gpus(struct cm_job *j);

void cm_job_close_gpus(struct cm_job *j);

/* Run the job's body on all ranks of this process; blocks until they are back. The job's status. */
CM_MUST_CHECK enum cm_status cm_ranks_run(struct cm_job *j);

/* The status with which the job was ended, CM_OK if it was not. */
enum cm_status cm_ranks_status(const struct cm_job *j);

/* After an abort: have all ranks of this domain left, or do they within a second? Without: true. */
bool cm_ranks_left(const struct cm_job *j);

/* Statuses with which all ranks run to their end: CM_OK, CM_EDATA, CM_ETRUNC. */
bool cm_status_is_orderly(enum cm_status st);

#endif
