/* How long the rest of a sweep may take. */
#include "common/eta.h"

#include <math.h>
#include <string.h>

#include "common/sweep.h"
#include "test.h"

enum { MB = 1 << 20 };

/* Measure the first `rows` rows of a sweep, each in a + c x bytes; what is guessed for the rest. */
static double guess(const struct cm_opts_sweep *o, int rows, double a, double c)
{
    struct cm_sweep s = cm_sweep_of(o, true, false, 2);
    struct cm_eta e = cm_eta_of(o, s.total);

    for (int i = 0; i < rows && cm_sweep_next(&s); i++)
        cm_eta_took(&e, s.now.bytes, a + c * (double)s.now.bytes);
    return cm_eta_left(&e);
}

/* What the rest really takes. */
static double truth(const struct cm_opts_sweep *o, int rows, double a, double c)
{
    struct cm_sweep s = cm_sweep_of(o, true, false, 2);
    double sum = 0;

    for (int i = 0; cm_sweep_next(&s); i++)
        sum += i >= rows ? a + c * (double)s.now.bytes : 0;
    return sum;
}

static const struct cm_opts_sweep factor = {
    .min_bytes = 8, .max_bytes = 64 * MB, .step_factor = 2, .dtype = 7, .cycles = 1};
static const struct cm_opts_sweep cycles = {
    .min_bytes = 8, .max_bytes = 64 * MB, .step_factor = 4, .dtype = 7, .cycles = 3};
static const struct cm_opts_sweep steps = {.min_bytes = MB,
                                           .max_bytes = 64 * MB,
                                           .step_bytes = MB,
                                           .step_factor = 1,
                                           .dtype = 7,
                                           .cycles = 1};

static void test_linear_times_are_foreseen(void)
{
    static const struct cm_opts_sweep *const sweeps[] = {&factor, &cycles, &steps};
    static const double costs[][2] = {{0.01, 0}, {0, 1e-9}, {0.002, 3e-9}};

    for (size_t i = 0; i < CM_LEN(sweeps); i++) {
        for (size_t k = 0; k < CM_LEN(costs); k++) {
            double want = truth(sweeps[i], 12, costs[k][0], costs[k][1]);
            double got = guess(sweeps[i], 12, costs[k][0], costs[k][1]);

            CHECK(fabs(got - want) <= 0.01 * want, "sweep %zu, cost %zu: %g s, not %g", i, k, got,
                  want);
        }
    }
}

static void test_ends(void)
{
    struct cm_opts_sweep endless = factor;

    endless.cycles = 0;
    CHECK(isnan(guess(&factor, 0, 1, 0)), "nothing was measured");
    CHECK(isnan(guess(&endless, 5, 1, 0)), "it never ends");
    CHECK(guess(&factor, 1000, 1, 0) == 0, "all was measured");
    CHECK(guess(&factor, 1, 0.5, 0) > 0, "one row was measured");
}

/* Times that fall with size must not lead below zero. */
static void test_never_negative(void)
{
    struct cm_eta e = cm_eta_of(&factor, 24);

    cm_eta_took(&e, 8, 10);
    CHECK(cm_eta_left(&e) > 0, "%g", cm_eta_left(&e));
    cm_eta_took(&e, 16, 0.001);
    CHECK(cm_eta_left(&e) >= 0 && cm_eta_row(&e, MB) >= 0, "%g", cm_eta_left(&e));
    cm_eta_took(&e, 64 * MB, 0.5);
    CHECK(cm_eta_left(&e) >= 0, "%g", cm_eta_left(&e));
}

static void test_words(void)
{
    static const struct {
        double s;
        const char *want;
    } cases[] = {
        {0, "0 s"},       {0.2, "1 s"},         {89, "89 s"},        {90, "2 min"},
        {3600, "60 min"}, {5400, "1 h 30 min"}, {7200, "2 h 0 min"}, {359000, "99 h 43 min"},
        {1e6, "12 days"}};
    char buf[CM_SPAN_BYTES];

    for (size_t i = 0; i < CM_LEN(cases); i++)
        CHECK(strcmp(cm_eta_text(cases[i].s, buf), cases[i].want) == 0, "%g s: '%s'", cases[i].s,
              buf);
    CHECK(strlen(cm_eta_text(1e300, buf)) < CM_SPAN_BYTES, "'%s'", buf);
}

int main(void)
{
    RUN(test_linear_times_are_foreseen);
    RUN(test_ends);
    RUN(test_never_negative);
    RUN(test_words);
    return test_end();
}
