/* Messages: one line each, whole, with the prefix of their thread; and the codes' texts. */
#include "base/status.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 4, LINES = 200, CAPTURE = 1 << 19 };

/* stderr into a temporary file, and back. */
struct capture {
    FILE *file;
    int saved;
};

static bool capture_start(struct capture *c)
{
    c->file = tmpfile();
    if (c->file == NULL)
        return false;
    fflush(stderr);
    c->saved = dup(STDERR_FILENO);
    return c->saved >= 0 && dup2(fileno(c->file), STDERR_FILENO) >= 0;
}

/* Back to the old stderr; the text that was written, to be freed, or NULL. */
static char *capture_end(struct capture *c)
{
    char *text = malloc(CAPTURE);
    size_t len = 0;

    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    rewind(c->file);
    if (text != NULL)
        len = fread(text, 1, CAPTURE - 1, c->file);
    if (text != NULL)
        text[len] = '\0';
    fclose(c->file);
    return text;
}

static void check_text(const char *got, const char *want)
{
    CHECK(got != NULL && strcmp(got, want) == 0, "got \"%s\", want \"%s\"", got ? got : "", want);
}

static void test_codes(void)
{
    for (int st = CM_OK; st <= CM_ETRUNC; st++)
        CHECK(strlen(cm_status_text((enum cm_status)st)) > 0, "status %d", st);
    CHECK(cm_status_exit(CM_OK) == 0 && cm_status_exit(CM_EDATA) == 1, "ok, wrong");
    CHECK(cm_status_exit(CM_EINVAL) == 2 && cm_status_exit(CM_ENOMEM) == 3, "usage, memory");
    CHECK(cm_status_exit(CM_ESYS) == 3 && cm_status_exit(CM_EMISMATCH) == 3, "system, mismatch");
    CHECK(cm_status_exit(CM_EABORT) == 3 && cm_status_exit(CM_ETIMEOUT) == 4, "abort, time-out");
    CHECK(cm_status_exit(CM_ETRUNC) == 6 && cm_status_exit(CM_EUNSUP) == 77, "early, unsupported");
    CHECK(cm_status_text((enum cm_status)1000) != NULL, "unknown status");
}

static void test_prefix_and_line(void)
{
    struct capture c;
    enum cm_status st;
    char *text;

    if (!capture_start(&c)) {
        SKIP("no temporary file");
        return;
    }
    cm_log("plain %d", 1);
    cm_log_whoami(3, "nodeA");
    cm_log("two\nlines\n");
    st = CM_FAIL(CM_EINVAL, "-b %s", "x");
    cm_log_whoami(-1, NULL);
    cm_log("%s", "");
    text = capture_end(&c);
    check_text(text, "plain 1\nrank 3 host nodeA: two lines\nrank 3 host nodeA: -b x\n\n");
    CHECK(st == CM_EINVAL, "status %d", st);
    free(text);
}

static void test_errno_is_told_and_kept(void)
{
    enum cm_status missing, memory;
    struct capture c;
    int err;
    char *text;

    if (!capture_start(&c)) {
        SKIP("no temporary file");
        return;
    }
    errno = ENOENT;
    missing = CM_SYS(false, "open x");
    err = errno;
    errno = ENOMEM;
    memory = CM_SYS(false, "map");
    text = capture_end(&c);
    check_text(text, "open x: No such file or directory\nmap: Cannot allocate memory\n");
    CHECK(missing == CM_ESYS && memory == CM_ENOMEM && err == ENOENT, "%d %d errno %d", missing,
          memory, err);
    CHECK(CM_SYS(true, "") == CM_OK, "success fails");
    free(text);
}

static void test_long_message_is_cut(void)
{
    static char big[10000];
    struct capture c;
    char *text;

    memset(big, 'x', sizeof(big) - 1);
    if (!capture_start(&c)) {
        SKIP("no temporary file");
        return;
    }
    cm_log("%s", big);
    text = capture_end(&c);
    CHECK(text != NULL && strlen(text) <= 4096 && strlen(text) > 4000, "%zu bytes",
          text ? strlen(text) : 0);
    CHECK(text != NULL && strchr(text, '\n') == text + strlen(text) - 1, "line end");
    free(text);
}

static void *talk(void *arg)
{
    int rank = *(const int *)arg;

    cm_log_whoami(rank, "h");
    for (int i = 0; i < LINES; i++)
        cm_log("line %d of %d", i, rank);
    return NULL;
}

/* Each line is one of ours, whole, and each thread's lines come in order. */
static void check_lines(char *text)
{
    int next[THREADS] = {0}, lines = 0;
    char *save = NULL;

    for (char *l = strtok_r(text, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
        int rank = -1, i = -1, of = -1, end = 0;
        int found = sscanf(l, "rank %d host h: line %d of %d%n", &rank, &i, &of, &end);

        CHECK(found == 3 && l[end] == '\0' && rank == of && rank >= 0 && rank < THREADS,
              "odd line \"%s\"", l);
        if (rank >= 0 && rank < THREADS)
            CHECK(i == next[rank]++, "\"%s\" out of order", l);
        lines++;
    }
    CHECK(lines == THREADS * LINES, "%d lines", lines);
}

static void test_threads_do_not_mix(void)
{
    pthread_t threads[THREADS];
    int ranks[THREADS], started = 0;
    struct capture c;
    char *text;

    if (!capture_start(&c)) {
        SKIP("no temporary file");
        return;
    }
    for (; started < THREADS; started++) {
        ranks[started] = started;
        if (pthread_create(&threads[started], NULL, talk, &ranks[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    text = capture_end(&c);
    CHECK(started == THREADS && text != NULL, "%d threads", started);
    if (text != NULL)
        check_lines(text);
    free(text);
}

int main(void)
{
    RUN(test_codes);
    RUN(test_prefix_and_line);
    RUN(test_errno_is_told_and_kept);
    RUN(test_long_message_is_cut);
    RUN(test_threads_do_not_mix);
    return test_end();
}
