/*
 * The stream of a device: completion, events, graphs, and ranges for profilers.
 *
 * Capturing is local to its thread: other ranks of the process may allocate
 * and copy meanwhile.
 */
#include <math.h>
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>

#include "base/dev_cuda.h"

struct cm_gpu_event {
    cudaEvent_t event;
    int device;
};

struct cm_gpu_graph {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
};

enum cm_status cm_gpu_done(struct cm_gpu *g, bool *done)
{
    cudaError_t e = cudaStreamQuery(g->stream);

    *done = e == cudaSuccess;
    if (e != cudaErrorNotReady)
        return cm_cuda_status(e, g->info.index, "running kernels");
    (void)cudaGetLastError();
    return CM_OK;
}

/* ---- events ---- */

enum cm_status cm_gpu_event_new(struct cm_gpu *g, struct cm_gpu_event **out)
{
    struct cm_gpu_event *e = calloc(1, sizeof(*e));
    enum cm_status st;

    if (e == NULL)
        return CM_FAIL(CM_ENOMEM, "an event of GPU %d", g->info.index);
    e->device = g->info.index;
    st = cm_cuda_status(cudaEventCreate(&e->event), e->device, "creating an event");
    if (st != CM_OK) {
        free(e);
        return st;
    }
    *out = e;
    return CM_OK;
}

void cm_gpu_event_free(struct cm_gpu_event *e)
{
    if (e == NULL)
        return;
    if (cudaEventDestroy(e->event) != cudaSuccess)
        (void)cudaGetLastError();
    free(e);
}

enum cm_status cm_gpu_event_record(struct cm_gpu *g, struct cm_gpu_event *e)
{
    return cm_cuda_status(cudaEventRecord(e->event, g->stream), g->info.index,
                          "recording an event");
}

enum cm_status cm_gpu_event_done(const struct cm_gpu_event *e, bool *done)
{
    cudaError_t result = cudaEventQuery(e->event);

    *done = result == cudaSuccess;
    if (result != cudaErrorNotReady)
        return cm_cuda_status(result, e->device, "running kernels");
    (void)cudaGetLastError();
    return CM_OK;
}

enum cm_status cm_gpu_event_ns(const struct cm_gpu_event *a, const struct cm_gpu_event *b,
                               int64_t *ns)
{
    float ms = 0;
    enum cm_status st = cm_cuda_status(cudaEventElapsedTime(&ms, a->event, b->event), a->device,
                                       "time between events");

    if (st == CM_OK)
        *ns = llround((double)ms * 1e6);
    return st;
}

/* ---- graphs ---- */

enum cm_status cm_gpu_capture_begin(struct cm_gpu *g)
{
    return cm_cuda_status(cudaStreamBeginCapture(g->stream, cudaStreamCaptureModeThreadLocal),
                          g->info.index, "beginning to capture");
}

/* Uploaded now: the first launch would do it while kernels of other ranks wait for this one. */
static enum cm_status instantiate(struct cm_gpu *g, struct cm_gpu_graph *graph)
{
    cudaError_t e = cudaGraphInstantiate(&graph->exec, graph->graph, 0);

    if (e == cudaSuccess)
        e = cudaGraphUpload(graph->exec, g->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(g->stream);
    return cm_cuda_status(e, g->info.index, "preparing a graph");
}

enum cm_status cm_gpu_capture_end(struct cm_gpu *g, struct cm_gpu_graph **out)
{
    struct cm_gpu_graph *graph = calloc(1, sizeof(*graph));
    cudaGraph_t captured = NULL;
    enum cm_status st = cm_cuda_status(cudaStreamEndCapture(g->stream, &captured), g->info.index,
                                       "ending to capture");

    if (graph == NULL) {
        if (captured != NULL)
            (void)cudaGraphDestroy(captured);
        return st != CM_OK ? st : CM_FAIL(CM_ENOMEM, "a graph of GPU %d", g->info.index);
    }
    graph->graph = captured;
    if (st == CM_OK)
        st = instantiate(g, graph);
    if (st != CM_OK) {
        cm_gpu_graph_free(graph);
        return st;
    }
    *out = graph;
    return CM_OK;
}

enum cm_status cm_gpu_graph_launch(struct cm_gpu *g, struct cm_gpu_graph *graph)
{
    return cm_cuda_status(cudaGraphLaunch(graph->exec, g->stream), g->info.index,
                          "launching a graph");
}

void cm_gpu_graph_free(struct cm_gpu_graph *graph)
{
    if (graph == NULL)
        return;
    if (graph->exec != NULL)
        (void)cudaGraphExecDestroy(graph->exec);
    if (graph->graph != NULL)
        (void)cudaGraphDestroy(graph->graph);
    free(graph);
}

/* ---- profiler ---- */

void cm_gpu_range_push(const char *name)
{
    (void)nvtxRangePushA(name);
}

void cm_gpu_range_pop(void)
{
    (void)nvtxRangePop();
}
