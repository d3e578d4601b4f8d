/* A rank's measuring on its GPU, shared by measure_cuda.c, check_cuda.c and time_cuda.c. */
#ifndef CM_COMMON_MEASURE_CUDA_H
#define CM_COMMON_MEASURE_CUDA_H

#include "base/data_gpu.h"
#include "common/measure.h"
#include "engine/gang.h"
#include "transport/p2p.h"

/* CUDA has room for about 1024 launches in a stream. */
enum { CM_PACE = 64, CM_PACES = 2 };

struct cm_meter_gpu {
    struct cm_gpu *gpu;
    struct cm_gang *gang;
    int member;
    bool leads;         /* records events and graphs for the gang */
    struct cm_p2p *p2p; /* NULL: staged */
    void *arena;        /* staged: the rank's device memory */
    /* for checks: on the device, and the table here */
    void *device_table;
    struct cm_gpu_result *result;
    uint64_t table[CM_GPU_TABLE_BYTES / sizeof(uint64_t)];
    /* of the leader */
    struct cm_gpu_event *marks[CM_MARKS + 1];
    struct cm_gpu_graph *graph;
    struct cm_gpu_event *paces[CM_PACES]; /* recorded behind every CM_PACE operations, in turn */
    int64_t unpaced;                      /* operations since the last of them */
    uint64_t paced;                       /* how many were recorded */
    /* -M: free memory of the device before and after opening, and the least so far */
    size_t free_before, free_after, free_least;
};

/* check_cuda.c; as in struct cm_meter_ops. open allocates the device's table and result. */
CM_MUST_CHECK enum cm_status cm_cuda_open_check(struct cm_meter_gpu *g);
void cm_cuda_close_check(struct cm_meter_gpu *g);
CM_MUST_CHECK enum cm_status cm_cuda_fill(struct cm_meter *m, const struct cm_trial *t);
CM_MUST_CHECK enum cm_status cm_cuda_check(struct cm_meter *m, const struct cm_trial *t,
                                           struct cm_check *c);
CM_MUST_CHECK enum cm_status cm_cuda_corrupt(struct cm_meter *m, const struct cm_trial *t,
                                             enum cm_phase_name phase, int64_t iter);

/* time_cuda.c; as in struct cm_meter_ops. open makes the events. */
CM_MUST_CHECK enum cm_status cm_cuda_open_marks(struct cm_meter *m);
void cm_cuda_close_marks(struct cm_meter_gpu *g);
CM_MUST_CHECK enum cm_status cm_cuda_sync(struct cm_meter *m);
CM_MUST_CHECK enum cm_status cm_cuda_pace(struct cm_meter *m, int64_t ops);
CM_MUST_CHECK enum cm_status cm_cuda_mark(struct cm_meter *m, int k);
CM_MUST_CHECK enum cm_status cm_cuda_elapsed(struct cm_meter *m, int n, int64_t *ns);
CM_MUST_CHECK enum cm_status cm_cuda_capture_begin(struct cm_meter *m);
CM_MUST_CHECK enum cm_status cm_cuda_capture_end(struct cm_meter *m, enum cm_status st);
CM_MUST_CHECK enum cm_status cm_cuda_replay(struct cm_meter *m);
void cm_cuda_graph_free(struct cm_meter *m);

#endif
