/*
 * Executor of GPUs: which kernel an operation takes, its arguments, the upload
 * of plans, the launch for the gang, and the wait with a deadline.
 *
 * A small operation is one exchange through the LL inboxes (SHOT), a large one
 * that is a single direct fold runs without a plan (PASS); everything else is
 * interpreted (PLAN, LL). All of it depends on the key and on facts that all
 * ranks share, so all ranks launch the same.
 *
 * With ranks on other nodes all of it is PLAN through ports, which a wire of the
 * host carries: whoever waits here for kernels drives it meanwhile.
 */
#include <string.h>

#include "engine/exec_cuda_int.h"

/* Bytes that one block should have to do before a second one pays. */
enum { BLOCK_BYTES = 16 << 10, SHOT_BLOCK_UNITS = 512, WARP = 32, MAX_THREADS = 512 };
/* A kernel that waits tells so every CM_GPU_POLLS polls; the host looks more often. */
enum { STALE_LOOKS = 1000 };

static struct cm_cuda *state_of(const struct cm_comm *c)
{
    return c->state;
}

static enum cm_status open_cuda(struct cm_comm *c)
{
    const struct cm_p2p *p = c->gpu.p2p;
    const struct cm_layout *l = c->layout; /* of the ports to other nodes, where there are any */
    int channels = (int)p->area.channels;

    if (c->remote != NULL && l->channels < channels)
        channels = l->channels;
    c->limits = (struct cm_limits){.channels = channels,
                                   .workers = CM_GPU_BLOCKS < p->blocks ? CM_GPU_BLOCKS : p->blocks,
                                   .slot_bytes = p->area.slot_bytes};
    if (c->remote != NULL)
        c->limits.slot_bytes = cm_min_size(c->limits.slot_bytes, l->slot_bytes);
    return cm_cuda_open(c, (struct cm_cuda **)&c->state);
}

static void close_cuda(struct cm_comm *c)
{
    cm_cuda_close(c, state_of(c));
    c->state = NULL;
}

static bool owns(const struct cm_comm *c, const void *p, size_t bytes)
{
    const struct cm_gpu_area *a = &c->gpu.p2p->area;
    size_t at = (size_t)((const unsigned char *)p - c->gpu.p2p->base);

    return at >= a->arena_at && at <= a->bytes && bytes <= a->bytes - at;
}

/* ---- choice ---- */

/* The larger of a rank's buffers; alltoallv: of any rank's, so that all choose alike. */
static size_t work_bytes(const struct cm_comm *c, const struct cm_key *k)
{
    size_t most = 0, in = cm_key_bytes(c, k, CM_IN), out = cm_key_bytes(c, k, CM_OUT);

    for (size_t i = 0; k->matrix != NULL && i < (size_t)c->n * (size_t)c->n; i++)
        most = k->matrix[i] > most ? k->matrix[i] : most;
    if (k->matrix != NULL)
        return most * (size_t)c->n * cm_dtypes[k->dtype].bytes;
    return in > out ? in : out;
}

static int blocks_for(size_t bytes, size_t each, int most)
{
    size_t blocks = bytes / each + (bytes % each != 0);

    blocks = blocks < (size_t)most ? blocks : (size_t)most;
    return blocks > 0 ? (int)blocks : 1;
}

/* May the operation be one exchange through the inboxes? *r says what goes where. */
static bool fits_shot(const struct cm_comm *c, const struct cm_key *k, const struct cm_choice *ch,
                      struct cm_gpu_rank *r)
{
    const struct cm_force *f = &c->force;

    return ch->proto == CM_PROTO_LL && f->mode != CM_MODE_COPY && f->chunk == 0 &&
           (f->algo == NULL || strcmp(f->algo, "direct") == 0) && cm_cuda_shot(c, k, r) &&
           r->bytes <= c->gpu.p2p->area.inbox_bytes;
}

/* Where some GPUs cannot reach each other, all goes through ports. */
static enum cm_status without_reach(const struct cm_comm *c, const struct cm_key *k,
                                    struct cm_choice *ch)
{
    const struct cm_algo *ring = cm_algo_find("ring");

    if (c->force.mode == CM_MODE_DIRECT)
        return CM_FAIL(CM_EUNSUP, "--mode direct: not all GPUs can reach each other's memory (%s)",
                       c->gpu.p2p->how);
    ch->mode = CM_MODE_COPY;
    if (c->force.algo == NULL && ring->build[k->coll] != NULL)
        ch->algo = ring->name;
    return CM_OK;
}

/* Ranks of several nodes have ports of protocol simple, and the blocks that have ports at all. */
static enum cm_status choose_remote(const struct cm_comm *c, const struct cm_key *k,
                                    struct cm_choice *ch)
{
    const struct cm_force *f = &c->force;
    int most = f->channels > 0 ? f->channels : ch->channels;

    if (f->mode == CM_MODE_DIRECT)
        return CM_FAIL(CM_EUNSUP, "--mode direct: GPUs of other nodes are out of reach, take copy");
    if (f->proto == CM_PROTO_LL)
        return CM_FAIL(CM_EUNSUP, "--proto ll: between nodes GPUs have protocol simple only");
    most = most < c->limits.channels ? most : c->limits.channels;
    ch->mode = CM_MODE_COPY;
    ch->proto = CM_PROTO_SIMPLE;
    if (ch->chunk == 0 || ch->chunk > c->limits.slot_bytes)
        ch->chunk = c->limits.slot_bytes;
    ch->channels = f->channels > 0 ? most : blocks_for(work_bytes(c, k), BLOCK_BYTES, most);
    return CM_OK;
}

static enum cm_status choose(const struct cm_comm *c, const struct cm_key *k, struct cm_choice *ch)
{
    const struct cm_p2p *p = c->gpu.p2p;
    size_t bytes = work_bytes(c, k), slot = p->area.slot_bytes;
    enum cm_status st = CM_OK;
    struct cm_gpu_rank r;
    int most = c->force.channels > 0 ? c->force.channels : ch->channels;

    if (c->remote != NULL)
        return choose_remote(c, k, ch);
    most = most < c->limits.workers ? most : c->limits.workers;
    if (!c->one_node && ch->mode == CM_MODE_DIRECT && cm_algo_find(ch->algo)->by_node)
        return CM_FAIL(CM_EUNSUP, "%s %s has no form in direct mode on several nodes for GPUs",
                       cm_colls[k->coll].name, ch->algo);
    if (fits_shot(c, k, ch, &r)) {
        *ch = (struct cm_choice){.algo = "direct",
                                 .mode = CM_MODE_COPY,
                                 .proto = CM_PROTO_LL,
                                 .channels = blocks_for(r.bytes / 8, SHOT_BLOCK_UNITS, most)};
        return CM_OK;
    }
    if (c->force.proto == CM_PROTO_LL && c->force.mode < 0)
        ch->mode = CM_MODE_COPY; /* the user's LL needs ports */
    else if (ch->proto == CM_PROTO_LL && c->force.mode < 0)
        ch->mode = CM_MODE_DIRECT; /* the table's LL rule does not fit */
    if (ch->mode == CM_MODE_DIRECT && !p->all_near)
        st = without_reach(c, k, ch);
    if (ch->mode == CM_MODE_DIRECT || c->force.proto != CM_PROTO_LL)
        ch->proto = CM_PROTO_SIMPLE;
    slot = ch->proto == CM_PROTO_LL ? slot / 2 : slot; /* half of a line is flags */
    ch->chunk = ch->chunk == 0 || ch->chunk > slot ? slot : ch->chunk;
    if (ch->mode == CM_MODE_DIRECT)
        ch->chunk = 0;
    ch->channels = c->force.channels > 0 ? most : blocks_for(bytes, BLOCK_BYTES, most);
    return st;
}

/* ---- arguments ---- */

/* One direct fold between two barriers: which, on this rank; false: the plan is no such thing. */
static bool is_pass(const struct cm_comm *c, const struct cm_bound *b, struct cm_gpu_rank *r)
{
    size_t block = b->key.count * b->esize, at = (size_t)c->rank * block;
    int parts = b->key.coll == CM_ALL_REDUCE ? c->n : 1;
    struct cm_span s = cm_share(b->key.count, parts == 1 ? 0 : c->rank, parts, b->esize);

    if (b->choice.mode != CM_MODE_DIRECT || strcmp(b->choice.algo, "direct") != 0)
        return false;
    r->len = s.len;
    r->from_at = r->to_at = s.at * b->esize;
    r->from = r->to = 0;
    r->nfrom = r->nto = c->n;
    switch (b->key.coll) {
    case CM_ALL_REDUCE:
        return true;
    case CM_REDUCE_SCATTER:
        r->from_at = at;
        r->to = c->rank;
        r->nto = 1;
        return true;
    case CM_ALL_GATHER:
        r->from = c->rank;
        r->nfrom = 1;
        r->to_at = at;
        return true;
    default:
        return false;
    }
}

/* min, max: bits turned so that the larger of unsigned numbers, or of floats, is the winner. */
static uint64_t flip_of(enum cm_dtype t, enum cm_op op)
{
    uint64_t all = UINT64_MAX >> (64 - 8 * cm_dtypes[t].bytes), sign = all ^ all >> 1;
    enum cm_kind kind = cm_dtypes[t].kind;

    if (op == CM_MIN)
        return kind == CM_KIND_FLOAT ? sign : kind == CM_KIND_INT ? all ^ sign : all;
    return op == CM_MAX && kind == CM_KIND_INT ? sign : 0;
}

/* The launch without its ranks; copies move bytes. */
static void fill_launch(const struct cm_comm *c, const struct cm_bound *b, struct cm_launch *l)
{
    bool reduces = cm_colls[b->key.coll].reduces;

    l->dtype = reduces ? b->key.dtype : CM_UINT8;
    l->op = reduces ? b->key.op : CM_SUM;
    l->args = (struct cm_gpu_args){.blocks = (uint32_t)b->choice.channels,
                                   .n = (uint32_t)c->n,
                                   .reduces = reduces,
                                   .sig = b->sig,
                                   .divisor = b->divisor,
                                   .is_signed = cm_dtypes[b->key.dtype].kind == CM_KIND_INT,
                                   .premul = b->premul,
                                   .flip = reduces ? flip_of(b->key.dtype, b->key.op) : 0};
}

/* Threads of a block: no more than have something to do in 16-byte (LL: 8-byte) pieces. */
static int threads_for(size_t bytes, size_t each, int blocks, int ranks)
{
    size_t pieces = bytes / each / (size_t)blocks + 1;
    int least = (ranks + WARP - 1) / WARP * WARP;
    int t = pieces >= MAX_THREADS ? MAX_THREADS : (int)((pieces + WARP - 1) / WARP * WARP);

    return t > least ? t : least;
}

/* Kernel and this rank's part. */
static enum cm_status fill_rank(struct cm_comm *c, struct cm_bound *b, const struct cm_op_args *a,
                                struct cm_launch *l, struct cm_gpu_rank *r)
{
    size_t unit = cm_colls[b->key.coll].reduces ? 1 : b->esize, bytes = work_bytes(c, &b->key);
    int blocks = b->choice.channels;
    enum cm_status st = CM_OK;

    *r = (struct cm_gpu_rank){.base = 0};
    if (b->ll) {
        l->kernel = CM_GPU_SHOT;
        cm_cuda_shot(c, &b->key, r);
        l->threads = threads_for(r->bytes, 8, blocks, c->n);
    } else if (is_pass(c, b, r)) {
        l->kernel = CM_GPU_PASS;
        r->len *= unit;
        r->each = cm_share_each(r->len, (uint32_t)blocks, (uint32_t)(b->esize / unit));
        l->threads = threads_for(bytes, 16, blocks, c->n);
    } else {
        l->kernel = b->choice.mode == CM_MODE_COPY && b->choice.proto == CM_PROTO_LL ? CM_GPU_LL
                                                                                     : CM_GPU_PLAN;
        st = cm_cuda_upload(c, state_of(c), b, unit);
        r->plan = b->uploaded;
        blocks = b->nworkers * b->reps;
        l->args.blocks = (uint32_t)blocks;
        l->threads = threads_for(bytes, l->kernel == CM_GPU_LL ? 8 : 16, blocks, 2 * c->n + 1);
    }
    if (st == CM_OK && blocks > c->gpu.p2p->blocks)
        return CM_FAIL(CM_EUNSUP,
                       "%s %s: %d thread blocks must run at once, %d fit on each rank's "
                       "part of a GPU",
                       cm_colls[b->key.coll].name, b->choice.algo, blocks, c->gpu.p2p->blocks);
    r->base = (uint64_t)(uintptr_t)c->gpu.p2p->base;
    r->in = (uint64_t)(uintptr_t)a->in;
    r->out = (uint64_t)(uintptr_t)a->out;
    return st;
}

static enum cm_status launch(struct cm_comm *c, struct cm_launch *l, const struct cm_gpu_rank *all)
{
    int members = cm_gang_members(c->gpu.gang);

    l->args.nranks = (uint32_t)members;
    memcpy(l->args.rank, all, (size_t)members * sizeof(*all));
    l->cooperative = members > 1;
    return cm_gpu_launch(l, cm_gpu_stream(c->gpu.gpu));
}

static enum cm_status run(struct cm_comm *c, struct cm_bound *b, const struct cm_op_args *a)
{
    struct cm_launch *l = &state_of(c)->launch;
    const struct cm_gpu_rank *all;
    struct cm_gpu_rank mine;
    enum cm_status st;

    fill_launch(c, b, l);
    st = fill_rank(c, b, a, l, &mine);
    if (st == CM_OK)
        st = cm_gang_join(c->gpu.gang, c->gpu.member, c->waiter, &mine, &all);
    if (st != CM_OK)
        return st;
    if (all != NULL)
        st = launch(c, l, all);
    if (c->remote != NULL)
        c->remote->progress(c->remote->arg); /* the host may not wait for long */
    return cm_gang_launched(c->gpu.gang, c->gpu.member, c->waiter, st);
}

/* ---- waiting ---- */

/* A word that kernels write while the host looks. */
static uint32_t hinted(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* World rank that a kernel of this rank says it waits for; -2: it has said nothing for a while. */
static int waits_for(const struct cm_comm *c, struct cm_cuda *s)
{
    uint32_t beats = hinted(&c->self->hint.beats), peer = hinted(&c->self->hint.peer);

    if (beats != s->beats)
        s->looks = 0;
    else if (s->looks < STALE_LOOKS)
        s->looks++;
    s->beats = beats;
    return s->looks < STALE_LOOKS && peer < (uint32_t)c->n ? c->world[peer] : -2;
}

uint32_t cm_comm_progress(const struct cm_comm *c)
{
    return hinted(&c->self->hint.done);
}

/*
 * Every member of a gang waits: each has its own deadline, and its own hints to tell.
 * After an abort kernels end too, with nothing done.
 */
static enum cm_status sync_cuda(struct cm_comm *c)
{
    struct cm_spin spin = cm_spin_start();
    uint32_t progress = cm_comm_progress(c);
    bool done = false;
    enum cm_status st = cm_gpu_done(c->gpu.gpu, &done);

    while (st == CM_OK && !done) {
        uint32_t stranger = hinted(&c->self->hint.stranger);

        if (stranger != 0 && stranger <= (uint32_t)c->n)
            return cm_comm_mismatch(c, (int)stranger - 1);
        if (cm_comm_progress(c) != progress)
            spin = cm_spin_start();
        progress = cm_comm_progress(c);
        st = cm_spin_watching(&spin, c->waiter, waits_for(c, state_of(c)));
        if (st == CM_OK)
            st = cm_gpu_done(c->gpu.gpu, &done);
    }
    if (st == CM_OK && cm_waiter_ended(c->waiter))
        return CM_EABORT;
    if (st == CM_OK && c->remote != NULL)
        c->remote->rest(c->remote->arg);
    return st;
}

const struct cm_exec cm_exec_cuda = {
    .name = "cuda",
    .tuning = cm_tune_gpu,
    .splits = true,
    .open = open_cuda,
    .close = close_cuda,
    .choose = choose,
    .owns = owns,
    .run = run,
    .sync = sync_cuda,
};
