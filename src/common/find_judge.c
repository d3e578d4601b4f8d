/* The verdict as a whole: who hangs and who is corrupt, then who is slow, then the figures. */
#include "common/find_judge.h"

#include <math.h>
#include <stdlib.h>

#include "common/find_judge_int.h"
#include "common/find_stats.h"

const char *cm_find_class_name(enum cm_find_class c)
{
    static const char *const names[] = {[CM_FIND_UNKNOWN] = "unknown",
                                        [CM_FIND_GOOD] = "good",
                                        [CM_FIND_SLOW] = "slow",
                                        [CM_FIND_HANGS] = "hangs",
                                        [CM_FIND_CORRUPT] = "corrupt"};

    return names[c];
}

static bool allocate(struct cm_find_work *w)
{
    size_t n = (size_t)w->d->n, runs = w->d->nruns + 1;
    struct cm_find_verdict *v = w->v;

    *v = (struct cm_find_verdict){.units = calloc(n, sizeof(*v->units)),
                                  .links = calloc(runs, sizeof(*v->links))};
    w->like = calloc(runs, sizeof(*w->like));
    w->x = calloc(runs, sizeof(*w->x));
    w->best = calloc(n, sizeof(*w->best));
    w->scratch = calloc(runs + n, sizeof(*w->scratch));
    w->out = calloc(n, sizeof(*w->out));
    return v->units && v->links && w->like && w->x && w->best && w->scratch && w->out;
}

static void release(struct cm_find_work *w)
{
    free(w->like);
    free(w->x);
    free(w->best);
    free(w->scratch);
    free(w->out);
}

/* Who came to an end with somebody has nothing against it, so far. */
static void start(struct cm_find_work *w)
{
    for (int u = 0; u < w->d->n; u++)
        w->v->units[u] = (struct cm_find_unit){.wrong_rank = -1, .gbs = NAN, .expected = NAN};
    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (!cm_find_is_pair(r) || r->outcome == CM_FIND_HUNG)
            continue;
        w->v->units[r->a].ended++;
        w->v->units[r->b].ended++;
        if (r->outcome != CM_FIND_RIGHT)
            continue;
        w->v->units[r->a].class = w->v->units[r->b].class = CM_FIND_GOOD;
        w->v->units[r->a].partners += !r->again;
        w->v->units[r->b].partners += !r->again;
    }
}

/* Medians over the unit's runs of the kind that its class is about. */
static void fill_figures(struct cm_find_work *w, int unit)
{
    struct cm_find_unit *u = &w->v->units[unit];
    size_t count = 0;
    double like = 0;

    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (r->again || isnan(w->x[k]) || !cm_find_has(r, unit) ||
            cm_find_is_pair(r) == u->by_itself)
            continue;
        w->scratch[count++] = r->gbs;
        like = w->like[k] > like ? w->like[k] : like;
    }
    u->gbs = cm_find_median(w->scratch, count);
    u->expected = count == 0 ? NAN : u->by_itself ? like : like * exp(w->center);
}

static void fill_link(const struct cm_find_work *w, struct cm_find_link *l)
{
    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (r->again || isnan(w->x[k]) || !cm_find_has(r, l->a) || !cm_find_has(r, l->b))
            continue;
        l->gbs = r->gbs;
        l->expected = w->like[k] * exp(w->center);
    }
}

static void fill_expected(struct cm_find_work *w)
{
    size_t count = 0;

    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (cm_find_is_pair(r) && !r->again && !isnan(w->x[k]) &&
            cm_find_class_of(w, r->a) == CM_FIND_GOOD && cm_find_class_of(w, r->b) == CM_FIND_GOOD)
            w->scratch[count++] = r->gbs;
    }
    w->v->expected = cm_find_median(w->scratch, count);
    w->v->limit_pct = 100 * (1 - exp(-w->limit));
}

enum cm_status cm_find_judge(const struct cm_find_data *d, const struct cm_find_limits *l,
                             struct cm_find_verdict *out)
{
    struct cm_find_work w = {.d = d, .l = l, .v = out};
    bool ok = allocate(&w);

    if (ok) {
        start(&w);
        cm_find_blame(&w, CM_FIND_WRONG, CM_FIND_CORRUPT);
        cm_find_blame(&w, CM_FIND_HUNG, CM_FIND_HANGS);
        cm_find_compare(&w);
        for (int u = 0; u < d->n; u++)
            fill_figures(&w, u);
        for (size_t i = 0; i < out->nlinks; i++)
            fill_link(&w, &out->links[i]);
        fill_expected(&w);
    }
    release(&w);
    return ok ? CM_OK : CM_FAIL(CM_ENOMEM, "verdict over %d units, %zu runs", d->n, d->nruns);
}

void cm_find_verdict_free(struct cm_find_verdict *v)
{
    free(v->units);
    free(v->links);
}

enum cm_find_class cm_find_worst(const struct cm_find_verdict *v, int n)
{
    enum cm_find_class worst = CM_FIND_GOOD;

    for (int u = 0; u < n; u++)
        worst = v->units[u].class > worst ? v->units[u].class : worst;
    for (size_t i = 0; i < v->nlinks; i++)
        worst = v->links[i].class > worst ? v->links[i].class : worst;
    return worst;
}
