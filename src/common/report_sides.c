/*
 * Several engines side by side (--compare): the header's line, the table, and
 * how often the first engine was faster.
 *
 * A line of the table is one placement of one row: time, bus bandwidth and
 * spread of each engine, then the time of the best other engine as a multiple of
 * the first one's: the median over the rounds and its interval (struct cm_ratio).
 * If 1 is in the interval, the two are equal: what differs may be noise.
 */
#include <inttypes.h>
#include <math.h>

#include "common/engine.h"
#include "common/report_int.h"

enum { SIDE_COLUMNS = 25 /* characters of the three columns of an engine */ };

bool cm_report_library(const struct cm_rank *r, char buf[CM_LIBRARY_BYTES])
{
    const struct cm_sides *s = &r->opts->sides.list;

    for (int i = 0; i < s->n; i++) {
        const struct cm_engine *e = cm_engines[s->of[i].id].engine;

        if (e != NULL && e->library != NULL && e->library(buf, CM_LIBRARY_BYTES))
            return true;
    }
    return false;
}

void cm_header_print_sides(FILE *f, const struct cm_rank *r)
{
    const struct cm_opts *o = r->opts;
    const struct cm_opts_sides *s = &o->sides;
    int steps = (o->run.iters + s->rounds - 1) / (s->rounds > 0 ? s->rounds : 1);

    char library[CM_LIBRARY_BYTES];

    if (s->compare == NULL && cm_sides_have(&s->list, CM_ENGINE_BUILTIN))
        return;
    if (cm_report_library(r, library))
        fprintf(f, "# Library: %s\n", library);
    fprintf(f, "# %s: ", s->compare != NULL ? "Compare" : "Engine");
    for (int i = 0; i < s->list.n; i++)
        fprintf(f, "%s%s", i > 0 ? ", " : "", s->list.of[i].name);
    if (s->compare == NULL) {
        fputc('\n', f);
        return;
    }
    fprintf(f, ", in turns: medians of %d rounds of %d iteration%s each\n", s->rounds, steps,
            steps == 1 ? "" : "s");
    fprintf(f,
            "# spread: (third - first quartile) / median  ratio: time of the best other / time of "
            "%s,\n# median of the same rounds, which is between low and high; equal if 1 is\n",
            s->list.of[0].name);
}

/* ---- the table ---- */

void cm_sides_print_titles(FILE *f, const struct cm_opts *o)
{
    const struct cm_sides *s = &o->sides.list;

    fprintf(f, "#\n#%57s", "");
    for (int i = 0; i < s->n; i++)
        fprintf(f, "  %*s", SIDE_COLUMNS - 2, s->of[i].name);
    fprintf(f, "\n# %10s  %12s  %8s  %6s  %6s  %5s", "size", "count", "type", "redop", "root",
            "place");
    for (int i = 0; i < s->n; i++)
        fprintf(f, "  %7s  %6s  %6s", "time", "busbw", "spread");
    fprintf(f, "  %6s  %6s  %6s  %7s  %6s\n", "ratio", "low", "high", "first", "#wrong");
    fprintf(f, "# %10s  %12s  %8s  %6s  %6s  %5s", "(B)", "(elements)", "", "", "", "");
    for (int i = 0; i < s->n; i++)
        fprintf(f, "  %7s  %6s  %6s", "(us)", "(GB/s)", "(%)");
    fprintf(f, "  %6s  %6s  %6s  %7s\n", "", "", "", "is");
}

/* Placement `half` of the fastest engine but the first; NULL: none was measured. `last` is the
   row of the last engine, those of the others are before it. */
static const struct cm_result *best_other(const struct cm_row *last, int half)
{
    const struct cm_result *best = NULL;

    for (int i = 1; i <= last->side; i++) {
        const struct cm_result *r = &last[i - last->side].half[half];

        if (r->measured && r->ratio.known && (best == NULL || r->time_us < best->time_us))
            best = r;
    }
    return best;
}

static const char *standing_of(const struct cm_result *best)
{
    if (best == NULL)
        return "N/A";
    return best->ratio.low > 1 ? "faster" : best->ratio.high < 1 ? "slower" : "equal";
}

static void print_side(FILE *f, const struct cm_result *r)
{
    char time[CM_FIT_BYTES], bus[CM_FIT_BYTES], spread[CM_FIT_BYTES];
    bool ok = r->measured;

    fprintf(f, "  %7s  %6s  %6s", cm_report_fit(ok ? r->time_us : NAN, 7, time),
            cm_report_fit(ok ? r->bus_gbs : NAN, 6, bus),
            cm_report_fit(ok ? r->spread_pct : NAN, 6, spread));
}

/* Of all engines; N/A if nothing was checked. */
static void print_wrong(FILE *f, const struct cm_row *last, int half)
{
    bool checked = false;
    int64_t wrong = 0;

    for (int i = 0; i <= last->side; i++) {
        const struct cm_result *r = &last[i - last->side].half[half];

        checked = checked || (r->measured && r->checked);
        wrong += r->measured && r->checked ? r->wrong : 0;
    }
    if (checked)
        fprintf(f, "  %6" PRId64, wrong);
    else
        fprintf(f, "  %6s", "N/A");
}

static void print_half(FILE *f, const struct cm_report *rep, const struct cm_row *last, int half)
{
    const struct cm_result *best = best_other(last, half);
    char mid[CM_FIT_BYTES], low[CM_FIT_BYTES], high[CM_FIT_BYTES], utc[CM_UTC_BYTES];

    fprintf(f, "%12zu  %12zu  %8s  %6s  %6d  %5s", last->bytes, last->count, cm_report_type(last),
            last->redop, last->root, half == 0 ? "out" : "in");
    for (int i = 0; i <= last->side; i++)
        print_side(f, &last[i - last->side].half[half]);
    fprintf(f, "  %6s  %6s  %6s  %7s", cm_report_fit(best != NULL ? best->ratio.mid : NAN, 6, mid),
            cm_report_fit(best != NULL ? best->ratio.low : NAN, 6, low),
            cm_report_fit(best != NULL ? best->ratio.high : NAN, 6, high), standing_of(best));
    print_wrong(f, last, half);
    if (rep->opts->report.timestamps)
        fprintf(f, " %s", cm_utc(last->start_unix_ms, false, utc));
    fputc('\n', f);
}

void cm_sides_print_row(FILE *f, const struct cm_report *rep, const struct cm_row *row)
{
    if (row->side + 1 < row->sides)
        return;
    for (int half = 0; half < 2; half++) {
        if (!row->half[half].absent)
            print_half(f, rep, row, half);
    }
}

/* ---- how often ---- */

void cm_sides_tally(struct cm_report *rep, const struct cm_row *row)
{
    struct cm_standing *s = &rep->standing;

    if (row->sides < 2 || row->side + 1 < row->sides)
        return;
    for (int half = 0; half < 2; half++) {
        const struct cm_result *best = best_other(row, half);

        if (row->half[half].absent)
            continue;
        s->unknown += best == NULL;
        s->faster += best != NULL && best->ratio.low > 1;
        s->slower += best != NULL && best->ratio.high < 1;
        s->equal += best != NULL && best->ratio.low <= 1 && best->ratio.high >= 1;
    }
}

void cm_sides_print_standing(FILE *f, const struct cm_report *rep)
{
    const struct cm_standing *s = &rep->standing;

    if (rep->opts->sides.compare == NULL)
        return;
    fprintf(f, "# %-21s: faster %zu, equal %zu, slower %zu", rep->opts->sides.list.of[0].name,
            s->faster, s->equal, s->slower);
    if (s->unknown > 0)
        fprintf(f, ", not compared %zu", s->unknown);
    fputc('\n', f);
}
