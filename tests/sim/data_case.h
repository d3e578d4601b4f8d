/*
 * One rank's buffers of one operation, filled and checked by the kernels of
 * kernels/data.cu in the simulator, and by the host. Sizes, alignment and roles
 * come from the case's number.
 */
#ifndef CM_TESTS_SIM_DATA_CASE_H
#define CM_TESTS_SIM_DATA_CASE_H

#include "cmsim_test.h"

#include <stdlib.h>

extern "C" {
#include "common/check_gpu.h"

void cm_data_fill_thunk(void **args);
void cm_data_check_thunk(void **args);
void cm_data_list_thunk(void **args);
extern const size_t cm_data_fill_argbytes, cm_data_check_argbytes, cm_data_list_argbytes;
}

enum { THREADS = 32, ALIGN = 16, MAX_N = 33, BLANK = 0xee };

static inline uint32_t below(uint64_t *state, size_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(((*state >> 32) * n) >> 32);
}

/* ---- one rank's buffers ---------------------------------------------------------------------- */

/* With its guards, and no byte behind them. */
struct buffer {
    unsigned char *memory, *payload;
    size_t bytes; /* of the payload */
    size_t room;  /* of the memory */
};

static inline struct buffer buffer_new(size_t bytes, size_t shift)
{
    struct buffer b = {};

    b.bytes = bytes;
    b.room = bytes + shift + 2 * CM_GUARD_BYTES;
    b.memory = (unsigned char *)malloc(b.room);
    if (b.memory == nullptr)
        abort();
    b.payload = b.memory + CM_GUARD_BYTES + shift;
    return b;
}

/* `out` is the region that holds both buffers if it is in place. */
struct world {
    struct cm_check_args args;
    struct cm_sums sums;
    size_t matrix[MAX_N * MAX_N];
    struct buffer in, out;
    size_t width;
    uint64_t random;
    struct cm_gpu_result result;
    uint64_t table[CM_GPU_TABLE_BYTES / sizeof(uint64_t)];
};

static inline size_t sum_of(const size_t *v, int n, int step)
{
    size_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += v[i * step];
    return sum;
}

static inline void set_counts(struct world *w)
{
    struct cm_check_args *a = &w->args;
    struct cm_expect *e = &a->expect;
    const struct cm_coll_info *c = &cm_colls[e->data.coll];
    int n = e->data.n;

    e->count = 1 + below(&w->random, 1 + 400 / (size_t)n);
    a->in_count = c->in_per_rank ? e->count * (size_t)n : e->count;
    a->out_count = c->out_per_rank ? e->count * (size_t)n : e->count;
    if (e->data.coll != CM_ALLTOALLV)
        return;
    for (int i = 0; i < n * n; i++)
        w->matrix[i] = below(&w->random, 3) == 0 ? 0 : below(&w->random, 40);
    a->in_count = sum_of(w->matrix + (size_t)e->rank * (size_t)n, n, 1);
    a->out_count = sum_of(w->matrix + e->rank, n, n);
}

static inline void set_buffers(struct world *w)
{
    struct cm_check_args *a = &w->args;
    size_t most = a->in_count > a->out_count ? a->in_count : a->out_count;
    size_t mine = (size_t)a->expect.rank * a->expect.count;
    size_t shift = below(&w->random, ALIGN / w->width) * w->width;

    if (!a->in_place) {
        w->in = buffer_new(a->in_count * w->width, below(&w->random, ALIGN / w->width) * w->width);
        w->out = buffer_new(a->out_count * w->width, shift);
        a->in = w->in.payload;
        a->out = w->out.payload;
    } else {
        w->out = buffer_new(most * w->width, shift);
        a->in = w->out.payload + (a->in_count < a->out_count ? mine * w->width : 0);
        a->out = w->out.payload + (a->out_count < a->in_count ? mine * w->width : 0);
    }
    a->poisoned = w->out.payload;
}

static inline struct world *world_new(struct cm_data d, bool in_place, uint64_t number)
{
    struct world *w = (struct world *)calloc(1, sizeof(*w));

    if (w == nullptr)
        abort();
    w->random = number;
    w->width = cm_dtypes[d.dtype].bytes;
    d.seed = number;
    w->args.expect.data = d;
    w->args.expect.rank = (int)below(&w->random, (size_t)d.n);
    w->args.expect.root = (int)below(&w->random, (size_t)d.n);
    w->args.expect.matrix = w->matrix;
    w->args.expect.sums = &w->sums;
    w->args.in_place = in_place;
    w->args.poison_seed = number;
    if (cm_colls[d.coll].reduces)
        cm_sums_of(&d, &w->sums);
    set_counts(w);
    set_buffers(w);
    return w;
}

static inline void world_free(struct world *w)
{
    free(w->in.memory);
    free(w->out.memory);
    free(w);
}

static inline const char *name_of(const struct world *w)
{
    static char name[160];
    const struct cm_expect *e = &w->args.expect;

    snprintf(name, sizeof(name), "%s %s %s n=%d rank %d root %d count %zu%s at %zu and %zu",
             cm_colls[e->data.coll].name, cm_dtypes[e->data.dtype].name, cm_ops[e->data.op].name,
             e->data.n, e->rank, e->root, e->count, w->args.in_place ? " in place" : "",
             (size_t)((uintptr_t)w->args.in % ALIGN), (size_t)((uintptr_t)w->args.out % ALIGN));
    return name;
}

/* ---- host and device ------------------------------------------------------------------------- */

static inline void run(void (*thunk)(void **), size_t bytes, const struct cm_gpu_data *a,
                       unsigned blocks)
{
    const char *error;

    CHECK(bytes == sizeof(*a), "arguments of %zu bytes, the kernel takes %zu", sizeof(*a), bytes);
    fresh(seeded(1));
    start(thunk, a, bytes, {blocks, 1, THREADS, 0});
    error = finish();
    CHECK(error == nullptr, "%s", text(error));
}

static inline void device_fill(struct world *w, unsigned slices)
{
    struct cm_gpu_data a;

    cm_gpu_fill_of(&w->args, &a);
    a.slices = slices;
    run(cm_data_fill_thunk, cm_data_fill_argbytes, &a, slices);
}

/* As a meter does it. */
static inline void host_fill(struct world *w)
{
    const struct cm_check_args *a = &w->args;
    const struct cm_expect *e = &a->expect;

    cm_poison(w->out.payload, w->out.bytes, a->poison_seed);
    cm_guard_fill(w->out.payload, w->out.bytes);
    if (!a->in_place)
        cm_guard_fill(w->in.payload, w->in.bytes);
    if (!a->in_place || cm_data_reads(e->data.coll, e->rank, e->root))
        cm_data_input(&e->data, e->rank, 0, a->in_count, (void *)a->in);
}

static inline enum cm_status copy_back(void *, void *host, const void *src, size_t bytes)
{
    memcpy(host, src, bytes);
    return CM_OK;
}

static inline struct cm_check device_check(struct world *w, unsigned slices)
{
    struct cm_check c = {};
    struct cm_gpu_data a;

    memset(w->table, 0xa5, sizeof(w->table));
    memset(&w->result, 0, sizeof(w->result));
    cm_gpu_table_of(&w->args, w->table);
    cm_gpu_check_of(&w->args, &a);
    a.slices = slices;
    a.table = (uintptr_t)w->table;
    a.found = (uintptr_t)&w->result;
    run(cm_data_check_thunk, cm_data_check_argbytes, &a, slices);
    if (cm_gpu_wrong(&w->result.found) != 0)
        run(cm_data_list_thunk, cm_data_list_argbytes, &a, a.nparts);
    CHECK(cm_gpu_found_to(&w->args, &w->result.found, copy_back, nullptr, &c) == CM_OK, "%s",
          name_of(w));
    return c;
}

static inline struct cm_check host_check(const struct world *w)
{
    struct cm_check c = {};

    cm_check_output(&w->args, &c);
    cm_check_input(&w->args, &c);
    cm_check_guard(w->out.payload, w->out.bytes, &c);
    if (!w->args.in_place)
        cm_check_guard(w->in.payload, w->in.bytes, &c);
    return c;
}

static inline bool same_fault(const struct cm_wrong *a, const struct cm_wrong *b)
{
    return a->kind == b->kind && a->index == b->index && a->guard_at == b->guard_at &&
           memcmp(a->want, b->want, sizeof(a->want)) == 0 &&
           memcmp(a->got, b->got, sizeof(a->got)) == 0 && a->source == b->source &&
           a->like == b->like && a->like_rank == b->like_rank;
}

#endif
