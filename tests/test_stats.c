/* Statistics against figures worked out by hand. */
#include <math.h>

#include "base/status.h"
#include "common/stats.h"
#include "test.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * (fabs(a) + fabs(b) + 1);
}

static void test_no_samples_give_zeros(void)
{
    struct cm_stats s = cm_stats_of(NULL, 0);

    CHECK(s.n == 0 && s.min == 0 && s.max == 0 && s.mean == 0, "n=%zu max=%g", s.n, s.max);
    CHECK(s.p50 == 0 && s.p99 == 0 && s.stdev == 0 && s.cv_pct == 0, "p50=%g cv=%g", s.p50,
          s.cv_pct);
}

static void test_small_sets(void)
{
    const struct {
        size_t n;
        double v[5], mean, p50, p99, stdev;
    } cases[] = {
        {1, {7}, 7, 7, 7, 0},
        {2, {9, 1}, 5, 1, 9, 4}, /* the lower median */
        {3, {3, 1, 2}, 2, 2, 3, sqrt(2.0 / 3)},
        {4, {4, 3, 2, 1}, 2.5, 2, 4, sqrt(1.25)},
        {5, {5, 5, 5, 5, 5}, 5, 5, 5, 0},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        double v[5];
        struct cm_stats s;

        for (size_t k = 0; k < cases[i].n; k++)
            v[k] = cases[i].v[k];
        s = cm_stats_of(v, cases[i].n);
        CHECK(near(s.mean, cases[i].mean), "case %zu: mean %g", i, s.mean);
        CHECK(near(s.p50, cases[i].p50), "case %zu: p50 %g", i, s.p50);
        CHECK(near(s.p99, cases[i].p99), "case %zu: p99 %g", i, s.p99);
        CHECK(near(s.stdev, cases[i].stdev), "case %zu: stdev %g", i, s.stdev);
        CHECK(near(s.cv_pct, 100 * cases[i].stdev / cases[i].mean), "case %zu: cv %g", i, s.cv_pct);
        CHECK(s.min == v[0] && s.max == v[cases[i].n - 1], "case %zu: min %g max %g", i, s.min,
              s.max);
    }
}

/* Of the samples 1..n the nearest-rank percentile p is ceil(n p / 100). */
static void test_percentiles_are_nearest_ranks(void)
{
    static const size_t sizes[] = {1, 2, 19, 20, 21, 99, 100, 101, 199, 200, 1000};
    static double v[1000];

    for (size_t i = 0; i < CM_LEN(sizes); i++) {
        size_t n = sizes[i];
        struct cm_stats s;

        for (size_t k = 0; k < n; k++)
            v[k] = (double)(n - k);
        s = cm_stats_of(v, n);
        CHECK(near(s.p50, ceil((double)n * 50 / 100)), "n=%zu: p50 %g", n, s.p50);
        CHECK(near(s.p95, ceil((double)n * 95 / 100)), "n=%zu: p95 %g", n, s.p95);
        CHECK(near(s.p99, ceil((double)n * 99 / 100)), "n=%zu: p99 %g", n, s.p99);
    }
}

/* A large mean must not swallow a small spread. */
static void test_deviation_is_stable(void)
{
    double v[] = {1e9, 1e9 + 1, 1e9 + 2};
    struct cm_stats s = cm_stats_of(v, 3);

    CHECK(fabs(s.stdev - sqrt(2.0 / 3)) < 1e-6, "stdev %g", s.stdev);
}

int main(void)
{
    RUN(test_no_samples_give_zeros);
    RUN(test_small_sets);
    RUN(test_percentiles_are_nearest_ranks);
    RUN(test_deviation_is_stable);
    return test_end();
}
