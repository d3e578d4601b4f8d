/* Several engines: their names, what their rounds tell, and the table that shows it. */
#include <math.h>

#include "common/engine.h"
#include "common/merge.h"
#include "report_job.h"

static void test_lists(void)
{
    static const struct {
        const char *text, *names; /* NULL: refused */
    } cases[] = {
        {"builtin,mpi", "builtin mpi"},
        {"mpi,builtin,nccl", "mpi builtin nccl"},
        {"builtin,builtin", "builtin builtin#2"},
        {"mpi,builtin,mpi,mpi", "mpi builtin mpi#2 mpi#3"},
        {"builtin", NULL},
        {"", NULL},
        {"builtin,", NULL},
        {",builtin", NULL},
        {"builtin,,mpi", NULL},
        {"builtin,MPI", NULL},
        {"builtin,builtin,builtin,builtin,builtin", NULL},
        {"builtin,a-name-that-is-longer-than-any", NULL},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_sides s = {.n = 77};
        bool ok = cm_sides_parse(cases[i].text, &s);
        char names[128] = "";
        size_t at = 0;

        CHECK(ok == (cases[i].names != NULL), "'%s'", cases[i].text);
        CHECK(ok || s.n == 77, "'%s': out was written", cases[i].text);
        for (int k = 0; ok && k < s.n; k++) {
            at += (size_t)snprintf(names + at, sizeof(names) - at, k > 0 ? " %s" : "%s",
                                   s.of[k].name);
            CHECK(cm_sides_find(&s, s.of[k].name) == k, "'%s': %s", cases[i].text, s.of[k].name);
        }
        if (ok)
            expect(names, cases[i].names);
    }
}

static void test_one_engine(void)
{
    struct cm_sides none = {0}, mpi;

    cm_sides_one(CM_ENGINE_MPI, &mpi);
    CHECK(mpi.n == 1 && strcmp(mpi.of[0].name, "mpi") == 0, "%d sides", mpi.n);
    CHECK(cm_sides_have(&mpi, CM_ENGINE_MPI) && !cm_sides_have(&mpi, CM_ENGINE_BUILTIN), "mpi");
    CHECK(cm_sides_have(&none, CM_ENGINE_BUILTIN) && !cm_sides_have(&none, CM_ENGINE_MPI), "none");
    CHECK(cm_sides_find(&mpi, "builtin") < 0, "no such side");
}

static void test_the_table_of_engines(void)
{
    for (int i = 0; i < CM_NENGINES; i++) {
        CHECK(strcmp(cm_engines[i].name, cm_engine_names[i]) == 0, "name %d", i);
        CHECK(cm_engine_find(cm_engines[i].name) == i, "%s", cm_engines[i].name);
        CHECK(cm_engines[i].engine != NULL || i == CM_ENGINE_BUILTIN || cm_engine_absent(i) != NULL,
              "%s is neither there nor absent", cm_engines[i].name);
    }
    CHECK(cm_engine_names[CM_NENGINES] == NULL, "the names have no end");
}

/* A row of a side whose rounds took so long. */
static struct cm_row side_row(int side, int sides, const double *us, int rounds)
{
    struct cm_row row = row_of(4096, us[rounds / 2]);

    row.side = side;
    row.sides = sides;
    row.engine = job.o.sides.list.of[side].name;
    for (int half = 0; half < 2; half++) {
        row.half[half].rounds = rounds;
        memcpy(row.half[half].round_us, us, (size_t)rounds * sizeof(*us));
    }
    return row;
}

/* The median's interval: all of 5 rounds, without the extremes of 9, ... */
static void test_ratios(void)
{
    static const struct {
        int rounds;
        double mid, low, high;
    } cases[] = {{5, 3, 1, 5}, {8, 4, 1, 8}, {9, 5, 2, 8}, {12, 6, 3, 10}, {32, 16, 11, 22}};
    static const char *const options[] = {"--compare", "builtin,builtin", NULL};
    double one[CM_MAX_ROUNDS], other[CM_MAX_ROUNDS];

    job_make(&job, RANKS, 1, options);
    for (size_t i = 0; i < CM_LEN(cases); i++) {
        int n = cases[i].rounds;
        struct cm_row rows[2];
        struct cm_ratio *r = &rows[1].half[1].ratio;

        for (int k = 0; k < n; k++) { /* ratios n, n - 1, ... 1 */
            one[k] = 2 + k;
            other[k] = one[k] * (n - k);
        }
        rows[0] = side_row(0, 2, one, n);
        rows[1] = side_row(1, 2, other, n);
        cm_merge_ratios(rows, 2);
        CHECK(!rows[0].half[1].ratio.known && r->known, "%d rounds: known", n);
        CHECK(r->mid == cases[i].mid && r->low == cases[i].low && r->high == cases[i].high,
              "%d rounds: %g, %g to %g", n, r->mid, r->low, r->high);
    }
    cm_opts_free(&job.o);
}

static void test_no_ratio_without_figures(void)
{
    static const char *const options[] = {"--compare", "builtin,builtin", NULL};
    static const double us[] = {1, 1, 1, 1, 1};
    struct cm_row rows[2];

    job_make(&job, RANKS, 1, options);
    rows[0] = side_row(0, 2, us, 5);
    rows[1] = side_row(1, 2, us, 5);
    rows[1].half[0].measured = false;
    rows[0].half[1].round_us[3] = 0;
    cm_merge_ratios(rows, 2);
    CHECK(!rows[1].half[0].ratio.known && !rows[1].half[1].ratio.known, "a ratio of nothing");
    cm_opts_free(&job.o);
}

static void test_the_table_names_the_best_other(void)
{
    static const char *const options[] = {"--compare", "builtin,builtin,builtin", NULL};
    static const double us[3][5] = {{2, 2, 2, 2, 2}, {9, 9, 8, 9, 9}, {5, 5, 4, 4, 5}};
    struct cm_row rows[3];
    char l[512];

    job_make(&job, RANKS, 1, options);
    for (int i = 0; i < 3; i++)
        rows[i] = side_row(i, 3, us[i], 5);
    cm_merge_ratios(rows, 3);
    rows[0].half[0].spread_pct = 1.5;
    rows[1].half[0].wrong = 7;
    rows[1].half[1] = (struct cm_result){.why = "no such thing"};
    rows[2].half[1].round_us[4] = 1.5;
    cm_merge_ratios(rows, 3);
    CHECK(job_open(&job) == CM_OK, "open failed");
    for (int i = 0; i < 3; i++)
        cm_report_row(job.rep, &rows[i]);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    expect(line_at(job.out.text, "        4096", 0, l, sizeof(l)),
           "        4096          1024     float     sum      -1    out     2.00    3.07    1.50"
           "     8.00    0.77    0.00     4.00    1.54    0.00    2.50    2.00    2.50   faster"
           "       7");
    expect(line_at(job.out.text, "        4096", 1, l, sizeof(l)),
           "        4096          1024     float     sum      -1     in     2.00    3.07    0.00"
           "      N/A     N/A     N/A     4.00    1.54    0.00    2.00    0.75    2.50    equal"
           "       0");
    expect(line_at(job.out.text, "# builtin  ", 0, l, sizeof(l)),
           "# builtin              : faster 1, equal 1, slower 0");
    expect(line_at(job.out.text, "# Avg bus", 0, l, sizeof(l)), "# Avg bus bandwidth    : 3.072 ");
    CHECK(strstr(job.out.text, "# Note: no such thing (1 row)") != NULL, "%s", job.out.text);
}

int main(void)
{
    RUN(test_lists);
    RUN(test_one_engine);
    RUN(test_the_table_of_engines);
    RUN(test_ratios);
    RUN(test_no_ratio_without_figures);
    RUN(test_the_table_names_the_best_other);
    return test_end();
}
