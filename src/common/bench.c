/*
 * The program: options, then either a plan to print or ranks to launch; each
 * rank runs the rows of the sweep until all are done, a signal came or the
 * time budget is spent (decided by all ranks together, between rows).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "common/coll.h"
#include "common/eta.h"
#include "common/find.h"
#include "common/launch_env.h"
#include "common/plan_mode.h"
#include "common/probe.h"
#include "common/rows.h"
#include "common/topo_mode.h"
#include "common/watchdog.h"
#include "engine/algo.h"

/* One process of the run. */
struct bench_run {
    const struct cm_bench *bench;
    int argc;
    char **argv;
    struct cm_traffic traffic; /* alltoallv's file; dim 0: none */
    _Atomic bool below;        /* the bandwidth threshold was missed, or something is slow */
    _Atomic bool hangs;        /* --find-bad: something hangs */
    struct cm_probes probes;   /* world rank 0 alone has them */
};

/* alltoallv from a file: one size, and it must be large enough. */
static enum cm_status check_traffic(const struct bench_run *run, const struct cm_opts *o, int n)
{
    const struct cm_traffic *t = &run->traffic;
    const char *file = o->alltoallv.matrix_file;
    size_t *bytes, most;
    char have[32], need[32];

    if (t->dim < n)
        return CM_FAIL(CM_EINVAL, "%s: %d rows, but there are %d ranks", file, t->dim, n);
    if (o->sweep.min_bytes != o->sweep.max_bytes)
        return CM_FAIL(CM_EINVAL, "%s: a traffic matrix has one size: -b must equal -e", file);
    bytes = malloc((size_t)n * (size_t)n * sizeof(*bytes));
    if (bytes == NULL)
        return CM_FAIL(CM_ENOMEM, "%s: %d x %d values", file, n, n);
    most = SIZE_MAX;
    if (cm_matrix_of_traffic(t, o->alltoallv.matrix_scale, n, 1, bytes)) {
        size_t sent = cm_matrix_max_sent(bytes, n), received = cm_matrix_max_received(bytes, n);

        most = sent > received ? sent : received;
    }
    free(bytes);
    if (most <= o->sweep.max_bytes)
        return CM_OK;
    return CM_FAIL(CM_EINVAL, "%s: a rank sends or receives %s, more than -e %s", file,
                   cm_format_size(most, need), cm_format_size(o->sweep.max_bytes, have));
}

static enum cm_status arena_bytes(const struct cm_opts *o, int n, const struct cm_room *room,
                                  void *arg, size_t *out)
{
    const struct bench_run *run = arg;
    enum cm_status st = CM_OK;

    if (run->traffic.dim > 0)
        st = check_traffic(run, o, n);
    return st == CM_OK ? cm_buffers_fit(o, n, room, out) : st;
}

/* Why to stop before the next row; the same on all ranks. */
enum stop { GO_ON, STOP_TIME, STOP_SIGNAL, STOP_OUTPUT };

static const char *const stop_text[] = {
    [STOP_TIME] = "--max-time is over",
    [STOP_SIGNAL] = "a signal ended the run",
    [STOP_OUTPUT] = "the report could not be written",
};

static enum cm_status ask_all(struct cm_rank *r, struct cm_report *report, int64_t start_ns,
                              enum stop *out)
{
    double budget_s = r->opts->run.max_time_s;
    unsigned char *all = malloc((size_t)r->n), mine = GO_ON;
    enum cm_status st;

    if (all == NULL)
        return CM_FAIL(CM_ENOMEM, "%d bytes", r->n);
    if (r->rank == 0 && budget_s > 0 && (double)(cm_now_ns() - start_ns) > budget_s * CM_NS_PER_S)
        mine = STOP_TIME;
    if (*r->signal != 0)
        mine = STOP_SIGNAL;
    if (report != NULL && cm_report_failed(report))
        mine = STOP_OUTPUT;
    st = cm_team_gather(&r->team, &mine, sizeof(mine), all);
    *out = GO_ON;
    for (int i = 0; st == CM_OK && i < r->n; i++)
        *out = all[i] > *out ? (enum stop)all[i] : *out;
    free(all);
    return st;
}

static enum cm_status run_rows(const struct bench_run *run, struct cm_rank *r,
                               struct cm_report *report, struct cm_rows *rows, enum stop *stop)
{
    bool rooted = cm_colls[run->bench->coll].rooted;
    struct cm_sweep s =
        cm_sweep_of(&r->opts->sweep, run->bench->redop_column == NULL, rooted, r->n);
    struct cm_eta eta = cm_eta_of(&r->opts->sweep, s.total);
    int64_t start = cm_now_ns();
    enum cm_status st = CM_OK;

    *stop = GO_ON;
    while (st == CM_OK && *stop == GO_ON && cm_sweep_next(&s)) {
        int64_t before = cm_now_ns();

        if (report != NULL)
            cm_report_row_begins(report, &s, &eta, (double)(before - start) / CM_NS_PER_S);
        st = cm_rows_run(rows, &s.now);
        cm_eta_took(&eta, s.now.bytes, (double)(cm_now_ns() - before) / CM_NS_PER_S);
        if (st == CM_OK && s.done != s.total)
            st = ask_all(r, report, start, stop);
    }
    return st;
}

/* Do all ranks run to their end? */
static bool is_orderly(enum cm_status st)
{
    return st == CM_OK || st == CM_EDATA || st == CM_ETRUNC;
}

/*
 * Rank 0 closes the report, whatever happened; all learn whether the threshold
 * was missed. A rank whose log is not whole makes the run fail, at its end.
 */
static enum cm_status finish(struct bench_run *run, struct cm_rank *r, struct cm_report *report,
                             const struct cm_summary *s)
{
    bool below = false, any = false, lost = false, orderly = is_orderly(s->status);
    struct cm_summary told = *s;
    enum cm_status st = s->status;

    if (orderly)
        st = cm_team_or(&r->team, cm_trace_lost(r->trace), &lost);
    if (orderly && st != CM_OK)
        told.status = st;
    else if (lost && s->status != CM_EDATA)
        told.status = CM_ESYS;
    orderly = orderly && st == CM_OK;
    if (report != NULL) {
        cm_watchdog_last_words(r->watchdog, NULL, NULL);
        below = orderly && cm_report_below(report);
        st = cm_report_close(report, &told);
    }
    if (!orderly)
        return told.status;
    if (st == CM_OK)
        st = cm_team_or(&r->team, below, &any);
    if (st == CM_OK && any)
        atomic_store(&run->below, true);
    return st == CM_OK ? told.status : st;
}

static void abandon(void *report, enum cm_status st)
{
    cm_report_abandon(report, st);
}

static void tell_rounding(const struct cm_rank *r, const struct cm_traffic *traffic)
{
    const struct cm_opts_alltoallv *o = &r->opts->alltoallv;
    double lost = 0;
    int entries = cm_matrix_rounded(traffic, o->matrix_scale, r->group_n, &lost);

    if (entries > 0)
        cm_log("%s: %d of %d entries are no multiples of 16 bytes and are rounded down, together "
               "by %.0f bytes",
               o->matrix_file, entries, r->group_n * r->group_n, lost);
}

/* World rank 0. rows NULL: they could not be opened, which the report tells. */
static enum cm_status open_report(const struct bench_run *run, struct cm_rank *r,
                                  struct cm_rows *rows, struct cm_report **out)
{
    enum cm_status st = cm_report_open(run->bench, r, run->argc, run->argv, out);

    if (st != CM_OK)
        return st;
    cm_watchdog_last_words(r->watchdog, abandon, *out);
    if (run->traffic.dim > 0)
        tell_rounding(r, &run->traffic);
    if (rows != NULL)
        cm_rows_report(rows, *out);
    return CM_OK;
}

/* After a failure nobody is waited for, and what runs on a GPU must end before its memory goes. */
static enum cm_status leave(struct cm_rank *r, struct cm_rows *rows, enum cm_status st)
{
    if (!is_orderly(st))
        cm_abort_raise(r->waiter.abort, st, r->rank);
    cm_rows_close(rows, is_orderly(st));
    return st;
}

/* --find-bad, instead of rows. */
static enum cm_status find_body(struct bench_run *run, struct cm_rank *r)
{
    enum cm_find_class worst = CM_FIND_UNKNOWN;
    struct cm_summary sum = {.status = CM_OK};
    struct cm_report *report = NULL;
    struct cm_find *find = NULL;

    sum.status = cm_find_open(run->bench, r, &find);
    if (sum.status != CM_OK)
        return leave(r, NULL, sum.status);
    if (r->rank == 0) {
        sum.status = open_report(run, r, NULL, &report);
        if (sum.status == CM_OK)
            cm_report_find(report, find);
    }
    if (sum.status == CM_OK)
        sum.status = cm_find_run(find, report, &worst);
    sum.wrong = find->wrong;
    sum.truncated = !find->done;
    sum.why_truncated = find->why;
    if (sum.status == CM_OK && worst == CM_FIND_CORRUPT)
        sum.status = CM_EDATA;
    else if (sum.status == CM_OK && sum.truncated)
        sum.status = CM_ETRUNC;
    atomic_store(&run->below, worst == CM_FIND_SLOW);
    atomic_store(&run->hangs, worst == CM_FIND_HANGS);
    sum.status = finish(run, r, report, &sum);
    cm_find_close(find);
    return leave(r, NULL, sum.status);
}

static enum cm_status rank_body(struct cm_rank *r, void *arg)
{
    struct bench_run *run = arg;
    const struct cm_traffic *traffic = run->traffic.dim > 0 ? &run->traffic : NULL;
    struct cm_summary sum = {.status = CM_OK};
    struct cm_report *report = NULL;
    struct cm_rows *rows = NULL;
    struct cm_probes mine = {.before = {.why = NULL}};
    struct cm_probes *probes = r->rank == 0 ? &run->probes : &mine;
    enum stop stop = GO_ON;

    if (r->opts->find.on)
        return find_body(run, r);
    /* First the rows: what connects the ranks is told in the report's first line. */
    sum.status = cm_rows_open(run->bench, r, traffic, &rows);
    if (sum.status == CM_OK)
        sum.status = cm_probe_run(r, &probes->before);
    if (r->rank == 0) {
        enum cm_status st;

        r->probes = &run->probes;
        st = open_report(run, r, rows, &report);
        if (st != CM_OK)
            return leave(r, rows, sum.status != CM_OK ? sum.status : st);
    }
    if (sum.status == CM_OK)
        sum.status = run_rows(run, r, report, rows, &stop);
    if (sum.status == CM_OK)
        sum.status = cm_probe_again(r, report, probes);
    if (rows != NULL) {
        sum.wrong = cm_rows_wrong(rows);
        sum.bad_rows = cm_rows_bad(rows);
    }
    sum.truncated = stop != GO_ON || sum.status != CM_OK;
    sum.why_truncated = stop != GO_ON ? stop_text[stop] : NULL;
    if (sum.status == CM_OK && sum.wrong > 0)
        sum.status = CM_EDATA;
    else if (sum.status == CM_OK && sum.truncated)
        sum.status = CM_ETRUNC;
    return leave(r, rows, finish(run, r, report, &sum));
}

/* " (from NCCL_ALGO)", or nothing if the command line says so. */
static const char *algo_source(const struct cm_opts *o, char *buf, size_t size)
{
    buf[0] = '\0';
    for (char **line = o->from_env; line != NULL && *line != NULL; line++) {
        int n = (int)strcspn(*line, "=");

        if (strncmp(*line, "NCCL_ALGO=", 10) == 0 || strncmp(*line, "COLLMARK_ALGO=", 14) == 0)
            snprintf(buf, size, " (from %.*s)", n, *line);
    }
    return buf;
}

static enum cm_status check_algo(const struct cm_bench *b, const struct cm_opts *o)
{
    const struct cm_algo *algo = o->engine.algo != NULL ? cm_algo_find(o->engine.algo) : NULL;
    const char *coll = cm_colls[b->coll].name, *comma = "";
    char from[32], has[96] = "";
    size_t n = 0;

    if (algo == NULL || algo->build[b->coll] != NULL)
        return CM_OK;
    for (const struct cm_algo *a = cm_algos; a->name != NULL && n < sizeof(has); a++) {
        if (a->build[b->coll] == NULL)
            continue;
        n += (size_t)snprintf(has + n, sizeof(has) - n, "%s%s", comma, a->name);
        comma = ", ";
    }
    return CM_FAIL(CM_EUNSUP, "--algo %s%s: %s has no %s algorithm; it has: %s", algo->name,
                   algo_source(o, from, sizeof(from)), coll, algo->name, has);
}

/* Else the next file that is opened would become stdout. */
static enum cm_status check_stdout(void)
{
    return fcntl(STDOUT_FILENO, F_GETFD) >= 0 ? CM_OK : CM_FAIL(CM_ESYS, "stdout is closed");
}

/* What can be refused before the other processes are known; all of them refuse alike. */
static enum cm_status prepare(const struct cm_bench *b, int argc, char **argv, struct cm_opts *o,
                              enum cm_parsed *what, struct cm_traffic *traffic)
{
    bool speaks = cm_env_speaks();
    enum cm_status st;

    cm_log_mute(!speaks);
    st = check_stdout();
    if (st == CM_OK)
        st = cm_opts_parse(argc, argv, b, o, what);
    o->colls = 1u << b->coll | (o->find.on ? 1u << CM_ALL_REDUCE : 0); /* pairs meet by it */
    if (st == CM_OK && *what == CM_PARSED_RUN)
        st = check_algo(b, o);
    if (st == CM_OK && *what == CM_PARSED_RUN && b->coll == CM_ALLTOALLV &&
        o->alltoallv.matrix_file != NULL)
        st = cm_matrix_read(o->alltoallv.matrix_file, traffic);
    cm_log_mute(false);
    if (st != CM_OK && !speaks)
        cm_env_let_speak();
    return st;
}

static enum cm_exit launch(struct bench_run *run, const struct cm_opts *o)
{
    enum cm_exit code = cm_launch(&run->argc, &run->argv, o, arena_bytes, rank_body, run);

    if (code == CM_EXIT_OK && atomic_load(&run->hangs))
        return CM_EXIT_TIMEOUT;
    return code == CM_EXIT_OK && atomic_load(&run->below) ? CM_EXIT_BELOW : code;
}

/* --topo and --plan: what is shown instead of a run. */
static bool shows_topo(const struct cm_opts *o)
{
    return o->report.topo != NULL && !cm_topo_is_file(o->report.topo);
}

static bool only_shows(const struct cm_opts *o)
{
    return shows_topo(o) || o->report.plan;
}

static enum cm_status show(const struct cm_bench *b, const struct cm_opts *o)
{
    return shows_topo(o) ? cm_topo_mode(o->report.topo) : cm_plan_mode(b, o);
}

int cm_bench_main(const struct cm_bench *b, int argc, char **argv)
{
    struct bench_run run = {.bench = b, .argc = argc, .argv = argv};
    struct cm_opts o = {.from_env = NULL};
    enum cm_parsed what;
    enum cm_exit code;

    signal(SIGPIPE, SIG_IGN); /* a reader who left is a failed write, and files are completed */
    signal(SIGXFSZ, SIG_IGN); /* so is a limit on the size of files */
    code = cm_status_exit(prepare(b, argc, argv, &o, &what, &run.traffic));
    if (code == CM_EXIT_OK && what == CM_PARSED_RUN && !only_shows(&o))
        code = launch(&run, &o);
    else if (code == CM_EXIT_OK && what == CM_PARSED_RUN && cm_env_speaks())
        code = cm_status_exit(show(b, &o));
    cm_traffic_free(&run.traffic);
    cm_opts_free(&o);
    return (int)code;
}
