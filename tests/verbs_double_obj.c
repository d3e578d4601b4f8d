/* The double's objects: devices, regions of memory, queues. Their number is counted. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_double_int.h"

static void *new_object(size_t bytes)
{
    void *p = calloc(1, bytes);

    if (p == NULL)
        abort();
    dbl.objects++;
    return p;
}

static void free_object(void *p)
{
    free(p);
    dbl.objects--;
}

static void open_pipe(int *from, int *to)
{
    int fd[2];

    if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0)
        abort();
    *from = fd[0];
    *to = fd[1];
}

/* ---- devices ---- */

static int fork_init(void)
{
    return 0;
}

static struct ibv_device **get_device_list(int *n)
{
    struct ibv_device **list = calloc((size_t)dbl.s.ndevices + 1, sizeof(*list));

    for (int i = 0; i < dbl.s.ndevices; i++)
        list[i] = &dbl.devices[i].device;
    *n = dbl.s.ndevices;
    return list;
}

static void free_device_list(struct ibv_device **list)
{
    free(list);
}

static const char *get_device_name(struct ibv_device *d)
{
    return d->name;
}

static const struct double_device *what_is(const struct ibv_context *c)
{
    return ((const struct dbl_device *)c->device)->what;
}

static struct ibv_context *open_device(struct ibv_device *d)
{
    struct dbl_context *c;

    errno = ((struct dbl_device *)d)->what->open_errno;
    if (errno != 0)
        return NULL;
    pthread_mutex_lock(&dbl.lock);
    c = new_object(sizeof(*c));
    c->context.device = d;
    open_pipe(&c->context.async_fd, &c->events);
    dbl.contexts[dbl.ncontexts++] = c;
    pthread_mutex_unlock(&dbl.lock);
    return &c->context;
}

static int close_device(struct ibv_context *context)
{
    struct dbl_context *c = (struct dbl_context *)context;

    pthread_mutex_lock(&dbl.lock);
    for (int i = 0; i < dbl.ncontexts; i++)
        if (dbl.contexts[i] == c)
            dbl.contexts[i] = dbl.contexts[--dbl.ncontexts];
    close(c->context.async_fd);
    close(c->events);
    free_object(c);
    pthread_mutex_unlock(&dbl.lock);
    return 0;
}

static int query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
    *a = (struct ibv_device_attr){.phys_port_cnt = (uint8_t)what_is(c)->nports,
                                  .max_qp_wr = dbl.s.max_qp_wr,
                                  .max_cqe = dbl.s.max_cqe};
    return 0;
}

static int query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a)
{
    const struct double_port *p = &what_is(c)->port[port - 1];

    *a = (struct ibv_port_attr){.state = p->down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
                                .active_mtu = p->mtu,
                                .gid_tbl_len = DOUBLE_GIDS,
                                .lid = p->lid,
                                .active_width = p->width,
                                .active_speed = p->speed,
                                .link_layer = p->link_layer};
    return 0;
}

static int query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
    const char *text = what_is(c)->port[port - 1].gid[index];

    if (text == NULL)
        return -1;
    return inet_pton(AF_INET6, text, gid->raw) == 1 ? 0 : -1;
}

/* ---- memory ---- */

static struct ibv_pd *alloc_pd(struct ibv_context *c)
{
    struct ibv_pd *pd;

    pthread_mutex_lock(&dbl.lock);
    pd = new_object(sizeof(*pd));
    pd->context = c;
    pthread_mutex_unlock(&dbl.lock);
    return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
    pthread_mutex_lock(&dbl.lock);
    free_object(pd);
    pthread_mutex_unlock(&dbl.lock);
    return 0;
}

static struct ibv_mr *new_region(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    struct dbl_mr *mr;

    pthread_mutex_lock(&dbl.lock);
    mr = new_object(sizeof(*mr));
    mr->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = at, .length = bytes};
    mr->mr.lkey = ++dbl.next_number;
    mr->mr.rkey = mr->mr.lkey ^ 0xa5000000;
    mr->access = access;
    if ((access & IBV_ACCESS_REMOTE_WRITE) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0)
        dbl_violation("a region that may be written from afar, but not from here");
    dbl.mrs[dbl.nmrs++] = mr;
    pthread_mutex_unlock(&dbl.lock);
    return &mr->mr;
}

static bool is_gpu(const void *at)
{
    const char *p = at, *gpu = dbl.s.gpu;

    return gpu != NULL && p >= gpu && p < gpu + dbl.s.gpu_bytes;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    errno = is_gpu(at) && !dbl.s.peermem ? EFAULT : dbl.s.reg_errno;
    return errno == 0 ? new_region(pd, at, bytes, access) : NULL;
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova,
                                   unsigned access)
{
    (void)iova;
    return reg_mr(pd, at, bytes, (int)access);
}

static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
                                    int fd, int access)
{
    (void)offset;
    errno = !dbl.s.dmabuf ? EOPNOTSUPP : fd < 0 ? EBADF : dbl.s.reg_errno;
    return errno == 0 ? new_region(pd, (void *)(uintptr_t)iova, bytes, access) : NULL;
}

static int dereg_mr(struct ibv_mr *mr)
{
    pthread_mutex_lock(&dbl.lock);
    for (int i = 0; i < dbl.nmrs; i++)
        if (&dbl.mrs[i]->mr == mr)
            dbl.mrs[i] = dbl.mrs[--dbl.nmrs];
    free_object(mr);
    pthread_mutex_unlock(&dbl.lock);
    return 0;
}

struct dbl_mr *dbl_region(uint32_t key, bool remote, uint64_t at, uint64_t bytes)
{
    for (int i = 0; i < dbl.nmrs; i++) {
        struct dbl_mr *m = dbl.mrs[i];
        uint64_t from = (uintptr_t)m->mr.addr;

        if (key == (remote ? m->mr.rkey : m->mr.lkey) && at >= from && bytes <= m->mr.length &&
            at - from <= m->mr.length - bytes)
            return m;
    }
    return NULL;
}

/* ---- queues ---- */

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *c)
{
    struct dbl_channel *ch;

    pthread_mutex_lock(&dbl.lock);
    ch = new_object(sizeof(*ch));
    ch->channel.context = c;
    open_pipe(&ch->channel.fd, &ch->events);
    pthread_mutex_unlock(&dbl.lock);
    return &ch->channel;
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct dbl_channel *ch = (struct dbl_channel *)channel;

    pthread_mutex_lock(&dbl.lock);
    close(ch->channel.fd);
    close(ch->events);
    free_object(ch);
    pthread_mutex_unlock(&dbl.lock);
    return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *c, int entries, void *arg,
                                struct ibv_comp_channel *ch, int vector)
{
    struct dbl_cq *cq;

    (void)vector;
    errno = EINVAL;
    if (entries < 1 || entries > dbl.s.max_cqe)
        return NULL;
    pthread_mutex_lock(&dbl.lock);
    cq = new_object(sizeof(*cq));
    cq->cq = (struct ibv_cq){.context = c, .channel = ch, .cq_context = arg, .cqe = entries};
    cq->size = entries;
    cq->wc = calloc((size_t)entries, sizeof(*cq->wc));
    pthread_mutex_unlock(&dbl.lock);
    return &cq->cq;
}

static int destroy_cq(struct ibv_cq *q)
{
    struct dbl_cq *cq = (struct dbl_cq *)q;

    pthread_mutex_lock(&dbl.lock);
    if (cq->unacked != 0)
        dbl_violation("%d events of a completion queue were not acknowledged", cq->unacked);
    for (int i = 0; i < dbl.nqps; i++)
        if (dbl.qps[i]->qp.send_cq == q)
            dbl_violation("a completion queue ends before its queue pairs");
    free(cq->wc);
    free_object(cq);
    pthread_mutex_unlock(&dbl.lock);
    return 0;
}

/* What is in the pipe is the queue's address. */
static int get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **arg)
{
    if (read(ch->fd, cq, sizeof(*cq)) != (ssize_t)sizeof(*cq))
        return -1;
    *arg = (*cq)->cq_context;
    pthread_mutex_lock(&dbl.lock);
    ((struct dbl_cq *)*cq)->unacked++;
    pthread_mutex_unlock(&dbl.lock);
    return 0;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    pthread_mutex_lock(&dbl.lock);
    ((struct dbl_cq *)cq)->unacked -= (int)n;
    pthread_mutex_unlock(&dbl.lock);
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    struct dbl_qp *q;

    errno = EINVAL;
    if ((int)a->cap.max_send_wr > dbl.s.max_qp_wr || (int)a->cap.max_recv_wr > dbl.s.max_qp_wr ||
        a->cap.max_inline_data > dbl.s.max_inline || a->qp_type != IBV_QPT_RC)
        return NULL;
    pthread_mutex_lock(&dbl.lock);
    q = new_object(sizeof(*q));
    q->qp = (struct ibv_qp){.context = pd->context,
                            .pd = pd,
                            .send_cq = a->send_cq,
                            .recv_cq = a->recv_cq,
                            .qp_num = ++dbl.next_number & 0xffffff,
                            .qp_type = a->qp_type};
    q->cap = a->cap;
    q->sq = calloc(a->cap.max_send_wr, sizeof(*q->sq));
    q->rq = calloc(a->cap.max_recv_wr, sizeof(*q->rq));
    dbl.qps[dbl.nqps++] = q;
    pthread_mutex_unlock(&dbl.lock);
    return &q->qp;
}

static int destroy_qp(struct ibv_qp *qp)
{
    struct dbl_qp *q = (struct dbl_qp *)qp;

    pthread_mutex_lock(&dbl.lock);
    for (int i = 0; i < dbl.nqps; i++)
        if (dbl.qps[i] == q)
            dbl.qps[i] = dbl.qps[--dbl.nqps];
    free(q->sq);
    free(q->rq);
    free_object(q);
    pthread_mutex_unlock(&dbl.lock);
    return 0;
}

/* ---- the table ---- */

void dbl_add_objects(struct cm_verbs *v)
{
    v->fork_init = fork_init;
    v->get_device_list = get_device_list;
    v->free_device_list = free_device_list;
    v->get_device_name = get_device_name;
    v->open_device = open_device;
    v->close_device = close_device;
    v->query_device = query_device;
    v->query_port = query_port;
    v->query_gid = query_gid;
    v->alloc_pd = alloc_pd;
    v->dealloc_pd = dealloc_pd;
    v->reg_mr = reg_mr;
    v->reg_mr_iova2 = reg_mr_iova2;
    v->reg_dmabuf_mr = reg_dmabuf_mr;
    v->dereg_mr = dereg_mr;
    v->create_comp_channel = create_comp_channel;
    v->destroy_comp_channel = destroy_comp_channel;
    v->create_cq = create_cq;
    v->destroy_cq = destroy_cq;
    v->get_cq_event = get_cq_event;
    v->ack_cq_events = ack_cq_events;
    v->create_qp = create_qp;
    v->destroy_qp = destroy_qp;
}
