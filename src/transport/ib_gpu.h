/*
 * Memory of a GPU that the adapter reads and writes by itself (GPUDirect RDMA).
 * Private to src/transport.
 *
 * Three ways, best first: a dmabuf of the memory (kernel 5.12, open driver or
 * CUDA 11.7), the module nvidia-peermem, and none: then data goes through ports
 * in host memory.
 */
#ifndef CM_TRANSPORT_IB_GPU_H
#define CM_TRANSPORT_IB_GPU_H

#include "transport/ib_dev.h"

enum cm_ib_gpu_way { CM_IB_GPU_DMABUF, CM_IB_GPU_PEERMEM, CM_IB_GPU_BOUNCE };

/* "dmabuf", "nvidia-peermem", "host memory". */
const char *cm_ib_gpu_way_text(enum cm_ib_gpu_way way);

/*
 * How this adapter and kernel reach GPU memory, in general. The kernel is asked
 * about dmabufs by registering one that is none (file -1): it answers that the
 * file is bad if it knows them at all.
 */
enum cm_ib_gpu_way cm_ib_gpu_probe(const struct cm_ib_dev *d, struct ibv_pd *pd, const char *sysfs);

/* A range of GPU memory, by its address in this process. */
struct cm_ib_gpu_range {
    void *at;
    size_t bytes;
    /*
     * Make a dmabuf of the range: a file descriptor, ours to close, and where in
     * it the range starts; -1 if this memory has none. May be NULL.
     */
    int (*dmabuf)(void *arg, void *at, size_t bytes, uint64_t *offset);
    void *arg;
};

/*
 * Register a range for writing and reading from afar, at best in the way `way`. *used
 * tells which it was. CM_OK with CM_IB_GPU_BOUNCE: it cannot be, *out is NULL, use
 * host memory. The caller deregisters. CM_ENOMEM: the adapter has no room for it.
 */
CM_MUST_CHECK enum cm_status cm_ib_gpu_register(const struct cm_ib_dev *d, struct ibv_pd *pd,
                                                enum cm_ib_gpu_way way,
                                                const struct cm_ib_gpu_range *range,
                                                enum cm_ib_gpu_way *used, struct ibv_mr **out);

/*
 * Must data that an adapter wrote to GPU memory be flushed before the GPU is told of it
 * by the host? `capability`: of the GPU, 90 is Hopper; `coherent`: it hangs on its
 * processor by a coherent link, but the adapter by PCIe. The rule is NCCL's. Data that carries
 * its own flags (LL) never needs it.
 */
bool cm_ib_gpu_needs_flush(int capability, bool coherent);

/* A queue pair to itself, to read from a region: what was written before is there then. */
struct cm_ib_flush;

/* CM_ENOMEM, CM_ESYS; *out is untouched unless CM_OK. */
CM_MUST_CHECK enum cm_status cm_ib_flush_open(const struct cm_ib_dev *d, struct ibv_pd *pd,
                                              struct cm_ib_flush **out);

/* Read a byte at `at` of the region. Polls, until `until_ns` at most: CM_ETIMEOUT; CM_ESYS. */
CM_MUST_CHECK enum cm_status cm_ib_flush(struct cm_ib_flush *f, const struct ibv_mr *mr,
                                         uint64_t at, int64_t until_ns);
void cm_ib_flush_close(struct cm_ib_flush *f); /* NULL is fine */

#endif
