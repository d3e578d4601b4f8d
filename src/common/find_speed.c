/*
 * What is slow. Speeds are compared as logarithms of their ratio to the median of
 * their kind (pairs of as many ranks), so that units of different sizes mix.
 */
#include <math.h>

#include "common/find_judge_int.h"
#include "common/find_stats.h"

enum { ENOUGH = 3, ENOUGH_PAIRS = 6, ENOUGH_ALONE = 4, MANY_PARTNERS = 4, PASSES = 8, FEW = 4 };

/* ---- figures of runs ---- */

static bool alike(const struct cm_find_work *w, const struct cm_find_run *r,
                  const struct cm_find_run *s)
{
    const int *n = w->d->ranks;

    if (cm_find_is_pair(r) != cm_find_is_pair(s))
        return false;
    return (n[r->a] == n[s->a] && n[r->b] == n[s->b]) || (n[r->a] == n[s->b] && n[r->b] == n[s->a]);
}

/* The median of a kind is that of the rounds: retests have the network for themselves. */
static double median_like(const struct cm_find_work *w, const struct cm_find_run *like)
{
    size_t count = 0;

    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (alike(w, like, r) && !r->again && r->outcome == CM_FIND_RIGHT && r->gbs > 0)
            w->scratch[count++] = r->gbs;
    }
    return count > 0 ? cm_find_median(w->scratch, count) : 0;
}

static void fill_ratios(struct cm_find_work *w)
{
    const struct cm_find_run *runs = w->d->runs;

    for (size_t k = 0; k < w->d->nruns; k++)
        w->like[k] = w->x[k] = NAN;
    for (size_t k = 0; k < w->d->nruns; k++) {
        double median;

        if (!isnan(w->like[k]))
            continue;
        median = median_like(w, &runs[k]);
        for (size_t i = k; i < w->d->nruns; i++) {
            if (!alike(w, &runs[k], &runs[i]))
                continue;
            w->like[i] = median;
            if (runs[i].outcome == CM_FIND_RIGHT && runs[i].gbs > 0 && median > 0)
                w->x[i] = log(runs[i].gbs / median);
        }
    }
}

/* Of a pair in the rounds? */
static bool counts(const struct cm_find_work *w, size_t k)
{
    return cm_find_is_pair(&w->d->runs[k]) && !w->d->runs[k].again && !isnan(w->x[k]);
}

/* ---- the comparison of units ---- */

/* The best pair of a unit; the second best if there are many, as one may be luck. */
static double best_of(struct cm_find_work *w, int unit)
{
    double top[2] = {-INFINITY, -INFINITY};
    int count = 0;

    for (size_t k = 0; k < w->d->nruns; k++) {
        if (!counts(w, k) || !cm_find_has(&w->d->runs[k], unit))
            continue;
        count++;
        if (w->x[k] > top[0]) {
            top[1] = top[0];
            top[0] = w->x[k];
        } else if (w->x[k] > top[1]) {
            top[1] = w->x[k];
        }
    }
    return count == 0 ? NAN : top[count >= MANY_PARTNERS];
}

static double least_limit(const struct cm_find_work *w)
{
    return -log(1 - w->l->slow_pct / 100);
}

/*
 * Median of what runs of a kind say about themselves: for few of them there is nothing else. Of
 * runs whose x is `least` or more: what a bad cable loses makes its pairs slow and noisy, and of
 * four nodes half of the pairs may use it.
 */
static double own_noise(const struct cm_find_work *w, bool pair, double least)
{
    size_t count = 0;

    for (size_t k = 0; k < w->d->nruns; k++)
        if (cm_find_is_pair(&w->d->runs[k]) == pair && w->x[k] >= least) /* NaN: no */
            w->scratch[count++] = w->d->runs[k].noise;
    return count > 0 ? cm_find_median(w->scratch, count) : 0;
}

/* Centre and limit of the pairs between units that take part; `least`: see own_noise(). */
static void fill_limit(struct cm_find_work *w, double least)
{
    double spread = w->l->mads * own_noise(w, true, least), seen = 0;
    size_t count = 0;

    for (size_t k = 0; k < w->d->nruns; k++)
        if (counts(w, k) && !w->out[w->d->runs[k].a] && !w->out[w->d->runs[k].b])
            w->scratch[count++] = w->x[k];
    w->center = cm_find_median(w->scratch, count);
    if (count >= ENOUGH_PAIRS) /* of fewer there is no telling */
        seen = w->l->mads * cm_find_deviation(w->scratch, count);
    spread = spread > seen ? spread : seen;
    w->limit = spread > least_limit(w) ? spread : least_limit(w);
}

/* Leave units out until that changes nothing: without the slow ones the spread is smaller. */
static void leave_out(struct cm_find_work *w)
{
    size_t count = 0;
    double usual, least;

    for (int u = 0; u < w->d->n; u++) {
        w->out[u] = false;
        w->best[u] = best_of(w, u);
        if (!isnan(w->best[u]))
            w->scratch[count++] = w->best[u];
    }
    usual = cm_find_upper_median(w->scratch, count);
    w->v->compared = count >= ENOUGH;
    least = usual - least_limit(w);
    w->limit = fmax(least_limit(w), w->l->mads * own_noise(w, true, least));
    for (int pass = 0, changes = w->v->compared; pass < PASSES && changes > 0; pass++) {
        changes = 0;
        for (int u = 0; u < w->d->n; u++) {
            bool slow = w->best[u] < usual - w->limit; /* NaN: no */

            changes += slow != w->out[u];
            w->out[u] = slow;
        }
        fill_limit(w, least);
    }
    if (!w->v->compared)
        fill_limit(w, least);
}

/* Is even the best pair below what was asked for? */
static bool below_minimum(const struct cm_find_work *w, int unit)
{
    double best = 0;

    for (size_t k = 0; k < w->d->nruns; k++)
        if (cm_find_is_pair(&w->d->runs[k]) && cm_find_has(&w->d->runs[k], unit) &&
            !isnan(w->x[k]) && w->d->runs[k].gbs > best)
            best = w->d->runs[k].gbs;
    return best > 0 && best < w->l->min_gbs;
}

/* ---- links ---- */

static bool pair_is_slow(const struct cm_find_work *w, size_t k)
{
    return (w->v->compared && w->x[k] < w->center - w->limit) || w->d->runs[k].gbs < w->l->min_gbs;
}

/* Both ends are good as far as is known. */
static bool between_good(const struct cm_find_work *w, const struct cm_find_run *r)
{
    return cm_find_class_of(w, r->a) < CM_FIND_SLOW && cm_find_class_of(w, r->b) < CM_FIND_SLOW;
}

static int slow_pairs_of(const struct cm_find_work *w, int unit, int *all)
{
    int slow = 0;

    *all = 0;
    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (!counts(w, k) || !cm_find_has(r, unit) || !between_good(w, r))
            continue;
        slow += pair_is_slow(w, k);
        ++*all;
    }
    return slow;
}

/* A unit just at the limit is slow with most partners: it rather than so many links. */
static void prefer_units(struct cm_find_work *w)
{
    for (int u = 0; u < w->d->n; u++) {
        int all, slow = slow_pairs_of(w, u, &all);

        if (slow >= 2 && 2 * slow > all)
            cm_find_accuse(&w->v->units[u], CM_FIND_SLOW);
    }
}

/* If many pairs of good units are slow, the network is uneven (racks): none of them stands out. */
static void find_links(struct cm_find_work *w)
{
    size_t slow = 0, all = 0, below = 0;

    for (size_t k = 0; k < w->d->nruns; k++) {
        if (!counts(w, k) || !between_good(w, &w->d->runs[k]))
            continue;
        all++;
        slow += pair_is_slow(w, k);
        below += w->d->runs[k].gbs < w->l->min_gbs;
    }
    if (slow > 1 && FEW * slow > all && below == 0) {
        w->v->uneven = slow;
        return;
    }
    prefer_units(w);
    for (size_t k = 0; k < w->d->nruns; k++)
        if (counts(w, k) && pair_is_slow(w, k) && between_good(w, &w->d->runs[k]))
            cm_find_add_link(w, &w->d->runs[k], CM_FIND_SLOW);
}

/* ---- units by themselves ---- */

static void find_lone(struct cm_find_work *w)
{
    double center, limit, noise = w->l->mads * own_noise(w, false, -INFINITY);
    size_t count = 0;

    for (size_t k = 0; k < w->d->nruns; k++)
        if (!cm_find_is_pair(&w->d->runs[k]) && !w->d->runs[k].again && !isnan(w->x[k]))
            w->scratch[count++] = w->x[k];
    if (count < ENOUGH_ALONE)
        return;
    center = cm_find_median(w->scratch, count);
    limit = w->l->mads * cm_find_deviation(w->scratch, count);
    limit = limit > noise ? limit : noise;
    limit = limit > least_limit(w) ? limit : least_limit(w);
    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (cm_find_is_pair(r) || r->again || !(w->x[k] < center - limit) ||
            cm_find_class_of(w, r->a) > CM_FIND_SLOW)
            continue;
        w->v->units[r->a].by_itself = cm_find_class_of(w, r->a) < CM_FIND_SLOW;
        cm_find_accuse(&w->v->units[r->a], CM_FIND_SLOW);
    }
}

/* ---- retests ---- */

/* The lowest that good units reach while nothing else runs; NaN: it was not tried. */
static double control(const struct cm_find_work *w, bool pair)
{
    double least = NAN;

    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (r->again && cm_find_is_pair(r) == pair && !isnan(w->x[k]) && between_good(w, r) &&
            !cm_find_is_link(w, r))
            least = least < w->x[k] ? least : w->x[k];
    }
    return least;
}

/* Retests of a unit with good partners, or by itself, against the control: slow, or not? */
static void confirm_unit(struct cm_find_work *w, int unit)
{
    struct cm_find_unit *u = &w->v->units[unit];
    double good = control(w, !u->by_itself);
    int slow = 0, tried = 0;

    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];
        int other = r->a == unit ? r->b : r->a;

        if (!r->again || !cm_find_has(r, unit) || isnan(w->x[k]) ||
            cm_find_is_pair(r) == u->by_itself ||
            (other != unit && cm_find_class_of(w, other) >= CM_FIND_SLOW))
            continue;
        tried++;
        slow += w->x[k] < good - w->limit || w->d->runs[k].gbs < w->l->min_gbs;
    }
    u->again = tried > 0 && slow == tried;
    if (tried > slow) {
        u->class = CM_FIND_GOOD;
        u->by_itself = false;
    }
}

static void confirm_links(struct cm_find_work *w)
{
    double good = control(w, true);
    size_t kept = 0;

    for (size_t i = 0; i < w->v->nlinks; i++) {
        struct cm_find_link l = w->v->links[i];
        bool fine = false;

        for (size_t k = 0; k < w->d->nruns; k++) {
            const struct cm_find_run *r = &w->d->runs[k];

            if (!r->again || !cm_find_has(r, l.a) || !cm_find_has(r, l.b) || isnan(w->x[k]) ||
                l.class != CM_FIND_SLOW)
                continue;
            l.again = w->x[k] < good - w->limit || r->gbs < w->l->min_gbs;
            fine = !l.again;
        }
        if (!fine)
            w->v->links[kept++] = l;
    }
    w->v->nlinks = kept;
}

/* Who is slow so far stays unknown. */
static void withdraw(struct cm_find_work *w)
{
    size_t kept = 0;

    for (int u = 0; u < w->d->n; u++)
        if (cm_find_class_of(w, u) == CM_FIND_SLOW && !w->v->units[u].again) {
            w->v->units[u].class = CM_FIND_UNKNOWN;
            w->v->units[u].by_itself = false;
        }
    for (size_t i = 0; i < w->v->nlinks; i++)
        if (w->v->links[i].class != CM_FIND_SLOW || w->v->links[i].again)
            w->v->links[kept++] = w->v->links[i];
    w->v->nlinks = kept;
}

void cm_find_compare(struct cm_find_work *w)
{
    fill_ratios(w);
    leave_out(w);
    for (int u = 0; u < w->d->n; u++)
        if (w->out[u] || below_minimum(w, u))
            cm_find_accuse(&w->v->units[u], CM_FIND_SLOW);
    find_links(w);
    find_lone(w);
    for (int u = 0; u < w->d->n; u++)
        w->out[u] = cm_find_class_of(w, u) == CM_FIND_SLOW;
    for (int u = 0; u < w->d->n; u++)
        if (w->out[u])
            confirm_unit(w, u);
    confirm_links(w);
    if (w->d->unfinished)
        withdraw(w);
}
