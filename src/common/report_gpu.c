/*
 * What a report tells about the backend and the GPUs, for table and JSON
 * alike. All of it comes from what every rank knows; nothing here needs CUDA.
 */
#include <string.h>

#include "base/units.h"
#include "common/report_int.h"
#include "kernels/kernels.h"

const char *cm_header_backend(const struct cm_rank *r)
{
    return r->backend != NULL ? r->backend->name : "host";
}

const char *cm_header_clock(const struct cm_rank *r)
{
    return r->backend != NULL ? "CUDA events" : "CLOCK_MONOTONIC";
}

const char *cm_header_kernels(const struct cm_rank *r)
{
    return r->backend != NULL && !r->gpu.staged ? "CUDA" : cm_kernel_isa();
}

const char *cm_header_device(const struct cm_rank_info *i)
{
    return i->gpu[0] != '\0' ? i->gpu : i->cpu;
}

char *cm_cuda_version(int version, char *buf)
{
    snprintf(buf, CM_VERSION_BYTES, "%d.%d", version / 1000, version % 1000 / 10);
    return version > 0 ? buf : NULL;
}

void cm_memory_most(struct cm_memory *most, const struct cm_memory *m)
{
    most->init = m->init > most->init ? m->init : most->init;
    most->buffers = m->buffers > most->buffers ? m->buffers : most->buffers;
    most->peak = m->peak > most->peak ? m->peak : most->peak;
}

/* Different GPUs of the job. */
static int count_gpus(const struct cm_rank *r)
{
    int gpus = 0;

    for (int i = 0; i < r->n; i++) {
        int first = 0;

        while (!cm_same_gpu(&r->infos[first], &r->infos[i]))
            first++;
        gpus += first == i;
    }
    return gpus;
}

void cm_header_print_gpus(FILE *f, const struct cm_rank *r)
{
    char driver[CM_VERSION_BYTES], runtime[CM_VERSION_BYTES];
    int gpus;

    if (r->no_gpu != NULL)
        fprintf(f, "# Note: backend host (no usable GPU: %s)\n", r->no_gpu);
    if (r->backend == NULL)
        return;
    if (cm_cuda_version(r->gpu_driver, driver) == NULL)
        strcpy(driver, "unknown");
    if (cm_cuda_version(r->gpu_runtime, runtime) == NULL)
        strcpy(runtime, "unknown");
    fprintf(f, "# CUDA: driver %s, runtime %s\n", driver, runtime);
    gpus = count_gpus(r);
    if (r->shared_gpus)
        fprintf(f, "# Note: %d ranks share %d GPU%s (--oversubscribe)\n", r->n, gpus,
                gpus == 1 ? "" : "s");
    if (r->gpu.staged)
        fputs("# Note: processes or groups share a GPU: the host runs the operations on copies of "
              "the buffers\n",
              f);
}

/* As nccl-tests writes it: without the function of the PCI address. */
void cm_header_print_gpu(FILE *f, const struct cm_rank_info *i)
{
    fprintf(f, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%.*s] %s\n", i->rank, i->group,
            i->pid, i->host, i->device, (int)strcspn(i->bus_id, "."), i->bus_id, i->gpu);
}

void cm_footer_print_gpu_memory(FILE *f, const struct cm_memory *m)
{
    char init[32], buffers[32], peak[32];

    if (m->peak == 0)
        return;
    fprintf(f, "# GPU memory usage     : %s initialization | %s of buffers | %s peak of a GPU\n",
            cm_format_size(m->init >> 10 << 10, init),
            cm_format_size(m->buffers >> 10 << 10, buffers),
            cm_format_size(m->peak >> 10 << 10, peak));
}
