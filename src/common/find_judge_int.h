/* The verdict's inside, shared by find_judge.c, find_blame.c and find_speed.c. */
#ifndef CM_COMMON_FIND_JUDGE_INT_H
#define CM_COMMON_FIND_JUDGE_INT_H

#include "common/find_judge.h"

/* What is computed on the way. */
struct cm_find_work {
    const struct cm_find_data *d;
    const struct cm_find_limits *l;
    struct cm_find_verdict *v;
    double *like;    /* per run: median of its kind in the rounds, GB/s; 0: nothing ended right */
    double *x;       /* per run: log(gbs / like); NaN: no figure */
    double *best;    /* per unit: x of its best pair in the rounds; NaN: none */
    double *scratch; /* runs + units */
    bool *out;       /* per unit: it takes no part in the comparison */
    double center;   /* median x of pairs of units that take part; NaN: none */
    double limit;    /* so far below is slow */
};

static inline bool cm_find_is_pair(const struct cm_find_run *r)
{
    return r->a != r->b;
}

static inline bool cm_find_has(const struct cm_find_run *r, int unit)
{
    return r->a == unit || r->b == unit;
}

static inline enum cm_find_class cm_find_class_of(const struct cm_find_work *w, int unit)
{
    return w->v->units[unit].class;
}

static inline void cm_find_accuse(struct cm_find_unit *u, enum cm_find_class class)
{
    u->class = class > u->class ? class : u->class;
}

/* The pair as a bad link, once. */
void cm_find_add_link(struct cm_find_work *w, const struct cm_find_run *r,
                      enum cm_find_class class);
bool cm_find_is_link(const struct cm_find_work *w, const struct cm_find_run *r);

/* Put runs with outcome `o` down to units and links. */
void cm_find_blame(struct cm_find_work *w, enum cm_find_outcome o, enum cm_find_class class);

/* Find what is slow. Units that hang or are corrupt have been found. */
void cm_find_compare(struct cm_find_work *w);

#endif
