/*
 * Bind: turn (plan, sizes, type, operation) once into folds without loops,
 * with byte offsets, lines and kernels resolved, so that the hot path is wait,
 * move, post. Buffer addresses stay out: they travel in the arrive lines.
 *
 * A plan with k channels is repeated channels/k times; repetition j works on
 * channels [j k, (j+1) k) and posts on lines [j w, (j+1) w), w = plan workers.
 */
#include <assert.h>
#include <stdlib.h>

#include "engine/comm_int.h"
#include "engine/span.h"

struct binder {
    const struct cm_comm *c;
    const struct cm_plan *plan;
    struct cm_bound *b;
    struct cm_extent extent;
    size_t scratch_stride; /* bytes */
    size_t longest;        /* elements of the longest chunk */
    size_t share;          /* room of one share of it; no share of any chunk is longer */
    int channels;          /* in all */
    int rep;               /* repetition being bound */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

/* Signature: what all ranks must agree on. Never 0. */
static uint64_t signature(const struct cm_key *k, int n)
{
    uint64_t h = mix(0x636f6c6cull, (uint64_t)k->coll);

    h = mix(h, (uint64_t)k->dtype);
    h = mix(h, cm_colls[k->coll].reduces ? (uint64_t)k->op : 0);
    h = mix(h, cm_colls[k->coll].rooted ? (uint64_t)k->root : 0);
    h = mix(h, k->count);
    for (size_t i = 0; k->matrix != NULL && i < (size_t)n * (size_t)n; i++)
        h = mix(h, k->matrix[i]);
    return h | 1;
}

/* Make room for `more` entries in a growing pool: its place, or NULL (the old one stays valid). */
static void *grow(void *pool, int *cap, int used, int more, size_t bytes)
{
    int want = *cap == 0 ? 64 : *cap;
    void *p;

    if (pool != NULL && used + more <= *cap)
        return pool;
    while (want < used + more)
        want *= 2;
    p = realloc(pool, (size_t)want * bytes);
    if (p != NULL)
        *cap = want;
    return p;
}

static bool make_room(struct cm_bound *b, const struct cm_fold *f)
{
    void *folds = grow(b->folds, &b->cap_folds, b->nfolds, 1, sizeof(*b->folds));
    void *waits = grow(b->waits, &b->cap_waits, b->nwaits, f->nwait, sizeof(*b->waits));
    void *operands =
        grow(b->operands, &b->cap_operands, b->noperands, f->nfrom + f->nto, sizeof(*b->operands));

    b->folds = folds != NULL ? folds : b->folds;
    b->waits = waits != NULL ? waits : b->waits;
    b->operands = operands != NULL ? operands : b->operands;
    return folds != NULL && waits != NULL && operands != NULL;
}

/* Byte offset of an operand from the start of its space, and its share's length. */
static struct cm_span operand_span(const struct binder *d, const struct cm_operand *o,
                                   int64_t chunk, int channel)
{
    enum cm_space space = o->space == CM_PORT ? (enum cm_space)o->numbering
                                              : (enum cm_space)o->space;
    int rank = o->space == CM_PORT ? d->plan->rank : o->rank;
    struct cm_span s, share;

    if (space == CM_SCRATCH)
        return (struct cm_span){
            (size_t)chunk * d->scratch_stride + (size_t)channel * d->share * d->extent.esize, 0};
    s = cm_chunk_span(&d->extent, space, rank, chunk);
    share = cm_share(s.len, channel, d->channels, d->extent.esize);
    return (struct cm_span){(s.at + share.at) * d->extent.esize, share.len};
}

static bool has_length(const struct cm_operand *o)
{
    return o->space == CM_IN || o->space == CM_OUT;
}

/* Bind `count` operands of a fold into the pool; f->len becomes the length of its chunks. */
static void bind_operands(struct binder *d, const struct cm_operand *o, int count,
                          const int64_t i[2], struct cm_bound_fold *f)
{
    int channel = d->b->workers[d->b->nworkers].channel;

    for (int k = 0; k < count; k++) {
        int64_t chunk = cm_index_at(&o[k].chunk, d->plan->perm, i[0], i[1]);
        struct cm_span s = operand_span(d, &o[k], chunk, channel);
        struct cm_bound_operand *to = &d->b->operands[d->b->noperands++];

        *to = (struct cm_bound_operand){o[k].space, o[k].rank, s.at};
        if (has_length(&o[k]) || (o[k].space == CM_PORT && f->len == SIZE_MAX))
            f->len = s.len;
        f->fills |= o[k].space == CM_PORT;
    }
}

/* Waits for a phase below 1 hold from the start (the first turns of a loop): they are left out. */
static void bind_waits(struct binder *d, const struct cm_fold *f, const int64_t i[2],
                       struct cm_bound_fold *to)
{
    for (int k = 0; k < f->nwait; k++) {
        const struct cm_wait_on *w = &d->plan->waits[f->wait + k];
        int64_t phase = cm_index_at(&w->phase, d->plan->perm, i[0], i[1]);
        int line = w->worker + d->rep * d->plan->nworkers;

        if (phase > 0)
            d->b->waits[d->b->nwaits++] = (struct cm_bound_wait){w->rank, line, (uint32_t)phase};
    }
    to->nwait = d->b->nwaits - to->wait;
}

static enum cm_status bind_fold(struct binder *d, const struct cm_fold *f, const int64_t i[2])
{
    struct cm_bound *b = d->b;
    struct cm_bound_fold *to;

    assert(f->nfrom <= d->c->n + 1 && f->nto <= d->c->n + 1);
    if (!make_room(b, f))
        return CM_FAIL(CM_ENOMEM, "plan %s: %d folds", d->plan->algo, b->nfolds);
    to = &b->folds[b->nfolds++];
    *to = (struct cm_bound_fold){.from = b->noperands,
                                 .nfrom = f->nfrom,
                                 .to = b->noperands + f->nfrom,
                                 .nto = f->nto,
                                 .wait = b->nwaits,
                                 .len = SIZE_MAX,
                                 .post = f->post,
                                 .divide = f->complete,
                                 .refer = -1,
                                 .place = -1};
    bind_operands(d, &d->plan->operands[f->from], f->nfrom, i, to);
    to->fills = false; /* so far it only empties them */
    bind_operands(d, &d->plan->operands[f->to], f->nto, i, to);
    bind_waits(d, f, i, to);
    if (to->len == SIZE_MAX) /* SCRATCH to SCRATCH: its chunks are as long as the longest */
        to->len =
            f->nfrom == 0
                ? 0
                : cm_share(d->longest, b->workers[b->nworkers].channel, d->channels, b->esize).len;
    return CM_OK;
}

/* Index of the END that closes the LOOP at `at`. */
static int loop_end(const struct cm_plan *p, int at)
{
    int depth = 0;

    for (;; at++) {
        depth += p->folds[at].code == CM_LOOP;
        depth -= p->folds[at].code == CM_END;
        if (depth == 0)
            return at;
    }
}

/* Bind a worker's folds in the order they run, loops repeated. */
static enum cm_status bind_range(struct binder *d, int first, int end)
{
    const struct cm_fold *folds = d->plan->folds;
    int64_t i[2] = {0, 0};
    int start[2] = {0, 0}, depth = 0;
    enum cm_status st = CM_OK;

    for (int at = first; at < end && st == CM_OK; at++) {
        if (folds[at].code == CM_LOOP) {
            assert(depth < 2);
            if (folds[at].trips == 0)
                at = loop_end(d->plan, at);
            else
                start[depth++] = at;
        } else if (folds[at].code == CM_END) {
            if (++i[depth - 1] < folds[start[depth - 1]].trips)
                at = start[depth - 1];
            else
                i[--depth] = 0;
        } else {
            st = bind_fold(d, &folds[at], i);
        }
    }
    return st;
}

static bool has_operands(const struct cm_bound_fold *f)
{
    return f->nfrom + f->nto > 0;
}

/*
 * Find what belongs to the first pass and to the last one, and mark the first of
 * the trailing folds that only wait: CM_PHASE_DONE is posted before it.
 */
static void mark_ends(struct cm_bound *b, struct cm_bound_worker *w)
{
    struct cm_bound_fold *folds = b->folds + w->first;

    w->exit = w->nfolds;
    while (w->exit > 0 && !has_operands(&folds[w->exit - 1]) && !folds[w->exit - 1].post)
        w->exit--;
    while (w->enter < w->exit && !has_operands(&folds[w->enter]))
        w->enter++;
    if (w->exit < w->nfolds)
        folds[w->exit].done_first = true;
}

static enum cm_status bind_workers(struct binder *d)
{
    const struct cm_plan *p = d->plan;
    enum cm_status st = CM_OK;
    int reps = d->channels / p->nchannels;

    for (d->rep = 0; d->rep < reps && st == CM_OK; d->rep++) {
        for (int k = 0; k < p->nworkers && st == CM_OK; k++) {
            struct cm_bound_worker *w = &d->b->workers[d->b->nworkers];

            w->first = d->b->nfolds;
            w->channel = p->workers[k].channel + d->rep * p->nchannels;
            w->line = k + d->rep * p->nworkers;
            st = bind_range(d, p->workers[k].first, p->workers[k].first + p->workers[k].nfolds);
            w->nfolds = d->b->nfolds - w->first;
            mark_ends(d->b, w);
            d->b->nworkers++;
        }
    }
    return st;
}

size_t cm_key_bytes(const struct cm_comm *c, const struct cm_key *k, enum cm_space space)
{
    struct cm_extent e = {c->n, 1, k->count, cm_dtypes[k->dtype].bytes, k->matrix};
    int blocks = space == CM_IN ? cm_in_blocks(k->coll, c->n) : cm_out_blocks(k->coll, c->n);

    return cm_space_elems(&e, space, c->rank, blocks) * e.esize;
}

/* Non-temporal stores pay once the buffers of all ranks no longer fit their share of the cache. */
static bool wants_stream(const struct cm_comm *c, const struct cm_bound *b)
{
    size_t bytes = b->out_bytes + (b->key.in_place ? 0 : b->in_bytes);

    return bytes >= c->llc_bytes / 4 * 3 / (size_t)c->n;
}

static enum cm_status bind_plan(struct cm_comm *c, struct cm_bound *b, const struct cm_plan *p)
{
    struct binder d = {.c = c, .plan = p, .b = b};
    size_t share;

    d.extent = (struct cm_extent){c->n, p->pieces, b->key.count, b->esize, b->key.matrix};
    d.longest = cm_longest_chunk(&d.extent);
    d.channels = b->choice.channels;
    d.share = cm_share(d.longest, 0, d.channels, b->esize).len;
    share = cm_share(d.share, 0, b->reps, b->esize).len;
    /* Chunks of SCRATCH are reused for others of another length, by blocks that do not wait for
       each other: so each block has a part of its own there, whatever the length. */
    d.share = share * (size_t)b->reps;
    b->scratch_step = share * b->esize;
    d.scratch_stride = (d.share * (size_t)d.channels * b->esize + 63) / 64 * 64;
    b->scratch_used = d.scratch_stride * (size_t)p->scratch;
    if (b->scratch_used > c->scratch_bytes)
        return CM_FAIL(CM_ENOMEM, "%s %s needs %zu bytes of scratch memory, there are %zu",
                       cm_colls[p->coll].name, p->algo, b->scratch_used, c->scratch_bytes);
    b->cap = p->ports ? b->choice.chunk / b->esize : share;
    b->npasses = b->cap == 0 || share <= b->cap ? 1 : (share + b->cap - 1) / b->cap;
    return bind_workers(&d);
}

/* Channels in use: a multiple of the plan's, within what segment and lines can hold. */
static int fit_channels(const struct cm_comm *c, const struct cm_plan *p, int want)
{
    int most = c->limits.channels / p->nchannels, lines = c->limits.workers / p->nworkers;
    int reps = want / p->nchannels;

    if (!p->ports)
        most = lines;
    reps = reps < most ? reps : most;
    reps = reps < lines ? reps : lines;
    return (reps < 1 ? 1 : reps) * p->nchannels;
}

static enum cm_status build_and_bind(struct cm_comm *c, struct cm_bound *b)
{
    struct cm_build_args a = {.coll = b->key.coll,
                              .mode = b->choice.mode,
                              .rank = c->rank,
                              .n = c->n,
                              .root = b->key.root,
                              .order = c->contiguous ? NULL : c->order,
                              .node = c->one_node ? NULL : c->node};
    struct cm_plan *p = NULL;
    enum cm_status st = cm_plan_build(cm_algo_find(b->choice.algo), &a, &p);

    if (st == CM_EUNSUP)
        return CM_FAIL(st, "%s %s has no form in %s mode on several nodes", cm_colls[a.coll].name,
                       b->choice.algo, a.mode == CM_MODE_COPY ? "copy" : "direct");
    if (st == CM_OK && p->nchannels > c->limits.channels && p->ports)
        st = CM_FAIL(CM_EINVAL, "%s %s needs %d channels, there are %d", cm_colls[a.coll].name,
                     p->algo, p->nchannels, c->limits.channels);
    if (st == CM_OK) {
        b->choice.channels = fit_channels(c, p, b->choice.channels);
        if (c->exec != NULL && c->exec->splits) {
            b->reps = b->choice.channels / p->nchannels;
            b->choice.channels = p->nchannels;
        }
        st = bind_plan(c, b, p);
        if (st == CM_OK && p->ports)
            cm_bind_far(c, b);
        b->choice.channels *= b->reps;
    }
    cm_plan_free(p);
    return st;
}

enum cm_status cm_bind(struct cm_comm *c, const struct cm_key *k, const struct cm_choice *choice,
                       struct cm_bound **out)
{
    struct cm_bound *b = calloc(1, sizeof(*b));
    bool avg = cm_colls[k->coll].reduces && k->op == CM_AVG;
    enum cm_status st = CM_OK;

    if (b == NULL)
        return CM_FAIL(CM_ENOMEM, "plan of %s", cm_colls[k->coll].name);
    b->key = *k;
    b->reps = 1;
    b->choice = *choice;
    b->sig = signature(k, c->n);
    b->esize = cm_dtypes[k->dtype].bytes;
    b->in_bytes = cm_key_bytes(c, k, CM_IN);
    b->out_bytes = cm_key_bytes(c, k, CM_OUT);
    b->stream = wants_stream(c, b);
    b->reduce = cm_reduce_kernel(k->dtype, k->op, b->stream);
    b->reduce_cached = cm_reduce_kernel(k->dtype, k->op, false);
    b->divisor = avg ? c->n : 1;
    b->premul = cm_colls[k->coll].reduces && k->op == CM_MULSUM;
    b->ll = choice->chunk == 0 && choice->proto == CM_PROTO_LL &&
            ((c->exec != NULL && c->exec->splits) || cm_ll_shape(c, k, &b->shape));
    if (!b->ll)
        st = build_and_bind(c, b);
    if (st != CM_OK) {
        cm_bound_free(b);
        return st;
    }
    *out = b;
    return CM_OK;
}

void cm_bound_free(struct cm_bound *b)
{
    if (b == NULL)
        return;
    free(b->folds);
    free(b->operands);
    free(b->waits);
    free(b);
}
