/*
 * --p2p-level: how far apart two GPUs may be that address each other's memory.
 * The transport has one way for all pairs or the other, so a level is obeyed
 * where all pairs are within it, or none is, and refused where some are.
 */
#ifndef CM_COMMON_P2P_LEVEL_H
#define CM_COMMON_P2P_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/boot.h"
#include "engine/topo.h"

struct cm_rank_info;

/* Pairs of different GPUs of one machine. Plain data, gathered. */
struct cm_p2p_pairs {
    int32_t within, beyond;   /* how many of each */
    char example[2][2][16];   /* [0] a pair within, [1] one beyond: their bus ids */
    char example_kind[2][16]; /* how those are connected: "NV18", "SYS" */
};

/* Count the pairs of GPUs of `t`. `level`: "nvl", "pix", "pxb", "phb" (one NUMA node) or "sys". */
void cm_p2p_count(const struct cm_topo *t, const char *level, struct cm_p2p_pairs *out);

/* Take the pairs of another process's machine into those of all. */
void cm_p2p_add(struct cm_p2p_pairs *all, const struct cm_p2p_pairs *more);

/* Bus ids of the GPUs that the job uses on the machine of rank `mine`, each once, into
   ids[CM_TOPO_GPUS]; returns how many. They belong to infos[n]. */
int cm_list_gpus(const struct cm_rank_info *infos, int n, int mine, const char **ids);

/* Whose GPUs are looked at. */
struct cm_p2p_job {
    const struct cm_rank_info *infos; /* of the n ranks of the job, with bus ids */
    int n;
    int mine;                   /* a rank of this process */
    const struct cm_topo *topo; /* --topo FILE: looked at in place of the machine; NULL: none */
};

/*
 * Look at the machine of each process. Collective over `b`. *far is true if no pair is
 * within the level: all use host memory.
 *
 * CM_EUNSUP: some pairs are within and others are not, or a machine does not
 * tell how its GPUs are connected; logged. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_p2p_level(const struct cm_boot *b, const char *level,
                                          const struct cm_p2p_job *j, bool *far);

#endif
