/* What operations of the fake NCCL give, in the order of ranks. */
#include "fakenccl.h"

#include <string.h>

#include "base/dtype.h"

/* By ncclDataType_t. */
static const enum cm_dtype dtypes[] = {CM_INT8,   CM_UINT8,    CM_INT32,  CM_UINT32,
                                       CM_INT64,  CM_UINT64,   CM_HALF,   CM_FLOAT,
                                       CM_DOUBLE, CM_BFLOAT16, CM_F8E4M3, CM_F8E5M2};
_Static_assert(sizeof(dtypes) / sizeof(dtypes[0]) == NTYPES, "all of them");

size_t fake_width(int type)
{
    return cm_dtypes[dtypes[type]].bytes;
}

static int64_t whole(enum cm_dtype t, const void *p)
{
    uint64_t v = 0;
    int unused = 64 - 8 * (int)cm_dtypes[t].bytes;

    memcpy(&v, p, cm_dtypes[t].bytes);
    v <<= unused;
    return cm_dtypes[t].kind == CM_KIND_INT ? (int64_t)v >> unused : (int64_t)(v >> unused);
}

static bool less(enum cm_dtype t, int64_t a, int64_t b)
{
    return cm_dtypes[t].kind == CM_KIND_UINT ? (uint64_t)a < (uint64_t)b : a < b;
}

static void combine_whole(const struct world *w, const struct call *c, size_t at, char *out)
{
    enum cm_dtype t = dtypes[c->type];
    size_t width = cm_dtypes[t].bytes;
    int64_t v = whole(t, w->call[0].in + at * width);

    for (int r = 1; r < w->n; r++) {
        int64_t x = whole(t, w->call[r].in + at * width);

        if (c->op == CM_PROD)
            v = (int64_t)((uint64_t)v * (uint64_t)x);
        else if (c->op == CM_MAX || c->op == CM_MIN)
            v = less(t, v, x) == (c->op == CM_MAX) ? x : v;
        else
            v = (int64_t)((uint64_t)v + (uint64_t)x);
    }
    memcpy(out, &v, width);
    v = whole(t, out);
    if (c->op == CM_AVG && cm_dtypes[t].kind == CM_KIND_UINT)
        v = (int64_t)((uint64_t)v / (uint64_t)w->n);
    else if (c->op == CM_AVG)
        v /= w->n;
    memcpy(out, &v, width);
}

static void combine_float(const struct world *w, const struct call *c, size_t at, char *out)
{
    enum cm_dtype t = dtypes[c->type];
    size_t width = cm_dtypes[t].bytes;
    double v = cm_load(t, w->call[0].in + at * width);

    for (int r = 1; r < w->n; r++) {
        double x = cm_load(t, w->call[r].in + at * width);

        if (c->op == CM_PROD)
            v *= x;
        else if (c->op == CM_MAX)
            v = x > v ? x : v;
        else if (c->op == CM_MIN)
            v = x < v ? x : v;
        else
            v += x;
    }
    cm_store(t, out, c->op == CM_AVG ? v / w->n : v);
}

/* `count` elements of the reduction from `first` on. */
static void reduce_into(const struct world *w, const struct call *c, size_t first, char *out)
{
    bool is_float = cm_dtypes[dtypes[c->type]].kind == CM_KIND_FLOAT;

    for (size_t i = 0; i < c->count; i++)
        (is_float ? combine_float : combine_whole)(w, c, first + i, out + i * fake_width(c->type));
}

/* The k-th send of `from` to `to`; NULL: there is none. */
static const struct part *kth_send(const struct world *w, int from, int to, int k)
{
    const struct call *c = &w->call[from];

    for (int i = 0; i < c->nparts; i++) {
        if (c->parts[i].sends && c->parts[i].peer == to && k-- == 0)
            return &c->parts[i];
    }
    return NULL;
}

/* All receives of rank `me`, one after the other in `out`. false: a send is missing or odd. */
static bool receive_into(const struct world *w, int me, char *out)
{
    int seen[MAX_RANKS] = {0};

    for (int i = 0; i < w->call[me].nparts; i++) {
        const struct part *mine = &w->call[me].parts[i], *theirs;

        if (mine->sends)
            continue;
        theirs = kth_send(w, mine->peer, me, seen[mine->peer]++);
        if (theirs == NULL || theirs->bytes != mine->bytes)
            return false;
        memcpy(out, theirs->at, mine->bytes);
        out += mine->bytes;
    }
    return true;
}

size_t fake_result_bytes(const struct world *w, int me)
{
    const struct call *c = &w->call[me];
    size_t bytes = 0;

    if (c->what != PARTS)
        return c->count * fake_width(c->type) * (c->what == ALL_GATHER ? (size_t)w->n : 1);
    for (int i = 0; i < c->nparts; i++)
        bytes += c->parts[i].sends ? 0 : c->parts[i].bytes;
    return bytes;
}

bool fake_result_into(const struct world *w, int me, char *out)
{
    const struct call *c = &w->call[me];
    size_t bytes = c->what != PARTS ? c->count * fake_width(c->type) : 0;

    switch (c->what) {
    case ALL_REDUCE:
    case REDUCE:
        reduce_into(w, c, 0, out);
        return true;
    case REDUCE_SCATTER:
        reduce_into(w, c, (size_t)me * c->count, out);
        return true;
    case ALL_GATHER:
        for (int r = 0; r < w->n; r++)
            memcpy(out + (size_t)r * bytes, w->call[r].in, bytes);
        return true;
    case BROADCAST:
        memcpy(out, w->call[c->root].in, bytes);
        return true;
    case PARTS:
        return receive_into(w, me, out);
    }
    return false;
}
