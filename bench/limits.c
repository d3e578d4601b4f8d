/*
 * What this machine can do at most, for the column "limit" beside measured
 * collectives: bandwidth of copies and sums in caches and memory, of reading what
 * another rank has just written, and how long two ranks take to exchange cache
 * lines or messages of a socket.
 *
 *   build/bench/limits -g 2 -b 16K -e 64M [-n batches] [-J FILE]
 *   mpirun -np 2 build/bench/limits -b 16K -e 64M
 *
 * All ranks work at the same time, with the kernels of the engine; the better of
 * plain and non-temporal stores counts. Bandwidth is that of results: bytes
 * written per second, together. Figures are medians over batches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cache_lines.h"
#include "common/coll.h"
#include "common/probe.h"
#include "common/stats.h"
#include "kernels/kernels.h"
#include "plain.h"

enum {
    BUFFERS = 3,            /* a, b and the result, of each rank */
    BATCH_BYTES = 16 << 20, /* a batch of hot operations writes about this much */
    MAX_BATCHES = 101,
    STAGGER = 17 * 64, /* between their starts in a page: loads and stores must not alias */
    EXCHANGES = 200,   /* of a batch of messages */
    MESSAGE = 8
};

static const size_t sizes[] = {4096,    16384,   65536,    262144,  1 << 20,
                               4 << 20, 8 << 20, 16 << 20, 64 << 20};

struct limits {
    struct cm_rank *r;
    unsigned char *of[BUFFERS];
    const unsigned char *next_a; /* of the next rank, or mine if we share no memory */
    cm_reduce_fn *sum[2];        /* with plain and with non-temporal stores */
    int batches;
    FILE *json;
    const char *comma;
};

/* One kind of work on buffers. */
struct work {
    const char *name;
    void (*run)(const struct limits *l, size_t bytes, bool stream);
    bool rewritten; /* each rank stores its `a` anew before each, untimed */
};

static void copy(const struct limits *l, size_t bytes, bool stream)
{
    void *dst = l->of[2];

    cm_copy(&dst, 1, l->of[0], bytes, stream);
}

static void fetch(const struct limits *l, size_t bytes, bool stream)
{
    void *dst = l->of[2];

    cm_copy(&dst, 1, l->next_a, bytes, stream);
}

static void sum(const struct limits *l, size_t bytes, bool stream)
{
    const void *src[] = {l->of[0], l->of[1]};
    void *dst[] = {l->of[2]};
    const struct cm_reduce r = {
        .n = bytes / sizeof(float), .nsrc = 2, .ndst = 1, .src = src, .dst = dst, .divisor = 1};

    l->sum[stream](&r);
}

static const struct work works[] = {
    {"copy", copy, false}, {"sum", sum, false}, {"fetch", fetch, true}};

/* ---- output, by rank 0 ---- */

static void tell(struct limits *l, const char *what, size_t bytes, double value, const char *unit,
                 const char *how)
{
    if (l->r->rank != 0)
        return;
    printf("%-8s %10zu %12.3f %-5s %s\n", what, bytes, value, unit, how);
    fflush(stdout);
    if (l->json == NULL)
        return;
    fprintf(l->json,
            "%s\n  {\"what\": \"%s\", \"bytes\": %zu, \"value\": %.6g, \"unit\": \"%s\", "
            "\"how\": \"%s\"}",
            l->comma, what, bytes, value, unit, how);
    l->comma = ",";
}

static void tell_header(const struct limits *l)
{
    const struct cm_rank *r = l->r;

    if (r->rank != 0)
        return;
    printf("# limits: cpu %s, kernels %s, %d ranks%s, wire %s, medians of %d batches\n",
           r->infos[0].cpu, cm_kernel_isa(), r->n, r->oversubscribed ? " (more than cores)" : "",
           r->wire, l->batches);
    printf("# %-6s %10s %12s\n", "what", "bytes", "value");
    if (l->json != NULL) /* names of processors have neither quotes nor backslashes */
        fprintf(l->json,
                "{\"cpu\": \"%s\", \"kernels\": \"%s\", \"ranks\": %d, \"oversubscribed\": %s,\n"
                " \"limits\": [",
                r->infos[0].cpu, cm_kernel_isa(), r->n, r->oversubscribed ? "true" : "false");
}

/* ---- memory ---- */

/* A batch from a barrier on: this rank's bytes per nanosecond, that is GB/s. */
static enum cm_status batch(struct limits *l, const struct work *w, size_t bytes, bool stream,
                            double *gbs)
{
    int times = w->rewritten || bytes >= BATCH_BYTES ? 1 : (int)(BATCH_BYTES / bytes);
    enum cm_status st = CM_OK;
    int64_t start;

    if (w->rewritten)
        cm_lines_rewrite(l->of[0], bytes);
    else
        w->run(l, bytes, stream);
    st = cm_team_barrier(&l->r->team);
    start = cm_now_ns();
    for (int i = 0; i < times; i++)
        w->run(l, bytes, stream);
    *gbs = (double)bytes * times / (double)(cm_now_ns() - start);
    return st == CM_OK ? cm_team_barrier(&l->r->team) : st;
}

static enum cm_status bandwidth(struct limits *l, const struct work *w, size_t bytes, bool stream,
                                double *total)
{
    double mine[MAX_BATCHES], all[CM_TEAM_BYTES / sizeof(double)], median;
    enum cm_status st = CM_OK;

    for (int i = 0; i < l->batches && st == CM_OK; i++)
        st = batch(l, w, bytes, stream, &mine[i]);
    if (st != CM_OK)
        return st;
    median = cm_stats_of(mine, (size_t)l->batches).p50;
    st = cm_team_gather(&l->r->team, &median, sizeof(median), all);
    *total = 0;
    for (int r = 0; r < l->r->n && st == CM_OK; r++)
        *total += all[r];
    return st;
}

static enum cm_status measure_memory(struct limits *l, const struct work *w)
{
    const struct cm_opts_sweep *s = &l->r->opts->sweep;
    enum cm_status st = CM_OK;

    for (size_t i = 0; i < CM_LEN(sizes) && st == CM_OK; i++) {
        double plain, stream;

        if (sizes[i] < s->min_bytes || sizes[i] > s->max_bytes)
            continue;
        st = bandwidth(l, w, sizes[i], false, &plain);
        if (st == CM_OK)
            st = bandwidth(l, w, sizes[i], true, &stream);
        if (st == CM_OK)
            tell(l, w->name, sizes[i], plain > stream ? plain : stream, "GB/s",
                 plain > stream ? "plain stores" : "non-temporal stores");
    }
    return st;
}

/* ---- latency ---- */

static enum cm_status measure_flags(struct limits *l)
{
    struct cm_probe p;
    enum cm_status st = cm_probe_run(l->r, &p);

    if (st != CM_OK || p.pairs == 0) {
        if (st == CM_OK && l->r->rank == 0)
            printf("# flags: not measured: %s\n", p.why);
        return st;
    }
    tell(l, "flags", sizeof(uint64_t), p.least_ns, "ns", "exchange, nearest pair");
    if (p.pairs > 1)
        tell(l, "flags", sizeof(uint64_t), p.most_ns, "ns", "exchange, farthest pair");
    return st;
}

static enum cm_status exchange_messages(const struct plain *p, double *ns)
{
    char out[MESSAGE] = {0}, in[MESSAGE];
    int64_t start = cm_now_ns();
    enum cm_status st = CM_OK;

    for (int i = 0; i < EXCHANGES && st == CM_OK; i++)
        st = plain_exchange(p, (struct plain_stream){.at = out, .left = MESSAGE},
                            (struct plain_stream){.at = in, .left = MESSAGE});
    *ns = (double)(cm_now_ns() - start) / EXCHANGES;
    return st;
}

/* Between two ranks that are processes: sockets over the interface that the tcp wire would use. */
static enum cm_status measure_socket(struct limits *l)
{
    struct plain p = {.out_fd = -1, .in_fd = -1};
    double ns[MAX_BATCHES];
    enum cm_status st;

    if (l->r->n != 2 || l->r->infos[1].proc == l->r->infos[0].proc) {
        if (l->r->rank == 0)
            printf("# socket: not measured: it takes two ranks, one per process\n");
        return CM_OK;
    }
    st = plain_open(&p, l->r);
    for (int i = 0; i < l->batches && st == CM_OK; i++)
        st = exchange_messages(&p, &ns[i]);
    plain_close(&p);
    if (st == CM_OK)
        tell(l, "socket", MESSAGE, cm_stats_of(ns, (size_t)l->batches).p50, "ns",
             "exchange over two sockets");
    return st;
}

/* ---- the program ---- */

static size_t buffer_bytes(const struct cm_opts *o)
{
    return (o->sweep.max_bytes + CM_PAGE - 1) / CM_PAGE * CM_PAGE + CM_PAGE;
}

static enum cm_status arena(const struct cm_opts *o, int n, const struct cm_room *room, void *arg,
                            size_t *out)
{
    size_t bytes = buffer_bytes(o);

    (void)n;
    (void)arg;
    if (bytes > room->bytes / (size_t)room->ranks / BUFFERS)
        return CM_FAIL(CM_ENOMEM, "-e/--maxbytes: %d ranks x %d x %zu bytes of %s are too much",
                       room->ranks, BUFFERS, bytes, room->where);
    *out = BUFFERS * bytes;
    return CM_OK;
}

static enum cm_status open_limits(struct limits *l)
{
    struct cm_rank *r = l->r;
    size_t each = buffer_bytes(r->opts), at = cm_arena_at(r->layout, r->rank);
    int next = (r->rank + 1) % r->n;
    const char *path = r->opts->report.json;

    if (r->backend != NULL || (size_t)r->n > CM_TEAM_BYTES / sizeof(double))
        return CM_FAIL(CM_EUNSUP, "limits are those of the host, of up to %zu ranks",
                       CM_TEAM_BYTES / sizeof(double));
    l->batches = r->opts->run.iters;
    if (l->batches > MAX_BATCHES)
        return r->rank != 0 ? CM_EINVAL
                            : CM_FAIL(CM_EINVAL, "-n/--iters '%d': at most %d batches", l->batches,
                                      MAX_BATCHES);
    for (int i = 0; i < BUFFERS; i++) {
        l->of[i] = (unsigned char *)r->base + at + (size_t)i * (each + STAGGER);
        memset(l->of[i], i, r->opts->sweep.max_bytes);
    }
    for (int i = 0; i < 2; i++)
        l->sum[i] = cm_reduce_kernel(CM_FLOAT, CM_SUM, i == 1);
    l->next_a = cm_local_of(r->layout, next) < 0
                    ? l->of[0]
                    : (unsigned char *)r->base + cm_arena_at(r->layout, next);
    if (r->rank != 0 || path == NULL)
        return CM_OK;
    l->json = fopen(path, "we");
    return l->json != NULL ? CM_OK : cm_fail_errno(path);
}

static enum cm_status close_limits(struct limits *l, enum cm_status st)
{
    if (l->json == NULL)
        return st;
    fputs("\n ]}\n", l->json);
    return (ferror(l->json) | fclose(l->json)) == 0 || st != CM_OK
               ? st
               : cm_fail_errno(l->r->opts->report.json);
}

static enum cm_status body(struct cm_rank *r, void *arg)
{
    struct limits l = {.r = r, .comma = ""};
    enum cm_status st = open_limits(&l);

    (void)arg;
    if (st == CM_OK) {
        tell_header(&l);
        st = measure_flags(&l);
    }
    for (size_t i = 0; i < CM_LEN(works) && st == CM_OK; i++)
        st = measure_memory(&l, &works[i]);
    if (st == CM_OK)
        st = measure_socket(&l);
    return close_limits(&l, st);
}

int main(int argc, char **argv)
{
    static const struct cm_bench about = {.coll = CM_ALL_REDUCE,
                                          .what = "bandwidth and latency of the machine itself"};
    struct cm_opts o;
    enum cm_parsed what;
    enum cm_status st = cm_opts_parse(argc, argv, &about, &o, &what);
    enum cm_exit code;

    if (st != CM_OK || what == CM_PARSED_STOP)
        return (int)cm_status_exit(st);
    o.colls = 1u << about.coll;
    code = cm_launch(&argc, &argv, &o, arena, body, NULL);
    cm_opts_free(&o);
    return (int)code;
}
