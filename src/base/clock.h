/* Monotonic time in nanoseconds, and a cheaper tick counter for per-iteration samples. */
#ifndef CM_BASE_CLOCK_H
#define CM_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in ns. Comparable between the processes of one machine. ~25 ns a call. */
int64_t cm_now_ns(void);

/* CPU time that the calling thread has used, in ns. A system call. */
int64_t cm_thread_cpu_ns(void);

enum { CM_NS_PER_US = 1000, CM_NS_PER_MS = 1000000, CM_NS_PER_S = 1000000000 };

#endif
