/* Files of thresholds: what parses, what does not and why, and which rule a row gets. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "common/thresholds.h"
#include "test.h"

static struct capture err;

static const char good[] = "# collective type bytes ranks nodes algorithm limits\r\n"
                           "\n"
                           "all_reduce float 0-8K 2-8 1 * max_time=20 # latency\n"
                           "all_*\t*   64M-  *   1 ring,shm*  min_busbw=10.5\n"
                           "sendrecv * 1K  2   * *,*tcp min_busbw=1 max_time=1e6\n"
                           "gather   * 0   *   * *      ignore\n"
                           "all_*    * *   *   2- [dr]*  max_time=5";

static enum cm_status parse(const char *text, struct cm_thresholds **t)
{
    enum cm_status st;

    capture_begin(&err, STDERR_FILENO);
    st = cm_thresholds_parse(text, strlen(text), "f", t);
    capture_end(&err);
    return st;
}

static void test_first_rule_that_fits(void)
{
    static const struct {
        struct cm_subject s;
        int line; /* 0: none fits */
        double busbw, time;
        bool ignored;
    } cases[] = {
        {{"all_reduce", "float", "direct", "loop", 8, 2, 1}, 3, 0, 20, false},
        {{"all_reduce", "float", "", "loop", 8192, 8, 1}, 3, 0, 20, false},
        {{"all_reduce", "float", "direct", "loop", 8193, 8, 1}, 0, 0, 0, false},
        {{"all_reduce", "half", "direct", "loop", 8, 2, 1}, 0, 0, 0, false},
        {{"all_reduce", "float", "direct", "loop", 8, 9, 1}, 0, 0, 0, false},
        {{"all_gather", "half", "ring", "shm+tcp", 64 << 20, 3, 1}, 4, 10.5, 0, false},
        {{"all_gather", "half", "ring", "loop", 64 << 20, 3, 1}, 0, 0, 0, false},
        {{"all_gather", "half", "tree", "shm", 64 << 20, 3, 1}, 0, 0, 0, false},
        {{"all_gather", "half", "ring", "shm", 64 << 20, 3, 2}, 7, 0, 5, false},
        {{"sendrecv", "half", "direct", "loop+tcp", 1024, 2, 7}, 5, 1, 1e6, false},
        {{"sendrecv", "half", "direct", "loop+tcp", 1024, 3, 7}, 0, 0, 0, false},
        {{"gather", "int8", "direct", "loop", 0, 3, 1}, 6, 0, 0, true},
    };
    struct cm_thresholds *t = NULL;

    CHECK(parse(good, &t) == CM_OK, "%s", err.text);
    for (size_t i = 0; t != NULL && i < CM_LEN(cases); i++) {
        const struct cm_limits *l = cm_thresholds_find(t, &cases[i].s);

        CHECK((l != NULL ? l->line : 0) == cases[i].line, "case %zu: line %d", i,
              l != NULL ? l->line : 0);
        CHECK(l == NULL || (l->min_busbw_gbs == cases[i].busbw && l->max_time_us == cases[i].time &&
                            l->ignored == cases[i].ignored),
              "case %zu: %g GB/s, %g us", i, l->min_busbw_gbs, l->max_time_us);
    }
    cm_thresholds_free(t);
}

static void test_errors_name_file_and_line(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "f:1: there are no rules"},
        {"# nothing\n\n", "f:1: there are no rules"},
        {"all_reduce * * * * *\n", "f:1: limits"},
        {"\nall_reduce * * * *\n", "f:2: collective, type, bytes"},
        {"all_reudce * * * * * max_time=1\n", "f:1: no collective"},
        {"* flaot * * * * max_time=1\n", "f:1: no type"},
        {"* * 8K-4K * * * max_time=1\n", "f:1: bytes"},
        {"* * 8Q * * * max_time=1\n", "f:1: bytes"},
        {"* * * -2 * * max_time=1\n", "f:1: ranks"},
        {"* * * * two * max_time=1\n", "f:1: nodes"},
        {"* * * * * rnig max_time=1\n", "f:1: no algorithm"},
        {"* * * * * ring, max_time=1\n", "f:1: the wire"},
        {"* * * * * * max_tme=1\n", "f:1: limits"},
        {"* * * * * * max_time=0\n", "f:1: limits"},
        {"* * * * * * max_time=-1\n", "f:1: limits"},
        {"* * * * * * max_time=nan\n", "f:1: limits"},
        {"* * * * * * max_time=1x\n", "f:1: limits"},
        {"* * * * * * max_time=1 max_time=2\n", "f:1: limits"},
        {"* * * * * * ignore max_time=2\n", "f:1: limits"},
        {"* * * * * * min_busbw=1 max_time=2 x\n", "f:1: too many fields"},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_thresholds *t = NULL;
        enum cm_status st = parse(cases[i].text, &t);

        CHECK(st == CM_EINVAL, "'%s': status %d", cases[i].text, (int)st);
        CHECK(strstr(err.text, cases[i].want) == err.text, "'%s': %s", cases[i].text, err.text);
        CHECK(strchr(err.text, '\n') == err.text + strlen(err.text) - 1, "lines: %s", err.text);
        CHECK(t == NULL, "'%s': out was written", cases[i].text);
    }
}

static void test_bytes_of_all_kinds(void)
{
    static const char zero[] = "* * * * * * max_time=1\0\n";
    struct cm_thresholds *t = NULL;
    char *longest = malloc(4096);

    capture_begin(&err, STDERR_FILENO);
    CHECK(cm_thresholds_parse(zero, sizeof(zero) - 1, "f", &t) == CM_EINVAL, "a zero byte");
    memset(longest, '*', 4096);
    CHECK(cm_thresholds_parse(longest, 4096, "f", &t) == CM_EINVAL, "4096 bytes in a line");
    CHECK(cm_thresholds_read("/no/such/file", &t) == CM_EINVAL, "no file");
    CHECK(cm_thresholds_read("/", &t) == CM_EINVAL, "a folder");
    CHECK(cm_thresholds_read("/dev/zero", &t) == CM_EINVAL, "an endless file");
    capture_end(&err);
    CHECK(strstr(err.text, "--thresholds '/no/such/file': No such file") != NULL, "%s", err.text);
    CHECK(strstr(err.text, "--thresholds '/dev/zero': larger than") != NULL, "%s", err.text);
    CHECK(t == NULL, "out was written");
    free(longest);
    cm_thresholds_free(NULL);
}

int main(void)
{
    RUN(test_first_rule_that_fits);
    RUN(test_errors_name_file_and_line);
    RUN(test_bytes_of_all_kinds);
    return test_end();
}
