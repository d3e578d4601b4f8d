/*
 * Memory of devices. It is made in blocks of whole FAKE_GRAINs, each on its own memfd,
 * and allocations are cut from the first block with room. So an allocation is
 * rarely at the start of its block, and an IPC handle, which names the block,
 * says nothing about it. Around each block the address space is empty.
 */
#include "fakecudart.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

enum { FREED = 0xdf, ALIGN = 512 };

/* ---- mapping, guard -------------------------------------------------------------------------- */

/* The key of device memory; -1: this machine has none, and anybody may touch it. */
static int guard_key()
{
    static const int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);

    return key;
}

fake_guard::fake_guard() : rights_(0)
{
    if (guard_key() < 0)
        return;
    rights_ = pkey_get(guard_key());
    pkey_set(guard_key(), 0);
}

fake_guard::~fake_guard()
{
    if (guard_key() >= 0)
        pkey_set(guard_key(), (unsigned)rights_);
}

char *fake_map(int fd, size_t bytes)
{
    size_t room = bytes + 3 * FAKE_GRAIN;
    void *whole =
        mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (whole == MAP_FAILED)
        return nullptr;
    uintptr_t at = ((uintptr_t)whole + 2 * FAKE_GRAIN - 1) / FAKE_GRAIN * FAKE_GRAIN;
    char *base = (char *)at;
    char *end = base + bytes + FAKE_GRAIN;

    if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(whole, room);
        return nullptr;
    }
    if (guard_key() >= 0)
        pkey_mprotect(base, bytes, PROT_READ | PROT_WRITE, guard_key());
    /* Keep one grain before and one after. */
    if (base - FAKE_GRAIN > (char *)whole)
        munmap(whole, (size_t)(base - FAKE_GRAIN - (char *)whole));
    if ((char *)whole + room > end)
        munmap(end, (size_t)((char *)whole + room - end));
    return base;
}

void fake_unmap(char *base, size_t bytes)
{
    munmap(base - FAKE_GRAIN, bytes + 2 * FAKE_GRAIN);
}

fake_range *fake_find(const void *p)
{
    auto &ranges = fake().ranges;
    auto it = ranges.upper_bound((uintptr_t)p);

    if (it == ranges.begin())
        return nullptr;
    fake_range &r = std::prev(it)->second;
    return (const char *)p < r.base + r.bytes ? &r : nullptr;
}

/* ---- device memory --------------------------------------------------------------------------- */

/* Offset of a gap of `bytes`, or block.bytes. */
static size_t find_gap(const fake_block &b, size_t bytes)
{
    size_t at = 0;

    for (const auto &t : b.taken) {
        if (t.first - at >= bytes)
            return at;
        at = (t.first + t.second + ALIGN - 1) / ALIGN * ALIGN;
    }
    return at <= b.bytes && b.bytes - at >= bytes ? at : b.bytes;
}

static fake_block *new_block(fake_device &d, size_t bytes)
{
    if (bytes > fake().set.memory)
        return nullptr;
    size_t whole = (bytes + FAKE_GRAIN - 1) / FAKE_GRAIN * FAKE_GRAIN;
    if (whole > fake().set.memory - d.memory)
        return nullptr;
    int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
    if (fd < 0)
        return nullptr;
    char *base = ftruncate(fd, (off_t)whole) == 0 ? fake_map(fd, whole) : nullptr;
    if (base == nullptr) {
        close(fd);
        return nullptr;
    }
    d.memory += whole;
    fake().blocks.push_back({d.index, fd, base, whole, {}});
    return &fake().blocks.back();
}

static void drop_block(fake_block *b)
{
    fake().devices[(size_t)b->device].memory -= b->bytes;
    fake_unmap(b->base, b->bytes);
    close(b->fd);
    fake().blocks.remove_if([&](const fake_block &other) { return &other == b; });
}

static void *allocate(fake_device &d, size_t bytes)
{
    fake_block *from = nullptr;
    size_t at = 0;

    for (fake_block &b : fake().blocks) {
        if (b.device != d.index || from != nullptr)
            continue;
        at = find_gap(b, bytes);
        if (at < b.bytes)
            from = &b;
    }
    if (from == nullptr) {
        from = new_block(d, bytes);
        at = 0;
    }
    if (from == nullptr)
        return nullptr;
    char *p = from->base + at;
    from->taken[at] = bytes;
    fake().ranges[(uintptr_t)p] = {fake_range::DEVICE, p, bytes, d.index, 0, from, 0, ""};
    fake_guard guard;
    memset(p, FAKE_FRESH, bytes);
    return p;
}

/* Importers of the memory see it overwritten: they should have closed it. */
static void release(const fake_range &r)
{
    fake_block *b = r.block;

    {
        fake_guard guard;
        memset(r.base, FREED, r.bytes);
    }
    b->taken.erase((size_t)(r.base - b->base));
    if (b->taken.empty())
        drop_block(b);
}

void fake_release_device(fake_device &d)
{
    auto &ranges = fake().ranges;

    for (auto it = ranges.begin(); it != ranges.end();) {
        const fake_range &r = it->second;
        bool mine = r.what == fake_range::DEVICE && r.device == d.index;

        if (mine)
            release(r);
        it = mine ? ranges.erase(it) : std::next(it);
    }
}

extern "C" cudaError_t cudaMalloc(void **out, size_t bytes)
{
    return fake_call("cudaMalloc", FAKE_CONTEXT, [&](fake_lock &) {
        cudaError_t e = fake_unsafe();

        if (out == nullptr)
            return cudaErrorInvalidValue;
        *out = nullptr;
        if (e != cudaSuccess || bytes == 0)
            return e;
        *out = allocate(fake_current(), bytes);
        return *out != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
    });
}

/* Waits for the device, as CUDA does: with a kernel that never ends, it never returns. */
extern "C" cudaError_t cudaFree(void *p)
{
    return fake_call("cudaFree", FAKE_CONTEXT, [&](fake_lock &lock) {
        auto &ranges = fake().ranges;
        cudaError_t e = fake_unsafe();

        if (p == nullptr || e != cudaSuccess)
            return e;
        auto it = ranges.find((uintptr_t)p);
        if (it == ranges.end() || it->second.what != fake_range::DEVICE)
            return cudaErrorInvalidValue;
        e = fake_device_idle(lock, fake().devices[(size_t)it->second.device]);
        if (e != cudaSuccess)
            return e;
        release(it->second);
        ranges.erase(it);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    return fake_call("cudaMemGetInfo", FAKE_CONTEXT, [&](fake_lock &) {
        if (free_bytes == nullptr || total == nullptr)
            return cudaErrorInvalidValue;
        *total = fake().set.memory;
        *free_bytes = *total - fake_current().memory;
        return cudaSuccess;
    });
}
