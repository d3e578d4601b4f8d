/*
 * --cache touched and cold: what happens between timed operations, each of which
 * then stands alone.
 *
 *   hot      nothing: operations follow each other on the same buffers, as in
 *            nccl-tests. Zero copy is flattered: nobody writes what it reads
 *   touched  each rank reads its results and rewrites its inputs with the same
 *            data, line by line, as an application does
 *   cold     each rank throws its buffers out of all caches
 *
 * None of it is timed. Ranks of one machine that all have a core then leave a
 * barrier at an agreed time of the common clock, because its exit alone is late
 * by as much as a small operation takes. What a time contains beside the
 * operation is one read of the clock (CLOCK_MONOTONIC, some 25 ns); nothing is
 * subtracted.
 *
 * Only the user's buffers are touched or flushed. What an engine keeps for
 * itself (slots, temporaries) stays as its last operation left it.
 */
#ifndef CM_COMMON_CACHE_H
#define CM_COMMON_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cache_lines.h"
#include "common/opts.h"

struct cm_meter;
struct cm_trial;
struct cm_rank;

/* What a rank's meter has for it. Belongs to the rank's thread. */
struct cm_cache {
    enum cm_cache_mode mode;
    const struct cm_flusher *flusher; /* cold; NULL: a larger buffer is streamed instead */
    unsigned char *stream;            /* that buffer, private to the rank */
    size_t stream_bytes;
    bool aligned;    /* ranks start by the clock, else when they leave a barrier */
    int64_t *starts; /* with `aligned`: room for a time of each rank */
};

/*
 * Set m->cache from the rank's options; NULL if they say hot. m->rank and m->ops
 * are set. CM_EUNSUP: the backend measures hot buffers only (rank 0 says so);
 * CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_cache_open(struct cm_meter *m);

void cm_cache_close(struct cm_cache *c); /* NULL is fine */

/*
 * The step between two timed operations, collective over all ranks of the job;
 * the trial's earlier operations are done. Idle trials only keep step. m->cache is
 * not NULL. CM_ETIMEOUT, CM_EABORT as barriers.
 */
CM_MUST_CHECK enum cm_status cm_cache_between(struct cm_meter *m, struct cm_trial *t);

/* The host's part of it; as in struct cm_meter_ops. */
CM_MUST_CHECK enum cm_status cm_cache_host(struct cm_meter *m, struct cm_trial *t);

/* "hot", "touched", "cold" */
const char *cm_cache_name(enum cm_cache_mode mode);

/* Do ranks start by the clock, given these facts about them? */
bool cm_cache_aligns(const struct cm_rank *r);

/* What one read of the clock costs here, in ns. Takes some 20 us. */
double cm_cache_clock_ns(void);

#endif
