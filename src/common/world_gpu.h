/* Which GPU each rank gets. Private to world*.c and its test. */
#ifndef CM_COMMON_WORLD_GPU_H
#define CM_COMMON_WORLD_GPU_H

#include "common/world.h"

/* What one process brings, of those on one machine. */
struct cm_gpu_claim {
    int threads, gpus; /* -t, -g: their product is the number of its ranks */
    int device;        /* --device, or -1 */
    const char *host;
    const struct cm_gpu_facts *facts;
};

/*
 * Choose the backend and, on CUDA, the device of every rank: w->infos[] and
 * the GPU part of *w. The same on all processes; logged by process 0 alone.
 * w->n, first_of and infos[].proc are given. CM_ESYS: no GPU though asked for,
 * too few, or shared ones without --oversubscribe. CM_EUNSUP: too many ranks,
 * or a build without CUDA. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_world_choose_gpus(const struct cm_boot *b, const struct cm_opts *o,
                                                  const struct cm_gpu_claim *claims,
                                                  struct cm_world *w);

#endif
