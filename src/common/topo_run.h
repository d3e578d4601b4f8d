/* Topology in a run: the ring order of ranks on GPUs, and what looks wrong with the machine. */
#ifndef CM_COMMON_TOPO_RUN_H
#define CM_COMMON_TOPO_RUN_H

#include "common/launch.h"
#include "engine/topo.h"

/*
 * Ring order of the rank's group, for struct cm_comm_args.order: by node, and
 * inside a node the ring of its GPUs whose weakest link is strongest. With --topo FILE it is
 * that of the file. Else *found is
 * false, and order[group_n] as it was, where that says nothing: on the host, with fewer than
 * four or more than CM_TOPO_GPUS ranks, with several ranks on a GPU, or if the system
 * does not show the GPUs.
 *
 * Collective over the world on GPUs, as the first rank of each group looks for
 * all; else local. Errors of cm_team_gather(), CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_topo_run_order(struct cm_rank *r, int32_t *order, bool *found);

/*
 * Tell what looks wrong with this machine: ranks that share a core, GPUs with
 * fewer NVLinks than the others. Local; its lowest rank tells, the others
 * nothing. Returns how many lines were told.
 */
int cm_topo_run_warnings(const struct cm_rank *r, cm_topo_tell *tell, void *arg);

#endif
