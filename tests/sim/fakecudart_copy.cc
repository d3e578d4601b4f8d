/*
 * Copies and fills. They are done at once when their turn comes in their stream.
 *
 * When the caller may go on is as in CUDA: a source in pageable host memory is
 * taken at the call; a target in it is written before the call returns; the
 * synchronous functions wait, but for copies inside device memory and fills of it.
 */
#include "fakecudart.h"

#include <cstring>

struct copy_task : fake_task {
    copy_task(int on, void *to, const void *from, size_t n)
        : fake_task(on), dst(to), src(from), bytes(n)
    {
    }
    bool advance(fake_run &) const override
    {
        memmove(dst, staged.empty() ? src : staged.data(), bytes);
        return true;
    }
    void *dst;
    const void *src;
    size_t bytes;
    std::vector<char> staged; /* the source at the time of the call, if it was pageable */
};

struct fill_task : fake_task {
    fill_task(int on, void *to, int with, size_t n) : fake_task(on), dst(to), value(with), bytes(n)
    {
    }
    bool advance(fake_run &) const override
    {
        memset(dst, value, bytes);
        return true;
    }
    void *dst;
    int value;
    size_t bytes;
};

enum place { PAGEABLE, HOST, DEVICE };

/* Where [p, p + bytes) is. False: it begins in known memory and ends outside. */
static bool locate(const void *p, size_t bytes, place *out, int *device)
{
    const fake_range *r = fake_find(p);

    *out = PAGEABLE;
    if (r == nullptr)
        return true;
    bool host = r->what == fake_range::PINNED || r->what == fake_range::REGISTERED;
    *out = host ? HOST : DEVICE;
    *device = r->device;
    return bytes <= (size_t)(r->base + r->bytes - (const char *)p);
}

struct copy {
    void *dst;
    const void *src;
    size_t bytes;
    place to, from;
};

static cudaError_t check_copy(copy &c, cudaMemcpyKind kind)
{
    int device;

    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (c.bytes == 0)
        return cudaSuccess;
    if (c.dst == nullptr || c.src == nullptr)
        return cudaErrorInvalidValue;
    if (!locate(c.dst, c.bytes, &c.to, &device) || !locate(c.src, c.bytes, &c.from, &device))
        return cudaErrorInvalidValue;
    bool to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault && (to != (c.to == DEVICE) || from != (c.from == DEVICE)))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

static cudaError_t wait_for(fake_lock &lock, CUstream_st &s, uint64_t seq)
{
    return seq == 0 ? cudaSuccess : fake_wait(lock, [&] { return s.done >= seq; });
}

static cudaError_t enqueue_copy(fake_lock &lock, CUstream_st &s, const copy &c, bool sync)
{
    auto task = std::make_shared<copy_task>(s.device, c.dst, c.src, c.bytes);
    uint64_t seq = 0;

    if (c.bytes == 0)
        return cudaSuccess;
    if (c.from == PAGEABLE && s.capture == nullptr)
        task->staged.assign((const char *)c.src, (const char *)c.src + c.bytes);
    cudaError_t e = fake_enqueue(lock, s, task, &seq);
    bool waits = c.to == PAGEABLE || (sync && !(c.to == DEVICE && c.from == DEVICE));
    return e == cudaSuccess && waits ? wait_for(lock, s, seq) : e;
}

static cudaError_t copy_sync(fake_lock &lock, copy c, cudaMemcpyKind kind)
{
    cudaError_t e = fake_unsafe();

    if (e == cudaSuccess)
        e = check_copy(c, kind);
    return e == cudaSuccess ? enqueue_copy(lock, fake_current().null_stream, c, true) : e;
}

static cudaError_t copy_async(fake_lock &lock, copy c, cudaMemcpyKind kind, cudaStream_t handle)
{
    CUstream_st *s = nullptr;
    cudaError_t e = fake_stream(handle, &s);

    if (e == cudaSuccess)
        e = check_copy(c, kind);
    return e == cudaSuccess ? enqueue_copy(lock, *s, c, false) : e;
}

extern "C" cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
    return fake_call("cudaMemcpy", FAKE_CONTEXT, [&](fake_lock &lock) {
        return copy_sync(lock, {dst, src, bytes, PAGEABLE, PAGEABLE}, kind);
    });
}

extern "C" cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                                       cudaMemcpyKind kind, cudaStream_t stream)
{
    return fake_call("cudaMemcpyAsync", FAKE_CONTEXT, [&](fake_lock &lock) {
        return copy_async(lock, {dst, src, bytes, PAGEABLE, PAGEABLE}, kind, stream);
    });
}

/* Is either end in memory of the device that the caller names? Peer access is not needed. */
static cudaError_t check_owners(const copy &c, int dst_device, int src_device)
{
    place place;
    int owner = -1;

    if (!fake_device_ok(dst_device) || !fake_device_ok(src_device))
        return cudaErrorInvalidDevice;
    if (!locate(c.dst, c.bytes, &place, &owner) || place != DEVICE || owner != dst_device)
        return cudaErrorInvalidValue;
    if (!locate(c.src, c.bytes, &place, &owner) || place != DEVICE || owner != src_device)
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

extern "C" cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device,
                                      size_t bytes)
{
    return fake_call("cudaMemcpyPeer", FAKE_CONTEXT, [&](fake_lock &lock) {
        copy c = {dst, src, bytes, PAGEABLE, PAGEABLE};
        cudaError_t e = check_owners(c, dst_device, src_device);

        return e == cudaSuccess ? copy_sync(lock, c, cudaMemcpyDeviceToDevice) : e;
    });
}

extern "C" cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src,
                                           int src_device, size_t bytes, cudaStream_t stream)
{
    return fake_call("cudaMemcpyPeerAsync", FAKE_CONTEXT, [&](fake_lock &lock) {
        copy c = {dst, src, bytes, PAGEABLE, PAGEABLE};
        cudaError_t e = check_owners(c, dst_device, src_device);

        return e == cudaSuccess ? copy_async(lock, c, cudaMemcpyDeviceToDevice, stream) : e;
    });
}

static cudaError_t fill(fake_lock &lock, CUstream_st &s, const fill_task &f, bool sync)
{
    place where;
    int device;
    uint64_t seq = 0;

    if (f.bytes == 0)
        return cudaSuccess;
    if (!locate(f.dst, f.bytes, &where, &device) || where == PAGEABLE)
        return cudaErrorInvalidValue;
    cudaError_t e = fake_enqueue(lock, s, std::make_shared<fill_task>(f), &seq);
    return e == cudaSuccess && sync && where == HOST ? wait_for(lock, s, seq) : e;
}

extern "C" cudaError_t cudaMemset(void *dst, int value, size_t bytes)
{
    return fake_call("cudaMemset", FAKE_CONTEXT, [&](fake_lock &lock) {
        CUstream_st &s = fake_current().null_stream;
        cudaError_t e = fake_unsafe();

        return e == cudaSuccess ? fill(lock, s, fill_task(s.device, dst, value, bytes), true) : e;
    });
}

extern "C" cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
    return fake_call("cudaMemsetAsync", FAKE_CONTEXT, [&](fake_lock &lock) {
        CUstream_st *s = nullptr;
        cudaError_t e = fake_stream(stream, &s);

        if (e != cudaSuccess)
            return e;
        return fill(lock, *s, fill_task(s->device, dst, value, bytes), false);
    });
}
