/*
 * From ranks to rows. Every rank measures, then all ranks exchange one fixed
 * record each, which rank 0 turns into a row per group (--split; usually one).
 * A group that has nothing to run keeps step with the others, so that all
 * ranks of the job meet in the same barriers.
 */
#include "common/rows.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "common/cache.h"
#include "common/rows_int.h"

enum { CHUNK = CM_TEAM_BYTES / (int)sizeof(int64_t), MAX_LINES = 20 };

static bool wants_samples(const struct cm_opts *o)
{
    return o->sides.compare == NULL &&
           (o->run.per_iter || o->report.json != NULL || o->report.csv != NULL);
}

static enum cm_status open_samples(struct cm_rows *rows)
{
    const struct cm_rank *r = rows->rank;
    size_t steps = (size_t)cm_steps_of(&r->opts->run), groups = (size_t)r->ngroups;
    bool ok;

    rows->gathered = malloc((size_t)r->n * CHUNK * sizeof(*rows->gathered));
    rows->meter.sample_ns = malloc(steps * sizeof(*rows->meter.sample_ns));
    ok = rows->gathered != NULL && rows->meter.sample_ns != NULL;
    if (ok && r->rank == 0) {
        rows->scratch = malloc(steps * sizeof(*rows->scratch));
        ok = rows->scratch != NULL;
    }
    for (int half = 0; ok && r->rank == 0 && half < 2; half++) {
        rows->sample_us[half] = calloc(groups, sizeof(*rows->sample_us[half]));
        ok = rows->sample_us[half] != NULL;
        for (size_t g = 0; ok && g < groups; g++) {
            rows->sample_us[half][g] = malloc(steps * sizeof(double));
            ok = rows->sample_us[half][g] != NULL;
        }
    }
    return ok ? CM_OK : CM_FAIL(CM_ENOMEM, "samples of %zu steps", steps);
}

static enum cm_status open_all(struct cm_rows *rows)
{
    struct cm_rank *r = rows->rank;
    struct cm_meter *m = &rows->meter;
    enum cm_status st;

    m->bench = rows->bench;
    m->rank = r;
    m->ops = r->backend != NULL ? r->backend->meter : &cm_meter_host;
    m->lines = MAX_LINES;
    m->diag = &cm_rank_shared(r->base, r->layout, r->rank)->diag;
    rows->records = calloc((size_t)r->n, sizeof(*rows->records));
    if (rows->records == NULL)
        return CM_FAIL(CM_ENOMEM, "records of %d ranks", r->n);
    st = wants_samples(r->opts) ? open_samples(rows) : CM_OK;
    if (st == CM_OK)
        st = cm_cache_open(m);
    if (st == CM_OK)
        st = m->ops->open(m);
    if (st == CM_OK)
        st = cm_engines_open(m, rows->sides);
    if (st != CM_OK || r->opts->sides.compare != NULL)
        return st == CM_OK ? cm_rows_open_contest(rows) : st;
    m->side = rows->sides[0];
    return CM_OK;
}

enum cm_status cm_rows_open(const struct cm_bench *b, struct cm_rank *r,
                            const struct cm_traffic *traffic, struct cm_rows **out)
{
    struct cm_rows *rows = calloc(1, sizeof(*rows));
    enum cm_status st;

    if (rows == NULL)
        return CM_FAIL(CM_ENOMEM, "rows: %zu bytes", sizeof(*rows));
    rows->bench = b;
    rows->rank = r;
    rows->matrices = (struct cm_matrix_set){.traffic = traffic,
                                            .scale = r->opts->alltoallv.matrix_scale,
                                            .spread = r->opts->alltoallv.spread,
                                            .n = r->group_n};
    st = open_all(rows);
    if (st != CM_OK) {
        cm_rows_close(rows, false);
        return st;
    }
    *out = rows;
    return CM_OK;
}

void cm_rows_report(struct cm_rows *rows, struct cm_report *report)
{
    rows->report = report;
}

void cm_rows_close(struct cm_rows *rows, bool orderly)
{
    if (rows == NULL)
        return;
    cm_engines_close(rows->sides, orderly);
    cm_rows_close_contest(rows);
    if (rows->meter.ops != NULL)
        rows->meter.ops->close(&rows->meter, orderly);
    cm_matrix_set_free(&rows->matrices); /* after the communicator that knows their addresses */
    for (int half = 0; half < 2; half++) {
        for (int g = 0; rows->sample_us[half] != NULL && g < rows->rank->ngroups; g++)
            free(rows->sample_us[half][g]);
        free(rows->sample_us[half]);
    }
    cm_cache_close(rows->meter.cache);
    free(rows->scratch);
    free(rows->meter.sample_ns);
    free(rows->gathered);
    free(rows->records);
    free(rows);
}

enum cm_status cm_rows_plan(struct cm_rows *rows, const struct cm_point *p, struct cm_rows_row *row)
{
    struct cm_rank *r = rows->rank;
    size_t width = cm_dtypes[p->dtype].bytes;
    struct cm_counts *c = &row->counts;

    cm_counts_of(rows->bench, p->bytes / width, width, r->group_n, c);
    row->op = (struct cm_op_args){.coll = rows->bench->coll,
                                  .dtype = (enum cm_dtype)p->dtype,
                                  .op = (enum cm_op)p->op,
                                  .root = p->root < 0 ? 0 : p->root,
                                  .count = c->param};
    if (row->op.coll == CM_ALLTOALLV) {
        const size_t *m = cm_matrix_get(&rows->matrices, c->param, width);

        if (m == NULL)
            return CM_ENOMEM;
        row->op.matrix = m;
        c->send = cm_matrix_max_sent(m, r->group_n);
        c->recv = cm_matrix_max_received(m, r->group_n);
        c->alg = c->send > c->recv ? c->send : c->recv;
        row->send = cm_matrix_sent(m, r->group_n, r->group_rank);
        row->recv = cm_matrix_received(m, r->group_n, r->group_rank);
    } else {
        row->send = c->send;
        row->recv = c->recv;
    }
    row->record.bytes = (c->send > c->recv ? c->send : c->recv) * width;
    row->record.count = rows->matrices.traffic != NULL ? 0 : c->param;
    row->record.alg_bytes = c->alg * width;
    row->record.send_bytes = row->send * width;
    row->record.recv_bytes = row->recv * width;
    row->record.mode = -1;
    return CM_OK;
}

enum cm_why cm_rows_why_not(const struct cm_rows *rows, const struct cm_rows_row *row,
                            const struct cm_point *p, bool in_place)
{
    enum cm_placement asked = rows->rank->opts->run.placement;

    if (in_place && !cm_colls[row->op.coll].in_place)
        return CM_NO_IN_PLACE;
    if (asked == (in_place ? CM_PLACE_OUT : CM_PLACE_IN))
        return CM_NOT_ASKED;
    if (row->record.bytes == 0)
        return CM_NO_BYTES;
    return p->root >= rows->rank->group_n ? CM_NO_ROOT : CM_RUNS;
}

/* Chunk by chunk: each step's time is that of the slowest rank of its group. */
static enum cm_status gather_samples(struct cm_rows *rows, int half)
{
    struct cm_rank *r = rows->rank;
    int steps = cm_steps_of(&r->opts->run);
    double ops = cm_step_ops(&r->opts->run);

    for (int at = 0; at < steps; at += CHUNK) {
        int n = steps - at < CHUNK ? steps - at : CHUNK;
        enum cm_status st = cm_team_gather(&r->team, rows->meter.sample_ns + at,
                                           (size_t)n * sizeof(int64_t), rows->gathered);

        if (st != CM_OK)
            return st;
        for (int g = 0; r->rank == 0 && g < r->ngroups; g++)
            memset(rows->sample_us[half][g] + at, 0, (size_t)n * sizeof(double));
        for (int rank = 0; r->rank == 0 && rank < r->n; rank++) {
            double *us = rows->sample_us[half][r->infos[rank].group] + at;

            for (int i = 0; i < n; i++) {
                double v = (double)rows->gathered[rank * n + i] / ops / CM_NS_PER_US;

                us[i] = v > us[i] ? v : us[i];
            }
        }
    }
    return CM_OK;
}

const char *cm_rows_refusal(const struct cm_rows *rows, const struct cm_rows_row *row, int side,
                            bool in_place)
{
    const struct cm_engine *e = rows->sides[side].engine;
    struct cm_op_args op = row->op;

    op.in_place = in_place;
    return e != NULL ? e->refuses(&op, rows->rank->group_n) : NULL;
}

void cm_rows_note_choice(struct cm_rows *rows, struct cm_rows_row *row)
{
    struct cm_choice choice;

    if (cm_comm_choice(rows->meter.comm, &row->op, &choice) != CM_OK)
        return;
    strncpy(row->record.algo, choice.algo, sizeof(row->record.algo) - 1);
    row->record.mode = (int32_t)choice.mode;
    row->record.proto = (int32_t)choice.proto;
    row->record.channels = choice.channels;
}

static enum cm_status run_half(struct cm_rows *rows, const struct cm_point *p,
                               struct cm_rows_row *row, int half)
{
    enum cm_why why = cm_rows_why_not(rows, row, p, half == 1);
    struct cm_trial trial;
    enum cm_status st;

    if (why == CM_RUNS && cm_rows_refusal(rows, row, 0, half == 1) != NULL)
        why = CM_REFUSED;
    row->record.why[half] = (int32_t)why;
    if (why == CM_NOT_ASKED || why == CM_NO_IN_PLACE)
        return CM_OK; /* so say all ranks */
    row->op.in_place = half == 1;
    trial = cm_trial_of(&rows->meter, &row->op, &row->counts, row->send, row->recv);
    trial.idle = why != CM_RUNS;
    st = cm_measure(&rows->meter, &trial, &row->record.half[half]);
    if (st == CM_OK && rows->meter.sample_ns != NULL)
        st = gather_samples(rows, half);
    if (st == CM_OK && row->record.mode < 0 && why == CM_RUNS && rows->sides[0].engine == NULL)
        cm_rows_note_choice(rows, row);
    return st;
}

void cm_rows_sum_up(struct cm_rows *rows)
{
    int64_t wrong = 0;

    for (int r = 0; r < rows->rank->n; r++)
        wrong += rows->records[r].half[0].wrong + rows->records[r].half[1].wrong;
    rows->wrong += wrong;
    rows->bad += wrong > 0;
}

int64_t cm_rows_unix_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / CM_NS_PER_MS;
}

static void report(struct cm_rows *rows, const struct cm_point *p, const struct cm_rows_row *mine,
                   int64_t start)
{
    bool samples = rows->scratch != NULL;
    struct cm_merge m = {
        .bench = rows->bench,
        .rank = rows->rank,
        .point = p,
        .records = rows->records,
        .sample_us = {samples ? rows->sample_us[0] : NULL, samples ? rows->sample_us[1] : NULL},
        .scratch = rows->scratch,
        .start_unix_ms = start,
        .refused = {cm_rows_refusal(rows, mine, 0, false), cm_rows_refusal(rows, mine, 0, true)}};
    struct cm_row row;

    for (int g = 0; g < rows->rank->ngroups; g++) {
        cm_merge_row(&m, g, &row);
        cm_report_row(rows->report, &row);
        if (rows->bench->coll == CM_ALLTOALLV && rows->rank->opts->alltoallv.print_summary)
            cm_merge_print_traffic(&m, g, &row);
    }
}

static enum cm_status measure_row(struct cm_rows *rows, const struct cm_point *p,
                                  struct cm_rows_row *row)
{
    struct cm_meter *m = &rows->meter;
    enum cm_status st = cm_rows_plan(rows, p, row);

    for (int half = 0; st == CM_OK && half < 2; half++)
        st = run_half(rows, p, row, half);
    if (st == CM_OK && rows->rank->opts->report.memory && m->ops->memory != NULL)
        st = m->ops->memory(m, &row->record.memory);
    if (st == CM_OK)
        st = cm_team_gather(&rows->rank->team, &row->record, sizeof(row->record), rows->records);
    return st;
}

enum cm_status cm_rows_run(struct cm_rows *rows, const struct cm_point *p)
{
    int64_t start = cm_rows_unix_ms();
    struct cm_rows_row row = {0};
    enum cm_status st;

    if (rows->contest != NULL)
        return cm_rows_run_contest(rows, p);
    st = measure_row(rows, p, &row);
    if (st != CM_OK)
        return st;
    cm_rows_sum_up(rows);
    if (rows->report != NULL)
        report(rows, p, &row, start);
    return CM_OK;
}

int64_t cm_rows_wrong(const struct cm_rows *rows)
{
    return rows->wrong;
}

int64_t cm_rows_bad(const struct cm_rows *rows)
{
    return rows->bad;
}
