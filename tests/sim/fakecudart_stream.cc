/*
 * Streams, and functions of the host in them.
 *
 * The legacy stream is ordered with all blocking streams of its device by the
 * items' seq; the engine looks at that.
 */
#include "fakecudart.h"

#include <atomic>
#include <sched.h>

uint64_t fake_thread()
{
    static std::atomic<uint64_t> count{0};
    static thread_local const uint64_t mine = ++count;

    return mine;
}

cudaError_t fake_stream(cudaStream_t handle, CUstream_st **out)
{
    if (handle == nullptr || handle == cudaStreamLegacy) {
        *out = &fake_current().null_stream;
        return cudaSuccess;
    }
    for (fake_device &d : fake().devices) {
        for (const auto &s : d.streams) {
            if (s.get() == handle && !s->destroyed) {
                *out = handle;
                return cudaSuccess;
            }
        }
    }
    return cudaErrorInvalidResourceHandle;
}

/* ---- enqueue --------------------------------------------------------------------------------- */

cudaError_t fake_push(fake_lock &lock, CUstream_st &s, std::unique_ptr<fake_item> item)
{
    cudaError_t e = fake_implicit(s);

    if (e == cudaSuccess)
        e = fake_wait(lock, [&] { return s.items.size() < fake().set.queue; });
    if (e != cudaSuccess)
        return e;
    item->seq = ++fake().seq;
    for (const fake_node &n : *item->nodes)
        item->runs.push_back({&n, false, 0, {}, nullptr});
    s.items.push_back(std::move(item));
    fake_engine_poke();
    return cudaSuccess;
}

cudaError_t fake_enqueue(fake_lock &lock, CUstream_st &s, fake_task_ref task, uint64_t *seq)
{
    if (seq != nullptr)
        *seq = 0;
    if (s.capture != nullptr) {
        if (s.capture->broken)
            return cudaErrorStreamCaptureInvalidated;
        fake_captured(s, task);
        return cudaSuccess;
    }
    auto item = std::make_unique<fake_item>();
    fake_item *raw = item.get();
    item->nodes = std::make_shared<const std::vector<fake_node>>(1, fake_node{std::move(task), {}});
    cudaError_t e = fake_push(lock, s, std::move(item));
    if (e == cudaSuccess && seq != nullptr)
        *seq = raw->seq; /* the mutex is held since the push: the item is still there */
    return e;
}

/* ---- streams --------------------------------------------------------------------------------- */

static cudaError_t create(cudaStream_t *out, unsigned flags, int priority)
{
    fake_device &d = fake_current();

    if (out == nullptr || (flags & ~cudaStreamNonBlocking) != 0)
        return cudaErrorInvalidValue;
    auto s = std::make_unique<CUstream_st>();
    s->device = d.index;
    s->blocking = (flags & cudaStreamNonBlocking) == 0;
    s->priority = priority;
    *out = s.get();
    d.streams.push_back(std::move(s));
    return cudaSuccess;
}

extern "C" cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return fake_call("cudaStreamCreate", FAKE_CONTEXT,
                     [&](fake_lock &) { return create(out, cudaStreamDefault, 0); });
}

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags)
{
    return fake_call("cudaStreamCreateWithFlags", FAKE_CONTEXT,
                     [&](fake_lock &) { return create(out, flags, 0); });
}

extern "C" cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags,
                                                    int priority)
{
    return fake_call("cudaStreamCreateWithPriority", FAKE_CONTEXT,
                     [&](fake_lock &) { return create(out, flags, priority); });
}

extern "C" cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return fake_call("cudaStreamDestroy", FAKE_CONTEXT, [&](fake_lock &) {
        CUstream_st *s = nullptr;
        cudaError_t e = fake_stream(stream, &s);

        if (e != cudaSuccess)
            return e;
        if (s->legacy)
            return cudaErrorInvalidResourceHandle;
        if (s->capture != nullptr)
            fake_end_capture(std::shared_ptr<fake_capture>(s->capture));
        s->destroyed = true;
        fake_engine_poke();
        return cudaSuccess;
    });
}

static cudaError_t not_capturing(CUstream_st &s)
{
    if (s.capture != nullptr)
        return fake_break(*s.capture, cudaErrorStreamCaptureUnsupported);
    return fake_implicit(s);
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return fake_call("cudaStreamSynchronize", FAKE_CONTEXT, [&](fake_lock &lock) {
        CUstream_st *s = nullptr;
        cudaError_t e = fake_stream(stream, &s);

        if (e == cudaSuccess)
            e = not_capturing(*s);
        if (e != cudaSuccess)
            return e;
        uint64_t last = s->items.empty() ? 0 : s->items.back()->seq;
        return fake_wait(lock, [&] { return s->done >= last; });
    });
}

cudaError_t fake_not_ready(fake_lock &lock)
{
    lock.unlock();
    sched_yield();
    lock.lock();
    return cudaErrorNotReady;
}

extern "C" cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return fake_call("cudaStreamQuery", FAKE_CONTEXT, [&](fake_lock &lock) {
        CUstream_st *s = nullptr;
        cudaError_t e = fake_stream(stream, &s);

        if (e == cudaSuccess)
            e = not_capturing(*s);
        if (e != cudaSuccess || s->items.empty())
            return e;
        return fake_not_ready(lock);
    });
}

extern "C" cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
    return fake_call("cudaStreamGetFlags", FAKE_CONTEXT, [&](fake_lock &) {
        CUstream_st *s = nullptr;
        cudaError_t e = fake_stream(stream, &s);

        if (e == cudaSuccess && flags != nullptr)
            *flags = s->blocking || s->legacy ? cudaStreamDefault : cudaStreamNonBlocking;
        return e;
    });
}

/* ---- functions of the host ------------------------------------------------------------------- */

struct host_task : fake_task {
    host_task(int on, cudaHostFn_t f, void *with) : fake_task(on), fn(f), data(with)
    {
    }
    bool advance(fake_run &run) const override
    {
        if (run.returned == nullptr) {
            run.returned = std::make_shared<bool>(false);
            fake_callback(fn, data, run.returned);
        }
        return *run.returned;
    }
    cudaHostFn_t fn;
    void *data;
};

extern "C" cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
    return fake_call("cudaLaunchHostFunc", FAKE_CONTEXT, [&](fake_lock &lock) {
        CUstream_st *s = nullptr;
        cudaError_t e = fake_stream(stream, &s);

        if (e != cudaSuccess || fn == nullptr)
            return e != cudaSuccess ? e : cudaErrorInvalidValue;
        return fake_enqueue(lock, *s, std::make_shared<host_task>(s->device, fn, data), nullptr);
    });
}
