/*
 * A pair has a communicator of its own, whose operations are numbered behind those of
 * all earlier ones; its ranks meet by an operation of one byte on it. Nothing that
 * another pair does is waited for.
 *
 * Invariant: whatever ends an attempt, the rank comes back to the job's barrier.
 */
#include "common/find_measure.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "common/find_stats.h"
#include "common/matrix.h"
#include "common/measure.h"

enum { EPOCH_BITS = 24, LINES = 4 };
static const int64_t most_ns = 20LL * CM_NS_PER_S;

struct cm_find_side {
    const struct cm_bench *bench;
    struct cm_rank rank;       /* a copy: its group is the pair */
    struct cm_inject inject;   /* as it concerns the rank in that pair */
    struct cm_attempt attempt; /* the present one */
    int64_t limit_ns;          /* of an attempt */
    int64_t *sample_ns;        /* steps of the timed loop */
    double *step_ns;
    int lines; /* of explanations of wrong data still to be printed */
    struct cm_meter meter;
};

/* Operations of one attempt, all together, must fit into an epoch. */
static bool fits_epoch(const struct cm_opts_run *o)
{
    double ops = (double)o->warmup + 3 + (double)o->iters * o->agg_iters * 3 + o->checks;

    return ops < (double)(1 << EPOCH_BITS);
}

enum cm_status cm_find_side_open(const struct cm_bench *b, struct cm_rank *r,
                                 struct cm_find_side **out)
{
    struct cm_find_side *s;

    if (!fits_epoch(&r->opts->run))
        return CM_FAIL(CM_EINVAL, "--find-bad: too many operations: -n %d x -m %d, -c %d",
                       r->opts->run.iters, r->opts->run.agg_iters, r->opts->run.checks);
    s = calloc(1, sizeof(*s));
    if (s == NULL)
        return CM_FAIL(CM_ENOMEM, "a side of a pair: %zu bytes", sizeof(*s));
    s->step_ns = calloc((size_t)cm_steps_of(&r->opts->run), sizeof(*s->step_ns));
    s->sample_ns = calloc((size_t)cm_steps_of(&r->opts->run), sizeof(*s->sample_ns));
    if (s->step_ns == NULL || s->sample_ns == NULL) {
        cm_find_side_close(s);
        return CM_FAIL(CM_ENOMEM, "times of %d steps", cm_steps_of(&r->opts->run));
    }
    s->bench = b;
    s->rank = *r;
    s->lines = LINES;
    s->limit_ns = r->waiter.timeout_ns / 2;
    s->rank.waiter.timeout_ns = s->limit_ns / 2 < most_ns ? s->limit_ns / 2 : most_ns;
    s->rank.waiter.attempt = &s->attempt;
    s->rank.ngroups = 1;
    s->rank.inject = &s->inject;
    *out = s;
    return CM_OK;
}

void cm_find_side_close(struct cm_find_side *s)
{
    if (s == NULL)
        return;
    free(s->step_ns);
    free(s->sample_ns);
    free(s);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/*
 * As if all steps had taken as long as the median: a pause of one node is not the pair's
 * speed. The median of n values deviates by 1.25 / sqrt(n) of what they do.
 *
 * Where ranks share CPUs, most steps wait for a time slice of somebody else. Then the
 * fastest counts: who is slow has no fast steps. It is as sure as the next ones are near.
 */
static void sum_up(struct cm_find_side *s, struct cm_find_record *out)
{
    int steps = cm_steps_of(&s->rank.opts->run);
    double typical, noise;

    for (int i = 0; i < steps; i++)
        s->step_ns[i] = (double)s->sample_ns[i];
    if (s->rank.oversubscribed) {
        qsort(s->step_ns, (size_t)steps, sizeof(*s->step_ns), by_value);
        typical = s->step_ns[0];
        noise = (s->step_ns[steps / 4] - typical) * steps;
    } else {
        typical = cm_find_median(s->step_ns, (size_t)steps);
        noise = 1.25 * cm_find_deviation(s->step_ns, (size_t)steps) * sqrt(steps);
    }
    out->ns = (int64_t)(typical * steps);
    out->noise_ns = (int64_t)noise;
}

/* Everybody's byte is needed for the sum. */
static enum cm_status meet(struct cm_meter *m)
{
    struct cm_op_args op = {.coll = CM_ALL_REDUCE,
                            .dtype = CM_UINT8,
                            .op = CM_SUM,
                            .count = 1,
                            .in = m->buffers.note,
                            .out = m->buffers.note + CM_LINE};
    enum cm_status st = cm_comm_run(m->comm, &op);

    return st == CM_OK ? m->ops->sync(m) : st;
}

/* The sizes of the row on n ranks; alltoallv: with the traffic of --alltoallv-spread. */
static enum cm_status plan_trial(struct cm_find_side *s, struct cm_matrix_set *set,
                                 struct cm_trial *out)
{
    const struct cm_opts *o = s->rank.opts;
    size_t width = cm_dtypes[o->sweep.dtype].bytes, send, recv;
    bool in_place = o->run.placement == CM_PLACE_IN;
    struct cm_op_args op = {.coll = s->bench->coll,
                            .dtype = (enum cm_dtype)o->sweep.dtype,
                            .op = (enum cm_op)o->sweep.op,
                            .in_place = in_place};
    struct cm_counts c;

    cm_counts_of(s->bench, o->sweep.max_bytes / width, width, s->rank.group_n, &c);
    op.count = c.param;
    send = c.send;
    recv = c.recv;
    if (op.coll == CM_ALLTOALLV) {
        op.matrix = cm_matrix_get(set, c.param, width);
        if (op.matrix == NULL)
            return CM_ENOMEM;
        send = cm_matrix_sent(op.matrix, s->rank.group_n, s->rank.group_rank);
        recv = cm_matrix_received(op.matrix, s->rank.group_n, s->rank.group_rank);
    }
    *out = cm_trial_of(&s->meter, &op, &c, send, recv);
    if (c.param == 0)
        return CM_FAIL(CM_EINVAL, "--find-bad: -e %zu is nothing for each of %d ranks",
                       o->sweep.max_bytes, s->rank.group_n);
    return CM_OK;
}

static enum cm_status attempt(struct cm_find_side *s, struct cm_reading *out)
{
    struct cm_matrix_set set = {.spread = s->rank.opts->alltoallv.spread, .n = s->rank.group_n};
    struct cm_meter *m = &s->meter;
    struct cm_trial trial;
    enum cm_status st = m->ops->open(m);

    if (st == CM_OK)
        st = plan_trial(s, &set, &trial);
    if (st == CM_OK)
        st = cm_measure(m, &trial, out);
    m->ops->close(m, false);
    cm_matrix_set_free(&set); /* after the communicator that knows its addresses */
    return st;
}

static void become(struct cm_find_side *s, const int32_t *members, int n, uint64_t epoch)
{
    struct cm_rank *r = &s->rank;
    const struct cm_inject_place place = {r->rank, members, n, r->node_of};

    r->group_world = members;
    r->group_n = n;
    for (int i = 0; i < n; i++)
        r->group_rank = members[i] == r->rank ? i : r->group_rank;
    s->attempt = (struct cm_attempt){.until_ns = cm_now_ns() + s->limit_ns};
    s->meter = (struct cm_meter){
        .bench = s->bench,
        .rank = r,
        .ops = r->backend != NULL ? r->backend->meter : &cm_meter_host,
        .diag = r->waiter.diag,
        .meet = meet,
        .first_op = epoch << EPOCH_BITS,
        .epoch = epoch << EPOCH_BITS,
        .lines = s->lines,
        .sample_ns = s->sample_ns,
    };
    s->inject = cm_inject_at(r->job_inject, &place);
}

enum cm_status cm_find_measure(struct cm_find_side *s, const int32_t *members, int n,
                               uint64_t epoch, struct cm_find_record *out)
{
    struct cm_reading reading = {0};
    enum cm_status st;

    become(s, members, n, epoch);
    st = attempt(s, &reading);
    s->lines = s->meter.lines;
    if (st == CM_OK)
        sum_up(s, out);
    out->wrong = reading.wrong;
    if (st == CM_OK) {
        out->outcome = reading.wrong > 0 ? CM_FIND_WRONG : CM_FIND_RIGHT;
        return CM_OK;
    }
    if (!s->attempt.over || cm_abort_status(s->rank.waiter.abort) != CM_OK)
        return st;
    out->outcome = CM_FIND_HUNG;
    return CM_OK;
}

void cm_find_figures(const struct cm_bench *b, const struct cm_opts *o, int n, double ns,
                     struct cm_find_run *run)
{
    size_t width = cm_dtypes[o->sweep.dtype].bytes;
    double ops = cm_steps_of(&o->run) * cm_step_ops(&o->run);
    struct cm_counts c;

    cm_counts_of(b, o->sweep.max_bytes / width, width, n, &c);
    run->us = ns / ops / CM_NS_PER_US;
    run->gbs = ns > 0 ? (double)(c.alg * width) / (ns / ops) * (n > 1 ? b->bus_factor(n) : 1) : 0;
}
