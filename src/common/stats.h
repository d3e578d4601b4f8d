/* Statistics of a set of samples. */
#ifndef CM_COMMON_STATS_H
#define CM_COMMON_STATS_H

#include <stddef.h>

struct cm_stats {
    size_t n;
    double min, max, mean, p50, p95, p99, stdev, cv_pct; /* stdev: population; 0 samples: all 0 */
};

/*
 * Order statistics by nearest rank, index ceil(n p / 100) - 1: p50 is the lower
 * median. Sorts `v` in place.
 */
struct cm_stats cm_stats_of(double *v, size_t n);

#endif
