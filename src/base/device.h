/*
 * The CUDA device as the rest of the suite sees it: memory, peers, handles,
 * one stream, events, graphs. Only dev_cuda.c and the .cu files know CUDA's
 * own headers. All of this is linked only into builds with CUDA; who calls it
 * lives in files named *_cuda.c, which are reached through cm_backend_cuda.
 *
 * Failures are logged once with CUDA's own text, the device and what was being
 * done. CM_ENOMEM: CUDA has no memory (asked, free and total are logged).
 * CM_ESYS: any other error; asynchronous ones surface at the next call.
 * A thread calls cm_gpu_use() before anything else with a struct cm_gpu.
 */
#ifndef CM_BASE_DEVICE_H
#define CM_BASE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { CM_GPU_DEVICES = 16 /* devices of a process that we look at */ };

/* What this process sees. count 0: `why` says the reason in one line ("no CUDA driver: ..."). */
struct cm_gpu_probe {
    int count;
    int driver, runtime; /* 13000 is 13.0; 0 unknown. driver: newest CUDA it supports */
    char why[256];
};
void cm_gpu_probe(struct cm_gpu_probe *out);

struct cm_gpu_info {
    int index; /* CUDA's, in this process */
    char name[96];
    char bus_id[24]; /* "0000:1b:00.0" */
    unsigned char uuid[16];
    int cc_major, cc_minor;
    int sms;
    size_t bytes;     /* of memory */
    bool cooperative; /* cooperative launches work */
};
CM_MUST_CHECK enum cm_status cm_gpu_info(int index, struct cm_gpu_info *out);
/* Could kernels of device `index` address memory of device `other`? Opens nothing. */
bool cm_gpu_reaches(int index, int other);

/* An open device with one stream. Several threads may use it at once, each after cm_gpu_use(). */
struct cm_gpu;
CM_MUST_CHECK enum cm_status cm_gpu_open(int index, bool null_stream, struct cm_gpu **out);
void cm_gpu_close(struct cm_gpu *g); /* NULL is fine; its memory must have been freed */
CM_MUST_CHECK enum cm_status cm_gpu_use(struct cm_gpu *g);
int cm_gpu_index(const struct cm_gpu *g);
const struct cm_gpu_info *cm_gpu_facts(const struct cm_gpu *g);
void *cm_gpu_stream(const struct cm_gpu *g); /* cudaStream_t, for launchers */

/* ---- memory ---- */

/*
 * Zeroed device memory in whole multiples of 2 MiB, so that an exported handle
 * names this allocation and no larger one. Blocks. cm_gpu_free(); NULL is fine.
 */
CM_MUST_CHECK enum cm_status cm_gpu_alloc(struct cm_gpu *g, size_t bytes, void **out);
void cm_gpu_free(struct cm_gpu *g, void *p);
CM_MUST_CHECK enum cm_status cm_gpu_memory(struct cm_gpu *g, size_t *free_bytes, size_t *total);

/* Pin host memory (whole pages) for all devices of the process; CM_OK if it is pinned already. */
CM_MUST_CHECK enum cm_status cm_gpu_pin(void *host, size_t bytes);
void cm_gpu_unpin(void *host);
/* The address under which the device reaches pinned host memory. */
CM_MUST_CHECK enum cm_status cm_gpu_pinned(struct cm_gpu *g, void *host, void **device);

/* Copy to and from the device in stream order; block until done. */
CM_MUST_CHECK enum cm_status cm_gpu_put(struct cm_gpu *g, void *dst, const void *host,
                                        size_t bytes);
CM_MUST_CHECK enum cm_status cm_gpu_get(struct cm_gpu *g, void *host, const void *src,
                                        size_t bytes);

/* ---- peers ---- */

/* Can kernels of this device address memory of device `index`? Then it is enabled. Itself: yes. */
CM_MUST_CHECK enum cm_status cm_gpu_peer(struct cm_gpu *g, int index, bool *ok);

/* A handle by which another process of this machine maps an allocation of cm_gpu_alloc(). */
struct cm_gpu_handle {
    unsigned char bytes[64];
};
CM_MUST_CHECK enum cm_status cm_gpu_export(struct cm_gpu *g, void *p, struct cm_gpu_handle *out);
/*
 * Map it. *out NULL and CM_OK: the devices cannot reach each other. Unmap with
 * cm_gpu_unimport() before the exporter frees it.
 */
CM_MUST_CHECK enum cm_status cm_gpu_import(struct cm_gpu *g, const struct cm_gpu_handle *h,
                                           void **out);
void cm_gpu_unimport(struct cm_gpu *g, void *p);

/* ---- the stream ---- */

/* Has all enqueued work ended? Never blocks. CM_ESYS: it failed. */
CM_MUST_CHECK enum cm_status cm_gpu_done(struct cm_gpu *g, bool *done);

struct cm_gpu_event;
CM_MUST_CHECK enum cm_status cm_gpu_event_new(struct cm_gpu *g, struct cm_gpu_event **out);
void cm_gpu_event_free(struct cm_gpu_event *e); /* NULL is fine */
CM_MUST_CHECK enum cm_status cm_gpu_event_record(struct cm_gpu *g, struct cm_gpu_event *e);
/* Is the event, recorded before, completed? Never blocks. */
CM_MUST_CHECK enum cm_status cm_gpu_event_done(const struct cm_gpu_event *e, bool *done);
/* Time between two recorded and completed events; CUDA's resolution is about 0.5 us. */
CM_MUST_CHECK enum cm_status cm_gpu_event_ns(const struct cm_gpu_event *a,
                                             const struct cm_gpu_event *b, int64_t *ns);

/* ---- graphs ---- */

/* Between begin and end, what is enqueued on the stream becomes a graph instead of running. */
struct cm_gpu_graph;
CM_MUST_CHECK enum cm_status cm_gpu_capture_begin(struct cm_gpu *g);
/* Instantiated and uploaded. Must also be called after a failure between the two. */
CM_MUST_CHECK enum cm_status cm_gpu_capture_end(struct cm_gpu *g, struct cm_gpu_graph **out);
CM_MUST_CHECK enum cm_status cm_gpu_graph_launch(struct cm_gpu *g, struct cm_gpu_graph *graph);
void cm_gpu_graph_free(struct cm_gpu_graph *graph); /* NULL is fine */

/* ---- profiler ---- */

/* A named range of this thread in a profiler's time line (NVTX). */
void cm_gpu_range_push(const char *name);
void cm_gpu_range_pop(void);

#endif
