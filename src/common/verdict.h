/*
 * The verdict on one placement of one row: does it meet what was asked of it?
 * What was not measured although it could have been, has no finite figure or
 * is wrong never passes.
 */
#ifndef CM_COMMON_VERDICT_H
#define CM_COMMON_VERDICT_H

#include "common/opts.h"
#include "common/report.h"
#include "common/thresholds.h"

struct cm_judge;
struct cm_machine;

/* Ordered: what is from CM_JUDGED_BELOW on has failed. */
enum cm_judgement {
    CM_JUDGED_NOT, /* nothing was asked, or the placement is absent or ignored */
    CM_JUDGED_OK,
    CM_JUDGED_BELOW,     /* slower than a threshold allows */
    CM_JUDGED_NO_FIGURE, /* there is nothing to compare: not measured, NaN, no peak is known */
    CM_JUDGED_NO_RULE,   /* --thresholds: no rule fits */
    CM_JUDGED_WRONG      /* wrong data, whatever was asked */
};

enum { CM_WHY_BYTES = 200 };

struct cm_judged {
    enum cm_judgement verdict;
    double min_busbw_gbs, max_time_us; /* the strictest that was asked; 0: none */
    double peak_gbs, peak_pct;         /* NaN: none is known, or it was not measured */
    char why[CM_WHY_BYTES];            /* in words, "" unless it failed */
};

/*
 * Read the rules and find the machine. `r` must outlive the judge. CM_EINVAL: the
 * file of thresholds. CM_EUNSUP: no peak is known for this machine. CM_ENOMEM.
 * All logged. The result is the caller's: cm_judge_close().
 */
CM_MUST_CHECK enum cm_status cm_judge_open(const struct cm_rank *r, struct cm_judge **out);
void cm_judge_close(struct cm_judge *j); /* NULL is fine */

/* Is there any threshold of rows? (--min-bw is one of averages.) */
bool cm_judge_asks(const struct cm_judge *j);

/* The machine of --peak; NULL: a number was given, or nothing. */
const struct cm_machine *cm_judge_machine(const struct cm_judge *j);

/* Judge `half` of a row that is about `s`. */
void cm_judge_half(const struct cm_judge *j, enum cm_coll coll, const struct cm_subject *s,
                   const struct cm_result *half, struct cm_judged *out);

/* "ok", "below", "no_figure", "no_rule", "wrong"; NULL for CM_JUDGED_NOT. */
const char *cm_judgement_name(enum cm_judgement v);

static inline bool cm_judged_failed(const struct cm_judged *d)
{
    return d->verdict >= CM_JUDGED_BELOW;
}

#endif
