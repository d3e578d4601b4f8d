/*
 * Where the ranks' buffers live and who computes on them. The host backend is
 * what the harness does by itself; the CUDA backend is linked only if it was
 * built, and everything CUDA is reached through this one table.
 */
#ifndef CM_COMMON_BACKEND_H
#define CM_COMMON_BACKEND_H

#include <stdint.h>

#include "base/device.h"
#include "base/status.h"

struct cm_gpus;
struct cm_job;
struct cm_meter;
struct cm_meter_ops;
struct cm_rank;

/* What one process brings to the gather of the world. Plain data. */
struct cm_gpu_facts {
    int32_t built; /* this binary has the CUDA backend */
    int32_t count, driver, runtime;
    struct {
        char bus_id[16];
        unsigned char uuid[16];
        char name[64];
        uint64_t bytes;
    } dev[CM_GPU_DEVICES];
    char why[160]; /* count 0: the reason */
};

/* What a rank's thread has of its GPU; zero on the host. */
struct cm_rank_gpu {
    struct cm_gpu *gpu;
    struct cm_gang *gang;
    int member; /* in the gang */
    bool staged; /* several processes share the device: the host runs the plans */
};

struct cm_backend {
    const char *name;
    void (*facts)(struct cm_gpu_facts *out); /* never fails; any thread */
    /*
     * Main thread, once the world is known and the segment is open, before the rank threads:
     * opens the devices of this process's ranks, forms gangs, preloads kernels, fills each
     * member's r.gpu. Logged failures as cm_gpu_open().
     */
    enum cm_status (*open)(struct cm_job *j, struct cm_gpus **out);
    void (*close)(struct cm_gpus *g);  /* after all rank threads ended; NULL is fine */
    const struct cm_meter_ops *meter; /* how a rank fills, runs, times and checks: measure.h */
};

/* NULL in a build without CUDA. */
extern const struct cm_backend cm_backend_cuda __attribute__((weak));

#endif
