/*
 * CSV and JSON: form and content, files that cannot be written, runs that end
 * early. JSON is judged by Python's parser and by scripts/result.schema.json.
 */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>

#include "json_judge.h"
#include "report_job.h"

static void add_rows(struct job *j)
{
    static const double samples[] = {9, 8.5, 7};
    struct cm_row row = row_of(4096, 8);

    row.half[0].has_samples = true;
    row.half[0].samples = (struct cm_stats){.n = 3, .min = 7, .max = 9, .mean = 8, .p50 = 8.5};
    row.half[0].sample_us = samples;
    cm_report_row(j->rep, &row);
    row.bytes = (size_t)5 << 30;
    row.half[0].has_samples = false;
    row.half[0].time_us = NAN;
    row.half[0].bus_gbs = INFINITY;
    row.half[1] = (struct cm_result){.measured = false, .why = "a \"quoted\", text"};
    cm_report_row(j->rep, &row);
}

static void test_json_document(void)
{
    char path[PATH_BYTES], name[] = "r\xc3\xa9sum\xe9.csv"; /* one é is UTF-8, the other is not */
    const char *options[] = {
        "-I", "1", "-J", path_in("a.json", path), "--csv", path_in(name, (char[PATH_BYTES]){0}),
        NULL};

    static const char *const claims[] = {
        "[d['environment'][k] for k in ('UCX_TLS', 'COLLMARK_SEED')] == ['shm?', '12']",
        "all(k.startswith(('COLLMARK_', 'NCCL_', 'UCX_', 'OMPI_MCA_', 'CUDA_VISIBLE_DEVICES'))"
        " for k in d['environment'])",
        "d['from_environment'] == ['COLLMARK_SEED=12'] and d['config']['seed'] == 12",
        "'hunter2' not in open(sys.argv[1]).read()",
        "d['args'][6].endswith('r\u00e9sum?.csv')",
        "len(d['devices']) == 4 and d['groups'][1]['ranks'] == [1, 3]",
        "d['config']['per_iter_timing'] is True and d['config']['algo'] == 'auto'",
        "d['results'][0]['out_of_place_per_iter']['times_us'] == [9, 8.5, 7]",
        "'times_us' not in d['results'][1].get('out_of_place_per_iter', {})",
        "d['results'][0]['in_place']['nwrong'] == 0",
        "d['results'][1]['size'] == 5 << 30",
        "d['results'][1]['out_of_place']['time'] is None",
        "'quoted' in d['results'][1]['in_place']['why_not']",
        "d['summary']['exit_code'] == 1 and d['summary']['wrong'] == 3",
        "d['average_bus_bandwidth'] == {'bandwidth': None, 'okay': None}",
        NULL,
    };

    if (no_python())
        return;
    setenv("AWS_SECRET_ACCESS_KEY", "hunter2", 1);
    setenv("UCX_TLS", "shm\xff", 1);
    setenv("COLLMARK_SEED", "12", 1);
    job_make(&job, RANKS, 2, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    add_rows(&job);
    CHECK(job_close(&job, &(struct cm_summary){.status = CM_EDATA, .wrong = 3, .bad_rows = 1}) ==
              CM_OK,
          "close failed");
    check_json(path, claims);
    unsetenv("AWS_SECRET_ACCESS_KEY");
    unsetenv("UCX_TLS");
    unsetenv("COLLMARK_SEED");
}

static void test_json_replaces_the_table(void)
{
    static const char *const options[] = {"-J", "-", NULL};
    char path[PATH_BYTES];
    FILE *f;

    if (no_python())
        return;
    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    add_rows(&job);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    f = fopen(path_in("stdout.json", path), "w");
    CHECK(f != NULL && fputs(job.out.text, f) >= 0 && fclose(f) == 0, "%s", path);
    check_json(path, NULL);
}

static void test_json_of_gpus(void)
{
    char path[PATH_BYTES];
    const char *options[] = {"-M", "1", "-J", path_in("gpu.json", path), NULL};
    struct cm_row row = row_of(4096, 8);

    static const char *const claims[] = {
        "d['machine']['backend'] == 'cuda' and d['machine']['clock'] == 'CUDA events'",
        "(d['machine']['cuda_driver'], d['machine']['cuda_runtime']) == ('13.2', '13.0')",
        "d['machine']['shared_gpus'] is True and d['machine']['no_gpu'] is None",
        "d['machine']['gpu_memory'] == {'initialization': 1, 'buffers': 2, 'peak': 5 << 30}",
        "d['devices'][3]['bus_id'] == '0000:1c:00.0'",
        "d['devices'][3]['device_info'] == 'NVIDIA H200'",
        NULL,
    };

    if (no_python())
        return;
    job_make(&job, RANKS, 1, options);
    job_on_gpus(&job, RANKS);
    CHECK(job_open(&job) == CM_OK, "open failed");
    row.memory = (struct cm_memory){.init = 1, .buffers = 2, .peak = (uint64_t)5 << 30};
    cm_report_row(job.rep, &row);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    check_json(path, claims);
}

static int columns_of(const char *line)
{
    bool quoted = false;
    int n = 1;

    for (; *line != '\0' && *line != '\n'; line++) {
        quoted ^= *line == '"';
        n += *line == ',' && !quoted;
    }
    return n;
}

static void test_csv_lines(void)
{
    static const char *const options[] = {"--csv", "-", NULL};
    int columns, lines = 0;
    char *line;

    setlocale(LC_ALL, "");
    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    add_rows(&job);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    CHECK(strncmp(job.out.text, "cycle,group,collective,ranks,size,", 34) == 0, "%.80s",
          job.out.text);
    columns = columns_of(job.out.text);
    for (line = job.out.text; *line != '\0'; line = strchr(line, '\n') + 1, lines++)
        CHECK(columns_of(line) == columns, "%d columns: %.200s", columns_of(line), line);
    CHECK(lines == 5, "%d lines", lines);
    CHECK(strstr(job.out.text, "0,0,all_reduce,4,4096,1024,float,sum,-1,0,8,0.512,0.768,0,80,") !=
              NULL,
          "%s", job.out.text);
    CHECK(strstr(job.out.text, "\"a \"\"quoted\"\", text\"") != NULL, "%s", job.out.text);
    setlocale(LC_ALL, "C");
}

/* ---- files and ends ---- */

static void test_bad_paths_are_refused(void)
{
    static const char *const names[] = {"-J", "--csv"};

    for (size_t i = 0; i < CM_LEN(names); i++) {
        const char *options[] = {names[i], "/no/such/folder/x", NULL};
        struct capture err;
        enum cm_status st;

        job_make(&job, RANKS, 1, options);
        capture_begin(&err, STDERR_FILENO);
        st = job_open(&job);
        capture_end(&err);
        CHECK(st == CM_ESYS, "%s: status %d", names[i], (int)st);
        CHECK(job.out.text[0] == '\0', "%s: stdout '%s'", names[i], job.out.text);
        CHECK(strstr(err.text, "/no/such/folder/x") != NULL, "%s: '%s'", names[i], err.text);
    }
}

static void test_files_are_replaced_whole(void)
{
    char path[PATH_BYTES], text[64] = "";
    const char *options[] = {"-J", path_in("kept.json", path), NULL};
    FILE *f = fopen(path, "w");

    CHECK(f != NULL && fputs("old", f) >= 0 && fclose(f) == 0, "%s", path);
    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    f = fopen(path, "r");
    CHECK(f != NULL && fgets(text, sizeof(text), f) != NULL && strcmp(text, "old") == 0, "'%s'",
          text);
    fclose(f);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    f = fopen(path, "r");
    CHECK(f != NULL && fgets(text, sizeof(text), f) != NULL && text[0] == '{', "'%s'", text);
    fclose(f);
}

static void test_devices_are_not_renamed_over(void)
{
    static const char *const options[] = {"-J", "/dev/null", NULL};
    struct stat st;

    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK && job_close(&job, &fine) == CM_OK, "report failed");
    CHECK(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode), "/dev/null is no device any more");
}

static void test_truncated_run(void)
{
    static const struct cm_summary cut = {
        .status = CM_ETRUNC, .truncated = true, .why_truncated = "--max-time"};
    char path[PATH_BYTES], l[128];
    const char *options[] = {"-J", path_in("cut.json", path), NULL};

    static const char *const claims[] = {
        "d['summary']['truncated'] is True and d['summary']['exit_code'] == 6",
        "d['summary']['why_truncated'] == '--max-time' and d['summary']['okay'] is False",
        NULL,
    };

    if (no_python())
        return;
    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    add_rows(&job);
    CHECK(job_close(&job, &cut) == CM_OK, "close failed");
    expect(line_at(job.out.text, "# Truncated", 0, l, sizeof(l)),
           "# Truncated            : --max-time");
    check_json(path, claims);
}

static void *abandon(void *rep)
{
    cm_report_abandon(rep, CM_ETIMEOUT);
    return NULL;
}

static void test_abandoned_run(void)
{
    char path[PATH_BYTES];
    const char *options[] = {"-J", path_in("abandoned.json", path), NULL};
    struct cm_row row = row_of(8, 1);
    pthread_t watchdog;
    static const char *const claims[] = {
        "d['summary']['truncated'] is True and d['summary']['exit_code'] == 4",
        "len(d['results']) == 2",
        NULL,
    };

    if (no_python())
        return;
    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    add_rows(&job);
    CHECK(pthread_create(&watchdog, NULL, abandon, job.rep) == 0, "no thread");
    pthread_join(watchdog, NULL);
    check_json(path, claims);
    cm_report_row(job.rep, &row); /* dropped */
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    check_json(path, claims);
    CHECK(strstr(job.out.text, "# Collective test concluded") != NULL, "no footer");
}

/* Rank 0 only knows that another rank ended the job; the report tells why. */
static void test_reason_of_an_abort(void)
{
    char path[PATH_BYTES];
    const char *options[] = {"-J", path_in("abort.json", path), NULL};
    struct cm_summary s = {.status = CM_EABORT, .truncated = true};
    struct cm_abort word = {0};
    static const char *const claims[] = {
        "d['summary']['exit_code'] == 4",
        "d['summary']['status'] == d['summary']['why_truncated']",
        NULL,
    };

    if (no_python())
        return;
    job_make(&job, RANKS, 1, options);
    job.rank.waiter.abort = &word;
    CHECK(cm_abort_raise(&word, CM_ETIMEOUT, 3), "the word was set before");
    CHECK(job_open(&job) == CM_OK && job_close(&job, &s) == CM_OK, "report failed");
    check_json(path, claims);
}

static void test_full_disk_is_reported(void)
{
    static const char *const options[] = {"-J", "/dev/full", NULL};
    struct capture err;
    enum cm_status st;

    job_make(&job, RANKS, 1, options);
    CHECK(job_open(&job) == CM_OK, "open failed");
    capture_begin(&err, STDERR_FILENO);
    st = job_close(&job, &fine);
    capture_end(&err);
    CHECK(st == CM_ESYS, "status %d", (int)st);
    expect(err.text, "-J/--output_file '/dev/full': No space left on device\n");
}

int main(void)
{
    if (!folder_make())
        return 1;
    RUN(test_json_document);
    RUN(test_json_replaces_the_table);
    RUN(test_json_of_gpus);
    RUN(test_csv_lines);
    RUN(test_bad_paths_are_refused);
    RUN(test_files_are_replaced_whole);
    RUN(test_devices_are_not_renamed_over);
    RUN(test_truncated_run);
    RUN(test_abandoned_run);
    RUN(test_reason_of_an_abort);
    RUN(test_full_disk_is_reported);
    folder_remove();
    return test_end();
}
