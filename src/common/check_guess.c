/*
 * What a wrong result looks like: poison, the previous result, another rank's
 * data, a sum with one contribution lost or doubled. Each guess must hold for
 * a few elements in a row, so that small types do not match by chance.
 */
#include <string.h>

#include "base/status.h"
#include "common/check.h"

enum { MAX_RANKS = 128 };

struct guess {
    const struct cm_check_args *args;
    size_t index, run; /* elements of OUT */
    const unsigned char *got;
    struct cm_source source;
    size_t bytes;
};

static bool is_stale(const struct guess *g)
{
    struct cm_expect old = g->args->expect;
    uint64_t want[CM_GUESS_RUN];

    old.data.seed = g->args->stale_seed;
    old.sums = NULL;
    return g->args->has_stale && cm_data_expect(&old, g->index, g->run, want) &&
           memcmp(want, g->got, g->run * g->bytes) == 0;
}

static bool is_of_rank(const struct guess *g, int rank)
{
    uint64_t want[CM_GUESS_RUN];

    cm_data_input(&g->args->expect.data, rank, g->source.index, g->run, want);
    return memcmp(want, g->got, g->run * g->bytes) == 0;
}

/* want + times x contribution, rounded to the type. */
static void add_scaled(enum cm_dtype t, const void *want, const void *x, int times, void *out)
{
    if (cm_dtypes[t].kind == CM_KIND_FLOAT)
        cm_store(t, out, cm_load(t, want) + times * cm_load(t, x));
    else
        cm_int_store(t, out, cm_int_load(t, want) + (uint64_t)times * cm_int_load(t, x));
}

/* Whether the result is right up to `times` contributions of `rank`. */
static bool is_off_by(const struct guess *g, int rank, int times)
{
    const struct cm_data *d = &g->args->expect.data;
    uint64_t want[CM_GUESS_RUN], x[CM_GUESS_RUN], all[CM_GUESS_RUN];
    bool changes = false;

    times *= d->op == CM_MULSUM ? cm_mulsum_scalar(rank) : 1;
    cm_data_expect(&g->args->expect, g->index, g->run, want);
    cm_data_input(d, rank, g->source.index, g->run, x);
    for (size_t i = 0; i < g->run; i++) {
        unsigned char *to = (unsigned char *)all + i * g->bytes;

        add_scaled(d->dtype, (char *)want + i * g->bytes, (char *)x + i * g->bytes, times, to);
        changes |= memcmp(to, (char *)want + i * g->bytes, g->bytes) != 0;
    }
    return changes && memcmp(all, g->got, g->run * g->bytes) == 0;
}

static enum cm_likeness guess_rank(const struct guess *g, int rank)
{
    const struct cm_data *d = &g->args->expect.data;

    if (!cm_colls[d->coll].reduces)
        return rank != g->source.rank && is_of_rank(g, rank) ? CM_LIKE_RANK : CM_LIKE_NOTHING;
    if (d->op != CM_SUM && d->op != CM_MULSUM)
        return CM_LIKE_NOTHING;
    if (is_off_by(g, rank, -1))
        return CM_LIKE_LOST;
    return is_off_by(g, rank, 1) ? CM_LIKE_TWICE : CM_LIKE_NOTHING;
}

static bool is_poison(const struct guess *g)
{
    const struct cm_check_args *a = g->args;
    size_t phase = cm_poison_phase(a, a->out) + g->index * g->bytes;
    uint64_t word = cm_poison_at(cm_poison_word(a->poison_seed), phase);

    return memcmp(g->got, &word, g->bytes) == 0;
}

void cm_check_guess(const struct cm_check_args *a, size_t index, const unsigned char *got,
                    size_t run, struct cm_wrong *w)
{
    struct guess g = {.args = a, .index = index, .got = got};
    int n = a->expect.data.n < MAX_RANKS ? a->expect.data.n : MAX_RANKS;

    g.bytes = cm_dtypes[a->expect.data.dtype].bytes;
    g.source = cm_data_source(&a->expect, index);
    g.run = g.source.length < run ? g.source.length : run;
    w->like = CM_LIKE_NOTHING;
    w->like_rank = -1;
    if (is_poison(&g))
        w->like = CM_LIKE_POISON;
    else if (is_stale(&g))
        w->like = CM_LIKE_STALE;
    for (int rank = 0; rank < n && w->like == CM_LIKE_NOTHING; rank++) {
        w->like = guess_rank(&g, rank);
        w->like_rank = w->like != CM_LIKE_NOTHING ? rank : -1;
    }
}
