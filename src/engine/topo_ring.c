/*
 * The ring whose weakest link is strongest: the bottleneck travelling salesman
 * (Garfinkel, Gilbert: The bottleneck traveling salesman problem, JACM 25(3),
 * 1978). It is NP-hard, and machines are small: up to EXACT devices all rings
 * are looked at, cut off where a link is weaker than the best ring's weakest.
 * Above, a greedy ring from every start is improved by reversing parts of it
 * while that helps (2-opt; Croes, Operations Research 6(6), 1958).
 *
 * Strengths are integers and ties go to what is found first, so that all ranks
 * find the same ring.
 */
#include <string.h>

#include "engine/topo_int.h"

enum { EXACT = 8 };

/* What makes a ring good, the most important first. */
struct worth {
    int64_t weakest;
    int weak; /* links that are as weak as that */
    int64_t sum;
};

struct search {
    const int64_t *strength;
    int n;
    int now[CM_TOPO_GPUS], best[CM_TOPO_GPUS];
    struct worth worth; /* of best */
    bool found;
};

static int64_t strength(const struct search *s, int a, int b)
{
    return s->strength[a * s->n + b];
}

static void count_link(struct worth *w, int64_t link)
{
    if (link < w->weakest)
        *w = (struct worth){.weakest = link, .weak = 0, .sum = w->sum};
    w->weak += link == w->weakest;
    w->sum += link;
}

static bool is_better(const struct worth *a, const struct worth *b)
{
    if (a->weakest != b->weakest)
        return a->weakest > b->weakest;
    if (a->weak != b->weak)
        return a->weak < b->weak;
    return a->sum > b->sum;
}

static struct worth worth_of(const struct search *s, const int *ring)
{
    struct worth w = {.weakest = INT64_MAX};

    for (int i = 0; i < s->n; i++)
        count_link(&w, strength(s, ring[i], ring[(i + 1) % s->n]));
    return w;
}

static void offer(struct search *s)
{
    struct worth w = worth_of(s, s->now);

    if (s->found && !is_better(&w, &s->worth))
        return;
    memcpy(s->best, s->now, sizeof(s->best));
    s->worth = w;
    s->found = true;
}

/* All ways to go on from the first `depth` devices of now[], in the order of their numbers. */
static void try_all(struct search *s, int depth, uint64_t used)
{
    if (depth == s->n) {
        offer(s);
        return;
    }
    for (int next = 1; next < s->n; next++) {
        if ((used >> next & 1) != 0)
            continue;
        if (s->found && strength(s, s->now[depth - 1], next) < s->worth.weakest)
            continue;
        s->now[depth] = next;
        try_all(s, depth + 1, used | (uint64_t)1 << next);
    }
}

/* The device that is not yet in the ring to which `from` has the strongest link. */
static int strongest(const struct search *s, int from, uint64_t used)
{
    int best = __builtin_ctzll(~used);

    for (int i = best + 1; i < s->n; i++)
        if ((used >> i & 1) == 0 && strength(s, from, i) > strength(s, from, best))
            best = i;
    return best;
}

/* From `start` always over the strongest link. Less than n are in use, so there is a next one. */
static void go_greedily(struct search *s, int start)
{
    uint64_t used = (uint64_t)1 << start;

    s->now[0] = start;
    for (int depth = 1; depth < s->n; depth++) {
        s->now[depth] = strongest(s, s->now[depth - 1], used);
        used |= (uint64_t)1 << s->now[depth];
    }
}

static void reverse(int *ring, int from, int to)
{
    for (; from < to; from++, to--) {
        int swap = ring[from];

        ring[from] = ring[to];
        ring[to] = swap;
    }
}

/*
 * Would it help to reverse now[from .. to]? Two links go, two come; the worth
 * follows from them alone, unless no link stays that is as weak as before,
 * which is better whatever comes next.
 */
static bool helps(const struct search *s, int from, int to, const struct worth *w)
{
    const int *r = s->now;
    int before = r[from - 1], after = r[(to + 1) % s->n];
    int64_t gone[] = {strength(s, before, r[from]), strength(s, r[to], after)};
    int64_t come[] = {strength(s, before, r[to]), strength(s, r[from], after)};
    struct worth then = *w;

    for (int i = 0; i < 2; i++) {
        if (come[i] < w->weakest)
            return false;
        then.weak += (come[i] == w->weakest) - (gone[i] == w->weakest);
        then.sum += come[i] - gone[i];
    }
    return is_better(&then, w);
}

/* One pass over all pairs of links; did anything change? */
static bool improve(struct search *s)
{
    struct worth w = worth_of(s, s->now);
    bool changed = false;

    for (int from = 1; from < s->n - 1; from++)
        for (int to = from + 1; to < s->n; to++)
            if (helps(s, from, to, &w)) {
                reverse(s->now, from, to);
                w = worth_of(s, s->now);
                changed = true;
            }
    return changed;
}

/* Every change makes the ring better, so the passes come to an end. */
static void try_greedy(struct search *s)
{
    for (int start = 0; start < s->n; start++) {
        go_greedily(s, start);
        while (improve(s))
            ;
        offer(s);
    }
}

void cm_ring_search(const int64_t *matrix, int n, int *order)
{
    struct search s = {.strength = matrix, .n = n};
    int zero = 0;

    if (n <= EXACT)
        try_all(&s, 1, 1);
    else
        try_greedy(&s);
    while (s.best[zero] != 0)
        zero++;
    for (int i = 0; i < n; i++)
        order[i] = s.best[(zero + i) % n];
    if (n > 2 && order[1] > order[n - 1])
        reverse(order, 1, n - 1);
}

/* GB/s decide, and the class where they are equal: whole MB/s, times eight classes. */
static int64_t strength_of(const struct cm_topo_link *l)
{
    return (int64_t)(l->gbs * 1000 + 0.5) * 8 + (CM_TOPO_NCLASSES - (int)l->kind);
}

struct cm_topo_link cm_topo_ring(const struct cm_topo *t, const int *gpus, int n, int *order)
{
    int64_t matrix[CM_TOPO_GPUS * CM_TOPO_GPUS];
    struct cm_topo_link weakest = {.kind = CM_TOPO_X}, l;

    for (int i = 0; i < n * n; i++) {
        l = cm_topo_link(t, gpus[i / n], gpus[i % n]);
        matrix[i] = strength_of(&l);
    }
    cm_ring_search(matrix, n, order);
    for (int i = 0; i < n; i++)
        order[i] = gpus[order[i]];
    for (int i = 0; n > 1 && i < n; i++) {
        l = cm_topo_link(t, order[i], order[(i + 1) % n]);
        if (i == 0 || strength_of(&l) < strength_of(&weakest))
            weakest = l;
    }
    return weakest;
}

void cm_topo_order(const struct cm_topo *t, const int32_t *node, const int32_t *gpu, int n,
                   int32_t *order)
{
    for (int from = 0, to; from < n; from = to) {
        int gpus[CM_TOPO_GPUS], ring[CM_TOPO_GPUS], rank_of[CM_TOPO_GPUS] = {0};

        for (to = from; to < n && node[order[to]] == node[order[from]]; to++) {
            gpus[to - from] = gpu != NULL ? gpu[order[to]] : order[to];
            rank_of[gpus[to - from]] = order[to];
        }
        (void)cm_topo_ring(t, gpus, to - from, ring);
        for (int i = from; i < to; i++)
            order[i] = rank_of[ring[i - from]];
    }
}
