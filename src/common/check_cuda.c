/*
 * Filling and checking a rank's buffers on its device. The kernels count what
 * is wrong; only then the faults are listed and fetched, and told in the words
 * of the host's check.
 */
#include "common/check_gpu.h"
#include "common/measure_cuda.h"
#include "kernels/gpu_data.h"

enum cm_status cm_cuda_open_check(struct cm_meter_gpu *g)
{
    void *p = NULL;
    enum cm_status st = cm_gpu_alloc(g->gpu, CM_GPU_TABLE_BYTES + sizeof(*g->result), &p);

    if (st != CM_OK)
        return st;
    g->device_table = p;
    g->result = (struct cm_gpu_result *)((char *)p + CM_GPU_TABLE_BYTES);
    return CM_OK;
}

void cm_cuda_close_check(struct cm_meter_gpu *g)
{
    cm_gpu_free(g->gpu, g->device_table);
    g->device_table = NULL;
}

enum cm_status cm_cuda_fill(struct cm_meter *m, const struct cm_trial *t)
{
    struct cm_check_args args = cm_meter_args(m, t);
    struct cm_gpu_data a;

    cm_gpu_fill_of(&args, &a);
    return cm_gpu_data_fill(&a, cm_gpu_stream(m->gpu->gpu));
}

static enum cm_status put_table(struct cm_meter_gpu *g, const struct cm_check_args *args)
{
    size_t bytes = cm_gpu_table_of(args, g->table);

    return bytes == 0 ? CM_OK : cm_gpu_put(g->gpu, g->device_table, g->table, bytes);
}

static enum cm_status get_found(struct cm_meter_gpu *g, struct cm_gpu_found *f)
{
    return cm_gpu_get(g->gpu, f, &g->result->found, sizeof(*f));
}

static enum cm_status fetch(void *gpu, void *host, const void *src, size_t bytes)
{
    return cm_gpu_get(gpu, host, src, bytes);
}

enum cm_status cm_cuda_check(struct cm_meter *m, const struct cm_trial *t, struct cm_check *c)
{
    struct cm_check_args args = cm_meter_args(m, t);
    struct cm_meter_gpu *g = m->gpu;
    void *stream = cm_gpu_stream(g->gpu);
    struct cm_gpu_found found;
    struct cm_gpu_data a;
    enum cm_status st = put_table(g, &args);

    cm_gpu_check_of(&args, &a);
    a.table = (uintptr_t)g->device_table;
    a.found = (uintptr_t)g->result;
    if (st == CM_OK)
        st = cm_gpu_data_check(&a, stream);
    if (st == CM_OK)
        st = get_found(g, &found);
    if (st != CM_OK || cm_gpu_wrong(&found) == 0)
        return st;
    st = cm_gpu_data_list(&a, stream);
    if (st == CM_OK)
        st = get_found(g, &found);
    return st == CM_OK ? cm_gpu_found_to(&args, &found, fetch, g->gpu, c) : st;
}

/* As on the host: the last byte of OUT, if the spec means this moment. */
enum cm_status cm_cuda_corrupt(struct cm_meter *m, const struct cm_trial *t,
                               enum cm_phase_name phase, int64_t iter)
{
    unsigned char *last = t->out + t->recv * cm_dtypes[t->op.dtype].bytes - 1, byte;
    enum cm_status st;

    if (t->recv == 0)
        return CM_OK;
    st = cm_gpu_get(m->gpu->gpu, &byte, last, 1);
    if (st != CM_OK)
        return st;
    cm_inject_after(m->rank->inject, m->rank->rank, phase, iter, &byte, 1);
    return cm_gpu_put(m->gpu->gpu, last, &byte, 1);
}
