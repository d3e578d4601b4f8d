/*
 * The report: takes rows, keeps the figures over them and hands them to sinks.
 *
 * Every entry holds the lock, but for a row on its way to a patient sink, so
 * that a watchdog may end the report at any time. After `ended` the sinks are
 * gone and rows are dropped.
 */
#include "common/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/find.h"
#include "common/report_int.h"
#include "engine/algo.h"

/* Files first: if one cannot be opened, stdout stays empty. */
static const struct cm_sink_kind *const kinds[] = {
    &cm_sink_json,  &cm_sink_junit,      &cm_sink_prometheus, &cm_sink_github, &cm_sink_csv,
    &cm_sink_table, &cm_sink_find_lists, &cm_sink_find_csv,   &cm_sink_find};

_Static_assert(CM_LEN(kinds) <= CM_MAX_SINKS, "struct cm_report has too little room");

static int64_t unix_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / CM_NS_PER_MS;
}

char *cm_utc(int64_t ms, bool millis, char *buf)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    size_t n;

    gmtime_r(&s, &tm);
    n = strftime(buf, CM_UTC_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    if (millis)
        n += (size_t)snprintf(buf + n, CM_UTC_BYTES - n, ".%03d", (int)(ms % 1000));
    snprintf(buf + n, CM_UTC_BYTES - n, "Z");
    return buf;
}

/* ---- rows ---- */

static const double *copy_samples(const struct cm_result *half)
{
    size_t bytes = half->samples.n * sizeof(double);
    double *copy = bytes > 0 && half->sample_us != NULL ? malloc(bytes) : NULL;

    if (copy != NULL)
        memcpy(copy, half->sample_us, bytes);
    return copy;
}

static enum cm_status keep(struct cm_report *rep, const struct cm_row *row)
{
    struct cm_row *mine;

    if (rep->nrows == rep->cap_rows) {
        size_t cap = rep->cap_rows == 0 ? 64 : 2 * rep->cap_rows;
        struct cm_row *rows = realloc(rep->rows, cap * sizeof(*rows));

        if (rows == NULL)
            return CM_FAIL(CM_ENOMEM, "%zu rows of the report", cap);
        rep->rows = rows;
        rep->cap_rows = cap;
    }
    mine = &rep->rows[rep->nrows++];
    *mine = *row;
    for (int h = 0; h < 2; h++)
        mine->half[h].sample_us = rep->keeps_samples ? copy_samples(&row->half[h]) : NULL;
    return CM_OK;
}

static void note_failure(struct cm_report *rep, enum cm_status st)
{
    if (rep->status == CM_OK)
        rep->status = st;
}

/* A report that has ended drops the row: false. */
static bool take_row(struct cm_report *rep, const struct cm_row *row)
{
    bool taken;

    pthread_mutex_lock(&rep->lock);
    taken = !rep->ended;
    if (taken) {
        note_failure(rep, cm_report_clear_progress(rep));
        cm_report_tally(rep, row);
        note_failure(rep, cm_report_weigh(rep, row));
        if (rep->keeps_rows)
            note_failure(rep, keep(rep, row));
    }
    for (int i = 0; i < rep->nsinks; i++) { /* none after the end */
        if (!rep->sinks[i].kind->patient && !rep->sinks[i].kind->late)
            note_failure(rep, rep->sinks[i].kind->row(rep, rep->sinks[i].state, row));
    }
    pthread_mutex_unlock(&rep->lock);
    return taken;
}

static void show_row(struct cm_report *rep, const struct cm_sink_kind *kind,
                     const struct cm_row *row)
{
    enum cm_status st = kind->row(rep, NULL, row);

    pthread_mutex_lock(&rep->lock);
    note_failure(rep, st);
    pthread_mutex_unlock(&rep->lock);
}

void cm_report_row(struct cm_report *rep, const struct cm_row *row)
{
    if (!take_row(rep, row))
        return;
    for (size_t i = 0; i < CM_LEN(kinds); i++) {
        if (kinds[i]->patient && kinds[i]->wanted(rep->opts))
            show_row(rep, kinds[i], row);
    }
}

/* ---- begin and end ---- */

static void release(struct cm_report *rep)
{
    for (size_t i = 0; i < rep->nrows; i++) {
        free((void *)rep->rows[i].half[0].sample_us);
        free((void *)rep->rows[i].half[1].sample_us);
    }
    free(rep->rows);
    free(rep->groups);
    cm_verdicts_free(&rep->verdicts);
    cm_judge_close(rep->judge);
    pthread_mutex_destroy(&rep->lock);
    free(rep);
}

static void close_sinks(struct cm_report *rep, const struct cm_end *end)
{
    for (int i = 0; i < rep->nsinks; i++)
        note_failure(rep, rep->sinks[i].kind->close(rep, rep->sinks[i].state, end));
    rep->nsinks = 0;
    rep->ended = true;
}

static enum cm_status open_sinks(struct cm_report *rep)
{
    enum cm_status st = CM_OK;

    for (size_t i = 0; i < CM_LEN(kinds) && st == CM_OK; i++) {
        struct cm_sink *sink = &rep->sinks[rep->nsinks];

        if (!kinds[i]->wanted(rep->opts))
            continue;
        sink->kind = kinds[i];
        st = kinds[i]->open(rep, &sink->state);
        if (st == CM_OK)
            rep->nsinks++;
    }
    if (st != CM_OK)
        close_sinks(rep, NULL);
    return st;
}

/* Further groups are shown at the end, and some sinks write then. */
static bool keeps_rows(const struct cm_report *rep)
{
    bool keeps = rep->rank->ngroups > 1;

    for (size_t i = 0; i < CM_LEN(kinds); i++)
        keeps = keeps || (kinds[i]->late && kinds[i]->wanted(rep->opts));
    return keeps;
}

static enum cm_status count_groups(struct cm_report *rep)
{
    int32_t *nodes = malloc((size_t)rep->rank->n * sizeof(*nodes));

    if (nodes == NULL)
        return CM_FAIL(CM_ENOMEM, "nodes of %d ranks", rep->rank->n);
    for (int g = 0; g < rep->rank->ngroups; g++) {
        int n = 0;

        for (int r = 0; r < rep->rank->n; r++) {
            if (rep->rank->infos[r].group == g)
                nodes[n++] = rep->rank->infos[r].node;
        }
        rep->groups[g].ranks = n;
        rep->groups[g].nodes = cm_count_nodes(nodes, n);
    }
    for (int r = 0; r < rep->rank->n; r++)
        nodes[r] = rep->rank->infos[r].node;
    rep->nodes = cm_count_nodes(nodes, rep->rank->n);
    free(nodes);
    return CM_OK;
}

enum cm_status cm_report_open(const struct cm_bench *b, const struct cm_rank *r, int argc,
                              char **argv, struct cm_report **out)
{
    struct cm_report *rep = calloc(1, sizeof(*rep));
    struct cm_tally *groups = calloc((size_t)r->ngroups, sizeof(*groups));
    enum cm_status st;

    if (rep == NULL || groups == NULL) {
        free(rep);
        free(groups);
        return CM_FAIL(CM_ENOMEM, "report of %d groups", r->ngroups);
    }
    rep->bench = b;
    rep->rank = r;
    rep->opts = r->opts;
    rep->argc = argc;
    rep->argv = argv;
    rep->groups = groups;
    rep->start_unix_ms = unix_ms();
    rep->keeps_samples = r->opts->report.json != NULL && r->opts->run.per_iter;
    rep->keeps_rows = keeps_rows(rep);
    pthread_mutex_init(&rep->lock, NULL);
    st = count_groups(rep);
    if (st == CM_OK)
        st = cm_judge_open(r, &rep->judge);
    if (st == CM_OK)
        st = open_sinks(rep);
    if (st != CM_OK) {
        release(rep);
        return st;
    }
    *out = rep;
    return CM_OK;
}

void cm_report_find(struct cm_report *rep, const struct cm_find *find)
{
    pthread_mutex_lock(&rep->lock);
    rep->find = find;
    pthread_mutex_unlock(&rep->lock);
}

enum cm_status cm_report_change(struct cm_report *rep, enum cm_status (*change)(void *arg),
                                void *arg)
{
    enum cm_status st;

    pthread_mutex_lock(&rep->lock);
    st = change(arg);
    pthread_mutex_unlock(&rep->lock);
    return st;
}

bool cm_report_failed(struct cm_report *rep)
{
    bool failed;

    pthread_mutex_lock(&rep->lock);
    failed = rep->status != CM_OK;
    pthread_mutex_unlock(&rep->lock);
    return failed;
}

static enum cm_exit exit_of(const struct cm_report *rep, const struct cm_summary *s)
{
    if (s->status != CM_OK)
        return cm_status_exit(s->status);
    if (s->wrong > 0)
        return CM_EXIT_WRONG;
    if (s->truncated)
        return CM_EXIT_TRUNCATED;
    if (rep->find != NULL)
        return cm_find_exit(rep->find);
    return cm_report_is_below(rep) ? CM_EXIT_BELOW : CM_EXIT_OK;
}

/* "Aborted by another rank" is what rank 0 saw; the abort word says why. */
static enum cm_status job_status(const struct cm_report *rep, enum cm_status st)
{
    const struct cm_abort *abort = rep->rank->waiter.abort;
    enum cm_status why = st == CM_EABORT && abort != NULL ? cm_abort_status(abort) : CM_OK;

    return why != CM_OK ? why : st;
}

/* Only a signal ends a row before its time and is no failure. */
static const char *why_ended(enum cm_status st)
{
    return st == CM_ETRUNC ? "a signal ended the run" : cm_status_text(st);
}

static void end(struct cm_report *rep, const struct cm_summary *s)
{
    struct cm_end e = {.summary = *s, .unix_ms = unix_ms()};

    e.summary.status = job_status(rep, s->status);
    if (rep->status != CM_OK && cm_status_exit(e.summary.status) != CM_EXIT_WRONG)
        e.summary.status = rep->status;
    e.exit = exit_of(rep, &e.summary);
    if (s->truncated && s->why_truncated == NULL)
        e.summary.why_truncated = why_ended(e.summary.status);
    note_failure(rep, cm_report_clear_progress(rep));
    close_sinks(rep, &e);
}

enum cm_status cm_report_close(struct cm_report *rep, const struct cm_summary *s)
{
    enum cm_status st;

    pthread_mutex_lock(&rep->lock);
    if (!rep->ended)
        end(rep, s);
    st = rep->status;
    pthread_mutex_unlock(&rep->lock);
    release(rep);
    return st;
}

void cm_report_abandon(struct cm_report *rep, enum cm_status st)
{
    struct cm_summary s = {.status = st, .truncated = true};
    struct timespec until;

    if (rep == NULL)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    if (pthread_mutex_timedlock(&rep->lock, &until) != 0)
        return;
    s.wrong = rep->wrong;
    s.bad_rows = rep->bad_rows;
    if (!rep->ended)
        end(rep, &s);
    pthread_mutex_unlock(&rep->lock);
}
