/*
 * The table on stdout: columns, widths and footer of nccl-tests, so that its
 * readers' scripts work.
 *
 * A row has 13 fields whatever happened: what was not measured or not checked
 * is N/A. A figure is never wider than its column; it loses decimals instead,
 * and then becomes an exponent. Rows of group 0 appear as they come, those of
 * other groups as further tables at the end.
 */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/units.h"
#include "common/report_int.h"

bool cm_report_shows(const struct cm_opts *o)
{
    const char *const paths[] = {o->report.json, o->report.csv, o->report.junit,
                                 o->report.prometheus};

    for (size_t i = 0; i < CM_LEN(paths); i++) {
        if (paths[i] != NULL && strcmp(paths[i], "-") == 0)
            return false;
    }
    return true;
}

const char *cm_report_fit(double v, int width, char *buf)
{
    if (!isfinite(v))
        return "N/A";
    for (int decimals = 2; decimals >= 0; decimals--) {
        if (snprintf(buf, CM_FIT_BYTES, "%.*f", decimals, v) <= width)
            return buf;
    }
    snprintf(buf, CM_FIT_BYTES, "%.*e", width - 6, v);
    return buf;
}

static const char *fit_count(bool valid, int64_t v, char *buf)
{
    if (!valid)
        return "N/A";
    if (snprintf(buf, CM_FIT_BYTES, "%" PRId64, v) > 6)
        snprintf(buf, CM_FIT_BYTES, "%.0e", (double)v);
    return buf;
}

static void print_titles(FILE *f, const struct cm_opts *o)
{
    const char *time = o->run.cpu_time ? "cputime" : "time";
    const char *i_names = o->run.per_iter ? "    i_min    i_max    i_p99    i_cv%" : "";
    const char *i_units = o->run.per_iter ? "     (us)     (us)     (us)      (%)" : "";
    const char *p_names = o->report.peak != NULL ? "   %peak   %peak" : "";
    const char *p_units = o->report.peak != NULL ? "   (out)    (in)" : "";
    const char *s_name = o->report.timestamps ? "           timestamp" : "";
    const char *s_unit = o->report.timestamps ? "               (UTC)" : "";

    if (o->sides.compare != NULL) {
        cm_sides_print_titles(f, o);
        return;
    }
    fputs("#\n", f);
    if (o->run.per_iter)
        fprintf(f, "#%51s  %-67s  %-67s \n", "", "out-of-place (+ per-iteration)",
                "in-place (+ per-iteration)");
    else
        fprintf(f, "#%62s%-35s%-18s\n", "", "out-of-place", "in-place");
    fprintf(f, "# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
    for (int h = 0; h < 2; h++)
        fprintf(f, "  %7s  %6s  %6s  %6s%s", time, "algbw", "busbw", "#wrong", i_names);
    fprintf(f, "%s %s\n", p_names, s_name);
    fprintf(f, "# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
    for (int h = 0; h < 2; h++)
        fprintf(f, "  %7s  %6s  %6s  %6s%s", "(us)", "(GB/s)", "(GB/s)", "", i_units);
    fprintf(f, "%s %s\n", p_units, s_unit);
}

static void print_half(FILE *f, const struct cm_opts *o, const struct cm_result *half)
{
    double time = o->run.cpu_time ? half->cpu_us : half->time_us;
    const double samples[] = {half->samples.min, half->samples.max, half->samples.p99,
                              half->samples.cv_pct};
    bool ok = half->measured, sampled = ok && half->has_samples;
    char t[CM_FIT_BYTES], alg[CM_FIT_BYTES], bus[CM_FIT_BYTES], wrong[CM_FIT_BYTES];

    fprintf(f, "  %7s  %6s  %6s  %6s", cm_report_fit(ok ? time : NAN, 7, t),
            cm_report_fit(ok ? half->alg_gbs : NAN, 6, alg),
            cm_report_fit(ok ? half->bus_gbs : NAN, 6, bus),
            fit_count(ok && half->checked, half->wrong, wrong));
    for (size_t i = 0; o->run.per_iter && i < CM_LEN(samples); i++)
        fprintf(f, "  %7s", cm_report_fit(sampled ? samples[i] : NAN, 7, t));
}

/* Behind all other figures, so that readers of 13 fields need not know them. */
static void print_peaks(FILE *f, const struct cm_report *rep, const struct cm_row *row)
{
    struct cm_judged judged;
    char pct[CM_FIT_BYTES];

    for (int h = 0; h < 2; h++) {
        cm_report_judge(rep, row, h, &judged);
        fprintf(f, "  %6s", cm_report_fit(judged.peak_pct, 6, pct));
    }
}

static void print_row(FILE *f, const struct cm_report *rep, const struct cm_row *row)
{
    const struct cm_opts *o = rep->opts;
    char utc[CM_UTC_BYTES];

    if (o->sides.compare != NULL) {
        cm_sides_print_row(f, rep, row);
        return;
    }
    fprintf(f, "%12zu  %12zu  %8s  %6s  %6d", row->bytes, row->count, cm_report_type(row),
            row->redop, row->root);
    for (int h = 0; h < 2; h++)
        print_half(f, o, &row->half[h]);
    if (o->report.peak != NULL)
        print_peaks(f, rep, row);
    if (o->report.timestamps)
        fprintf(f, " %s", cm_utc(row->start_unix_ms, false, utc));
    fputc('\n', f);
}

/* A reader who left (a closed pipe) is reported once. */
static enum cm_status put_page(struct cm_report *rep, struct cm_page *page)
{
    enum cm_status st;

    if (atomic_load(&rep->deaf)) {
        cm_page_drop(page);
        return CM_OK;
    }
    st = cm_page_end(page, STDOUT_FILENO, "stdout");
    if (st != CM_OK)
        atomic_store(&rep->deaf, true);
    return st;
}

static bool table_wanted(const struct cm_opts *o)
{
    return cm_report_shows(o) && !o->find.on;
}

static enum cm_status table_open(struct cm_report *rep, void **state)
{
    struct cm_page page;

    *state = NULL;
    cm_page_begin(&page);
    if (page.f != NULL) {
        cm_header_print(page.f, rep);
        print_titles(page.f, rep->opts);
    }
    return put_page(rep, &page);
}

static enum cm_status table_row(struct cm_report *rep, void *state, const struct cm_row *row)
{
    struct cm_page page;

    (void)state;
    if (row->group != 0)
        return CM_OK;
    cm_page_begin(&page);
    if (page.f != NULL)
        print_row(page.f, rep, row);
    return put_page(rep, &page);
}

/* ---- the end ---- */

static void print_other_groups(FILE *f, const struct cm_report *rep)
{
    for (int g = 1; g < rep->rank->ngroups; g++) {
        fprintf(f, "#\n# Group %d: ranks ", g);
        cm_header_ranks(f, rep, g);
        fputc('\n', f);
        print_titles(f, rep->opts);
        for (size_t i = 0; i < rep->nrows; i++) {
            if (rep->rows[i].group == g)
                print_row(f, rep, &rep->rows[i]);
        }
    }
}

static void print_groups(FILE *f, const struct cm_report *rep)
{
    int slowest = cm_report_slowest(rep);
    double sum = 0;

    if (rep->rank->ngroups < 2)
        return;
    if (slowest < 0) {
        fputs("# Slowest group        : N/A\n", f);
        return;
    }
    for (int g = 0; g < rep->rank->ngroups; g++)
        sum += cm_report_average(rep, g);
    fprintf(f, "# Slowest group        : %d (%g GB/s average)\n", slowest,
            cm_report_average(rep, slowest));
    if (isfinite(sum))
        fprintf(f, "# Sum of groups        : %g GB/s average\n", sum);
}

static void print_bandwidth(FILE *f, const struct cm_report *rep)
{
    double average = cm_report_average(rep, 0);
    const char *verdict = "";

    if (rep->opts->report.min_bw_gbs > 0)
        verdict = cm_report_average_is_below(rep) ? "FAILED" : "OK";
    if (isfinite(average))
        fprintf(f, "# Avg bus bandwidth    : %g %s\n", average, verdict);
    else
        fprintf(f, "# Avg bus bandwidth    : N/A %s\n", verdict);
    if (rep->rank->ngroups > 1)
        fputs("# Note: this is the average of group 0; --min-bw looks at every group\n", f);
}

static void print_memory(FILE *f, const struct cm_report *rep)
{
    struct rusage use;
    char arena[32];

    if (!rep->opts->report.memory)
        return;
    getrusage(RUSAGE_SELF, &use);
    fprintf(f, "# Host memory usage    : %s of buffers per rank | %ldK peak of the first process\n",
            cm_format_size(rep->rank->arena_bytes, arena), use.ru_maxrss);
    cm_footer_print_gpu_memory(f, &rep->memory);
}

static void print_footer(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    const struct cm_summary *s = &end->summary;

    for (int i = 0; i < rep->nnotes; i++)
        fprintf(f, "# Note: %s (%zu row%s)\n", rep->notes[i].text, rep->notes[i].count,
                rep->notes[i].count == 1 ? "" : "s");
    if (s->truncated)
        fprintf(f, "# Truncated            : %s\n", s->why_truncated);
    if (rep->checked == 0 && s->wrong == 0)
        fputs("# Out of bounds values : N/A (nothing was checked)\n", f);
    else
        fprintf(f, "# Out of bounds values : %" PRId64 " %s\n", s->wrong,
                s->wrong == 0 ? "OK" : "FAILED");
    print_bandwidth(f, rep);
    print_groups(f, rep);
    if (cm_report_asks(rep)) {
        fputs("# Verdict              : ", f);
        cm_report_put_verdict(f, rep, end);
        fputc('\n', f);
    }
    cm_sides_print_standing(f, rep);
    cm_footer_print_probe(f, rep->rank);
    cm_footer_print_bootstrap(f, rep);
    fprintf(f, "#\n# Collective test concluded: %s\n", rep->opts->program);
    print_memory(f, rep);
    fputs("#\n\n", f);
}

static enum cm_status table_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    struct cm_page page;

    (void)state;
    if (end == NULL)
        return CM_OK;
    cm_page_begin(&page);
    if (page.f != NULL) {
        print_other_groups(page.f, rep);
        print_footer(page.f, rep, end);
    }
    return put_page(rep, &page);
}

const struct cm_sink_kind cm_sink_table = {.name = "table",
                                           .wanted = table_wanted,
                                           .open = table_open,
                                           .row = table_row,
                                           .close = table_close,
                                           .patient = true};
