/* Medians: half of the values may be anything. */
#include "common/find_stats.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double cm_find_upper_median(double *v, size_t n)
{
    if (n == 0)
        return NAN;
    qsort(v, n, sizeof(*v), compare);
    return v[n / 2];
}

double cm_find_median(double *v, size_t n)
{
    double upper = cm_find_upper_median(v, n);

    return n > 0 && n % 2 == 0 ? (v[n / 2 - 1] + upper) / 2 : upper;
}

double cm_find_deviation(double *v, size_t n)
{
    double median = cm_find_median(v, n);

    for (size_t i = 0; i < n; i++)
        v[i] = fabs(v[i] - median);
    return 1.4826 * cm_find_median(v, n);
}
