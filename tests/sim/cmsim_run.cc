/*
 * One launch in memory: a single mapping with its blocks, fibers, arguments,
 * shared memory and stacks. A mapping per stack would exhaust the system's
 * number of mappings; untouched pages of a big one cost nothing.
 *
 * Mappings are kept for the next launch, because page faults cost more than
 * the fibers. Not under ThreadSanitizer: only fresh memory is without a past,
 * and a past would make races out of two launches that share nothing else.
 */
#include "cmsim_core.h"
#include "cmsim_sanitizer.h"
#include "cmsim_switch.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
    STACK = 64 << 10,
    STACK_SANITIZED = 256 << 10, /* wider frames, and reports are written on the same stack */
    /* Tops of stacks differ in this many steps, or all would compete for the same cache lines. */
    COLOURS = 32,
    COLOUR = 128
};

/* Byte offsets in the mapping. */
struct layout {
    size_t blocks, fibers, args, shared, stacks, end;
    size_t stack;
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static struct layout lay_out(const struct cmsim_launch *l)
{
    const size_t line = 64, page = 4096, nblocks = l->count;
    const size_t nfibers = nblocks * l->threads;
    struct layout at;

    at.stack = cmsim_has_tsan() || cmsim_has_asan() ? STACK_SANITIZED : STACK;
    at.blocks = round_up(sizeof(struct cmsim_run), line);
    at.fibers = round_up(at.blocks + nblocks * sizeof(struct cmsim_block), line);
    at.args = round_up(at.fibers + nfibers * sizeof(struct cmsim_fiber), line);
    at.shared = round_up(at.args + l->argbytes, page);
    at.stacks = at.shared + nblocks * CMSIM_SHARED_BYTES;
    at.end = at.stacks + nfibers * at.stack;
    return at;
}

/* Memory whose first `zeroed` bytes are 0. *bytes: wanted, then what there is. */
static char *take(size_t *bytes, size_t zeroed)
{
    for (int i = 0; i < CMSIM_IDLE; i++) {
        char *base = cmsim_core.idle[i].base;

        if (base == nullptr || cmsim_core.idle[i].bytes < *bytes ||
            cmsim_core.idle[i].bytes / 2 > *bytes)
            continue;
        *bytes = cmsim_core.idle[i].bytes;
        cmsim_core.idle[i].base = nullptr;
        memset(base, 0, zeroed);
        return base;
    }
    void *base = mmap(nullptr, *bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? nullptr : (char *)base;
}

/* Keep the mapping, in the place of one that was kept longer. */
static void give_back(char *base, size_t bytes)
{
    if (cmsim_has_tsan()) {
        munmap(base, bytes);
        return;
    }
    const unsigned i = cmsim_core.next_idle++ % CMSIM_IDLE;
    if (cmsim_core.idle[i].base != nullptr)
        munmap(cmsim_core.idle[i].base, cmsim_core.idle[i].bytes);
    cmsim_core.idle[i].base = base;
    cmsim_core.idle[i].bytes = bytes;
}

static void name_for_tsan(const struct cmsim_fiber *f)
{
    char name[64];

    snprintf(name, sizeof(name), "device %d block (%u,%u) thread %u", f->block->run->device,
             f->self.bid_x, f->self.bid_y, f->self.tid);
    __tsan_set_fiber_name(f->tsan, name);
}

static void make_fiber(struct cmsim_fiber *f, size_t i, const struct layout *at,
                       void (*entry)(void))
{
    char *base = (char *)f->block->run;

    f->stack = base + at->stacks + i * at->stack;
    f->stack_bytes = at->stack - i % COLOURS * COLOUR;
    f->context = cmsim_context(f->stack, f->stack_bytes, entry);
    if (!cmsim_has_tsan())
        return;
    f->tsan = __tsan_create_fiber(0);
    name_for_tsan(f);
}

static void make_block(struct cmsim_run *run, uint32_t b, const struct cmsim_launch *l,
                       const struct layout *at)
{
    struct cmsim_block *block = &run->blocks[b];
    const uint32_t number = l->first + b;

    block->run = run;
    block->number = number;
    block->fibers = run->fibers + (size_t)b * run->threads;
    block->shared = (char *)run + at->shared + (size_t)b * CMSIM_SHARED_BYTES;
    cmsim_asan_poison(block->shared, CMSIM_SHARED_BYTES);
    for (uint32_t t = 0; t < run->threads; t++) {
        struct cmsim_fiber *f = &block->fibers[t];

        f->block = block;
        f->self = {t, l->threads, number % l->grid_x, number / l->grid_x, l->grid_x};
    }
}

struct cmsim_run *cmsim_run_create(const struct cmsim_launch *launch, void (*entry)(void))
{
    const struct layout at = lay_out(launch);
    size_t bytes = at.end;
    char *base = take(&bytes, at.shared);

    if (base == nullptr)
        return nullptr;
    struct cmsim_run *run = (struct cmsim_run *)base;
    run->device = launch->device;
    run->thunk = launch->thunk;
    run->args = base + at.args;
    run->nblocks = launch->count;
    run->threads = launch->threads;
    run->nfibers = run->live = (size_t)run->nblocks * run->threads;
    run->blocks = (struct cmsim_block *)(base + at.blocks);
    run->fibers = (struct cmsim_fiber *)(base + at.fibers);
    run->bytes = bytes;
    memcpy(run->args, launch->args, launch->argbytes);
    for (uint32_t b = 0; b < run->nblocks; b++)
        make_block(run, b, launch, &at);
    for (size_t i = 0; i < run->nfibers; i++)
        make_fiber(&run->fibers[i], i, &at, entry);
    return run;
}

/* The end of a fiber, also of one that was abandoned with frames on its stack. */
static void unmake_fiber(struct cmsim_fiber *f, void *host)
{
    if (f->state != CMSIM_RETURNED) {
        char *top = f->stack + f->stack_bytes;
        cmsim_asan_unpoison(f->context, (size_t)(top - (char *)f->context));
    }
    if (!cmsim_has_tsan())
        return;
    cmsim_tsan_switch(f->tsan);
    cmsim_tsan_release(&f->block->run->done);
    cmsim_tsan_switch(host);
    __tsan_destroy_fiber(f->tsan);
}

void cmsim_run_destroy(struct cmsim_run *run)
{
    void *host = cmsim_has_tsan() ? __tsan_get_current_fiber() : nullptr;

    for (size_t i = 0; i < run->nfibers; i++)
        unmake_fiber(&run->fibers[i], host);
    cmsim_tsan_acquire(&run->done);
    for (uint32_t b = 0; b < run->nblocks; b++)
        cmsim_asan_unpoison(run->blocks[b].shared, CMSIM_SHARED_BYTES);
    give_back((char *)run, run->bytes);
}
