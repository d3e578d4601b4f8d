/* A made-up job whose reports are looked at: options, ranks, rows. */
#ifndef CM_TESTS_REPORT_JOB_H
#define CM_TESTS_REPORT_JOB_H

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "common/opts.h"
#include "common/report.h"
#include "test.h"

enum { RANKS = 4 };

static const struct cm_bench made_bench = {.coll = CM_ALL_REDUCE, .what = "made up"};
static char made_program[] = "/build/all_reduce_perf";

/* One job: options, ranks, and what it printed. Large, so static and one at a time. */
struct job {
    struct cm_opts o;
    struct cm_rank_info infos[20];
    struct cm_rank rank;
    char *argv[16];
    int argc;
    struct cm_report *rep;
    struct capture out;
};
static struct job job;
/* Parse `options` (up to a NULL) and make n ranks in `ngroups` groups by rank modulo. */
static void job_make(struct job *j, int n, int ngroups, const char *const *options)
{
    enum cm_parsed what;

    memset(j, 0, sizeof(*j));
    j->argv[j->argc++] = made_program;
    while (*options != NULL)
        j->argv[j->argc++] = (char *)*options++;
    if (cm_opts_parse(j->argc, j->argv, &made_bench, &j->o, &what) != CM_OK)
        abort();
    for (int r = 0; r < n; r++) {
        struct cm_rank_info *i = &j->infos[r];

        *i = (struct cm_rank_info){.rank = r,
                                   .thread = r,
                                   .device = r,
                                   .group = r % ngroups,
                                   .group_rank = r / ngroups,
                                   .pid = 4242,
                                   .host = "alpha",
                                   .boot_id = "b0",
                                   .cpus = "0-1",
                                   .cpu = "Example CPU"};
    }
    j->rank = (struct cm_rank){.n = n,
                               .ngroups = ngroups,
                               .opts = &j->o,
                               .infos = j->infos,
                               .wire = "loop",
                               .oversubscribed = n > 2,
                               .arena_bytes = 1 << 20};
}

/* Two ranks per GPU. */
static inline void job_on_gpus(struct job *j, int n)
{
    static const struct cm_backend made_backend = {.name = "cuda"};

    for (int r = 0; r < n; r++) {
        snprintf(j->infos[r].gpu, sizeof(j->infos[r].gpu), "NVIDIA H200");
        snprintf(j->infos[r].bus_id, sizeof(j->infos[r].bus_id), "0000:%02x:00.0", 0x1b + r / 2);
    }
    j->rank.backend = &made_backend;
    j->rank.gpu_driver = 13020;
    j->rank.gpu_runtime = 13000;
    j->rank.shared_gpus = true;
    j->rank.wire = "p2p+ipc";
}

static inline enum cm_status job_open(struct job *j)
{
    enum cm_status st;

    capture_begin(&j->out, STDOUT_FILENO);
    st = cm_report_open(&made_bench, &j->rank, j->argc, j->argv, &j->rep);
    if (st != CM_OK)
        capture_end(&j->out);
    return st;
}

static inline enum cm_status job_close(struct job *j, const struct cm_summary *s)
{
    enum cm_status st = cm_report_close(j->rep, s);

    capture_end(&j->out);
    cm_opts_free(&j->o);
    return st;
}

static inline struct cm_row row_of(size_t bytes, double us)
{
    struct cm_result half = {.measured = true,
                             .time_us = us,
                             .cpu_us = us / 2,
                             .checked = true,
                             .alg_gbs = (double)bytes / us / 1e3,
                             .first_us = 10 * us,
                             .rank_min_us = us / 2,
                             .rank_avg_us = us * 3 / 4,
                             .rank_max_us = us,
                             .slowest = 3};
    struct cm_row row = {.bytes = bytes,
                         .count = bytes / 4,
                         .dtype = CM_FLOAT,
                         .op = CM_SUM,
                         .root = -1,
                         .redop = "sum",
                         .counted = true,
                         .algo = "ring",
                         .mode = "direct",
                         .proto = "simple",
                         .channels = 2,
                         .start_unix_ms = 1767225600123};

    half.bus_gbs = half.alg_gbs * 1.5;
    row.half[0] = row.half[1] = half;
    return row;
}

static const struct cm_summary fine = {.status = CM_OK};

/* The line of `text` that is `skip` lines after the first one that holds `start`. */
static inline const char *line_at(char *text, const char *start, int skip, char *buf, size_t size)
{
    char *at = strstr(text, start);

    for (; at != NULL && skip > 0; skip--)
        at = strchr(at, '\n') != NULL ? strchr(at, '\n') + 1 : NULL;
    snprintf(buf, size, "%.*s", at != NULL ? (int)strcspn(at, "\n") : 0, at != NULL ? at : "");
    return buf;
}

static inline int fields_of(const char *line)
{
    int n = 0;

    for (bool in = false; *line != '\0'; line++) {
        n += *line != ' ' && !in;
        in = *line != ' ';
    }
    return n;
}

static inline void expect(const char *got, const char *want)
{
    CHECK(strcmp(got, want) == 0, "\n got '%s'\nwant '%s'", got, want);
}

#endif
