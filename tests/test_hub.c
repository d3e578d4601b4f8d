/*
 * The star: gathers of all sizes; who is dead, silent, at the end already or of
 * another opinion is named, and all processes end with one exit code.
 */
#define _GNU_SOURCE
#include <sys/resource.h>

#include "capture.h"
#include "hub_job.h"

/* ---- gathers ---- */

static unsigned char value(int turn, int proc, int at)
{
    return (unsigned char)(turn * 7 + proc * 31 + at);
}

/* Gathers of all sizes; 1: something was wrong. */
static int gather_all(struct cm_hub *h, int proc, const struct job *j)
{
    size_t most = (size_t)j->bytes + (size_t)j->count;
    unsigned char *mine = malloc(most), *all = malloc(most * (size_t)j->n);

    for (int turn = 0; turn < j->count; turn++) {
        int bytes = j->bytes + turn;

        for (int i = 0; i < bytes; i++)
            mine[i] = value(turn, proc, i);
        if (cm_hub_gather(h, mine, (size_t)bytes, all) != CM_OK)
            return 1;
        for (int k = 0; k < j->n * bytes; k++)
            if (all[k] != value(turn, k / bytes, k % bytes))
                return 2;
    }
    free(mine);
    free(all);
    return 0;
}

static int gather_much(struct cm_hub *h, int proc, const struct job *j)
{
    int wrong = gather_all(h, proc, j);

    return wrong != 0 ? wrong : (int)cm_hub_finish(h, CM_EXIT_OK);
}

static void run_gathers(int n, int count, int bytes)
{
    pid_t pid[HUB_JOB_MOST];
    struct job j;

    CHECK(prepare(&j, n), "no listener");
    j.body = gather_much;
    j.count = count;
    j.bytes = bytes;
    start_all(&j, pid);
    want_all(&j, pid, 0, "gathers");
}

static void test_all_parts_reach_all(void)
{
    run_gathers(2, 5, 0);
    run_gathers(2, 200, 1);
    run_gathers(5, 3, 100000);
    run_gathers(3, 1, 8 << 20);
}

static void test_many_processes(void)
{
    run_gathers(getenv("COLLMARK_SLOW") != NULL ? HUB_JOB_MOST : 48, 2, 100);
}

/* A soft limit that is too low is raised. */
static void test_few_files_may_be_open(void)
{
    struct rlimit before, low;

    getrlimit(RLIMIT_NOFILE, &before);
    low = before;
    low.rlim_cur = 24;
    setrlimit(RLIMIT_NOFILE, &low);
    run_gathers(24, 1, 10);
    setrlimit(RLIMIT_NOFILE, &before);
}

static int differ(struct cm_hub *h, int proc, const struct job *j)
{
    char mine[100] = {0}, all[1000];
    enum cm_status st = cm_hub_gather(h, mine, proc == 2 ? 40 : 32, all);

    (void)j;
    if (st == CM_OK || cm_hub_gather(h, mine, 1, all) == CM_OK)
        return 100;
    return (int)cm_hub_finish(h, cm_status_exit(st));
}

static void test_sizes_that_differ_are_an_error(void)
{
    struct capture c;
    pid_t pid[4];
    struct job j;

    CHECK(prepare(&j, 4), "no listener");
    j.body = differ;
    capture_begin(&c, STDERR_FILENO);
    start_all(&j, pid);
    want_all(&j, pid, CM_EXIT_SYSTEM, "sizes");
    capture_end(&c);
    CHECK(strcmp(c.text, "rank 2 (host here) gathers 40 bytes, rank 0 gathers 32\n") == 0, "%s",
          c.text);
}

/* ---- failures ---- */

/* Process 2 ends itself where the others go on. */
static int one_dies(struct cm_hub *h, int proc, const struct job *j)
{
    char mine = 0, all[8];
    enum cm_status st = cm_hub_gather(h, &mine, 1, all);

    (void)j;
    if (st == CM_OK && proc == 2)
        raise(SIGKILL);
    if (st == CM_OK)
        st = cm_hub_gather(h, &mine, 1, all);
    return (int)cm_hub_finish(h, cm_status_exit(st));
}

static int one_dies_at_the_end(struct cm_hub *h, int proc, const struct job *j)
{
    (void)j;
    if (proc == 2)
        raise(SIGKILL);
    return (int)cm_hub_finish(h, CM_EXIT_OK);
}

static int one_kills(struct cm_hub *h, int proc, const struct job *j)
{
    char mine = 0, all[8];

    (void)j;
    if (proc == 2) {
        cm_hub_kill(h, CM_EXIT_UNSUPPORTED);
        return CM_EXIT_UNSUPPORTED;
    }
    return (int)cm_hub_finish(h, cm_status_exit(cm_hub_gather(h, &mine, 1, all)));
}

static int one_leaves_early(struct cm_hub *h, int proc, const struct job *j)
{
    char mine = 0, all[8];
    enum cm_status st = proc == 2 ? CM_ENOMEM : cm_hub_gather(h, &mine, 1, all);

    (void)j;
    return (int)cm_hub_finish(h, cm_status_exit(st));
}

/* Codes that differ become one. */
static int one_has_a_verdict(struct cm_hub *h, int proc, const struct job *j)
{
    (void)j;
    return (int)cm_hub_finish(h, proc == 2 ? CM_EXIT_WRONG : CM_EXIT_OK);
}

/* Its watchdog would end it in the middle of a gather that waits for process 2. */
static int one_is_silent(struct cm_hub *h, int proc, const struct job *j)
{
    char mine = 0, all[8];
    enum cm_status st = CM_EABORT;

    if (proc == 2) {
        poll(NULL, 0, (int)(3 * j->note_ns / CM_NS_PER_MS));
        raise(SIGKILL);
    }
    if (cm_hub_gather(h, &mine, 1, all) == CM_ETIMEOUT)
        st = CM_ETIMEOUT;
    return (int)cm_hub_finish(h, cm_status_exit(st));
}

static int one_does_not_end(struct cm_hub *h, int proc, const struct job *j)
{
    if (proc == 2)
        poll(NULL, 0, (int)(3 * j->note_ns / CM_NS_PER_MS));
    return (int)cm_hub_finish(h, CM_EXIT_OK);
}

static int process_0_dies(struct cm_hub *h, int proc, const struct job *j)
{
    char mine = 0, all[8];

    (void)j;
    if (proc == 0)
        raise(SIGKILL);
    return (int)cm_hub_finish(h, cm_status_exit(cm_hub_gather(h, &mine, 1, all)));
}

static void test_a_failure_of_one_ends_all(void)
{
    static const struct {
        int (*body)(struct cm_hub *h, int proc, const struct job *j);
        int code;
        int odd; /* the process that was killed, -1: none */
        const char *says;
    } rows[] = {
        {one_dies, CM_EXIT_SYSTEM, 2, "rank 2 (host here) died"},
        {one_dies_at_the_end, CM_EXIT_SYSTEM, 2, "rank 2 died before the end"},
        {one_kills, CM_EXIT_UNSUPPORTED, -1, "rank 2 (host here) ended the job"},
        {one_leaves_early, CM_EXIT_SYSTEM, -1, "rank 2 (host here) has ended before the others"},
        {one_has_a_verdict, CM_EXIT_WRONG, -1, ""},
        {one_is_silent, CM_EXIT_TIMEOUT, 2, "still waiting for rank 2 after 0.2 s"},
        {one_does_not_end, CM_EXIT_TIMEOUT, -1, "rank 2 did not come to the end within 0.2 s"},
        {process_0_dies, CM_EXIT_SYSTEM, 0, "rank 1: rank 0 (127.0.0.1:"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct capture c;
        struct job j;
        pid_t pid[4];

        CHECK(prepare(&j, 4), "no listener");
        j.body = rows[i].body;
        j.note_ns = 200 * (int64_t)CM_NS_PER_MS;
        capture_begin(&c, STDERR_FILENO);
        start_all(&j, pid);
        for (int p = 0; p < j.n; p++) {
            int code = end_of(pid[p]), want = p == rows[i].odd ? 1000 + SIGKILL : rows[i].code;

            CHECK(code == want, "row %zu: process %d: exit code %d, not %d", i, p, code, want);
        }
        capture_end(&c);
        CHECK(strstr(c.text, rows[i].says) != NULL, "row %zu: %s", i, c.text);
        CHECK(rows[i].says[0] != '\0' || c.text[0] == '\0', "row %zu: %s", i, c.text);
    }
}

int main(void)
{
    RUN(test_all_parts_reach_all);
    RUN(test_many_processes);
    RUN(test_few_files_may_be_open);
    RUN(test_sizes_that_differ_are_an_error);
    RUN(test_a_failure_of_one_ends_all);
    return test_end();
}
