/*
 * Executor for GPUs that several processes share: the buffers are device
 * memory, the host runs the plan on copies of them in the node's segment. A
 * kernel of one process would wait for one of another that is not scheduled;
 * this way nothing on the device ever waits. Blocks, like the host's executor.
 */
#include "base/device.h"
#include "engine/comm_int.h"

static enum cm_status open_staged(struct cm_comm *c)
{
    (void)c;
    return CM_OK;
}

static void close_staged(struct cm_comm *c)
{
    (void)c;
}

static bool owns(const struct cm_comm *c, const void *p, size_t bytes)
{
    size_t at = (size_t)((const unsigned char *)p - c->gpu.arena);

    return at <= c->gpu.arena_bytes && bytes <= c->gpu.arena_bytes - at;
}

/* The copy of a device buffer, at the same offset of this rank's arena in the segment. */
static unsigned char *mirror(const struct cm_comm *c, const void *p)
{
    return (unsigned char *)c->base + c->arena_at + ((const unsigned char *)p - c->gpu.arena);
}

static enum cm_status run(struct cm_comm *c, struct cm_bound *b, const struct cm_op_args *a)
{
    struct cm_op_args host = *a;
    enum cm_status st = cm_gpu_get(c->gpu.gpu, mirror(c, a->in), a->in, b->in_bytes);

    /* What the operation leaves alone must come back as it was. */
    if (st == CM_OK)
        st = cm_gpu_get(c->gpu.gpu, mirror(c, a->out), a->out, b->out_bytes);
    if (st != CM_OK)
        return st;
    host.in = mirror(c, a->in);
    host.out = mirror(c, a->out);
    st = b->ll ? cm_ll_run(c, b, &host) : cm_exec_host(c, b, &host);
    return st == CM_OK ? cm_gpu_put(c->gpu.gpu, a->out, host.out, b->out_bytes) : st;
}

/* Operations block; what is left in the stream are fills, and marks of time. */
static enum cm_status sync_staged(struct cm_comm *c)
{
    struct cm_spin spin = cm_spin_start();
    bool done = false;
    enum cm_status st = cm_gpu_done(c->gpu.gpu, &done);

    while (st == CM_OK && !done) {
        st = cm_spin(&spin, c->waiter, -2);
        if (st == CM_OK)
            st = cm_gpu_done(c->gpu.gpu, &done);
    }
    return st;
}

const struct cm_exec cm_exec_staged = {
    .name = "staged",
    .reopens = true,
    .open = open_staged,
    .close = close_staged,
    .owns = owns,
    .run = run,
    .sync = sync_staged,
};
