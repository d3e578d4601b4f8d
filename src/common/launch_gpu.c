/*
 * The GPUs of a process of the job: opened before memory is planned, because
 * what they have free decides what fits; laid out when the segment is there.
 * All of it goes through the table of the backend. On the host: nothing to do.
 *
 * Invariant: as in launch.c, what may fail in one process is agreed upon.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job.h"

bool cm_same_gpu(const struct cm_rank_info *a, const struct cm_rank_info *b)
{
    return strcmp(a->bus_id, b->bus_id) == 0 && strcmp(a->boot_id, b->boot_id) == 0;
}

static const int32_t *my_ranks(const struct cm_job *j)
{
    return &j->world.first_of[j->boot.proc];
}

enum cm_status cm_job_open_gpus(struct cm_job *j)
{
    const struct cm_world *w = &j->world;
    enum cm_status st;

    if (!w->cuda)
        return CM_OK;
    j->backend = &cm_backend_cuda;
    j->gpu = calloc((size_t)j->local, sizeof(*j->gpu));
    j->far = w->far ? calloc((size_t)w->n, sizeof(*j->far)) : NULL;
    if (j->gpu == NULL || (w->far && j->far == NULL))
        st = CM_FAIL(CM_ENOMEM, "no memory for %d ranks", w->n);
    else
        st = j->backend->open(&w->infos[*my_ranks(j)], j->local, j->opts, w->staged, j->gpu,
                              &j->gpus);
    return cm_boot_agree(&j->boot, st);
}

/* ---- memory ---- */

static int sharing(const struct cm_world *w, int rank)
{
    int ranks = 0;

    for (int r = 0; r < w->n; r++)
        ranks += w->gpu_of[r] == w->gpu_of[rank];
    return ranks;
}

static uint64_t per_rank(const struct cm_room *r)
{
    return r->bytes / (uint64_t)r->ranks;
}

/* Ranks on the machine of `rank`. */
static int on_machine(const struct cm_world *w, int rank)
{
    int ranks = 0;

    for (int r = 0; r < w->n; r++)
        ranks += strcmp(w->infos[r].boot_id, w->infos[rank].boot_id) == 0;
    return ranks;
}

/* The scarcest memory of this process's ranks; for staged ranks that may be the host's. */
static enum cm_status my_room(const struct cm_job *j, struct cm_room *out)
{
    const struct cm_world *w = &j->world;
    struct cm_room host = {
        .ranks = on_machine(w, *my_ranks(j)), .bytes = cm_memory_available(), .where = "memory"};

    *out = host;
    for (int i = 0; j->backend != NULL && i < j->local; i++) {
        struct cm_room room = {.ranks = sharing(w, *my_ranks(j) + i)};
        enum cm_status st = j->backend->room(&j->gpu[i], j->opts, w->n, &room);

        if (st != CM_OK)
            return st;
        if ((i == 0 && !w->staged) || per_rank(&room) < per_rank(out))
            *out = room;
    }
    return CM_OK;
}

enum cm_status cm_job_room(const struct cm_job *j, struct cm_room *out)
{
    struct cm_room mine = {.ranks = 1}, *all = calloc((size_t)j->boot.nprocs, sizeof(*all));
    enum cm_status st = my_room(j, &mine);

    if (st == CM_OK && all == NULL)
        st = CM_FAIL(CM_ENOMEM, "no memory for %d processes", j->boot.nprocs);
    st = cm_boot_agree(&j->boot, st);
    if (st == CM_OK)
        st = j->boot.gather(&j->boot, &mine, sizeof(mine), all);
    for (int p = 0; st == CM_OK && p < j->boot.nprocs; p++)
        if (p == 0 || per_rank(&all[p]) < per_rank(out))
            *out = all[p];
    free(all);
    return st;
}

enum cm_status cm_job_host_bytes(const struct cm_job *j, size_t *out)
{
    struct cm_gpu_area area;
    enum cm_status st;

    *out = j->arena_bytes;
    if (j->backend == NULL || j->world.staged)
        return CM_OK;
    st = j->backend->area(j->opts, j->world.n, j->arena_bytes, &area);
    if (st == CM_OK)
        *out = j->world.far ? area.sync_bytes : 0; /* whole pages */
    return st;
}

enum cm_status cm_job_slot_bytes(const struct cm_job *j, size_t *out)
{
    struct cm_gpu_area area;
    enum cm_status st;

    if (j->backend == NULL || j->world.staged || j->world.domains.n == 1)
        return CM_OK;
    st = j->backend->area(j->opts, j->world.n, j->arena_bytes, &area);
    if (st == CM_OK)
        *out = area.slot_bytes;
    return st;
}

/* ---- areas ---- */

static enum cm_status fill(struct cm_job *j, int i)
{
    const struct cm_world *w = &j->world;
    const struct cm_rank_info *info = &w->infos[*my_ranks(j) + i];
    const int32_t *group = &w->group_first[info->group];
    struct cm_rank_gpu *gpu = &j->gpu[i];

    gpu->far_only = w->far_only;
    gpu->far = j->far != NULL ? j->far + group[0] : NULL;
    return j->backend->area(j->opts, group[1] - group[0], j->arena_bytes, &gpu->area);
}

enum cm_status cm_job_fill_gpus(struct cm_job *j)
{
    const struct cm_world *w = &j->world;
    unsigned char *base = cm_segment_base(j->segment);
    enum cm_status st = CM_OK;

    if (j->backend == NULL || w->staged)
        return CM_OK;
    for (int k = 0; j->far != NULL && k < w->n; k++)
        if (cm_local_of(&j->layout, w->members[k]) >= 0)
            j->far[k] = base + cm_arena_at(&j->layout, w->members[k]);
    for (int i = 0; st == CM_OK && i < j->local; i++)
        st = fill(j, i);
    return cm_boot_agree(&j->boot, st);
}

void cm_job_close_gpus(struct cm_job *j)
{
    if (j->backend != NULL)
        j->backend->close(j->gpus);
    free(j->gpu);
    free(j->far);
}
