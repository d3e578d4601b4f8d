/* Robust figures of few values. All sort `v` in place; NaN of none. */
#ifndef CM_COMMON_FIND_STATS_H
#define CM_COMMON_FIND_STATS_H

#include <stddef.h>

double cm_find_median(double *v, size_t n);

/* Of an even number the larger of the two in the middle. */
double cm_find_upper_median(double *v, size_t n);

/* 1.4826 x median absolute deviation: the standard deviation, if they are normally distributed. */
double cm_find_deviation(double *v, size_t n);

#endif
