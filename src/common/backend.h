/*
 * Where the ranks' buffers live and who computes on them. The host backend is
 * what the harness does by itself; the CUDA backend is linked only if it was
 * built, and everything CUDA is reached through this one table.
 */
#ifndef CM_COMMON_BACKEND_H
#define CM_COMMON_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/device.h"
#include "base/gpu.h"
#include "base/status.h"

struct cm_gang;
struct cm_gpu;
struct cm_gpus;
struct cm_meter_ops;
struct cm_opts;
struct cm_rank_info;

/* What one process brings to the gather of the world. Plain data. */
struct cm_gpu_facts {
    int32_t built; /* this binary has the CUDA backend */
    int32_t count, driver, runtime;
    struct {
        char bus_id[16];
        unsigned char uuid[16];
        char name[64];
        uint64_t bytes;
        uint32_t peers; /* bit j: it can address memory of device j of this process */
        uint32_t reserved;
    } dev[CM_GPU_DEVICES];
    char why[160]; /* count 0: the reason */
};

/* Memory in which the arenas of some ranks must find place. Plain data. */
struct cm_room {
    int32_t ranks;
    uint64_t bytes;
    char where[48]; /* "memory", "memory of GPU 0000:1b:00.0" */
};

/* What a rank's thread has of its GPU; zero on the host. */
struct cm_rank_gpu {
    struct cm_gpu *gpu;
    struct cm_gang *gang;
    int member;  /* in the gang */
    bool staged; /* several processes share a device: the host runs the plans of all ranks */
    /* for cm_p2p_open() with the rank's group; not if staged */
    struct cm_gpu_area area;
    bool far_only;
    void **far; /* group_n areas in host memory, or NULL: all pairs have peer access */
};

struct cm_backend {
    const char *name;
    void (*facts)(struct cm_gpu_facts *out); /* never fails; the process's main thread */
    /*
     * Open the devices of this process's ranks (`mine`, `local` of them), load the kernels, form
     * gangs: one per device, or with `staged` one per rank. Fills gpu, gang, member and staged of
     * ranks[local]. Main thread. CM_ENOMEM, CM_ESYS, CM_EUNSUP.
     */
    enum cm_status (*open)(const struct cm_rank_info *mine, int local, const struct cm_opts *o,
                           bool staged, struct cm_rank_gpu *ranks, struct cm_gpus **out);
    void (*close)(struct cm_gpus *g); /* after all rank threads ended; NULL is fine */
    /* The layout of a rank's memory in a communicator of n ranks. CM_EINVAL: too large. */
    enum cm_status (*area)(const struct cm_opts *o, int n, size_t arena_bytes,
                           struct cm_gpu_area *out);
    /* What the rank's device has free for the arenas of room->ranks ranks of n: fills the rest. */
    enum cm_status (*room)(const struct cm_rank_gpu *r, const struct cm_opts *o, int n,
                           struct cm_room *room);
    enum cm_status (*enter)(const struct cm_rank_gpu *r); /* a rank's thread, before all else */
    const struct cm_meter_ops *meter; /* how a rank fills, runs, times and checks: measure.h */
};

/* NULL in a build without CUDA. */
extern const struct cm_backend cm_backend_cuda __attribute__((weak));

#endif
