/*
 * The host's side of measuring: buffers in the rank's arena of the segment,
 * filled and checked by the rank's own thread. An operation is done when it
 * returns, so nothing has to be waited for, and a mark is a clock read.
 */
#include "common/measure.h"

#include "base/clock.h"
#include "common/cache.h"

static enum cm_status host_open(struct cm_meter *m)
{
    struct cm_rank *r = m->rank;
    void *arena = (char *)r->base + cm_arena_at(r->layout, r->rank);

    m->buffers = cm_buffers_place(r->opts, r->n, r->rank, arena);
    return cm_meter_open_comm(m, NULL);
}

static void host_close(struct cm_meter *m, bool orderly)
{
    (void)orderly;
    cm_comm_close(m->comm);
    m->comm = NULL;
}

static size_t width_of(const struct cm_trial *t)
{
    return cm_dtypes[t->op.dtype].bytes;
}

static enum cm_status host_fill(struct cm_meter *m, const struct cm_trial *t)
{
    struct cm_check_args a = cm_meter_args(m, t);
    size_t width = width_of(t);
    int rank = a.expect.rank;

    if (t->op.in_place) {
        cm_poison(t->region, t->region_bytes, t->seed);
        cm_guard_fill(t->region, t->region_bytes);
    } else {
        cm_poison(t->out, t->recv * width, t->seed);
        cm_guard_fill(t->out, t->recv * width);
        cm_guard_fill(t->in, t->send * width);
    }
    if (!t->op.in_place || cm_data_reads(t->op.coll, rank, t->op.root))
        cm_data_input(&a.expect.data, rank, 0, t->send, t->in);
    return CM_OK;
}

static enum cm_status host_check(struct cm_meter *m, const struct cm_trial *t, struct cm_check *c)
{
    struct cm_check_args a = cm_meter_args(m, t);

    cm_check_output(&a, c);
    cm_check_input(&a, c);
    if (t->op.in_place) {
        cm_check_guard(t->region, t->region_bytes, c);
    } else {
        cm_check_guard(t->out, t->recv * width_of(t), c);
        cm_check_guard(t->in, t->send * width_of(t), c);
    }
    return CM_OK;
}

static enum cm_status host_corrupt(struct cm_meter *m, const struct cm_trial *t,
                                   enum cm_phase_name phase, int64_t iter)
{
    cm_inject_after(m->rank->inject, m->rank->rank, phase, iter, t->out, t->recv * width_of(t));
    return CM_OK;
}

static enum cm_status host_sync(struct cm_meter *m)
{
    (void)m;
    return CM_OK;
}

static enum cm_status host_mark(struct cm_meter *m, int k)
{
    m->mark_ns[k] = cm_now_ns();
    return CM_OK;
}

static enum cm_status host_elapsed(struct cm_meter *m, int n, int64_t *ns)
{
    for (int i = 0; i < n; i++)
        ns[i] = m->mark_ns[i + 1] - m->mark_ns[i];
    return CM_OK;
}

const struct cm_meter_ops cm_meter_host = {
    .open = host_open,
    .close = host_close,
    .fill = host_fill,
    .check = host_check,
    .corrupt = host_corrupt,
    .recache = cm_cache_host,
    .sync = host_sync,
    .mark = host_mark,
    .elapsed = host_elapsed,
};
