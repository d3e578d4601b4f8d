/* The plans of all ranks, whole or edited, before the verifier. */
#ifndef CM_TESTS_SUBJECT_H
#define CM_TESTS_SUBJECT_H

#include <stdlib.h>

#include "engine/algo.h"
#include "engine/verify.h"
#include "test.h"

enum { MAX_N = 9, CALLS = 2 };

struct subject {
    const struct cm_algo *algo;
    struct cm_build_args build;
    struct cm_plan *plans[MAX_N];
};

/* Refused in one placement at least? `proof` is the last answer. */
static bool refused(const struct subject *s, int depth, struct cm_proof *proof)
{
    for (int in_place = 0; in_place <= cm_colls[s->build.coll].in_place; in_place++) {
        struct cm_verify_args a = {in_place, depth, CALLS, s->build.node};

        CHECK(cm_verify(s->plans, s->build.n, &a, proof) == CM_OK, "verifier fails");
        if (!proof->ok)
            return true;
    }
    return false;
}

static void build_subject(struct subject *s)
{
    for (int r = 0; r < s->build.n; r++) {
        s->build.rank = r;
        s->plans[r] = NULL;
        if (cm_plan_build(s->algo, &s->build, &s->plans[r]) != CM_OK)
            abort();
    }
}

static void free_subject(struct subject *s)
{
    for (int r = 0; r < s->build.n; r++)
        cm_plan_free(s->plans[r]);
}

#endif
