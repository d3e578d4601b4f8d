/*
 * What programs share that compare several ways of doing the same, called
 * sides, in one run: ours and MPI's, or more.
 *
 * Machines change under a benchmark: virtual cores move, neighbours come and
 * go. So the sides take turns batch by batch, the one that starts changes each
 * time, and only medians over the batches are compared. A batch begins at a
 * barrier and its time is that of the slowest rank. Include it in one file of
 * a program.
 */
#ifndef CM_BENCH_TURNS_H
#define CM_BENCH_TURNS_H

#include <mpi.h>
#include <stdlib.h>

#include "base/clock.h"
#include "common/coll.h"
#include "common/launch.h"
#include "common/stats.h"
#include "engine/comm.h"

enum {
    MAX_REPS = 101,
    MAX_SIDES = 3,
    BATCH_BYTES = 32 << 20, /* a batch moves about this much ... */
    MAX_BATCH = 2000,       /* ... but no more operations than this, */
    MIN_BATCH = 2,          /*   and no fewer than this */
    PAGE = 4096
};

/* Run an operation `times` times as `side` has it; collective. */
typedef enum cm_status turns_run_fn(void *arg, int side, int times);

struct turns {
    struct cm_rank *r;
    int sides, reps; /* reps: batches of each side */
    int batch;       /* operations of a batch */
    turns_run_fn *run;
    void *arg;
};

/*
 * The launcher asks MPI for calls by the main thread only, but here the threads
 * of the ranks call it, one per process. MPI's profiling interface lets a
 * program stand before any MPI function, so this one asks for more.
 */
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int level = required < MPI_THREAD_SERIALIZED ? MPI_THREAD_SERIALIZED : required;

    return PMPI_Init_thread(argc, argv, level, provided);
}

/* MPI is called by the thread that runs the rank, one per process. */
static enum cm_status turns_check_mpi(const struct cm_rank *r)
{
    int started = 0, size = 0, provided = MPI_THREAD_SINGLE, main_thread = 0;

    MPI_Initialized(&started);
    if (started) {
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Query_thread(&provided);
        MPI_Is_thread_main(&main_thread);
    }
    if (size < 2 || size != r->n)
        return CM_FAIL(CM_EINVAL, "start it with mpirun -np 2 or more, one rank per process");
    if (!main_thread && provided < MPI_THREAD_SERIALIZED)
        return CM_FAIL(CM_EUNSUP, "this MPI allows no calls outside the main thread");
    return CM_OK;
}

static const char *turns_thread_level(void)
{
    int provided;

    MPI_Query_thread(&provided);
    return provided == MPI_THREAD_SINGLE       ? "single"
           : provided == MPI_THREAD_FUNNELED   ? "funneled"
           : provided == MPI_THREAD_SERIALIZED ? "serialized"
                                               : "multiple";
}

/* Of a buffer that holds the longest message, in whole pages. */
static size_t turns_buffer_bytes(const struct cm_opts *o)
{
    return (o->sweep.max_bytes + PAGE - 1) / PAGE * PAGE;
}

/* `buffers` such buffers, then the scratch memory of a communicator. */
static size_t turns_arena_bytes(const struct cm_opts *o, int n, int buffers)
{
    size_t scratch = cm_comm_scratch_bytes(o->sweep.max_bytes, n);

    return (size_t)buffers * turns_buffer_bytes(o) + (scratch + PAGE - 1) / PAGE * PAGE;
}

/* A communicator of all ranks whose scratch memory follows `buffers` buffers in the arena. */
static enum cm_status turns_open_comm(const struct cm_rank *r, int buffers, struct cm_comm **out)
{
    const struct cm_opts_engine *e = &r->opts->engine;
    const struct cm_comm_args a = {
        .rank = r->rank,
        .n = r->n,
        .world = r->group_world,
        .node = r->network != NULL ? r->node_of : NULL,
        .base = r->base,
        .layout = r->layout,
        .waiter = &r->waiter,
        .scratch_at = cm_arena_at(r->layout, r->rank) +
                      (size_t)buffers * turns_buffer_bytes(r->opts),
        .scratch_bytes = cm_comm_scratch_bytes(r->opts->sweep.max_bytes, r->n),
        .force = {e->algo, e->mode, (enum cm_proto)e->proto, e->channels, e->chunk}};

    return cm_comm_open(&a, out);
}

/* Batches of each side: -n, as far as there is room. */
static int turns_reps(const struct cm_opts *o)
{
    return o->run.iters < MAX_REPS ? o->run.iters : MAX_REPS;
}

/* Operations of a batch. */
static int turns_batch_of(size_t bytes)
{
    size_t n = BATCH_BYTES / bytes;

    return n > MAX_BATCH ? MAX_BATCH : n < MIN_BATCH ? MIN_BATCH : (int)n;
}

/* One batch: from a barrier on, mean time of an operation in us, of the slowest rank. */
static enum cm_status turns_batch(const struct turns *t, int side, double *us)
{
    double mine, all[CM_TEAM_BYTES / sizeof(double)];
    int64_t start;
    enum cm_status st = t->run(t->arg, side, t->batch / 20 + 1);

    if (st == CM_OK)
        st = cm_team_barrier(&t->r->team);
    if (st != CM_OK)
        return st;
    start = cm_now_ns();
    st = t->run(t->arg, side, t->batch);
    mine = (double)(cm_now_ns() - start) / t->batch / CM_NS_PER_US;
    if (st == CM_OK)
        st = cm_team_gather(&t->r->team, &mine, sizeof(mine), all);
    if (st != CM_OK)
        return st;
    *us = 0;
    for (int i = 0; i < t->r->n; i++)
        *us = all[i] > *us ? all[i] : *us;
    return CM_OK;
}

/* The sides in turns: median time of an operation of each, in us. */
static enum cm_status turns_measure(const struct turns *t, double median[MAX_SIDES])
{
    double us[MAX_SIDES][MAX_REPS];
    enum cm_status st = CM_OK;

    for (int rep = 0; rep < t->reps; rep++) {
        for (int turn = 0; turn < t->sides && st == CM_OK; turn++) {
            int side = (rep + turn) % t->sides;

            st = turns_batch(t, side, &us[side][rep]);
        }
    }
    for (int s = 0; s < t->sides && st == CM_OK; s++)
        median[s] = cm_stats_of(us[s], (size_t)t->reps).p50;
    return st;
}

/* The whole program: `colls` are the collectives it runs. Returns the exit code. */
static int turns_main(int argc, char **argv, const struct cm_bench *about, uint32_t colls,
                      cm_arena_fn *arena, cm_rank_fn *body)
{
    struct cm_opts o;
    enum cm_parsed what;
    enum cm_status st = cm_opts_parse(argc, argv, about, &o, &what);
    enum cm_exit code;

    if (st != CM_OK || what == CM_PARSED_STOP)
        return (int)cm_status_exit(st);
    o.colls |= colls;
    code = cm_launch(&argc, &argv, &o, arena, body, NULL);
    cm_opts_free(&o);
    return (int)code;
}

#endif
