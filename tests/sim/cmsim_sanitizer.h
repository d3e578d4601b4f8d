/*
 * Calls into the sanitizers' runtimes. The references are weak, so that the
 * same objects serve a program with AddressSanitizer, with ThreadSanitizer, or with neither.
 */
#ifndef CM_TESTS_SIM_CMSIM_SANITIZER_H
#define CM_TESTS_SIM_CMSIM_SANITIZER_H

#include <stddef.h>

#define CMSIM_WEAK __attribute__((weak))

extern "C" {
CMSIM_WEAK void *__tsan_get_current_fiber(void);
CMSIM_WEAK void *__tsan_create_fiber(unsigned flags);
CMSIM_WEAK void __tsan_destroy_fiber(void *fiber);
CMSIM_WEAK void __tsan_switch_to_fiber(void *fiber, unsigned flags);
CMSIM_WEAK void __tsan_set_fiber_name(void *fiber, const char *name);
CMSIM_WEAK void __tsan_acquire(void *address);
CMSIM_WEAK void __tsan_release(void *address);
CMSIM_WEAK void __sanitizer_start_switch_fiber(void **fake, const void *bottom, size_t bytes);
CMSIM_WEAK void __sanitizer_finish_switch_fiber(void *fake, const void **bottom, size_t *bytes);
CMSIM_WEAK void __asan_poison_memory_region(const volatile void *address, size_t bytes);
CMSIM_WEAK void __asan_unpoison_memory_region(const volatile void *address, size_t bytes);
}

static inline bool cmsim_has_tsan(void)
{
    return __tsan_create_fiber != nullptr;
}
static inline bool cmsim_has_asan(void)
{
    return __asan_poison_memory_region != nullptr;
}

/* Become another fiber for ThreadSanitizer, without ordering anything. */
static inline void cmsim_tsan_switch(void *fiber)
{
    enum { NO_SYNC = 1 };

    if (cmsim_has_tsan())
        __tsan_switch_to_fiber(fiber, NO_SYNC);
}
static inline void cmsim_tsan_acquire(void *token)
{
    if (cmsim_has_tsan())
        __tsan_acquire(token);
}
static inline void cmsim_tsan_release(void *token)
{
    if (cmsim_has_tsan())
        __tsan_release(token);
}

/* Around a switch of stacks. fake == NULL: the left stack is never resumed. */
static inline void cmsim_asan_leave(void **fake, const void *bottom, size_t bytes)
{
    if (__sanitizer_start_switch_fiber != nullptr)
        __sanitizer_start_switch_fiber(fake, bottom, bytes);
}
static inline void cmsim_asan_arrive(void *fake, const void **bottom, size_t *bytes)
{
    if (__sanitizer_finish_switch_fiber != nullptr)
        __sanitizer_finish_switch_fiber(fake, bottom, bytes);
}
static inline void cmsim_asan_poison(const void *p, size_t bytes)
{
    if (cmsim_has_asan())
        __asan_poison_memory_region(p, bytes);
}
static inline void cmsim_asan_unpoison(const void *p, size_t bytes)
{
    if (cmsim_has_asan())
        __asan_unpoison_memory_region(p, bytes);
}

#endif
