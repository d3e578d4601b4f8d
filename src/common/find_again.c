/* The choice of retests: from the verdict over the rounds, alike on all ranks. */
#include "common/find_again.h"

#include <stdlib.h>

enum { PARTNERS = 2 };

struct list {
    const struct cm_find_data *d;
    const struct cm_find_verdict *v;
    const struct cm_find_plan *p;
    struct cm_find_step *steps;
    int n;
};

static bool good(const struct list *l, int unit)
{
    return l->v->units[unit].class == CM_FIND_GOOD;
}

static bool bad_link(const struct list *l, int a, int b)
{
    for (size_t i = 0; i < l->v->nlinks; i++)
        if ((l->v->links[i].a == a && l->v->links[i].b == b) ||
            (l->v->links[i].a == b && l->v->links[i].b == a))
            return true;
    return false;
}

static bool may_run(const struct list *l, int a, int b)
{
    return cm_find_meets(l->p, a, b) && !cm_find_hung(l->d, a, b) && !bad_link(l, a, b);
}

static void add(struct list *l, int a, int b)
{
    l->steps[l->n++] = (struct cm_find_step){a, b};
}

/* Two good units that may run together. */
static bool find_control(const struct list *l, struct cm_find_step *out)
{
    for (int a = 0; a < l->d->n; a++)
        for (int b = a + 1; b < l->d->n && good(l, a); b++)
            if (good(l, b) && may_run(l, a, b)) {
                *out = (struct cm_find_step){a, b};
                return true;
            }
    return false;
}

static void add_unit(struct list *l, int unit, int partners)
{
    for (int k = 1, found = 0; k < l->d->n && found < partners; k++) {
        int other = (unit + k) % l->d->n;

        if (good(l, other) && may_run(l, unit, other)) {
            add(l, unit, other);
            found++;
        }
    }
}

/* Has it never ended with anybody? It may have met others that hang only. */
static bool is_open(const struct list *l, int unit)
{
    const struct cm_find_unit *u = &l->v->units[unit];

    return u->class == CM_FIND_UNKNOWN ||
           (u->class == CM_FIND_HANGS && !u->by_itself && u->ended == 0);
}

static void add_slow(struct list *l, struct cm_find_step control)
{
    bool alone = false;

    add(l, control.a, control.b);
    for (int u = 0; u < l->d->n; u++) {
        if (l->v->units[u].class != CM_FIND_SLOW)
            continue;
        if (l->v->units[u].by_itself)
            add(l, u, u);
        else
            add_unit(l, u, PARTNERS);
        alone = alone || l->v->units[u].by_itself;
    }
    for (size_t i = 0; i < l->v->nlinks; i++)
        if (l->v->links[i].class == CM_FIND_SLOW)
            add(l, l->v->links[i].a, l->v->links[i].b);
    if (alone)
        add(l, control.a, control.a);
    add(l, control.a, control.b);
}

int cm_find_again(const struct cm_find_data *d, const struct cm_find_verdict *v,
                  const struct cm_find_plan *p, struct cm_find_step **out)
{
    struct list l = {.d = d, .v = v, .p = p};
    size_t slow = 0, room = (size_t)d->n * PARTNERS + v->nlinks + 3;
    struct cm_find_step control;

    l.steps = calloc(room, sizeof(*l.steps));
    if (l.steps == NULL)
        return -1;
    for (int u = 0; u < d->n; u++)
        slow += v->units[u].class == CM_FIND_SLOW;
    for (size_t i = 0; i < v->nlinks; i++)
        slow += v->links[i].class == CM_FIND_SLOW;
    if (slow > 0 && find_control(&l, &control))
        add_slow(&l, control);
    for (int u = 0; u < d->n; u++)
        if (is_open(&l, u))
            add_unit(&l, u, 1);
    *out = l.steps;
    return l.n;
}
