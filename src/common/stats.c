/*
 * Statistics of a set of samples.
 *
 * Percentiles are samples, never interpolated (nearest rank), so every figure
 * in a report was measured. The deviation is taken around the mean in a second
 * pass: one pass over squares would cancel for long, steady runs.
 */
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Smallest sample that at least p percent of all samples do not exceed. */
static double percentile(const double *sorted, size_t n, size_t p)
{
    size_t whole = n / 100 * p, rest = n % 100 * p; /* n * p / 100 without overflow */

    return sorted[whole + (rest + 99) / 100 - 1];
}

struct cm_stats cm_stats_of(double *v, size_t n)
{
    struct cm_stats s;
    double sum = 0, squares = 0;

    memset(&s, 0, sizeof(s));
    if (n == 0)
        return s;
    qsort(v, n, sizeof(*v), by_value);
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    s.n = n;
    s.min = v[0];
    s.max = v[n - 1];
    s.mean = sum / (double)n;
    s.p50 = percentile(v, n, 50);
    s.p95 = percentile(v, n, 95);
    s.p99 = percentile(v, n, 99);
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - s.mean) * (v[i] - s.mean);
    s.stdev = sqrt(squares / (double)n);
    s.cv_pct = s.mean > 0 ? 100 * s.stdev / s.mean : 0;
    return s;
}
