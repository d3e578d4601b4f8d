/*
 * Arguments and results of the kernels that fill and check a rank's buffers
 * where they lie (kernels/data.cu). Plain data; addresses are the device's.
 *
 * A launch goes over a list of parts, which do not overlap. Each part is a run
 * of elements of one content; filling stores it, checking compares with it.
 * The lists are made in common/check_gpu.c.
 */
#ifndef CM_BASE_DATA_GPU_H
#define CM_BASE_DATA_GPU_H

#include "base/data_want.h"

enum {
    CM_GPU_PARTS = 8,
    CM_GPU_FIRST = 4,           /* faults of a part that are listed */
    CM_GPU_SLICES = 1024,       /* blocks of a launch: each has one slice of each part */
    CM_GPU_DATA_THREADS = 256,  /* of a block */
    CM_GPU_TABLE_BYTES = 65536, /* the largest table */
};

struct cm_gpu_part {
    uint64_t at;      /* address, a multiple of the element's size */
    uint64_t count;   /* elements */
    uint64_t first;   /* of IN, of OUT, byte of the pattern, byte of the zone */
    uint32_t content; /* enum cm_content */
    uint32_t width;   /* bytes of an element: 1, 2, 4, 8 */
};

/* One launch of `slices` blocks. */
struct cm_gpu_data {
    struct cm_want want;
    struct cm_route route;
    int32_t rank;
    uint32_t nparts, slices;
    uint64_t poison; /* cm_poison_word() */
    /*
     * Results only: sums of reductions (int64_t), or the runs of alltoallv
     * (struct cm_run). Needed if cm_gpu_table_of() gives a table.
     */
    uint64_t table;
    uint64_t found; /* checks: struct cm_gpu_result */
    struct cm_gpu_part parts[CM_GPU_PARTS];
};

/* What a check found, by part. Listed faults are the lowest ones, ascending. */
struct cm_gpu_found {
    uint64_t wrong[CM_GPU_PARTS];               /* elements */
    uint64_t nfirst[CM_GPU_PARTS];              /* min(wrong, CM_GPU_FIRST) once listed, else 0 */
    uint64_t first[CM_GPU_PARTS][CM_GPU_FIRST]; /* elements of the part */
};

/* In device memory; the host reads `found` only. */
struct cm_gpu_result {
    struct cm_gpu_found found;
    uint64_t slice[CM_GPU_PARTS][CM_GPU_SLICES]; /* wrong elements of each slice */
};

#endif
