/*
 * Filling and checking a rank's buffers on its device: three kernels over the
 * parts of struct cm_gpu_data.
 *
 * Each block has one slice of consecutive units of each part, and goes over it
 * with a unit per thread: so the source of an element, and the keys of its
 * rank, change rarely and are kept (struct place). The arithmetic is the
 * host's (base/data_want.h).
 *
 * Filling and checking: grid (slices). Listing, after a check that found
 * faults: grid (parts), each block searches the slices of one part that have
 * any. The number of threads is free. No block waits for another.
 */
#include "kernels/data_visit.h"

namespace
{

/* This block's slice of a part: the first slices of small parts are different blocks'. */
CM_DEV uint32_t my_slice(const struct cm_gpu_data &a, uint32_t part)
{
    return (cm_bid_x() + part) % a.slices;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct list {
    struct cm_gpu_found *found;
    uint32_t part, n; /* n: the first thread's */
};

struct marks {
    uint8_t wrong[CM_MAX_THREADS];
};

/* Append elements `i` and up that are marked, as far as there is room. */
CM_DEV void append(list &l, const marks &m, uint64_t i)
{
    for (uint32_t k = 0; k < cm_nthr() && l.n < CM_GPU_FIRST; k++)
        if (m.wrong[k])
            cm_st(&l.found->first[l.part][l.n++], i + k);
}

/*
 * A slice with faults: each thread looks at an element, and the first thread at
 * the marks where there is one. True: the list is full.
 */
CM_DEV bool list_slice(place &at, uint32_t s, list &l, marks &m)
{
    range slice = slice_of(at.a, at.p, s);
    uint64_t end = unit_of(at.p, slice.end - 1).end;

    for (uint64_t i = unit_of(at.p, slice.begin).begin; i < end; i += cm_nthr()) {
        bool wrong = i + cm_tid() < end && is_wrong(at, i + cm_tid());

        m.wrong[cm_tid()] = wrong;
        if (cm_bar_or(wrong) && cm_tid() == 0)
            append(l, m, i);
        if (cm_bar_or(l.n == CM_GPU_FIRST)) /* only the first thread's is not 0 */
            return true;
    }
    return false;
}

/* ---- sums ------------------------------------------------------------------------------------ */

enum { SHARED_SUMS = 1024 /* enough for 512 ranks */ };

struct shared_sums {
    int64_t at[SHARED_SUMS];
};

CM_DEV bool takes_sums(const struct cm_gpu_data &a)
{
    enum cm_gen_kind k = a.want.gen.kind;

    return a.route.from == CM_FROM_ALL &&
           (k == CM_GEN_EXACT || k == CM_GEN_ODD || k == CM_GEN_POWERS);
}

/* Their random order would be slow in global memory. */
CM_DEV const int64_t *copy_sums(const struct cm_gpu_data &a, shared_sums &copy)
{
    const int64_t *from = (const int64_t *)a.table;

    if (!takes_sums(a) || a.want.gen.window_mask >= SHARED_SUMS)
        return from;
    for (uint32_t k = cm_tid(); k <= a.want.gen.window_mask; k += cm_nthr())
        copy.at[k] = cm_ld(from + k);
    cm_bar();
    return copy.at;
}

} // namespace

/* ---- kernels --------------------------------------------------------------------------------- */

CM_KERNEL(cm_data_fill, struct cm_gpu_data)
{
    for (uint32_t i = 0; i < a.nparts; i++)
        visit_slice<true>(place_in(a, i, nullptr), my_slice(a, i));
}

CM_KERNEL(cm_data_check, struct cm_gpu_data)
{
    CM_SHARED(shared_sums, copy);
    const int64_t *sums = copy_sums(a, copy);
    struct cm_gpu_result *result = (struct cm_gpu_result *)a.found;

    for (uint32_t i = 0; i < a.nparts; i++) {
        uint32_t s = my_slice(a, i);
        uint64_t wrong = visit_slice<false>(place_in(a, i, sums), s);

        if (wrong != 0) {
            cm_add_relaxed_gpu(&result->found.wrong[i], wrong);
            cm_add_relaxed_gpu(&result->slice[i][s], wrong);
        }
    }
}

CM_KERNEL(cm_data_list, struct cm_gpu_data)
{
    CM_SHARED(marks, m);
    uint32_t part = cm_bid_x();
    struct cm_gpu_result *result = (struct cm_gpu_result *)a.found;
    place at = place_in(a, part, (const int64_t *)a.table);
    list l = {&result->found, part, 0};
    bool full = false;

    for (uint32_t s = 0; s < a.slices && !full; s++)
        if (cm_ld(&result->slice[part][s]) != 0)
            full = list_slice(at, s, l, m);
    if (cm_tid() == 0)
        cm_st(&result->found.nfirst[part], (uint64_t)l.n);
}

/* ---- launchers ------------------------------------------------------------------------------- */

#ifndef CM_SIM

#include "base/dev_cuda.h"
#include "kernels/gpu_data.h"

namespace
{

typedef void data_kernel(struct cm_gpu_data);

enum cm_status launch(const char *what, data_kernel *k, const struct cm_gpu_data *a,
                      uint32_t blocks, void *stream)
{
    cudaLaunchConfig_t config = {};
    void *args[] = {const_cast<struct cm_gpu_data *>(a)};

    if (a->nparts == 0)
        return CM_OK;
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(CM_GPU_DATA_THREADS);
    config.stream = (cudaStream_t)stream;
    return cm_cuda_status(cudaLaunchKernelExC(&config, (const void *)k, args), -1, what);
}

} // namespace

enum cm_status cm_gpu_data_fill(const struct cm_gpu_data *a, void *stream)
{
    return launch("filling buffers", cm_data_fill, a, a->slices, stream);
}

enum cm_status cm_gpu_data_check(const struct cm_gpu_data *a, void *stream)
{
    enum cm_status st = cm_cuda_status(
        cudaMemsetAsync((void *)a->found, 0, sizeof(struct cm_gpu_result), (cudaStream_t)stream),
        -1, "clearing results of a check");

    return st != CM_OK ? st : launch("checking buffers", cm_data_check, a, a->slices, stream);
}

enum cm_status cm_gpu_data_list(const struct cm_gpu_data *a, void *stream)
{
    return launch("listing faults", cm_data_list, a, a->nparts, stream);
}

enum cm_status cm_gpu_data_preload(void)
{
    data_kernel *const all[] = {cm_data_fill, cm_data_check, cm_data_list};
    cudaFuncAttributes unused;

    for (data_kernel *k : all) {
        enum cm_status st =
            cm_cuda_status(cudaFuncGetAttributes(&unused, (const void *)k), -1, "loading a kernel");

        if (st != CM_OK)
            return st;
    }
    return CM_OK;
}

#endif
