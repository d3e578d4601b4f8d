/* The parts of cm_world_gather(), which all work on the gathered facts. Private to world*.c. */
#ifndef CM_COMMON_WORLD_INT_H
#define CM_COMMON_WORLD_INT_H

#include "common/affinity.h"
#include "common/agree.h"
#include "common/world.h"

/* What a process tells the others. */
struct cm_facts {
    int32_t threads, gpus, device, pid, quota;
    uint64_t net_namespace; /* local sockets, by which memory is shared, do not leave it */
    char host[64], boot_id[40], cpu[64];
    struct cm_cpus cpus;
    struct cm_digest options;
    struct cm_gpu_facts gpu;
};

/*
 * Which processes share memory (w->domains), and with that the nodes: ranks are
 * on one node if the map says so (w->node_of, when there is one) and they share
 * memory. Collective. CM_EINVAL (logged by process 0), CM_ENOMEM, CM_ESYS.
 */
CM_MUST_CHECK enum cm_status cm_world_find_domains(const struct cm_boot *b, const struct cm_opts *o,
                                                   const struct cm_facts *all, struct cm_world *w);

/* A CPU for each rank, machine by machine: w->cpu_of, w->oversubscribed. Local. CM_ENOMEM. */
CM_MUST_CHECK enum cm_status cm_world_assign_cpus(const struct cm_facts *all, int proc,
                                                  struct cm_world *w);

#endif
