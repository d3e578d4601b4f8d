/*
 * Least squares of time = a + c x bytes, neither below 0. Only sums are kept,
 * so that a sweep of millions of rows costs nothing.
 */
#include "common/eta.h"

#include <math.h>
#include <stdio.h>

#include "common/sweep.h"

/* How many sizes one pass has, and their sum. */
static void sum_sizes(const struct cm_opts_sweep *o, double *n, double *sum)
{
    *n = 0;
    *sum = 0;
    if (o->step_factor <= 1) {
        *n = o->step_bytes == 0 ? 1 : (double)((o->max_bytes - o->min_bytes) / o->step_bytes) + 1;
        *sum = *n * (double)o->min_bytes + (double)o->step_bytes * *n * (*n - 1) / 2;
        return;
    }
    for (size_t b = o->min_bytes; b != 0; b = cm_sweep_size_after(o, b)) {
        *n += 1;
        *sum += (double)b;
    }
}

struct cm_eta cm_eta_of(const struct cm_opts_sweep *o, uint64_t rows)
{
    struct cm_eta e = {.rows = rows};
    double sizes, sum;

    sum_sizes(o, &sizes, &sum);
    if (sizes > 0)
        e.bytes = sum * (double)rows / sizes;
    return e;
}

void cm_eta_took(struct cm_eta *e, size_t bytes, double s)
{
    double b = (double)bytes;

    e->n++;
    e->sum_b += b;
    e->sum_bb += b * b;
    e->sum_t += s;
    e->sum_bt += b * s;
}

static void fit(const struct cm_eta *e, double *a, double *c)
{
    double n = (double)e->n, det = n * e->sum_bb - e->sum_b * e->sum_b;

    *c = det > 0 ? (n * e->sum_bt - e->sum_b * e->sum_t) / det : 0;
    *c = *c > 0 ? *c : 0;
    *a = (e->sum_t - *c * e->sum_b) / n;
    if (*a >= 0)
        return;
    *a = 0;
    *c = e->sum_bt / e->sum_bb;
}

double cm_eta_row(const struct cm_eta *e, size_t bytes)
{
    double a, c;

    if (e->n == 0)
        return NAN;
    fit(e, &a, &c);
    return a + c * (double)bytes;
}

double cm_eta_left(const struct cm_eta *e)
{
    double a, c, bytes;

    if (e->n == 0 || e->rows == 0)
        return NAN;
    if (e->n >= e->rows)
        return 0;
    fit(e, &a, &c);
    bytes = e->bytes > e->sum_b ? e->bytes - e->sum_b : 0;
    return a * (double)(e->rows - e->n) + c * bytes;
}

char *cm_eta_text(double s, char buf[CM_SPAN_BYTES])
{
    double min = round(s / 60);

    if (s < 90)
        snprintf(buf, CM_SPAN_BYTES, "%.0f s", ceil(s));
    else if (min < 90)
        snprintf(buf, CM_SPAN_BYTES, "%.0f min", min);
    else if (min < 100 * 60)
        snprintf(buf, CM_SPAN_BYTES, "%.0f h %.0f min", floor(min / 60), fmod(min, 60));
    else
        snprintf(buf, CM_SPAN_BYTES, "%.0f days", round(min / 60 / 24));
    return buf;
}
