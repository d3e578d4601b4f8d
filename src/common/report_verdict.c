/*
 * The verdict over the rows of a report: every row is judged when it comes, the
 * first that fail are kept by name. It is OK only if the run went to its end,
 * something was judged, and nothing failed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/peaks.h"
#include "common/report_int.h"

void cm_report_judge(const struct cm_report *rep, const struct cm_row *row, int half,
                     struct cm_judged *out)
{
    char wire[CM_WIRE_BYTES];
    struct cm_subject s = {.collective = cm_colls[rep->bench->coll].name,
                           .type = cm_report_type(row),
                           .algo = row->algo != NULL ? row->algo : "",
                           .wire = cm_header_wire(rep->rank, wire),
                           .bytes = row->bytes,
                           .ranks = rep->groups[row->group].ranks,
                           .nodes = rep->groups[row->group].nodes};

    cm_judge_half(rep->judge, rep->bench->coll, &s, &row->half[half], out);
    /* Of several engines, thresholds are for the first. */
    if (row->side > 0 && cm_judged_failed(out) && out->verdict != CM_JUDGED_WRONG)
        out->verdict = CM_JUDGED_NOT;
}

/* "all_reduce float sum 64K: out of place: busbw ..."; NULL: no memory. */
static char *name_failure(const struct cm_report *rep, const struct cm_row *row)
{
    char name[CM_ROW_NAME_BYTES];
    struct cm_judged judged;
    const char *before = ": ";
    struct cm_page page;

    cm_page_begin(&page);
    if (page.f == NULL)
        return cm_page_take(&page);
    fputs(cm_report_row_name(rep, row, name), page.f);
    for (int h = 0; h < 2; h++) {
        cm_report_judge(rep, row, h, &judged);
        if (!cm_judged_failed(&judged))
            continue;
        fprintf(page.f, "%s%s: %s", before, cm_report_placement(h), judged.why);
        before = "; ";
    }
    return cm_page_take(&page);
}

enum cm_status cm_report_weigh(struct cm_report *rep, const struct cm_row *row)
{
    struct cm_verdicts *v = &rep->verdicts;
    struct cm_judged judged[2];

    for (int h = 0; h < 2; h++)
        cm_report_judge(rep, row, h, &judged[h]);
    v->rows += judged[0].verdict != CM_JUDGED_NOT || judged[1].verdict != CM_JUDGED_NOT;
    if (!cm_judged_failed(&judged[0]) && !cm_judged_failed(&judged[1]))
        return CM_OK;
    if (v->failed++ >= CM_MAX_NAMED)
        return CM_OK;
    v->named[v->failed - 1] = name_failure(rep, row);
    return v->named[v->failed - 1] != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "name of a row");
}

void cm_verdicts_free(struct cm_verdicts *v)
{
    for (int i = 0; i < CM_MAX_NAMED; i++)
        free(v->named[i]);
}

bool cm_report_asks(const struct cm_report *rep)
{
    return rep->opts->report.min_bw_gbs > 0 || cm_judge_asks(rep->judge);
}

bool cm_report_is_below(const struct cm_report *rep)
{
    const struct cm_verdicts *v = &rep->verdicts;

    if (rep->find != NULL)
        return false; /* it has a verdict of its own */
    return cm_report_average_is_below(rep) ||
           (cm_judge_asks(rep->judge) && (v->failed > 0 || v->rows == 0));
}

bool cm_report_below(struct cm_report *rep)
{
    const struct cm_verdicts *v = &rep->verdicts;
    bool is_below;

    pthread_mutex_lock(&rep->lock);
    is_below = cm_report_is_below(rep);
    pthread_mutex_unlock(&rep->lock);
    if (!is_below) /* and no row comes any more */
        return false;
    cm_report_tell_average(rep);
    if (!cm_judge_asks(rep->judge))
        return true;
    for (size_t i = 0; i < v->failed && i < CM_MAX_NAMED; i++)
        cm_log("verdict: %s", v->named[i]);
    if (v->failed > CM_MAX_NAMED)
        cm_log("verdict: %zu more rows failed", v->failed - CM_MAX_NAMED);
    if (v->rows == 0)
        cm_log("verdict: no row was judged");
    return true;
}

/* ---- in words ---- */

static void put_asked(FILE *f, const struct cm_opts_report *o)
{
    const char *before = " (";

    if (o->min_busbw_gbs > 0) {
        fprintf(f, "%sbusbw >= %g GB/s", before, o->min_busbw_gbs);
        before = ", ";
    }
    if (o->max_time_us > 0) {
        fprintf(f, "%stime <= %g us", before, o->max_time_us);
        before = ", ";
    }
    if (o->min_peak_pct > 0) {
        fprintf(f, "%s>= %g %% of peak", before, o->min_peak_pct);
        before = ", ";
    }
    if (o->thresholds != NULL) {
        fprintf(f, "%srules of ", before);
        cm_put_plain(f, o->thresholds);
        before = ", ";
    }
    if (o->min_bw_gbs > 0) {
        fprintf(f, "%saverage >= 0.9 x %g GB/s", before, o->min_bw_gbs);
        before = ", ";
    }
    if (before[0] == ',')
        fputc(')', f);
}

void cm_report_put_verdict(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    const struct cm_verdicts *v = &rep->verdicts;
    bool ended = end->summary.status == CM_OK || end->summary.status == CM_EDATA;

    if (!ended || end->summary.truncated)
        fprintf(f, "FAILED: it ended early, %zu of %zu rows failed", v->failed, v->rows);
    else if (v->failed > 0)
        fprintf(f, "FAILED: %zu of %zu row%s", v->failed, v->rows, v->rows == 1 ? "" : "s");
    else if (cm_judge_asks(rep->judge) && v->rows == 0)
        fputs("FAILED: no row was judged", f);
    else if (cm_report_average_is_below(rep))
        fputs("FAILED: the average", f);
    else if (end->summary.wrong > 0)
        fputs("FAILED: wrong data", f);
    else if (cm_judge_asks(rep->judge))
        fprintf(f, "OK: %zu row%s", v->rows, v->rows == 1 ? "" : "s");
    else
        fputs("OK", f);
    put_asked(f, &rep->opts->report);
    if (rep->checked == 0)
        fputs("; data were not checked", f);
}

void cm_header_print_peak(FILE *f, const struct cm_report *rep)
{
    enum cm_peak_class class = cm_peak_class_of(rep->bench->coll, NULL);
    const struct cm_machine *m = cm_judge_machine(rep->judge);
    const struct cm_tally *g = &rep->groups[0];
    const struct cm_peak *p = m != NULL ? cm_peak_find(m, class, g->ranks, g->nodes) : NULL;

    if (rep->opts->report.peak == NULL)
        return;
    if (m == NULL)
        fprintf(f, "# %%peak: busbw as a part of %s GB/s (--peak)\n", rep->opts->report.peak);
    else if (p != NULL)
        fprintf(f,
                "# %%peak: busbw as a part of %g GB/s, which %s is known for (%s, %s)\n"
                "# %%peak: according to %s, %s\n",
                p->gbs, m->name, m->link, cm_peak_class_name(class), p->source, p->date);
    else
        fprintf(f, "# %%peak: N/A, as no figure is known of %s for %s, %d rank%s on %d node%s\n",
                m->name, cm_peak_class_name(class), g->ranks, g->ranks == 1 ? "" : "s", g->nodes,
                g->nodes == 1 ? "" : "s");
}
