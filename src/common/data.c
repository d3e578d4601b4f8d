/*
 * Host side of the test data: inputs and expected outputs, block by block.
 *
 * A block is at most CM_BLOCK elements and never crosses an index whose lower
 * 32 bits are 0, so the inner loops run on 32-bit indices and vectorise. The
 * kind of data is a constant inside each of them.
 */
#include "common/data.h"

#include <assert.h>
#include <string.h>

#include "common/data_block.h"

static uint32_t power_above(uint64_t v)
{
    uint32_t p = 1;

    while (p < v)
        p *= 2;
    return p;
}

/*
 * Share a budget of `limit` between n ranks: either each takes integers up to
 * `amplitude`, or only one rank in 2^k takes +-1. Every n neighbours of the
 * window then add up to at most `limit`.
 */
static void share_budget(struct cm_gen *g, uint64_t limit)
{
    uint64_t each = limit / g->n;

    g->amplitude = 1;
    while (g->amplitude * 2 <= each)
        g->amplitude *= 2;
    g->sparse_mask = each != 0 ? 0 : power_above((g->n + limit - 1) / limit) - 1;
}

static int log2_floor(uint32_t v)
{
    return 31 - __builtin_clz(v);
}

static enum cm_gen_kind kind_of(const struct cm_data *d)
{
    bool is_float = cm_dtypes[d->dtype].kind == CM_KIND_FLOAT;

    if (!cm_colls[d->coll].reduces)
        return CM_GEN_BITS;
    if (d->op == CM_MIN || d->op == CM_MAX)
        return CM_GEN_EXTREME;
    if (d->op == CM_PROD)
        return is_float ? CM_GEN_POWERS : CM_GEN_ODD;
    return is_float ? CM_GEN_EXACT : CM_GEN_WRAP;
}

/* How a float type lies in memory, and which sums it holds exactly. */
static void describe_float(const struct cm_data *d, struct cm_gen *g)
{
    const struct cm_dtype_info *t = &cm_dtypes[d->dtype];
    uint32_t bits = 8 * (uint32_t)t->bytes;
    uint32_t bias = (1u << (bits - (uint32_t)t->mantissa - 1)) - 1;
    int room = t->max_exp - t->mantissa -
               3; /* largest scale with 2^mantissa 2^(scale + 3) finite */
    uint64_t exact = (uint64_t)1 << t->mantissa;

    g->mantissa_bits = (uint32_t)t->mantissa - 1;
    g->sign = (uint64_t)1 << (bits - 1);
    g->top = g->sign >> 1;
    g->second = g->sign >> 2;
    g->sign_shift = bits - 1;
    if (d->dtype != CM_DOUBLE) {
        g->shift = 23 - g->mantissa_bits;
        g->rebias = (127 - bias) << g->mantissa_bits;
    }
    if (g->kind == CM_GEN_POWERS)
        share_budget(g, (uint64_t)(t->max_exp - 3));
    if (g->kind == CM_GEN_EXACT)
        share_budget(g, d->op == CM_MULSUM ? exact / 2 : exact);
    if (d->op == CM_AVG) /* keep quotients away from the denormals */
        g->scale = log2_floor(g->n) < room ? log2_floor(g->n) : room;
}

static void describe_int(const struct cm_data *d, struct cm_gen *g)
{
    bool max = d->op == CM_MAX;
    uint64_t high = (uint64_t)1 << (8 * cm_dtypes[d->dtype].bytes - 1);

    g->pair = high | high >> 1;
    if (cm_dtypes[d->dtype].kind == CM_KIND_INT)
        g->loser = max ? high : high >> 1;
    else
        g->loser = max ? 0 : g->pair;
}

void cm_gen_of(const struct cm_data *d, struct cm_gen *out)
{
    uint64_t key = cm_mix_key(d->seed);
    struct cm_gen g = {.kind = kind_of(d), .n = (uint32_t)d->n};
    uint32_t window = power_above(2 * (uint64_t)d->n);

    assert(d->n >= 1 && d->n <= CM_MAX_RANKS);
    g.index_key = cm_mix_key(key + 1);
    g.rank_key = cm_mix_key(key + 2);
    g.table_key = cm_mix_key(key + 3);
    g.window_mask = (window < CM_DATA_MIN_WINDOW ? CM_DATA_MIN_WINDOW : window) - 1;
    g.insider_mask = d->n > 8 ? power_above(((uint64_t)d->n + 3) / 4) - 1 : 0;
    g.outsiders_negative = d->op == CM_MAX;
    if (cm_dtypes[d->dtype].kind == CM_KIND_FLOAT)
        describe_float(d, &g);
    else
        describe_int(d, &g);
    *out = g;
}

static ALWAYS_INLINE void fill32(const struct cm_gen *g, const struct cm_gen_lane *l, struct span s,
                                 uint32_t *out, enum cm_gen_kind kind)
{
    const struct cm_gen gen = *g;
    const struct cm_gen_lane lane = *l;

    for (uint32_t j = 0; j < s.n; j++)
        out[j] = cm_gen_input32(&gen, &lane, s.low + j, kind);
}

static ALWAYS_INLINE void fill64(const struct cm_gen *g, const struct cm_gen_lane *l, struct span s,
                                 uint64_t *out, enum cm_gen_kind kind)
{
    const struct cm_gen gen = *g;
    const struct cm_gen_lane lane = *l;

    for (uint32_t j = 0; j < s.n; j++)
        out[j] = cm_gen_input64(&gen, &lane, s.low + j, kind);
}

static void block32(const struct cm_gen *g, const struct cm_gen_lane *l, struct span s,
                    uint32_t *out)
{
    switch (g->kind) {
    case CM_GEN_BITS:
        return fill32(g, l, s, out, CM_GEN_BITS);
    case CM_GEN_EXTREME:
        return fill32(g, l, s, out, CM_GEN_EXTREME);
    case CM_GEN_WRAP:
        return fill32(g, l, s, out, CM_GEN_WRAP);
    case CM_GEN_EXACT:
        return fill32(g, l, s, out, CM_GEN_EXACT);
    case CM_GEN_ODD:
        return fill32(g, l, s, out, CM_GEN_ODD);
    case CM_GEN_POWERS:
        return fill32(g, l, s, out, CM_GEN_POWERS);
    }
}

static void block64(const struct cm_gen *g, const struct cm_gen_lane *l, struct span s,
                    uint64_t *out)
{
    switch (g->kind) {
    case CM_GEN_BITS:
        return fill64(g, l, s, out, CM_GEN_BITS);
    case CM_GEN_EXTREME:
        return fill64(g, l, s, out, CM_GEN_EXTREME);
    case CM_GEN_WRAP:
        return fill64(g, l, s, out, CM_GEN_WRAP);
    case CM_GEN_EXACT:
        return fill64(g, l, s, out, CM_GEN_EXACT);
    case CM_GEN_ODD:
        return fill64(g, l, s, out, CM_GEN_ODD);
    case CM_GEN_POWERS:
        return fill64(g, l, s, out, CM_GEN_POWERS);
    }
}

void cm_data_input_block(const struct cm_gen *g, int rank, struct span s, size_t bytes,
                         union cm_block *out)
{
    struct cm_gen_lane lane = cm_gen_lane_of(g, (uint32_t)rank, s.page);

    if (bytes == 8)
        block64(g, &lane, s, out->u64);
    else
        block32(g, &lane, s, out->u32);
}

void cm_data_input(const struct cm_data *d, int rank, size_t first, size_t count, void *dst)
{
    size_t bytes = cm_dtypes[d->dtype].bytes;
    unsigned char *to = dst;
    struct cm_gen gen;
    union cm_block block;

    cm_gen_of(d, &gen);
    while (count > 0) {
        struct span s = span_of(first, count);

        cm_data_input_block(&gen, rank, s, bytes, &block);
        block_store(&block, s.n, bytes, to);
        to += s.n * bytes;
        first += s.n;
        count -= s.n;
    }
}

bool cm_data_writes(enum cm_coll coll, int rank, int root)
{
    return (coll != CM_REDUCE && coll != CM_GATHER) || rank == root;
}

bool cm_data_reads(enum cm_coll coll, int rank, int root)
{
    return (coll != CM_BROADCAST && coll != CM_SCATTER) || rank == root;
}

/* alltoallv: both sides are packed in rank order. */
void cm_data_runs(const struct cm_expect *e, struct cm_run *runs)
{
    size_t n = (size_t)e->data.n, me = (size_t)e->rank;
    uint64_t start = 0;

    for (size_t from = 0; from < n; from++) {
        runs[from] = (struct cm_run){.start = start};
        for (size_t to = 0; to < me; to++)
            runs[from].index += e->matrix[from * n + to];
        start += e->matrix[from * n + me];
    }
}

/* The one run that is asked for, without a table of all. */
static struct cm_source matrix_source(const struct cm_expect *e, size_t index)
{
    size_t n = (size_t)e->data.n, me = (size_t)e->rank, from = 0;
    struct cm_source s;

    while (from < n - 1 && index >= e->matrix[from * n + me]) {
        index -= e->matrix[from * n + me];
        from++;
    }
    s.rank = (int)from;
    s.length = e->matrix[from * n + me] - index;
    s.index = index;
    for (size_t to = 0; to < me; to++)
        s.index += e->matrix[from * n + to];
    return s;
}

void cm_data_route(const struct cm_expect *e, struct cm_route *out)
{
    uint64_t block = e->count > 0 ? e->count : 1, mine = (uint64_t)e->rank * e->count;
    struct cm_route r = {.from = CM_FROM_ALL, .block = block};

    switch (e->data.coll) {
    case CM_REDUCE_SCATTER:
        r.base = mine;
        break;
    case CM_BROADCAST:
        r.from = e->root;
        break;
    case CM_SCATTER:
        r.from = e->root;
        r.base = mine;
        break;
    case CM_SENDRECV:
        r.from = (e->rank + e->data.n - 1) % e->data.n;
        break;
    case CM_ALL_GATHER:
    case CM_HYPERCUBE:
    case CM_GATHER:
        r.from = CM_FROM_BLOCKS;
        break;
    case CM_ALLTOALL:
        r.from = CM_FROM_BLOCKS;
        r.base = mine;
        break;
    case CM_ALLTOALLV:
        r.from = CM_FROM_RUNS;
        r.nruns = (uint32_t)e->data.n;
        break;
    default: /* all_reduce, reduce: all ranks, the same index */
        break;
    }
    *out = r;
}

struct cm_source cm_data_source(const struct cm_expect *e, size_t index)
{
    struct cm_route route;

    if (e->data.coll == CM_ALLTOALLV)
        return matrix_source(e, index);
    cm_data_route(e, &route);
    return cm_route_at(&route, index);
}

bool cm_data_expect(const struct cm_expect *e, size_t first, size_t count, void *dst)
{
    size_t bytes = cm_dtypes[e->data.dtype].bytes;
    const struct cm_sums *sums = e->sums;
    unsigned char *to = dst;
    struct cm_sums own;

    if (!cm_data_writes(e->data.coll, e->rank, e->root))
        return false;
    if (sums == NULL && cm_colls[e->data.coll].reduces) {
        cm_sums_of(&e->data, &own);
        sums = &own;
    }
    while (count > 0) {
        struct cm_source s = cm_data_source(e, first);
        size_t n = s.length < count ? s.length : count;

        if (s.rank < 0)
            cm_data_reduced(&e->data, sums, s.index, n, to);
        else
            cm_data_input(&e->data, s.rank, s.index, n, to);
        to += n * bytes;
        first += n;
        count -= n;
    }
    return true;
}
