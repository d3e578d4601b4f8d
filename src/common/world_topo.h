/* --topo FILE: the machine as a file describes it, in place of what it shows itself. */
#ifndef CM_COMMON_WORLD_TOPO_H
#define CM_COMMON_WORLD_TOPO_H

#include <stdbool.h>

#include "common/world.h"
#include "engine/topo.h"

/* What is said if there are fewer GPUs than ranks: of the path, their number, a node. */
#define CM_TOPO_TOO_FEW "--topo %s: has %d GPUs, and node %d of the job has more ranks"

/*
 * The GPU of each rank: the k-th rank of a node has GPU k. Returns a node with more ranks than
 * `t` has GPUs, or -1.
 */
int cm_topo_assign(const struct cm_topo *t, const int32_t *node, int n, int32_t *gpu);

/*
 * Read the file into w->topo, if --topo names one; the k-th rank of each node
 * stands for its GPU k: w->topo_gpu. Collective, as all ranks must come to one order.
 * Errors of cm_same_file_read() and cm_topo_read(); CM_EINVAL: a node has more ranks than the
 * file has GPUs.
 */
CM_MUST_CHECK enum cm_status cm_world_read_topo(const struct cm_boot *b, const struct cm_opts *o,
                                                struct cm_world *w);

/*
 * Name of the network adapter that a rank's GPU should use: by --topo FILE, or by what this
 * machine shows, which must be the rank's. False: no GPU, or no adapter is known. Local.
 */
bool cm_world_nic(const struct cm_world *w, int rank, char name[CM_TOPO_NAME]);

/*
 * Ring order of a group of world ranks on these nodes, as positions in world[n]:
 * by node, and with a topology inside each node by the ring of its GPUs. gpu_of: as
 * w->topo_gpu. Local.
 */
void cm_world_order(const struct cm_topo *topo, const int32_t *gpu_of, const int32_t *world,
                    const int32_t *node, int n, int32_t *order);

#endif
