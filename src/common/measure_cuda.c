/*
 * Measuring on a GPU: a rank's memory and its connection with the others.
 *
 * The buffers are the arena of the area through which the ranks' kernels meet
 * (p2p); to ranks on other nodes lead ports in host memory. Where several processes
 * share a device, the ranks are staged: buffers of their own on the device, and
 * plans run by the host on copies.
 */
#include "common/measure_cuda.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/pairs.h"
#include "common/report.h"

enum { PAGE = 4096 };

/* ---- connecting ---- */

/*
 * Gather among the rank's group. The team is that of all groups, which all
 * connect at the same time and in as many steps.
 */
static enum cm_status gather(void *rank, const void *mine, size_t bytes, void *all)
{
    struct cm_rank *r = rank;
    unsigned char *of_world = malloc((size_t)r->n * bytes);
    enum cm_status st;

    assert(bytes <= CM_TEAM_BYTES);
    if (of_world == NULL)
        return CM_FAIL(CM_ENOMEM, "%zu bytes of %d ranks", bytes, r->n);
    st = cm_team_gather(&r->team, mine, bytes, of_world);
    for (int i = 0; st == CM_OK && i < r->group_n; i++)
        memcpy((unsigned char *)all + (size_t)i * bytes,
               of_world + (size_t)r->group_world[i] * bytes, bytes);
    free(of_world);
    return st;
}

/* The ports of the rank to other nodes; false: it has none. */
static bool list_remote(const struct cm_rank *r, struct cm_p2p_remote *out)
{
    const struct cm_pairs *p = r->pairs;
    size_t row = p != NULL ? (size_t)(r->rank - p->first) * (size_t)p->n : 0;

    if (p == NULL)
        return false;
    *out = (struct cm_p2p_remote){.base = r->base,
                                  .layout = r->layout,
                                  .world = r->group_world,
                                  .send = p->send + row,
                                  .recv = p->recv + row};
    return true;
}

static enum cm_status open_p2p(struct cm_meter *m)
{
    struct cm_p2p_remote remote;
    struct cm_meter_gpu *g = m->gpu;
    struct cm_rank *r = m->rank;
    const struct cm_gpu_area *area = &r->gpu.area;
    struct cm_buffers at = cm_buffers_place(r->opts, r->n, r->rank, r->base); /* for its offsets */
    struct cm_p2p_args a = {.rank = r->group_rank,
                            .n = r->group_n,
                            .proc = r->infos[r->rank].proc,
                            .members = cm_gang_members(g->gang),
                            .gpu = g->gpu,
                            .area = *area,
                            .scratch_at = area->arena_at + at.scratch_at,
                            .far_only = r->gpu.far_only,
                            .far = r->gpu.far,
                            .remote = list_remote(r, &remote) ? &remote : NULL,
                            .abort = r->waiter.abort,
                            .hint = &cm_rank_shared(r->base, r->layout, r->rank)->hint,
                            .gather = gather,
                            .ctx = r};
    struct cm_comm_gpu gpu = {
        .exec = &cm_exec_cuda, .gpu = g->gpu, .gang = g->gang, .member = g->member};
    enum cm_status st = cm_p2p_open(&a, &g->p2p);

    if (st != CM_OK)
        return st;
    gpu.p2p = g->p2p;
    r->wire = g->p2p->how;
    m->buffers = cm_buffers_place(r->opts, r->n, r->rank, g->p2p->base + area->arena_at);
    return cm_meter_open_comm(m, &gpu);
}

static enum cm_status open_staged(struct cm_meter *m)
{
    struct cm_meter_gpu *g = m->gpu;
    struct cm_rank *r = m->rank;
    struct cm_comm_gpu gpu = {.exec = &cm_exec_staged,
                              .gpu = g->gpu,
                              .gang = g->gang,
                              .member = g->member,
                              .arena_bytes = r->arena_bytes};
    enum cm_status st = cm_gpu_alloc(g->gpu, r->arena_bytes, &g->arena);

    if (st != CM_OK)
        return st;
    gpu.arena = g->arena;
    m->buffers = cm_buffers_place(r->opts, r->n, r->rank, g->arena);
    return cm_meter_open_comm(m, &gpu);
}

/* ---- memory ---- */

/* What all ranks of the device together left free: between two barriers nobody allocates. */
static enum cm_status note_free(struct cm_meter *m, size_t *out)
{
    size_t total;
    enum cm_status st;

    if (!m->rank->opts->report.memory)
        return CM_OK;
    st = cm_team_barrier(&m->rank->team);
    if (st == CM_OK)
        st = cm_gpu_memory(m->gpu->gpu, out, &total);
    return st == CM_OK ? cm_team_barrier(&m->rank->team) : st;
}

/* Ranks on this rank's GPU. */
static size_t sharing(const struct cm_rank *r)
{
    const struct cm_rank_info *mine = &r->infos[r->rank];
    size_t ranks = 0;

    for (int i = 0; i < r->n; i++)
        ranks += cm_same_gpu(&r->infos[i], mine);
    return ranks;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0; /* other programs may have freed memory meanwhile */
}

static enum cm_status cuda_memory(struct cm_meter *m, struct cm_memory *out)
{
    struct cm_meter_gpu *g = m->gpu;
    size_t now, total;
    enum cm_status st = cm_gpu_memory(g->gpu, &now, &total);

    if (st != CM_OK)
        return st;
    g->free_least = now < g->free_least ? now : g->free_least;
    out->buffers = m->rank->arena_bytes * sharing(m->rank);
    out->init = less(less(g->free_before, g->free_after), out->buffers);
    out->peak = less(g->free_before, g->free_least);
    return CM_OK;
}

/* ---- open and close ---- */

static void cuda_close(struct cm_meter *m, bool orderly)
{
    struct cm_meter_gpu *g = m->gpu;

    if (g == NULL)
        return;
    cm_cuda_graph_free(m);
    cm_cuda_close_marks(g);
    cm_comm_close(m->comm);
    cm_p2p_close(g->p2p, orderly);
    cm_cuda_close_check(g);
    cm_gpu_free(g->gpu, g->arena);
    free(g);
    m->comm = NULL;
    m->gpu = NULL;
}

static enum cm_status cuda_open(struct cm_meter *m)
{
    const struct cm_rank_gpu *r = &m->rank->gpu;
    struct cm_meter_gpu *g = calloc(1, sizeof(*g));
    enum cm_status st;

    if (g == NULL)
        return CM_FAIL(CM_ENOMEM, "a rank on a GPU: %zu bytes", sizeof(*g));
    m->gpu = g;
    g->gpu = r->gpu;
    g->gang = r->gang;
    g->member = r->member;
    st = note_free(m, &g->free_before);
    if (st == CM_OK)
        st = r->staged ? open_staged(m) : open_p2p(m);
    if (st == CM_OK)
        st = cm_cuda_open_check(g);
    if (st != CM_OK)
        return st;
    g->leads = cm_comm_leads(m->comm);
    st = cm_cuda_open_marks(m);
    if (st == CM_OK)
        st = note_free(m, &g->free_after);
    g->free_least = g->free_after;
    return st;
}

const struct cm_meter_ops cm_meter_cuda = {
    .open = cuda_open,
    .close = cuda_close,
    .fill = cm_cuda_fill,
    .check = cm_cuda_check,
    .corrupt = cm_cuda_corrupt,
    .sync = cm_cuda_sync,
    .pace = cm_cuda_pace,
    .mark = cm_cuda_mark,
    .elapsed = cm_cuda_elapsed,
    .capture_begin = cm_cuda_capture_begin,
    .capture_end = cm_cuda_capture_end,
    .replay = cm_cuda_replay,
    .graph_free = cm_cuda_graph_free,
    .range_push = cm_gpu_range_push,
    .range_pop = cm_gpu_range_pop,
    .memory = cuda_memory,
};
