/*
 * The TCP wire side by side with what could be had: a plain loop over two
 * sockets, and MPI over TCP, in one run (turns.h).
 *
 *   mpirun -np 2 --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo \
 *     build/bench/tcp_compare --wire tcp --ifname lo -b 8 -e 64M [-n repetitions]
 *
 *   ping_pong   one way: half of there and back. Ours are two broadcasts, one from
 *               each rank; MPI's are MPI_Send and MPI_Recv
 *   sendrecv    both ranks send a message and receive one at the same time
 *   all_reduce  float sum; the sockets move as many bytes, and do not add
 *
 * The loop over sockets (plain.h) goes over the same interface as the wire and is
 * a bound of what the wire can reach. Both use buffers in the ranks' arenas, MPI
 * has its own from the heap.
 */
#include <stdio.h>
#include <string.h>

#include "common/network.h"
#include "plain.h"
#include "turns.h"

enum { PING_PONG = CM_NCOLLS /* a row of the table that is no collective */ };

static const int rows[] = {PING_PONG, CM_SENDRECV, CM_ALL_REDUCE};
static const size_t sizes[] = {8, 512, 4096, 32768, 256 << 10, 1 << 20, 8 << 20, 64 << 20};

enum side { OURS, RAW, MPI, SIDES };

struct bench {
    struct cm_rank *r;
    struct cm_comm *comm;
    int reps;
    struct plain plain;
    float *in[SIDES], *out[SIDES];
    size_t bytes; /* of each buffer */
};

/* One line of the table. */
struct line {
    struct bench *b;
    int what; /* enum cm_coll or PING_PONG */
    size_t bytes;
    double us[MAX_SIDES];
    bool differs;
};

static const char *name_of(int what)
{
    return what == PING_PONG ? "ping_pong" : cm_colls[what].name;
}

static enum cm_status arena(const struct cm_opts *o, int n, const struct cm_room *room, void *arg,
                            size_t *out)
{
    (void)room;
    (void)arg;
    *out = turns_arena_bytes(o, n, 4);
    return CM_OK;
}

/* ---- the sides ---- */

static enum cm_status exchange(const struct bench *b, size_t send_bytes, size_t recv_bytes)
{
    return plain_exchange(&b->plain,
                          (struct plain_stream){.at = (char *)b->in[RAW], .left = send_bytes},
                          (struct plain_stream){.at = (char *)b->out[RAW], .left = recv_bytes});
}

static enum cm_status run_raw(const struct bench *b, const struct line *l)
{
    enum cm_status st;

    if (l->what != PING_PONG)
        return exchange(b, l->bytes, l->bytes);
    st = b->r->rank == 0 ? exchange(b, l->bytes, 0) : exchange(b, 0, l->bytes);
    if (st != CM_OK)
        return st;
    return b->r->rank == 0 ? exchange(b, 0, l->bytes) : exchange(b, l->bytes, 0);
}

/* A broadcast has one buffer, as a message has at each end. */
static enum cm_status broadcast(struct bench *b, const struct line *l, int root)
{
    float *at = b->r->rank == root ? b->in[OURS] : b->out[OURS];
    const struct cm_op_args op = {.coll = CM_BROADCAST,
                                  .dtype = CM_FLOAT,
                                  .root = root,
                                  .count = l->bytes / sizeof(float),
                                  .in = at,
                                  .out = at,
                                  .in_place = true};

    return cm_comm_run(b->comm, &op);
}

static struct cm_op_args our_op(const struct line *l)
{
    return (struct cm_op_args){.coll = (enum cm_coll)l->what,
                               .dtype = CM_FLOAT,
                               .op = CM_SUM,
                               .count = l->bytes / sizeof(float),
                               .in = l->b->in[OURS],
                               .out = l->b->out[OURS]};
}

static enum cm_status run_ours(struct bench *b, const struct line *l)
{
    struct cm_op_args op;
    enum cm_status st;

    if (l->what == PING_PONG) {
        st = broadcast(b, l, 0);
        return st == CM_OK ? broadcast(b, l, 1) : st;
    }
    op = our_op(l);
    return cm_comm_run(b->comm, &op);
}

static int ping_pong_mpi(const struct bench *b, int bytes)
{
    bool first = b->r->rank == 0;
    int err = first ? MPI_Send(b->in[MPI], bytes, MPI_BYTE, b->plain.peer, 0, MPI_COMM_WORLD)
                    : MPI_Recv(b->out[MPI], bytes, MPI_BYTE, b->plain.peer, 0, MPI_COMM_WORLD,
                               MPI_STATUS_IGNORE);

    if (err != MPI_SUCCESS)
        return err;
    return first ? MPI_Recv(b->out[MPI], bytes, MPI_BYTE, b->plain.peer, 0, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE)
                 : MPI_Send(b->in[MPI], bytes, MPI_BYTE, b->plain.peer, 0, MPI_COMM_WORLD);
}

static enum cm_status run_mpi(const struct bench *b, const struct line *l)
{
    int bytes = (int)l->bytes, err;

    if (l->what == PING_PONG)
        err = ping_pong_mpi(b, bytes);
    else if (l->what == CM_SENDRECV)
        err = MPI_Sendrecv(b->in[MPI], bytes, MPI_BYTE, b->plain.peer, 0, b->out[MPI], bytes,
                           MPI_BYTE, b->plain.peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        err = MPI_Allreduce(b->in[MPI], b->out[MPI], bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM,
                            MPI_COMM_WORLD);
    return err == MPI_SUCCESS
               ? CM_OK
               : CM_FAIL(CM_ESYS, "MPI refused %s of %zu bytes", name_of(l->what), l->bytes);
}

static enum cm_status run_side(void *line, int side, int times)
{
    const struct line *l = line;
    enum cm_status st = CM_OK;

    for (int i = 0; i < times && st == CM_OK; i++)
        st = side == OURS ? run_ours(l->b, l) : side == RAW ? run_raw(l->b, l) : run_mpi(l->b, l);
    return st;
}

/* ---- a line of the table ---- */

/* Whole numbers whose sums are exact, so that all sides must give the same bits. */
static void fill(const struct bench *b, size_t elems)
{
    for (size_t i = 0; i < elems; i++) {
        float v = (float)((size_t)b->r->rank * 1000 + i % 997);

        for (int s = 0; s < SIDES; s++) {
            b->in[s][i] = v;
            b->out[s][i] = -1.0f;
        }
    }
}

static enum cm_status compare(struct line *l)
{
    struct bench *b = l->b;
    bool differs;
    enum cm_status st;

    fill(b, l->bytes / sizeof(float));
    st = cm_team_barrier(&b->r->team);
    for (int s = 0; s < SIDES && st == CM_OK; s++)
        st = run_side(l, s, 1);
    if (st != CM_OK)
        return st;
    differs = memcmp(b->out[OURS], b->out[MPI], l->bytes) != 0;
    differs |= l->what != CM_ALL_REDUCE && memcmp(b->out[RAW], b->out[MPI], l->bytes) != 0;
    return cm_team_or(&b->r->team, differs, &l->differs);
}

static enum cm_status measure(struct line *l)
{
    const struct turns t = {.r = l->b->r,
                            .sides = SIDES,
                            .reps = l->b->reps,
                            .batch = turns_batch_of(l->bytes),
                            .run = run_side,
                            .arg = l};
    enum cm_status st = turns_measure(&t, l->us);

    for (int s = 0; s < SIDES && l->what == PING_PONG; s++)
        l->us[s] /= 2; /* there and back */
    return st;
}

static enum cm_status print_line(const struct line *l)
{
    struct cm_op_args op = our_op(l);
    struct cm_choice choice;
    enum cm_status st;

    op.coll = l->what == PING_PONG ? CM_BROADCAST : op.coll;
    op.in_place = l->what == PING_PONG;
    st = cm_comm_choice(l->b->comm, &op, &choice);
    if (st != CM_OK || l->b->r->rank != 0)
        return st;
    printf("%-14s %10zu %12.3f %12.3f %12.3f %8.2f %8.2f  %-6s %s/%zu\n", name_of(l->what),
           l->bytes, l->us[OURS], l->us[RAW], l->us[MPI], l->us[RAW] / l->us[OURS],
           l->us[MPI] / l->us[OURS], l->differs ? "WRONG" : "ok", choice.algo, choice.chunk);
    fflush(stdout);
    return CM_OK;
}

/* All sizes of one row. A wrong result ends it: its time would mean nothing. */
static enum cm_status compare_row(struct bench *b, int what)
{
    enum cm_status st = CM_OK;

    for (size_t i = 0; i < CM_LEN(sizes) && st == CM_OK; i++) {
        struct line l = {.b = b, .what = what, .bytes = sizes[i]};

        if (sizes[i] < b->r->opts->sweep.min_bytes || sizes[i] > b->r->opts->sweep.max_bytes)
            continue;
        st = compare(&l);
        if (st == CM_OK && !l.differs)
            st = measure(&l);
        if (st == CM_OK)
            st = print_line(&l);
        if (st == CM_OK && l.differs)
            st = CM_EDATA;
    }
    return st;
}

/* ---- begin and end ---- */

static enum cm_status check(const struct cm_rank *r)
{
    if (r->n != 2 || r->network == NULL || strcmp(r->network->mine.wire, "tcp") != 0)
        return CM_FAIL(CM_EINVAL, "start it with mpirun -np 2, and with --wire tcp");
    return turns_check_mpi(r);
}

static enum cm_status open_bench(struct cm_rank *r, struct bench *b)
{
    char *at = (char *)r->base + cm_arena_at(r->layout, r->rank);

    b->bytes = turns_buffer_bytes(r->opts);
    for (int s = OURS; s <= RAW; s++) {
        b->in[s] = (void *)(at + (size_t)(2 * s) * b->bytes);
        b->out[s] = (void *)(at + (size_t)(2 * s + 1) * b->bytes);
    }
    b->in[MPI] = aligned_alloc(PAGE, b->bytes);
    b->out[MPI] = aligned_alloc(PAGE, b->bytes);
    if (b->in[MPI] == NULL || b->out[MPI] == NULL)
        return CM_FAIL(CM_ENOMEM, "buffers for MPI: 2 x %zu bytes", b->bytes);
    return turns_open_comm(r, 4, &b->comm);
}

static void close_bench(struct bench *b)
{
    plain_close(&b->plain);
    cm_comm_close(b->comm);
    free(b->in[MPI]);
    free(b->out[MPI]);
}

static const char *env_or(const char *name, const char *otherwise)
{
    const char *v = getenv(name);

    return v != NULL ? v : otherwise;
}

static void print_header(const struct bench *b)
{
    const struct cm_network_way *w = &b->r->network->mine;

    printf("# mpi: %s; threads %s; btl %s over %s\n", b->r->library, turns_thread_level(),
           env_or("OMPI_MCA_btl", "of its choice"),
           env_or("OMPI_MCA_btl_tcp_if_include", "all interfaces"));
    printf("# cpu: %s\n# wire: tcp, %s, progress %s, sockets %d\n", b->r->infos[0].cpu,
           w->interface, b->r->network->progress, b->r->network->lanes);
    printf("# ranks: %d%s, medians of %d batches in turns, hot buffers\n", b->r->n,
           b->r->oversubscribed ? " (more than cores)" : "", b->reps);
    printf("%-14s %10s %12s %12s %12s %8s %8s  %-6s %s\n", "# row", "bytes", "collmark us",
           "sockets us", "mpi us", "sockets", "mpi", "same", "plan");
    fflush(stdout);
}

static enum cm_status body(struct cm_rank *r, void *arg)
{
    struct bench b = {.r = r, .reps = turns_reps(r->opts), .plain = {!r->rank, -1, -1}};
    enum cm_status st = check(r);

    (void)arg;
    if (st == CM_OK)
        st = open_bench(r, &b);
    if (st == CM_OK)
        st = plain_open(&b.plain, r);
    if (st == CM_OK && r->rank == 0)
        print_header(&b);
    for (size_t i = 0; i < CM_LEN(rows) && st == CM_OK; i++)
        st = compare_row(&b, rows[i]);
    close_bench(&b);
    return st;
}

int main(int argc, char **argv)
{
    static const struct cm_bench about = {.coll = CM_ALL_REDUCE,
                                          .what = "the TCP wire, plain sockets and MPI over TCP"};

    return turns_main(argc, argv, &about,
                      1u << CM_BROADCAST | 1u << CM_SENDRECV | 1u << CM_ALL_REDUCE, arena, body);
}
