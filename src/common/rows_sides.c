/*
 * A row of several engines (--compare): measured in turns, then brought together
 * engine by engine, so that the report gets a row of each, one after the other.
 */
#include <stdlib.h>

#include "common/rows_int.h"

/* Of one engine, over all world ranks. */
struct side_records {
    struct cm_record *records;
    int64_t *round_ns[2]; /* [world rank][round] */
};

struct cm_rows_contest {
    struct cm_contest of[2]; /* by placement */
    int n, rounds, steps;    /* steps of a round */
    struct side_records side[CM_MAX_SIDES];
    struct cm_row row[CM_MAX_SIDES];
};

enum cm_status cm_rows_open_contest(struct cm_rows *rows)
{
    const struct cm_opts *o = rows->rank->opts;
    struct cm_rows_contest *c = calloc(1, sizeof(*c));
    size_t n = (size_t)rows->rank->n, times = n * (size_t)o->sides.rounds;
    bool ok = c != NULL;

    rows->contest = c;
    for (int i = 0; ok && i < o->sides.list.n; i++) {
        struct side_records *s = &c->side[i];

        s->records = calloc(n, sizeof(*s->records));
        s->round_ns[0] = calloc(2 * times, sizeof(**s->round_ns));
        ok = s->records != NULL && s->round_ns[0] != NULL;
        if (ok)
            s->round_ns[1] = s->round_ns[0] + times;
    }
    if (!ok)
        return CM_FAIL(CM_ENOMEM, "rounds of %d engines and %zu ranks", o->sides.list.n, n);
    c->n = o->sides.list.n;
    c->rounds = o->sides.rounds;
    c->steps = (o->run.iters + c->rounds - 1) / c->rounds;
    rows->meter.steps = c->steps;
    return CM_OK;
}

void cm_rows_close_contest(struct cm_rows *rows)
{
    for (int i = 0; rows->contest != NULL && i < CM_MAX_SIDES; i++) {
        free(rows->contest->side[i].records);
        free(rows->contest->side[i].round_ns[0]);
    }
    free(rows->contest);
    rows->contest = NULL;
}

/* One placement by all engines; the record of each says why if it did not run. */
static enum cm_status run_half(struct cm_rows *rows, const struct cm_point *p,
                               struct cm_rows_row *row, int half)
{
    struct cm_rows_contest *all = rows->contest;
    struct cm_contest *c = &all->of[half];
    enum cm_why why = cm_rows_why_not(rows, row, p, half == 1);
    struct cm_trial trial;

    row->record.why[half] = (int32_t)why;
    if (why == CM_NOT_ASKED || why == CM_NO_IN_PLACE)
        return CM_OK; /* so say all ranks */
    row->op.in_place = half == 1;
    trial = cm_trial_of(&rows->meter, &row->op, &row->counts, row->send, row->recv);
    *c = (struct cm_contest){.sides = rows->sides, .n = all->n, .rounds = all->rounds};
    for (int i = 0; i < c->n; i++)
        c->idle[i] = why != CM_RUNS || cm_rows_refusal(rows, row, i, half == 1) != NULL;
    return cm_measure_contest(&rows->meter, &trial, c);
}

/* What this rank tells of one engine. */
static struct cm_record record_of(struct cm_rows *rows, const struct cm_rows_row *row, int side)
{
    const struct cm_rows_contest *all = rows->contest;
    struct cm_rows_row mine = *row;
    bool ran = false;

    for (int half = 0; half < 2; half++) {
        bool refused = cm_rows_refusal(rows, row, side, half == 1) != NULL;

        if (mine.record.why[half] == CM_RUNS && refused)
            mine.record.why[half] = CM_REFUSED;
        if (mine.record.why[half] != CM_RUNS)
            continue;
        if (!ran)
            mine.op.in_place = half == 1;
        mine.record.half[half] = all->of[half].out[side];
        ran = true;
    }
    if (ran && rows->sides[side].engine == NULL)
        cm_rows_note_choice(rows, &mine);
    return mine.record;
}

static enum cm_status gather_side(struct cm_rows *rows, const struct cm_rows_row *row, int side)
{
    struct cm_rows_contest *all = rows->contest;
    struct cm_record mine = record_of(rows, row, side);
    struct side_records *s = &all->side[side];
    struct cm_team *team = &rows->rank->team;
    enum cm_status st = cm_team_gather(team, &mine, sizeof(mine), s->records);

    for (int half = 0; st == CM_OK && half < 2; half++)
        st = cm_team_gather(team, all->of[half].round_ns[side],
                            (size_t)all->rounds * sizeof(int64_t), s->round_ns[half]);
    return st;
}

/* Wrong elements of all engines count; the records of each are looked at in turn. */
static void sum_up(struct cm_rows *rows)
{
    struct cm_record *records = rows->records;

    for (int i = 0; i < rows->contest->n; i++) {
        rows->records = rows->contest->side[i].records;
        cm_rows_sum_up(rows);
    }
    rows->records = records;
}

static void report(struct cm_rows *rows, const struct cm_point *p, const struct cm_rows_row *row,
                   int64_t start)
{
    struct cm_rows_contest *all = rows->contest;

    for (int g = 0; g < rows->rank->ngroups; g++) {
        for (int i = 0; i < all->n; i++) {
            const struct cm_merge m = {
                .bench = rows->bench,
                .rank = rows->rank,
                .point = p,
                .records = all->side[i].records,
                .start_unix_ms = start,
                .side = i,
                .refused = {cm_rows_refusal(rows, row, i, false),
                            cm_rows_refusal(rows, row, i, true)},
                .round_ns = {all->side[i].round_ns[0], all->side[i].round_ns[1]},
                .rounds = all->rounds,
                .steps = all->steps};

            cm_merge_row(&m, g, &all->row[i]);
        }
        cm_merge_ratios(all->row, all->n);
        for (int i = 0; i < all->n; i++)
            cm_report_row(rows->report, &all->row[i]);
    }
}

enum cm_status cm_rows_run_contest(struct cm_rows *rows, const struct cm_point *p)
{
    int64_t start = cm_rows_unix_ms();
    struct cm_meter *m = &rows->meter;
    struct cm_rows_row row = {0};
    enum cm_status st = cm_rows_plan(rows, p, &row);

    for (int half = 0; st == CM_OK && half < 2; half++)
        st = run_half(rows, p, &row, half);
    if (st == CM_OK && rows->rank->opts->report.memory && m->ops->memory != NULL)
        st = m->ops->memory(m, &row.record.memory);
    for (int i = 0; st == CM_OK && i < rows->contest->n; i++)
        st = gather_side(rows, &row, i);
    if (st != CM_OK)
        return st;
    sum_up(rows);
    if (rows->report != NULL)
        report(rows, p, &row, start);
    return CM_OK;
}
