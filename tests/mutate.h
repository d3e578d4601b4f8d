/*
 * Break a plan in one place. A mutation is named by its kind, the fold, and
 * the number of the place in the fold (wait, operand, ...) that it changes.
 */
#ifndef CM_TESTS_MUTATE_H
#define CM_TESTS_MUTATE_H

#include <stdlib.h>
#include <string.h>

#include "base/plan.h"

enum kind {
    DROP_WAIT,
    WEAKEN_WAIT,
    DROP_POST,
    SHIFT_CHUNK,
    RETARGET,
    SWAP_SOURCES,
    DROP_SOURCE,
    DROP_TARGET,
    DROP_FOLD,
    DOUBLE_FOLD,
    FLIP_COMPLETE,
    NKINDS
};

static const char *const kind_names[NKINDS] = {
    "drop wait",   "weaken wait", "drop post", "shift chunk", "retarget operand", "swap sources",
    "drop source", "drop target", "drop fold", "double fold", "flip complete"};

static void *copy_of(const void *from, int n, size_t size)
{
    void *to = malloc((size_t)n * size + 1);

    if (to != NULL && n > 0)
        memcpy(to, from, (size_t)n * size);
    return to;
}

/* A deep copy with room for one more fold; NULL: no memory. */
static struct cm_plan *clone(const struct cm_plan *p)
{
    struct cm_plan *q = copy_of(p, 1, sizeof(*p));

    if (q == NULL)
        return NULL;
    q->folds = malloc((size_t)(p->nfolds + 1) * sizeof(*p->folds));
    if (q->folds != NULL)
        memcpy(q->folds, p->folds, (size_t)p->nfolds * sizeof(*p->folds));
    q->operands = copy_of(p->operands, p->noperands, sizeof(*p->operands));
    q->waits = copy_of(p->waits, p->nwaits, sizeof(*p->waits));
    q->perm = p->perm != NULL ? copy_of(p->perm, p->n, sizeof(*p->perm)) : NULL;
    return q;
}

/* Remove fold `at` (count -1) or double it (count +1). */
static void change_folds(struct cm_plan *p, int at, int count)
{
    int from = count > 0 ? at : at + 1;

    memmove(p->folds + from + count, p->folds + from,
            (size_t)(p->nfolds - from) * sizeof(*p->folds));
    p->nfolds += count;
    for (int w = 0; w < p->nworkers; w++) {
        struct cm_worker *k = &p->workers[w];

        if (at >= k->first && at < k->first + k->nfolds)
            k->nfolds += count;
        else if (k->first > at)
            k->first += count;
    }
}

static bool mutate_wait(struct cm_plan *p, enum kind kind, struct cm_fold *f, int site)
{
    struct cm_wait_on *w = &p->waits[f->wait];

    if (site >= f->nwait)
        return false;
    if (kind == DROP_WAIT)
        w[site] = w[--f->nwait];
    else if (w[site].phase.base == CM_PHASE_DONE)
        w[site].phase.base = 1; /* arrived, but not done */
    else
        w[site].phase.base--;
    return true;
}

/* Operand k of a fold: sources, then destinations. */
static struct cm_operand *operand_at(const struct cm_plan *p, const struct cm_fold *f, int k)
{
    return &p->operands[k < f->nfrom ? f->from + k : f->to + k - f->nfrom];
}

static bool mutate_operand(struct cm_plan *p, enum kind kind, struct cm_fold *f, int site)
{
    struct cm_operand *o;

    if (site >= f->nfrom + f->nto)
        return false;
    o = operand_at(p, f, site);
    if (kind == SHIFT_CHUNK)
        o->chunk.base++;
    else if (o->space == CM_PORT && (o->rank + 1) % p->n == p->rank)
        o->rank = (o->rank + 2) % p->n;
    else
        o->rank = (o->rank + 1) % p->n;
    return true;
}

static bool mutate_list(struct cm_plan *p, enum kind kind, struct cm_fold *f, int site)
{
    struct cm_operand *from = &p->operands[f->from], *to = &p->operands[f->to];
    int last = (kind == DROP_TARGET ? f->nto : f->nfrom) - 1;

    if (site >= last + (kind != SWAP_SOURCES) || last < 1)
        return false;
    if (kind == DROP_SOURCE) {
        from[site] = from[last];
        f->nfrom--;
    } else if (kind == DROP_TARGET) {
        to[site] = to[last];
        f->nto--;
    } else {
        struct cm_operand o = from[site];

        from[site] = from[site + 1];
        from[site + 1] = o;
    }
    return true;
}

/* Break fold `at` in the way of `kind` at its place number `site`; false: it has no such place. */
static bool mutate(struct cm_plan *p, enum kind kind, int at, int site)
{
    struct cm_fold *f = &p->folds[at];

    if (f->code != CM_FOLD)
        return false;
    switch (kind) {
    case DROP_WAIT:
    case WEAKEN_WAIT:
        return mutate_wait(p, kind, f, site);
    case SHIFT_CHUNK:
    case RETARGET:
        return mutate_operand(p, kind, f, site);
    case SWAP_SOURCES:
    case DROP_SOURCE:
    case DROP_TARGET:
        return mutate_list(p, kind, f, site);
    case DROP_POST:
        f->post = !f->post;
        return site == 0 && !f->post;
    case FLIP_COMPLETE:
        f->complete = !f->complete;
        return site == 0;
    default:
        if (site == 0)
            change_folds(p, at, kind == DROP_FOLD ? -1 : 1);
        return site == 0;
    }
}

#endif
