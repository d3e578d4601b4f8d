/*
 * One row of the run: both placements measured by all ranks, brought together,
 * and handed to the report by world rank 0.
 */
#ifndef CM_COMMON_ROWS_H
#define CM_COMMON_ROWS_H

#include "common/matrix.h"
#include "common/measure.h"
#include "common/report.h"
#include "common/sweep.h"

struct cm_rows; /* belongs to the rank's thread */

/*
 * The rows of a rank. Opens its memory and its communicator, together with the
 * other ranks. `traffic`: alltoallv's file, or NULL. *out is untouched unless
 * CM_OK. CM_ENOMEM, CM_EINVAL, CM_EUNSUP; CM_ESYS, CM_ETIMEOUT and CM_EABORT on GPUs.
 */
CM_MUST_CHECK enum cm_status cm_rows_open(const struct cm_bench *b, struct cm_rank *r,
                                          const struct cm_traffic *traffic, struct cm_rows **out);

/* World rank 0: where the rows go from now on. */
void cm_rows_report(struct cm_rows *rows, struct cm_report *report);

/* NULL is fine. `orderly`: all ranks of the job close, and on GPUs may wait for each other. */
void cm_rows_close(struct cm_rows *rows, bool orderly);

/* Measure, check and report one row. Collective over all ranks of the job. */
CM_MUST_CHECK enum cm_status cm_rows_run(struct cm_rows *rows, const struct cm_point *p);

/* So far, over all ranks and rows: wrong elements, and rows that have some. Same on all ranks. */
int64_t cm_rows_wrong(const struct cm_rows *rows);
int64_t cm_rows_bad(const struct cm_rows *rows);

#endif
