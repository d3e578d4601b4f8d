/* Parse a command line and keep what came of it, for the tests of options. */
#ifndef CM_TESTS_PARSED_H
#define CM_TESTS_PARSED_H

#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "common/coll.h"
#include "common/opts.h"
#include "test.h"

enum { MAX_WORDS = 40 };

static const struct cm_bench parsed_bench = {.coll = CM_ALL_REDUCE, .what = "Measure nothing."};

/* What a command line (words separated by '|') led to. */
struct outcome {
    enum cm_status status;
    enum cm_parsed what;
    struct cm_opts o;
    char program[32], line[1024]; /* the words live here */
    struct capture out, err;
};

static inline void parse(const char *line, struct outcome *r)
{
    char *argv[MAX_WORDS] = {r->program};
    int argc = 1;

    snprintf(r->program, sizeof(r->program), "/some/where/x_perf");
    snprintf(r->line, sizeof(r->line), "%s", line);
    for (char *w = r->line; *line != '\0' && w != NULL && argc < MAX_WORDS;) {
        char *bar = strchr(w, '|');

        argv[argc++] = w;
        if (bar != NULL)
            *bar++ = '\0';
        w = bar;
    }
    capture_begin(&r->out, STDOUT_FILENO);
    capture_begin(&r->err, STDERR_FILENO);
    r->status = cm_opts_parse(argc, argv, &parsed_bench, &r->o, &r->what);
    capture_end(&r->err);
    capture_end(&r->out);
}

static struct outcome r; /* large, and one at a time */

static inline int lines_of(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static inline void expect_refused(const char *line, enum cm_status st, const char *name,
                                  const char *value)
{
    parse(line, &r);
    CHECK(r.status == st, "'%s': status %d", line, (int)r.status);
    CHECK(r.out.text[0] == '\0', "'%s': stdout '%s'", line, r.out.text);
    CHECK(lines_of(r.err.text) == 1, "'%s': stderr '%s'", line, r.err.text);
    CHECK(strstr(r.err.text, name) != NULL, "'%s': no '%s' in '%s'", line, name, r.err.text);
    CHECK(strstr(r.err.text, value) != NULL, "'%s': no '%s' in '%s'", line, value, r.err.text);
    cm_opts_free(&r.o);
}

static inline bool accepted(const char *line)
{
    parse(line, &r);
    CHECK(r.status == CM_OK && r.what == CM_PARSED_RUN, "'%s': status %d, '%s'", line,
          (int)r.status, r.err.text);
    CHECK(r.out.text[0] == '\0' && r.err.text[0] == '\0', "'%s': printed '%s%s'", line, r.out.text,
          r.err.text);
    return r.status == CM_OK;
}

#endif
