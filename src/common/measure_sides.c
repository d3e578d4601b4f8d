/*
 * --compare: several engines run the same trial in turns.
 *
 * Machines change under a measurement: virtual cores move, neighbours come and
 * go. So the timed loop is cut into rounds, in each of which every engine has
 * its turn, and another one begins each time; only figures of the same rounds
 * are held against each other. Every turn has data of its own, which all checks
 * of a plain measurement look at; what they find stale may be another engine's.
 */
#include "common/measure_int.h"

static enum cm_status choose(struct cm_meter *m, struct cm_trial *t, const struct cm_contest *c,
                             int side)
{
    m->side = c->sides[side];
    t->idle = c->idle[side];
    return cm_meter_bind(m, t);
}

/* Untimed, so that a turn does not begin with what the engine before it left in the caches. */
static enum cm_status turn(struct cm_meter *m, struct cm_trial *t, struct cm_contest *c, int side,
                           int round)
{
    struct cm_reading *out = &c->out[side];
    int64_t before = out->total_ns;
    enum cm_status st = choose(m, t, c, side);

    if (st == CM_OK)
        st = cm_meter_barrier(m);
    for (int i = 0; i < cm_meter_opts(m)->warmup && st == CM_OK; i++)
        st = cm_meter_run(m, t, CM_AT_WARMUP, i);
    if (st == CM_OK)
        st = cm_meter_timed_loop(m, t, out);
    c->round_ns[side][round] = out->total_ns - before;
    return st;
}

static enum cm_status all_turns(struct cm_meter *m, struct cm_trial *t, struct cm_contest *c)
{
    enum cm_status st = CM_OK;

    for (int i = 0; i < c->rounds * c->n && st == CM_OK; i++) {
        int round = i / c->n, side = (round + i) % c->n;

        st = turn(m, t, c, side, round);
    }
    return st;
}

typedef enum cm_status part_fn(struct cm_meter *m, struct cm_trial *t, struct cm_reading *r);

/* Each side's part, one after the other. */
static enum cm_status each(struct cm_meter *m, struct cm_trial *t, struct cm_contest *c,
                           part_fn *part)
{
    enum cm_status st = CM_OK;

    for (int i = 0; i < c->n && st == CM_OK; i++) {
        st = choose(m, t, c, i);
        if (st == CM_OK)
            st = part(m, t, &c->out[i]);
    }
    return st;
}

enum cm_status cm_measure_contest(struct cm_meter *m, struct cm_trial *t, struct cm_contest *c)
{
    const struct cm_opts_run *o = cm_meter_opts(m);
    enum cm_status st;

    for (int i = 0; i < c->n; i++)
        c->out[i] = (struct cm_reading){0};
    cm_meter_begin(m, t);
    st = each(m, t, c, cm_meter_warm_up);
    if (st == CM_OK)
        st = all_turns(m, t, c);
    if (st == CM_OK)
        st = each(m, t, c, cm_meter_checked_launches);
    for (int i = 0; i < c->n; i++)
        c->out[i].checked = !c->idle[i] && (o->checks > 0 || o->check_every > 0);
    m->side = (struct cm_side){0};
    return st;
}
