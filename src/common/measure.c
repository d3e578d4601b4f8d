/*
 * fill - barrier - first call - warm-up - fill - barrier - timed loop - check -
 * checked launches.
 *
 * Each fill writes new data (a new seed) and poisons OUT, so that neither the
 * warm-up nor an earlier check can stand in for a result. A rank fills and
 * checks by itself, without a barrier: an operation returns only when OUT is
 * complete and IN may be rewritten, and the next one writes to nobody's OUT
 * before its owner has arrived. So ranks run into each other from one checked
 * launch to the next, as they do in an application.
 *
 * The timed loop has two clock reads around it and nothing else inside; where
 * samples, periodic checks or -z 3 are wanted, one read per iteration.
 * In place, sums and products grow from iteration to iteration; their result is
 * defined, and checked, only after a fill and one operation.
 */
#include "common/measure.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "common/data_gen.h"

static const struct cm_opts_run *run_of(const struct cm_meter *m)
{
    return &m->rank->opts->run;
}

static size_t width_of(const struct cm_trial *t)
{
    return cm_dtypes[t->op.dtype].bytes;
}

struct cm_trial cm_trial_of(const struct cm_meter *m, const struct cm_op_args *op,
                            const struct cm_counts *c, size_t send, size_t recv)
{
    struct cm_trial t = {.op = *op, .send = send, .recv = recv};
    size_t width = width_of(&t), shift = (size_t)run_of(m)->unalign * width;
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

static void enter(struct cm_meter *m, enum cm_phase_name phase, int64_t iter)
{
    atomic_store_explicit(&m->diag->iter, iter, memory_order_relaxed);
    atomic_store_explicit(&m->diag->phase, (uint32_t)phase, memory_order_relaxed);
}

static enum cm_status barrier(struct cm_meter *m)
{
    atomic_store_explicit(&m->diag->phase, CM_AT_SYNC, memory_order_relaxed);
    return cm_team_barrier(&m->rank->team);
}

static struct cm_data data_of(const struct cm_meter *m, const struct cm_trial *t)
{
    return (struct cm_data){.coll = t->op.coll,
                            .dtype = t->op.dtype,
                            .op = t->op.op,
                            .n = m->rank->group_n,
                            .seed = t->seed};
}

/* New data in IN, poison everywhere else. */
static void fill(struct cm_meter *m, struct cm_trial *t)
{
    size_t width = width_of(t);
    struct cm_data data;

    t->stale_seed = t->seed;
    t->seed = cm_mix_key(run_of(m)->seed ^ cm_mix_key(m->epoch++));
    t->fills++;
    t->ops = 0;
    t->unchecked = false;
    if (t->idle)
        return;
    data = data_of(m, t);
    if (t->op.in_place) {
        cm_poison(t->region, t->region_bytes, t->seed);
        cm_guard_fill(t->region, t->region_bytes);
    } else {
        cm_poison(t->out, t->recv * width, t->seed);
        cm_guard_fill(t->out, t->recv * width);
        cm_guard_fill(t->in, t->send * width);
    }
    if (!t->op.in_place || cm_data_reads(t->op.coll, m->rank->group_rank, t->op.root))
        cm_data_input(&data, m->rank->group_rank, 0, t->send, t->in);
}

static enum cm_status run_op(struct cm_meter *m, struct cm_trial *t, enum cm_phase_name phase,
                             int64_t iter)
{
    const struct cm_inject *f = m->rank->inject;
    enum cm_status st = CM_OK;

    if (t->idle)
        return CM_OK;
    enter(m, phase, iter);
    if (f->fault != CM_FAULT_NONE)
        st = cm_inject_before(f, &m->rank->waiter, m->rank->rank, phase, iter);
    if (st != CM_OK)
        return st;
    st = cm_comm_run(m->comm, &t->op);
    t->ops++;
    t->unchecked = true;
    if (f->fault != CM_FAULT_NONE && st == CM_OK)
        cm_inject_after(f, m->rank->rank, phase, iter, t->out, t->recv * width_of(t));
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
    static const char *const phases[CM_NPHASES] = {
        [CM_AT_TIMED] = "timed iteration", [CM_AT_CHECK] = "checked launch"};
    uint32_t phase = atomic_load_explicit(&m->diag->phase, memory_order_relaxed);
    char where[160];

    snprintf(where, sizeof(where), "%s %s%s%s %zu bytes, %s, %s %lld", cm_colls[t->op.coll].name,
             cm_dtypes[t->op.dtype].name, cm_colls[t->op.coll].reduces ? " " : "",
             cm_colls[t->op.coll].reduces ? cm_ops[t->op.op].name : "", t->row_bytes,
             t->op.in_place ? "in place" : "out of place", phases[phase],
             (long long)atomic_load_explicit(&m->diag->iter, memory_order_relaxed));
    cm_check_explain(c, e, where, &m->lines);
}

/* Compare all buffers with what the last fill must have become. */
static void check(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r)
{
    struct cm_check_args a = {.expect = {.data = data_of(m, t),
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
    struct cm_check c = {0};

    if (!is_defined(t))
        return;
    t->unchecked = false;
    if (cm_colls[t->op.coll].reduces)
        cm_sums_of(&a.expect.data, &m->sums);
    cm_check_output(&a, &c);
    cm_check_input(&a, &c);
    if (t->op.in_place) {
        cm_check_guard(t->region, t->region_bytes, &c);
    } else {
        cm_check_guard(t->out, t->recv * width_of(t), &c);
        cm_check_guard(t->in, t->send * width_of(t), &c);
    }
    r->wrong += c.wrong;
    if (c.wrong > 0)
        complain(m, t, &c, &a.expect);
}

static enum cm_status warm_up(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r)
{
    enum cm_status st = barrier(m);
    int64_t start;

    if (st != CM_OK)
        return st;
    start = cm_now_ns();
    st = run_op(m, t, CM_AT_WARMUP, 0);
    r->first_ns = cm_now_ns() - start;
    for (int i = 1; st == CM_OK && i <= run_of(m)->warmup; i++)
        st = run_op(m, t, CM_AT_WARMUP, i);
    return st;
}

/* The operations of one timed iteration. -z 1: a barrier after each. */
static enum cm_status iterate(struct cm_meter *m, struct cm_trial *t, int iter)
{
    const struct cm_opts_run *o = run_of(m);
    enum cm_status st = CM_OK;

    for (int k = 0; st == CM_OK && k < o->agg_iters; k++) {
        st = run_op(m, t, CM_AT_TIMED, iter);
        if (st == CM_OK && o->blocking == 1)
            st = barrier(m);
    }
    return st;
}

static enum cm_status time_plain(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r)
{
    int iters = run_of(m)->iters;
    enum cm_status st = CM_OK;
    int64_t start = cm_now_ns();

    for (int i = 0; st == CM_OK && i < iters; i++)
        st = iterate(m, t, i);
    r->total_ns = cm_now_ns() - start;
    return st;
}

static enum cm_status fill_and_meet(struct cm_meter *m, struct cm_trial *t)
{
    fill(m, t);
    return barrier(m);
}

/* Iterations with a clock read each; what is not an operation happens between two readings. */
static enum cm_status time_each(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r)
{
    const struct cm_opts_run *o = run_of(m);
    int64_t last = cm_now_ns(), now;
    enum cm_status st = CM_OK;

    for (int i = 0; st == CM_OK && i < o->iters; i++) {
        bool checks = o->check_every > 0 && (i + 1) % o->check_every == 0;

        if (checks) {
            st = fill_and_meet(m, t);
            last = cm_now_ns();
        }
        if (st == CM_OK)
            st = iterate(m, t, i);
        now = cm_now_ns();
        r->total_ns += now - last;
        if (m->sample_ns != NULL)
            m->sample_ns[i] = now - last;
        if (st == CM_OK && checks)
            check(m, t, r);
        if (st == CM_OK && (checks || o->blocking == 3))
            st = barrier(m);
        last = checks || o->blocking == 3 ? cm_now_ns() : now;
    }
    return st;
}

static enum cm_status timed_loop(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r)
{
    const struct cm_opts_run *o = run_of(m);
    bool each = m->sample_ns != NULL || o->check_every > 0 || o->blocking == 3;
    enum cm_status st = fill_and_meet(m, t);
    int64_t cpu;

    if (st != CM_OK)
        return st;
    cpu = cm_thread_cpu_ns();
    st = each ? time_each(m, t, r) : time_plain(m, t, r);
    r->cpu_ns = o->check_every > 0 ? -1 : cm_thread_cpu_ns() - cpu;
    if (st != CM_OK || o->checks <= 0)
        return st;
    enter(m, CM_AT_TIMED, o->iters - 1);
    check(m, t, r);
    return CM_OK;
}

static enum cm_status checked_launches(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r)
{
    for (int i = 0; i < run_of(m)->checks; i++) {
        enum cm_status st;

        enter(m, CM_AT_CHECK, i);
        fill(m, t);
        st = run_op(m, t, CM_AT_CHECK, i);
        if (st != CM_OK)
            return st;
        check(m, t, r);
    }
    return CM_OK;
}

enum cm_status cm_measure(struct cm_meter *m, struct cm_trial *t, struct cm_reading *out)
{
    enum cm_status st;

    *out = (struct cm_reading){0};
    atomic_store_explicit(&m->diag->bytes, t->row_bytes, memory_order_relaxed);
    atomic_store_explicit(&m->diag->coll, (uint32_t)t->op.coll, memory_order_relaxed);
    fill(m, t);
    st = warm_up(m, t, out);
    if (st == CM_OK)
        st = timed_loop(m, t, out);
    if (st == CM_OK)
        st = checked_launches(m, t, out);
    out->checked = !t->idle && (run_of(m)->checks > 0 || run_of(m)->check_every > 0);
    return st;
}
