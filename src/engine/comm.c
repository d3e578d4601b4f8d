/*
 * The communicator: choose, bind, cache, run.
 *
 * Invariant: all ranks call with equal keys in equal order, so operation
 * numbers, choices and bound plans agree everywhere without a message. What
 * the choice depends on (key, ranks, table, forced options) is equal by the
 * launcher's check of the options; the signature catches the rest.
 */
#include "engine/comm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stuck.h"
#include "engine/comm_int.h"
#include "engine/span.h"

enum { DEFAULT_LLC = 32 << 20 };

static bool same_key(const struct cm_key *a, const struct cm_key *b)
{
    return a->count == b->count && a->coll == b->coll && a->dtype == b->dtype && a->op == b->op &&
           a->root == b->root && a->matrix == b->matrix && a->in_place == b->in_place;
}

/* Ring order: by node, so that a ring enters and leaves each node once. */
static void fill_order(struct cm_comm *c, const int32_t *node)
{
    for (int r = 0; r < c->n; r++)
        c->node[r] = node != NULL ? node[r] : 0;
    c->one_node = cm_one_node(c->node, c->n);
    cm_order_by_node(c->node, c->n, c->order);
    c->contiguous = true;
    for (int r = 0; r < c->n; r++)
        c->contiguous &= c->order[r] == r;
}

static void fill_ports(struct cm_comm *c)
{
    const struct cm_layout *l = c->layout;

    for (int peer = 0; peer < c->n; peer++) {
        for (int ch = 0; ch < l->channels; ch++) {
            size_t k = (size_t)peer * (size_t)l->channels + (size_t)ch;
            size_t to = cm_port_at(l, c->world[c->rank], c->world[peer], ch);
            size_t from = cm_port_at(l, c->world[peer], c->world[c->rank], ch);

            c->send[k].lines = (struct cm_port_lines *)((char *)c->base + to);
            c->recv[k].lines = (struct cm_port_lines *)((char *)c->base + from);
            c->send[k].slots = (unsigned char *)(c->send[k].lines + 1);
            c->recv[k].slots = (unsigned char *)(c->recv[k].lines + 1);
        }
    }
}

static bool allocate(struct cm_comm *c)
{
    size_t n = (size_t)c->n, ports = n * (size_t)c->layout->channels;

    c->world = calloc(n, sizeof(*c->world));
    c->order = calloc(n, sizeof(*c->order));
    c->node = calloc(n, sizeof(*c->node));
    c->peer = calloc(n, sizeof(*c->peer));
    c->finished = calloc(n, sizeof(*c->finished));
    c->send = calloc(ports, sizeof(*c->send));
    c->recv = calloc(ports, sizeof(*c->recv));
    c->src = calloc(n + 1, sizeof(*c->src));
    c->dst = calloc(n + 1, sizeof(*c->dst));
    c->scale = calloc(n + 1, sizeof(*c->scale));
    return c->world && c->order && c->node && c->peer && c->finished && c->send && c->recv &&
           c->src && c->dst && c->scale;
}

static enum cm_status fill(struct cm_comm *c, const struct cm_comm_args *a)
{
    long llc = sysconf(_SC_LEVEL3_CACHE_SIZE);

    if (!allocate(c))
        return CM_FAIL(CM_ENOMEM, "communicator of %d ranks", c->n);
    for (int r = 0; r < c->n; r++) {
        c->world[r] = a->world[r];
        c->peer[r] = cm_rank_shared(a->base, a->layout, a->world[r]);
    }
    c->self = c->peer[c->rank];
    c->arena_at = cm_arena_at(a->layout, a->world[a->rank]);
    c->arena_end = c->arena_at + a->layout->arena_bytes;
    c->slot_stride = cm_slot_stride(a->layout);
    c->llc_bytes = llc > 0 ? (size_t)llc : DEFAULT_LLC;
    c->limits = (struct cm_limits){a->layout->channels, CM_MAX_WORKERS, a->layout->slot_bytes};
    if (atomic_load_explicit(&c->self->lines[0].seq, memory_order_relaxed) != 0)
        return CM_FAIL(CM_EINVAL, "rank %d has run operations on this segment before", c->rank);
    fill_order(c, a->node);
    fill_ports(c);
    if (a->gpu != NULL) {
        enum cm_status st;

        c->gpu = *a->gpu;
        c->exec = a->gpu->exec;
        st = c->exec->open(c);
        if (st != CM_OK)
            return st;
    }
    return cm_tune_parse(c->exec != NULL && c->exec->tuning != NULL ? c->exec->tuning
                                                                    : cm_tune_default,
                         "built-in tuning table", &c->tune);
}

enum cm_status cm_comm_open(const struct cm_comm_args *a, struct cm_comm **out)
{
    struct cm_comm *c;
    enum cm_status st;

    if (a->n < 1 || a->n > CM_MAX_RANKS || a->rank < 0 || a->rank >= a->n)
        return CM_FAIL(CM_EINVAL, "communicator: rank %d of %d", a->rank, a->n);
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return CM_FAIL(CM_ENOMEM, "communicator of %d ranks", a->n);
    c->rank = a->rank;
    c->n = a->n;
    c->base = a->base;
    c->layout = a->layout;
    c->waiter = a->waiter;
    c->scratch_at = a->scratch_at;
    c->scratch_bytes = a->scratch_bytes;
    c->force = a->force;
    c->trace = a->trace;
    st = fill(c, a);
    if (st != CM_OK) {
        cm_comm_close(c);
        return st;
    }
    cm_trace_comm(c);
    *out = c;
    return CM_OK;
}

void cm_comm_close(struct cm_comm *c)
{
    if (c == NULL)
        return;
    if (c->exec != NULL)
        c->exec->close(c);
    for (int k = 0; k < CM_BINDS; k++)
        cm_bound_free(c->binds[k]);
    cm_tune_free(c->tune);
    free(c->world);
    free(c->order);
    free(c->node);
    free(c->peer);
    free(c->finished);
    free(c->send);
    free(c->recv);
    free(c->src);
    free(c->dst);
    free(c->scale);
    free(c);
}

static struct cm_key key_of(const struct cm_op_args *a)
{
    return (struct cm_key){.coll = a->coll,
                           .dtype = a->dtype,
                           .op = a->op,
                           .root = a->root,
                           .count = a->count,
                           .matrix = a->matrix,
                           .in_place = a->in_place};
}

/* Bytes of the larger buffer of a rank: what the tuning table goes by. */
static size_t key_bytes(const struct cm_comm *c, const struct cm_key *k)
{
    struct cm_extent e = {c->n, 1, k->count, cm_dtypes[k->dtype].bytes, k->matrix};
    size_t most = 0;

    for (int r = 0; r < (k->matrix == NULL ? 1 : c->n); r++) {
        size_t in = cm_space_elems(&e, CM_IN, r, cm_in_blocks(k->coll, c->n));
        size_t out = cm_space_elems(&e, CM_OUT, r, cm_out_blocks(k->coll, c->n));

        most = in > most ? in : most;
        most = out > most ? out : most;
    }
    return most * e.esize;
}

/*
 * Apply what the user forces. A slot payload of 0 stands for the shared LL
 * slots; asking for copy mode by name means the ports between pairs.
 */
static void apply_force(const struct cm_comm *c, struct cm_choice *ch)
{
    const struct cm_force *f = &c->force;

    if (f->algo != NULL)
        ch->algo = f->algo;
    if (f->mode >= 0)
        ch->mode = (enum cm_mode)f->mode;
    if (f->proto == CM_PROTO_SIMPLE && ch->proto == CM_PROTO_LL && f->mode < 0)
        ch->mode = CM_MODE_DIRECT; /* the table's copy mode was for the sake of LL */
    if (f->proto != CM_PROTO_AUTO)
        ch->proto = f->proto;
    if (f->channels > 0)
        ch->channels = f->channels;
    ch->chunk = f->chunk > 0 ? f->chunk : ch->chunk;
}

/* May the operation go through the shared LL slots? */
static bool fits_ll(const struct cm_comm *c, const struct cm_key *k, const struct cm_choice *ch)
{
    const struct cm_force *f = &c->force;
    struct cm_ll_shape shape;

    return ch->proto == CM_PROTO_LL && f->mode != CM_MODE_COPY && f->chunk == 0 &&
           f->channels <= 1 && (f->algo == NULL || strcmp(f->algo, "direct") == 0) &&
           cm_ll_shape(c, k, &shape);
}

/* On several nodes an algorithm that goes by the node map uses ports. */
static void fit_nodes(const struct cm_comm *c, const struct cm_algo *algo, struct cm_choice *ch)
{
    if (c->one_node || !algo->by_node || c->force.mode >= 0)
        return;
    ch->mode = CM_MODE_COPY;
    if (c->force.proto != CM_PROTO_LL)
        ch->proto = CM_PROTO_SIMPLE; /* the table's LL means the shared slots */
}

static enum cm_status choose(const struct cm_comm *c, const struct cm_key *k, struct cm_choice *ch)
{
    const struct cm_algo *algo;

    if (!cm_tune_find(c->tune, k->coll, c->n, key_bytes(c, k), ch))
        return CM_FAIL(CM_EUNSUP, "no tuning rule for %s", cm_colls[k->coll].name);
    apply_force(c, ch);
    algo = cm_algo_find(ch->algo);
    if (algo == NULL || algo->build[k->coll] == NULL)
        return CM_FAIL(CM_EUNSUP, "%s has no %s algorithm", cm_colls[k->coll].name, ch->algo);
    fit_nodes(c, algo, ch);
    if (c->exec != NULL && c->exec->choose != NULL)
        return c->exec->choose(c, k, ch);
    if (fits_ll(c, k, ch)) {
        ch->mode = CM_MODE_COPY;
        ch->channels = 1;
        ch->chunk = 0;
        return CM_OK;
    }
    if (c->force.mode < 0 && ch->proto == CM_PROTO_LL && c->force.proto != CM_PROTO_LL)
        ch->mode = CM_MODE_DIRECT; /* the table's LL rule does not fit: small but not shared */
    if (ch->mode == CM_MODE_DIRECT) {
        ch->proto = CM_PROTO_SIMPLE;
        ch->chunk = 0;
    } else if (ch->chunk == 0 || ch->chunk > c->limits.slot_bytes) {
        ch->chunk = c->limits.slot_bytes;
    }
    return CM_OK;
}

enum cm_status cm_comm_choice(const struct cm_comm *c, const struct cm_op_args *a,
                              struct cm_choice *out)
{
    struct cm_key k = key_of(a);

    return choose(c, &k, out);
}

/* What other ranks compare and the time-out report tells. */
static void publish_signature(struct cm_comm *c, const struct cm_bound *b)
{
    struct cm_diag *d = &c->self->diag;
    const uint32_t parts[] = {
        b->key.coll,           b->key.dtype,           b->key.op,
        (uint32_t)b->key.root, (uint32_t)b->key.count, (uint32_t)(b->key.count >> 32)};

    for (size_t i = 0; i < CM_LEN(parts); i++)
        atomic_store_explicit(&d->sig_parts[i], parts[i], memory_order_relaxed);
    atomic_store_explicit(&d->sig, b->sig, memory_order_relaxed);
}

static bool in_arena(const struct cm_comm *c, const void *p, size_t bytes)
{
    size_t at = (size_t)((const char *)p - (const char *)c->base);

    if (c->exec != NULL)
        return c->exec->owns(c, p, bytes);
    return at >= c->arena_at && at <= c->arena_end && bytes <= c->arena_end - at;
}

/* No size computed from the count may wrap. */
static bool overflows(const struct cm_comm *c, const struct cm_op_args *a)
{
    size_t bytes;

    return __builtin_mul_overflow(a->count, cm_dtypes[a->dtype].bytes * (size_t)c->n, &bytes) ||
           bytes > SIZE_MAX / 4;
}

static enum cm_status check_args(const struct cm_comm *c, const struct cm_op_args *a)
{
    if (a->coll >= CM_NCOLLS || a->dtype >= CM_NDTYPES || a->op >= CM_NOPS)
        return CM_FAIL(CM_EINVAL, "operation: no such collective, type or op");
    if (cm_colls[a->coll].rooted && (a->root < 0 || a->root >= c->n))
        return CM_FAIL(CM_EINVAL, "%s: root %d of %d ranks", cm_colls[a->coll].name, a->root, c->n);
    if (a->in_place && !cm_colls[a->coll].in_place)
        return CM_FAIL(CM_EUNSUP, "%s has no in-place form", cm_colls[a->coll].name);
    if ((a->coll == CM_ALLTOALLV) != (a->matrix != NULL))
        return CM_FAIL(CM_EINVAL, "%s: a traffic matrix goes with alltoallv",
                       cm_colls[a->coll].name);
    if (overflows(c, a))
        return CM_FAIL(CM_EINVAL, "%s: %zu elements are too many", cm_colls[a->coll].name,
                       a->count);
    return CM_OK;
}

/* The bound operation of a key, from the cache or made now. */
static enum cm_status find_bound(struct cm_comm *c, const struct cm_op_args *a,
                                 struct cm_bound **out)
{
    struct cm_key k = key_of(a);
    struct cm_choice choice;
    enum cm_status st = check_args(c, a);

    if (st != CM_OK)
        return st;
    for (int i = 0; i < CM_BINDS; i++) {
        if (c->binds[i] != NULL && same_key(&c->binds[i]->key, &k)) {
            *out = c->binds[i];
            return CM_OK;
        }
    }
    st = choose(c, &k, &choice);
    if (st == CM_OK)
        st = cm_bind(c, &k, &choice, out);
    if (st != CM_OK)
        return st;
    cm_trace_bound(c, *out, key_bytes(c, &k));
    cm_bound_free(c->binds[c->next_bind]);
    c->binds[c->next_bind] = *out;
    c->next_bind = (c->next_bind + 1) % CM_BINDS;
    return CM_OK;
}

enum cm_status cm_comm_run(struct cm_comm *c, const struct cm_op_args *a)
{
    struct cm_key k = key_of(a);

    if (a->count == 0 && a->matrix == NULL)
        return CM_OK;
    if (c->last == NULL || !same_key(&c->last->key, &k)) {
        struct cm_bound *b = NULL;
        enum cm_status st = find_bound(c, a, &b);

        if (st != CM_OK)
            return st;
        c->last = b;
        publish_signature(c, b);
    }
    if (!in_arena(c, a->in, c->last->in_bytes) || !in_arena(c, a->out, c->last->out_bytes))
        return CM_FAIL(CM_EINVAL, "%s: buffer outside the rank's arena", cm_colls[a->coll].name);
    c->op++;
    atomic_store_explicit(&c->self->diag.op, c->op, memory_order_release); /* after its signature */
    if (c->exec != NULL)
        return c->exec->run(c, c->last, a);
    return c->last->ll ? cm_ll_run(c, c->last, a) : cm_exec_host(c, c->last, a);
}

enum cm_status cm_comm_sync(struct cm_comm *c)
{
    return c->exec != NULL ? c->exec->sync(c) : CM_OK;
}

bool cm_comm_leads(const struct cm_comm *c)
{
    return c->exec == NULL || c->gpu.member == 0;
}

enum cm_status cm_comm_mismatch(struct cm_comm *c, int peer)
{
    struct cm_text text;

    cm_mismatch_compose(c->waiter, c->world[peer], &text);
    if (!cm_abort_raise(c->waiter->abort, CM_EMISMATCH, c->world[c->rank]))
        return CM_EABORT;
    cm_text_write(&text);
    return CM_EMISMATCH;
}

const int32_t *cm_comm_order(const struct cm_comm *c)
{
    return c->order;
}

size_t cm_comm_scratch_bytes(size_t bytes, int n)
{
    /* The hungriest plan stages every chunk of the vector once; strides round up to a line each,
       and in two chunks at most also the part of each thread block. */
    return bytes + (size_t)n * 4096 + 4096 + 2 * (size_t)CM_GPU_BLOCKS * CM_LINE;
}
