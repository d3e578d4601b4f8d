/*
 * JUnit, Prometheus and GitHub: form and content with odd names, in a locale
 * with a decimal comma, without rows, after aborts; %peak and the verdict in
 * the table. Judged by xmllint with tests/junit.xsd and by tests/prometheus.py.
 */
#include <locale.h>
#include <math.h>
#include <sys/stat.h>

#include "json_judge.h"
#include "report_job.h"

static char junit[PATH_BYTES], prometheus[PATH_BYTES], github[PATH_BYTES];
static struct capture err;

/* Quotes, what markup is made of, a line's end, bytes that are no UTF-8, U+FFFF. */
static const char odd[] = "n\"o'd<e>&\n,:%|`*\\\xff\xc3\xa9\x01\xef\xbf\xbf";

static const char *read_text(const char *path)
{
    static _Thread_local char text[1 << 16];
    FILE *f = fopen(path, "r");
    size_t n = f != NULL ? fread(text, 1, sizeof(text) - 1, f) : 0;

    text[n] = '\0';
    if (f != NULL)
        fclose(f);
    return text;
}

static bool have(const char *program)
{
    char line[64];

    snprintf(line, sizeof(line), "command -v %s >/dev/null", program);
    return system(line) == 0;
}

static int judge_by(const char *command, const char *path)
{
    char line[COMMAND_BYTES];

    snprintf(line, sizeof(line), "%s '%s'", command, path);
    fflush(NULL);
    return system(line);
}

static void check_forms(void)
{
    if (have("xmllint"))
        CHECK(judge_by("xmllint --noout --nonet --schema tests/junit.xsd 2>/dev/null", junit) == 0,
              "%s", read_text(junit));
    if (have("python3"))
        CHECK(judge_by("python3 tests/prometheus.py", prometheus) == 0, "%s",
              read_text(prometheus));
}

static void check_holds(const char *all, const char *const *texts)
{
    for (; *texts != NULL; texts++)
        CHECK(strstr(all, *texts) != NULL, "'%s' is not in\n%s", *texts, all);
}

/* A report with all three, and with up to eight more words. */
static void open_all(const char *const *more)
{
    const char *options[14] = {"--junit", junit, "--prometheus", prometheus, "--github"};

    for (int n = 5; *more != NULL; n++)
        options[n] = *more++;
    unlink(github);
    setenv("GITHUB_STEP_SUMMARY", github, 1);
    job_make(&job, RANKS, 1, options);
    snprintf(job.infos[0].host, sizeof(job.infos[0].host), "%s", odd);
    capture_begin(&err, STDERR_FILENO);
    CHECK(job_open(&job) == CM_OK, "open failed");
}

static void close_all(const struct cm_summary *s)
{
    enum cm_status st = job_close(&job, s);

    capture_end(&err);
    unsetenv("GITHUB_STEP_SUMMARY");
    CHECK(st == CM_OK, "status %d", (int)st);
    check_forms();
}

static void add_rows(void)
{
    struct cm_row row = row_of(4096, 8);

    row.half[1].wrong = 3;
    cm_report_row(job.rep, &row);
    row = row_of(64, 100);
    row.half[1] = (struct cm_result){.measured = false, .absent = true, .why = "no <such> form"};
    cm_report_row(job.rep, &row);
    row = row_of(4096, 4); /* again */
    row.half[1].bus_gbs = NAN;
    cm_report_row(job.rep, &row);
}

static const struct cm_summary wrong = {.status = CM_EDATA, .wrong = 3, .bad_rows = 1};

static void test_rows_and_names(void)
{
    static const char *const options[] = {"--min-busbw", "0.5", NULL};
    static const char *const cases[] = {
        "tests=\"7\" failures=\"3\" errors=\"0\" time=\"0.000124000\" skipped=\"1\"",
        "name=\"4096 B float sum out of place\" time=\"0.000008000\"/>",
        "<failure message=\"3 wrong elements\" type=\"wrong\"/>",
        "name=\"64 B float sum out of place\" time=\"0.000100000\"",
        "\"busbw 0.00096 GB/s, want at least 0.5 (--min-busbw)\" type=\"below\"/>",
        "<skipped message=\"no &lt;such&gt; form\"/>",
        "name=\"4096 B float sum out of place (2)\"",
        "<failure message=\"it has no time or bandwidth\" type=\"no_figure\"/>",
        "name=\"end of the run\"/>",
        "hostname=\"n&quot;o&apos;d&lt;e&gt;&amp;&#10;,:%|`*\\?\xc3\xa9??\"",
        NULL,
    };
    static const char *const metrics[] = {
        "host=\"n\\\"o'd<e>&\\n,:%|`*\\\\?\xc3\xa9??\"",
        "bytes=\"4096\",placement=\"out_of_place\",group=\"0\",engine=\"builtin\","
        "cache=\"hot\",algorithm=\"ring\"} 1536000000\n",
        "bytes=\"64\",placement=\"out_of_place\",group=\"0\",engine=\"builtin\","
        "cache=\"hot\",algorithm=\"ring\"} 0.0001\n",
        "# TYPE collmark_threshold_bus_bandwidth_bytes_per_second gauge\n",
        "# TYPE collmark_row_success gauge\n",
        NULL,
    };
    static const char *const lines[] = {
        "::error title=all_reduce_perf::all_reduce float sum 4K: in place: 3 wrong elements\n",
        "::error title=all_reduce_perf::all_reduce float sum 64: out of place: busbw 0.00096 GB/s",
        NULL,
    };
    static const char *const markdown[] = {
        "**FAILED: 3 of 3 rows (busbw &gt;= 0.5 GB/s)** (exit code 1)",
        "first on n\"o'd&lt;e&gt;&amp; ,:%&#124;&#96;&#42;&#92;?\xc3\xa9??, Example CPU",
        "| 64 | float | sum | -1 | 0 | builtin | 100 | 0.00096 | 0 | N/A | N/A | N/A | "
        "**out of place:** ",
        NULL,
    };

    open_all(options);
    add_rows();
    close_all(&wrong);
    check_holds(read_text(junit), cases);
    check_holds(read_text(prometheus), metrics);
    check_holds(err.text, lines);
    check_holds(read_text(github), markdown);
}

static void test_no_rows(void)
{
    static const char *const none[] = {NULL}, *const asked[] = {"--min-busbw", "1", NULL};
    char l[256];

    open_all(none);
    close_all(&fine);
    CHECK(strstr(read_text(junit), "tests=\"1\" failures=\"0\" errors=\"0\"") != NULL, "%s",
          read_text(junit));
    CHECK(err.text[0] == '\0', "%s", err.text);
    CHECK(strstr(job.out.text, "# Verdict") == NULL, "nothing was asked");

    open_all(asked);
    CHECK(cm_report_below(job.rep), "nothing was judged, so nothing passed");
    close_all(&fine);
    expect(line_at(job.out.text, "# Verdict", 0, l, sizeof(l)),
           "# Verdict              : FAILED: no row was judged (busbw >= 1 GB/s); data were not "
           "checked");
}

static void test_ends_before_the_time(void)
{
    static const struct {
        struct cm_summary s;
        const char *type, *why;
    } cases[] = {
        {{.status = CM_ETIMEOUT, .truncated = true}, "timeout", "timed out"},
        {{.status = CM_ETRUNC, .truncated = true}, "truncated", "a signal ended the run"},
        {{.status = CM_OK, .truncated = true, .why_truncated = "--max-time is over"},
         "truncated",
         "--max-time is over"},
    };
    static const char *const options[] = {"--min-busbw", "0.0001", NULL};
    char want[128], l[256];

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_row row = row_of(4096, 8);

        open_all(options);
        cm_report_row(job.rep, &row);
        close_all(&cases[i].s);
        snprintf(want, sizeof(want), "<error message=\"%s\" type=\"%s\"/>", cases[i].why,
                 cases[i].type);
        CHECK(strstr(read_text(junit), want) != NULL, "%s: %s", want, read_text(junit));
        CHECK(strstr(read_text(prometheus), "collmark_run_truncated{") != NULL, "no end");
        snprintf(want, sizeof(want), "::the run ended early: %s\n", cases[i].why);
        CHECK(strstr(err.text, want) != NULL, "%s: %s", want, err.text);
        expect(line_at(job.out.text, "# Verdict", 0, l, sizeof(l)),
               "# Verdict              : FAILED: it ended early, 0 of 1 rows failed (busbw >= "
               "0.0001 GB/s)");
    }
}

static void test_names_of_many_bad_rows(void)
{
    static const char *const options[] = {"--max-time-us", "1", NULL};
    const char *at;
    int lines = 0;

    open_all(options);
    for (size_t i = 0; i < 20; i++) {
        struct cm_row row = row_of(4096 + 16 * i, 8);

        cm_report_row(job.rep, &row);
    }
    CHECK(cm_report_below(job.rep), "all are too slow");
    close_all(&fine);
    for (at = err.text; (at = strstr(at, "verdict: ")) != NULL; at++)
        lines++;
    CHECK(lines == 9, "%d lines: %s", lines, err.text);
    CHECK(strstr(err.text, "verdict: 12 more rows failed\n") != NULL, "%s", err.text);
    for (lines = 0, at = err.text; (at = strstr(at, "::error ")) != NULL; at++)
        lines++;
    CHECK(lines == 9, "%d annotations: %s", lines, err.text);
}

static void test_peak_stands_behind_all_fields(void)
{
    static const char *const options[] = {"--peak", "1.536", "--min-peak", "60", NULL};
    struct cm_row row = row_of(4096, 4);
    char l[512];

    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    cm_report_row(job.rep, &row);
    row.half[0].bus_gbs /= 2;
    row.half[1] = (struct cm_result){.measured = false, .absent = true, .why = "no form"};
    cm_report_row(job.rep, &row);
    capture_begin(&err, STDERR_FILENO);
    CHECK(cm_report_below(job.rep), "the second row is below");
    capture_end(&err);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    CHECK(strstr(job.out.text, "# %peak: busbw as a part of 1.536 GB/s (--peak)\n") != NULL, "%s",
          job.out.text);
    expect(line_at(job.out.text, "        4096", 0, l, sizeof(l)) + 118, "  100.00  100.00");
    CHECK(fields_of(l) == 15, "%d fields", fields_of(l));
    expect(line_at(job.out.text, "        4096", 1, l, sizeof(l)) + 118, "   50.00     N/A");
    expect(line_at(job.out.text, "# Verdict", 0, l, sizeof(l)),
           "# Verdict              : FAILED: 1 of 2 rows (>= 60 % of peak)");
}

static void test_verdict_is_ok(void)
{
    static const char *const options[] = {"--min-busbw", "0.5", "--max-time-us", "9", NULL};
    struct cm_row row = row_of(4096, 8);
    char l[256];

    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    cm_report_row(job.rep, &row);
    CHECK(!cm_report_below(job.rep), "all is well");
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    expect(line_at(job.out.text, "# Verdict", 0, l, sizeof(l)),
           "# Verdict              : OK: 1 row (busbw >= 0.5 GB/s, time <= 9 us)");
}

/* Whatever a library made of the locale, a figure has a point. */
static void test_decimal_comma(void)
{
    static const char *const options[] = {"--min-busbw", "0.5", "--csv", "-", NULL};
    char command[COMMAND_BYTES];

    snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' 2>/dev/null",
             folder);
    setenv("LOCPATH", folder, 1);
    if (system(command) != 0 || setlocale(LC_ALL, "de_DE.UTF-8") == NULL) {
        SKIP("no German locale can be made");
        return;
    }
    snprintf(command, sizeof(command), "%.1f", 1.5);
    CHECK(strcmp(command, "1,5") == 0, "the locale has no comma: %s", command);
    setlocale(LC_NUMERIC, "C"); /* options are read before any library is */
    open_all(options);
    setlocale(LC_ALL, "de_DE.UTF-8");
    add_rows();
    close_all(&wrong);
    setlocale(LC_ALL, "C");
    CHECK(strstr(job.out.text, ",4096,1024,float,sum,-1,0,8,0.512,0.768,") != NULL, "%s",
          job.out.text);
    CHECK(strstr(read_text(junit), "time=\"0.000008000\"") != NULL, "%s", read_text(junit));
    CHECK(strstr(err.text, "busbw 0.00096 GB/s, want at least 0.5") != NULL, "%s", err.text);
    CHECK(strstr(read_text(github), "| 0.00096 |") != NULL, "%s", read_text(github));
    unsetenv("LOCPATH");
}

/* ---- places ---- */

static enum cm_status open_with(const char *option, const char *path)
{
    const char *options[] = {option, path, NULL};
    enum cm_status st;

    job_make(&job, RANKS, 1, options);
    capture_begin(&err, STDERR_FILENO);
    st = job_open(&job);
    capture_end(&err);
    return st;
}

static void test_bad_places_are_refused(void)
{
    static const char *const names[] = {"--junit", "--prometheus"};
    static const char *const none[] = {"--github", NULL};
    enum cm_status st;

    for (size_t i = 0; i < CM_LEN(names); i++) {
        CHECK(open_with(names[i], "/no/such/folder/x") == CM_ESYS, "%s", names[i]);
        CHECK(job.out.text[0] == '\0', "%s: stdout '%s'", names[i], job.out.text);
        CHECK(strstr(err.text, names[i]) != NULL && strstr(err.text, "'/no/such/folder/x'") != NULL,
              "%s", err.text);
        CHECK(open_with(names[i], "/dev/full") == CM_OK, "%s", names[i]);
        capture_begin(&err, STDERR_FILENO);
        st = job_close(&job, &fine);
        capture_end(&err);
        CHECK(st == CM_ESYS && strstr(err.text, "'/dev/full': No space left") != NULL, "%d: %s",
              (int)st, err.text);
    }
    setenv("GITHUB_STEP_SUMMARY", "/no/such/folder/x", 1);
    job_make(&job, RANKS, 1, none);
    capture_begin(&err, STDERR_FILENO);
    CHECK(job_open(&job) == CM_ESYS, "the summary's folder is missing");
    capture_end(&err);
    CHECK(strstr(err.text, "--github: GITHUB_STEP_SUMMARY '/no/such/folder/x'") != NULL, "%s",
          err.text);
    unsetenv("GITHUB_STEP_SUMMARY");
}

static void test_mode_and_leftovers(void)
{
    static const char *const none[] = {NULL};
    mode_t before = umask(027);
    struct stat st;
    char command[COMMAND_BYTES];

    unlink(junit);
    open_all(none);
    CHECK(stat(junit, &st) != 0, "the file is there before the end");
    close_all(&fine);
    umask(before);
    CHECK(stat(junit, &st) == 0 && (st.st_mode & 0777) == 0640, "mode %o", st.st_mode & 0777);
    snprintf(command, sizeof(command), "ls -A '%s' | grep -q tmp", folder);
    CHECK(system(command) != 0, "a temporary file is left");
}

static void test_github_appends(void)
{
    static const char *const none[] = {"--github", NULL};
    FILE *f = fopen(github, "w");

    CHECK(f != NULL && fputs("before\n", f) >= 0 && fclose(f) == 0, "%s", github);
    setenv("GITHUB_STEP_SUMMARY", github, 1);
    job_make(&job, RANKS, 1, none);
    CHECK(job_open(&job) == CM_OK && job_close(&job, &fine) == CM_OK, "report failed");
    unsetenv("GITHUB_STEP_SUMMARY");
    CHECK(strncmp(read_text(github), "before\n### all", 14) == 0, "%s", read_text(github));
    job_make(&job, RANKS, 1, none);
    CHECK(job_open(&job) == CM_OK && job_close(&job, &fine) == CM_OK, "no summary is no failure");
}

int main(void)
{
    if (!folder_make())
        return 1;
    path_in("a b.xml", junit);
    path_in("a.prom", prometheus);
    path_in("summary.md", github);
    RUN(test_rows_and_names);
    RUN(test_no_rows);
    RUN(test_ends_before_the_time);
    RUN(test_names_of_many_bad_rows);
    RUN(test_peak_stands_behind_all_fields);
    RUN(test_verdict_is_ok);
    RUN(test_decimal_comma);
    RUN(test_bad_places_are_refused);
    RUN(test_mode_and_leftovers);
    RUN(test_github_appends);
    folder_remove();
    return test_end();
}
