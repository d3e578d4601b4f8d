/*
 * Pinned memory of the host, and what CUDA knows about an address. Devices reach
 * pinned memory under the host's own addresses.
 */
#include "fakecudart.h"

#include <cstring>
#include <sys/mman.h>

static cudaError_t host_alloc(void **out, size_t bytes, unsigned flags)
{
    cudaError_t e = fake_unsafe();

    if (out == nullptr ||
        flags > (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
        return cudaErrorInvalidValue;
    *out = nullptr;
    if (e != cudaSuccess || bytes == 0)
        return e;
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    memset(p, FAKE_FRESH, bytes);
    fake().ranges[(uintptr_t)p] = {
        fake_range::PINNED, (char *)p, bytes, fake_current().index, flags, nullptr, 0, ""};
    *out = p;
    return cudaSuccess;
}

extern "C" cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    return fake_call("cudaHostAlloc", FAKE_CONTEXT,
                     [&](fake_lock &) { return host_alloc(out, bytes, flags); });
}

extern "C" cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    return fake_call("cudaMallocHost", FAKE_CONTEXT,
                     [&](fake_lock &) { return host_alloc(out, bytes, cudaHostAllocDefault); });
}

/* Take a range of host memory out; waits for all devices, since any may use it. */
static cudaError_t host_remove(fake_lock &lock, void *p, fake_range::kind kind, fake_range *out)
{
    auto &ranges = fake().ranges;
    auto it = ranges.find((uintptr_t)p);
    cudaError_t e = fake_unsafe();

    if (e != cudaSuccess)
        return e;
    if (it == ranges.end() || it->second.what != kind)
        return kind == fake_range::PINNED ? cudaErrorInvalidValue
                                          : cudaErrorHostMemoryNotRegistered;
    for (fake_device &d : fake().devices) {
        e = fake_device_idle(lock, d);
        if (e != cudaSuccess)
            return e;
    }
    *out = it->second;
    ranges.erase(it);
    return cudaSuccess;
}

extern "C" cudaError_t cudaFreeHost(void *p)
{
    return fake_call("cudaFreeHost", FAKE_CONTEXT, [&](fake_lock &lock) {
        fake_range r;

        if (p == nullptr)
            return cudaSuccess;
        cudaError_t e = host_remove(lock, p, fake_range::PINNED, &r);
        if (e == cudaSuccess)
            munmap(r.base, r.bytes);
        return e;
    });
}

extern "C" cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned int flags)
{
    return fake_call("cudaHostRegister", FAKE_CONTEXT, [&](fake_lock &) {
        auto &ranges = fake().ranges;
        cudaError_t e = fake_unsafe();

        if (e != cudaSuccess)
            return e;
        if (p == nullptr || bytes == 0 || flags > 0xf || (uintptr_t)p + bytes < (uintptr_t)p)
            return cudaErrorInvalidValue;
        auto next = ranges.lower_bound((uintptr_t)p);
        bool overlaps = next != ranges.end() && next->first < (uintptr_t)p + bytes;
        if (overlaps || fake_find(p) != nullptr)
            return cudaErrorHostMemoryAlreadyRegistered;
        ranges[(uintptr_t)p] = {
            fake_range::REGISTERED, (char *)p, bytes, fake_current().index, flags, nullptr, 0, ""};
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaHostUnregister(void *p)
{
    return fake_call("cudaHostUnregister", FAKE_CONTEXT, [&](fake_lock &lock) {
        fake_range r;

        return host_remove(lock, p, fake_range::REGISTERED, &r);
    });
}

static bool on_device(const fake_range &r)
{
    return r.what == fake_range::DEVICE || r.what == fake_range::IMPORTED;
}

extern "C" cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
    return fake_call("cudaHostGetDevicePointer", FAKE_CONTEXT, [&](fake_lock &) {
        const fake_range *r = fake_find(host);

        if (device == nullptr || flags != 0 || r == nullptr || on_device(*r))
            return cudaErrorInvalidValue;
        *device = host;
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
    return fake_call("cudaHostGetFlags", FAKE_CONTEXT, [&](fake_lock &) {
        const fake_range *r = fake_find(host);

        if (flags == nullptr || r == nullptr || on_device(*r))
            return cudaErrorInvalidValue;
        *flags = r->flags | cudaHostAllocMapped;
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attr, const void *p)
{
    return fake_call("cudaPointerGetAttributes", FAKE_CONTEXT, [&](fake_lock &) {
        const fake_range *r = fake_find(p);

        if (attr == nullptr)
            return cudaErrorInvalidValue;
        *attr = cudaPointerAttributes{};
        attr->type = cudaMemoryTypeUnregistered;
        attr->device = cudaInvalidDeviceId;
        attr->hostPointer = (void *)p;
        if (r == nullptr)
            return cudaSuccess;
        attr->type = on_device(*r) ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
        attr->device = r->device;
        attr->devicePointer = (void *)p;
        attr->hostPointer = on_device(*r) ? nullptr : (void *)p;
        return cudaSuccess;
    });
}
