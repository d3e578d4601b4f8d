/*
 * GitHub Actions (--github): an annotation for each bad row, and a summary of
 * the step in Markdown.
 *
 * Annotations are workflow commands. They go to stderr, whose lines the runner
 * reads as it reads those of stdout, so that documents on stdout stay whole.
 * It shows ten of a step: eight rows, one that counts the rest, and one for the
 * end. The summary is appended to the file that $GITHUB_STEP_SUMMARY names, in
 * one write; steps share a limit of 1 MiB, hence the limit on rows.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/report_int.h"

enum { MOST_ROWS = 500, WHAT_BYTES = 512 };

/* The summary's file; fd -1: there is none. */
struct github {
    int fd;
    char what[WHAT_BYTES]; /* its name in messages */
};

static bool github_wanted(const struct cm_opts *o)
{
    return o->report.github;
}

static enum cm_status github_open(struct cm_report *rep, void **state)
{
    const char *path = getenv("GITHUB_STEP_SUMMARY");
    struct github *g = malloc(sizeof(*g));

    (void)rep;
    if (g == NULL)
        return CM_FAIL(CM_ENOMEM, "--github");
    g->fd = -1;
    if (path != NULL && path[0] != '\0') {
        snprintf(g->what, sizeof(g->what), "--github: GITHUB_STEP_SUMMARY '%s'", path);
        g->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (g->fd < 0) {
            enum cm_status st = cm_fail_errno(g->what);

            free(g);
            return st;
        }
    }
    *state = g;
    return CM_OK;
}

/* ---- annotations ---- */

static void annotate(FILE *f, const struct cm_report *rep, const char *text)
{
    fputs("::error title=", f);
    cm_put_property(f, rep->opts->program);
    fputs("::", f);
    cm_put_command(f, text);
    fputc('\n', f);
}

static enum cm_status put_annotations(const struct cm_report *rep, const struct cm_end *end)
{
    const struct cm_summary *s = &end->summary;
    bool ended = s->status == CM_OK || s->status == CM_EDATA;
    size_t failed = rep->verdicts.failed;
    struct cm_page page;
    char text[128];

    cm_page_begin(&page);
    for (size_t i = 0; page.f != NULL && i < failed && i < CM_MAX_NAMED; i++)
        annotate(page.f, rep, rep->verdicts.named[i] != NULL ? rep->verdicts.named[i] : "a row");
    if (page.f != NULL && failed > CM_MAX_NAMED) {
        snprintf(text, sizeof(text), "%zu more rows failed", failed - CM_MAX_NAMED);
        annotate(page.f, rep, text);
    }
    if (page.f != NULL && (!ended || s->truncated)) {
        snprintf(text, sizeof(text), "the run ended early: %s",
                 s->why_truncated != NULL ? s->why_truncated : cm_status_text(s->status));
        annotate(page.f, rep, text);
    } else if (page.f != NULL && failed == 0 && cm_report_is_below(rep)) {
        annotate(page.f, rep, "a threshold was missed");
    }
    return cm_page_end(&page, STDERR_FILENO, "stderr");
}

/* ---- the summary ---- */

static void put_real(FILE *f, bool known, double v)
{
    if (known && isfinite(v))
        fprintf(f, " %.4g |", v);
    else
        fputs(" N/A |", f);
}

static void put_half(FILE *f, const struct cm_result *half)
{
    put_real(f, half->measured, half->time_us);
    put_real(f, half->measured, half->bus_gbs);
    put_real(f, half->measured && half->checked, (double)half->wrong);
}

static void put_row(FILE *f, const struct cm_report *rep, const struct cm_row *row)
{
    const char *before = " ";

    fprintf(f, "| %zu | %s | %s | %d | %d | %s |", row->bytes, cm_report_type(row), row->redop,
            row->root, row->group, cm_report_engine(row));
    for (int h = 0; h < 2; h++)
        put_half(f, &row->half[h]);
    for (int h = 0; h < 2; h++) {
        struct cm_judged judged;

        cm_report_judge(rep, row, h, &judged);
        if (!cm_judged_failed(&judged))
            continue;
        fprintf(f, "%s**%s:** ", before, cm_report_placement(h));
        cm_put_markdown(f, judged.why);
        before = "; ";
    }
    fputs(" |\n", f);
}

/* The verdict is text of this program, but the name of a file may be in it. */
static void put_verdict(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    char *text = NULL;
    size_t n = 0;
    FILE *t = open_memstream(&text, &n);

    if (t == NULL)
        return;
    cm_report_put_verdict(t, rep, end);
    if (fclose(t) == 0)
        cm_put_markdown(f, text);
    free(text);
}

static void put_summary(FILE *f, const struct cm_report *rep, const struct cm_end *end)
{
    char wire[CM_WIRE_BYTES];

    fputs("### ", f);
    cm_put_markdown(f, rep->opts->program);
    fputs("\n\n**", f);
    put_verdict(f, rep, end);
    fprintf(f, "** (exit code %d)\n\n%d rank%s, first on ", (int)end->exit, rep->rank->n,
            rep->rank->n == 1 ? "" : "s");
    cm_put_markdown(f, rep->rank->infos[0].host);
    fputs(", ", f);
    cm_put_markdown(f, cm_header_device(&rep->rank->infos[0]));
    fputs(", wire ", f);
    cm_put_markdown(f, cm_header_wire(rep->rank, wire));
    if (end->summary.truncated) {
        fputs("\n\nTruncated: ", f);
        cm_put_markdown(f, end->summary.why_truncated);
    }
    fputs("\n\n| size (B) | type | op | root | group | engine | time (us) | busbw (GB/s) | wrong | "
          "in place: time (us) | busbw (GB/s) | wrong | verdict |\n"
          "|---:|---|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---|\n",
          f);
    for (size_t i = 0; i < rep->nrows && i < MOST_ROWS; i++)
        put_row(f, rep, &rep->rows[i]);
    if (rep->nrows > MOST_ROWS)
        fprintf(f, "\n%zu more rows are not shown.\n", rep->nrows - MOST_ROWS);
    fputc('\n', f);
}

static enum cm_status github_close(struct cm_report *rep, void *state, const struct cm_end *end)
{
    struct github *g = state;
    enum cm_status st = end != NULL ? put_annotations(rep, end) : CM_OK, told = CM_OK;
    struct cm_page page;

    if (g->fd >= 0 && end != NULL) {
        cm_page_begin(&page);
        if (page.f != NULL)
            put_summary(page.f, rep, end);
        told = cm_page_end(&page, g->fd, g->what);
    }
    if (g->fd >= 0 && close(g->fd) != 0 && told == CM_OK)
        told = cm_fail_errno(g->what);
    free(g);
    return st != CM_OK ? st : told;
}

const struct cm_sink_kind cm_sink_github = {.name = "github",
                                            .wanted = github_wanted,
                                            .open = github_open,
                                            .close = github_close,
                                            .late = true};
