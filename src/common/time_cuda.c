/*
 * Time on the device: events in the stream, and graphs of the timed loop.
 *
 * A gang has one stream, so its leader alone records events and graphs; the
 * others take their part in every operation and are told the outcome. Nobody
 * goes on before a graph is recorded or launched: what a member enqueued or
 * waited for in between would land in the graph, or miss it.
 */
#include "common/measure_cuda.h"

enum cm_status cm_cuda_open_marks(struct cm_meter *m)
{
    struct cm_meter_gpu *g = m->gpu;
    int steps = cm_meter_marks_steps(m) ? cm_steps_of(&m->rank->opts->run) : 1;
    enum cm_status st = CM_OK;

    if (!g->leads)
        return CM_OK;
    for (int i = 0; st == CM_OK && i <= steps && i <= CM_MARKS; i++)
        st = cm_gpu_event_new(g->gpu, &g->marks[i]);
    for (int i = 0; st == CM_OK && i < CM_PACES; i++)
        st = cm_gpu_event_new(g->gpu, &g->paces[i]);
    return st;
}

void cm_cuda_close_marks(struct cm_meter_gpu *g)
{
    for (int i = 0; i <= CM_MARKS; i++)
        cm_gpu_event_free(g->marks[i]);
    for (int i = 0; i < CM_PACES; i++)
        cm_gpu_event_free(g->paces[i]);
}

enum cm_status cm_cuda_sync(struct cm_meter *m)
{
    return cm_comm_sync(m->comm);
}

/* The host runs ahead by CM_PACES of these events at most; the stream never runs dry. */
enum cm_status cm_cuda_pace(struct cm_meter *m, int64_t ops)
{
    struct cm_meter_gpu *g = m->gpu;
    struct cm_gpu_event *oldest = g->paces[g->paced % CM_PACES];
    uint32_t progress = cm_comm_progress(m->comm);
    struct cm_spin spin = cm_spin_start();
    bool done = g->paced < CM_PACES;
    enum cm_status st = CM_OK;

    g->unpaced += ops;
    if (!g->leads || g->unpaced < CM_PACE)
        return CM_OK;
    while (st == CM_OK && !done) {
        st = cm_gpu_event_done(oldest, &done);
        if (cm_comm_progress(m->comm) != progress)
            spin = cm_spin_start();
        progress = cm_comm_progress(m->comm);
        if (st == CM_OK && !done)
            st = cm_spin_watching(&spin, &m->rank->waiter, -2);
    }
    g->unpaced = 0;
    g->paced++;
    return st == CM_OK ? cm_gpu_event_record(g->gpu, oldest) : st;
}

enum cm_status cm_cuda_mark(struct cm_meter *m, int k)
{
    struct cm_meter_gpu *g = m->gpu;

    return g->leads ? cm_gpu_event_record(g->gpu, g->marks[k]) : CM_OK;
}

enum cm_status cm_cuda_elapsed(struct cm_meter *m, int n, int64_t *ns)
{
    struct cm_meter_gpu *g = m->gpu;
    enum cm_status st = cm_comm_sync(m->comm);

    for (int i = 0; g->leads && st == CM_OK && i < n; i++)
        st = cm_gpu_event_ns(g->marks[i], g->marks[i + 1], &ns[i]);
    if (st != CM_OK)
        return st;
    return cm_gang_copy(g->gang, g->member, &m->rank->waiter, ns, (size_t)n * sizeof(*ns));
}

/* ---- graphs ---- */

static enum cm_status meet(struct cm_meter *m)
{
    return cm_gang_meet(m->gpu->gang, m->gpu->member, &m->rank->waiter);
}

/* A stream that is captured must not be asked whether it is done: all have asked before. */
enum cm_status cm_cuda_capture_begin(struct cm_meter *m)
{
    enum cm_status st = meet(m);

    return st == CM_OK && m->gpu->leads ? cm_gpu_capture_begin(m->gpu->gpu) : st;
}

enum cm_status cm_cuda_capture_end(struct cm_meter *m, enum cm_status st)
{
    struct cm_meter_gpu *g = m->gpu;
    enum cm_status end = g->leads ? cm_gpu_capture_end(g->gpu, &g->graph) : CM_OK;

    st = st != CM_OK ? st : end;
    return st == CM_OK ? meet(m) : st;
}

enum cm_status cm_cuda_replay(struct cm_meter *m)
{
    struct cm_meter_gpu *g = m->gpu;
    enum cm_status st = g->leads ? cm_gpu_graph_launch(g->gpu, g->graph) : CM_OK;

    return st == CM_OK ? meet(m) : st;
}

void cm_cuda_graph_free(struct cm_meter *m)
{
    cm_gpu_graph_free(m->gpu->graph);
    m->gpu->graph = NULL;
}
