/*
 * Thresholds come from options and from a file; all that were given must be
 * met. Comparisons are written so that a NaN fails them.
 */
#include "common/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/peaks.h"

struct cm_judge {
    const struct cm_opts_report *o;
    struct cm_thresholds *rules;      /* or NULL */
    const struct cm_machine *machine; /* of --peak, or NULL */
    double peak_gbs;                  /* --peak GB/s; 0: a machine, or none */
};

const char *cm_judgement_name(enum cm_judgement v)
{
    static const char *const names[] = {
        [CM_JUDGED_NOT] = NULL,          [CM_JUDGED_OK] = "ok",
        [CM_JUDGED_BELOW] = "below",     [CM_JUDGED_NO_FIGURE] = "no_figure",
        [CM_JUDGED_NO_RULE] = "no_rule", [CM_JUDGED_WRONG] = "wrong"};

    return names[v];
}

/* ---- the machine ---- */

/* All ranks must have the same kind of GPU. */
static enum cm_status find_machine(const struct cm_rank *r, const struct cm_machine **machine)
{
    const char *gpu = r->infos[0].gpu;

    if (gpu[0] == '\0')
        return CM_FAIL(CM_EUNSUP,
                       "--peak 'auto': the buffers are in host memory, of which no figures are "
                       "known; give GB/s");
    for (int i = 1; i < r->n; i++) {
        if (strcmp(r->infos[i].gpu, gpu) != 0)
            return CM_FAIL(CM_EUNSUP, "--peak 'auto': rank 0 has '%s', rank %d has '%s'", gpu, i,
                           r->infos[i].gpu);
    }
    *machine = cm_peak_machine_of_gpu(gpu);
    if (*machine == NULL)
        return CM_FAIL(CM_EUNSUP, "--peak 'auto': no figures are known for '%s'; give GB/s", gpu);
    return CM_OK;
}

static enum cm_status find_peak(struct cm_judge *j, const struct cm_rank *r)
{
    const char *peak = j->o->peak;

    if (peak == NULL)
        return CM_OK;
    j->peak_gbs = cm_peak_number(peak);
    if (j->peak_gbs > 0)
        return CM_OK;
    if (r->shared_gpus)
        return CM_FAIL(CM_EUNSUP, "--peak '%s': ranks share a GPU, so no link is measured", peak);
    if (strcasecmp(peak, "auto") == 0)
        return find_machine(r, &j->machine);
    j->machine = cm_peak_machine(peak);
    return CM_OK;
}

enum cm_status cm_judge_open(const struct cm_rank *r, struct cm_judge **out)
{
    struct cm_judge *j = calloc(1, sizeof(*j));
    enum cm_status st;

    if (j == NULL)
        return CM_FAIL(CM_ENOMEM, "thresholds");
    j->o = &r->opts->report;
    st = find_peak(j, r);
    if (st == CM_OK && j->o->thresholds != NULL)
        st = cm_thresholds_read(j->o->thresholds, &j->rules);
    if (st != CM_OK) {
        cm_judge_close(j);
        return st;
    }
    *out = j;
    return CM_OK;
}

void cm_judge_close(struct cm_judge *j)
{
    if (j != NULL)
        cm_thresholds_free(j->rules);
    free(j);
}

bool cm_judge_asks(const struct cm_judge *j)
{
    return j->o->min_busbw_gbs > 0 || j->o->max_time_us > 0 || j->o->min_peak_pct > 0 ||
           j->rules != NULL;
}

const struct cm_machine *cm_judge_machine(const struct cm_judge *j)
{
    return j->machine;
}

/* ---- one placement ---- */

static void set_peak(const struct cm_judge *j, enum cm_coll coll, const struct cm_subject *s,
                     const struct cm_result *half, struct cm_judged *out)
{
    const struct cm_peak *known = NULL;

    if (j->machine != NULL)
        known = cm_peak_find(j->machine, cm_peak_class_of(coll, s->algo), s->ranks, s->nodes);
    out->peak_gbs = known != NULL ? known->gbs : j->peak_gbs > 0 ? j->peak_gbs : NAN;
    out->peak_pct = half->measured ? 100 * half->bus_gbs / out->peak_gbs : NAN;
}

/* The stricter of two limits, and who set it. */
static void set_limit(double *limit, const char **from, double value, const char *who, bool at_most)
{
    bool stricter = *limit == 0 || (at_most ? value < *limit : value > *limit);

    if (value <= 0 || !stricter)
        return;
    *limit = value;
    *from = who;
}

/* Limits that apply, and who set them. */
struct asked {
    const char *busbw, *time;
    char file[CM_WHY_BYTES / 2];
    bool no_rule, ignored;
};

static void set_limits(const struct cm_judge *j, const struct cm_subject *s, struct asked *a,
                       struct cm_judged *out)
{
    const struct cm_limits *rule = j->rules != NULL ? cm_thresholds_find(j->rules, s) : NULL;

    set_limit(&out->min_busbw_gbs, &a->busbw, j->o->min_busbw_gbs, "--min-busbw", false);
    set_limit(&out->max_time_us, &a->time, j->o->max_time_us, "--max-time-us", true);
    a->no_rule = j->rules != NULL && rule == NULL;
    if (rule == NULL)
        return;
    a->ignored = rule->ignored;
    snprintf(a->file, sizeof(a->file), "%.80s:%d", j->o->thresholds, rule->line);
    set_limit(&out->min_busbw_gbs, &a->busbw, rule->min_busbw_gbs, a->file, false);
    set_limit(&out->max_time_us, &a->time, rule->max_time_us, a->file, true);
}

static void CM_PRINTF(3, 4) fail(struct cm_judged *out, enum cm_judgement v, const char *fmt, ...)
{
    va_list ap;

    out->verdict = v;
    va_start(ap, fmt);
    vsnprintf(out->why, sizeof(out->why), fmt, ap);
    va_end(ap);
}

static bool has_figures(const struct cm_result *half)
{
    return isfinite(half->time_us) && half->time_us > 0 && isfinite(half->bus_gbs);
}

/* The placement was measured, is right and has figures. */
static void compare(const struct cm_judge *j, const struct cm_result *half, const struct asked *a,
                    struct cm_judged *out)
{
    if (out->min_busbw_gbs > 0 && !(half->bus_gbs >= out->min_busbw_gbs))
        fail(out, CM_JUDGED_BELOW, "busbw %.4g GB/s, want at least %g (%s)", half->bus_gbs,
             out->min_busbw_gbs, a->busbw);
    else if (out->max_time_us > 0 && !(half->time_us <= out->max_time_us))
        fail(out, CM_JUDGED_BELOW, "time %.4g us, want at most %g (%s)", half->time_us,
             out->max_time_us, a->time);
    else if (j->o->min_peak_pct > 0 && isnan(out->peak_pct))
        fail(out, CM_JUDGED_NO_FIGURE, "no peak is known for it (--min-peak)");
    else if (j->o->min_peak_pct > 0 && !(out->peak_pct >= j->o->min_peak_pct))
        fail(out, CM_JUDGED_BELOW, "%.4g %% of peak, want at least %g (--min-peak)", out->peak_pct,
             j->o->min_peak_pct);
    else
        out->verdict = CM_JUDGED_OK;
}

void cm_judge_half(const struct cm_judge *j, enum cm_coll coll, const struct cm_subject *s,
                   const struct cm_result *half, struct cm_judged *out)
{
    struct asked a = {.no_rule = false};

    *out = (struct cm_judged){.verdict = CM_JUDGED_NOT};
    set_peak(j, coll, s, half, out);
    if (half->measured && half->checked && half->wrong != 0) {
        fail(out, CM_JUDGED_WRONG, "%lld wrong element%s", (long long)half->wrong,
             half->wrong == 1 ? "" : "s");
        return;
    }
    if (half->absent || !cm_judge_asks(j))
        return;
    set_limits(j, s, &a, out);
    if (a.ignored)
        return;
    if (a.no_rule)
        fail(out, CM_JUDGED_NO_RULE, "no rule of %.80s fits", j->o->thresholds);
    else if (!half->measured)
        fail(out, CM_JUDGED_NO_FIGURE, "not measured: %s",
             half->why != NULL ? half->why : "not known why");
    else if (!has_figures(half))
        fail(out, CM_JUDGED_NO_FIGURE, "it has no time or bandwidth");
    else
        compare(j, half, &a, out);
}
