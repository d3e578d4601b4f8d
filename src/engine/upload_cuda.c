/*
 * Bound plans as the kernels read them, and the shapes of one exchange.
 *
 * A plan is one piece of device memory: struct cm_gpu_plan, then its folds,
 * operands and waits. It is put there once, before any capture, and stays
 * until the heap is full; then all plans are uploaded anew as they are used.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/exec_cuda_int.h"

_Static_assert(CM_LEN(((struct cm_gpu_plan *)0)->workers) == CM_MAX_WORKERS, "all workers fit");

enum { HEAP_BYTES = 8 << 20, ALIGN = 256 };

enum cm_status cm_cuda_open(struct cm_comm *c, struct cm_cuda **out)
{
    struct cm_cuda *s = calloc(1, sizeof(*s));
    enum cm_status st;

    if (s == NULL)
        return CM_FAIL(CM_ENOMEM, "GPU executor of rank %d", c->rank);
    s->size = HEAP_BYTES;
    s->upload = 1;
    s->looks = UINT32_MAX; /* nothing was said yet */
    st = cm_gpu_alloc(c->gpu.gpu, s->size, (void **)&s->heap);
    if (st != CM_OK) {
        free(s);
        return st;
    }
    *out = s;
    return CM_OK;
}

void cm_cuda_close(struct cm_comm *c, struct cm_cuda *s)
{
    if (s == NULL)
        return;
    cm_gpu_free(c->gpu.gpu, s->heap);
    free(s);
}

/* Offsets of the parts in the piece. */
struct parts {
    size_t folds, operands, waits, total;
};

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static struct parts parts_of(const struct cm_bound *b)
{
    struct parts p;

    p.folds = round_up(sizeof(struct cm_gpu_plan));
    p.operands = p.folds + round_up((size_t)b->nfolds * sizeof(struct cm_gpu_fold));
    p.waits = p.operands + round_up((size_t)b->noperands * sizeof(struct cm_gpu_operand));
    p.total = p.waits + round_up((size_t)b->nwaits * sizeof(struct cm_gpu_wait));
    return p;
}

static void copy_folds(const struct cm_bound *b, size_t unit, struct cm_gpu_fold *to)
{
    for (int i = 0; i < b->nfolds; i++) {
        const struct cm_bound_fold *f = &b->folds[i];
        size_t each = cm_share(f->len, 0, b->reps, b->esize).len;

        to[i] = (struct cm_gpu_fold){.from = (uint32_t)f->from,
                                     .nfrom = (uint32_t)f->nfrom,
                                     .to = (uint32_t)f->to,
                                     .nto = (uint32_t)f->nto,
                                     .wait = (uint32_t)f->wait,
                                     .nwait = (uint32_t)f->nwait,
                                     .flags = (f->post ? CM_GPU_POST : 0u) |
                                              (f->divide ? CM_GPU_DIVIDE : 0u) |
                                              (f->done_first ? CM_GPU_DONE_FIRST : 0u),
                                     .len = f->len * unit,
                                     .each = each * unit};
    }
}

static void copy_operands(const struct cm_bound *b, struct cm_gpu_operand *to, uint32_t *ports)
{
    for (int i = 0; i < b->noperands; i++) {
        const struct cm_bound_operand *o = &b->operands[i];

        to[i] = (struct cm_gpu_operand){.at = o->at, .rank = o->rank, .space = o->space};
        *ports |= o->space == CM_PORT;
    }
}

/*
 * A worker learns a rank's addresses once, from its first wait for it. Not from
 * an exit wait: that rank may have gone on and be writing the line anew.
 */
static void copy_waits(const struct cm_bound *b, const struct cm_bound_worker *w,
                       struct cm_gpu_wait *to)
{
    bool known[CM_GPU_RANKS] = {false};

    for (int f = w->first; f < w->first + w->nfolds; f++) {
        for (int i = b->folds[f].wait; i < b->folds[f].wait + b->folds[f].nwait; i++) {
            const struct cm_bound_wait *on = &b->waits[i];

            to[i] = (struct cm_gpu_wait){.rank = on->rank,
                                         .line = (uint32_t)on->line,
                                         .phase = on->phase,
                                         .learn = !known[on->rank] && on->phase != CM_PHASE_DONE};
            known[on->rank] |= to[i].learn != 0;
        }
    }
}

/* The plan as it will stand at device address `at`. */
static void compose(const struct cm_bound *b, size_t unit, uint64_t at, unsigned char *piece)
{
    struct parts p = parts_of(b);
    struct cm_gpu_plan *plan = (struct cm_gpu_plan *)piece;

    *plan = (struct cm_gpu_plan){.folds = at + p.folds,
                                 .operands = at + p.operands,
                                 .waits = at + p.waits,
                                 .cap = b->cap * unit,
                                 .npasses = b->npasses,
                                 .scratch_step = b->scratch_step,
                                 .nworkers = (uint32_t)b->nworkers,
                                 .reps = (uint32_t)b->reps};
    for (int w = 0; w < b->nworkers; w++) {
        plan->workers[w] =
            (struct cm_gpu_worker){(uint32_t)b->workers[w].first, (uint32_t)b->workers[w].nfolds,
                                   (uint32_t)b->workers[w].channel, (uint32_t)b->workers[w].line};
        copy_waits(b, &b->workers[w], (struct cm_gpu_wait *)(piece + p.waits));
    }
    copy_folds(b, unit, (struct cm_gpu_fold *)(piece + p.folds));
    copy_operands(b, (struct cm_gpu_operand *)(piece + p.operands), &plan->ports);
}

/* Room for `bytes`; once the heap is full, behind everything that still reads it. */
static enum cm_status make_room(struct cm_comm *c, struct cm_cuda *s, size_t bytes)
{
    enum cm_status st = CM_OK;

    if (bytes > s->size)
        return CM_FAIL(CM_ENOMEM, "a plan of %zu bytes; at most %zu fit", bytes, s->size);
    if (s->used + bytes <= s->size)
        return CM_OK;
    st = cm_comm_sync(c);
    s->used = 0;
    s->upload++;
    return st;
}

enum cm_status cm_cuda_upload(struct cm_comm *c, struct cm_cuda *s, struct cm_bound *b, size_t unit)
{
    struct parts p = parts_of(b);
    unsigned char *piece;
    enum cm_status st;

    if (b->upload == s->upload)
        return CM_OK;
    st = make_room(c, s, p.total);
    if (st != CM_OK)
        return st;
    piece = calloc(1, p.total);
    if (piece == NULL)
        return CM_FAIL(CM_ENOMEM, "plan of %zu bytes", p.total);
    b->uploaded = (uint64_t)(uintptr_t)(s->heap + s->used);
    compose(b, unit, b->uploaded, piece);
    ((struct cm_gpu_plan *)piece)->ports |= c->remote != NULL;
    st = cm_gpu_put(c->gpu.gpu, s->heap + s->used, piece, p.total);
    free(piece);
    s->used += p.total;
    b->upload = s->upload;
    return st;
}

/* ---- one exchange ---- */

static bool set_shot(struct cm_gpu_rank *r, int send_to, int recv_from, uint64_t send_step,
                     uint64_t recv_step)
{
    r->send_to = send_to;
    r->recv_from = recv_from;
    r->send_step = send_step;
    r->recv_step = recv_step;
    return true;
}

bool cm_cuda_shot(const struct cm_comm *c, const struct cm_key *k, struct cm_gpu_rank *r)
{
    uint64_t block = k->count * cm_dtypes[k->dtype].bytes;
    int all = CM_GPU_ALL, nobody = CM_GPU_NOBODY, me = c->rank, n = c->n;
    bool root = me == k->root;

    *r = (struct cm_gpu_rank){.bytes = block};
    if (n == 1)
        return false;
    switch (k->coll) {
    case CM_ALL_REDUCE:
        return set_shot(r, all, all, 0, 0);
    case CM_REDUCE_SCATTER:
        return set_shot(r, all, all, block, 0);
    case CM_ALL_GATHER:
        return set_shot(r, all, all, 0, block);
    case CM_ALLTOALL:
        return set_shot(r, all, all, block, block);
    case CM_BROADCAST:
        return set_shot(r, root ? all : nobody, k->root, 0, 0);
    case CM_SCATTER:
        return set_shot(r, root ? all : nobody, k->root, block, 0);
    case CM_REDUCE:
        return set_shot(r, k->root, root ? all : nobody, 0, 0);
    case CM_GATHER:
        return set_shot(r, k->root, root ? all : nobody, 0, block);
    case CM_SENDRECV:
        return set_shot(r, (me + 1) % n, (me + n - 1) % n, 0, 0);
    default: /* alltoallv: unequal blocks; hypercube: its exchanges are what is measured */
        return false;
    }
}
