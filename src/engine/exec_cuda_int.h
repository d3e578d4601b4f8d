/* The GPU executor's inside, shared by exec_cuda.c and upload_cuda.c. */
#ifndef CM_ENGINE_EXEC_CUDA_INT_H
#define CM_ENGINE_EXEC_CUDA_INT_H

#include "base/device.h"
#include "base/share.h"
#include "engine/comm_int.h"
#include "engine/span.h"
#include "kernels/gpu_launch.h"
#include "transport/p2p.h"

/* State of the executor, one per communicator. */
struct cm_cuda {
    struct cm_launch launch;
    uint32_t beats; /* of the hint when it was last looked at */
    uint32_t looks; /* since they changed */
    /* plans on the device, one behind the other; when it is full it starts anew */
    unsigned char *heap;
    size_t used, size;
    uint64_t upload; /* counts the fillings, from 1 */
};

CM_MUST_CHECK enum cm_status cm_cuda_open(struct cm_comm *c, struct cm_cuda **out);
void cm_cuda_close(struct cm_comm *c, struct cm_cuda *s); /* NULL is fine */

/*
 * Make sure that b's plan is on the device: b->uploaded. `unit`: what lengths
 * are multiplied by (copies move bytes). Waits for the stream if the heap is
 * full. CM_ENOMEM, CM_ESYS.
 */
CM_MUST_CHECK enum cm_status cm_cuda_upload(struct cm_comm *c, struct cm_cuda *s,
                                            struct cm_bound *b, size_t unit);

/* What goes where in one exchange, without base and buffers; false: the collective is none. */
bool cm_cuda_shot(const struct cm_comm *c, const struct cm_key *k, struct cm_gpu_rank *r);

#endif
