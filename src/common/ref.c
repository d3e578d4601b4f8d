/*
 * The host reference: one short function per collective. A reader should be
 * able to see that each is the definition; nothing here is meant to be fast.
 */
#include "common/ref.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef void ref_fn(const struct cm_ref *r, const void *const *in, void *const *out);

static size_t width(const struct cm_ref *r)
{
    return cm_dtypes[r->dtype].bytes;
}

static const char *at(const struct cm_ref *r, const void *base, size_t element)
{
    return (const char *)base + element * width(r);
}

static char *at_mut(const struct cm_ref *r, void *base, size_t element)
{
    return (char *)base + element * width(r);
}

static double combine_real(enum cm_op op, double a, double b, bool single)
{
    double v = 0;

    switch (op) {
    case CM_PROD:
        v = a * b;
        break;
    case CM_MAX:
        return fmax(a, b);
    case CM_MIN:
        return fmin(a, b);
    default:
        v = a + b;
    }
    return single ? (float)v : v; /* exact: the rounding of a double sum or product of floats to
                                     float is the float sum or product */
}

static uint64_t combine_int(const struct cm_ref *r, uint64_t a, uint64_t b)
{
    bool less = cm_dtypes[r->dtype].kind == CM_KIND_INT ? (int64_t)a < (int64_t)b : a < b;

    switch (r->op) {
    case CM_PROD:
        return a * b;
    case CM_MAX:
        return less ? b : a;
    case CM_MIN:
        return less ? a : b;
    default:
        return a + b;
    }
}

static void reduce_int(const struct cm_ref *r, const void *const *in, size_t offset, void *out)
{
    uint64_t v = 0, n = (uint64_t)r->n;

    for (int rank = 0; rank < r->n; rank++) {
        uint64_t x = cm_int_load(r->dtype, (const char *)in[rank] + offset);

        if (r->op == CM_MULSUM)
            x *= (uint64_t)cm_mulsum_scalar(rank);
        v = rank == 0 ? x : combine_int(r, v, x);
    }
    cm_int_store(r->dtype, out, v);
    if (r->op != CM_AVG)
        return;
    v = cm_int_load(r->dtype, out); /* wrapped to the type */
    v = cm_dtypes[r->dtype].kind == CM_KIND_INT ? (uint64_t)((int64_t)v / r->n) : v / n;
    cm_int_store(r->dtype, out, v);
}

static void reduce_real(const struct cm_ref *r, const void *const *in, size_t offset, void *out)
{
    bool single = r->dtype != CM_DOUBLE;
    double v = 0;

    for (int rank = 0; rank < r->n; rank++) {
        double x = cm_load(r->dtype, (const char *)in[rank] + offset);

        if (r->op == CM_MULSUM)
            x *= cm_mulsum_scalar(rank);
        v = rank == 0 ? x : combine_real(r->op, v, x, single);
    }
    if (r->op == CM_AVG)
        v = single ? (float)v / (float)r->n : v / r->n;
    cm_store(r->dtype, out, v);
}

void cm_ref_reduce(const struct cm_ref *r, const void *const *in, size_t offset, void *out)
{
    if (cm_dtypes[r->dtype].kind == CM_KIND_FLOAT)
        reduce_real(r, in, offset, out);
    else
        reduce_int(r, in, offset, out);
}

/* The elements [first, first + count) of all INs, reduced into `out`. */
static void reduce_run(const struct cm_ref *r, const void *const *in, size_t first, void *out)
{
    for (size_t i = 0; i < r->count; i++)
        cm_ref_reduce(r, in, (first + i) * width(r), at_mut(r, out, i));
}

static void ref_all_reduce(const struct cm_ref *r, const void *const *in, void *const *out)
{
    for (int rank = 0; rank < r->n; rank++)
        reduce_run(r, in, 0, out[rank]);
}

static void ref_reduce(const struct cm_ref *r, const void *const *in, void *const *out)
{
    reduce_run(r, in, 0, out[r->root]);
}

static void ref_reduce_scatter(const struct cm_ref *r, const void *const *in, void *const *out)
{
    for (int rank = 0; rank < r->n; rank++)
        reduce_run(r, in, (size_t)rank * r->count, out[rank]);
}

static void ref_broadcast(const struct cm_ref *r, const void *const *in, void *const *out)
{
    for (int rank = 0; rank < r->n; rank++)
        memcpy(out[rank], in[r->root], r->count * width(r));
}

static void ref_gather_to(const struct cm_ref *r, const void *const *in, void *out)
{
    for (int from = 0; from < r->n; from++)
        memcpy(at_mut(r, out, (size_t)from * r->count), in[from], r->count * width(r));
}

static void ref_gather(const struct cm_ref *r, const void *const *in, void *const *out)
{
    ref_gather_to(r, in, out[r->root]);
}

static void ref_all_gather(const struct cm_ref *r, const void *const *in, void *const *out)
{
    for (int rank = 0; rank < r->n; rank++)
        ref_gather_to(r, in, out[rank]);
}

static void ref_scatter(const struct cm_ref *r, const void *const *in, void *const *out)
{
    for (int to = 0; to < r->n; to++)
        memcpy(out[to], at(r, in[r->root], (size_t)to * r->count), r->count * width(r));
}

static void ref_alltoall(const struct cm_ref *r, const void *const *in, void *const *out)
{
    size_t bytes = r->count * width(r);

    for (int from = 0; from < r->n; from++)
        for (int to = 0; to < r->n; to++)
            memcpy(at_mut(r, out[to], (size_t)from * r->count),
                   at(r, in[from], (size_t)to * r->count), bytes);
}

static void ref_alltoallv(const struct cm_ref *r, const void *const *in, void *const *out)
{
    size_t received[CM_MAX_RANKS] = {0};

    for (int from = 0; from < r->n; from++) {
        size_t sent = 0;

        for (int to = 0; to < r->n; to++) {
            size_t count = r->matrix[(size_t)from * (size_t)r->n + (size_t)to];

            memcpy(at_mut(r, out[to], received[to]), at(r, in[from], sent), count * width(r));
            received[to] += count;
            sent += count;
        }
    }
}

static void ref_sendrecv(const struct cm_ref *r, const void *const *in, void *const *out)
{
    for (int from = 0; from < r->n; from++)
        memcpy(out[(from + 1) % r->n], in[from], r->count * width(r));
}

void cm_ref_run(const struct cm_ref *r, const void *const *in, void *const *out)
{
    static ref_fn *const run[CM_NCOLLS] = {
        [CM_ALL_REDUCE] = ref_all_reduce,
        [CM_ALL_GATHER] = ref_all_gather,
        [CM_REDUCE_SCATTER] = ref_reduce_scatter,
        [CM_BROADCAST] = ref_broadcast,
        [CM_REDUCE] = ref_reduce,
        [CM_ALLTOALL] = ref_alltoall,
        [CM_ALLTOALLV] = ref_alltoallv,
        [CM_GATHER] = ref_gather,
        [CM_SCATTER] = ref_scatter,
        [CM_SENDRECV] = ref_sendrecv,
        [CM_HYPERCUBE] = ref_all_gather,
    };

    assert(r->n >= 1 && r->n <= CM_MAX_RANKS && run[r->coll] != NULL);
    run[r->coll](r, in, out);
}
