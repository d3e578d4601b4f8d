/* --cache: what happens between operations, and never while one is timed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "common/cache.h"
#include "common/measure.h"
#include "forked.h"
#include "test.h"

enum { LOG = 4096 };

/* Rank 0's: R buffers are touched or flushed, M a mark, O an operation. */
struct diary {
    char text[LOG];
    size_t n;
    _Atomic int early; /* operations that began before all ranks had touched */
    _Atomic int ready;
};

struct job {
    const char *args[9];
    int argc;
    const char *want; /* how rank 0's diary of the timed loop ends */
    enum cm_exit exit;
    const char *says;
    struct diary *diary;
};

static void note(const struct cm_meter *m, char what)
{
    struct diary *d = ((struct job *)m->side.state)->diary;

    if (m->rank->rank == 0 && d->n < LOG - 1)
        d->text[d->n++] = what;
}

static enum cm_status noting_recache(struct cm_meter *m, struct cm_trial *t)
{
    struct diary *d = ((struct job *)m->side.state)->diary;

    note(m, 'R');
    d->ready++;
    return cm_cache_host(m, t);
}

static enum cm_status noting_mark(struct cm_meter *m, int k)
{
    note(m, 'M');
    return cm_meter_host.mark(m, k);
}

static enum cm_status bind(void *state, const struct cm_op_args *op)
{
    (void)state;
    (void)op;
    return CM_OK;
}

/* Who runs has been touched as often as it ran, and so have all others. */
static _Thread_local struct cm_meter *mine;
static _Thread_local int runs;

static enum cm_status run(void *state)
{
    struct diary *d = ((struct job *)state)->diary;

    runs++;
    if (mine->cache != NULL && mine->diag->phase == CM_AT_TIMED)
        d->early += d->ready < runs * mine->rank->n;
    note(mine, 'O');
    return CM_OK;
}

static enum cm_status arena(const struct cm_opts *o, int n, const struct cm_room *room, void *arg,
                            size_t *out)
{
    (void)arg;
    return cm_buffers_fit(o, n, room, out);
}

static enum cm_status body(struct cm_rank *r, void *arg)
{
    static const struct cm_engine engine = {.bind = bind, .run = run};
    struct cm_meter *m = calloc(1, sizeof(*m));
    struct cm_meter_ops ops = cm_meter_host;
    struct cm_op_args op = {.coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .count = 16};
    struct cm_counts counts = {.send = 16, .recv = 16};
    struct cm_reading reading;
    struct cm_trial t;
    enum cm_status st;

    if (m == NULL)
        return CM_ENOMEM;
    ops.recache = r->opts->run.unalign == 0 ? noting_recache : NULL; /* -u 1: as if on GPUs */
    ops.mark = noting_mark;
    m->rank = r;
    m->ops = &ops;
    m->diag = &cm_rank_shared(r->base, r->layout, r->rank)->diag;
    m->side = (struct cm_side){.name = "double", .engine = &engine, .state = arg};
    mine = m;
    runs = -r->opts->run.warmup - 1; /* only timed ones count */
    st = cm_cache_open(m);
    if (st == CM_OK)
        st = ops.open(m);
    if (st == CM_OK) {
        t = cm_trial_of(m, &op, &counts, 16, 16);
        st = cm_measure(m, &t, &reading);
        ops.close(m, true);
    }
    cm_cache_close(m->cache);
    free(m);
    return st;
}

static int child(struct cm_boot *b, void *arg)
{
    struct job *j = arg;
    struct diary d = {.n = 0};
    char *argv[9] = {NULL}, copies[9][32];
    struct capture c;
    struct cm_opts o;
    enum cm_parsed what;
    enum cm_exit code;

    (void)b;
    j->diary = &d;
    for (int i = 0; i < j->argc; i++)
        argv[i] = strcpy(copies[i], j->args[i]);
    if (cm_opts_parse(j->argc, argv, NULL, &o, &what) != CM_OK)
        return 1;
    capture_begin(&c, STDERR_FILENO);
    code = cm_launch(NULL, NULL, &o, arena, body, j);
    capture_end(&c);
    cm_opts_free(&o);
    if (code == j->exit && d.early == 0 && (j->want == NULL || strcmp(d.text, j->want) == 0) &&
        (j->says == NULL ? c.text[0] == '\0' : strstr(c.text, j->says) != NULL))
        return 0;
    fprintf(stderr, "exit %d, %d early, diary %s, stderr: %s\n", code, d.early, d.text, c.text);
    return 1;
}

/* -c 0: nothing is checked, so the timed loop is the last part. First call and -w 1 precede it. */
static void test_the_order_of_things(void)
{
    static struct job rows[] = {
        {.args = {"x", "-g3", "-n3", "-c0", "-b64", "-e64"}, .argc = 6, .want = "OOMOOOM"},
        {.args = {"x", "-g3", "-n3", "-c0", "-b64", "-e64", "--cache", "touched"},
         .argc = 8,
         .want = "OORMOMRMOMRMOM"},
        {.args = {"x", "-g2", "-n2", "-c0", "-b64", "-e64", "--cache", "cold"},
         .argc = 8,
         .want = "OORMOMRMOM"},
        {.args = {"x", "-g1", "-n1", "-c0", "-b64", "-e64", "--cache", "cold"},
         .argc = 8,
         .want = "OORMOM"},
        {.args = {"x", "-g3", "-n3", "-c0", "-b64", "-u1", "--cache", "cold"},
         .argc = 8,
         .exit = CM_EXIT_UNSUPPORTED,
         .says = "--cache 'cold': on GPUs"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        int status[FORKED_MAX];

        CHECK(forked_run(1, child, &rows[i], status), "row %zu", i);
        CHECK(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 0, "row %zu: 0x%x", i,
              (unsigned)status[0]);
    }
}

/* In place an operation destroys its input: rewriting brings it back, and its result is defined. */
static void test_in_place_the_input_comes_back(void)
{
    static struct cm_meter m;
    struct cm_rank r = {.group_rank = 1, .group_n = 2};
    struct cm_cache c = {.mode = CM_CACHE_TOUCHED};
    float room[64], want[64];
    struct cm_trial t = {.op = {.coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .in_place = true},
                         .send = 64,
                         .recv = 64,
                         .seed = 3,
                         .ops = 5};
    struct cm_data data = {.coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .n = 2, .seed = 3};

    m = (struct cm_meter){.rank = &r, .cache = &c};
    t.in = t.out = t.region = (unsigned char *)room;
    t.region_bytes = sizeof(room);
    cm_data_input(&data, 1, 0, 64, want);
    memset(room, 0, sizeof(room));
    CHECK(cm_cache_host(&m, &t) == CM_OK && t.ops == 0, "%lld operations", (long long)t.ops);
    CHECK(memcmp(room, want, sizeof(room)) == 0, "other data: %g, not %g", room[0], want[0]);
}

static void test_who_starts_by_the_clock(void)
{
    static const struct {
        const char *boot[2];
        bool oversubscribed, want;
    } rows[] = {{{"a", "a"}, false, true}, {{"a", "b"}, false, false}, {{"a", "a"}, true, false}};

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_rank_info infos[2] = {{.rank = 0}, {.rank = 1}};
        struct cm_rank r = {.n = 2, .infos = infos, .oversubscribed = rows[i].oversubscribed};

        for (int k = 0; k < 2; k++)
            snprintf(infos[k].boot_id, sizeof(infos[k].boot_id), "%s", rows[i].boot[k]);
        CHECK(cm_cache_aligns(&r) == rows[i].want, "row %zu", i);
    }
    CHECK(cm_cache_clock_ns() > 0, "%g ns", cm_cache_clock_ns());
}

int main(void)
{
    RUN(test_the_order_of_things);
    RUN(test_in_place_the_input_comes_back);
    RUN(test_who_starts_by_the_clock);
    return test_end();
}
