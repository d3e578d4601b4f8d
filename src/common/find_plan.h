/*
 * Rounds of disjoint pairs: who runs with whom, and when. Computed alike by all.
 * Source of the method: round-robin tournament by the circle method (Kirkman 1850).
 */
#ifndef CM_COMMON_FIND_PLAN_H
#define CM_COMMON_FIND_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum cm_find_pairs { CM_FIND_AUTO, CM_FIND_ALL, CM_FIND_SAMPLE, CM_FIND_ANCHOR };

/* --pairs. AUTO: ALL of up to CM_FIND_FEW units, else as SAMPLE of CM_FIND_ROUNDS. */
struct cm_find_choice {
    enum cm_find_pairs how;
    int rounds;         /* SAMPLE */
    const char *anchor; /* ANCHOR: name of a host or unit, in the option's text */
};
enum { CM_FIND_FEW = 16, CM_FIND_ROUNDS = 6, CM_FIND_SPARE = 2, CM_FIND_UNITS = 1024 };

/* Read "all", "sample=K" or "anchor=HOST"; NULL: AUTO. false: it is none of them. */
bool cm_find_parse_pairs(const char *text, struct cm_find_choice *out);

struct cm_find_plan {
    int n;       /* units */
    int rounds;  /* that are run; every pair at most once in all of them */
    int spare;   /* rounds behind them, whose pairs may serve for retests */
    int *labels; /* n: the circle's places in order; a unit each */
    int anchor;  /* each round is one pair with this unit; -1: the circle */
};

/*
 * The plan for n >= 2 units. anchor: the unit of CM_FIND_ANCHOR. SAMPLE takes its
 * rounds from the circle over shuffled units: the same ones for the same seed.
 * CM_EINVAL: more rounds than there are (logged). CM_ENOMEM. The caller's:
 * cm_find_plan_free().
 */
CM_MUST_CHECK enum cm_status cm_find_plan(const struct cm_find_choice *c, int n, int anchor,
                                          uint64_t seed, struct cm_find_plan *out);
void cm_find_plan_free(struct cm_find_plan *p);

/* Partner of a unit in a round (spare ones count on), -1: it has none. */
int cm_find_partner(const struct cm_find_plan *p, int round, int unit);

/* Are two units a pair of some round, spare ones too? Only such pairs are connected. */
bool cm_find_meets(const struct cm_find_plan *p, int a, int b);

#endif
