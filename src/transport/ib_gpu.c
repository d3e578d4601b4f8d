/*
 * GPU memory and the adapter: registration in the best way there is, and the
 * flush. A write of the adapter and a flag that the host writes take different
 * ways to the GPU, so the flag may be there first; a read from the adapter's
 * side pushes the write before it.
 */
#include "transport/ib_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait.h"
#include "transport/ib_int.h"

enum {
    HOPPER = 90,
    PATH_BYTES = 512,
    GPU_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
};

/* ---- registration ---- */

const char *cm_ib_gpu_way_text(enum cm_ib_gpu_way way)
{
    static const char *const text[] = {[CM_IB_GPU_DMABUF] = "dmabuf",
                                       [CM_IB_GPU_PEERMEM] = "nvidia-peermem",
                                       [CM_IB_GPU_BOUNCE] = "host memory"};

    return text[way];
}

static bool knows_dmabuf(const struct cm_ib_dev *d, struct ibv_pd *pd)
{
    struct ibv_mr *mr;

    if (d->v->reg_dmabuf_mr == NULL)
        return false;
    errno = 0;
    mr = d->v->reg_dmabuf_mr(pd, 0, CM_PAGE, 0, -1, 0);
    if (mr != NULL) /* it cannot be; but then it knows them */
        d->v->dereg_mr(mr);
    return mr != NULL || (errno != EOPNOTSUPP && errno != EPROTONOSUPPORT);
}

static bool has_peermem(const char *sysfs)
{
    static const char *const paths[] = {"module/nvidia_peermem",
                                        "kernel/mm/memory_peers/nv_mem/version",
                                        "kernel/mm/memory_peers/nv_mem_nc/version"};
    char full[PATH_BYTES];

    for (size_t i = 0; i < CM_LEN(paths); i++) {
        snprintf(full, sizeof(full), "%s/%s", sysfs, paths[i]);
        if (access(full, F_OK) == 0)
            return true;
    }
    return false;
}

enum cm_ib_gpu_way cm_ib_gpu_probe(const struct cm_ib_dev *d, struct ibv_pd *pd, const char *sysfs)
{
    if (knows_dmabuf(d, pd))
        return CM_IB_GPU_DMABUF;
    return has_peermem(sysfs) ? CM_IB_GPU_PEERMEM : CM_IB_GPU_BOUNCE;
}

static struct ibv_mr *by_dmabuf(const struct cm_ib_dev *d, struct ibv_pd *pd,
                                const struct cm_ib_gpu_range *r)
{
    uint64_t offset = 0;
    int fd = r->dmabuf != NULL ? r->dmabuf(r->arg, r->at, r->bytes, &offset) : -1, err;
    struct ibv_mr *mr;

    if (fd < 0) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    mr = d->v->reg_dmabuf_mr(pd, offset, r->bytes, (uintptr_t)r->at, fd, GPU_ACCESS);
    err = errno;
    close(fd); /* the region holds the memory */
    errno = err;
    return mr;
}

enum cm_status cm_ib_gpu_register(const struct cm_ib_dev *d, struct ibv_pd *pd,
                                  enum cm_ib_gpu_way way, const struct cm_ib_gpu_range *range,
                                  enum cm_ib_gpu_way *used, struct ibv_mr **out)
{
    struct ibv_mr *mr = NULL;

    *out = NULL;
    errno = 0;
    if (way == CM_IB_GPU_DMABUF) {
        *used = CM_IB_GPU_DMABUF;
        mr = by_dmabuf(d, pd, range);
    }
    /* Also after a dmabuf that was refused: the module takes any address of the driver's. */
    if (mr == NULL && way != CM_IB_GPU_BOUNCE && errno != ENOMEM) {
        *used = CM_IB_GPU_PEERMEM;
        mr = d->v->reg_mr(pd, range->at, range->bytes, GPU_ACCESS);
    }
    if (mr == NULL && way != CM_IB_GPU_BOUNCE && errno == ENOMEM)
        return CM_FAIL(CM_ENOMEM, "%s:%d has no room for %zu bytes of GPU memory", d->name, d->port,
                       range->bytes);
    if (mr == NULL)
        *used = CM_IB_GPU_BOUNCE;
    *out = mr;
    return CM_OK;
}

/* ---- the flush ---- */

bool cm_ib_gpu_needs_flush(int capability, bool coherent)
{
    return capability < HOPPER || coherent;
}

struct cm_ib_flush {
    const struct cm_ib_dev *d;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr; /* of `byte` */
    unsigned char byte;
};

static int connect_to_itself(const struct cm_ib_flush *f)
{
    const struct cm_ib_choice c = cm_ib_usual();
    struct cm_ib_far self = {
        .number = f->qp->qp_num, .lid = f->d->attr.lid, .mtu = f->d->attr.active_mtu};
    int err = cm_ib_to_init(f->d, f->qp, IBV_ACCESS_REMOTE_READ);

    memcpy(self.gid, f->d->gid.raw, sizeof(self.gid));
    if (err == 0)
        err = cm_ib_to_rtr(f->d, f->qp, &c, &self);
    return err == 0 ? cm_ib_to_rts(f->d, f->qp, &c, 0) : err;
}

enum cm_status cm_ib_flush_open(const struct cm_ib_dev *d, struct ibv_pd *pd,
                                struct cm_ib_flush **out)
{
    struct cm_ib_flush *f = calloc(1, sizeof(*f));
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    int err = ENOMEM;

    if (f == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for the flush of GPU memory");
    f->d = d;
    f->mr = d->v->reg_mr(pd, &f->byte, sizeof(f->byte), IBV_ACCESS_LOCAL_WRITE);
    f->cq = f->mr != NULL ? d->v->create_cq(d->context, 1, NULL, NULL, 0) : NULL;
    init.send_cq = init.recv_cq = f->cq;
    f->qp = f->cq != NULL ? d->v->create_qp(pd, &init) : NULL;
    err = f->qp != NULL ? connect_to_itself(f) : errno;
    if (err == 0) {
        *out = f;
        return CM_OK;
    }
    cm_ib_flush_close(f);
    return CM_FAIL(CM_ESYS, "%s:%d: flush of GPU memory: %s", d->name, d->port, strerror(err));
}

enum cm_status cm_ib_flush(struct cm_ib_flush *f, const struct ibv_mr *mr, uint64_t at,
                           int64_t until_ns)
{
    const struct cm_ib_dev *d = f->d;
    struct ibv_sge sge = {(uintptr_t)&f->byte, sizeof(f->byte), f->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = at, .rkey = mr->rkey}};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    int n, rc = d->v->post_send(f->qp, &wr, &bad);

    if (rc != 0)
        return CM_FAIL(CM_ESYS, "%s:%d: flush of GPU memory: %s", d->name, d->port,
                       strerror(rc > 0 ? rc : errno));
    while ((n = d->v->poll_cq(f->cq, 1, &wc)) == 0) {
        if (cm_now_ns() > until_ns)
            return CM_FAIL(CM_ETIMEOUT, "%s:%d: flush of GPU memory does not end", d->name,
                           d->port);
        cm_pause();
    }
    if (n > 0 && wc.status == IBV_WC_SUCCESS)
        return CM_OK;
    return CM_FAIL(CM_ESYS, "%s:%d: flush of GPU memory: %s", d->name, d->port,
                   n > 0 ? d->v->wc_status_str(wc.status) : "the completion queue broke");
}

void cm_ib_flush_close(struct cm_ib_flush *f)
{
    if (f == NULL)
        return;
    if (f->qp != NULL)
        f->d->v->destroy_qp(f->qp);
    if (f->cq != NULL)
        f->d->v->destroy_cq(f->cq);
    if (f->mr != NULL)
        f->d->v->dereg_mr(f->mr);
    free(f);
}
