/*
 * The kernels' dialect (kernels/cm_device.h) for the CPU simulator; only that file includes this.
 *
 * A CUDA thread is a fiber. Each accessor tells the runtime what it is about
 * to do and then does it itself, so that the access is compiled, and watched
 * by a sanitizer, where the kernel is. The runtime may run other fibers inside
 * any of these calls. It takes over after every load that can be a poll, in
 * barriers, and elsewhere with the chance given in struct cmsim_options.
 *
 * Sites (file, line) are those of the kernel: the defaults are evaluated where
 * an accessor is called.
 */
#ifndef CM_TESTS_SIM_CMSIM_H
#define CM_TESTS_SIM_CMSIM_H

#include <stddef.h>
#include <stdint.h>

#define CM_DEV static inline __attribute__((unused))

/* The argument is shared by all threads, as a __grid_constant__ is. */
#define CM_KERNEL(name, Args)                                                   \
    static void name(const Args &a);                                            \
    extern "C" {                                                                \
    __attribute__((visibility("default"))) extern const size_t name##_argbytes; \
    const size_t name##_argbytes = sizeof(Args);                                \
    __attribute__((visibility("default"))) void name##_thunk(void **args);      \
    void name##_thunk(void **args)                                              \
    {                                                                           \
        name(*(const Args *)args[0]);                                           \
    }                                                                           \
    }                                                                           \
    static void name(const Args &a)

/* A static is one per function and template instance, so its address names the variable. */
#define CM_SHARED(T, name)            \
    static const char name##_key = 0; \
    T &name = *(T *)cmsim_shared(&name##_key, sizeof(T), alignof(T))

#define CMSIM_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* ---- the runtime, as kernels see it (cmsim_calls.cc, cmsim_scope.cc) ------------------------ */

struct cmsim_site {
    const char *file;
    int line;
};

struct cmsim_thread {
    uint32_t tid, nthr, bid_x, bid_y, nblk_x;
};

/* Who takes part in an ordered access: threads of one block, of one device, all. */
enum cmsim_scope { CMSIM_CTA, CMSIM_GPU, CMSIM_SYS };

enum cmsim_barrier { CMSIM_BAR, CMSIM_BAR_OR };

extern "C" {
/* The thread that runs now. */
extern const struct cmsim_thread *cmsim_self;

/* Before an access: check the address, perhaps run others. A store is progress. */
void cmsim_load(const void *p, uint32_t align, struct cmsim_site at);
void cmsim_store(const void *p, uint32_t align, struct cmsim_site at);
/* The same for a store that wakes nobody: hints that waiting threads write do not count. */
void cmsim_note(const void *p, uint32_t align, struct cmsim_site at);
/* Between two 8-byte units. */
void cmsim_tear(void);
/* After a load that may be repeated until its value changes: run others. */
void cmsim_poll(const void *p, uint64_t value, struct cmsim_site at);

/* Order of accesses with a scope, for ThreadSanitizer: after the load, before the store. */
void cmsim_acquire(const void *p, enum cmsim_scope scope);
void cmsim_release(const void *p, enum cmsim_scope scope);
/* Before an atomic operation of .gpu scope: no other device may use the address meanwhile. */
void cmsim_one_device(const void *p, struct cmsim_site at);

bool cmsim_barrier(enum cmsim_barrier kind, bool v, struct cmsim_site at);
void *cmsim_shared(const void *key, size_t bytes, size_t align);
void cmsim_pause(void);
}

/* ---- the dialect ---------------------------------------------------------------------------- */

CM_DEV uint32_t cm_tid()
{
    return cmsim_self->tid;
}
CM_DEV uint32_t cm_nthr()
{
    return cmsim_self->nthr;
}
CM_DEV uint32_t cm_bid_x()
{
    return cmsim_self->bid_x;
}
CM_DEV uint32_t cm_bid_y()
{
    return cmsim_self->bid_y;
}
CM_DEV uint32_t cm_nblk_x()
{
    return cmsim_self->nblk_x;
}
CM_DEV void cm_bar(CMSIM_SITE)
{
    cmsim_barrier(CMSIM_BAR, false, {file, line});
}
CM_DEV bool cm_bar_or(bool v, CMSIM_SITE)
{
    return cmsim_barrier(CMSIM_BAR_OR, v, {file, line});
}
CM_DEV void cm_prefetch(const void *)
{
}

CM_DEV void cm_pause_ns(uint32_t)
{
    cmsim_pause();
}

template <class T> CM_DEV T cm_ld(const T *p, CMSIM_SITE)
{
    cmsim_load(p, alignof(T), {file, line});
    return *p;
}
template <class T> CM_DEV void cm_st(T *p, T v, CMSIM_SITE)
{
    cmsim_store(p, alignof(T), {file, line});
    *p = v;
}

/* Half of a vector, whatever the memory was declared as. */
typedef uint64_t __attribute__((may_alias)) cmsim_unit;

CM_DEV cm_vec16 cm_ld16(const void *p, CMSIM_SITE)
{
    const cmsim_unit *from = (const cmsim_unit *)p;
    cm_vec16 v;
    cmsim_unit *to = (cmsim_unit *)&v;

    cmsim_load(p, 16, {file, line});
    to[0] = from[0];
    cmsim_tear();
    to[1] = from[1];
    return v;
}
CM_DEV void cm_st16(void *p, cm_vec16 v, CMSIM_SITE)
{
    const cmsim_unit *from = (const cmsim_unit *)&v;
    cmsim_unit *to = (cmsim_unit *)p;

    cmsim_store(p, 16, {file, line});
    to[0] = from[0];
    cmsim_tear();
    to[1] = from[1];
}

/*
 * Flags. At .sys scope they are C++ atomics, so host code compiled with the
 * same sanitizer is ordered by them too; narrower scopes are tokens only.
 */
CM_DEV uint64_t cmsim_ld_acquire(const uint64_t *p, enum cmsim_scope scope, struct cmsim_site at)
{
    uint64_t v;

    cmsim_load(p, 8, at);
    if (scope == CMSIM_SYS)
        v = __atomic_load_n(p, __ATOMIC_ACQUIRE);
    else
        v = __atomic_load_n(p, __ATOMIC_RELAXED);
    cmsim_acquire(p, scope);
    cmsim_poll(p, v, at);
    return v;
}
CM_DEV void cmsim_st_release(uint64_t *p, uint64_t v, enum cmsim_scope scope, struct cmsim_site at)
{
    cmsim_store(p, 8, at);
    cmsim_release(p, scope);
    if (scope == CMSIM_SYS)
        __atomic_store_n(p, v, __ATOMIC_RELEASE);
    else
        __atomic_store_n(p, v, __ATOMIC_RELAXED);
}
CM_DEV uint64_t cm_ld_acquire_sys(const uint64_t *p, CMSIM_SITE)
{
    return cmsim_ld_acquire(p, CMSIM_SYS, {file, line});
}
CM_DEV void cm_st_release_sys(uint64_t *p, uint64_t v, CMSIM_SITE)
{
    cmsim_st_release(p, v, CMSIM_SYS, {file, line});
}
CM_DEV uint32_t cm_ld_relaxed_sys(const uint32_t *p, CMSIM_SITE)
{
    cmsim_load(p, 4, {file, line});
    uint32_t v = __atomic_load_n(p, __ATOMIC_RELAXED);
    cmsim_poll(p, v, {file, line});
    return v;
}
CM_DEV void cm_st_relaxed_sys(uint32_t *p, uint32_t v, CMSIM_SITE)
{
    cmsim_note(p, 4, {file, line});
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}
CM_DEV uint64_t cm_ld_relaxed_sys_u64(const uint64_t *p, CMSIM_SITE)
{
    cmsim_load(p, 8, {file, line});
    uint64_t v = __atomic_load_n(p, __ATOMIC_RELAXED);
    cmsim_poll(p, v, {file, line});
    return v;
}
CM_DEV void cm_st_relaxed_sys_u64(uint64_t *p, uint64_t v, CMSIM_SITE)
{
    cmsim_store(p, 8, {file, line});
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

struct cm_ll_half {
    uint32_t data, flag;
};
CM_DEV cm_ll_half cm_ld_ll(const void *p, CMSIM_SITE)
{
    cmsim_load(p, 8, {file, line});
    uint64_t v = __atomic_load_n((const cmsim_unit *)p, __ATOMIC_RELAXED);
    cmsim_poll(p, v, {file, line});
    return {(uint32_t)v, (uint32_t)(v >> 32)};
}
CM_DEV void cm_st_ll(void *p, uint32_t data, uint32_t flag, CMSIM_SITE)
{
    cmsim_store(p, 8, {file, line});
    __atomic_store_n((cmsim_unit *)p, (uint64_t)flag << 32 | data, __ATOMIC_RELAXED);
    cmsim_tear();
}

CM_DEV uint64_t cm_add_relaxed_gpu(uint64_t *p, uint64_t v, CMSIM_SITE)
{
    cmsim_store(p, 8, {file, line});
    cmsim_one_device(p, {file, line});
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

#endif
