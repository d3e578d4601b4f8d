/* CPUs: which a process may use, which rank gets which. */
#ifndef CM_COMMON_AFFINITY_H
#define CM_COMMON_AFFINITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { CM_MAX_CPUS = 1024, CM_CPU_WORDS = CM_MAX_CPUS / 64 };

struct cm_cpus {
    uint64_t bits[CM_CPU_WORDS];
};

static inline bool cm_cpus_has(const struct cm_cpus *s, int cpu)
{
    return (s->bits[cpu / 64] >> (cpu % 64) & 1) != 0;
}
static inline void cm_cpus_add(struct cm_cpus *s, int cpu)
{
    s->bits[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}
int cm_cpus_count(const struct cm_cpus *s);

/* "0-3,8" into buf, cut with "..." if it does not fit. */
void cm_cpus_format(const struct cm_cpus *s, char *buf, size_t size);

/* CPUs of the calling thread; empty if the kernel does not tell. */
void cm_cpus_allowed(struct cm_cpus *out);

/* CPUs' worth of time that control groups grant this process, rounded up; CM_MAX_CPUS: no limit. */
int cm_cpu_quota(void);

/* Bind the calling thread to `cpu`. Best effort: without it the run is only less steady. */
void cm_cpu_pin(int cpu);

/* NUMA node of all CPUs in `s`, or -1: several, or unknown. */
int cm_cpus_numa(const struct cm_cpus *s);

/* Model name of the machine's CPUs, or its architecture. */
void cm_cpu_model(char *buf, size_t size);

/* Processes of one machine that want CPUs. */
struct cm_cpu_plan {
    int nprocs;
    const struct cm_cpus *masks; /* nprocs */
    const int32_t *first_of;     /* ranks of process p: first_of[p] .. first_of[p + 1] - 1 */
    int quota;                   /* the least of all processes */
};

/*
 * Give each rank a CPU of its own from its process's mask: cpu_of[rank].
 * False, and all -1: there are not enough. Every process comes to the same
 * result. CPUs with idle hyperthread siblings go first.
 */
bool cm_cpu_assign(const struct cm_cpu_plan *p, int32_t *cpu_of);

#endif
