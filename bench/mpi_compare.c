/*
 * Side by side with the MPI library of this job: the same collective, type,
 * size and ranks, one after the other in one run (turns.h).
 *
 *   mpirun -np 2 build/bench/mpi_compare -b 8 -e 64M [-n repetitions]
 *
 * A probe of the line transfer between rank 0 and 1 before and after tells
 * whether their cores shared a cache. Both sides use hot buffers of their own,
 * and must agree on every byte of the result before anything is timed.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "turns.h"

enum { PROBE_ROUNDS = 2000, PROBE_BATCHES = 9 };

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
    struct bench *b;
    enum cm_coll coll;
    size_t bytes, block; /* size column; elements of a block */
    double us[MAX_SIDES];
    bool differs;
};

static enum cm_status arena(const struct cm_opts *o, int n, const struct cm_room *room, void *arg,
                            size_t *out)
{
    (void)room;
    (void)arg;
    *out = turns_arena_bytes(o, n, 2);
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

static enum cm_status run_side(void *line, int side, int times)
{
    const struct line *l = line;
    const struct bench *b = l->b;
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
        st = run_side(l, s, 1);
    if (st != CM_OK)
        return st;
    return cm_team_or(&b->r->team, memcmp(b->out[OURS], b->out[MPI], result * sizeof(float)) != 0,
                      &l->differs);
}

static enum cm_status measure(struct line *l)
{
    const struct turns t = {.r = l->b->r,
                            .sides = SIDES,
                            .reps = l->b->reps,
                            .batch = turns_batch_of(l->bytes),
                            .run = run_side,
                            .arg = l};

    return turns_measure(&t, l->us);
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

/* All sizes of one collective. A wrong result ends it: its time would mean nothing. */
static enum cm_status compare_coll(struct bench *b, enum cm_coll coll)
{
    bool per_rank = cm_colls[coll].in_per_rank || cm_colls[coll].out_per_rank;
    size_t blocks = per_rank ? (size_t)b->r->n : 1;
    enum cm_status st = CM_OK;

    for (size_t i = 0; i < CM_LEN(sizes) && st == CM_OK; i++) {
        struct line l = {.b = b, .coll = coll};

        l.block = sizes[i] / sizeof(float) / blocks;
        l.bytes = l.block * blocks * sizeof(float);
        if (l.block == 0 || sizes[i] < b->r->opts->sweep.min_bytes ||
            sizes[i] > b->r->opts->sweep.max_bytes)
            continue;
        st = compare(b, &l);
        if (st == CM_OK && !l.differs)
            st = measure(&l);
        if (st == CM_OK)
            st = print_line(b, &l);
        if (st == CM_OK && l.differs)
            st = CM_EDATA;
    }
    return st;
}

/* Ranks 0 and 1 write a flag each and wait for the other's: ns of one exchange, a median. Ranks
   that share no memory have no line to exchange: 0. */
static enum cm_status probe(struct bench *b, double *ns)
{
    struct cm_rank *r = b->r;
    _Atomic uint64_t *mine = (void *)((char *)r->base + cm_arena_at(r->layout, r->rank)), *peer;
    double batches[PROBE_BATCHES];
    uint64_t k = 0;
    enum cm_status st;

    *ns = 0;
    if (r->network != NULL)
        return cm_team_barrier(&r->team);
    peer = (void *)((char *)r->base + cm_arena_at(r->layout, !r->rank));
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

static void print_header(const struct bench *b, double probe_ns)
{
    printf("# mpi: %s; threads %s\n# cpu: %s\n# kernels: %s\n", b->r->library, turns_thread_level(),
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
    size_t at = cm_arena_at(r->layout, r->rank);

    b->bytes = turns_buffer_bytes(r->opts);
    b->in[OURS] = (void *)((char *)r->base + at);
    b->out[OURS] = (void *)((char *)r->base + at + b->bytes);
    b->in[MPI] = aligned_alloc(PAGE, b->bytes);
    b->out[MPI] = aligned_alloc(PAGE, b->bytes);
    if (b->in[MPI] == NULL || b->out[MPI] == NULL)
        return CM_FAIL(CM_ENOMEM, "buffers for MPI: 2 x %zu bytes", b->bytes);
    return turns_open_comm(r, 2, &b->comm);
}

static void close_bench(struct bench *b)
{
    cm_comm_close(b->comm);
    free(b->in[MPI]);
    free(b->out[MPI]);
}

static enum cm_status body(struct cm_rank *r, void *arg)
{
    struct bench b = {.r = r, .reps = turns_reps(r->opts)};
    double ns;
    enum cm_status st = turns_check_mpi(r);

    (void)arg;
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
    uint32_t colls = 0;

    for (size_t i = 0; i < CM_LEN(compared); i++)
        colls |= 1u << compared[i];
    return turns_main(argc, argv, &about, colls, arena, body);
}
