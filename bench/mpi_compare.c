/*
 * Side by side with the MPI library of this job: the same collective, type,
 * size and ranks, one after the other in one run.
 *
 *   mpirun -np 2 build/bench/mpi_compare -b 8 -e 64M [-n repetitions]
 *
 * Machines change under a benchmark: virtual cores move, neighbours come and
 * go. So the two take turns batch by batch, the one that starts changes each
 * time, and only medians over the batches are compared. A probe of the line
 * transfer between rank 0 and 1 before and after tells whether their cores
 * shared a cache. Both sides use hot buffers of their own, and must agree on
 * every byte of the result before anything is timed.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "common/coll.h"
#include "common/launch.h"
#include "common/stats.h"
#include "engine/comm.h"
#include "kernels/kernels.h"

enum {
    MAX_REPS = 101,
    PROBE_ROUNDS = 2000,
    PROBE_BATCHES = 9,
    BATCH_BYTES = 32 << 20, /* a batch moves about this much ... */
    MAX_BATCH = 2000,       /* ... but no more operations than this, */
    MIN_BATCH = 2,          /*   and no fewer than this */
    PAGE = 4096
};

static const enum cm_coll compared[] = {CM_ALL_REDUCE, CM_ALL_GATHER, CM_REDUCE_SCATTER,
                                        CM_BROADCAST, CM_ALLTOALL};
static const size_t sizes[] = {8, 512, 2048, 8192, 65536, 512 << 10, 1 << 20, 8 << 20, 64 << 20};

enum side { OURS, MPI, SIDES };

/* Everything one rank needs for its half of the comparison. */
struct bench {
    struct cm_rank *r;
    struct cm_comm *comm;
    int reps;
    float *in[SIDES], *out[SIDES]; /* OURS lie in the arena, MPI's are from the heap */
    size_t bytes;                  /* of each buffer */
};

/* One line of the table: a collective at one size. */
struct line {
    enum cm_coll coll;
    size_t bytes, block; /* size column; elements of a block */
    int batch;           /* operations of a batch */
    double us[SIDES];
    bool differs;
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

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static size_t buffer_bytes(const struct cm_opts *o)
{
    return round_up(o->sweep.max_bytes, PAGE);
}

static enum cm_status arena(const struct cm_opts *o, int n, void *arg, size_t *out)
{
    (void)arg;
    *out = 2 * buffer_bytes(o) + round_up(cm_comm_scratch_bytes(o->sweep.max_bytes, n), PAGE);
    return CM_OK;
}

static int run_mpi(enum cm_coll coll, const void *in, void *out, int block)
{
    switch (coll) {
    case CM_ALL_REDUCE:
        return MPI_Allreduce(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case CM_ALL_GATHER:
        return MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
    case CM_REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case CM_BROADCAST:
        return MPI_Bcast(out, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
    case CM_ALLTOALL:
        return MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
    default:
        return MPI_ERR_OP;
    }
}

/* MPI_Bcast has one buffer, so our broadcast runs in place too. */
static struct cm_op_args our_op(const struct bench *b, const struct line *l)
{
    bool in_place = l->coll == CM_BROADCAST;

    return (struct cm_op_args){.coll = l->coll,
                               .dtype = CM_FLOAT,
                               .op = CM_SUM,
                               .count = l->block,
                               .in = in_place ? b->out[OURS] : b->in[OURS],
                               .out = b->out[OURS],
                               .in_place = in_place};
}

static enum cm_status run_side(struct bench *b, const struct line *l, enum side side, int times)
{
    struct cm_op_args op = our_op(b, l);
    enum cm_status st = CM_OK;

    for (int i = 0; i < times && st == CM_OK; i++) {
        if (side == OURS)
            st = cm_comm_run(b->comm, &op);
        else if (run_mpi(l->coll, b->in[MPI], b->out[MPI], (int)l->block) != MPI_SUCCESS)
            st = CM_FAIL(CM_ESYS, "MPI refused %s of %zu bytes", cm_colls[l->coll].name, l->bytes);
    }
    return st;
}

/* Small whole numbers: their sums are exact in any order, so both sides must give the same bits. */
static void fill(const struct bench *b, size_t elems)
{
    for (size_t i = 0; i < elems; i++) {
        float v = (float)((size_t)b->r->rank * 1000 + i % 997);

        for (int s = 0; s < SIDES; s++) {
            b->in[s][i] = v;
            b->out[s][i] = b->r->rank == 0 ? v : -1.0f;
        }
    }
}

static enum cm_status compare(struct bench *b, struct line *l)
{
    size_t elems = l->bytes / sizeof(float);
    size_t result = l->coll == CM_REDUCE_SCATTER ? l->block : elems;
    enum cm_status st;

    fill(b, elems);
    st = cm_team_barrier(&b->r->team);
    for (int s = 0; s < SIDES && st == CM_OK; s++)
        st = run_side(b, l, (enum side)s, 1);
    if (st != CM_OK)
        return st;
    return cm_team_or(&b->r->team, memcmp(b->out[OURS], b->out[MPI], result * sizeof(float)) != 0,
                      &l->differs);
}

/* One batch: from a barrier on, mean time of an operation, of the slowest rank. */
static enum cm_status batch(struct bench *b, const struct line *l, enum side side, double *us)
{
    double mine, all[CM_TEAM_BYTES / sizeof(double)];
    int warm = l->batch / 20 + 1;
    int64_t start;
    enum cm_status st = run_side(b, l, side, warm);

    if (st == CM_OK)
        st = cm_team_barrier(&b->r->team);
    if (st != CM_OK)
        return st;
    start = cm_now_ns();
    st = run_side(b, l, side, l->batch);
    mine = (double)(cm_now_ns() - start) / l->batch / CM_NS_PER_US;
    if (st == CM_OK)
        st = cm_team_gather(&b->r->team, &mine, sizeof(mine), all);
    if (st != CM_OK)
        return st;
    *us = 0;
    for (int i = 0; i < b->r->n; i++)
        *us = all[i] > *us ? all[i] : *us;
    return CM_OK;
}

static enum cm_status measure(struct bench *b, struct line *l)
{
    double us[SIDES][MAX_REPS];
    enum cm_status st = CM_OK;

    for (int rep = 0; rep < b->reps; rep++) {
        for (int turn = 0; turn < SIDES && st == CM_OK; turn++) {
            enum side side = (enum side)((rep + turn) % SIDES);

            st = batch(b, l, side, &us[side][rep]);
        }
    }
    if (st != CM_OK)
        return st;
    for (int s = 0; s < SIDES; s++)
        l->us[s] = cm_stats_of(us[s], (size_t)b->reps).p50;
    return CM_OK;
}

static enum cm_status print_line(const struct bench *b, const struct line *l)
{
    struct cm_op_args op = our_op(b, l);
    struct cm_choice choice;
    enum cm_status st = cm_comm_choice(b->comm, &op, &choice);

    if (st != CM_OK || b->r->rank != 0)
        return st;
    printf("%-14s %10zu %12.3f %12.3f %8.2f  %-6s %s/%s\n", cm_colls[l->coll].name, l->bytes,
           l->us[OURS], l->us[MPI], l->us[MPI] / l->us[OURS], l->differs ? "WRONG" : "ok",
           choice.algo, choice.mode == CM_MODE_DIRECT ? "direct" : "copy");
    fflush(stdout);
    return CM_OK;
}

static int batch_of(size_t bytes)
{
    size_t n = BATCH_BYTES / bytes;

    return n > MAX_BATCH ? MAX_BATCH : n < MIN_BATCH ? MIN_BATCH : (int)n;
}

/* All sizes of one collective. A wrong result ends it: its time would mean nothing. */
static enum cm_status compare_coll(struct bench *b, enum cm_coll coll)
{
    bool per_rank = cm_colls[coll].in_per_rank || cm_colls[coll].out_per_rank;
    size_t blocks = per_rank ? (size_t)b->r->n : 1;
    enum cm_status st = CM_OK;

    for (size_t i = 0; i < CM_LEN(sizes) && st == CM_OK; i++) {
        struct line l = {.coll = coll, .batch = batch_of(sizes[i])};

        l.block = sizes[i] / sizeof(float) / blocks;
        l.bytes = l.block * blocks * sizeof(float);
        if (l.block == 0 || sizes[i] < b->r->opts->sweep.min_bytes ||
            sizes[i] > b->r->opts->sweep.max_bytes)
            continue;
        st = compare(b, &l);
        if (st == CM_OK && !l.differs)
            st = measure(b, &l);
        if (st == CM_OK)
            st = print_line(b, &l);
        if (st == CM_OK && l.differs)
            st = CM_EDATA;
    }
    return st;
}

/* Ranks 0 and 1 write a flag each and wait for the other's: ns of one exchange, a median. */
static enum cm_status probe(struct bench *b, double *ns)
{
    struct cm_rank *r = b->r;
    _Atomic uint64_t *mine = (void *)((char *)r->base + cm_arena_at(r->layout, r->rank));
    _Atomic uint64_t *peer = (void *)((char *)r->base + cm_arena_at(r->layout, !r->rank));
    double batches[PROBE_BATCHES];
    uint64_t k = 0;
    enum cm_status st;

    atomic_store_explicit(mine, 0, memory_order_release);
    st = cm_team_barrier(&r->team);
    for (int i = 0; i < PROBE_BATCHES && st == CM_OK && r->rank < 2; i++) {
        int64_t start = cm_now_ns();

        for (uint64_t end = k + PROBE_ROUNDS; k < end && st == CM_OK;) {
            struct cm_spin s = cm_spin_start();

            atomic_store_explicit(mine, ++k, memory_order_release);
            while (st == CM_OK && atomic_load_explicit(peer, memory_order_acquire) < k)
                st = cm_spin(&s, &r->waiter, !r->rank);
        }
        batches[i] = (double)(cm_now_ns() - start) / PROBE_ROUNDS;
    }
    if (st != CM_OK)
        return st;
    *ns = r->rank < 2 ? cm_stats_of(batches, PROBE_BATCHES).p50 : 0;
    return cm_team_barrier(&r->team);
}

static const char *thread_level(void)
{
    int provided;

    MPI_Query_thread(&provided);
    return provided == MPI_THREAD_SINGLE       ? "single"
           : provided == MPI_THREAD_FUNNELED   ? "funneled"
           : provided == MPI_THREAD_SERIALIZED ? "serialized"
                                               : "multiple";
}

static void print_header(const struct bench *b, double probe_ns)
{
    printf("# mpi: %s; threads %s\n# cpu: %s\n# kernels: %s\n", b->r->library, thread_level(),
           b->r->infos[0].cpu, cm_kernel_isa());
    printf("# ranks: %d%s, float sum, medians of %d batches in turns, hot buffers\n", b->r->n,
           b->r->oversubscribed ? " (more than cores)" : "", b->reps);
    printf("# probe before: %.0f ns\n", probe_ns);
    printf("%-14s %10s %12s %12s %8s  %-6s %s\n", "# collective", "bytes", "collmark us", "mpi us",
           "ratio", "same", "plan");
    fflush(stdout);
}

static enum cm_status open_bench(struct cm_rank *r, struct bench *b)
{
    const struct cm_opts_engine *e = &r->opts->engine;
    size_t at = cm_arena_at(r->layout, r->rank);
    struct cm_comm_args a = {.rank = r->rank,
                             .n = r->n,
                             .world = r->group_world,
                             .base = r->base,
                             .layout = r->layout,
                             .waiter = &r->waiter};

    b->bytes = buffer_bytes(r->opts);
    a.scratch_at = at + 2 * b->bytes;
    a.scratch_bytes = cm_comm_scratch_bytes(r->opts->sweep.max_bytes, r->n);
    a.force = (struct cm_force){e->algo, e->mode, (enum cm_proto)e->proto, e->channels, e->chunk};
    b->in[OURS] = (void *)((char *)r->base + at);
    b->out[OURS] = (void *)((char *)r->base + at + b->bytes);
    b->in[MPI] = aligned_alloc(PAGE, b->bytes);
    b->out[MPI] = aligned_alloc(PAGE, b->bytes);
    if (b->in[MPI] == NULL || b->out[MPI] == NULL)
        return CM_FAIL(CM_ENOMEM, "buffers for MPI: 2 x %zu bytes", b->bytes);
    return cm_comm_open(&a, &b->comm);
}

static void close_bench(struct bench *b)
{
    cm_comm_close(b->comm);
    free(b->in[MPI]);
    free(b->out[MPI]);
}

/* MPI is called by the thread that runs the rank, one per process. */
static enum cm_status check_mpi(const struct cm_rank *r)
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

static enum cm_status body(struct cm_rank *r, void *arg)
{
    struct bench b = {.r = r, .reps = r->opts->run.iters};
    double ns;
    enum cm_status st = check_mpi(r);

    (void)arg;
    b.reps = b.reps > MAX_REPS ? MAX_REPS : b.reps;
    if (st == CM_OK)
        st = open_bench(r, &b);
    if (st == CM_OK)
        st = probe(&b, &ns);
    if (st == CM_OK && r->rank == 0)
        print_header(&b, ns);
    for (size_t i = 0; i < CM_LEN(compared) && st == CM_OK; i++)
        st = compare_coll(&b, compared[i]);
    if (st == CM_OK)
        st = probe(&b, &ns);
    if (st == CM_OK && r->rank == 0)
        printf("# probe after: %.0f ns\n", ns);
    close_bench(&b);
    return st;
}

int main(int argc, char **argv)
{
    static const struct cm_bench about = {.coll = CM_ALL_REDUCE,
                                          .what = "all_reduce and others side by side with MPI"};
    struct cm_opts o;
    enum cm_parsed what;
    enum cm_status st = cm_opts_parse(argc, argv, &about, &o, &what);
    enum cm_exit code;

    if (st != CM_OK || what == CM_PARSED_STOP)
        return (int)cm_status_exit(st);
    code = cm_launch(&argc, &argv, &o, arena, body, NULL);
    cm_opts_free(&o);
    return (int)code;
}
