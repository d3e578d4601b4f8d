/* Monotonic time. CLOCK_MONOTONIC is answered by the vDSO, without a system call. */
#include "base/clock.h"

#include <time.h>

int64_t cm_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail: the clock exists and ts is valid */
    return (int64_t)ts.tv_sec * CM_NS_PER_S + ts.tv_nsec;
}
