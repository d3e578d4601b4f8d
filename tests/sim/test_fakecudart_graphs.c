/* The fake runtime: captures and graphs. */
#include "fakecudart_test.h"

static cudaGraphExec_t instantiate(cudaStream_t s)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;

    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphUpload(exec, s));
    return exec;
}

/* Fork to a stream of another device and join; replays come one after the other. */
static void graphs_replay(void)
{
    uint32_t *words = new_words(100), copy[100];
    struct fk_add args = {(uintptr_t)words, 100, 1};
    struct cudaFuncAttributes attr;
    cudaStream_t a = new_stream(), b;
    cudaEvent_t fork, join;

    OK(cudaEventCreate(&fork));
    OK(cudaSetDevice(1));
    OK(cudaFuncGetAttributes(&attr, &kernel_add));
    b = new_stream();
    OK(cudaEventCreate(&join));
    OK(cudaSetDevice(0));
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    OK(launch(&kernel_add, 2, 32, &args, a));
    OK(cudaEventRecord(fork, a));
    OK(cudaStreamWaitEvent(b, fork, 0));
    OK(cudaSetDevice(1));
    args.value = 10;
    OK(launch(&kernel_add, 2, 32, &args, b));
    OK(cudaEventRecord(join, b));
    OK(cudaSetDevice(0));
    OK(cudaStreamWaitEvent(a, join, 0));
    OK(cudaMemcpyAsync(copy, words, sizeof(copy), cudaMemcpyDeviceToHost, a));
    cudaGraphExec_t exec = instantiate(a);
    expect_words(words, 100, 0); /* nothing ran yet */
    for (int i = 0; i < 3; i++)
        OK(cudaGraphLaunch(exec, i == 1 ? b : a));
    OK(cudaGraphExecDestroy(exec)); /* what is enqueued still runs */
    OK(cudaStreamSynchronize(a));
    OK(cudaStreamSynchronize(b));
    expect_words(words, 100, 33);
    CHECK(copy[99] == 33, "%u", copy[99]);
    OK(launch(&kernel_add, 2, 32, &args, a)); /* the streams work as before */
    OK(cudaStreamSynchronize(a));
}

/* Launches of one graph follow each other, in whatever streams they are. */
static void a_graph_runs_once_at_a_time(void)
{
    _Atomic uint64_t *flags = new_flags();
    cudaStream_t a = new_stream(), b = new_stream();

    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
    OK(launch_wait(flags, 1, a));
    cudaGraphExec_t exec = instantiate(a);
    OK(cudaGraphLaunch(exec, a));
    OK(cudaGraphLaunch(exec, b));
    await(&flags[1], 1);
    linger();
    CHECK(atomic_load(&flags[1]) == 1, "%d run", (int)atomic_load(&flags[1]));
    atomic_store(&flags[0], 1);
    OK(cudaStreamSynchronize(b));
    CHECK(atomic_load(&flags[1]) == 2, "%d ran", (int)atomic_load(&flags[1]));
}

/* What a capture does not allow: `call` fails with `want` and spoils it. */
struct forbidden {
    const char *name;
    cudaError_t (*call)(cudaStream_t s);
    cudaError_t want;
};

static cudaError_t query(cudaStream_t s)
{
    return cudaStreamQuery(s);
}

static cudaError_t synchronize(cudaStream_t s)
{
    return cudaStreamSynchronize(s);
}

static cudaError_t synchronize_all(cudaStream_t s)
{
    (void)s;
    return cudaDeviceSynchronize();
}

static cudaError_t allocate(cudaStream_t s)
{
    void *p;

    (void)s;
    return cudaMalloc(&p, 1);
}

static cudaError_t copy(cudaStream_t s)
{
    char from = 0, to;

    (void)s;
    return cudaMemcpy(&to, &from, 1, cudaMemcpyHostToHost);
}

static cudaError_t wait_outside(cudaStream_t s)
{
    cudaEvent_t event = NULL;

    OK(cudaEventCreate(&event));
    return cudaStreamWaitEvent(s, event, 0);
}

static cudaError_t query_captured(cudaStream_t s)
{
    cudaEvent_t event = NULL;

    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, s));
    return cudaEventSynchronize(event);
}

static const struct forbidden all_forbidden[] = {
    {"query", query, cudaErrorStreamCaptureUnsupported},
    {"synchronize", synchronize, cudaErrorStreamCaptureUnsupported},
    {"synchronize the device", synchronize_all, cudaErrorStreamCaptureUnsupported},
    {"malloc", allocate, cudaErrorStreamCaptureUnsupported},
    {"copy", copy, cudaErrorStreamCaptureUnsupported},
    {"wait for work outside", wait_outside, cudaErrorStreamCaptureIsolation},
    {"wait for a captured event", query_captured, cudaErrorStreamCaptureUnsupported},
};

static void captures_are_guarded(void)
{
    cudaStream_t s = new_stream();
    cudaGraph_t graph = NULL;

    for (size_t i = 0; i < sizeof(all_forbidden) / sizeof(all_forbidden[0]); i++) {
        const struct forbidden *f = &all_forbidden[i];
        enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

        OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
        cudaError_t got = f->call(s);
        CHECK(got == f->want, "%s: %s", f->name, cudaGetErrorName(got));
        OK(cudaStreamIsCapturing(s, &status));
        CHECK(status == cudaStreamCaptureStatusInvalidated, "%s: status %d", f->name, status);
        GIVES(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);
        CHECK(graph == NULL, "%s: a graph", f->name);
        GIVES(cudaStreamEndCapture(s, &graph), cudaErrorIllegalState);
        OK(cudaStreamSynchronize(s));
    }
}

static void captures_must_be_joined(void)
{
    uint32_t *words = new_words(1);
    cudaStream_t a = new_stream(), b = new_stream(), blocking;
    cudaEvent_t event;
    cudaGraph_t graph = NULL;
    size_t count = 7;

    OK(cudaEventCreate(&event));
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
    OK(cudaEventRecord(event, a));
    OK(cudaStreamWaitEvent(b, event, 0));
    OK(cudaMemsetAsync(words, 0, 4, b));
    GIVES(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureUnjoined);
    OK(cudaStreamSynchronize(b));
    GIVES(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeRelaxed),
          cudaErrorStreamCaptureUnsupported);
    OK(cudaStreamCreate(&blocking));
    OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    GIVES(cudaMemsetAsync(words, 0, 4, NULL), cudaErrorStreamCaptureImplicit);
    GIVES(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
    OK(cudaFree(NULL));
    OK(cudaStreamEndCapture(a, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &count));
    CHECK(count == 0, "%zu", count);
}

int main(int argc, char **argv)
{
    static const struct case_row rows[] = {
        {"graphs_replay", graphs_replay, {NULL}},
        {"a_graph_runs_once_at_a_time", a_graph_runs_once_at_a_time, {NULL}},
        {"captures_are_guarded", captures_are_guarded, {NULL}},
        {"captures_must_be_joined", captures_must_be_joined, {NULL}},
    };

    return run_cases(rows, sizeof(rows) / sizeof(rows[0]), argc > 1 ? argv[1] : NULL);
}
