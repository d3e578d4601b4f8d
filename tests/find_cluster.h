/*
 * Made-up clusters for the tests of the verdict: the rounds and the retests that
 * --find-bad would make are played here, with noise and any fault.
 */
#ifndef CM_TESTS_FIND_CLUSTER_H
#define CM_TESTS_FIND_CLUSTER_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/data_gen.h"
#include "common/find_again.h"
#include "common/find_judge.h"
#include "test.h"

enum { MOST = 40, RUNS = MOST * MOST, SEEDS = 200 };

/* A cluster: parts of the usual speed, and what else is wrong. */
struct cluster {
    int n;
    int ranks[MOST];
    double node[MOST], alone[MOST], link; /* link: of link_a - link_b */
    int link_a, link_b;
    int hangs, hangs_too; /* units that never end, -1: none */
    int corrupt;          /* unit whose pairs are wrong, -1: none */
    enum cm_find_outcome link_outcome;
    double noise;
    uint64_t seed;
};

struct played {
    struct cm_find_run runs[RUNS];
    struct cm_find_data d;
    struct cm_find_plan plan;
};

static const struct cm_find_limits limits = {.slow_pct = 15, .mads = 5};

static inline double noise(struct cluster *c)
{
    c->seed = cm_mix_key(c->seed);
    return 1 + c->noise * ((double)(c->seed >> 11) / (double)(1ULL << 52) - 1);
}

static inline void play(struct cluster *c, struct played *p, int a, int b, bool again)
{
    bool link = a != b && (a == c->link_a || b == c->link_a) && (a == c->link_b || b == c->link_b);
    struct cm_find_run *r = &p->runs[p->d.nruns];
    double speed = a == b ? 40 * c->alone[a] : 12 * fmin(c->node[a], c->node[b]);

    if (!again && a != b && (cm_find_lost(&p->d, a) || cm_find_lost(&p->d, b)))
        return;
    *r = (struct cm_find_run){.a = a, .b = b, .again = again, .wrong_rank = -1};
    r->gbs = speed * (link ? c->link : 1) * noise(c) * (again ? 1.3 : 1);
    if (a == c->corrupt || b == c->corrupt) {
        r->outcome = CM_FIND_WRONG;
        r->wrong_rank = 10 * c->corrupt;
    }
    if (link)
        r->outcome = c->link_outcome;
    if (a == c->hangs || b == c->hangs || a == c->hangs_too || b == c->hangs_too)
        r->outcome = CM_FIND_HUNG;
    p->d.nruns++;
}

static inline void judge(struct cluster *c, const char *pairs, const struct cm_find_limits *l,
                         struct cm_find_verdict *v)
{
    static struct played p;
    struct cm_find_choice choice;
    struct cm_find_step *again = NULL;
    int nagain;

    p.d = (struct cm_find_data){.n = c->n, .ranks = c->ranks, .runs = p.runs};
    if (!cm_find_parse_pairs(pairs, &choice) ||
        cm_find_plan(&choice, c->n, 0, c->seed, &p.plan) != CM_OK)
        abort();
    for (int u = 0; u < c->n; u++)
        if (u != c->hangs && u != c->hangs_too) /* they hang with others only */
            play(c, &p, u, u, false);
    for (int round = 0; round < p.plan.rounds; round++)
        for (int u = 0; u < c->n; u++)
            if (cm_find_partner(&p.plan, round, u) > u)
                play(c, &p, u, cm_find_partner(&p.plan, round, u), false);
    if (cm_find_judge(&p.d, l, v) != CM_OK)
        abort();
    nagain = cm_find_again(&p.d, v, &p.plan, &again);
    for (int k = 0; k < nagain; k++)
        play(c, &p, again[k].a, again[k].b, true);
    free(again);
    cm_find_plan_free(&p.plan);
    cm_find_verdict_free(v);
    if (cm_find_judge(&p.d, l, v) != CM_OK)
        abort();
}

static inline struct cluster cluster_of(int n, uint64_t seed)
{
    struct cluster c = {.n = n,
                        .link = 1,
                        .link_a = -1,
                        .link_b = -1,
                        .hangs = -1,
                        .hangs_too = -1,
                        .corrupt = -1,
                        .noise = 0.05,
                        .seed = seed * 1000 + (uint64_t)n};

    for (int u = 0; u < n; u++) {
        c.ranks[u] = 1;
        c.node[u] = c.alone[u] = 1;
    }
    return c;
}

/* Are exactly the two units (-1: none) of that class, and is no other unit or link bad? */
static inline bool only(const struct cm_find_verdict *v, int n, int a, int b,
                        enum cm_find_class class)
{
    bool as_wanted = v->nlinks == 0;

    for (int u = 0; u < n; u++)
        as_wanted =
            as_wanted &&
            (u == a || u == b ? v->units[u].class == class : v->units[u].class == CM_FIND_GOOD);
    return as_wanted;
}

static inline bool only_link(const struct cm_find_verdict *v, int n, int a, int b,
                             enum cm_find_class c)
{
    bool as_wanted = v->nlinks == 1 && v->links[0].class == c;

    as_wanted = as_wanted && (v->links[0].a == a || v->links[0].b == a) &&
                (v->links[0].a == b || v->links[0].b == b);
    for (int u = 0; u < n; u++)
        as_wanted = as_wanted && v->units[u].class == CM_FIND_GOOD;
    return as_wanted;
}

/* A case is right in 99 of 100. */
struct score {
    const char *what;
    int n, tries, right;
};

static inline void end(const struct score *s)
{
    CHECK(s->right * 100 >= s->tries * 99, "%s, n=%d: %d of %d right", s->what, s->n, s->right,
          s->tries);
}

#define EACH_SEED(s) for (uint64_t seed = 1; seed <= SEEDS; seed++, (s).tries++)

#endif
