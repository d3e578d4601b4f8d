/*
 * What the simulator's own tests share: start kernels, run them to their end.
 */
#ifndef CM_TESTS_SIM_CMSIM_TEST_H
#define CM_TESTS_SIM_CMSIM_TEST_H

#include "kernels/cm_device.h"
#include "cmsim_host.h"
#include "sanitized.h"
#include "../test.h"

#include <string.h>

struct grid {
    unsigned x, y, threads;
    int device;
};

/* Start the kernel `name` with its struct `args` on a grid {x, y, threads, device}. */
#define START(name, args, ...) start(name##_thunk, &(args), name##_argbytes, __VA_ARGS__)

static inline int start(void (*thunk)(void **), const void *args, size_t bytes, struct grid g)
{
    const struct cmsim_launch l = {thunk, args, bytes, g.x, g.y, g.threads, g.device, 0, 0};

    return cmsim_add(&l);
}

/* Run what was started; NULL, or the error. */
static inline const char *finish(void)
{
    while (cmsim_step(1000) > 0)
        continue;
    return cmsim_error();
}

/* Forget the last case; the next one runs with these options. */
static inline void fresh(struct cmsim_options options)
{
    cmsim_configure(&options);
    cmsim_reset();
}

static inline struct cmsim_options seeded(uint64_t seed)
{
    return {seed, false, 0, false, 0};
}

static inline const char *text(const char *error)
{
    return error == nullptr ? "no error" : error;
}

/* All of the parts are in the error. */
static inline bool says(const char *error, const char *a, const char *b)
{
    return error != nullptr && strstr(error, a) != nullptr && strstr(error, b) != nullptr;
}

#endif
