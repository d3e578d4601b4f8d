/*
 * The timed loop: a mark before and a mark behind it, and nothing else inside;
 * where samples, periodic checks, --cache or -z 3 are wanted, a mark per step.
 *
 * A step is an iteration or, with -G, a replay of the whole loop, which was
 * recorded before. Steps without a pause between them are a stretch; waiting
 * and adding up happen between stretches and are not timed.
 */
#include "base/clock.h"
#include "common/cache.h"
#include "common/measure_int.h"

/* -z 1 and 2, after each operation. */
static enum cm_status block(struct cm_meter *m)
{
    int blocking = cm_meter_opts(m)->blocking;
    enum cm_status st = blocking == 1 || blocking == 2 ? m->ops->sync(m) : CM_OK;

    return st == CM_OK && blocking == 1 ? cm_meter_barrier(m) : st;
}

/* The operations of one iteration. A graph has no pauses inside. */
static enum cm_status iterate(struct cm_meter *m, struct cm_trial *t, int iter)
{
    const struct cm_opts_run *o = cm_meter_opts(m);
    enum cm_status st = CM_OK;

    for (int k = 0; st == CM_OK && k < o->agg_iters; k++) {
        st = cm_meter_run(m, t, CM_AT_TIMED, iter);
        if (st == CM_OK && o->blocking != 0 && !m->capturing)
            st = block(m);
    }
    return st;
}

/* The loop once more. Of faults in OUT only one in its last iteration would be left. */
static enum cm_status replay(struct cm_meter *m, struct cm_trial *t, int i)
{
    const struct cm_opts_run *o = cm_meter_opts(m);
    int64_t ops = (int64_t)o->iters * o->agg_iters;
    enum cm_status st;

    if (t->idle)
        return CM_OK;
    cm_meter_enter(m, CM_AT_TIMED, i);
    t->ops += ops;
    t->unchecked = true;
    st = m->ops->replay(m);
    if (st == CM_OK)
        st = m->ops->pace(m, ops);
    if (st == CM_OK)
        st = cm_meter_corrupt(m, t, CM_AT_TIMED, o->iters - 1);
    return st == CM_OK ? block(m) : st;
}

static enum cm_status step(struct cm_meter *m, struct cm_trial *t, int i)
{
    return cm_meter_opts(m)->graph > 0 ? replay(m, t, i) : iterate(m, t, i);
}

/*
 * Record the loop. Its plan was bound by the first call, and nothing runs on any
 * rank: making a graph may wait for a device, and a kernel for a launch not made yet.
 */
static enum cm_status capture(struct cm_meter *m, struct cm_trial *t)
{
    enum cm_status st = cm_meter_barrier(m);

    if (st != CM_OK || t->idle)
        return st;
    st = m->ops->capture_begin(m);
    if (st != CM_OK)
        return st;
    m->capturing = true;
    for (int i = 0; st == CM_OK && i < cm_meter_opts(m)->iters; i++)
        st = iterate(m, t, i);
    m->capturing = false;
    return m->ops->capture_end(m, st);
}

/* Steps that follow each other without a pause: `n` of them, from `first` on, between marks. */
struct stretch {
    int first, n;
};

static enum cm_status end_stretch(struct cm_meter *m, struct stretch *s, struct cm_reading *r)
{
    int64_t ns[CM_MARKS];
    enum cm_status st = s->n > 0 ? m->ops->elapsed(m, s->n, ns) : CM_OK;

    for (int i = 0; st == CM_OK && i < s->n; i++) {
        r->total_ns += ns[i];
        if (m->sample_ns != NULL)
            m->sample_ns[s->first + i] = ns[i];
    }
    s->first += s->n;
    s->n = 0;
    return st;
}

static enum cm_status time_plain(struct cm_meter *m, struct cm_trial *t, struct stretch *s)
{
    int steps = cm_meter_steps(m);
    enum cm_status st = m->ops->mark(m, 0);

    for (int i = 0; st == CM_OK && i < steps; i++)
        st = step(m, t, i);
    s->n = 1; /* all in one */
    return st == CM_OK ? m->ops->mark(m, 1) : st;
}

/* One step with a mark behind it. What is not an operation happens between two stretches. */
static enum cm_status time_step(struct cm_meter *m, struct cm_trial *t, struct stretch *s,
                                struct cm_reading *r)
{
    const struct cm_opts_run *o = cm_meter_opts(m);
    int i = s->first + s->n;
    bool checks = o->check_every > 0 && (i + 1) % o->check_every == 0;
    bool alone = o->cache != CM_CACHE_HOT, apart = checks || o->blocking == 3;
    enum cm_status st = CM_OK;

    if (checks)
        st = end_stretch(m, s, r);
    if (st == CM_OK && checks)
        st = cm_meter_refill(m, t);
    if (st == CM_OK && alone)
        st = cm_cache_between(m, t);
    if (st == CM_OK && s->n == 0)
        st = m->ops->mark(m, 0);
    if (st == CM_OK)
        st = step(m, t, i);
    if (st == CM_OK)
        st = m->ops->mark(m, ++s->n);
    if (st == CM_OK && (alone || apart || s->n == CM_MARKS))
        st = end_stretch(m, s, r);
    if (st == CM_OK && checks)
        st = cm_meter_check(m, t, r);
    return st == CM_OK && apart ? cm_meter_barrier(m) : st;
}

static enum cm_status time_each(struct cm_meter *m, struct cm_trial *t, struct stretch *s,
                                struct cm_reading *r)
{
    int steps = cm_meter_steps(m);
    enum cm_status st = CM_OK;

    for (int i = 0; st == CM_OK && i < steps; i++)
        st = time_step(m, t, s, r);
    return st;
}

enum cm_status cm_meter_timed_loop(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r)
{
    const struct cm_opts_run *o = cm_meter_opts(m);
    struct stretch s = {0, 0};
    enum cm_status st = o->graph > 0 ? capture(m, t) : CM_OK;
    int64_t cpu;

    if (st == CM_OK)
        st = cm_meter_refill(m, t);
    if (st != CM_OK)
        return st;
    cpu = cm_thread_cpu_ns();
    st = cm_meter_marks_steps(m) ? time_each(m, t, &s, r) : time_plain(m, t, &s);
    r->cpu_ns = o->check_every > 0 || o->cache != CM_CACHE_HOT ? -1 : cm_thread_cpu_ns() - cpu;
    if (st == CM_OK)
        st = end_stretch(m, &s, r);
    if (st != CM_OK || o->checks <= 0)
        return st;
    cm_meter_enter(m, CM_AT_TIMED, cm_meter_steps(m) - 1);
    return cm_meter_check(m, t, r);
}
