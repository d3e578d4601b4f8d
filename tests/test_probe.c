/*
 * The probe of distances between cores: who meets whom, what a launch is tagged
 * with, and that it ends whatever the ranks' memory held before.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "common/probe.h"
#include "forked.h"
#include "test.h"

enum { MAX_N = 40 };

static void test_everyone_meets_everyone(void)
{
    for (int n = 2; n <= MAX_N; n++) {
        int rounds = n + n % 2 - 1, met[MAX_N][MAX_N] = {{0}}, wrong = 0;

        for (int i = 0; i < rounds * n; i++) {
            int round = i / n, r = i % n, p = cm_probe_partner(r, n, round);

            wrong += p == r || p >= n || (p >= 0 && cm_probe_partner(p, n, round) != r);
            if (p >= 0)
                met[r][p]++;
        }
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                wrong += met[a][b] != (a != b);
        CHECK(wrong == 0, "%d ranks: %d wrong", n, wrong);
    }
}

static void test_tags(void)
{
    static const struct {
        double before[2], after[2]; /* nearest and farthest; 0: none */
        const char *want;           /* NULL: no tag */
    } rows[] = {
        {{62, 62}, {70, 149}, "near"},    {{160, 160}, {270, 400}, "far"},
        {{62, 300}, {149, 150}, "mixed"}, {{62, 62}, {270, 270}, "moved"},
        {{62, 300}, {62, 62}, "moved"},   {{62, 62}, {0, 0}, NULL},
        {{0, 0}, {0, 0}, NULL},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_probes p = {
            {.pairs = rows[i].before[0] > 0,
             .least_ns = rows[i].before[0],
             .most_ns = rows[i].before[1]},
            {.pairs = rows[i].after[0] > 0,
             .least_ns = rows[i].after[0],
             .most_ns = rows[i].after[1]},
        };
        const char *tag = cm_probes_tag(&p);

        CHECK((tag == NULL) == (rows[i].want == NULL) &&
                  (tag == NULL || strcmp(tag, rows[i].want) == 0),
              "row %zu: %s", i, tag != NULL ? tag : "none");
    }
}

/* What ranks do in a launch, and what they must find. */
struct job {
    const char *args[7];
    int argc;
    bool crowded; /* as launched; else every rank is taken to have a core */
    int late;     /* this rank does not come; -1: all do */
    int pairs, listed;
    const char *why;
    enum cm_exit exit;
    const char *says;
};

static enum cm_status arena(const struct cm_opts *o, int n, const struct cm_room *room, void *arg,
                            size_t *out)
{
    (void)o;
    (void)n;
    (void)room;
    (void)arg;
    *out = CM_PAGE;
    return CM_OK;
}

static bool is_as_wanted(const struct job *j, const struct cm_probe *p)
{
    for (int i = 0; i < p->listed; i++)
        if (p->pair[i].a >= p->pair[i].b || p->pair[i].ns < p->least_ns ||
            p->pair[i].ns > p->most_ns)
            return false;
    return p->pairs == j->pairs && p->listed == j->listed &&
           (p->pairs == 0 || (p->least_ns > 0 && p->least_ns <= p->most_ns)) &&
           (j->why == NULL ? p->why == NULL : p->why != NULL && strcmp(p->why, j->why) == 0);
}

static enum cm_status body(struct cm_rank *r, void *arg)
{
    const struct job *j = arg;
    struct cm_probes probes = {.before = {.why = NULL}};
    char *mine = (char *)r->base + cm_arena_at(r->layout, r->rank);
    enum cm_status st = CM_OK;

    if (!j->crowded)
        r->oversubscribed = false;
    for (int i = 0; i < 2 && st == CM_OK; i++) {
        struct cm_probe *p = i == 0 ? &probes.before : &probes.after;

        while (r->rank == j->late && cm_abort_status(r->waiter.abort) == CM_OK)
            sched_yield();
        memset(mine, 0xff, CM_PAGE); /* a flag that is ahead of all others */
        st = i == 0 ? cm_probe_run(r, p) : cm_probe_again(r, NULL, &probes);
        if (i == 0 && st == CM_OK && !is_as_wanted(j, p))
            st = CM_FAIL(CM_ESYS, "rank %d: %d pairs, %d listed, %.0f to %.0f ns: %s", r->rank,
                         p->pairs, p->listed, p->least_ns, p->most_ns, p->why ? p->why : "");
    }
    return st;
}

static int child(struct cm_boot *b, void *arg)
{
    struct job *j = arg;
    char *argv[7] = {NULL}, copies[7][32];
    struct capture c;
    struct cm_opts o;
    enum cm_parsed what;
    enum cm_exit code;

    (void)b;
    for (int i = 0; i < j->argc; i++)
        argv[i] = strcpy(copies[i], j->args[i]);
    if (cm_opts_parse(j->argc, argv, NULL, &o, &what) != CM_OK)
        return 1;
    capture_begin(&c, STDERR_FILENO);
    code = cm_launch(NULL, NULL, &o, arena, body, j);
    capture_end(&c);
    cm_opts_free(&o);
    if (code == j->exit && (j->says == NULL ? c.text[0] == '\0' : strstr(c.text, j->says) != NULL))
        return 0;
    fprintf(stderr, "exit %d, stderr: %s\n", code, c.text);
    return 1;
}

static void test_ranks_probe(void)
{
    static struct job rows[] = {
        {.args = {"x", "-g1"}, .argc = 2, .late = -1, .why = "there is one rank"},
        {.args = {"x", "-g2"}, .argc = 2, .late = -1, .pairs = 1, .listed = 1},
        {.args = {"x", "-g5"}, .argc = 2, .late = -1, .pairs = 10, .listed = 10},
        {.args = {"x", "-t9"}, .argc = 2, .late = -1, .pairs = 36},
        {.args = {"x", "-g65"},
         .argc = 2,
         .crowded = true,
         .late = -1,
         .why = "more ranks than cores"},
        {.args = {"x", "-g2", "-T", "0.2"},
         .argc = 4,
         .late = 1,
         .exit = CM_EXIT_TIMEOUT,
         .says = "rank 1"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        int status[FORKED_MAX];

        if (rows[i].crowded && sysconf(_SC_NPROCESSORS_ONLN) >= 65)
            continue;
        CHECK(forked_run(1, child, &rows[i], status), "row %zu", i);
        CHECK(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 0, "row %zu: 0x%x", i,
              (unsigned)status[0]);
    }
}

int main(void)
{
    RUN(test_everyone_meets_everyone);
    RUN(test_tags);
    RUN(test_ranks_probe);
    return test_end();
}
