/*
 * The line of --eta: which row is measured and how long the rest may take. On
 * a terminal it is one line that is written again and again, and taken away
 * before anything else is shown; lines of the log do so by themselves. Elsewhere
 * (--eta always) it is a line now and then. It never gets into a report.
 */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "common/eta.h"
#include "common/report_int.h"
#include "common/sweep.h"

enum { TEXT_BYTES = 140 };

/* Rows that take longer are shown in any case; others not more often than that. */
static const double SLOW_S = 0.25;
static const int64_t REDRAW_NS = CM_NS_PER_S / 4, REPEAT_NS = 10LL * CM_NS_PER_S;

enum cm_status cm_report_clear_progress(struct cm_report *rep)
{
    if (!rep->progress_shown)
        return CM_OK;
    rep->progress_shown = false;
    return cm_write_all(STDERR_FILENO, "\r\033[K", 4, "stderr");
}

static enum cm_status show(struct cm_report *rep, const char *text, bool terminal)
{
    char line[160];
    int n = snprintf(line, sizeof(line), terminal ? "\r# %.140s\033[K" : "# %.140s\n", text);

    rep->progress_ns = cm_now_ns();
    rep->progress_shown = terminal;
    return cm_write_all(STDERR_FILENO, line, (size_t)n, "stderr");
}

/* The line's text. */
static void describe(const struct cm_opts *o, const struct cm_sweep *s, double left_s,
                     char text[TEXT_BYTES])
{
    char size[32], span[CM_SPAN_BYTES];
    int n = snprintf(text, TEXT_BYTES, "row %llu", (unsigned long long)s->done);

    if (s->total > 0)
        n += snprintf(text + n, TEXT_BYTES - (size_t)n, " of %llu", (unsigned long long)s->total);
    n += snprintf(text + n, TEXT_BYTES - (size_t)n, ": %s %s %s", cm_dtypes[s->now.dtype].name,
                  cm_ops[s->now.op].name, cm_format_size(s->now.bytes, size));
    if (o->sweep.cycles != 1)
        n += snprintf(text + n, TEXT_BYTES - (size_t)n, " cycle %d", s->now.cycle);
    if (left_s >= 0)
        snprintf(text + n, TEXT_BYTES - (size_t)n, ", about %s left", cm_eta_text(left_s, span));
}

/* Seconds until the end, which --max-time may set; NaN: not known. */
static double left_of(const struct cm_opts *o, const struct cm_eta *eta, double elapsed_s)
{
    double left = cm_eta_left(eta), budget = o->run.max_time_s - elapsed_s;

    if (o->run.max_time_s <= 0 || left < budget)
        return left;
    return budget > 0 ? budget : 0;
}

void cm_report_progress(struct cm_report *rep, const char *text, bool slow)
{
    bool terminal = isatty(STDERR_FILENO) == 1, due;
    int use = rep->opts->report.eta;
    enum cm_status st = CM_OK;
    int64_t since;

    if (use == CM_ETA_NEVER || (use == CM_ETA_AUTO && !terminal))
        return;
    pthread_mutex_lock(&rep->lock);
    since = cm_now_ns() - rep->progress_ns;
    due = rep->progress_ns == 0 || (terminal ? slow || since >= REDRAW_NS : since >= REPEAT_NS);
    if (!rep->ended && due)
        st = show(rep, text, terminal);
    if (rep->status == CM_OK)
        rep->status = st;
    pthread_mutex_unlock(&rep->lock);
}

void cm_report_row_begins(struct cm_report *rep, const struct cm_sweep *s, const struct cm_eta *eta,
                          double elapsed_s)
{
    bool slow = cm_eta_row(eta, s->now.bytes) > SLOW_S;
    double left = left_of(rep->opts, eta, elapsed_s);
    bool lasts = slow || elapsed_s > 1 || left > 2;
    char text[TEXT_BYTES];

    if (rep->opts->report.eta == CM_ETA_AUTO && !lasts)
        return;
    describe(rep->opts, s, left, text);
    cm_report_progress(rep, text, slow);
}
