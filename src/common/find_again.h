/* Who runs again, one pair after the other, before anybody is accused. */
#ifndef CM_COMMON_FIND_AGAIN_H
#define CM_COMMON_FIND_AGAIN_H

#include "common/find_judge.h"
#include "common/find_plan.h"

struct cm_find_step {
    int a, b; /* units; a == b: one by itself */
};

/*
 * The runs after the rounds: each suspected unit with two good ones that it is connected with,
 * or by itself if that is where it is slow; each slow link; each unit that has never ended with
 * anybody, with one. Before and behind them two good units, for comparison; without those
 * nothing slow runs again. *out is for free(). Returns how many; -1: no memory.
 */
int cm_find_again(const struct cm_find_data *d, const struct cm_find_verdict *v,
                  const struct cm_find_plan *p, struct cm_find_step **out);

#endif
