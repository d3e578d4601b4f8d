/*
 * From a rank's buffers to the arguments of the kernels, and from what the
 * kernels found to what is said about it. The parts are those of the host's
 * check, so that both look at the same places in the same order.
 */
#include "common/check_gpu.h"

#include <assert.h>
#include <string.h>

enum { SLICE_BYTES = 32768 }; /* worth a thread block */

_Static_assert((int)CM_MAX_PARTS == (int)CM_GPU_PARTS, "all parts of a check in one launch");
_Static_assert(CM_DATA_MAX_WINDOW * sizeof(int64_t) <= CM_GPU_TABLE_BYTES, "sums");
_Static_assert(CM_MAX_RANKS * sizeof(struct cm_run) <= CM_GPU_TABLE_BYTES, "runs");
_Static_assert(sizeof(struct cm_gpu_data) <= 4096, "limit of kernel parameters");

static void set_parts(const struct cm_check_args *a, const struct cm_parts *parts,
                      struct cm_gpu_data *out)
{
    uint32_t width = (uint32_t)cm_dtypes[a->expect.data.dtype].bytes;
    uint64_t bytes = 0, slices;

    for (int i = 0; i < parts->n; i++) {
        const struct cm_part *p = &parts->part[i];
        struct cm_gpu_part *to = &out->parts[i];

        to->at = (uintptr_t)p->at;
        to->count = p->count;
        to->first = p->content == CM_CONTENT_POISON ? cm_poison_phase(a, p->at) : p->first;
        to->content = p->content;
        to->width = p->content == CM_CONTENT_GUARD ? 1 : width;
        bytes += p->count * to->width;
    }
    slices = bytes / SLICE_BYTES + 1;
    out->nparts = (uint32_t)parts->n;
    out->slices = slices < CM_GPU_SLICES ? (uint32_t)slices : CM_GPU_SLICES;
}

static void set_data(const struct cm_check_args *a, const struct cm_sums *sums,
                     struct cm_gpu_data *out)
{
    memset(out, 0, sizeof(*out));
    cm_want_of(&a->expect.data, sums, &out->want);
    cm_data_route(&a->expect, &out->route);
    out->rank = a->expect.rank;
    out->poison = cm_poison_word(a->poison_seed);
}

static const struct cm_sums no_sums; /* where there are no results */

void cm_gpu_fill_of(const struct cm_check_args *a, struct cm_gpu_data *out)
{
    struct cm_parts parts;

    set_data(a, &no_sums, out);
    cm_parts_fill(a, &parts);
    set_parts(a, &parts, out);
}

void cm_gpu_check_of(const struct cm_check_args *a, struct cm_gpu_data *out)
{
    bool reduces = cm_colls[a->expect.data.coll].reduces;
    struct cm_parts parts;

    assert(!reduces || a->expect.sums != NULL);
    set_data(a, reduces ? a->expect.sums : &no_sums, out);
    cm_parts_check(a, &parts);
    set_parts(a, &parts, out);
}

size_t cm_gpu_table_of(const struct cm_check_args *a, void *table)
{
    const struct cm_expect *e = &a->expect;
    struct cm_gen g;
    size_t bytes;

    if (e->data.coll == CM_ALLTOALLV) {
        cm_data_runs(e, table);
        return (size_t)e->data.n * sizeof(struct cm_run);
    }
    cm_gen_of(&e->data, &g);
    if (g.kind != CM_GEN_EXACT && g.kind != CM_GEN_ODD && g.kind != CM_GEN_POWERS)
        return 0;
    bytes = ((size_t)g.window_mask + 1) * sizeof(e->sums->at[0]);
    memcpy(table, e->sums->at, bytes);
    return bytes;
}

int64_t cm_gpu_wrong(const struct cm_gpu_found *f)
{
    uint64_t wrong = 0;

    for (int i = 0; i < CM_GPU_PARTS; i++)
        wrong += f->wrong[i];
    return (int64_t)wrong;
}

/* Fetch what is at element `at` of the part, and record it. */
static enum cm_status record(const struct cm_check_args *a, const struct cm_part *p, size_t at,
                             cm_fetch_fn *fetch, void *ctx, struct cm_check *c)
{
    size_t left = p->count - at, run = left < CM_GUESS_RUN ? left : CM_GUESS_RUN;
    size_t width = p->content == CM_CONTENT_GUARD ? 1 : cm_dtypes[a->expect.data.dtype].bytes;
    unsigned char got[CM_GUESS_RUN * 8];
    enum cm_status st = fetch(ctx, got, p->at + at * width, run * width);

    if (st == CM_OK)
        cm_check_record(a, p, at, got, run, c);
    return st;
}

enum cm_status cm_gpu_found_to(const struct cm_check_args *a, const struct cm_gpu_found *f,
                               cm_fetch_fn *fetch, void *ctx, struct cm_check *c)
{
    enum cm_status st = CM_OK;
    struct cm_parts parts;

    cm_parts_check(a, &parts);
    c->wrong += cm_gpu_wrong(f);
    for (int i = 0; i < parts.n; i++)
        for (uint64_t k = 0; st == CM_OK && k < f->nfirst[i] && c->nfaults < CM_MAX_FAULTS; k++)
            st = record(a, &parts.part[i], f->first[i][k], fetch, ctx, c);
    return st;
}
