/*
 * JUnit XML (--junit): a test case for each row and placement, and one for the
 * end of the run, so that an abort shows and a run without rows has a case.
 *
 * Readers keep the history of a case by its name. So it has no figure in it and
 * no place in the sweep: "65536 B float sum in place"; a repeated row has "(2)".
 * The time of a case is that of one operation. tests/junit.xsd is what is kept to.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/report_int.h"
#include "common/version.h"

enum outcome { PASSED, SKIPPED, FAILURE, ERROR, NOUTCOMES };

/* What became of a case. */
struct verdict {
    enum outcome outcome;
    const char *type, *why;
};

struct counts {
    size_t tests, of[NOUTCOMES];
    double seconds;
};

static double seconds_of(const struct cm_result *half)
{
    bool known = half->measured && isfinite(half->time_us) && half->time_us > 0;

    return known ? half->time_us / 1e6 : 0;
}

/* `judged` must outlive the result. */
static struct verdict of_half(const struct cm_result *half, const struct cm_judged *judged)
{
    struct verdict v = {PASSED, cm_judgement_name(judged->verdict), judged->why};

    if (judged->verdict == CM_JUDGED_NO_RULE)
        v.outcome = ERROR;
    else if (cm_judged_failed(judged))
        v.outcome = FAILURE;
    else if (!half->measured)
        v = (struct verdict){SKIPPED, NULL, half->why};
    return v;
}

static struct verdict of_end(const struct cm_end *end)
{
    const struct cm_summary *s = &end->summary;
    bool ended = s->status == CM_OK || s->status == CM_EDATA;

    if (ended && !s->truncated)
        return (struct verdict){PASSED, NULL, NULL};
    return (struct verdict){ERROR, s->status == CM_ETIMEOUT ? "timeout" : "truncated",
                            s->why_truncated != NULL ? s->why_truncated
                                                     : cm_status_text(s->status)};
}

static struct verdict of_average(const struct cm_report *rep)
{
    if (!cm_report_average_is_below(rep))
        return (struct verdict){PASSED, NULL, NULL};
    return (struct verdict){FAILURE, "below", "the average is below 0.9 x --min-bw"};
}

static void count(struct counts *c, struct verdict v, double seconds)
{
    c->tests++;
    c->of[v.outcome]++;
    c->seconds += seconds;
}

static struct counts count_all(const struct cm_report *rep, const struct cm_end *end)
{
    struct counts c = {0};

    for (size_t i = 0; i < rep->nrows; i++) {
        for (int h = 0; h < 2; h++) {
            const struct cm_result *half = &rep->rows[i].half[h];
            struct cm_judged judged;

            cm_report_judge(rep, &rep->rows[i], h, &judged);
            count(&c, of_half(half, &judged), seconds_of(half));
        }
    }
    if (rep->opts->report.min_bw_gbs > 0)
        count(&c, of_average(rep), 0);
    count(&c, of_end(end), 0);
    return c;
}

/* ---- the document ---- */

static void put_attribute(FILE *f, const char *name, const char *value)
{
    fprintf(f, " %s=\"", name);
    cm_put_xml(f, value);
    fputc('"', f);
}

static void put_outcome(FILE *f, struct verdict v)
{
    static const char *const names[] = {
        [SKIPPED] = "skipped", [FAILURE] = "failure", [ERROR] = "error"};

    if (v.outcome == PASSED) {
        fputs("/>\n", f);
        return;
    }
    fprintf(f, ">\n      <%s", names[v.outcome]);
    put_attribute(f, "message", v.why != NULL ? v.why : "not known why");
    if (v.outcome != SKIPPED)
        put_attribute(f, "type", v.type);
    fputs("/>\n    </testcase>\n", f);
}

/* The part of a case that comes before its name's end. */
static void open_case(FILE *f, const struct cm_report *rep)
{
    fprintf(f, "    <testcase classname=\"collmark.%s\" name=\"", cm_colls[rep->bench->coll].name);
}

static void put_row(FILE *f, const struct cm_report *rep, const struct cm_row *row, int nth)
{
    for (int h = 0; h < 2; h++) {
        struct cm_judged judged;

        open_case(f, rep);
        fprintf(f, "%zu B %s %s", row->bytes, cm_report_type(row), row->redop);
        if (cm_report_names_engine(row))
            fprintf(f, " engine %s", cm_report_engine(row));
        if (row->root >= 0)
            fprintf(f, " root %d", row->root);
        if (rep->rank->ngroups > 1)
            fprintf(f, " group %d", row->group);
        fprintf(f, " %s", cm_report_placement(h));
        if (nth > 0)
            fprintf(f, " (%d)", nth + 1);
        fprintf(f, "\" time=\"%.9f\"", seconds_of(&row->half[h]));
        cm_report_judge(rep, row, h, &judged);
        put_outcome(f, of_half(&row->half[h], &judged));
    }
}

static void put_case(FILE *f, const struct cm_report *rep, const char *name, struct verdict v)
{
    open_case(f, rep);
    fprintf(f, "%s\"", name);
    put_outcome(f, v);
}

static void put_property(FILE *f, const char *name, const char *value)
{
    fputs("      <property", f);
    put_attribute(f, "name", name);
    put_attribute(f, "value", value);
    fputs("/>\n", f);
}

static void put_properties(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    char wire[CM_WIRE_BYTES], number[16];

    fputs("    <properties>\n", f);
    put_property(f, "collmark", cm_version);
    put_property(f, "backend", cm_header_backend(rep->rank));
    put_property(f, "wire", cm_header_wire(rep->rank, wire));
    snprintf(number, sizeof(number), "%d", rep->rank->n);
    put_property(f, "ranks", number);
    put_property(f, "device", cm_header_device(&rep->rank->infos[0]));
    snprintf(number, sizeof(number), "%d", (int)end->exit);
    put_property(f, "exit_code", number);
    put_property(f, "truncated", end->summary.truncated ? "true" : "false");
    for (int i = 0; i < rep->argc; i++)
        put_property(f, "argument", rep->argv[i]);
    fputs("    </properties>\n", f);
}

static void put_totals(FILE *f, const struct counts *c)
{
    fprintf(f, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.9f\"", c->tests,
            c->of[FAILURE], c->of[ERROR], c->seconds);
}

static void put_document(FILE *f, const struct cm_report *rep, const struct cm_end *end,
                         const int *nth)
{
    struct counts c = count_all(rep, end);
    char utc[CM_UTC_BYTES];

    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"collmark\"", f);
    put_totals(f, &c);
    fputs(">\n  <testsuite", f);
    put_attribute(f, "name", rep->opts->program);
    put_totals(f, &c);
    fprintf(f, " skipped=\"%zu\"", c.of[SKIPPED]);
    put_attribute(f, "timestamp", cm_utc(rep->start_unix_ms, false, utc));
    put_attribute(f, "hostname", rep->rank->infos[0].host);
    fputs(">\n", f);
    put_properties(f, rep, end);
    for (size_t i = 0; i < rep->nrows; i++)
        put_row(f, rep, &rep->rows[i], nth[i]);
    if (rep->opts->report.min_bw_gbs > 0)
        put_case(f, rep, "average bus bandwidth", of_average(rep));
    put_case(f, rep, "end of the run", of_end(end));
    fputs("  </testsuite>\n</testsuites>\n", f);
}

static enum cm_status write_junit(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    int *nth = malloc((rep->nrows + 1) * sizeof(*nth));
    bool *last = malloc((rep->nrows + 1) * sizeof(*last));
    enum cm_status st;

    if (nth == NULL || last == NULL)
        st = CM_FAIL(CM_ENOMEM, "--junit: %zu rows", rep->nrows);
    else
        st = cm_report_repeats(rep, nth, last);
    if (st == CM_OK)
        put_document(f, rep, end, nth);
    free(nth);
    free(last);
    return st;
}

static bool junit_wanted(const struct cm_opts *o)
{
    return o->report.junit != NULL;
}

static enum cm_status junit_open(struct cm_report *rep, void **state)
{
    return cm_document_open("--junit", rep->opts->report.junit, state);
}

static enum cm_status junit_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    return cm_document_close(rep, state, end, write_junit);
}

const struct cm_sink_kind cm_sink_junit = {.name = "junit",
                                           .wanted = junit_wanted,
                                           .open = junit_open,
                                           .close = junit_close,
                                           .late = true};
