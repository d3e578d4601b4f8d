/*
 * Between timed operations: touch or flush, meet, start together.
 *
 * In place, an operation destroys its input. Rewriting restores the data of the
 * last fill, so the next operation is again the first one on them, and its result
 * is defined even where repeating it would not be. Out of place, IN is rewritten
 * with what it holds, so that an operation that spoils it is still found out.
 */
#include "common/cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "common/measure_int.h"

enum {
    LEAD_NS = 1500,         /* from the last arrival to the start: ranks must see each other, ... */
    LEAD_PER_RANK_NS = 400, /* ... a line from each, from far away */
    CLOCK_READS = 64,
    CLOCK_BATCHES = 8
};

const char *cm_cache_name(enum cm_cache_mode mode)
{
    static const char *const names[] = {
        [CM_CACHE_HOT] = "hot", [CM_CACHE_TOUCHED] = "touched", [CM_CACHE_COLD] = "cold"};

    return names[mode];
}

/* Times of one clock; and nobody may spin while another waits for its core. */
bool cm_cache_aligns(const struct cm_rank *r)
{
    for (int i = 1; i < r->n; i++)
        if (strcmp(r->infos[i].boot_id, r->infos[0].boot_id) != 0)
            return false;
    return !r->oversubscribed;
}

/* Without an instruction that flushes: what is larger than the caches pushes all else out. */
static enum cm_status open_stream(struct cm_cache *c)
{
    c->stream_bytes = cm_cache_beyond();
    c->stream = malloc(c->stream_bytes);
    if (c->stream == NULL)
        return CM_FAIL(CM_ENOMEM, "--cache cold: %zu bytes to fill the caches", c->stream_bytes);
    memset(c->stream, 1, c->stream_bytes); /* pages of its own, not the page of zeros */
    return CM_OK;
}

enum cm_status cm_cache_open(struct cm_meter *m)
{
    const struct cm_rank *r = m->rank;
    enum cm_cache_mode mode = r->opts->run.cache;
    struct cm_cache *c;
    enum cm_status st = CM_OK;

    m->cache = NULL;
    if (mode == CM_CACHE_HOT)
        return CM_OK;
    if (m->ops->recache == NULL)
        return r->rank != 0 ? CM_EUNSUP
                            : CM_FAIL(CM_EUNSUP,
                                      "--cache '%s': on GPUs operations are timed as they follow "
                                      "each other in a stream, with hot buffers only",
                                      cm_cache_name(mode));
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return CM_FAIL(CM_ENOMEM, "--cache: %zu bytes", sizeof(*c));
    c->mode = mode;
    c->aligned = cm_cache_aligns(r);
    c->starts = malloc((size_t)r->n * sizeof(*c->starts));
    if (c->starts == NULL)
        st = CM_FAIL(CM_ENOMEM, "--cache: times of %d ranks", r->n);
    c->flusher = mode == CM_CACHE_COLD ? cm_flusher_find() : NULL;
    if (st == CM_OK && mode == CM_CACHE_COLD && c->flusher == NULL)
        st = open_stream(c);
    if (st == CM_OK)
        m->cache = c;
    else
        cm_cache_close(c);
    return st;
}

void cm_cache_close(struct cm_cache *c)
{
    if (c == NULL)
        return;
    free(c->stream);
    free(c->starts);
    free(c);
}

/* ---- the buffers of the host ---- */

static void touch(struct cm_meter *m, struct cm_trial *t)
{
    struct cm_check_args a = cm_meter_args(m, t);
    size_t width = cm_dtypes[t->op.dtype].bytes;
    int rank = a.expect.rank;

    if (cm_data_writes(t->op.coll, rank, t->op.root))
        cm_lines_read(t->out, t->recv * width);
    if (!cm_data_reads(t->op.coll, rank, t->op.root))
        return;
    if (t->op.in_place)
        cm_data_input(&a.expect.data, rank, 0, t->send, t->in);
    else
        cm_lines_rewrite(t->in, t->send * width);
}

static void chill(const struct cm_cache *c, const struct cm_trial *t)
{
    size_t width = cm_dtypes[t->op.dtype].bytes;

    if (c->flusher == NULL) {
        cm_lines_rewrite(c->stream, c->stream_bytes);
    } else if (t->op.in_place) {
        cm_lines_flush(c->flusher, t->region, t->region_bytes);
    } else {
        cm_lines_flush(c->flusher, t->in, t->send * width);
        cm_lines_flush(c->flusher, t->out, t->recv * width);
    }
}

enum cm_status cm_cache_host(struct cm_meter *m, struct cm_trial *t)
{
    if (m->cache->mode == CM_CACHE_COLD) {
        chill(m->cache, t);
        return CM_OK;
    }
    touch(m, t);
    if (t->op.in_place)
        t->ops = 0; /* the next one is the first on these data */
    return CM_OK;
}

/* ---- the start ---- */

/*
 * Each rank tells when it arrived, and all know when the last one did; a moment
 * later, by the clock, they start. A clock that others do not share (a time
 * namespace) shows as a start far away: then it is now.
 */
static enum cm_status start_by_clock(struct cm_meter *m)
{
    struct cm_rank *r = m->rank;
    int64_t *starts = m->cache->starts, mine = cm_now_ns(), lead, at = mine, now;
    enum cm_status st;

    atomic_store_explicit(&m->diag->phase, CM_AT_SYNC, memory_order_relaxed);
    st = cm_team_gather(&r->team, &mine, sizeof(mine), starts);
    if (st != CM_OK)
        return st;
    for (int i = 0; i < r->n; i++)
        at = starts[i] > at ? starts[i] : at;
    lead = LEAD_NS + (int64_t)r->n * LEAD_PER_RANK_NS;
    at += lead;
    do
        now = cm_now_ns();
    while (now < at && at - now <= lead);
    return CM_OK;
}

enum cm_status cm_cache_between(struct cm_meter *m, struct cm_trial *t)
{
    enum cm_status st = t->idle ? CM_OK : m->ops->recache(m, t);

    if (st == CM_OK)
        st = m->ops->sync(m);
    if (st != CM_OK)
        return st;
    return m->cache->aligned ? start_by_clock(m) : cm_meter_barrier(m);
}

double cm_cache_clock_ns(void)
{
    int64_t least = INT64_MAX;

    for (int b = 0; b < CLOCK_BATCHES; b++) {
        int64_t start = cm_now_ns(), end = start;

        for (int i = 0; i < CLOCK_READS; i++)
            end = cm_now_ns();
        least = end - start < least ? end - start : least;
    }
    return (double)least / CLOCK_READS;
}
