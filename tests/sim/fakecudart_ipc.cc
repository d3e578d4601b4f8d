/*
 * Device memory of other processes. A handle names a whole block: the memfd of
 * the process that made it, found through /proc. It says nothing about where in
 * the block the exported allocation is; opening it gives the start of the block.
 */
#include "fakecudart.h"

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint32_t MAGIC = 0x66616b65;

struct handle {
    uint32_t magic;
    int32_t pid, fd, physical;
    uint64_t bytes;
    uint64_t inode; /* the descriptor may have been reused since */
};
static_assert(sizeof(handle) <= sizeof(cudaIpcMemHandle_t), "fits");

extern "C" cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *p)
{
    return fake_call("cudaIpcGetMemHandle", FAKE_CONTEXT, [&](fake_lock &) {
        const fake_range *r = fake_find(p);
        struct stat st;

        if (out == nullptr || r == nullptr || r->what != fake_range::DEVICE)
            return cudaErrorInvalidValue;
        const fake_block *b = r->block;
        if (fstat(b->fd, &st) != 0)
            return cudaErrorOperatingSystem;
        handle h = {MAGIC,    (int32_t)getpid(), b->fd, fake().devices[(size_t)b->device].physical,
                    b->bytes, st.st_ino};
        memset(out, 0, sizeof(*out));
        memcpy(out, &h, sizeof(h));
        return cudaSuccess;
    });
}

/* The block's memory in this process, or NULL. */
static char *map_block(const handle &h)
{
    char path[64];
    struct stat st;
    char *base = nullptr;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)h.pid, (int)h.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return nullptr;
    if (fstat(fd, &st) == 0 && st.st_ino == h.inode && (uint64_t)st.st_size == h.bytes)
        base = fake_map(fd, h.bytes);
    close(fd);
    return base;
}

/* Once more in the same device: the same address. */
static void *opened_before(const std::string &key)
{
    for (auto &entry : fake().ranges) {
        fake_range &r = entry.second;

        if (r.what == fake_range::IMPORTED && r.key == key) {
            r.opened++;
            return r.base;
        }
    }
    return nullptr;
}

static cudaError_t open_handle(void **out, const handle &h)
{
    fake_device &d = fake_current();

    if (h.magic != MAGIC)
        return cudaErrorInvalidValue;
    if (h.pid == getpid())
        return cudaErrorDeviceUninitialized;
    if (!fake_reaches(d.physical, h.physical))
        return cudaErrorPeerAccessUnsupported;
    std::string key((const char *)&h, sizeof(h));
    key += (char)d.index;
    *out = opened_before(key);
    if (*out != nullptr)
        return cudaSuccess;
    char *base = map_block(h);
    if (base == nullptr)
        return cudaErrorMapBufferObjectFailed;
    fake().ranges[(uintptr_t)base] = {
        fake_range::IMPORTED, base, h.bytes, d.index, 0, nullptr, 1, key};
    *out = base;
    return cudaSuccess;
}

extern "C" cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t in, unsigned int flags)
{
    return fake_call("cudaIpcOpenMemHandle", FAKE_CONTEXT, [&](fake_lock &) {
        handle h;
        cudaError_t e = fake_unsafe();

        if (out == nullptr || flags != cudaIpcMemLazyEnablePeerAccess)
            return cudaErrorInvalidValue;
        memcpy(&h, &in, sizeof(h));
        return e == cudaSuccess ? open_handle(out, h) : e;
    });
}

/* Waits for the device, as an unmapping does. */
extern "C" cudaError_t cudaIpcCloseMemHandle(void *p)
{
    return fake_call("cudaIpcCloseMemHandle", FAKE_CONTEXT, [&](fake_lock &lock) {
        auto &ranges = fake().ranges;
        auto it = ranges.find((uintptr_t)p);

        if (it == ranges.end() || it->second.what != fake_range::IMPORTED)
            return cudaErrorInvalidValue;
        fake_range &r = it->second;
        if (--r.opened > 0)
            return cudaSuccess;
        cudaError_t e = fake_device_idle(lock, fake().devices[(size_t)r.device]);
        if (e != cudaSuccess)
            return e;
        fake_unmap(r.base, r.bytes);
        ranges.erase(it);
        return cudaSuccess;
    });
}
