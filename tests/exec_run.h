/*
 * Runs the engine on ranks that are threads, processes or both, over one
 * anonymous shared mapping, and checks every operation. For test_exec.c.
 */
#ifndef CM_TESTS_EXEC_RUN_H
#define CM_TESTS_EXEC_RUN_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/check.h"
#include "common/data.h"
#include "engine/algo.h"
#include "engine/comm.h"
#include "test.h"

enum {
    MAX_N = 9,
    MAX_ELEMS = 5000,             /* of a block */
    ROOM = MAX_ELEMS * MAX_N * 8, /* bytes of a buffer */
    LONG_ROOM = 16 << 20,
    SPINS = 20,
    TIMEOUT_S = 20
};

/* One communicator configuration and the operations it runs. */
struct config {
    int n, procs; /* ranks; processes they are spread over */
    struct cm_force force;
    const char *proto;
    bool lengthy;   /* a few long messages instead of many short ones */
    bool all_types; /* every type and operation on a few counts, else float sum on many */
    const int32_t *node;
};

struct world {
    const struct config *cfg;
    struct cm_layout layout;
    void *base;
    _Atomic int *failures; /* shared */
};

struct rank {
    const struct world *w;
    int rank;
    struct cm_waiter waiter;
    struct cm_comm *comm;
    unsigned char *in, *out;
    uint64_t seed;
    size_t matrix[2][MAX_N * MAX_N]; /* alltoallv: elements from row to column */
};

static size_t room_of(const struct config *cfg)
{
    return cfg->lengthy ? LONG_ROOM : ROOM;
}

static struct cm_diag *diag_of(const struct cm_waiter *w, int rank)
{
    return &cm_rank_shared(w->base, w->layout, rank)->diag;
}

static void complain(struct rank *r, const struct cm_op_args *a, const struct cm_check *c,
                     const struct cm_expect *e)
{
    const struct cm_force *f = &r->w->cfg->force;
    char where[200];
    int lines = 4;

    if (atomic_fetch_add(r->w->failures, 1) > 5)
        return;
    snprintf(where, sizeof(where),
             "%s %s %s n=%d procs=%d algo=%s mode=%d proto=%d count=%zu root=%d %s",
             cm_colls[a->coll].name, cm_dtypes[a->dtype].name, cm_ops[a->op].name, r->w->cfg->n,
             r->w->cfg->procs, f->algo ? f->algo : "auto", f->mode, f->proto, a->count, a->root,
             a->in_place ? "in place" : "out of place");
    cm_check_explain(c, e, where, &lines);
    fprintf(stderr, "rank %d: %s: %lld wrong\n", r->rank, where, (long long)c->wrong);
}

/* Elements of IN or OUT. */
static size_t elems_of(const struct rank *r, const struct cm_op_args *a, bool in)
{
    size_t n = (size_t)r->w->cfg->n, me = (size_t)r->rank, sum = 0;

    if (a->matrix == NULL)
        return a->count *
               (size_t)(in ? cm_in_blocks(a->coll, (int)n) : cm_out_blocks(a->coll, (int)n));
    for (size_t k = 0; k < n; k++)
        sum += in ? a->matrix[me * n + k] : a->matrix[k * n + me];
    return sum;
}

/* Run one operation with fresh data and check it. false: the rank must stop. */
static bool run_one(struct rank *r, struct cm_op_args a)
{
    int n = r->w->cfg->n;
    size_t es = cm_dtypes[a.dtype].bytes;
    size_t in_elems = elems_of(r, &a, true), out_elems = elems_of(r, &a, false);
    struct cm_expect e = {.data = {a.coll, a.dtype, a.op, n, ++r->seed},
                          .rank = r->rank,
                          .root = a.root,
                          .count = a.count,
                          .matrix = a.matrix};
    struct cm_check_args ca = {.expect = e,
                               .in_count = in_elems,
                               .out_count = out_elems,
                               .in_place = a.in_place,
                               .poison_seed = r->seed};
    struct cm_check c = {0};
    unsigned char *in = r->in, *out = r->out;

    if (a.in_place) {
        in = out = r->out;
        if (in_elems < out_elems)
            in += (size_t)r->rank * a.count * es;
        if (out_elems < in_elems)
            out += (size_t)r->rank * a.count * es;
    }
    ca.poisoned = r->out;
    cm_poison(r->out, (a.in_place && in_elems > out_elems ? in_elems : out_elems) * es, r->seed);
    if (!(a.in_place && a.coll == CM_SCATTER && r->rank != a.root))
        cm_data_input(&e.data, r->rank, 0, in_elems, in); /* elsewhere that IN does not exist */
    a.in = in;
    a.out = out;
    if (cm_comm_run(r->comm, &a) != CM_OK) {
        atomic_fetch_add(r->w->failures, 1);
        return false;
    }
    ca.in = in;
    ca.out = out;
    cm_check_output(&ca, &c);
    if (!a.in_place)
        cm_check_input(&ca, &c);
    if (c.wrong != 0)
        complain(r, &a, &c, &e);
    return true;
}

static bool has_form(const struct config *cfg, enum cm_coll coll)
{
    const struct cm_algo *algo = cfg->force.algo ? cm_algo_find(cfg->force.algo) : NULL;

    return algo == NULL || algo->build[coll] != NULL;
}

static bool run_placements(struct rank *r, struct cm_op_args a)
{
    if (!run_one(r, a))
        return false;
    a.in_place = true;
    return !cm_colls[a.coll].in_place || run_one(r, a);
}

static bool run_counts(struct rank *r, enum cm_coll coll)
{
    static const size_t usual[] = {1, 5, 64, 1000, 4099}, extra[] = {100003, 1200007};
    const size_t *counts = r->w->cfg->lengthy ? extra : usual;
    size_t ncounts = r->w->cfg->lengthy ? CM_LEN(extra) : CM_LEN(usual);
    int n = r->w->cfg->n;

    for (size_t k = 0; k < ncounts; k++) {
        struct cm_op_args a = {.coll = coll, .dtype = CM_FLOAT, .op = CM_SUM, .count = counts[k]};
        int roots = cm_colls[coll].rooted ? n : 1;

        for (a.root = 0; a.root < roots; a.root += 1 + (n > 4))
            if (!run_placements(r, a))
                return false;
    }
    return true;
}

/* alltoallv over traffic of all kinds: nothing, uneven, empty rows and columns. */
static bool run_matrices(struct rank *r)
{
    int n = r->w->cfg->n;
    bool on = true;

    for (size_t k = 0; k < CM_LEN(r->matrix) && on; k++) {
        for (int i = 0; i < n * n; i++)
            r->matrix[k][i] = k == 0 ? (size_t)(i * 37 % 401)
                                     : (size_t)(i % 3 == 0 || i / n == 1 ? 0 : i * 101 % MAX_ELEMS);
        on = run_one(r, (struct cm_op_args){
                            .coll = CM_ALLTOALLV, .dtype = CM_FLOAT, .matrix = r->matrix[k]});
    }
    return on;
}

static bool run_type(struct rank *r, enum cm_coll coll, enum cm_dtype t, enum cm_op op)
{
    static const size_t counts[] = {7, 1031};
    bool on = true;

    for (size_t k = 0; k < CM_LEN(counts) && on; k++)
        on = run_placements(r, (struct cm_op_args){
                                   .coll = coll,
                                   .dtype = t,
                                   .op = op,
                                   .count = counts[k],
                                   .root = cm_colls[coll].rooted ? r->w->cfg->n - 1 : 0,
                               });
    return on;
}

static bool run_types(struct rank *r, enum cm_coll coll)
{
    int ops = cm_colls[coll].reduces ? CM_NOPS : 1;
    bool on = true;

    for (int k = 0; k < CM_NDTYPES * ops && on; k++)
        on = run_type(r, coll, (enum cm_dtype)(k / ops), (enum cm_op)(k % ops));
    return on;
}

static void run_rank(struct rank *r)
{
    const struct world *w = r->w;
    const struct config *cfg = w->cfg;
    size_t arena = cm_arena_at(&w->layout, r->rank);
    int32_t world[MAX_N];
    struct cm_comm_args ca = {.rank = r->rank,
                              .n = cfg->n,
                              .world = world,
                              .node = cfg->node,
                              .base = w->base,
                              .layout = &w->layout,
                              .waiter = &r->waiter,
                              .scratch_at = arena + 2 * room_of(cfg),
                              .force = cfg->force};
    bool on = true;

    for (int k = 0; k < cfg->n; k++)
        world[k] = k;
    ca.scratch_bytes = cm_comm_scratch_bytes(room_of(cfg), cfg->n);
    r->in = (unsigned char *)w->base + arena;
    r->out = r->in + room_of(cfg);
    r->waiter = (struct cm_waiter){.rank = r->rank,
                                   .nranks = cfg->n,
                                   .spins = SPINS,
                                   .timeout_ns = (int64_t)TIMEOUT_S * 1000000000,
                                   .base = w->base,
                                   .abort = &((struct cm_shared *)w->base)->abort,
                                   .layout = &w->layout,
                                   .diag_of = diag_of};
    r->waiter.diag = diag_of(&r->waiter, r->rank);
    if (cm_comm_open(&ca, &r->comm) != CM_OK) {
        atomic_fetch_add(w->failures, 1);
        return;
    }
    for (int coll = 0; coll < CM_NCOLLS && on; coll++) {
        if (!has_form(cfg, (enum cm_coll)coll))
            continue;
        if (coll == CM_ALLTOALLV) {
            on = run_matrices(r);
            continue;
        }
        on = cfg->all_types ? run_types(r, (enum cm_coll)coll) : run_counts(r, (enum cm_coll)coll);
    }
    cm_comm_close(r->comm);
}

static void *rank_thread(void *arg)
{
    run_rank(arg);
    return NULL;
}

/* The ranks of process `proc` as threads. */
static void run_process(const struct world *w, int proc)
{
    struct rank ranks[MAX_N] = {{0}};
    pthread_t tid[MAX_N];
    int first = w->cfg->n * proc / w->cfg->procs, last = w->cfg->n * (proc + 1) / w->cfg->procs;

    for (int r = first; r < last; r++) {
        ranks[r] = (struct rank){.w = w, .rank = r, .seed = 1000};
        if (pthread_create(&tid[r], NULL, rank_thread, &ranks[r]) != 0)
            abort();
    }
    for (int r = first; r < last; r++)
        pthread_join(tid[r], NULL);
}

/* Run a configuration; the number of failed operations. */
static int run_config(const struct config *cfg)
{
    struct world w = {.cfg = cfg};
    pid_t pids[MAX_N];
    int failures;

    w.layout = (struct cm_layout){.nranks = cfg->n, .channels = 4, .depth = 4, .slot_bytes = 4096};
    w.layout.arena_bytes = (2 * room_of(cfg) + cm_comm_scratch_bytes(room_of(cfg), cfg->n) + 8191) &
                           ~(size_t)4095;
    if (cm_layout_fill(&w.layout) != CM_OK)
        return 1;
    w.base = mmap(NULL, w.layout.total + 4096, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w.base == MAP_FAILED)
        return 1;
    w.failures = (_Atomic int *)((char *)w.base + w.layout.total);
    for (int p = 1; p < cfg->procs; p++) {
        pids[p] = fork();
        if (pids[p] == 0) {
            run_process(&w, p);
            _exit(0);
        }
    }
    run_process(&w, 0);
    for (int p = 1; p < cfg->procs; p++) {
        int status = -1;

        if (waitpid(pids[p], &status, 0) != pids[p] || status != 0)
            atomic_fetch_add(w.failures, 1);
    }
    failures = atomic_load(w.failures);
    munmap(w.base, w.layout.total + 4096);
    return failures;
}

#endif
