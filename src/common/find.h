/*
 * --find-bad: which node, link or rank is bad? Each unit by itself, then rounds of
 * disjoint pairs that run at the same time, then suspects again, one pair at a time,
 * with good partners; all in one launch.
 */
#ifndef CM_COMMON_FIND_H
#define CM_COMMON_FIND_H

#include "common/coll.h"
#include "common/find_judge.h"
#include "common/find_plan.h"
#include "common/find_units.h"
#include "common/launch.h"

struct cm_report;

/* Everything there is to tell, so far. The report of world rank 0 looks at it: cm_report_find(). */
enum { CM_FIND_CROWDED_PCT = 90 }; /* least limit where ranks share CPUs */

struct cm_find {
    const struct cm_bench *bench;
    struct cm_rank *rank;
    struct cm_find_units units;
    struct cm_find_plan plan;
    struct cm_find_limits limits;
    struct cm_find_run *runs;
    size_t nruns, cap_runs;
    int rounds;      /* that have been run */
    bool done;       /* retests too: nothing is left to be run */
    int64_t wrong;   /* elements, over all runs */
    const char *why; /* it stopped early: why; NULL */
};

/* Local. CM_EINVAL (logged), CM_ENOMEM. The caller's: cm_find_close(). */
CM_MUST_CHECK enum cm_status cm_find_open(const struct cm_bench *b, struct cm_rank *r,
                                          struct cm_find **out);
void cm_find_close(struct cm_find *f); /* NULL is fine */

/*
 * All of it. Collective over all ranks of the job; `report` is that of world rank 0, NULL
 * elsewhere. *worst is the same everywhere, valid if CM_OK. CM_OK also if something is bad.
 */
CM_MUST_CHECK enum cm_status cm_find_run(struct cm_find *f, struct cm_report *report,
                                         enum cm_find_class *worst);

/* The exit code that says how bad it is. */
enum cm_exit cm_find_exit(const struct cm_find *f);

/* ---- texts (find_text.c) ---- */

enum { CM_FIND_TEXT = 256 };

/* Is it an end of a bad link, or not known to be good? Then it is neither passed nor failed. */
bool cm_find_doubtful(const struct cm_find_verdict *v, int unit);

/*
 * Why a unit is bad: "slow: 8.1 GB/s of 11.9 expected with 7 partners". In buf of CM_FIND_TEXT
 * bytes; returns buf. The like of a link: "slow: 3.1 GB/s of 11.9 expected".
 */
const char *cm_find_why(const struct cm_find_unit *u, char *buf);
const char *cm_find_why_link(const struct cm_find_link *l, char *buf);

/* "1 of 8 nodes is bad: node5 (slow); ...", "nothing stands out among 8 nodes". Returns buf. */
const char *cm_find_summary(const struct cm_find *f, const struct cm_find_verdict *v, char *buf);

/* What the verdict is about. */
struct cm_find_data cm_find_data(const struct cm_find *f);

#endif
