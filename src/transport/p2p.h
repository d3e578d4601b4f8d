/*
 * Wire p2p: how the ranks of a node reach each other's GPU memory, and the
 * ports to other nodes.
 *
 *   same process     the pointer itself, after enabling peer access
 *   other process    CUDA IPC
 *   no peer access   pinned host memory of the node's segment ("far" areas)
 *   other node       the segment's ports, pinned here, carried by a wire between nodes
 *
 * Linked only into builds with CUDA.
 */
#ifndef CM_TRANSPORT_P2P_H
#define CM_TRANSPORT_P2P_H

#include "base/device.h"
#include "base/gpu.h"
#include "base/shared.h"

/* Ranks that share no memory with this one. */
struct cm_p2p_remote {
    void *base; /* the segment with the ports, as mapped here */
    const struct cm_layout *layout;
    const int32_t *world;    /* n: world ranks of the group */
    const bool *send, *recv; /* by world rank: does a wire carry ports to it, from it? */
};

struct cm_p2p_args {
    int rank, n;             /* in the group whose areas are connected */
    int proc;                /* my process, a number that differs between processes */
    int members;             /* ranks of my process on my device */
    struct cm_gpu *gpu;      /* in use on this thread */
    struct cm_gpu_area area; /* filled; equal on all ranks */
    uint64_t scratch_at;     /* offset in the area of this rank's scratch */
    bool far_only;           /* do not try peer access (NCCL_P2P_DISABLE, --wire shm) */
    /* far areas: far[r] is that of rank r in the node's segment, as mapped here; NULL: none */
    void **far;
    const struct cm_p2p_remote *remote; /* NULL: all ranks share memory */
    void *abort;                        /* the job's abort word: starts a page of host memory */
    struct cm_gpu_hint *hint;           /* this rank's: a page of its own (cm_rank_shared.hint) */
    /* Gather `bytes` of every rank of the group into all[n * bytes], with the job's deadline. */
    enum cm_status (*gather)(void *ctx, const void *mine, size_t bytes, void *all);
    void *ctx;
};

struct cm_p2p {
    int rank, n;
    struct cm_gpu *gpu;
    struct cm_gpu_area area;
    unsigned char *base; /* own area on the device */
    bool *near;          /* n: is that rank reached by peer access, in both directions? */
    bool *remote;        /* n: is it on another node? */
    bool all_near;       /* between all ranks of the group: pull and push are possible */
    int blocks;          /* thread blocks that every rank can have resident */
    /* inside of the node: "p2p", "p2p+ipc", "pinned host memory", "p2p and pinned host memory" */
    const char *how;
    struct cm_p2p_inner *inner;
};

/*
 * Collective over the n ranks, each on its own thread. Allocates this rank's
 * area, writes its state, connects it with the others. Ports to other nodes are
 * not touched but pinned: what lies in them stays. CM_ENOMEM, CM_EUNSUP (a pair needs
 * host memory and `far` is NULL), CM_EINVAL (ports of another depth than the area's),
 * CM_ETIMEOUT, CM_EABORT, CM_ESYS.
 */
CM_MUST_CHECK enum cm_status cm_p2p_open(const struct cm_p2p_args *a, struct cm_p2p **out);

/*
 * Collective after an orderly run: nobody frees what another still maps. With
 * `orderly` false it waits for nobody. NULL is fine.
 */
void cm_p2p_close(struct cm_p2p *p, bool orderly);

#endif
