/*
 * The rig's devices, areas and communicators. Areas are plain memory, filled
 * as cm_p2p_open() would: for a near peer `theirs` is its area and `mine` is my own; for a far
 * one both are second areas "in host memory"; for one on the other node there are ports.
 */
#include "exec_rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS = 64 /* that fit on a device, per rank */, HEAD_BYTES = 8 /* used of a slot's */ };

int rig_races;

/* ---- what sanitizers have to say and to be told ---------------------------------------------- */

#if defined(__clang__)
__attribute__((no_sanitize("thread"))) /* it would report itself, and wait for its own lock */
#endif
void __tsan_on_report(void *report);
__attribute__((weak)) void __asan_poison_memory_region(const volatile void *at, size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *at, size_t bytes);

void __tsan_on_report(void *report)
{
    (void)report;
    rig_races++;
}

static void forbid(const void *at, size_t bytes)
{
    if (__asan_poison_memory_region != NULL)
        __asan_poison_memory_region(at, bytes);
}

static void allow(const void *at, size_t bytes)
{
    if (__asan_unpoison_memory_region != NULL)
        __asan_unpoison_memory_region(at, bytes);
}

/* ---- areas ----------------------------------------------------------------------------------- */

/* 0 or 1: the first or the second half of the ranks. */
static int half_of(const struct rig *r, int rank)
{
    return rank >= r->set.n / 2;
}

struct rig_node *rig_node(const struct rig *r, int rank)
{
    return (struct rig_node *)&r->node[r->set.reach == RIG_NODES ? half_of(r, rank) : 0];
}

static bool is_remote(const struct rig *r, int a, int b)
{
    return rig_node(r, a) != rig_node(r, b);
}

static bool is_far(const struct rig *r, int a, int b)
{
    if (a == b)
        return false;
    return r->set.reach == RIG_FAR ||
           (r->set.reach == RIG_HALVES && half_of(r, a) != half_of(r, b));
}

/* Where `reader` finds what `writer` has written for it. */
static uint64_t meeting_place(const struct rig *r, int writer, int reader)
{
    const struct rig_rank *k = &r->rank[reader];

    return (uint64_t)(uintptr_t)(is_far(r, writer, reader) ? k->far : k->area);
}

static void fill_state(struct rig *r, int rank)
{
    struct cm_gpu_state *s = (struct cm_gpu_state *)r->rank[rank].area;
    const struct rig_node *node = rig_node(r, rank);

    s->magic = CM_GPU_MAGIC;
    s->rank = (uint32_t)rank;
    s->abort = (uint64_t)(uintptr_t) & ((struct cm_shared *)node->segment)->abort.status;
    s->hint = (uint64_t)(uintptr_t)&cm_rank_shared(node->segment, &node->layout, rank)->hint;
    s->area = r->area;
    s->remote_port = cm_port_stride(&node->layout);
    s->remote_slot = cm_slot_stride(&node->layout);
    for (int p = 0; p < r->set.n; p++) {
        bool far = is_far(r, rank, p);
        uint64_t base = (uint64_t)(uintptr_t)r->rank[p].area;

        if (is_remote(r, rank, p)) {
            s->peers[p] = rig_remote_peer(r, rank, p);
            continue;
        }
        s->peers[p] = (struct cm_gpu_peer){.mine = meeting_place(r, p, rank),
                                           .theirs = meeting_place(r, rank, p),
                                           .data = far ? 0 : base,
                                           .scratch = far ? 0 : base + r->scratch_at};
    }
}

/* Nobody has to do with the unused bytes of slots' heads. */
static void forbid_gaps(const struct cm_gpu_area *a, const unsigned char *base)
{
    uint64_t slots = (uint64_t)a->n * a->channels * CM_GPU_PROTOS * a->depth;

    for (uint64_t i = 0; i < slots; i++)
        forbid(base + a->slots_at + i * a->slot_stride + HEAD_BYTES, CM_GPU_LINE - HEAD_BYTES);
}

static bool open_area(struct rig *r, int rank)
{
    struct rig_rank *k = &r->rank[rank];

    k->area = aligned_alloc(CM_PAGE, r->area.bytes);
    k->far = aligned_alloc(CM_PAGE, r->area.sync_bytes);
    if (k->area == NULL || k->far == NULL)
        return false;
    memset(k->area, 0, r->area.bytes);
    memset(k->far, 0, r->area.sync_bytes);
    k->room[0] = k->area + r->area.arena_at;
    k->room[1] = k->room[0] + r->set.room;
    forbid_gaps(&r->area, k->area);
    forbid_gaps(&r->area, k->far);
    return true;
}

void rig_unlock(struct rig *r, int rank)
{
    allow(r->rank[rank].room[0], 2 * r->set.room);
}

void rig_lock(struct rig *r, int rank)
{
    forbid(r->rank[rank].room[0], 2 * r->set.room);
}

/* ---- communicators --------------------------------------------------------------------------- */

static size_t scratch_bytes(const struct rig *r)
{
    return cm_comm_scratch_bytes(r->set.room, r->set.n);
}

static bool open_comm(struct rig *r, int rank)
{
    static const int32_t world[RIG_RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct rig_node *node = rig_node(r, rank);
    bool nodes = r->set.reach == RIG_NODES;
    struct rig_rank *k = &r->rank[rank];
    int32_t node_of[RIG_RANKS];
    struct cm_comm_args a = {.rank = rank,
                             .n = r->set.n,
                             .world = world,
                             .node = nodes ? node_of : NULL,
                             .base = node->segment,
                             .layout = &node->layout,
                             .waiter = &k->waiter,
                             .scratch_bytes = scratch_bytes(r),
                             .force = r->set.force,
                             .gpu = &k->link};

    for (int p = 0; p < r->set.n; p++)
        node_of[p] = half_of(r, p);
    k->p2p = (struct cm_p2p){.rank = rank,
                             .n = r->set.n,
                             .gpu = &k->gpu,
                             .area = r->area,
                             .base = k->area,
                             .all_near = r->set.reach == RIG_NEAR,
                             .blocks = BLOCKS,
                             .how = "the rig"};
    k->waiter = (struct cm_waiter){.rank = rank,
                                   .nranks = r->set.n,
                                   .spins = 1,
                                   .timeout_ns = 1000000000,
                                   .abort = &((struct cm_shared *)node->segment)->abort,
                                   .diag_of = cm_waiter_diag,
                                   .base = node->segment,
                                   .layout = &node->layout,
                                   .remote = nodes ? &r->remote : NULL};
    k->waiter.diag = cm_waiter_diag(&k->waiter, rank);
    if (cm_gang_open(1, &k->gang) != CM_OK)
        return false;
    k->link = (struct cm_comm_gpu){
        .exec = &cm_exec_cuda, .gpu = &k->gpu, .gang = k->gang, .p2p = &k->p2p};
    return cm_comm_open(&a, &k->comm) == CM_OK;
}

static void set_defaults(struct rig_setup *s)
{
    s->channels = s->channels > 0 ? s->channels : 4;
    s->depth = s->depth > 0 ? s->depth : 2;
    s->slot_bytes = s->slot_bytes > 0 ? s->slot_bytes : 1024;
    s->inbox_bytes = s->inbox_bytes > 0 ? s->inbox_bytes : 2048;
    s->ll_mask = s->ll_mask > 0 ? s->ll_mask : UINT32_MAX;
    s->room = s->room > 0 ? s->room : 256 << 10;
    s->sim.external |= s->reach == RIG_NODES;
}

/* The rig moves slots between its steps, whoever asks for it. */
static bool progress(void *arg)
{
    (void)arg;
    return false;
}

static bool open_node(struct rig *r, int index)
{
    struct rig_node *node = &r->node[index];
    const struct rig_setup *s = &r->set;
    bool nodes = s->reach == RIG_NODES;

    node->layout = (struct cm_layout){.nranks = s->n,
                                      .channels = nodes ? s->channels : 1,
                                      .depth = nodes ? s->depth : 1,
                                      .slot_bytes = nodes ? s->slot_bytes : 64,
                                      .arena_bytes = CM_PAGE};
    for (int k = 0; nodes && k < s->n; k++)
        node->local_of[k] = half_of(r, k) == index ? node->layout.nlocal++ : -1;
    if (nodes)
        node->layout.local_of = node->local_of;
    if (cm_layout_fill(&node->layout) != CM_OK)
        return false;
    node->segment =
        mmap(NULL, node->layout.total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return node->segment != MAP_FAILED;
}

static bool fill_geometry(struct rig *r)
{
    const struct rig_setup *s = &r->set;

    r->remote = (struct cm_remote){.progress = progress};
    r->area = (struct cm_gpu_area){.n = (uint32_t)s->n,
                                   .channels = (uint32_t)s->channels,
                                   .depth = (uint32_t)s->depth,
                                   .ll_mask = s->ll_mask,
                                   .slot_bytes = s->slot_bytes,
                                   .inbox_bytes = s->inbox_bytes};
    r->area.arena_bytes = (2 * s->room + scratch_bytes(r) + CM_PAGE - 1) / CM_PAGE * CM_PAGE;
    if (cm_gpu_area_fill(&r->area) != CM_OK)
        return false;
    r->scratch_at = r->area.arena_at + 2 * s->room;
    return open_node(r, 0) && (s->reach != RIG_NODES || open_node(r, 1));
}

struct rig *rig_open(const struct rig_setup *set)
{
    struct rig *r = calloc(1, sizeof(*r));
    bool ok = r != NULL;

    if (!ok)
        return NULL;
    r->set = *set;
    set_defaults(&r->set);
    r->random = r->set.sim.seed;
    ok = fill_geometry(r);
    for (int k = 0; k < r->set.n && ok; k++)
        ok = open_area(r, k);
    for (int k = 0; k < r->set.n && ok; k++) {
        fill_state(r, k);
        ok = open_comm(r, k);
        rig_lock(r, k);
    }
    cmsim_reset();
    cmsim_configure(&r->set.sim);
    if (ok)
        return r;
    fprintf(stderr, "rig: not opened\n");
    rig_close(r);
    return NULL;
}

void rig_close(struct rig *r)
{
    cmsim_reset();
    for (int k = 0; k < r->set.n; k++) {
        cm_comm_close(r->rank[k].comm);
        cm_gang_close(r->rank[k].gang);
        free(r->rank[k].area);
        free(r->rank[k].far);
    }
    for (size_t i = 0; i < CM_LEN(r->node); i++)
        if (r->node[i].segment != NULL && r->node[i].segment != MAP_FAILED)
            munmap(r->node[i].segment, r->node[i].layout.total);
    free(r);
}

struct cm_gpu_hint rig_hint(const struct rig *r, int rank)
{
    const struct rig_node *node = rig_node(r, rank);
    const struct cm_gpu_hint *h = &cm_rank_shared(node->segment, &node->layout, rank)->hint;

    return (struct cm_gpu_hint){.beats = __atomic_load_n(&h->beats, __ATOMIC_RELAXED),
                                .peer = __atomic_load_n(&h->peer, __ATOMIC_RELAXED),
                                .stranger = __atomic_load_n(&h->stranger, __ATOMIC_RELAXED)};
}

void rig_abort(struct rig *r)
{
    for (size_t i = 0; i < CM_LEN(r->node); i++)
        if (r->node[i].segment != NULL)
            atomic_store(&((struct cm_shared *)r->node[i].segment)->abort.status,
                         (uint32_t)CM_EABORT);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* The plan that PASS needs no longer, as fill_rank() of the executor would have launched it. */
static bool interpret(struct rig_rank *k, const struct rig_op *op)
{
    struct rig_launch *l = &k->gpu.launch;
    struct cm_bound *b = k->comm->last;
    bool reduces = cm_colls[op->coll].reduces;

    if (cm_cuda_upload(k->comm, k->comm->state, b, reduces ? 1 : b->esize) != CM_OK)
        return false;
    l->kernel = CM_GPU_PLAN;
    l->thunk = rig_thunk(CM_GPU_PLAN, reduces ? op->dtype : CM_UINT8, reduces ? op->op : CM_SUM);
    l->args.rank[0].plan = b->uploaded;
    l->args.blocks = (uint32_t)(b->nworkers * b->reps);
    return true;
}

bool rig_enqueue(struct rig *r, int rank, const struct rig_op *op, void *in, void *out)
{
    struct rig_rank *k = &r->rank[rank];
    struct cm_op_args a = {.coll = op->coll,
                           .dtype = op->dtype,
                           .op = op->op,
                           .root = op->root,
                           .count = op->count,
                           .in = in,
                           .out = out,
                           .in_place = op->in_place,
                           .matrix = op->matrix};

    if (op->forces)
        k->comm->force = op->force;
    k->gpu.launch.thunk = NULL;
    if (cm_comm_run(k->comm, &a) != CM_OK)
        return false;
    if (r->set.interpret && k->gpu.launch.kernel == CM_GPU_PASS && !interpret(k, op))
        return false;
    if (r->set.threads > 0)
        k->gpu.launch.threads = r->set.threads;
    return true;
}

/* The launch of rank 0 with the parts of all; they must agree on everything else. */
static bool merge(const struct rig *r, struct rig_launch *l)
{
    for (int k = 1; k < r->set.n; k++) {
        const struct rig_launch *other = &r->rank[k].gpu.launch;

        if (other->thunk != l->thunk || other->args.blocks != l->args.blocks ||
            other->threads != l->threads) {
            fprintf(stderr, "rig: ranks 0 and %d launch different kernels\n", k);
            return false;
        }
        l->args.rank[k] = other->args.rank[0];
    }
    l->args.nranks = (uint32_t)r->set.n;
    return true;
}

int rig_submit(struct rig *r, int rank)
{
    bool all = rank == RIG_RANKS;
    struct rig_launch l = r->rank[all ? 0 : rank].gpu.launch;
    struct cmsim_launch s = {.thunk = l.thunk,
                             .args = &l.args,
                             .argbytes = sizeof(l.args),
                             .grid_x = l.args.blocks,
                             .threads = (unsigned)l.threads,
                             .device = all ? 0 : rank};

    if (l.thunk == NULL || (all && !merge(r, &l)))
        return -1;
    s.grid_y = l.args.nranks;
    rig_launches[l.kernel]++;
    return cmsim_add(&s);
}
