/* The verdict on a placement: nothing without a finite and right figure passes. */
#include "common/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "report_job.h"

static const struct cm_subject about = {"all_reduce", "float", "ring", "loop", 65536, 8, 1};

/* A measured placement of 10 us and 6 GB/s. */
static struct cm_result placement(void)
{
    return (struct cm_result){
        .measured = true, .checked = true, .time_us = 10, .alg_gbs = 4, .bus_gbs = 6};
}

static struct cm_judge *judge_of(const char *const *options)
{
    struct cm_judge *j = NULL;

    job_make(&job, 8, 1, options);
    CHECK(cm_judge_open(&job.rank, &j) == CM_OK, "%s", options[0]);
    return j;
}

static void test_limits(void)
{
    static const struct {
        const char *options[5];
        double us, gbs;
        enum cm_judgement want;
        const char *why;
    } cases[] = {
        {{NULL}, 10, 6, CM_JUDGED_NOT, ""},
        {{"--min-bw", "100", NULL}, 10, 6, CM_JUDGED_NOT, ""},
        {{"--min-busbw", "6", NULL}, 10, 6, CM_JUDGED_OK, ""},
        {{"--min-busbw", "6.1", NULL}, 10, 6, CM_JUDGED_BELOW, "6 GB/s, want at least 6.1"},
        {{"--min-busbw", "6", NULL}, 10, NAN, CM_JUDGED_NO_FIGURE, "no time or bandwidth"},
        {{"--min-busbw", "6", NULL}, 10, INFINITY, CM_JUDGED_NO_FIGURE, "no time or bandwidth"},
        {{"--min-busbw", "6", NULL}, NAN, 6, CM_JUDGED_NO_FIGURE, "no time or bandwidth"},
        {{"--max-time-us", "10", NULL}, 10, 6, CM_JUDGED_OK, ""},
        {{"--max-time-us", "9", NULL}, 10, 6, CM_JUDGED_BELOW, "10 us, want at most 9"},
        {{"--max-time-us", "9", NULL}, 0, 6, CM_JUDGED_NO_FIGURE, "no time or bandwidth"},
        {{"--max-time-us", "9", NULL}, -1, 6, CM_JUDGED_NO_FIGURE, "no time or bandwidth"},
        {{"--min-busbw", "5", "--max-time-us", "9", NULL}, 10, 6, CM_JUDGED_BELOW, "--max-time-us"},
        {{"--peak", "12", NULL}, 10, 6, CM_JUDGED_NOT, ""},
        {{"--peak", "12", "--min-peak", "50", NULL}, 10, 6, CM_JUDGED_OK, ""},
        {{"--peak", "12", "--min-peak", "51", NULL}, 10, 6, CM_JUDGED_BELOW, "50 % of peak"},
        {{"--peak", "a100-sxm", "--min-peak", "2", NULL}, 10, 6, CM_JUDGED_OK, ""},
        {{"--peak", "a100-sxm", "--min-peak", "3", NULL}, 10, 6, CM_JUDGED_BELOW, "% of peak"},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_judge *j = judge_of(cases[i].options);
        struct cm_result half = placement();
        struct cm_judged d;

        half.time_us = cases[i].us;
        half.bus_gbs = cases[i].gbs;
        cm_judge_half(j, CM_ALL_REDUCE, &about, &half, &d);
        CHECK(d.verdict == cases[i].want, "case %zu: %d, %s", i, (int)d.verdict, d.why);
        CHECK(strstr(d.why, cases[i].why) != NULL, "case %zu: '%s'", i, d.why);
        CHECK((d.why[0] != '\0') == cm_judged_failed(&d), "case %zu: '%s'", i, d.why);
        cm_judge_close(j);
        cm_opts_free(&job.o);
    }
}

static void test_what_never_passes(void)
{
    static const char *const options[] = {"--min-busbw", "1", NULL}, *const none[] = {NULL};
    struct cm_judge *j = judge_of(options);
    struct cm_result half = placement();
    struct cm_judged d;

    half.wrong = 1;
    cm_judge_half(j, CM_ALL_REDUCE, &about, &half, &d);
    CHECK(d.verdict == CM_JUDGED_WRONG, "wrong data: %d", (int)d.verdict);
    half = (struct cm_result){.measured = false, .why = "rounds to 0 bytes"};
    cm_judge_half(j, CM_ALL_REDUCE, &about, &half, &d);
    CHECK(d.verdict == CM_JUDGED_NO_FIGURE && strstr(d.why, "rounds to 0") != NULL, "%s", d.why);
    half.absent = true; /* nobody asked for it */
    cm_judge_half(j, CM_ALL_REDUCE, &about, &half, &d);
    CHECK(d.verdict == CM_JUDGED_NOT && isnan(d.peak_pct), "absent: %d", (int)d.verdict);
    half = placement();
    half.checked = false; /* -c 0: the user's choice */
    half.wrong = 7;
    cm_judge_half(j, CM_ALL_REDUCE, &about, &half, &d);
    CHECK(d.verdict == CM_JUDGED_OK, "not checked: %d", (int)d.verdict);
    cm_judge_close(j);
    cm_opts_free(&job.o);

    j = judge_of(none);
    half.checked = true;
    cm_judge_half(j, CM_ALL_REDUCE, &about, &half, &d);
    CHECK(d.verdict == CM_JUDGED_WRONG, "wrong without thresholds: %d", (int)d.verdict);
    CHECK(!cm_judge_asks(j), "nothing was asked");
    cm_judge_close(j);
    cm_opts_free(&job.o);
}

static void test_rules_of_a_file(void)
{
    static const char rules[] = "* * 0-1K * * * max_time=5\n"
                                "* * 64K * * * min_busbw=7\n"
                                "* * 1M * * * ignore\n";
    static const struct {
        size_t bytes;
        enum cm_judgement want;
        const char *why;
    } cases[] = {
        {8, CM_JUDGED_BELOW, "want at most 5 ("},
        {65536, CM_JUDGED_BELOW, "want at least 7 ("},
        {1 << 20, CM_JUDGED_NOT, ""},
        {2048, CM_JUDGED_NO_RULE, "no rule of "},
    };
    char path[] = "/tmp/collmark-rules-XXXXXX";
    const char *options[] = {"--thresholds", path, NULL};
    int fd = mkstemp(path);
    struct cm_result half = placement();
    struct cm_judge *j;

    CHECK(fd >= 0 && write(fd, rules, sizeof(rules) - 1) > 0 && close(fd) == 0, "%s", path);
    j = judge_of(options);
    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_subject s = about;
        struct cm_judged d;

        s.bytes = cases[i].bytes;
        cm_judge_half(j, CM_ALL_REDUCE, &s, &half, &d);
        CHECK(d.verdict == cases[i].want && strstr(d.why, cases[i].why) != NULL,
              "%zu bytes: %d, '%s'", cases[i].bytes, (int)d.verdict, d.why);
    }
    cm_judge_close(j);
    cm_opts_free(&job.o);
    unlink(path);
}

static void test_machines(void)
{
    static const char *const by_itself[] = {"--peak", "auto", "--min-peak", "1", NULL};
    struct cm_subject four = about;
    struct cm_result half = placement();
    struct cm_judge *j = NULL;
    struct capture err;
    struct cm_judged d;

    job_make(&job, 8, 1, by_itself);
    capture_begin(&err, STDERR_FILENO);
    CHECK(cm_judge_open(&job.rank, &j) == CM_EUNSUP, "host memory");
    job_on_gpus(&job, 8);
    CHECK(cm_judge_open(&job.rank, &j) == CM_EUNSUP, "shared GPUs");
    job.rank.shared_gpus = false;
    snprintf(job.infos[5].gpu, sizeof(job.infos[5].gpu), "NVIDIA H100 PCIe");
    CHECK(cm_judge_open(&job.rank, &j) == CM_EUNSUP, "two kinds of GPUs");
    capture_end(&err);
    CHECK(strstr(err.text, "rank 5 has 'NVIDIA H100 PCIe'") != NULL, "%s", err.text);
    job_on_gpus(&job, 8);
    job.rank.shared_gpus = false;
    CHECK(cm_judge_open(&job.rank, &j) == CM_OK, "eight H200");
    cm_judge_half(j, CM_ALL_REDUCE, &about, &half, &d);
    CHECK(d.peak_gbs == 365.6 && fabs(d.peak_pct - 100 * 6 / 365.6) < 1e-9, "%g GB/s", d.peak_gbs);
    four.ranks = 3;
    cm_judge_half(j, CM_ALL_REDUCE, &four, &half, &d);
    CHECK(d.verdict == CM_JUDGED_NO_FIGURE && isnan(d.peak_pct), "3 ranks: %d", (int)d.verdict);
    cm_judge_close(j);
    cm_opts_free(&job.o);
}

int main(void)
{
    RUN(test_limits);
    RUN(test_what_never_passes);
    RUN(test_rules_of_a_file);
    RUN(test_machines);
    return test_end();
}
