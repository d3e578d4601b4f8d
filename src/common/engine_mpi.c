/*
 * The collectives of the MPI library that started the job, as an engine: the
 * blocking calls of MPI-3 on the harness's buffers.
 *
 * A rank's thread calls MPI, not the main thread, so the library must allow
 * MPI_THREAD_SERIALIZED; and a process has one rank, as MPI counts processes.
 * The launcher calls MPI before the ranks start and after they ended only.
 *
 * Arguments are translated once per trial (bind); a timed operation is a
 * pointer call and the call of MPI. Differences that matter:
 *   - broadcast has one buffer in MPI, so only the in-place form is its own;
 *   - MPI's in-place reduce_scatter leaves the result at the start of the
 *     buffer, not in the rank's block, so only the other form is;
 *   - where nothing is computed, a type stands for its width;
 *   - MPI leaves open what becomes of integers that overflow. Our data do, and must
 *     wrap; vector code of Open MPI 4.1 and 5.0 saturates small ones instead.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine.h"
#include "common/measure.h"
#include "common/watchdog.h"

enum { WRAP_BYTES = 256 };

/* What a bound operation calls. */
struct mpi_state;
typedef int mpi_call(struct mpi_state *s);

struct mpi_state {
    struct cm_meter *m;
    struct cm_guard guard;
    MPI_Comm comm;
    int rank, n;
    mpi_call *call;
    /* of the bound operation */
    const void *in;
    void *out;
    int count, root;
    MPI_Datatype type;
    MPI_Op op;
    int *send, *send_at, *recv, *recv_at; /* alltoallv: n each, in elements */
};

/* ---- the calls ---- */

static int all_reduce(struct mpi_state *s)
{
    return MPI_Allreduce(s->in, s->out, s->count, s->type, s->op, s->comm);
}

static int all_gather(struct mpi_state *s)
{
    return MPI_Allgather(s->in, s->count, s->type, s->out, s->count, s->type, s->comm);
}

static int reduce_scatter(struct mpi_state *s)
{
    return MPI_Reduce_scatter_block(s->in, s->out, s->count, s->type, s->op, s->comm);
}

static int broadcast(struct mpi_state *s)
{
    return MPI_Bcast(s->out, s->count, s->type, s->root, s->comm);
}

static int reduce(struct mpi_state *s)
{
    return MPI_Reduce(s->in, s->out, s->count, s->type, s->op, s->root, s->comm);
}

static int alltoall(struct mpi_state *s)
{
    return MPI_Alltoall(s->in, s->count, s->type, s->out, s->count, s->type, s->comm);
}

static int alltoallv(struct mpi_state *s)
{
    return MPI_Alltoallv(s->in, s->send, s->send_at, s->type, s->out, s->recv, s->recv_at, s->type,
                         s->comm);
}

static int gather(struct mpi_state *s)
{
    return MPI_Gather(s->in, s->count, s->type, s->out, s->count, s->type, s->root, s->comm);
}

static int scatter(struct mpi_state *s)
{
    return MPI_Scatter(s->in, s->count, s->type, s->out, s->count, s->type, s->root, s->comm);
}

static int sendrecv(struct mpi_state *s)
{
    int next = (s->rank + 1) % s->n, before = (s->rank + s->n - 1) % s->n;

    return MPI_Sendrecv(s->in, s->count, s->type, next, 0, s->out, s->count, s->type, before, 0,
                        s->comm, MPI_STATUS_IGNORE);
}

/* NULL: MPI has no such collective. */
static mpi_call *const calls[CM_NCOLLS] = {
    [CM_ALL_REDUCE] = all_reduce, [CM_ALL_GATHER] = all_gather,
    [CM_BROADCAST] = broadcast,   [CM_REDUCE_SCATTER] = reduce_scatter,
    [CM_REDUCE] = reduce,         [CM_ALLTOALL] = alltoall,
    [CM_ALLTOALLV] = alltoallv,   [CM_GATHER] = gather,
    [CM_SCATTER] = scatter,       [CM_SENDRECV] = sendrecv,
};

/* ---- types and operations ---- */

/* MPI_DATATYPE_NULL: MPI cannot compute with it. */
static MPI_Datatype type_of(enum cm_dtype t)
{
    switch (t) {
    case CM_INT8:
        return MPI_INT8_T;
    case CM_UINT8:
        return MPI_UINT8_T;
    case CM_INT32:
        return MPI_INT32_T;
    case CM_UINT32:
        return MPI_UINT32_T;
    case CM_INT64:
        return MPI_INT64_T;
    case CM_UINT64:
        return MPI_UINT64_T;
    case CM_FLOAT:
        return MPI_FLOAT;
    case CM_DOUBLE:
        return MPI_DOUBLE;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static MPI_Datatype width_of(enum cm_dtype t)
{
    switch (cm_dtypes[t].bytes) {
    case 1:
        return MPI_UINT8_T;
    case 2:
        return MPI_UINT16_T;
    case 4:
        return MPI_UINT32_T;
    default:
        return MPI_UINT64_T;
    }
}

/* MPI_OP_NULL: MPI has no such operation. */
static MPI_Op op_of(enum cm_op op)
{
    switch (op) {
    case CM_SUM:
        return MPI_SUM;
    case CM_PROD:
        return MPI_PROD;
    case CM_MAX:
        return MPI_MAX;
    case CM_MIN:
        return MPI_MIN;
    default:
        return MPI_OP_NULL;
    }
}

/*
 * Does the library wrap sums and products that overflow? Enough of them for its vector code;
 * bytes of 0x9b overflow with a sign and without, and the low bits are the same in both.
 */
static bool wraps(enum cm_dtype dtype, enum cm_op op)
{
    size_t width = cm_dtypes[dtype].bytes;
    uint64_t a = UINT64_C(0x9b9b9b9b9b9b9b9b), result = op == CM_SUM ? a + a : a * a;
    unsigned char in[WRAP_BYTES], out[WRAP_BYTES];

    if (cm_dtypes[dtype].kind == CM_KIND_FLOAT || (op != CM_SUM && op != CM_PROD))
        return true;
    memset(in, 0x9b, sizeof(in));
    memset(out, 0x9b, sizeof(out));
    if (MPI_Reduce_local(in, out, (int)(sizeof(in) / width), type_of(dtype), op_of(op)) !=
        MPI_SUCCESS)
        return false;
    for (size_t at = 0; at < sizeof(out); at += width) {
        if (memcmp(out + at, &result, width) != 0) /* little endian */
            return false;
    }
    return true;
}

/* Do all counts and places fit into an int, as MPI-3 has them? */
static bool fits(const struct cm_op_args *op, int n)
{
    if (op->count > INT_MAX)
        return false;
    if (op->coll != CM_ALLTOALLV || op->matrix == NULL)
        return true;
    for (int r = 0; r < n; r++) {
        size_t sent = 0, received = 0;

        for (int k = 0; k < n; k++) {
            sent += op->matrix[r * n + k];
            received += op->matrix[k * n + r];
        }
        if (sent > INT_MAX || received > INT_MAX)
            return false;
    }
    return true;
}

static const char *mpi_refuses(const struct cm_op_args *op, int n)
{
    bool reduces = cm_colls[op->coll].reduces;

    if (calls[op->coll] == NULL)
        return "MPI has no such collective";
    if (reduces && op_of(op->op) == MPI_OP_NULL)
        return "MPI has no such reduction operation";
    if (reduces && type_of(op->dtype) == MPI_DATATYPE_NULL)
        return "MPI does not compute with this type";
    if (reduces && !wraps(op->dtype, op->op))
        return "this MPI does not wrap integers of this type that overflow";
    if (op->coll == CM_BROADCAST && !op->in_place)
        return "MPI_Bcast has one buffer: it is in place";
    if (op->coll == CM_REDUCE_SCATTER && op->in_place)
        return "MPI's in-place form leaves the result elsewhere";
    return fits(op, n) ? NULL : "MPI counts elements with an int";
}

/* ---- open, bind, run ---- */

/* Open MPI and MPICH say by this function whether they take device memory; it may be absent. */
static bool takes_gpu_memory(void)
{
    int (*query)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");

    return query != NULL && query() == 1;
}

static bool mpi_serves(const struct cm_engine_job *job, char *why)
{
    int level = MPI_THREAD_SINGLE;

    why[0] = '\0';
    if (!job->mpi)
        snprintf(why, CM_ENGINE_WHY,
                 "MPI did not start this job; use mpirun, one rank per process");
    else if (job->ranks != job->procs)
        snprintf(why, CM_ENGINE_WHY,
                 "MPI counts processes, and here %d ranks share %d of them; "
                 "use -t 1 -g 1 and more processes",
                 job->ranks, job->procs);
    else if (job->gpus && !takes_gpu_memory())
        snprintf(why, CM_ENGINE_WHY,
                 "this MPI library does not say that it takes memory of GPUs "
                 "(MPIX_Query_cuda_support)");
    else if (MPI_Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_SERIALIZED)
        snprintf(why, CM_ENGINE_WHY, "this MPI library allows calls by the main thread only");
    return why[0] == '\0';
}

static enum cm_status check(int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = 0;

    if (code == MPI_SUCCESS)
        return CM_OK;
    MPI_Error_string(code, text, &len);
    return CM_FAIL(CM_ESYS, "MPI: %s", text);
}

static void mpi_close(void *state, bool orderly)
{
    struct mpi_state *s = state;

    if (s == NULL)
        return;
    if (orderly && s->comm != MPI_COMM_NULL) {
        cm_guard_step(&s->guard);
        MPI_Comm_free(&s->comm);
        cm_guard_step(&s->guard);
    }
    cm_watchdog_unguard(s->m->rank->watchdog, &s->guard);
    free(s->send);
    free(s);
}

static enum cm_status mpi_open(struct cm_meter *m, void **state)
{
    const struct cm_rank *r = m->rank;
    struct mpi_state *s = calloc(1, sizeof(*s));
    enum cm_status st;

    if (s != NULL)
        s->send = calloc(4 * (size_t)r->group_n, sizeof(*s->send));
    if (s == NULL || s->send == NULL) {
        free(s);
        return CM_FAIL(CM_ENOMEM, "MPI as an engine of %d ranks", r->group_n);
    }
    s->m = m;
    s->n = r->group_n;
    s->rank = r->group_rank;
    s->send_at = s->send + s->n;
    s->recv = s->send_at + s->n;
    s->recv_at = s->recv + s->n;
    s->comm = MPI_COMM_NULL;
    s->guard.waiter = &m->rank->waiter;
    cm_watchdog_guard(r->watchdog, &s->guard);
    *state = s;
    cm_guard_step(&s->guard);
    st = check(MPI_Comm_split(MPI_COMM_WORLD, r->group, r->group_rank, &s->comm));
    if (st == CM_OK)
        st = check(MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN));
    cm_guard_step(&s->guard);
    return st;
}

static void bind_counts(struct mpi_state *s, const struct cm_op_args *op)
{
    const size_t *from_me = op->matrix + (size_t)s->rank * (size_t)s->n;
    int sent = 0, received = 0;

    for (int k = 0; k < s->n; k++) {
        s->send[k] = (int)from_me[k];
        s->recv[k] = (int)op->matrix[(size_t)k * (size_t)s->n + (size_t)s->rank];
        s->send_at[k] = sent;
        s->recv_at[k] = received;
        sent += s->send[k];
        received += s->recv[k];
    }
}

/* In place MPI takes a word instead of the buffer that the other one holds already. */
static void bind_in_place(struct mpi_state *s, enum cm_coll coll)
{
    bool root = s->rank == s->root;

    if (coll == CM_ALL_REDUCE || coll == CM_ALL_GATHER ||
        ((coll == CM_REDUCE || coll == CM_GATHER) && root))
        s->in = MPI_IN_PLACE;
    else if (coll == CM_SCATTER && root)
        s->out = MPI_IN_PLACE;
    else if (coll == CM_REDUCE)
        s->out = NULL; /* means nothing there, and must not be the same buffer */
}

static enum cm_status mpi_bind(void *state, const struct cm_op_args *op)
{
    struct mpi_state *s = state;
    bool reduces = cm_colls[op->coll].reduces;

    s->call = calls[op->coll];
    s->in = op->in;
    s->out = op->out;
    s->count = (int)op->count;
    s->root = op->root;
    s->type = reduces ? type_of(op->dtype) : width_of(op->dtype);
    s->op = op_of(op->op);
    if (op->in_place)
        bind_in_place(s, op->coll);
    if (op->coll == CM_ALLTOALLV)
        bind_counts(s, op);
    return CM_OK;
}

/* What was enqueued on a GPU must be done: MPI knows nothing of its stream. */
static enum cm_status mpi_run(void *state)
{
    struct mpi_state *s = state;
    enum cm_status st = s->m->gpu != NULL ? s->m->ops->sync(s->m) : CM_OK;
    int code;

    if (st != CM_OK)
        return st;
    cm_guard_step(&s->guard);
    code = s->call(s);
    cm_guard_step(&s->guard);
    return code == MPI_SUCCESS ? CM_OK : check(code);
}

const struct cm_engine cm_engine_mpi = {
    .serves = mpi_serves,
    .refuses = mpi_refuses,
    .open = mpi_open,
    .close = mpi_close,
    .bind = mpi_bind,
    .run = mpi_run,
};
