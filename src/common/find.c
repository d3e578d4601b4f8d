/*
 * The search. All ranks know all results, from a gather behind each round, and
 * decide alike what comes next.
 *
 * Invariant: no rank is in an operation while it gathers. A pair that hung never runs
 * together again, as slots may be under way in its ports; what its ranks left in the
 * ports inside of their units is thrown away.
 */
#include "common/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "common/find_again.h"
#include "common/find_int.h"
#include "common/report.h"
#include "engine/comm.h"

enum { MADS = 5 };

enum { GO_ON, STOP_TIME, STOP_SIGNAL };

struct cm_find_data cm_find_data(const struct cm_find *f)
{
    return (struct cm_find_data){.n = f->units.n,
                                 .ranks = f->units.ranks,
                                 .runs = f->runs,
                                 .nruns = f->nruns,
                                 .unfinished = !f->done};
}

/* Ranks that share CPUs wait for each other's time slices: some are several times slower. */
static double least_limit(const struct cm_rank *r)
{
    double asked = r->opts->find.slow_pct;

    return r->oversubscribed && asked < CM_FIND_CROWDED_PCT ? CM_FIND_CROWDED_PCT : asked;
}

enum cm_status cm_find_open(const struct cm_bench *b, struct cm_rank *r, struct cm_find **out)
{
    struct cm_find *f = calloc(1, sizeof(*f));
    enum cm_status st;

    if (f == NULL)
        return CM_FAIL(CM_ENOMEM, "search for bad nodes");
    f->bench = b;
    f->rank = r;
    f->limits = (struct cm_find_limits){
        .slow_pct = least_limit(r), .mads = MADS, .min_gbs = r->opts->report.min_busbw_gbs};
    cm_log_mute(r->rank != 0);
    st = cm_find_units(r->infos, r->node_of, r->n, &f->units);
    if (st == CM_OK)
        st = cm_find_units_plan(&f->units, r->opts, &f->plan);
    cm_log_mute(false);
    if (st != CM_OK) {
        cm_find_close(f);
        return st;
    }
    *out = f;
    return CM_OK;
}

void cm_find_close(struct cm_find *f)
{
    if (f == NULL)
        return;
    cm_find_units_free(&f->units);
    cm_find_plan_free(&f->plan);
    free(f->runs);
    free(f);
}

/* ---- a round ---- */

/* My unit and its partner, the lower first. */
static int fill_members(struct cm_find_search *s)
{
    const struct cm_find_units *u = &s->f->units;
    int a = s->unit, b = s->with[s->unit], n = 0;
    int order[2] = {a < b ? a : b, a < b ? b : a};

    for (int k = 0; k < (a == b ? 1 : 2); k++) {
        memcpy(s->members + n, u->members + u->first[order[k]],
               (size_t)u->ranks[order[k]] * sizeof(*s->members));
        n += u->ranks[order[k]];
    }
    return n;
}

static bool is_apart(const struct cm_find_search *s)
{
    const struct cm_find_units *u = &s->f->units;

    for (int i = 0; i < u->ranks[s->unit]; i++)
        if (cm_local_of(s->r->layout, u->members[u->first[s->unit] + i]) < 0)
            return true;
    return false;
}

/* --max-time, a signal. */
static int32_t wants_stop(const struct cm_find_search *s)
{
    double budget_s = s->r->opts->run.max_time_s;
    double spent_s = (double)(cm_now_ns() - s->start_ns) / CM_NS_PER_S;

    if (*s->r->signal != 0)
        return STOP_SIGNAL;
    return s->r->rank == 0 && budget_s > 0 && spent_s > budget_s ? STOP_TIME : GO_ON;
}

/* After a hang: empty the ports inside of my unit; if they lead elsewhere, they are lost. */
static enum cm_status tidy_up(struct cm_find_search *s, size_t first)
{
    const struct cm_find_units *u = &s->f->units;
    bool any = false;

    for (size_t k = first; k < s->f->nruns; k++) {
        const struct cm_find_run *run = &s->f->runs[k];

        if (run->outcome != CM_FIND_HUNG)
            continue;
        any = true;
        s->spoiled[run->a] |= s->records[u->members[u->first[run->a]]].apart != 0;
        s->spoiled[run->b] |= s->records[u->members[u->first[run->b]]].apart != 0;
        if ((s->unit == run->a || s->unit == run->b) && !s->spoiled[s->unit])
            cm_comm_discard(s->r->base, s->r->layout, s->r->rank, u->members + u->first[s->unit],
                            u->ranks[s->unit]);
    }
    return any ? cm_team_barrier(&s->r->team) : CM_OK;
}

/* Run what s->with says, and let everybody know. */
static enum cm_status run_round(struct cm_find_search *s)
{
    struct cm_find_record mine = {.apart = is_apart(s)};
    size_t first = s->f->nruns;
    enum cm_status st = CM_OK;

    s->epoch++;
    if (s->with[s->unit] >= 0)
        st = cm_find_measure(s->side, s->members, fill_members(s), s->epoch, &mine);
    mine.stop = wants_stop(s);
    if (st == CM_OK)
        st = cm_team_gather(&s->r->team, &mine, sizeof(mine), s->records);
    if (st == CM_OK)
        st = s->report != NULL ? cm_report_change(s->report, cm_find_take_results, s)
                               : cm_find_take_results(s);
    for (int i = 0; st == CM_OK && i < s->r->n; i++)
        s->stop = s->records[i].stop > s->stop ? s->records[i].stop : s->stop;
    return st == CM_OK ? tidy_up(s, first) : st;
}

/* ---- the search ---- */

static void tell(const struct cm_find_search *s, const char *what, int done, int all)
{
    char text[96];

    snprintf(text, sizeof(text), "find-bad: %s %d of %d", what, done, all);
    if (s->report != NULL && cm_now_ns() - s->start_ns > (int64_t)CM_NS_PER_S)
        cm_report_progress(s->report, text, true);
}

static bool usable(const struct cm_find_search *s, int a, int b)
{
    const struct cm_find_data d = cm_find_data(s->f);

    return !cm_find_lost(&d, a) && !cm_find_lost(&d, b) && !s->spoiled[a] && !s->spoiled[b];
}

static void set_pairs(struct cm_find_search *s, int round)
{
    for (int u = 0; u < s->f->units.n; u++) {
        int other = cm_find_partner(&s->f->plan, round, u);

        s->with[u] = other >= 0 && usable(s, u, other) ? other : -1;
    }
}

static enum cm_status run_rounds(struct cm_find_search *s)
{
    enum cm_status st;

    for (int u = 0; u < s->f->units.n; u++)
        s->with[u] = u;
    st = run_round(s);
    for (int round = 0; st == CM_OK && !s->stop && round < s->f->plan.rounds; round++) {
        tell(s, "round", round + 1, s->f->plan.rounds);
        set_pairs(s, round);
        st = run_round(s);
        s->f->rounds = round + 1;
    }
    return st;
}

static enum cm_status run_again(struct cm_find_search *s)
{
    struct cm_find_data d = cm_find_data(s->f);
    struct cm_find_step *steps = NULL;
    struct cm_find_verdict v;
    enum cm_status st;
    int n;

    d.unfinished = false; /* suspects are wanted */
    st = cm_find_judge(&d, &s->f->limits, &v);
    n = st == CM_OK ? cm_find_again(&d, &v, &s->f->plan, &steps) : 0;
    cm_find_verdict_free(&v);
    if (n < 0)
        st = CM_FAIL(CM_ENOMEM, "retests of %d units", s->f->units.n);
    s->again = true;
    for (int k = 0; st == CM_OK && !s->stop && k < n; k++) {
        if (s->spoiled[steps[k].a] || s->spoiled[steps[k].b])
            continue;
        tell(s, "retest", k + 1, n);
        for (int u = 0; u < s->f->units.n; u++)
            s->with[u] = -1;
        s->with[steps[k].a] = steps[k].b;
        s->with[steps[k].b] = steps[k].a;
        st = run_round(s);
    }
    free(steps);
    return st;
}

/* ---- all of it ---- */

static enum cm_status open_search(struct cm_find_search *s)
{
    size_t n = (size_t)s->r->n, units = (size_t)s->f->units.n;

    s->unit = s->f->units.of_rank[s->r->rank];
    s->start_ns = cm_now_ns();
    s->records = calloc(n, sizeof(*s->records));
    s->members = calloc(n, sizeof(*s->members));
    s->with = calloc(units, sizeof(*s->with));
    s->spoiled = calloc(units, sizeof(*s->spoiled));
    if (s->records == NULL || s->members == NULL || s->with == NULL || s->spoiled == NULL)
        return CM_FAIL(CM_ENOMEM, "search among %zu ranks", n);
    return cm_find_side_open(s->f->bench, s->r, &s->side);
}

static void close_search(struct cm_find_search *s)
{
    cm_find_side_close(s->side);
    free(s->records);
    free(s->members);
    free(s->with);
    free(s->spoiled);
}

static enum cm_status weigh(const struct cm_find *f, enum cm_find_class *worst)
{
    const struct cm_find_data d = cm_find_data(f);
    struct cm_find_verdict v;
    enum cm_status st = cm_find_judge(&d, &f->limits, &v);

    if (st == CM_OK)
        *worst = cm_find_worst(&v, f->units.n);
    cm_find_verdict_free(&v);
    return st;
}

enum cm_exit cm_find_exit(const struct cm_find *f)
{
    static const enum cm_exit codes[] = {[CM_FIND_SLOW] = CM_EXIT_BELOW,
                                         [CM_FIND_HANGS] = CM_EXIT_TIMEOUT,
                                         [CM_FIND_CORRUPT] = CM_EXIT_WRONG};
    enum cm_find_class worst = CM_FIND_UNKNOWN;
    enum cm_status st = weigh(f, &worst);

    return st != CM_OK ? cm_status_exit(st) : codes[worst];
}

enum cm_status cm_find_run(struct cm_find *f, struct cm_report *report, enum cm_find_class *worst)
{
    struct cm_find_search s = {.f = f, .r = f->rank, .report = report};
    enum cm_status st = open_search(&s);

    if (st == CM_OK)
        st = run_rounds(&s);
    if (st == CM_OK && !s.stop)
        st = run_again(&s);
    f->done = st == CM_OK && !s.stop;
    if (s.stop != GO_ON)
        f->why = s.stop == STOP_SIGNAL ? "a signal ended the run" : "--max-time is over";
    if (st != CM_OK && report != NULL && s.with != NULL &&
        cm_report_change(report, cm_find_take_missing, &s) != CM_OK)
        cm_log("the report does not name who is missing");
    if (st == CM_OK)
        st = weigh(f, worst);
    close_search(&s);
    return st;
}
