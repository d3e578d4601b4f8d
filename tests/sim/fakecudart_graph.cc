/*
 * Captures and graphs. While a stream captures, its work becomes nodes of a list;
 * a node comes after the stream's `tips`. An event recorded there carries the
 * tips, and a stream that waits for it joins the capture. A launch of the graph
 * is one item that holds a run for each node.
 *
 * A call that capture does not allow fails and spoils the capture, as in CUDA:
 * ending it then gives cudaErrorStreamCaptureInvalidated.
 */
#include "fakecudart.h"

#include <algorithm>

static thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

cudaError_t fake_break(fake_capture &c, cudaError_t e)
{
    c.broken = true;
    return e;
}

cudaError_t fake_unsafe()
{
    for (const auto &c : fake().captures) {
        bool mine = c->thread == fake_thread();
        bool harms = mine ? c->mode != cudaStreamCaptureModeRelaxed
                          : c->mode == cudaStreamCaptureModeGlobal &&
                                thread_mode == cudaStreamCaptureModeGlobal;

        if (harms && thread_mode != cudaStreamCaptureModeRelaxed)
            return fake_break(*c, cudaErrorStreamCaptureUnsupported);
    }
    return cudaSuccess;
}

/* Work in the legacy stream would come after that of a capture's blocking streams. */
cudaError_t fake_implicit(const CUstream_st &s)
{
    if (!s.legacy)
        return cudaSuccess;
    for (const auto &other : fake().devices[(size_t)s.device].streams) {
        if (other->capture != nullptr && other->blocking)
            return fake_break(*other->capture, cudaErrorStreamCaptureImplicit);
    }
    return cudaSuccess;
}

void fake_captured(CUstream_st &s, fake_task_ref task)
{
    auto &nodes = s.capture->nodes;

    nodes.push_back({std::move(task), s.tips});
    s.tips = {nodes.size() - 1};
}

cudaError_t fake_capture_wait(CUstream_st &s, CUevent_st &e)
{
    if (e.capture == nullptr)
        return fake_break(*s.capture, cudaErrorStreamCaptureIsolation);
    if (!e.capture->active)
        return cudaErrorCapturedEvent;
    if (s.legacy)
        return fake_break(*e.capture, cudaErrorStreamCaptureImplicit);
    if (s.capture == nullptr) {
        s.capture = e.capture;
        s.tips.clear();
        e.capture->streams.push_back(&s);
    }
    if (s.capture != e.capture) {
        fake_break(*s.capture, cudaErrorStreamCaptureMerge);
        return fake_break(*e.capture, cudaErrorStreamCaptureMerge);
    }
    for (size_t tip : e.tips) {
        if (std::find(s.tips.begin(), s.tips.end(), tip) == s.tips.end())
            s.tips.push_back(tip);
    }
    return e.capture->broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

/* ---- capture --------------------------------------------------------------------------------- */

extern "C" cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    return fake_call("cudaStreamBeginCapture", FAKE_CONTEXT, [&](fake_lock &) {
        CUstream_st *s = nullptr;
        cudaError_t e = fake_stream(stream, &s);

        if (e != cudaSuccess)
            return e;
        if (s->legacy)
            return cudaErrorStreamCaptureUnsupported;
        if (s->capture != nullptr || mode > cudaStreamCaptureModeRelaxed)
            return cudaErrorInvalidValue;
        s->capture = std::make_shared<fake_capture>();
        s->capture->mode = mode;
        s->capture->origin = s;
        s->capture->thread = fake_thread();
        s->capture->streams = {s};
        s->capture->active = true;
        s->tips.clear();
        fake().captures.push_back(s->capture);
        return cudaSuccess;
    });
}

/* Does all that the other streams captured come before the origin's tips? */
static bool joined(const fake_capture &c)
{
    std::vector<bool> before(c.nodes.size(), false);

    for (size_t tip : c.origin->tips)
        before[tip] = true;
    for (size_t i = c.nodes.size(); i-- > 0;) {
        for (size_t earlier : c.nodes[i].after)
            before[earlier] = before[earlier] || before[i];
    }
    for (const CUstream_st *s : c.streams) {
        for (size_t tip : s->tips) {
            if (!before[tip])
                return false;
        }
    }
    return true;
}

void fake_end_capture(const std::shared_ptr<fake_capture> &c)
{
    auto &all = fake().captures;

    c->active = false;
    for (CUstream_st *s : c->streams) {
        s->capture = nullptr;
        s->tips.clear();
    }
    all.erase(std::remove(all.begin(), all.end(), c), all.end());
}

extern "C" cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    return fake_call("cudaStreamEndCapture", FAKE_CONTEXT, [&](fake_lock &) {
        CUstream_st *s = nullptr;
        cudaError_t e = fake_stream(stream, &s);

        if (e != cudaSuccess || out == nullptr)
            return e != cudaSuccess ? e : cudaErrorInvalidValue;
        *out = nullptr;
        std::shared_ptr<fake_capture> c = s->capture;
        if (c == nullptr)
            return cudaErrorIllegalState;
        if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != fake_thread())
            return cudaErrorStreamCaptureWrongThread;
        if (c->origin != s)
            return fake_break(*c, cudaErrorStreamCaptureUnmatched);
        bool whole = joined(*c);
        fake_end_capture(c);
        if (c->broken)
            return cudaErrorStreamCaptureInvalidated;
        if (!whole)
            return cudaErrorStreamCaptureUnjoined;
        auto g = std::make_unique<CUgraph_st>();
        g->nodes = std::make_shared<const std::vector<fake_node>>(std::move(c->nodes));
        *out = g.get();
        fake().graphs[g.get()] = std::move(g);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *out)
{
    return fake_call("cudaStreamIsCapturing", FAKE_CONTEXT, [&](fake_lock &) {
        CUstream_st *s = nullptr;
        cudaError_t e = fake_stream(stream, &s);

        if (e == cudaSuccess)
            e = fake_implicit(*s);
        if (e != cudaSuccess || out == nullptr)
            return e != cudaSuccess ? e : cudaErrorInvalidValue;
        *out = s->capture == nullptr ? cudaStreamCaptureStatusNone
               : !s->capture->broken ? cudaStreamCaptureStatusActive
                                     : cudaStreamCaptureStatusInvalidated;
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    return fake_call("cudaThreadExchangeStreamCaptureMode", FAKE_CONTEXT, [&](fake_lock &) {
        if (mode == nullptr || *mode > cudaStreamCaptureModeRelaxed)
            return cudaErrorInvalidValue;
        std::swap(*mode, thread_mode);
        return cudaSuccess;
    });
}

/* ---- graphs ---------------------------------------------------------------------------------- */

extern "C" cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return fake_call("cudaGraphGetNodes", FAKE_CONTEXT, [&](fake_lock &) {
        auto it = fake().graphs.find(graph);

        if (it == fake().graphs.end() || count == nullptr)
            return cudaErrorInvalidValue;
        if (nodes != nullptr)
            return cudaErrorNotSupported; /* there are no functions to look at nodes with */
        *count = it->second->nodes->size();
        return cudaSuccess;
    });
}

static cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t graph)
{
    auto it = fake().graphs.find(graph);

    if (it == fake().graphs.end() || out == nullptr)
        return cudaErrorInvalidValue;
    auto exec = std::make_shared<CUgraphExec_st>();
    exec->nodes = it->second->nodes;
    *out = exec.get();
    fake().execs[exec.get()] = std::move(exec);
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                            unsigned long long)
{
    return fake_call("cudaGraphInstantiate", FAKE_CONTEXT,
                     [&](fake_lock &) { return instantiate(out, graph); });
}

extern "C" cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                                     unsigned long long)
{
    return fake_call("cudaGraphInstantiateWithFlags", FAKE_CONTEXT,
                     [&](fake_lock &) { return instantiate(out, graph); });
}

static cudaError_t find(cudaGraphExec_t handle, cudaStream_t stream,
                        std::shared_ptr<CUgraphExec_st> *exec, CUstream_st **s)
{
    auto it = fake().execs.find(handle);
    cudaError_t e = fake_stream(stream, s);

    if (e != cudaSuccess || it == fake().execs.end())
        return e != cudaSuccess ? e : cudaErrorInvalidValue;
    if ((*s)->capture != nullptr)
        return fake_break(*(*s)->capture, cudaErrorStreamCaptureUnsupported);
    *exec = it->second;
    return cudaSuccess;
}

extern "C" cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream)
{
    return fake_call("cudaGraphUpload", FAKE_CONTEXT, [&](fake_lock &) {
        std::shared_ptr<CUgraphExec_st> exec;
        CUstream_st *s = nullptr;

        return find(handle, stream, &exec, &s);
    });
}

extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream)
{
    return fake_call("cudaGraphLaunch", FAKE_CONTEXT, [&](fake_lock &lock) {
        auto item = std::make_unique<fake_item>();
        CUstream_st *s = nullptr;
        cudaError_t e = find(handle, stream, &item->exec, &s);

        if (e != cudaSuccess)
            return e;
        item->nodes = item->exec->nodes;
        return fake_push(lock, *s, std::move(item));
    });
}

extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return fake_call("cudaGraphExecDestroy", FAKE_CONTEXT, [&](fake_lock &) {
        return fake().execs.erase(exec) == 1 ? cudaSuccess : cudaErrorInvalidValue;
    });
}

extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return fake_call("cudaGraphDestroy", FAKE_CONTEXT, [&](fake_lock &) {
        return fake().graphs.erase(graph) == 1 ? cudaSuccess : cudaErrorInvalidValue;
    });
}
