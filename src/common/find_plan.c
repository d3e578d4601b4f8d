/*
 * The circle: units sit around it, one in the middle; in round r the one in the
 * middle runs with that in place r, and those equally far from it with each other. After
 * n - 1 rounds (an odd number of units gets a seat that stays empty: a bye) everybody
 * has met everybody.
 */
#include "common/find_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/data_gen.h"
#include "base/units.h"

bool cm_find_parse_pairs(const char *text, struct cm_find_choice *out)
{
    struct cm_find_choice c = {.how = CM_FIND_AUTO};
    int64_t rounds;

    if (text == NULL) {
        *out = c;
        return true;
    }
    if (strcmp(text, "all") == 0) {
        c.how = CM_FIND_ALL;
    } else if (strncmp(text, "sample=", 7) == 0) {
        if (!cm_parse_int(text + 7, 1, CM_FIND_UNITS, &rounds))
            return false;
        c.how = CM_FIND_SAMPLE;
        c.rounds = (int)rounds;
    } else if (strncmp(text, "anchor=", 7) == 0 && text[7] != '\0') {
        c.how = CM_FIND_ANCHOR;
        c.anchor = text + 7;
    } else {
        return false;
    }
    *out = c;
    return true;
}

/* Seats around the circle, with the one in the middle; even. */
static int seats(const struct cm_find_plan *p)
{
    return p->n + p->n % 2;
}

static int whole_rounds(const struct cm_find_plan *p)
{
    return p->anchor >= 0 ? p->n - 1 : seats(p) - 1;
}

/* Fisher and Yates. */
static void shuffle(int *v, int n, uint64_t seed)
{
    for (int i = n - 1; i > 0; i--) {
        int k, at = v[i];

        seed = cm_mix_key(seed);
        k = (int)(seed % (uint64_t)(i + 1));
        v[i] = v[k];
        v[k] = at;
    }
}

enum cm_status cm_find_plan(const struct cm_find_choice *c, int n, int anchor, uint64_t seed,
                            struct cm_find_plan *out)
{
    bool sample = c->how == CM_FIND_SAMPLE || (c->how == CM_FIND_AUTO && n > CM_FIND_FEW);
    struct cm_find_plan p = {.n = n, .anchor = c->how == CM_FIND_ANCHOR ? anchor : -1};
    int most = whole_rounds(&p);

    p.rounds = c->how == CM_FIND_SAMPLE ? c->rounds : sample ? CM_FIND_ROUNDS : most;
    if (p.rounds > most)
        return CM_FAIL(CM_EINVAL, "--pairs 'sample=%d': %d units meet each other in %d rounds",
                       p.rounds, n, most);
    p.spare = most - p.rounds < CM_FIND_SPARE ? most - p.rounds : CM_FIND_SPARE;
    p.labels = calloc((size_t)n, sizeof(*p.labels));
    if (p.labels == NULL)
        return CM_FAIL(CM_ENOMEM, "plan of %d units", n);
    for (int i = 0; i < n; i++)
        p.labels[i] = i;
    if (sample)
        shuffle(p.labels, n, seed);
    *out = p;
    return CM_OK;
}

void cm_find_plan_free(struct cm_find_plan *p)
{
    free(p->labels);
    p->labels = NULL;
}

static int seat_of(const struct cm_find_plan *p, int unit)
{
    int seat = 0;

    while (p->labels[seat] != unit)
        seat++;
    return seat;
}

/* Whose seat is opposite; the last one is in the middle. */
static int opposite(const struct cm_find_plan *p, int round, int seat)
{
    int around = seats(p) - 1, other;

    if (seat == around)
        return round;
    other = (2 * round - seat + around) % around;
    return other == seat ? around : other;
}

int cm_find_partner(const struct cm_find_plan *p, int round, int unit)
{
    int seat;

    if (p->anchor >= 0) {
        int other = round < p->anchor ? round : round + 1;

        return unit == p->anchor ? other : unit == other ? p->anchor : -1;
    }
    seat = opposite(p, round, seat_of(p, unit));
    return seat < p->n ? p->labels[seat] : -1;
}

bool cm_find_meets(const struct cm_find_plan *p, int a, int b)
{
    for (int round = 0; round < p->rounds + p->spare; round++)
        if (cm_find_partner(p, round, a) == b)
            return true;
    return false;
}
