/* The rows of a rank, shared by rows.c and rows_sides.c. */
#ifndef CM_COMMON_ROWS_INT_H
#define CM_COMMON_ROWS_INT_H

#include "common/merge.h"
#include "common/rows.h"

struct cm_rows_contest;

struct cm_rows {
    const struct cm_bench *bench;
    struct cm_rank *rank;
    struct cm_report *report;
    struct cm_meter meter;
    struct cm_matrix_set matrices;
    struct cm_record *records; /* of all world ranks */
    int64_t *gathered;         /* samples: one chunk of all world ranks */
    double **sample_us[2];     /* rank 0: [placement][group][step] */
    double *scratch;
    struct cm_side sides[CM_MAX_SIDES];
    struct cm_rows_contest *contest; /* --compare; else NULL, and the meter has sides[0] */
    int64_t wrong, bad;
};

/* A row as this rank sees it. */
struct cm_rows_row {
    struct cm_op_args op;
    struct cm_counts counts;
    size_t send, recv; /* this rank's own */
    struct cm_record record;
};

/* Sizes and operation of the row; alltoallv: from the matrix. CM_ENOMEM. */
CM_MUST_CHECK enum cm_status cm_rows_plan(struct cm_rows *rows, const struct cm_point *p,
                                          struct cm_rows_row *row);

/* Why a placement is not run, whoever runs it. */
enum cm_why cm_rows_why_not(const struct cm_rows *rows, const struct cm_rows_row *row,
                            const struct cm_point *p, bool in_place);

/* Why the side's engine does not run it, in a static text; NULL: it does. */
const char *cm_rows_refusal(const struct cm_rows *rows, const struct cm_rows_row *row, int side,
                            bool in_place);

/* What the built-in engine chose for row->op, into the record. */
void cm_rows_note_choice(struct cm_rows *rows, struct cm_rows_row *row);

/* Take the wrong elements of rows->records into account. */
void cm_rows_sum_up(struct cm_rows *rows);

int64_t cm_rows_unix_ms(void);

/* --compare (rows_sides.c). Open and run: collective; CM_ENOMEM. Close: NULL contest is fine. */
CM_MUST_CHECK enum cm_status cm_rows_open_contest(struct cm_rows *rows);
CM_MUST_CHECK enum cm_status cm_rows_run_contest(struct cm_rows *rows, const struct cm_point *p);
void cm_rows_close_contest(struct cm_rows *rows);

#endif
