/* From what ranks tell to runs of units; and what the silence of others tells. */
#include <math.h>
#include <stdlib.h>

#include "common/find_int.h"

/* Over ranks as -a has it. */
static double combine(const struct cm_find_search *s, const int64_t *ns, int n)
{
    int64_t least = ns[0], most = ns[0], sum = 0;

    for (int i = 0; i < n; i++) {
        least = ns[i] < least ? ns[i] : least;
        most = ns[i] > most ? ns[i] : most;
        sum += ns[i];
    }
    switch (s->r->opts->run.average) {
    case CM_AVG_RANK0:
        return (double)ns[0];
    case CM_AVG_MEAN:
        return (double)sum / n;
    case CM_AVG_MIN:
        return (double)least;
    default:
        return (double)most;
    }
}

/* What the ranks of two units, or of one, have told. */
static struct cm_find_run run_of(const struct cm_find_search *s, int a, int b, int64_t *ns)
{
    const struct cm_find_units *u = &s->f->units;
    struct cm_find_run run = {.a = a, .b = b, .again = s->again, .wrong_rank = -1};
    int n = 0;

    for (int i = 0; i < u->ranks[a] + (a == b ? 0 : u->ranks[b]); i++) {
        int rank = i < u->ranks[a] ? u->members[u->first[a] + i]
                                   : u->members[u->first[b] + i - u->ranks[a]];
        const struct cm_find_record *record = &s->records[rank];

        ns[n++] = record->ns;
        if (record->ns > 0)
            run.noise = fmax(run.noise, (double)record->noise_ns / (double)record->ns);
        if (record->wrong > 0 && run.wrong_rank < 0)
            run.wrong_rank = rank;
        if (record->outcome > (int32_t)run.outcome)
            run.outcome = (enum cm_find_outcome)record->outcome;
        s->f->wrong += record->wrong;
    }
    if (run.outcome != CM_FIND_HUNG)
        cm_find_figures(s->f->bench, s->r->opts, n, combine(s, ns, n), &run);
    return run;
}

static enum cm_status keep_run(struct cm_find *f, const struct cm_find_run *run)
{
    if (f->nruns == f->cap_runs) {
        size_t cap = f->cap_runs == 0 ? 64 : 2 * f->cap_runs;
        struct cm_find_run *runs = realloc(f->runs, cap * sizeof(*runs));

        if (runs == NULL)
            return CM_FAIL(CM_ENOMEM, "%zu runs of pairs", cap);
        f->runs = runs;
        f->cap_runs = cap;
    }
    f->runs[f->nruns++] = *run;
    return CM_OK;
}

enum cm_status cm_find_take_results(void *arg)
{
    struct cm_find_search *s = arg;
    int64_t *ns = calloc((size_t)s->r->n, sizeof(*ns));
    enum cm_status st = ns != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "times of %d ranks", s->r->n);

    for (int a = 0; st == CM_OK && a < s->f->units.n; a++) {
        if (s->with[a] >= a) {
            struct cm_find_run run = run_of(s, a, s->with[a], ns);

            st = keep_run(s->f, &run);
        }
    }
    free(ns);
    return st;
}

/* Has the rank not arrived at the gather that failed? */
static bool is_missing(const struct cm_find_search *s, int rank)
{
    const struct cm_rank_shared *shared = cm_rank_shared(s->r->base, s->r->layout, rank);

    if (cm_local_of(s->r->layout, rank) < 0)
        return atomic_load(&shared->diag.phase) == CM_AT_SILENT;
    return atomic_load(&shared->team.seq) < s->r->team.seq;
}

enum cm_status cm_find_take_missing(void *arg)
{
    struct cm_find_search *s = arg;
    const struct cm_find_units *u = &s->f->units;
    enum cm_status st = CM_OK;
    int missing = 0;

    for (int k = 0; k < u->n; k++) {
        s->with[k] = -1;
        for (int i = 0; i < u->ranks[k]; i++)
            if (is_missing(s, u->members[u->first[k] + i]))
                s->with[k] = k;
        missing += s->with[k] == k;
    }
    for (int k = 0; st == CM_OK && 2 * missing < u->n && k < u->n; k++) {
        const struct cm_find_run run = {
            .a = k, .b = k, .outcome = CM_FIND_HUNG, .again = true, .wrong_rank = -1};

        if (s->with[k] == k)
            st = keep_run(s->f, &run);
    }
    return st;
}
