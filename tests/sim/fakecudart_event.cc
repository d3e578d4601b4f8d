/*
 * Events. An event is a pair of counters: a record gives it a new version, which
 * is complete once its stream has come to it. A wait is for the version that was
 * the newest at the call. While a stream captures, an event is a set of nodes.
 */
#include "fakecudart.h"

#include <time.h>

struct record_task : fake_task {
    record_task(int on, fake_event_ref e, uint64_t v)
        : fake_task(on), event(std::move(e)), version(v)
    {
    }
    bool advance(fake_run &) const override
    {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        event->ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        event->completed = version;
        return true;
    }
    fake_event_ref event;
    uint64_t version;
};

struct wait_task : fake_task {
    wait_task(int on, fake_event_ref e)
        : fake_task(on), event(std::move(e)), version(event->recorded)
    {
    }
    bool advance(fake_run &) const override
    {
        return event->completed >= version;
    }
    fake_event_ref event;
    uint64_t version; /* the newest one at the time of the call */
};

static cudaError_t find_event(cudaEvent_t handle, fake_event_ref *out)
{
    auto it = fake().events.find(handle);

    if (it == fake().events.end())
        return cudaErrorInvalidResourceHandle;
    *out = it->second;
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags)
{
    return fake_call("cudaEventCreateWithFlags", FAKE_CONTEXT, [&](fake_lock &) {
        auto e = std::make_shared<CUevent_st>();

        if (out == nullptr || (flags & ~(cudaEventBlockingSync | cudaEventDisableTiming)) != 0)
            return cudaErrorInvalidValue;
        e->device = fake_current().index;
        e->timing = (flags & cudaEventDisableTiming) == 0;
        *out = e.get();
        fake().events[e.get()] = std::move(e);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return fake_call("cudaEventDestroy", FAKE_CONTEXT, [&](fake_lock &) {
        return fake().events.erase(event) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
    });
}

extern "C" cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return fake_call("cudaEventRecord", FAKE_CONTEXT, [&](fake_lock &lock) {
        CUstream_st *s = nullptr;
        fake_event_ref e;
        cudaError_t st = fake_stream(stream, &s);

        if (st == cudaSuccess)
            st = find_event(event, &e);
        if (st != cudaSuccess)
            return st;
        if (e->device != s->device)
            return cudaErrorInvalidResourceHandle;
        e->capture = s->capture;
        e->tips = s->tips;
        if (s->capture != nullptr)
            return s->capture->broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
        uint64_t version = ++e->recorded;
        return fake_enqueue(lock, *s, std::make_shared<record_task>(s->device, e, version),
                            nullptr);
    });
}

static cudaError_t event_done(const CUevent_st &e, bool *done)
{
    if (e.capture != nullptr) {
        return e.capture->active ? fake_break(*e.capture, cudaErrorCapturedEvent)
                                 : cudaErrorCapturedEvent;
    }
    *done = e.completed >= e.recorded;
    return cudaSuccess;
}

extern "C" cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return fake_call("cudaEventQuery", FAKE_CONTEXT, [&](fake_lock &lock) {
        fake_event_ref e;
        bool done = false;
        cudaError_t st = find_event(event, &e);

        if (st == cudaSuccess)
            st = fake_unsafe();
        if (st == cudaSuccess)
            st = event_done(*e, &done);
        if (st != cudaSuccess || done)
            return st;
        return fake_not_ready(lock);
    });
}

extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return fake_call("cudaEventSynchronize", FAKE_CONTEXT, [&](fake_lock &lock) {
        fake_event_ref e;
        bool done = false;
        cudaError_t st = find_event(event, &e);

        if (st == cudaSuccess)
            st = fake_unsafe();
        if (st == cudaSuccess)
            st = event_done(*e, &done);
        if (st != cudaSuccess || done)
            return st;
        uint64_t version = e->recorded;
        return fake_wait(lock, [&] { return e->completed >= version; });
    });
}

extern "C" cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return fake_call("cudaEventElapsedTime", FAKE_CONTEXT, [&](fake_lock &) {
        fake_event_ref a, b;
        bool a_done = false, b_done = false;
        cudaError_t st = find_event(start, &a);

        if (st == cudaSuccess)
            st = find_event(end, &b);
        if (st == cudaSuccess)
            st = event_done(*a, &a_done);
        if (st == cudaSuccess)
            st = event_done(*b, &b_done);
        if (st != cudaSuccess)
            return st;
        if (ms == nullptr)
            return cudaErrorInvalidValue;
        if (!a->timing || !b->timing || a->recorded == 0 || b->recorded == 0 ||
            a->device != b->device)
            return cudaErrorInvalidResourceHandle;
        if (!a_done || !b_done)
            return cudaErrorNotReady;
        *ms = (float)((double)(b->ns - a->ns) / 1e6);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int)
{
    return fake_call("cudaStreamWaitEvent", FAKE_CONTEXT, [&](fake_lock &lock) {
        CUstream_st *s = nullptr;
        fake_event_ref e;
        cudaError_t st = fake_stream(stream, &s);

        if (st == cudaSuccess)
            st = find_event(event, &e);
        if (st != cudaSuccess)
            return st;
        if (e->capture != nullptr || s->capture != nullptr)
            return fake_capture_wait(*s, *e);
        return fake_enqueue(lock, *s, std::make_shared<wait_task>(s->device, e), nullptr);
    });
}
