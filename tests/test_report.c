/* The table of the report against golden text. */
#include <math.h>

#include "report_job.h"

static void test_header_and_titles(void)
{
    static const char *const options[] = {"-b", "8", "-e", "128M", "-f", "2", NULL};
    char l[512];

    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK && job_close(&job, &fine) == CM_OK, "report failed");
    expect(line_at(job.out.text, "# Collective test starting", 0, l, sizeof(l)),
           "# Collective test starting: all_reduce_perf");
    expect(line_at(job.out.text, "# nThread", 0, l, sizeof(l)),
           "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 1 "
           "iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0");
    expect(line_at(job.out.text, "# Note: 4 ranks", 0, l, sizeof(l)),
           "# Note: 4 ranks share 2 CPUs, so they wait for each other's time slices");
    expect(line_at(job.out.text, "# Using devices", 1, l, sizeof(l)),
           "#  Rank  0 Group  0 Pid   4242 on      alpha device  0 [host] Example CPU cpus 0-1 "
           "numa 0 node 0");
    expect(line_at(job.out.text, "# Using devices", 6, l, sizeof(l)),
           "#                                                              out-of-place           "
           "            in-place          ");
    expect(line_at(job.out.text, "#       size", 0, l, sizeof(l)),
           "#       size         count      type   redop    root     time   algbw   busbw  #wrong "
           "    time   algbw   busbw  #wrong ");
    expect(line_at(job.out.text, "#       size", 1, l, sizeof(l)),
           "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)         "
           "    (us)  (GB/s)  (GB/s)         ");
}

static void test_rows_keep_columns(void)
{
    static const struct {
        double us, gbs;
        int64_t wrong;
        bool checked;
        const char *half;
    } cases[] = {
        {1.25, 0.004, 0, true, "     1.25    0.00    0.01       0"},
        {12345.678, 123.456, 7, true, "  12345.7  123.46  185.18       7"},
        {1234567.9, 12345.6, 999999, true, "  1234568   12346   18518  999999"},
        {123456789, 1e9, 1234567, true, "  1.2e+08   1e+09   2e+09   1e+06"},
        {5, 1, 0, false, "     5.00    1.00    1.50     N/A"},
        {NAN, INFINITY, 0, true, "      N/A     N/A     N/A       0"},
    };
    static const char *const none[] = {NULL};
    char l[512], want[512];

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_row row = row_of(1048576, 1);

        row.half[0].time_us = cases[i].us;
        row.half[0].alg_gbs = cases[i].gbs;
        row.half[0].bus_gbs = 1.5 * cases[i].gbs;
        row.half[0].wrong = cases[i].wrong;
        row.half[0].checked = cases[i].checked;
        row.half[1] = (struct cm_result){.measured = false, .why = "no in-place form"};
        row.note = "no in-place form";
        job_make(&job, RANKS, 1, none);
        CHECK(job_open(&job) == CM_OK, "open failed");
        cm_report_row(job.rep, &row);
        CHECK(job_close(&job, &fine) == CM_OK, "close failed");
        snprintf(want, sizeof(want),
                 "     1048576        262144     float     sum      -1%s      N/A     N/A     N/A "
                 "    N/A",
                 cases[i].half);
        expect(line_at(job.out.text, "     1048576", 0, l, sizeof(l)), want);
        CHECK(strlen(l) == 118 && fields_of(l) == 13, "%zu bytes, %d fields", strlen(l),
              fields_of(l));
        CHECK(strstr(job.out.text, "# Note: no in-place form (1 row)") != NULL, "no remark");
    }
}

static void test_extra_columns(void)
{
    static const char *const options[] = {"-I", "1", "-S", "1", "-C", "1", NULL};
    struct cm_row row = row_of(4096, 8);
    char l[512];

    row.half[0].has_samples = true;
    row.half[0].samples = (struct cm_stats){.n = 20, .min = 7, .max = 99.5, .p99 = 90, .cv_pct = 3};
    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    cm_report_row(job.rep, &row);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    expect(line_at(job.out.text, "#       size", 0, l, sizeof(l)),
           "#       size         count      type   redop    root  cputime   algbw   busbw  #wrong "
           "   i_min    i_max    i_p99    i_cv%  cputime   algbw   busbw  #wrong    i_min    i_max "
           "   i_p99    i_cv%            timestamp");
    expect(line_at(job.out.text, "        4096", 0, l, sizeof(l)),
           "        4096          1024     float     sum      -1     4.00    0.51    0.77       0 "
           "    7.00    99.50    90.00     3.00     4.00    0.51    0.77       0      N/A      N/A "
           "     N/A      N/A 2026-01-01T00:00:00Z");
    CHECK(strstr(job.out.text, "# Per-Iteration Report") != NULL, "-I is not in the header");
}

static void test_footer(void)
{
    static const struct {
        int64_t wrong;
        bool counted, checked;
        const char *min_bw, *bounds, *average;
        bool below;
    } cases[] = {
        {0, true, true, "0", "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.5 ",
         false},
        {9, true, true, "0", "# Out of bounds values : 9 FAILED", "# Avg bus bandwidth    : 1.5 ",
         false},
        {0, true, true, "1.6", "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.5 OK",
         false},
        {0, true, true, "2", "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.5 FAILED",
         true},
        {0, false, true, "0", "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : N/A ",
         false},
        {0, false, true, "1", "# Out of bounds values : 0 OK",
         "# Avg bus bandwidth    : N/A FAILED", true},
        {0, true, false, "0", "# Out of bounds values : N/A (nothing was checked)",
         "# Avg bus bandwidth    : 1.5 ", false},
    };
    char l[512];

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        const char *options[] = {"--min-bw", cases[i].min_bw, NULL};
        struct cm_summary s = {.status = CM_OK, .wrong = cases[i].wrong};
        struct cm_row row = row_of(1000, 1);

        row.counted = cases[i].counted;
        row.note = row.counted ? NULL : "rounded to 0 bytes";
        row.half[0].checked = row.half[1].checked = cases[i].checked;
        job_make(&job, RANKS, 1, options);
        CHECK(job_open(&job) == CM_OK, "open failed");
        cm_report_row(job.rep, &row);
        cm_report_row(job.rep, &row);
        CHECK(cm_report_below(job.rep) == cases[i].below, "case %zu", i);
        CHECK(job_close(&job, &s) == CM_OK, "close failed");
        expect(line_at(job.out.text, "# Out of", 0, l, sizeof(l)), cases[i].bounds);
        expect(line_at(job.out.text, "# Avg bus", 0, l, sizeof(l)), cases[i].average);
        CHECK((strstr(job.out.text, "# Verdict ") != NULL) == (strcmp(cases[i].min_bw, "0") != 0),
              "case %zu", i);
        expect(line_at(job.out.text, "# Collective test concluded", 0, l, sizeof(l)),
               "# Collective test concluded: all_reduce_perf");
        CHECK((strstr(job.out.text, "# Note: rounded to 0 bytes (2 rows)") != NULL) == !row.counted,
              "case %zu", i);
    }
}

static void test_one_rank_says_so(void)
{
    static const char *const none[] = {NULL};
    char l[512];

    job_make(&job, 1, 1, none);
    CHECK(job_open(&job) == CM_OK && job_close(&job, &fine) == CM_OK, "report failed");
    CHECK(strstr(job.out.text, "# Note: 1 rank: nothing is communicated\n") != NULL, "not said");
    expect(line_at(job.out.text, "# Avg bus", 0, l, sizeof(l)), "# Avg bus bandwidth    : N/A ");
}

static void test_gpus_in_the_header(void)
{
    static const char *const options[] = {"-M", "1", NULL};
    struct cm_row row = row_of(4096, 8);
    char l[512];

    job_make(&job, RANKS, 1, options);
    job_on_gpus(&job, RANKS);
    job.o.run.graph = 5; /* the option is refused where nothing can capture */
    CHECK(job_open(&job) == CM_OK, "open failed");
    row.memory = (struct cm_memory){.init = 300 << 20, .buffers = 96 << 20, .peak = 500 << 20};
    cm_report_row(job.rep, &row);
    row.memory.peak = 499 << 20;
    cm_report_row(job.rep, &row);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    CHECK(strstr(line_at(job.out.text, "# collmark", 0, l, sizeof(l)),
                 " backend=cuda wire=p2p+ipc") != NULL,
          "'%s'", l);
    CHECK(strstr(job.out.text, " graph: 5 unalign: 0\n") != NULL, "no count of graphs");
    expect(line_at(job.out.text, "# Kernels", 0, l, sizeof(l)),
           "# Kernels: CUDA  clock: CUDA events");
    expect(line_at(job.out.text, "# CUDA:", 0, l, sizeof(l)), "# CUDA: driver 13.2, runtime 13.0");
    expect(line_at(job.out.text, "# CUDA:", 1, l, sizeof(l)),
           "# Note: 4 ranks share 2 GPUs (--oversubscribe)");
    expect(line_at(job.out.text, "#  Rank  3", 0, l, sizeof(l)),
           "#  Rank  3 Group  0 Pid   4242 on      alpha device  3 [0000:1c:00] NVIDIA H200");
    expect(line_at(job.out.text, "# GPU memory", 0, l, sizeof(l)),
           "# GPU memory usage     : 300M initialization | 96M of buffers | 500M peak of a GPU");
}

static void test_host_for_want_of_gpus(void)
{
    static const char *const none[] = {NULL};
    char l[512];

    job_make(&job, RANKS, 1, none);
    job.rank.no_gpu = "no CUDA driver";
    CHECK(job_open(&job) == CM_OK && job_close(&job, &fine) == CM_OK, "report failed");
    CHECK(strstr(job.out.text, " backend=host wire=loop\n") != NULL, "no backend");
    expect(line_at(job.out.text, "# Note: backend", 0, l, sizeof(l)),
           "# Note: backend host (no usable GPU: no CUDA driver)");
}

static void test_many_ranks_share_a_line(void)
{
    static const char *const none[] = {NULL};
    char l[512];

    job_make(&job, 20, 1, none);
    for (int r = 10; r < 20; r++)
        job.infos[r].node = 1;
    CHECK(job_open(&job) == CM_OK && job_close(&job, &fine) == CM_OK, "report failed");
    expect(line_at(job.out.text, "#  Rank", 0, l, sizeof(l)),
           "#  Rank  0-9 Group  0 Pid   4242 on      alpha device  0-9 [host] Example CPU cpus "
           "0-1 numa 0 node 0");
    expect(line_at(job.out.text, "#  Rank", 2, l, sizeof(l)), "#");
}

static void test_groups_follow(void)
{
    static const char *const options[] = {"--split", "mod:2", NULL};
    struct cm_row row = row_of(1000, 1);
    char l[512];

    job_make(&job, RANKS, 2, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    cm_report_row(job.rep, &row);
    row.group = 1;
    row.bytes = 1001;
    row.half[0].bus_gbs = row.half[1].bus_gbs = 0.5;
    cm_report_row(job.rep, &row);
    row.group = 0;
    row.bytes = 1002;
    cm_report_row(job.rep, &row);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    CHECK(strstr(job.out.text, "# Group 0: ranks 0,2 ") != NULL, "no group 0");
    expect(line_at(job.out.text, "        1002", 2, l, sizeof(l)), "# Group 1: ranks 1,3");
    line_at(job.out.text, "        1002", 7, l, sizeof(l));
    CHECK(strncmp(l, "        1001", 12) == 0, "'%s'", l);
    expect(line_at(job.out.text, "# Avg bus", 0, l, sizeof(l)), "# Avg bus bandwidth    : 1 ");
    CHECK(strstr(line_at(job.out.text, "# Avg bus", 1, l, sizeof(l)), "group 0") != NULL, "'%s'",
          l);
    expect(line_at(job.out.text, "# Slowest", 0, l, sizeof(l)),
           "# Slowest group        : 1 (0.5 GB/s average)");
    expect(line_at(job.out.text, "# Sum of", 0, l, sizeof(l)),
           "# Sum of groups        : 1.5 GB/s average");
}

int main(void)
{
    RUN(test_header_and_titles);
    RUN(test_rows_keep_columns);
    RUN(test_extra_columns);
    RUN(test_footer);
    RUN(test_one_rank_says_so);
    RUN(test_gpus_in_the_header);
    RUN(test_host_for_want_of_gpus);
    RUN(test_many_ranks_share_a_line);
    RUN(test_groups_follow);
    return test_end();
}
