/*
 * Figures over the rows of a report: averages of groups, the threshold, how
 * much was checked and found wrong, remarks and how many rows each concerns.
 *
 * A row counts once for a remark, even if both placements make it.
 */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "common/engine.h"
#include "common/report_int.h"

double cm_report_average(const struct cm_report *rep, int group)
{
    const struct cm_tally *t = &rep->groups[group];

    return t->n > 0 ? t->sum / (double)t->n : NAN;
}

int cm_report_slowest(const struct cm_report *rep)
{
    int slowest = -1;

    for (int g = 0; g < rep->rank->ngroups; g++) {
        double average = cm_report_average(rep, g);

        if (isfinite(average) && (slowest < 0 || average < cm_report_average(rep, slowest)))
            slowest = g;
    }
    return slowest;
}

/* nccl-tests leaves ten percent below the threshold; so do we. */
static double least_of(const struct cm_report *rep)
{
    return 0.9 * rep->opts->report.min_bw_gbs;
}

/* The group that misses --min-bw most, one without an average first; -1 if none does. */
static int below(const struct cm_report *rep)
{
    int slowest = cm_report_slowest(rep);

    if (!(least_of(rep) > 0))
        return -1;
    for (int g = 0; g < rep->rank->ngroups; g++) {
        if (!isfinite(cm_report_average(rep, g)))
            return g;
    }
    return cm_report_average(rep, slowest) < least_of(rep) ? slowest : -1;
}

bool cm_report_average_is_below(const struct cm_report *rep)
{
    return below(rep) >= 0;
}

void cm_report_tell_average(const struct cm_report *rep)
{
    int group = below(rep);
    double average = group >= 0 ? cm_report_average(rep, group) : 0;

    if (group >= 0 && isfinite(average))
        cm_log("--min-bw %g: group %d has an average bus bandwidth of %g GB/s, below %g",
               rep->opts->report.min_bw_gbs, group, average, least_of(rep));
    else if (group >= 0)
        cm_log("--min-bw %g: group %d has no average bus bandwidth", rep->opts->report.min_bw_gbs,
               group);
}

char *cm_report_row_name(const struct cm_report *rep, const struct cm_row *row,
                         char buf[CM_ROW_NAME_BYTES])
{
    char size[32];
    int n = snprintf(buf, CM_ROW_NAME_BYTES, "%s %s %s %s", cm_colls[rep->bench->coll].name,
                     cm_report_type(row), row->redop, cm_format_size(row->bytes, size));

    if (cm_report_names_engine(row))
        n += snprintf(buf + n, CM_ROW_NAME_BYTES - (size_t)n, " engine %s", cm_report_engine(row));
    if (row->root >= 0)
        n += snprintf(buf + n, CM_ROW_NAME_BYTES - (size_t)n, " root %d", row->root);
    if (rep->opts->sweep.cycles != 1)
        n += snprintf(buf + n, CM_ROW_NAME_BYTES - (size_t)n, " cycle %d", row->cycle);
    if (rep->rank->ngroups > 1)
        snprintf(buf + n, CM_ROW_NAME_BYTES - (size_t)n, " group %d", row->group);
    return buf;
}

const char *cm_report_placement(int half)
{
    return half == 0 ? "out of place" : "in place";
}

const char *cm_report_type(const struct cm_row *row)
{
    return cm_dtypes[row->dtype].name;
}

const char *cm_report_engine(const struct cm_row *row)
{
    return row->engine != NULL ? row->engine : cm_engine_names[CM_ENGINE_BUILTIN];
}

bool cm_report_names_engine(const struct cm_row *row)
{
    return row->sides > 1 || strcmp(cm_report_engine(row), cm_engine_names[CM_ENGINE_BUILTIN]) != 0;
}

const char *cm_report_time_over(const struct cm_opts *o)
{
    static const char *const over[] = {
        [CM_AVG_RANK0] = "rank 0",
        [CM_AVG_MEAN] = "mean over ranks",
        [CM_AVG_MIN] = "minimum over ranks",
        [CM_AVG_MAX] = "maximum over ranks",
    };

    return over[o->run.average];
}

static void remark(struct cm_report *rep, const char *text)
{
    int i = 0;

    while (i < rep->nnotes && strcmp(rep->notes[i].text, text) != 0)
        i++;
    if (i == CM_MAX_NOTES)
        return;
    if (i == rep->nnotes)
        rep->notes[rep->nnotes++] = (struct cm_note){text, 0};
    rep->notes[i].count++;
}

static bool same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* The different ones among the texts of a row. */
static void remark_row(struct cm_report *rep, const struct cm_row *row)
{
    const char *texts[] = {row->note, row->half[0].measured ? NULL : row->half[0].why,
                           row->half[1].measured ? NULL : row->half[1].why};

    for (size_t i = 0; i < CM_LEN(texts); i++) {
        bool said = texts[i] == NULL;

        for (size_t k = 0; k < i; k++)
            said = said || same(texts[k], texts[i]);
        if (!said)
            remark(rep, texts[i]);
    }
}

void cm_report_tally(struct cm_report *rep, const struct cm_row *row)
{
    struct cm_tally *t = &rep->groups[row->group];
    int64_t wrong = 0;

    remark_row(rep, row);
    for (int h = 0; h < 2; h++) {
        const struct cm_result *half = &row->half[h];

        if (rep->first_us == 0 && half->measured)
            rep->first_us = half->first_us;
        rep->checked += half->measured && half->checked;
        wrong += half->measured && half->checked ? half->wrong : 0;
        if (!row->counted || !half->measured || row->side > 0)
            continue; /* of several engines the first is averaged */
        t->n++;
        t->sum += half->bus_gbs; /* a NaN stays: then there is no average */
    }
    rep->wrong += wrong;
    rep->bad_rows += wrong > 0;
    cm_sides_tally(rep, row);
    cm_memory_most(&rep->memory, &row->memory);
}
