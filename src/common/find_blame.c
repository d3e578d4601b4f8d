/*
 * Hangs and wrong data: which units explain them? The one that takes part in most
 * of the pairs first (a greedy cover), as long as that is more than one pair and
 * some pair without it ended well; a single pair may be either end, or the link.
 */
#include "common/find_judge_int.h"

#include <math.h>

bool cm_find_hung(const struct cm_find_data *d, int a, int b)
{
    for (size_t k = 0; k < d->nruns; k++)
        if (d->runs[k].outcome == CM_FIND_HUNG && cm_find_has(&d->runs[k], a) &&
            cm_find_has(&d->runs[k], b))
            return true;
    return false;
}

bool cm_find_lost(const struct cm_find_data *d, int unit)
{
    int hung = 0, ended = 0;

    for (size_t k = 0; k < d->nruns; k++) {
        const struct cm_find_run *r = &d->runs[k];

        if (!cm_find_has(r, unit))
            continue;
        if (!cm_find_is_pair(r) && r->outcome == CM_FIND_HUNG)
            return true;
        hung += r->outcome == CM_FIND_HUNG;
        ended += cm_find_is_pair(r) && r->outcome != CM_FIND_HUNG;
    }
    return hung >= 2 && ended == 0;
}

bool cm_find_is_link(const struct cm_find_work *w, const struct cm_find_run *r)
{
    for (size_t k = 0; k < w->v->nlinks; k++)
        if (cm_find_has(r, w->v->links[k].a) && cm_find_has(r, w->v->links[k].b))
            return true;
    return false;
}

void cm_find_add_link(struct cm_find_work *w, const struct cm_find_run *r, enum cm_find_class class)
{
    if (!cm_find_is_link(w, r))
        w->v->links[w->v->nlinks++] = (struct cm_find_link){
            .a = r->a, .b = r->b, .class = class, .gbs = NAN, .expected = NAN};
}

/* Is it a pair with that outcome that no accused unit explains? */
static bool unexplained(const struct cm_find_work *w, const struct cm_find_run *r,
                        enum cm_find_outcome o, enum cm_find_class class)
{
    return cm_find_is_pair(r) && r->outcome == o && cm_find_class_of(w, r->a) < class &&
           cm_find_class_of(w, r->b) < class;
}

/*
 * How much speaks against a unit: the number of those pairs, and of equals who never ended
 * otherwise more than who did. Below 4: a pair, or none, or no pair without it did better.
 */
enum { PAIR = 2, LEAST = 2 * PAIR };
static int weight(const struct cm_find_work *w, int unit, enum cm_find_outcome o,
                  enum cm_find_class class)
{
    bool better = false, ended = false;
    int count = 0;

    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (cm_find_is_pair(r) && r->outcome != o) {
            ended = ended || cm_find_has(r, unit);
            better = better || !cm_find_has(r, unit);
        }
        count += cm_find_has(r, unit) && unexplained(w, r, o, class);
    }
    return better ? PAIR * count + !ended : 0;
}

/* Accuse those with the most; false: nobody has two. */
static bool blame_most(struct cm_find_work *w, enum cm_find_outcome o, enum cm_find_class class)
{
    int most = 0;

    for (int u = 0; u < w->d->n; u++) {
        int count = weight(w, u, o, class);

        most = count > most ? count : most;
    }
    for (int u = 0; u < w->d->n; u++)
        w->out[u] = most >= LEAST && weight(w, u, o, class) == most;
    for (int u = 0; u < w->d->n; u++)
        if (w->out[u])
            cm_find_accuse(&w->v->units[u], class);
    return most >= LEAST;
}

static void blame_lone_units(struct cm_find_work *w, enum cm_find_outcome o,
                             enum cm_find_class class)
{
    for (size_t k = 0; k < w->d->nruns; k++) {
        const struct cm_find_run *r = &w->d->runs[k];

        if (cm_find_is_pair(r) || r->outcome != o)
            continue;
        cm_find_accuse(&w->v->units[r->a], class);
        w->v->units[r->a].by_itself = true;
    }
}

/* Which rank saw wrong data first? */
static void name_rank(struct cm_find_work *w, const struct cm_find_run *r)
{
    const int ends[] = {r->a, r->b};

    for (int i = 0; i < 2; i++) {
        struct cm_find_unit *u = &w->v->units[ends[i]];

        if (u->class == CM_FIND_CORRUPT && u->wrong_rank < 0)
            u->wrong_rank = r->wrong_rank;
    }
}

void cm_find_blame(struct cm_find_work *w, enum cm_find_outcome o, enum cm_find_class class)
{
    bool any = false;

    for (size_t k = 0; k < w->d->nruns && !any; k++)
        any = w->d->runs[k].outcome == o;
    if (!any)
        return;
    blame_lone_units(w, o, class);
    while (blame_most(w, o, class))
        ;
    for (size_t k = 0; k < w->d->nruns; k++) {
        if (unexplained(w, &w->d->runs[k], o, class))
            cm_find_add_link(w, &w->d->runs[k], class);
        if (w->d->runs[k].outcome == CM_FIND_WRONG)
            name_rank(w, &w->d->runs[k]);
    }
}
