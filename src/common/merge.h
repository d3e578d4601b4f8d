/*
 * What each rank tells about a row, and how the ranks of a group become one
 * row of the report.
 */
#ifndef CM_COMMON_MERGE_H
#define CM_COMMON_MERGE_H

#include "common/measure.h"
#include "common/report.h"
#include "common/sweep.h"

/* Why a placement was not run. */
enum cm_why { CM_RUNS, CM_NOT_ASKED, CM_NO_IN_PLACE, CM_NO_BYTES, CM_NO_ROOT, CM_REFUSED };

/* Exchanged as bytes between processes: no pointers. */
struct cm_record {
    uint64_t bytes, count, alg_bytes; /* of the row, in this rank's group */
    uint64_t send_bytes, recv_bytes;  /* of this rank */
    int32_t channels, mode, proto;    /* what the engine chose; mode -1: nothing ran */
    char algo[16];
    int32_t why[2]; /* enum cm_why, per placement */
    struct cm_reading half[2];
    struct cm_memory memory; /* so far, of the rank's GPU; another rank of it may tell */
};

/* The ranks' records and samples of one row. */
struct cm_merge {
    const struct cm_bench *bench;
    const struct cm_rank *rank; /* world rank 0: infos, options */
    const struct cm_point *point;
    const struct cm_record *records; /* of all world ranks */
    double *const *sample_us[2];     /* [placement][group][step], or NULL */
    double *scratch;                 /* room for the samples of one loop */
    int64_t start_unix_ms;
    int side;               /* whose records these are, of the options' sides */
    const char *refused[2]; /* CM_REFUSED: why the side's engine has no such operation */
    /* --compare: times of the side's rounds, [world rank][round], each of `steps` steps */
    const int64_t *round_ns[2];
    int rounds, steps; /* rounds 0: a plain loop */
};

/*
 * --compare: what the rounds of other sides' rows took, relative to those of rows[0]: set
 * their ratios. Rows of one group, in the order of sides.
 */
void cm_merge_ratios(struct cm_row *rows, int n);

/* The row of one group. */
void cm_merge_row(const struct cm_merge *m, int group, struct cm_row *out);

/* alltoallv: what each rank of the group sent and received, one line each on stderr. */
void cm_merge_print_traffic(const struct cm_merge *m, int group, const struct cm_row *row);

#endif
