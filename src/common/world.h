/*
 * The world: which ranks there are, where they run and which groups they
 * form. Computed alike by every process from the same gathered facts.
 */
#ifndef CM_COMMON_WORLD_H
#define CM_COMMON_WORLD_H

#include "base/boot.h"
#include "common/domain.h"
#include "common/launch.h"

struct cm_topo;
struct cm_tune;

struct cm_world {
    int n, nprocs;
    int32_t *first_of;          /* first rank of each process; nprocs + 1 entries */
    struct cm_rank_info *infos; /* n */
    struct cm_domains domains;  /* who shares memory */
    int32_t *node_of;           /* n; ranks of one node share memory */
    int32_t *cpu_of;            /* n: the CPU to pin the rank to, or -1 */
    struct cm_topo *topo;       /* --topo FILE, or NULL */
    int32_t *topo_gpu;          /* with it, n: the GPU in it that a rank stands for */
    struct cm_tune *rules;      /* --tuning FILE, or NULL */
    int ngroups;
    int32_t *group_first; /* where each group starts in members; ngroups + 1 entries */
    int32_t *members;     /* n: world ranks, group by group, each in world order */
    bool oversubscribed;  /* more ranks on this machine than CPUs for them */
    /* CUDA backend: chosen by all processes together */
    bool cuda;
    bool shared_gpus;    /* some ranks share a GPU */
    bool staged;         /* the host runs the plans on copies of the buffers: ranks of several
                            processes share a GPU, or there will be several communicators */
    bool far;            /* some pair needs, or may need, areas in host memory */
    bool far_only;       /* peer access must not be tried */
    int driver, runtime; /* CUDA versions */
    int32_t *gpu_of;     /* n: lowest rank on the same GPU */
    char no_gpu[256];    /* --backend auto took the host: why; "" else */
};

/*
 * Collective over the processes of `b`. Logged by process 0 alone: CM_EINVAL
 * (options differ between processes, too many ranks, an option that does not
 * fit the number of ranks), CM_EUNSUP (too many ranks on GPUs, a wire that does
 * not reach all), CM_ESYS (no GPU, or too few, or shared ones). CM_ENOMEM. *out may be
 * handed to cm_world_free() in any case.
 */
CM_MUST_CHECK enum cm_status cm_world_gather(const struct cm_boot *b, const struct cm_opts *o,
                                             struct cm_world *out);
void cm_world_free(struct cm_world *w);

#endif
