/*
 * Plays NCCL for the engine of that name, on virtual GPUs, whose memory is the
 * process's own: ranks are threads of one process that meet in every operation
 * and compute what they must have, in the order of ranks.
 *
 * It is strict where the real one may be: all ranks of an operation must bring
 * the same arguments, and every send must find a receive of its size; else all
 * of them fail. An operation waits for what its stream held before and is done
 * when it returns, which is one of the orders that a real one may have.
 *
 *   FAKENCCL_FAIL=init | run    that call fails
 *   FAKENCCL_HANG=N             the N-th operation of rank 1 waits until it is aborted
 */
#include "fakenccl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct world worlds[MAX_WORLDS];
static int nworlds;

/* The group of this thread: its sends and receives are run at its end. */
static __thread struct {
    int depth;
    struct comm *comm;
    void *stream;
    struct part parts[MAX_PARTS];
    int nparts;
} group;

enum { COPY_ANY = 4 }; /* cudaMemcpyDefault */
extern int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
extern int cudaStreamSynchronize(void *stream);

static bool asked(const char *name, const char *value)
{
    const char *set = getenv(name);

    return set != NULL && strcmp(set, value) == 0;
}

/* With the lock: until all ranks are here, or the communicator is aborted. */
static bool meet(struct world *w)
{
    uint64_t round = w->round;

    if (++w->arrived == w->n) {
        w->arrived = 0;
        w->round++;
        pthread_cond_broadcast(&changed);
    }
    while (w->round == round && !w->aborted)
        pthread_cond_wait(&changed, &lock);
    return !w->aborted;
}

/* ---- device memory, which only CUDA may touch ---- */

/* After what the stream holds; blocks. */
static bool copy(void *to, const void *from, size_t bytes, void *stream)
{
    return cudaMemcpyAsync(to, from, bytes, COPY_ANY, stream) == 0 &&
           cudaStreamSynchronize(stream) == 0;
}

/* A copy in host memory, for free(); NULL: CUDA refused. */
static char *fetch(const void *at, size_t bytes, void *stream)
{
    char *host = malloc(bytes + 1);

    if (host != NULL && bytes > 0 && !copy(host, at, bytes, stream)) {
        free(host);
        host = NULL;
    }
    return host;
}

static void drop_inputs(struct call *c)
{
    free((char *)c->in);
    for (int i = 0; i < c->nparts; i++) {
        if (c->parts[i].sends)
            free(c->parts[i].at);
    }
}

/* In place of what the rank gives, its copies: drop_inputs(). false: CUDA refused. */
static bool fetch_inputs(const struct comm *c, struct call *call, void *stream)
{
    size_t bytes = call->what != PARTS ? call->count * fake_width(call->type) : 0;
    bool ok = true;

    if (call->what == REDUCE_SCATTER)
        bytes *= (size_t)c->world->n;
    if (call->what == BROADCAST && c->rank != call->root)
        bytes = 0;
    call->in = fetch(call->in, bytes, stream);
    for (int i = 0; i < call->nparts; i++) {
        struct part *p = &call->parts[i];

        if (p->sends)
            p->at = fetch(p->at, p->bytes, stream);
        ok = ok && p->at != NULL;
    }
    return ok && call->in != NULL;
}

static bool store(const struct call *c, const char *from, size_t bytes, void *stream)
{
    bool ok = true;

    if (c->what != PARTS)
        return bytes == 0 || copy(c->out, from, bytes, stream);
    for (int i = 0; i < c->nparts; i++) {
        if (c->parts[i].sends)
            continue;
        ok = ok && copy(c->parts[i].at, from, c->parts[i].bytes, stream);
        from += c->parts[i].bytes;
    }
    return ok;
}

/* ---- an operation ---- */

static bool same(const struct call *a, const struct call *b)
{
    return a->what == b->what && a->count == b->count && a->type == b->type && a->op == b->op &&
           a->root == b->root;
}

/* Rank 1 takes no part any more: as if its kernel hung. With the lock. */
static bool hangs(const struct comm *c)
{
    const char *nth = getenv("FAKENCCL_HANG");

    while (nth != NULL && c->rank == 1 && c->ops == atol(nth) && !c->world->aborted)
        pthread_cond_wait(&changed, &lock);
    return c->world->aborted;
}

/* With the lock: what the rank receives, into `result`; then nobody needs its inputs any more. */
static int run_locked(struct comm *c, char *result)
{
    struct world *w = c->world;
    const struct call *mine = &w->call[c->rank];

    if (hangs(c) || !meet(w))
        return SYSTEM;
    if (!same(mine, &w->call[0]) || !fake_result_into(w, c->rank, result))
        w->differs = true;
    if (!meet(w))
        return SYSTEM;
    return w->differs ? USAGE : SUCCESS;
}

static bool valid(const struct comm *c, const struct call *call)
{
    return call->type >= 0 && call->type < NTYPES && call->root >= 0 && call->root < c->world->n &&
           call->op >= 0 && call->op <= CM_AVG;
}

static int run(struct comm *c, struct call *call, void *stream)
{
    bool writes = call->what != REDUCE || c->rank == call->root;
    char *result = NULL;
    size_t bytes = 0;
    int code = SUCCESS;

    if (asked("FAKENCCL_FAIL", "run"))
        return INTERNAL;
    if (call->what != PARTS && !valid(c, call))
        return ARGUMENT;
    if (!fetch_inputs(c, call, stream))
        code = UNHANDLED;
    if (code == SUCCESS) {
        pthread_mutex_lock(&lock);
        c->ops++;
        c->world->call[c->rank] = *call;
        bytes = fake_result_bytes(c->world, c->rank);
        result = malloc(bytes + 1);
        code = result != NULL ? run_locked(c, result) : SYSTEM;
        pthread_mutex_unlock(&lock);
    }
    if (code == SUCCESS && writes && !store(call, result, bytes, stream))
        code = UNHANDLED;
    free(result);
    drop_inputs(call);
    return code;
}

/* ---- the interface ---- */

int ncclGetVersion(int *v);
int ncclGetVersion(int *v)
{
    *v = 22809;
    return SUCCESS;
}

const char *ncclGetErrorString(int code);
const char *ncclGetErrorString(int code)
{
    static const char *const texts[] = {
        "no error",       "unhandled cuda error", "unhandled system error",
        "internal error", "invalid argument",     "invalid usage"};

    return code >= 0 && code <= USAGE ? texts[code] : "unknown";
}

int ncclGetUniqueId(struct id *out);
int ncclGetUniqueId(struct id *out)
{
    static int made;

    memset(out, 0, sizeof(*out));
    pthread_mutex_lock(&lock);
    made++;
    memcpy(out->bytes, &made, sizeof(made));
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

/* With the lock. NULL: there are too many. */
static struct world *world_of(const struct id *id, int n)
{
    for (int i = 0; i < nworlds; i++) {
        if (memcmp(&worlds[i].id, id, sizeof(*id)) == 0)
            return &worlds[i];
    }
    if (nworlds == MAX_WORLDS)
        return NULL;
    worlds[nworlds].id = *id;
    worlds[nworlds].n = n;
    return &worlds[nworlds++];
}

int ncclCommInitRank(void **out, int n, struct id id, int rank);
int ncclCommInitRank(void **out, int n, struct id id, int rank)
{
    struct comm *c = calloc(1, sizeof(*c));
    int code = SUCCESS;

    if (asked("FAKENCCL_FAIL", "init") || c == NULL || n > MAX_RANKS) {
        free(c);
        return SYSTEM;
    }
    pthread_mutex_lock(&lock);
    c->rank = rank;
    c->world = world_of(&id, n);
    if (c->world == NULL || c->world->n != n || rank < 0 || rank >= n || !meet(c->world))
        code = ARGUMENT;
    pthread_mutex_unlock(&lock);
    *out = c;
    return code;
}

int ncclCommDestroy(void *comm);
int ncclCommDestroy(void *comm)
{
    free(comm);
    return SUCCESS;
}

int ncclCommAbort(void *comm);
int ncclCommAbort(void *comm)
{
    struct comm *c = comm;

    pthread_mutex_lock(&lock);
    c->world->aborted = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(c);
    return SUCCESS;
}

int ncclCommGetAsyncError(void *comm, int *code);
int ncclCommGetAsyncError(void *comm, int *code)
{
    (void)comm;
    *code = SUCCESS;
    return SUCCESS;
}

int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *comm, void *s);
int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *comm, void *s)
{
    return run(comm, &(struct call){ALL_REDUCE, in, out, count, type, op, 0, {{0}}, 0}, s);
}

int ncclAllGather(const void *in, void *out, size_t count, int type, void *comm, void *s);
int ncclAllGather(const void *in, void *out, size_t count, int type, void *comm, void *s)
{
    return run(comm, &(struct call){ALL_GATHER, in, out, count, type, 0, 0, {{0}}, 0}, s);
}

int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op, void *comm,
                      void *s);
int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op, void *comm,
                      void *s)
{
    return run(comm, &(struct call){REDUCE_SCATTER, in, out, count, type, op, 0, {{0}}, 0}, s);
}

int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, void *comm, void *s);
int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, void *comm, void *s)
{
    return run(comm, &(struct call){BROADCAST, in, out, count, type, 0, root, {{0}}, 0}, s);
}

int ncclReduce(const void *in, void *out, size_t count, int type, int op, int root, void *comm,
               void *s);
int ncclReduce(const void *in, void *out, size_t count, int type, int op, int root, void *comm,
               void *s)
{
    return run(comm, &(struct call){REDUCE, in, out, count, type, op, root, {{0}}, 0}, s);
}

int ncclGroupStart(void);
int ncclGroupStart(void)
{
    group.depth++;
    return SUCCESS;
}

int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    struct call call = {.what = PARTS};

    if (group.depth == 0)
        return USAGE;
    if (--group.depth > 0 || group.nparts == 0)
        return SUCCESS;
    memcpy(call.parts, group.parts, sizeof(call.parts));
    call.nparts = group.nparts;
    group.nparts = 0;
    return run(group.comm, &call, group.stream);
}

static int add_part(const struct part *p, int type, void *comm, void *stream)
{
    const struct comm *c = comm;

    if (group.depth == 0 || group.nparts == MAX_PARTS || type < 0 || type >= NTYPES ||
        p->peer < 0 || p->peer >= c->world->n)
        return ARGUMENT;
    group.comm = comm;
    group.stream = stream;
    group.parts[group.nparts] = *p;
    group.parts[group.nparts++].bytes *= fake_width(type);
    return SUCCESS;
}

int ncclSend(const void *at, size_t count, int type, int peer, void *comm, void *s);
int ncclSend(const void *at, size_t count, int type, int peer, void *comm, void *s)
{
    return add_part(&(struct part){true, peer, (char *)at, count}, type, comm, s);
}

int ncclRecv(void *at, size_t count, int type, int peer, void *comm, void *s);
int ncclRecv(void *at, size_t count, int type, int peer, void *comm, void *s)
{
    return add_part(&(struct part){false, peer, at, count}, type, comm, s);
}
