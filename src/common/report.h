/*
 * Reports: the rows of a run go to every open sink (table on stdout, JSON, CSV,
 * JUnit, Prometheus, GitHub). Only world rank 0 holds a report. One row is one write, flushed.
 * All functions may be called from any thread.
 */
#ifndef CM_COMMON_REPORT_H
#define CM_COMMON_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/coll.h"
#include "common/launch.h"
#include "common/opts.h"
#include "common/stats.h"

/*
 * --compare: time of an engine as a multiple of the first one's, in the same rounds: the median,
 * and the interval in which it lies with a certainty of 15/16 or more.
 */
struct cm_ratio {
    bool known;
    double mid, low, high;
};

/* One placement of one row. */
struct cm_result {
    bool measured;   /* false: not run; `why` says why */
    bool absent;     /* not measured, as nobody asked or the collective has no such form */
    const char *why; /* static text, NULL if measured */
    double time_us;  /* per operation, combined over ranks by -a */
    double cpu_us;   /* CPU time of the first rank's thread, -1: not known */
    double alg_gbs, bus_gbs;
    bool checked;
    int64_t wrong;   /* wrong elements over all ranks; valid if checked */
    double first_us; /* first call of this row, warm-up included in nothing else */
    double rank_min_us, rank_avg_us, rank_max_us; /* the same time over ranks */
    int slowest;                                  /* world rank of rank_max_us */
    bool has_samples;
    struct cm_stats samples; /* per-iteration, maximum over ranks */
    const double *sample_us; /* samples.n values in order, or NULL; copied by cm_report_row() */
    int rounds;              /* --compare: time_us is the median of round_us[rounds]; else 0 */
    double round_us[CM_MAX_ROUNDS]; /* in order; of all engines in the same rounds */
    double spread_pct;              /* (third - first quartile) of them / median */
    struct cm_ratio ratio;          /* not of the first engine */
};

/* Bytes of one GPU's memory that the job uses: the engine's, the buffers', most so far. */
struct cm_memory {
    uint64_t init, buffers, peak; /* 0: not known, or there is no GPU */
};

/* Each figure of *most becomes the larger of both. */
void cm_memory_most(struct cm_memory *most, const struct cm_memory *m);

/* Texts are not copied: they must outlive the report. */
struct cm_row {
    int cycle, group;
    size_t bytes, count;
    int dtype, op, root; /* root -1: not rooted */
    const char *redop;   /* column text */
    bool counted;        /* goes into the average (false: rounded to 0 bytes, one rank) */
    const char *note;    /* why not, or NULL */
    const char *algo, *mode, *proto; /* what ran */
    int channels;
    int64_t start_unix_ms;
    /*
     * --compare: side k of n; the rows of the n engines are handed over one after the other,
     * and follow each other in memory. Else 0 of 1; n 0 is as good as 1.
     */
    int side, sides;
    const char *engine;       /* NULL: builtin */
    struct cm_result half[2]; /* 0: out of place, 1: in place */
    struct cm_memory memory;  /* -M, on GPUs */
};

struct cm_report;

/*
 * Open the sinks and write the header: version, parameters, devices, notes.
 * `r`, its tables and argv must outlive the report. CM_ESYS: a path cannot be
 * written (checked before anything is printed). CM_EINVAL, CM_EUNSUP: thresholds
 * or peak, see cm_judge_open(). CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_report_open(const struct cm_bench *b, const struct cm_rank *r,
                                            int argc, char **argv, struct cm_report **out);

/* One row of the first group is printed at once; rows of other groups are kept for the end. */
void cm_report_row(struct cm_report *rep, const struct cm_row *row);

struct cm_eta;
struct cm_sweep;

/*
 * Show `text` on stderr as --eta wants it, unless that was done a moment ago; what
 * is expected to be `slow` (a quarter of a second) is worth it in any case.
 */
void cm_report_progress(struct cm_report *rep, const char *text, bool slow);

/*
 * The row s->now is about to be measured, `elapsed_s` seconds after the first:
 * show that, and what `eta` makes of it; not at the start of a run that will be short.
 */
void cm_report_row_begins(struct cm_report *rep, const struct cm_sweep *s, const struct cm_eta *eta,
                          double elapsed_s);

struct cm_summary {
    enum cm_status status; /* of the whole job */
    int64_t wrong;         /* wrong elements in all */
    int64_t bad_rows;
    bool truncated;
    const char *why_truncated;
};

/*
 * The run looks for bad nodes: sinks tell what `find` knows when they are closed, with
 * whatever end. It must outlive the report.
 */
struct cm_find;
void cm_report_find(struct cm_report *rep, const struct cm_find *find);

/* Call change(arg), which changes it, while no sink looks. Returns its status. */
enum cm_status cm_report_change(struct cm_report *rep, enum cm_status (*change)(void *arg),
                                void *arg);

/*
 * Does a row fail a threshold, or is there none to judge; or is the average bus
 * bandwidth of a group below 0.9 x --min-bw, or is there none? Then the exit
 * code is CM_EXIT_BELOW, unless something worse happened. Lines are logged that
 * name the group and the first rows. Ask once, behind the last row and before
 * cm_report_close().
 */
bool cm_report_below(struct cm_report *rep);

/* Could something of the report not be written? It has been logged. */
bool cm_report_failed(struct cm_report *rep);

/*
 * Footer, other groups' tables; closes the sinks and frees the report, in any
 * case. CM_ESYS: something could not be written, now or before.
 */
CM_MUST_CHECK enum cm_status cm_report_close(struct cm_report *rep, const struct cm_summary *s);

/*
 * The job ends here and now with `st`: write what there is, marked truncated.
 * For watchdogs and signal paths (not for signal handlers); waits at most a
 * second for a row that is being written. Later rows are dropped; the report
 * stays allocated and cm_report_close() may still be called. NULL is fine.
 */
void cm_report_abandon(struct cm_report *rep, enum cm_status st);

#endif
