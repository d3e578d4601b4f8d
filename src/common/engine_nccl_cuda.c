/*
 * NVIDIA's NCCL as an engine: a communicator per rank, operations enqueued on
 * the rank's stream. The library is loaded when it is asked for, by the name of
 * its interface, libnccl.so.2; its variables (NCCL_...) reach it untouched.
 *
 * What NCCL has no call for in all of its versions (all-to-all, gather, scatter,
 * send to the next rank) is a group of sends and receives, as in nccl-tests.
 *
 * Deadlines: calls of the host are guarded by the watchdog. A kernel that waits
 * is seen by whoever waits for the stream; then the communicator is aborted,
 * which ends its kernels. Ranks need a GPU each: NCCL's kernels wait for each
 * other, and ranks that share a device here share a stream.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/device.h"
#include "common/engine.h"
#include "common/measure.h"
#include "common/watchdog.h"

#define LIBRARY "libnccl.so.2"

enum { NCCL_UINT8 = 1, NCCL_IN_PROGRESS = 7, FP8_VERSION = 22400, FP8_CAPABILITY = 9 };

/* Passed by value. */
struct nccl_id {
    char bytes[128];
};

/* The part of NCCL's ABI that is used; nccl.h of 2.x declares the same. Streams are void *. */
struct nccl {
    int (*version)(int *v);
    const char *(*error)(int code);
    int (*new_id)(struct nccl_id *out);
    int (*init)(void **comm, int n, struct nccl_id id, int rank);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*async_error)(void *comm, int *code);
    int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *);
    int (*all_gather)(const void *, void *, size_t, int, void *, void *);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, void *, void *);
    int (*broadcast)(const void *, void *, size_t, int, int, void *, void *);
    int (*reduce)(const void *, void *, size_t, int, int, int, void *, void *);
    int (*send)(const void *, size_t, int, int, void *, void *);
    int (*recv)(void *, size_t, int, int, void *, void *);
    int (*group_start)(void);
    int (*group_end)(void);
};

static const struct {
    const char *name;
    size_t at; /* offset of the pointer in struct nccl */
} symbols[] = {
    {"ncclGetVersion", offsetof(struct nccl, version)},
    {"ncclGetErrorString", offsetof(struct nccl, error)},
    {"ncclGetUniqueId", offsetof(struct nccl, new_id)},
    {"ncclCommInitRank", offsetof(struct nccl, init)},
    {"ncclCommDestroy", offsetof(struct nccl, destroy)},
    {"ncclCommAbort", offsetof(struct nccl, abort)},
    {"ncclCommGetAsyncError", offsetof(struct nccl, async_error)},
    {"ncclAllReduce", offsetof(struct nccl, all_reduce)},
    {"ncclAllGather", offsetof(struct nccl, all_gather)},
    {"ncclReduceScatter", offsetof(struct nccl, reduce_scatter)},
    {"ncclBroadcast", offsetof(struct nccl, broadcast)},
    {"ncclReduce", offsetof(struct nccl, reduce)},
    {"ncclSend", offsetof(struct nccl, send)},
    {"ncclRecv", offsetof(struct nccl, recv)},
    {"ncclGroupStart", offsetof(struct nccl, group_start)},
    {"ncclGroupEnd", offsetof(struct nccl, group_end)},
};

struct nccl_state;
typedef int nccl_call(const struct nccl_state *s);

struct nccl_state {
    struct cm_meter *m;
    struct nccl nccl;
    struct cm_guard guard;
    void *comm, *stream;
    int rank, n;
    /* of the bound operation */
    nccl_call *call;
    const struct cm_op_args *op;
    const char *in;
    char *out;
    size_t width;
    int type; /* ncclDataType_t */
};

/* Fill in the functions. NULL, or what is wrong. They stay loaded: NCCL leaves threads behind. */
static const char *load(struct nccl *out)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return dlerror();
    for (size_t i = 0; i < CM_LEN(symbols); i++) {
        void *symbol = dlsym(library, symbols[i].name);

        if (symbol == NULL)
            return dlerror();
        *(void **)((char *)out + symbols[i].at) = symbol;
    }
    return NULL;
}

/* ---- the calls ---- */

static int all_reduce(const struct nccl_state *s)
{
    return s->nccl.all_reduce(s->in, s->out, s->op->count, s->type, (int)s->op->op, s->comm,
                              s->stream);
}

static int all_gather(const struct nccl_state *s)
{
    return s->nccl.all_gather(s->in, s->out, s->op->count, s->type, s->comm, s->stream);
}

static int reduce_scatter(const struct nccl_state *s)
{
    return s->nccl.reduce_scatter(s->in, s->out, s->op->count, s->type, (int)s->op->op, s->comm,
                                  s->stream);
}

static int broadcast(const struct nccl_state *s)
{
    return s->nccl.broadcast(s->in, s->out, s->op->count, s->type, s->op->root, s->comm, s->stream);
}

static int reduce(const struct nccl_state *s)
{
    return s->nccl.reduce(s->in, s->out, s->op->count, s->type, (int)s->op->op, s->op->root,
                          s->comm, s->stream);
}

/* `count` elements from `at` elements into IN, if there are any. */
static int send(const struct nccl_state *s, size_t at, size_t count, int peer)
{
    const char *from = s->in + at * s->width;

    return count > 0 ? s->nccl.send(from, count, s->type, peer, s->comm, s->stream) : 0;
}

static int recv(const struct nccl_state *s, size_t at, size_t count, int peer)
{
    char *to = s->out + at * s->width;

    return count > 0 ? s->nccl.recv(to, count, s->type, peer, s->comm, s->stream) : 0;
}

static int alltoall(const struct nccl_state *s)
{
    size_t count = s->op->count;
    int code = 0;

    for (int p = 0; p < s->n && code == 0; p++) {
        code = send(s, (size_t)p * count, count, p);
        if (code == 0)
            code = recv(s, (size_t)p * count, count, p);
    }
    return code;
}

static int alltoallv(const struct nccl_state *s)
{
    const size_t *matrix = s->op->matrix, n = (size_t)s->n, me = (size_t)s->rank;
    size_t sent = 0, received = 0;
    int code = 0;

    for (size_t p = 0; p < n && code == 0; p++) {
        code = send(s, sent, matrix[me * n + p], (int)p);
        if (code == 0)
            code = recv(s, received, matrix[p * n + me], (int)p);
        sent += matrix[me * n + p];
        received += matrix[p * n + me];
    }
    return code;
}

static int gather(const struct nccl_state *s)
{
    int code = send(s, 0, s->op->count, s->op->root);

    for (int p = 0; p < s->n && s->rank == s->op->root && code == 0; p++)
        code = recv(s, (size_t)p * s->op->count, s->op->count, p);
    return code;
}

static int scatter(const struct nccl_state *s)
{
    int code = 0;

    for (int p = 0; p < s->n && s->rank == s->op->root && code == 0; p++)
        code = send(s, (size_t)p * s->op->count, s->op->count, p);
    return code == 0 ? recv(s, 0, s->op->count, s->op->root) : code;
}

static int sendrecv(const struct nccl_state *s)
{
    int code = send(s, 0, s->op->count, (s->rank + 1) % s->n);

    return code == 0 ? recv(s, 0, s->op->count, (s->rank + s->n - 1) % s->n) : code;
}

/* NULL: NCCL has no such collective. A group of one call is the call. */
static nccl_call *const calls[CM_NCOLLS] = {
    [CM_ALL_REDUCE] = all_reduce, [CM_ALL_GATHER] = all_gather,
    [CM_BROADCAST] = broadcast,   [CM_REDUCE_SCATTER] = reduce_scatter,
    [CM_REDUCE] = reduce,         [CM_ALLTOALL] = alltoall,
    [CM_ALLTOALLV] = alltoallv,   [CM_GATHER] = gather,
    [CM_SCATTER] = scatter,       [CM_SENDRECV] = sendrecv,
};

/* ---- types and operations ---- */

/* ncclDataType_t; ncclRedOp_t has the order of enum cm_op, up to avg. */
static const int types[CM_NDTYPES] = {
    [CM_INT8] = 0,   [CM_UINT8] = NCCL_UINT8, [CM_INT32] = 2,   [CM_UINT32] = 3,
    [CM_INT64] = 4,  [CM_UINT64] = 5,         [CM_HALF] = 6,    [CM_FLOAT] = 7,
    [CM_DOUBLE] = 8, [CM_BFLOAT16] = 9,       [CM_F8E4M3] = 10, [CM_F8E5M2] = 11,
};

_Static_assert(CM_SUM == 0 && CM_PROD == 1 && CM_MAX == 2 && CM_MIN == 3 && CM_AVG == 4,
               "the order of ncclRedOp_t");

static bool computes_fp8(void)
{
    struct cm_gpu_info gpu;
    struct nccl nccl;
    int version = 0;

    return load(&nccl) == NULL && nccl.version(&version) == 0 && version >= FP8_VERSION &&
           cm_gpu_info(0, &gpu) == CM_OK && gpu.cc_major >= FP8_CAPABILITY;
}

static const char *nccl_refuses(const struct cm_op_args *op, int n)
{
    const struct cm_dtype_info *type = &cm_dtypes[op->dtype];
    bool reduces = cm_colls[op->coll].reduces;

    if (calls[op->coll] == NULL)
        return "NCCL has no such collective";
    if (reduces && op->op > CM_AVG)
        return "NCCL has no such reduction operation by itself";
    if (reduces && op->op == CM_AVG && type->kind == CM_KIND_FLOAT && (n & (n - 1)) != 0)
        return "NCCL multiplies by 1/n, which is exact for powers of two only";
    if (reduces && type->kind == CM_KIND_FLOAT && type->bytes == 1 && !computes_fp8())
        return "fp8 takes NCCL 2.24 and GPUs of compute capability 9.0";
    return NULL;
}

/* ---- open, bind, run ---- */

static bool nccl_serves(const struct cm_engine_job *job, char *why)
{
    const char *wrong = NULL;
    struct nccl nccl;

    if (!job->gpus)
        wrong = "NCCL needs GPUs, and the backend is host";
    else if (job->shared_gpus)
        wrong = "NCCL needs a GPU for each rank, and some share one";
    else
        wrong = load(&nccl);
    if (wrong != NULL)
        snprintf(why, CM_ENGINE_WHY, "%s", wrong);
    return wrong == NULL;
}

static bool nccl_library(char *buf, size_t size)
{
    Dl_info info = {.dli_fname = "?"};
    struct nccl nccl;
    int v = 0;

    if (load(&nccl) != NULL || nccl.version(&v) != 0)
        return false;
    dladdr((void *)nccl.version, &info);
    snprintf(buf, size, "NCCL %d.%d.%d, %s", v / 10000, v / 100 % 100, v % 100, info.dli_fname);
    return true;
}

static enum cm_status check(const struct nccl_state *s, int code)
{
    if (code == 0)
        return CM_OK;
    return CM_FAIL(CM_ESYS, "NCCL: %s (%d)", s->nccl.error(code), code);
}

static void nccl_close(void *state, bool orderly)
{
    struct nccl_state *s = state;

    if (s == NULL)
        return;
    cm_guard_step(&s->guard);
    if (s->comm != NULL && orderly)
        (void)check(s, s->nccl.destroy(s->comm));
    else if (s->comm != NULL)
        (void)check(s, s->nccl.abort(s->comm));
    cm_guard_step(&s->guard);
    cm_watchdog_unguard(s->m->rank->watchdog, &s->guard);
    free(s);
}

/* The first rank of each group makes the name under which its ranks meet. */
static enum cm_status share_id(struct nccl_state *s, struct nccl_id *id)
{
    struct cm_rank *r = s->m->rank;
    struct nccl_id *all = calloc((size_t)r->n, sizeof(*all)), mine = {{0}};
    enum cm_status st = all != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "names of %d ranks", r->n);

    if (st == CM_OK && s->rank == 0)
        st = check(s, s->nccl.new_id(&mine));
    if (st == CM_OK)
        st = cm_team_gather(&r->team, &mine, sizeof(mine), all);
    if (st == CM_OK)
        *id = all[r->group_world[0]];
    free(all);
    return st;
}

static enum cm_status nccl_open(struct cm_meter *m, void **state)
{
    const struct cm_rank *r = m->rank;
    struct nccl_state *s = calloc(1, sizeof(*s));
    struct nccl_id id = {{0}};
    const char *wrong;
    enum cm_status st;

    if (s == NULL)
        return CM_FAIL(CM_ENOMEM, "NCCL as an engine: %zu bytes", sizeof(*s));
    s->m = m;
    s->n = r->group_n;
    s->rank = r->group_rank;
    s->stream = cm_gpu_stream(r->gpu.gpu);
    s->guard.waiter = &m->rank->waiter;
    cm_watchdog_guard(r->watchdog, &s->guard);
    *state = s;
    wrong = load(&s->nccl);
    if (wrong != NULL)
        return CM_FAIL(CM_ESYS, "NCCL: %s", wrong);
    st = share_id(s, &id);
    if (st != CM_OK)
        return st;
    cm_guard_step(&s->guard);
    st = check(s, s->nccl.init(&s->comm, s->n, id, s->rank));
    cm_guard_step(&s->guard);
    return st;
}

static enum cm_status nccl_bind(void *state, const struct cm_op_args *op)
{
    struct nccl_state *s = state;
    int code = 0;
    enum cm_status st = check(s, s->nccl.async_error(s->comm, &code));

    s->call = calls[op->coll];
    s->op = op;
    s->in = op->in;
    s->out = op->out;
    s->width = cm_dtypes[op->dtype].bytes;
    s->type = types[op->dtype];
    if (s->width == 1 && !cm_colls[op->coll].reduces)
        s->type = NCCL_UINT8; /* older versions have no fp8, but a copy does not look */
    return st == CM_OK && code != NCCL_IN_PROGRESS ? check(s, code) : st;
}

static enum cm_status nccl_run(void *state)
{
    struct nccl_state *s = state;
    int code, end;

    cm_guard_step(&s->guard);
    code = s->nccl.group_start();
    if (code == 0) {
        code = s->call(s);
        end = s->nccl.group_end();
        code = code != 0 ? code : end;
    }
    cm_guard_step(&s->guard);
    return check(s, code);
}

const struct cm_engine cm_engine_nccl = {
    .serves = nccl_serves,
    .refuses = nccl_refuses,
    .library = nccl_library,
    .open = nccl_open,
    .close = nccl_close,
    .bind = nccl_bind,
    .run = nccl_run,
};
