/*
 * What a kernel calls: the two sides of an access, barriers, shared memory.
 * Everything here runs on a fiber (see cmsim_core.h for what that forbids).
 */
#include "cmsim_core.h"
#include "cmsim_sanitizer.h"

/* ---- accesses ------------------------------------------------------------------------------- */

static void count_poll(struct cmsim_fiber *f)
{
    if (f->seen != cmsim_core.progress)
        f->polls = 0;
    f->seen = cmsim_core.progress;
    f->polls++;
}

/*
 * Without preemption a switch is due only after very many accesses. Who gets
 * there may be polling with weak loads: that counts as a poll, so that it is found, too.
 */
static void preempt(const void *p, struct cmsim_site at)
{
    struct cmsim_fiber *f = cmsim_core.now;

    cmsim_core.until_preempt = cmsim_preempt_gap();
    if (cmsim_core.options.preempt_permille == 0) {
        f->at = at;
        f->address = p;
        f->value = 0;
        count_poll(f);
    }
    cmsim_yield();
}

static inline void touch(const void *p, uint32_t align, struct cmsim_site at)
{
    if (((uintptr_t)p & (align - 1)) != 0)
        cmsim_fail(CMSIM_MISALIGNED, at, p, align);
    if (--cmsim_core.until_preempt <= 0)
        preempt(p, at);
}

void cmsim_load(const void *p, uint32_t align, struct cmsim_site at)
{
    touch(p, align, at);
}

void cmsim_store(const void *p, uint32_t align, struct cmsim_site at)
{
    touch(p, align, at);
    cmsim_core.progress++;
}

void cmsim_note(const void *p, uint32_t align, struct cmsim_site at)
{
    touch(p, align, at);
}

void cmsim_tear(void)
{
    if (--cmsim_core.until_tear > 0)
        return;
    cmsim_core.until_tear = cmsim_tear_gap();
    cmsim_yield();
}

void cmsim_poll(const void *p, uint64_t value, struct cmsim_site at)
{
    struct cmsim_fiber *f = cmsim_core.now;

    f->at = at;
    f->address = p;
    f->value = value;
    count_poll(f);
    cmsim_yield();
}

void cmsim_pause(void)
{
    cmsim_yield();
}

/* ---- barriers ------------------------------------------------------------------------------- */

static bool same_site(struct cmsim_site a, struct cmsim_site b)
{
    const char *s = a.file, *t = b.file;

    if (a.line != b.line)
        return false;
    while (s != t && *s != '\0' && *s == *t) {
        s++;
        t++;
    }
    return s == t || *s == *t;
}

static void gather(struct cmsim_block *b, enum cmsim_barrier kind, bool v, struct cmsim_site at)
{
    if (b->returned > 0)
        cmsim_fail(CMSIM_BARRIER_LEFT, at, nullptr, 1);
    if (b->arrived == 0) {
        b->kind = kind;
        b->at = at;
        b->any = false;
    }
    if (kind != b->kind || !same_site(at, b->at))
        cmsim_fail(CMSIM_BARRIER_MIXED, at, nullptr, kind);
    b->any |= v;
    b->arrived++;
}

static void open_barrier(struct cmsim_block *b, const struct cmsim_fiber *last)
{
    b->result[b->generation % 2] = b->any;
    b->generation++;
    b->arrived = 0;
    for (uint32_t t = 0; t < last->self.nthr; t++)
        if (&b->fibers[t] != last)
            cmsim_wake(&b->fibers[t]);
}

/*
 * Results and tokens alternate between two generations: a thread may arrive in
 * the next barrier before a slower one has left this one, but not in the one after.
 */
bool cmsim_barrier(enum cmsim_barrier kind, bool v, struct cmsim_site at)
{
    struct cmsim_fiber *f = cmsim_core.now;
    struct cmsim_block *b = f->block;
    const uint32_t parity = b->generation % 2;

    gather(b, kind, v, at);
    cmsim_tsan_release(&b->token[parity]);
    if (b->arrived == f->self.nthr) {
        open_barrier(b, f);
        cmsim_yield();
    } else {
        cmsim_block_self();
    }
    cmsim_tsan_acquire(&b->token[parity]);
    return b->result[parity];
}

/* ---- shared memory -------------------------------------------------------------------------- */

/* By hand and volatile: a memset() would be an access of the kernel to ThreadSanitizer. */
static void poison(char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)p)[i] = (char)0xd7;
}

static void *add_shared(struct cmsim_block *b, const void *key, size_t bytes, size_t align)
{
    const size_t red = 64; /* between variables, for AddressSanitizer to notice */
    const size_t at = (b->shared_used + red + align - 1) / align * align;

    if (b->nvars == CMSIM_SHARED_VARS || at + bytes > CMSIM_SHARED_BYTES)
        cmsim_fail(CMSIM_SHARED_FULL, {nullptr, 0}, nullptr, bytes);
    b->shared_used = at + bytes;
    b->vars[b->nvars++] = {key, b->shared + at};
    cmsim_asan_unpoison(b->shared + at, bytes);
    poison(b->shared + at, bytes);
    return b->shared + at;
}

void *cmsim_shared(const void *key, size_t bytes, size_t align)
{
    struct cmsim_block *b = cmsim_core.now->block;

    for (uint32_t i = 0; i < b->nvars; i++)
        if (b->vars[i].key == key)
            return b->vars[i].at;
    return add_shared(b, key, bytes, align);
}
