/*
 * Prometheus text (--prometheus) for the textfile collector of node_exporter:
 * text format 0.0.4, gauges in base units, without time stamps, which the
 * collector refuses. Of rows that are alike the last one counts, as a series
 * may appear once. What was not measured has no sample.
 *
 * One table gives the metrics; all samples of a metric stand together, as the
 * format wants it.
 */
#include <math.h>
#include <stdlib.h>

#include "common/cache.h"
#include "common/report_int.h"
#include "common/version.h"

/* ---- of one placement of one row ---- */

struct sample {
    const struct cm_result *half;
    const struct cm_judged *judged;
};

static double or_none(bool known, double v)
{
    return known ? v : NAN;
}

static double busbw(const struct sample *s)
{
    return or_none(s->half->measured, s->half->bus_gbs * 1e9);
}

static double algbw(const struct sample *s)
{
    return or_none(s->half->measured, s->half->alg_gbs * 1e9);
}

static double seconds(const struct sample *s)
{
    return or_none(s->half->measured, s->half->time_us / 1e6);
}

static double wrong(const struct sample *s)
{
    return or_none(s->half->measured && s->half->checked, (double)s->half->wrong);
}

static double least_busbw(const struct sample *s)
{
    return or_none(s->judged->min_busbw_gbs > 0, s->judged->min_busbw_gbs * 1e9);
}

static double most_seconds(const struct sample *s)
{
    return or_none(s->judged->max_time_us > 0, s->judged->max_time_us / 1e6);
}

static double peak_ratio(const struct sample *s)
{
    return s->judged->peak_pct / 100;
}

static double row_success(const struct sample *s)
{
    bool known = s->half->measured || cm_judged_failed(s->judged);

    return or_none(known, !cm_judged_failed(s->judged));
}

static const struct {
    const char *name, *help;
    double (*value)(const struct sample *s); /* not finite: no sample */
} of_rows[] = {
    {"collmark_bus_bandwidth_bytes_per_second",
     "Bus bandwidth: algorithm bandwidth times the factor of the collective.", busbw},
    {"collmark_algorithm_bandwidth_bytes_per_second", "Size divided by time.", algbw},
    {"collmark_time_seconds", "Time of one operation.", seconds},
    {"collmark_wrong_elements", "Wrong elements over all ranks, where data were checked.", wrong},
    {"collmark_threshold_bus_bandwidth_bytes_per_second",
     "Bus bandwidth that was asked for at least.", least_busbw},
    {"collmark_threshold_time_seconds", "Time that was allowed at most.", most_seconds},
    {"collmark_peak_ratio", "Bus bandwidth as a part of the peak of the machine.", peak_ratio},
    {"collmark_row_success", "1 if data are right and every threshold is met.", row_success},
};

/* ---- of the run ---- */

static double run_success(const struct cm_report *rep, const struct cm_end *end)
{
    (void)rep;
    return end->exit == CM_EXIT_OK;
}

static double run_exit(const struct cm_report *rep, const struct cm_end *end)
{
    (void)rep;
    return (double)end->exit;
}

static double run_truncated(const struct cm_report *rep, const struct cm_end *end)
{
    (void)rep;
    return end->summary.truncated;
}

static double run_rows(const struct cm_report *rep, const struct cm_end *end)
{
    (void)end;
    return (double)rep->nrows;
}

static double run_failed(const struct cm_report *rep, const struct cm_end *end)
{
    (void)end;
    return (double)rep->verdicts.failed;
}

static double run_average(const struct cm_report *rep, const struct cm_end *end)
{
    (void)end;
    return cm_report_average(rep, 0) * 1e9;
}

static double run_start(const struct cm_report *rep, const struct cm_end *end)
{
    (void)end;
    return (double)rep->start_unix_ms / 1e3;
}

static double run_end(const struct cm_report *rep, const struct cm_end *end)
{
    (void)rep;
    return (double)end->unix_ms / 1e3;
}

static const struct {
    const char *name, *help;
    double (*value)(const struct cm_report *rep, const struct cm_end *end);
} of_runs[] = {
    {"collmark_run_success", "1 if the exit code of the run is 0.", run_success},
    {"collmark_run_exit_code", "Exit code of the run.", run_exit},
    {"collmark_run_truncated", "1 if the run ended before all rows were measured.", run_truncated},
    {"collmark_run_rows", "Rows that were measured.", run_rows},
    {"collmark_run_failed_rows", "Rows that are wrong or miss a threshold.", run_failed},
    {"collmark_run_average_bus_bandwidth_bytes_per_second",
     "Mean over the counted rows of group 0.", run_average},
    {"collmark_run_start_timestamp_seconds", "When the run started, in Unix time.", run_start},
    {"collmark_run_end_timestamp_seconds", "When the run ended, in Unix time.", run_end},
};

/* ---- the document ---- */

/* Rows of a report that have samples. */
struct rows {
    const struct cm_report *rep;
    const bool *last;
};

static void put_help(FILE *f, const char *name, const char *help)
{
    fprintf(f, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void put_label(FILE *f, const char *name, const char *value)
{
    fprintf(f, ",%s=\"", name);
    cm_put_label(f, value);
    fputc('"', f);
}

/* Labels that rows and the run have in common; open at the end. */
static void put_labels(FILE *f, const struct cm_report *rep, int ranks, int nodes)
{
    char wire[CM_WIRE_BYTES];

    fprintf(f, "{collective=\"%s\",ranks=\"%d\",nodes=\"%d\"", cm_colls[rep->bench->coll].name,
            ranks, nodes);
    put_label(f, "wire", cm_header_wire(rep->rank, wire));
    put_label(f, "host", rep->rank->infos[0].host);
}

static void put_value(FILE *f, double v)
{
    fprintf(f, "} %.15g\n", v);
}

static void put_row(FILE *f, const struct cm_report *rep, const struct cm_row *row, int half)
{
    const struct cm_tally *g = &rep->groups[row->group];

    put_labels(f, rep, g->ranks, g->nodes);
    put_label(f, "type", cm_report_type(row));
    put_label(f, "op", row->redop);
    fprintf(f, ",root=\"%d\",bytes=\"%zu\",placement=\"%s\",group=\"%d\"", row->root, row->bytes,
            half == 0 ? "out_of_place" : "in_place", row->group);
    put_label(f, "engine", cm_report_engine(row));
    put_label(f, "cache", cm_cache_name(rep->opts->run.cache));
    put_label(f, "algorithm", row->algo != NULL ? row->algo : "none");
}

static void put_rows(FILE *f, const struct rows *r, size_t metric)
{
    const struct cm_report *rep = r->rep;

    put_help(f, of_rows[metric].name, of_rows[metric].help);
    for (size_t i = 0; i < 2 * rep->nrows; i++) {
        const struct cm_row *row = &rep->rows[i / 2];
        int half = (int)(i % 2);
        struct cm_judged judged;
        double v;

        if (!r->last[i / 2])
            continue;
        cm_report_judge(rep, row, half, &judged);
        v = of_rows[metric].value(&(struct sample){&row->half[half], &judged});
        if (!isfinite(v))
            continue;
        fputs(of_rows[metric].name, f);
        put_row(f, rep, row, half);
        put_value(f, v);
    }
}

static void put_run(FILE *f, const struct cm_report *rep, const struct cm_end *end, int nodes)
{
    for (size_t i = 0; i < CM_LEN(of_runs); i++) {
        double v = of_runs[i].value(rep, end);

        put_help(f, of_runs[i].name, of_runs[i].help);
        if (!isfinite(v))
            continue;
        fputs(of_runs[i].name, f);
        put_labels(f, rep, rep->rank->n, nodes);
        put_value(f, v);
    }
    put_help(f, "collmark_run_info", "What ran; always 1.");
    fputs("collmark_run_info", f);
    put_labels(f, rep, rep->rank->n, nodes);
    put_label(f, "version", cm_version);
    put_label(f, "program", rep->opts->program);
    put_label(f, "backend", cm_header_backend(rep->rank));
    put_label(f, "device", cm_header_device(&rep->rank->infos[0]));
    put_value(f, 1);
}

static enum cm_status write_prometheus(FILE *f, const struct cm_report *rep,
                                       const struct cm_end *end)
{
    int *nth = malloc((rep->nrows + 1) * sizeof(*nth));
    bool *last = malloc((rep->nrows + 1) * sizeof(*last));
    struct rows rows = {rep, last};
    enum cm_status st;

    if (nth == NULL || last == NULL)
        st = CM_FAIL(CM_ENOMEM, "--prometheus: %zu rows", rep->nrows);
    else
        st = cm_report_repeats(rep, nth, last);
    for (size_t m = 0; st == CM_OK && m < CM_LEN(of_rows); m++)
        put_rows(f, &rows, m);
    if (st == CM_OK)
        put_run(f, rep, end, rep->nodes);
    free(nth);
    free(last);
    return st;
}

static bool prometheus_wanted(const struct cm_opts *o)
{
    return o->report.prometheus != NULL;
}

static enum cm_status prometheus_open(struct cm_report *rep, void **state)
{
    return cm_document_open("--prometheus", rep->opts->report.prometheus, state);
}

static enum cm_status prometheus_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    return cm_document_close(rep, state, end, write_prometheus);
}

const struct cm_sink_kind cm_sink_prometheus = {.name = "prometheus",
                                                .wanted = prometheus_wanted,
                                                .open = prometheus_open,
                                                .close = prometheus_close,
                                                .late = true};
