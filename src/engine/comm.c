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

#include "engine/comm_int.h"
#include "engine/span.h"

enum { DEFAULT_LLC = 32 << 20 };

static bool same_key(const struct cm_key *a, const struct cm_key *b)
{
    return a->count == b->count && a->coll == b->coll && a->dtype == b->dtype && a->op == b->op &&
           a->root == b->root && a->matrix == b->matrix && a->in_place == b->in_place;
}

/* Ring order: by node, so that a ring enters and leaves each node once. */
static void fill_order(struct cm_comm *c, const struct cm_comm_args *a)
{
    for (int r = 0; r < c->n; r++)
        c->node[r] = a->node != NULL ? a->node[r] : 0;
    c->nodes = cm_count_nodes(c->node, c->n);
    c->one_node = c->nodes == 1;
    cm_order_by_node(c->node, c->n, c->order);
    c->by_topology = a->order != NULL;
    c->contiguous = true;
    for (int r = 0; r < c->n; r++) {
        c->order[r] = a->order != NULL ? a->order[r] : c->order[r];
        c->contiguous &= c->order[r] == r;
    }
}

/* Ports go on where an earlier communicator left them: each end counts in its own line. */
static void take_counts(struct cm_port *send, struct cm_port *recv)
{
    send->count = atomic_load_explicit(&send->lines->tail, memory_order_acquire);
    send->seen = atomic_load_explicit(&send->lines->head, memory_order_acquire);
    recv->count = atomic_load_explicit(&recv->lines->head, memory_order_acquire);
    recv->seen = atomic_load_explicit(&recv->lines->tail, memory_order_acquire);
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
            c->send[k].far = c->recv[k].far = cm_local_of(l, c->world[peer]) < 0 &&
                                              c->remote != NULL && c->remote->far;
            if (c->first_op > 0) /* else unused ports stay untouched, and cost no memory */
                take_counts(&c->send[k], &c->recv[k]);
        }
    }
}

void cm_comm_discard(void *base, const struct cm_layout *l, int rank, const int32_t *from, int n)
{
    for (int k = 0; k < n * l->channels; k++) {
        size_t at = cm_port_at(l, from[k / l->channels], rank, k % l->channels);
        struct cm_port_lines *p = (struct cm_port_lines *)((char *)base + at);

        atomic_store_explicit(&p->head, atomic_load_explicit(&p->tail, memory_order_acquire),
                              memory_order_release);
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

/* Where operations start, and that all before are finished: see cm_comm_open(). */
static enum cm_status start_at(struct cm_comm *c, const struct cm_comm_args *a)
{
    uint64_t last = 0;

    for (int w = 0; w < CM_MAX_WORKERS; w++) {
        uint64_t seq = atomic_load_explicit(&c->self->lines[w].seq, memory_order_relaxed);

        last = seq >> CM_PHASE_BITS > last ? seq >> CM_PHASE_BITS : last;
    }
    if (a->first_op >= CM_MAX_OP || last > a->first_op)
        return CM_FAIL(CM_EINVAL,
                       "rank %d has run operations on this segment before: the last was %llu, the "
                       "next would come after %llu",
                       c->rank, (unsigned long long)last, (unsigned long long)a->first_op);
    if (a->first_op > 0 && a->gpu != NULL && !a->gpu->exec->reopens)
        return CM_FAIL(CM_EUNSUP, "ranks on GPUs (%s) have one communicator in a run",
                       a->gpu->exec->name);
    c->op = c->first_op = c->finished_min = a->first_op;
    for (int r = 0; r < c->n; r++)
        c->finished[r] = a->first_op;
    return CM_OK;
}

static enum cm_status fill(struct cm_comm *c, const struct cm_comm_args *a)
{
    long llc = sysconf(_SC_LEVEL3_CACHE_SIZE);
    enum cm_status st;

    if (!allocate(c))
        return CM_FAIL(CM_ENOMEM, "communicator of %d ranks", c->n);
    for (int r = 0; r < c->n; r++) {
        c->world[r] = a->world[r];
        c->peer[r] = cm_rank_shared(a->base, a->layout, a->world[r]);
        if (cm_local_of(a->layout, a->world[r]) < 0)
            c->remote = a->waiter->remote;
    }
    c->self = c->peer[c->rank];
    c->arena_at = cm_arena_at(a->layout, a->world[a->rank]);
    c->arena_end = c->arena_at + a->layout->arena_bytes;
    c->slot_stride = cm_slot_stride(a->layout);
    c->llc_bytes = llc > 0 ? (size_t)llc : DEFAULT_LLC;
    c->limits = (struct cm_limits){a->layout->channels, CM_MAX_WORKERS, a->layout->slot_bytes};
    st = start_at(c, a);
    if (st != CM_OK)
        return st;
    fill_order(c, a);
    fill_ports(c);
    if (a->gpu != NULL) {
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
    c->rules = a->rules;
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

enum cm_status cm_comm_choice(const struct cm_comm *c, const struct cm_op_args *a,
                              struct cm_choice *out)
{
    struct cm_key k = key_of(a);

    return cm_choose(c, &k, out);
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
    st = cm_choose(c, &k, &choice);
    if (st == CM_OK)
        st = cm_bind(c, &k, &choice, out);
    if (st != CM_OK)
        return st;
    cm_trace_bound(c, *out, cm_key_largest(c, &k));
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
    return cm_fail_mismatch(c->waiter, c->world[peer]);
}

size_t cm_comm_scratch_bytes(size_t bytes, int n)
{
    /* The hungriest plan stages every chunk of the vector once; strides round up to a line each,
       and in two chunks at most also the part of each thread block. */
    return bytes + (size_t)n * 4096 + 4096 + 2 * (size_t)CM_GPU_BLOCKS * CM_LINE;
}
