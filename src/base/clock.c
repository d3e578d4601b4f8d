/* Monotonic time. CLOCK_MONOTONIC is answered by the vDSO, without a system call. */
#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts); /* cannot fail: the clock exists and ts is valid */
    return (int64_t)ts.tv_sec * CM_NS_PER_S + ts.tv_nsec;
}

int64_t cm_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t cm_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
