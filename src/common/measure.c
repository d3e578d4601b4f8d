/*
 * fill - barrier - first call - warm-up - fill - barrier - timed loop - check -
 * checked launches. One order of things for all backends (struct cm_meter_ops).
 *
 * Each fill writes new data (a new seed) and poisons OUT, so that neither the
 * warm-up nor an earlier check can stand in for a result. A rank fills and
 * checks by itself, without a barrier: an operation is done only when OUT is
 * complete and IN may be rewritten, and the next one writes to nobody's OUT
 * before its owner has arrived. So ranks run into each other from one checked
 * launch to the next, as they do in an application.
 *
 * In place, sums and products grow from iteration to iteration; their result is
 * defined, and checked, only after a fill and one operation.
 */
#include "common/measure.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/data_gen.h"
#include "common/measure_int.h"
#include "common/topo_run.h"

static size_t width_of(const struct cm_trial *t)
{
    return cm_dtypes[t->op.dtype].bytes;
}

struct cm_trial cm_trial_of(const struct cm_meter *m, const struct cm_op_args *op,
                            const struct cm_counts *c, size_t send, size_t recv)
{
    struct cm_trial t = {.op = *op, .send = send, .recv = recv};
    size_t width = width_of(&t), shift = (size_t)cm_meter_opts(m)->unalign * width;
    size_t rank = (size_t)m->rank->group_rank;

    t.row_bytes = (c->send > c->recv ? c->send : c->recv) * width;
    t.idle = t.row_bytes == 0;
    t.in = m->buffers.in + shift;
    t.out = m->buffers.out + shift;
    if (op->in_place) {
        t.region = t.out;
        t.region_bytes = t.row_bytes;
        t.in = t.region + rank * c->in_step * width;
        t.out = t.region + rank * c->out_step * width;
    }
    t.op.in = t.in;
    t.op.out = t.out;
    return t;
}

void cm_meter_enter(struct cm_meter *m, enum cm_phase_name phase, int64_t iter)
{
    atomic_store_explicit(&m->diag->iter, iter, memory_order_relaxed);
    atomic_store_explicit(&m->diag->phase, (uint32_t)phase, memory_order_relaxed);
}

enum cm_status cm_meter_barrier(struct cm_meter *m)
{
    atomic_store_explicit(&m->diag->phase, CM_AT_SYNC, memory_order_relaxed);
    if (m->meet != NULL)
        return m->meet(m);
    return cm_team_barrier(&m->rank->team);
}

struct cm_check_args cm_meter_args(const struct cm_meter *m, const struct cm_trial *t)
{
    struct cm_data data = {.coll = t->op.coll,
                           .dtype = t->op.dtype,
                           .op = t->op.op,
                           .n = m->rank->group_n,
                           .seed = t->seed};

    return (struct cm_check_args){.expect = {.data = data,
                                             .rank = m->rank->group_rank,
                                             .root = t->op.root,
                                             .count = t->op.count,
                                             .matrix = t->op.matrix,
                                             .sums = &m->sums},
                                  .in = t->in,
                                  .out = t->out,
                                  .in_count = t->send,
                                  .out_count = t->recv,
                                  .in_place = t->op.in_place,
                                  .poisoned = t->op.in_place ? t->region : t->out,
                                  .poison_seed = t->seed,
                                  .has_stale = t->fills > 1,
                                  .stale_seed = t->stale_seed};
}

enum cm_status cm_meter_open_comm(struct cm_meter *m, const struct cm_comm_gpu *gpu)
{
    struct cm_rank *r = m->rank;
    const struct cm_opts_engine *o = &r->opts->engine;
    size_t n = (size_t)r->group_n;
    int32_t *node = calloc(2 * n, sizeof(*node));
    struct cm_comm_args a = {.rank = r->group_rank,
                             .n = r->group_n,
                             .world = r->group_world,
                             .node = node,
                             .base = r->base,
                             .layout = r->layout,
                             .waiter = &r->waiter,
                             .scratch_at = cm_arena_at(r->layout, r->rank) + m->buffers.scratch_at,
                             .scratch_bytes = m->buffers.scratch_bytes,
                             .force = {.algo = o->algo,
                                       .mode = o->mode,
                                       .proto = (enum cm_proto)o->proto,
                                       .channels = o->channels,
                                       .chunk = o->chunk},
                             .rules = r->rules,
                             .trace = r->trace,
                             .gpu = gpu,
                             .first_op = m->first_op};
    bool found = false;
    enum cm_status st = CM_OK;

    if (node == NULL)
        return CM_FAIL(CM_ENOMEM, "nodes of %d ranks", r->group_n);
    for (int i = 0; i < r->group_n; i++)
        node[i] = r->node_of[r->group_world[i]];
    if (m->meet == NULL) /* collective over the job */
        st = cm_topo_run_order(r, node + n, &found);
    a.order = found ? node + n : NULL;
    if (st == CM_OK)
        st = cm_comm_open(&a, &m->comm);
    free(node);
    return st;
}

/* New data in IN, poison everywhere else. */
static enum cm_status fill(struct cm_meter *m, struct cm_trial *t)
{
    t->stale_seed = t->seed;
    t->seed = cm_mix_key(cm_meter_opts(m)->seed ^ cm_mix_key(m->epoch++));
    t->fills++;
    t->ops = 0;
    t->unchecked = false;
    return t->idle ? CM_OK : m->ops->fill(m, t);
}

enum cm_status cm_meter_refill(struct cm_meter *m, struct cm_trial *t)
{
    enum cm_status st = fill(m, t);

    if (st == CM_OK)
        st = m->ops->sync(m);
    return st == CM_OK ? cm_meter_barrier(m) : st;
}

/* Only whom the fault concerns waits for the operation. While recording there is no OUT yet. */
enum cm_status cm_meter_corrupt(struct cm_meter *m, const struct cm_trial *t,
                                enum cm_phase_name phase, int64_t iter)
{
    const struct cm_inject *f = m->rank->inject;
    enum cm_status st;

    if (f->fault != CM_FAULT_CORRUPT || f->rank != m->rank->rank || m->capturing ||
        !cm_inject_in(f, m->side.name))
        return CM_OK;
    st = m->ops->sync(m);
    return st == CM_OK ? m->ops->corrupt(m, t, phase, iter) : st;
}

/*
 * --inject bw: as if the operation had moved its bytes at a part of the speed. The fastest
 * one counts: of ranks that are slow together one waits for the others each time, and what
 * is made of that would grow without end.
 */
static enum cm_status be_slow(struct cm_meter *m, int64_t start)
{
    const struct cm_inject *f = m->rank->inject;
    enum cm_status st;
    int64_t took;

    if (f->rank != m->rank->rank)
        return CM_OK;
    st = m->ops->sync(m);
    took = cm_now_ns() - start;
    if (m->least_ns == 0 || took < m->least_ns)
        m->least_ns = took;
    if (st == CM_OK)
        cm_inject_slow(f, m->least_ns);
    return st;
}

enum cm_status cm_meter_run(struct cm_meter *m, struct cm_trial *t, enum cm_phase_name phase,
                            int64_t iter)
{
    const struct cm_inject *f = m->rank->inject;
    enum cm_status st = CM_OK;
    int64_t start = 0;

    if (t->idle)
        return CM_OK;
    cm_meter_enter(m, phase, iter);
    if (f->fault != CM_FAULT_NONE && cm_inject_in(f, m->side.name))
        st = cm_inject_before(f, &m->rank->waiter, m->rank->rank, phase, iter);
    if (st != CM_OK)
        return st;
    if (f->fault == CM_FAULT_BW)
        start = cm_now_ns(); /* a tenth of a small operation */
    st = m->side.engine == NULL ? cm_comm_run(m->comm, &t->op) : m->side.engine->run(m->side.state);
    if (f->fault == CM_FAULT_BW && st == CM_OK && cm_inject_in(f, m->side.name))
        st = be_slow(m, start);
    t->ops++;
    t->unchecked = true;
    if (m->ops->pace != NULL && st == CM_OK && !m->capturing)
        st = m->ops->pace(m, 1);
    if (f->fault != CM_FAULT_NONE && st == CM_OK)
        st = cm_meter_corrupt(m, t, phase, iter);
    return st;
}

/* Is OUT what one operation on the data of the last fill gives, and not yet checked? */
static bool is_defined(const struct cm_trial *t)
{
    bool repeats = !t->op.in_place || !cm_colls[t->op.coll].reduces || t->op.op == CM_MIN ||
                   t->op.op == CM_MAX;

    return t->unchecked && (t->ops == 1 || repeats);
}

static void complain(struct cm_meter *m, const struct cm_trial *t, const struct cm_check *c,
                     const struct cm_expect *e)
{
    uint32_t phase = atomic_load_explicit(&m->diag->phase, memory_order_relaxed);
    const char *launch = phase == CM_AT_CHECK          ? "checked launch"
                         : cm_meter_opts(m)->graph > 0 ? "replay"
                                                       : "timed iteration";
    bool names = m->steps > 0 || m->side.engine != NULL; /* there are others */
    char where[160];

    snprintf(where, sizeof(where), "%s%s%s %s%s%s %zu bytes, %s, %s %lld",
             names ? m->side.name : "", names ? ": " : "", cm_colls[t->op.coll].name,
             cm_dtypes[t->op.dtype].name, cm_colls[t->op.coll].reduces ? " " : "",
             cm_colls[t->op.coll].reduces ? cm_ops[t->op.op].name : "", t->row_bytes,
             t->op.in_place ? "in place" : "out of place", launch,
             (long long)atomic_load_explicit(&m->diag->iter, memory_order_relaxed));
    cm_check_explain(c, e, where, &m->lines);
}

/* Compare all buffers with what the last fill must have become. */
enum cm_status cm_meter_check(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r)
{
    struct cm_expect e = cm_meter_args(m, t).expect;
    struct cm_check c = {0};
    enum cm_status st;

    if (!is_defined(t))
        return CM_OK;
    t->unchecked = false;
    if (cm_colls[t->op.coll].reduces)
        cm_sums_of(&e.data, &m->sums);
    st = m->ops->check(m, t, &c);
    r->wrong += c.wrong;
    if (c.wrong > 0)
        complain(m, t, &c, &e);
    return st;
}

/* ---- untimed ---- */

enum cm_status cm_meter_bind(struct cm_meter *m, const struct cm_trial *t)
{
    return m->side.engine != NULL && !t->idle ? m->side.engine->bind(m->side.state, &t->op) : CM_OK;
}

enum cm_status cm_meter_warm_up(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r)
{
    enum cm_status st = cm_meter_refill(m, t);
    int64_t start;

    if (st != CM_OK)
        return st;
    start = cm_now_ns();
    st = cm_meter_run(m, t, CM_AT_WARMUP, 0);
    if (st == CM_OK)
        st = m->ops->sync(m);
    r->first_ns = cm_now_ns() - start;
    for (int i = 1; st == CM_OK && i <= cm_meter_opts(m)->warmup; i++)
        st = cm_meter_run(m, t, CM_AT_WARMUP, i);
    return st == CM_OK ? m->ops->sync(m) : st;
}

enum cm_status cm_meter_checked_launches(struct cm_meter *m, struct cm_trial *t,
                                         struct cm_reading *r)
{
    enum cm_status st = CM_OK;

    for (int i = 0; st == CM_OK && i < cm_meter_opts(m)->checks; i++) {
        cm_meter_enter(m, CM_AT_CHECK, i);
        st = fill(m, t);
        if (st == CM_OK)
            st = cm_meter_run(m, t, CM_AT_CHECK, i);
        if (st == CM_OK)
            st = m->ops->sync(m);
        if (st == CM_OK)
            st = cm_meter_check(m, t, r);
    }
    return st;
}

static void push(struct cm_meter *m, const char *name)
{
    if (m->ops->range_push != NULL)
        m->ops->range_push(name);
}

static void pop(struct cm_meter *m)
{
    if (m->ops->range_pop != NULL)
        m->ops->range_pop();
}

void cm_meter_begin(struct cm_meter *m, const struct cm_trial *t)
{
    m->least_ns = 0;
    atomic_store_explicit(&m->diag->bytes, t->row_bytes, memory_order_relaxed);
    atomic_store_explicit(&m->diag->coll, (uint32_t)t->op.coll, memory_order_relaxed);
}

typedef enum cm_status part_fn(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r);

enum cm_status cm_measure(struct cm_meter *m, struct cm_trial *t, struct cm_reading *out)
{
    static const struct {
        const char *name;
        part_fn *run;
    } parts[] = {{"warm-up", cm_meter_warm_up},
                 {"timed", cm_meter_timed_loop},
                 {"check", cm_meter_checked_launches}};
    enum cm_status st = cm_meter_bind(m, t);
    char row[96];

    *out = (struct cm_reading){0};
    cm_meter_begin(m, t);
    snprintf(row, sizeof(row), "%s %s %zu B %s", cm_colls[t->op.coll].name,
             cm_dtypes[t->op.dtype].name, t->row_bytes,
             t->op.in_place ? "in place" : "out of place");
    push(m, row);
    for (size_t i = 0; st == CM_OK && i < CM_LEN(parts); i++) {
        push(m, parts[i].name);
        st = parts[i].run(m, t, out);
        pop(m);
    }
    pop(m);
    if (cm_meter_opts(m)->graph > 0) {
        if (st == CM_OK)
            st = cm_meter_barrier(m); /* as before making it: see capture() */
        m->ops->graph_free(m);
    }
    out->checked = !t->idle && (cm_meter_opts(m)->checks > 0 || cm_meter_opts(m)->check_every > 0);
    return st;
}
