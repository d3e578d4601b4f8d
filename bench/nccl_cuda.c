/*
 * The collectives of NCCL, measured as the drivers measure theirs: one thread
 * per rank, hot buffers, events around the loop, time of the slowest rank.
 *
 *   build/bench/nccl_cuda [-g RANKS] [-b BYTES] [-e BYTES] [-f FACTOR] [-n OPS] [-G 1]
 *
 * Prints CSV like the drivers' size, time and busbw; -G 1 captures the loop in
 * a CUDA graph. NCCL is loaded when the program starts: exit 77 if there is
 * none, or if it refuses several ranks on one GPU (before 2.30).
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

enum { MAX_RANKS = 16, BATCHES = 3, NCCL_FLOAT = 7, NCCL_SUM = 0 };
enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_SYSTEM = 3, EXIT_ABSENT = 77 };

/* The part of NCCL's ABI that is used; nccl.h of 2.x declares the same. */
struct nccl {
    int (*version)(int *v);
    const char *(*error)(int code);
    int (*init)(void **comms, int n, const int *devices);
    int (*destroy)(void *comm);
    int (*all_reduce)(const void *, void *, size_t, int, int, void *, cudaStream_t);
    int (*all_gather)(const void *, void *, size_t, int, void *, cudaStream_t);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, void *, cudaStream_t);
    int (*broadcast)(const void *, void *, size_t, int, int, void *, cudaStream_t);
    int (*send)(const void *, size_t, int, int, void *, cudaStream_t);
    int (*recv)(void *, size_t, int, int, void *, cudaStream_t);
    int (*group_start)(void);
    int (*group_end)(void);
};

static const struct {
    const char *name;
    size_t at; /* offset of the pointer in struct nccl */
} symbols[] = {
    {"ncclGetVersion", offsetof(struct nccl, version)},
    {"ncclGetErrorString", offsetof(struct nccl, error)},
    {"ncclCommInitAll", offsetof(struct nccl, init)},
    {"ncclCommDestroy", offsetof(struct nccl, destroy)},
    {"ncclAllReduce", offsetof(struct nccl, all_reduce)},
    {"ncclAllGather", offsetof(struct nccl, all_gather)},
    {"ncclReduceScatter", offsetof(struct nccl, reduce_scatter)},
    {"ncclBroadcast", offsetof(struct nccl, broadcast)},
    {"ncclSend", offsetof(struct nccl, send)},
    {"ncclRecv", offsetof(struct nccl, recv)},
    {"ncclGroupStart", offsetof(struct nccl, group_start)},
    {"ncclGroupEnd", offsetof(struct nccl, group_end)},
};

/* What all ranks of a run share. */
struct run {
    struct nccl nccl;
    int n, devices, ops;
    bool graph;
    size_t min, max, factor;
    pthread_barrier_t barrier;
    double us[MAX_RANKS]; /* of an operation, in the present batch */
    bool failed[MAX_RANKS];
};

struct rank {
    struct run *run;
    int rank, device;
    void *comm;
    float *in, *out;
    cudaStream_t stream;
    cudaEvent_t mark[2];
    cudaGraphExec_t graph;
};

struct coll {
    const char *name;
    bool blocks; /* the size counts n blocks, not one buffer */
    double (*factor)(double n);
    int (*enqueue)(const struct rank *r, size_t count);
};

static double two_passes(double n)
{
    return 2 * (n - 1) / n;
}

static double one_pass(double n)
{
    return (n - 1) / n;
}

static double whole(double n)
{
    (void)n;
    return 1;
}

static int all_reduce(const struct rank *r, size_t count)
{
    return r->run->nccl.all_reduce(r->in, r->out, count, NCCL_FLOAT, NCCL_SUM, r->comm, r->stream);
}

static int all_gather(const struct rank *r, size_t count)
{
    return r->run->nccl.all_gather(r->in, r->out, count, NCCL_FLOAT, r->comm, r->stream);
}

static int reduce_scatter(const struct rank *r, size_t count)
{
    return r->run->nccl.reduce_scatter(r->in, r->out, count, NCCL_FLOAT, NCCL_SUM, r->comm,
                                       r->stream);
}

static int broadcast(const struct rank *r, size_t count)
{
    return r->run->nccl.broadcast(r->in, r->out, count, NCCL_FLOAT, 0, r->comm, r->stream);
}

static int alltoall(const struct rank *r, size_t count)
{
    const struct nccl *n = &r->run->nccl;
    int code = n->group_start();

    for (int p = 0; p < r->run->n && code == 0; p++) {
        code = n->send(r->in + (size_t)p * count, count, NCCL_FLOAT, p, r->comm, r->stream);
        if (code == 0)
            code = n->recv(r->out + (size_t)p * count, count, NCCL_FLOAT, p, r->comm, r->stream);
    }
    return code != 0 ? code : n->group_end();
}

static const struct coll colls[] = {
    {"all_reduce", false, two_passes, all_reduce},
    {"all_gather", true, one_pass, all_gather},
    {"reduce_scatter", true, one_pass, reduce_scatter},
    {"broadcast", false, whole, broadcast},
    {"alltoall", true, one_pass, alltoall},
};

static bool cuda_ok(const struct rank *r, cudaError_t e, const char *what)
{
    if (e != cudaSuccess)
        fprintf(stderr, "rank %d: %s: %s\n", r->rank, what, cudaGetErrorString(e));
    return e == cudaSuccess;
}

static bool enqueue(const struct rank *r, const struct coll *c, size_t count, int ops)
{
    int code = 0;

    for (int i = 0; i < ops && code == 0; i++)
        code = c->enqueue(r, count);
    if (code != 0)
        fprintf(stderr, "rank %d: %s: %s\n", r->rank, c->name, r->run->nccl.error(code));
    return code == 0;
}

/* The loop as one graph; NCCL wants all ranks to capture at the same time. */
static bool capture(struct rank *r, const struct coll *c, size_t count)
{
    cudaGraph_t graph = NULL;
    bool good = cuda_ok(r, cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal),
                        "capture") &&
                enqueue(r, c, count, r->run->ops);

    good = cuda_ok(r, cudaStreamEndCapture(r->stream, &graph), "capture") && good;
    good = good && cuda_ok(r, cudaGraphInstantiate(&r->graph, graph, 0), "graph");
    if (graph != NULL)
        cudaGraphDestroy(graph);
    return good;
}

/* All ranks take part in every barrier, whatever failed, so that nobody waits for ever. */
static bool agree(struct rank *r, bool good)
{
    bool all = true;

    r->run->failed[r->rank] = !good;
    pthread_barrier_wait(&r->run->barrier);
    for (int i = 0; i < r->run->n; i++)
        all = all && !r->run->failed[i];
    pthread_barrier_wait(&r->run->barrier);
    return all;
}

static bool batch(struct rank *r, const struct coll *c, size_t count)
{
    float ms = 0;
    bool good = cuda_ok(r, cudaEventRecord(r->mark[0], r->stream), "event");

    if (good && r->graph != NULL)
        good = cuda_ok(r, cudaGraphLaunch(r->graph, r->stream), "graph");
    else if (good)
        good = enqueue(r, c, count, r->run->ops);
    good = good && cuda_ok(r, cudaEventRecord(r->mark[1], r->stream), "event") &&
           cuda_ok(r, cudaStreamSynchronize(r->stream), c->name) &&
           cuda_ok(r, cudaEventElapsedTime(&ms, r->mark[0], r->mark[1]), "event");
    r->run->us[r->rank] = ms * 1e3 / r->run->ops;
    return good;
}

static double slowest(const struct run *run)
{
    double us = 0;

    for (int i = 0; i < run->n; i++)
        us = run->us[i] > us ? run->us[i] : us;
    return us;
}

/* One line: the best of a few batches, after one that warms up. */
static bool measure(struct rank *r, const struct coll *c, size_t bytes)
{
    struct run *run = r->run;
    size_t blocks = c->blocks ? (size_t)run->n : 1, count = bytes / sizeof(float) / blocks;
    double us = 0;
    bool good = count == 0 || enqueue(r, c, count, 1);

    if (count == 0)
        return true;
    good = agree(r, good && cuda_ok(r, cudaStreamSynchronize(r->stream), c->name));
    if (good && run->graph)
        good = agree(r, capture(r, c, count));
    for (int i = 0; i <= BATCHES && good; i++) {
        good = agree(r, batch(r, c, count));
        if (i > 0 && (i == 1 || slowest(run) < us))
            us = slowest(run);
        good = agree(r, good);
    }
    if (r->graph != NULL)
        cudaGraphExecDestroy(r->graph);
    r->graph = NULL;
    if (good && r->rank == 0) {
        double total = (double)(count * blocks * sizeof(float));

        printf("%s,%d,%d,%.0f,%.3f,%.3f\n", c->name, run->n, run->graph, total, us,
               us > 0 ? total / us / 1e3 * c->factor(run->n) : 0);
        fflush(stdout);
    }
    return good;
}

static bool open_rank(struct rank *r)
{
    return cuda_ok(r, cudaSetDevice(r->device), "device") &&
           cuda_ok(r, cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking), "stream") &&
           cuda_ok(r, cudaEventCreate(&r->mark[0]), "event") &&
           cuda_ok(r, cudaEventCreate(&r->mark[1]), "event") &&
           cuda_ok(r, cudaMalloc((void **)&r->in, r->run->max), "memory") &&
           cuda_ok(r, cudaMalloc((void **)&r->out, r->run->max), "memory") &&
           cuda_ok(r, cudaMemset(r->in, 0, r->run->max), "fill");
}

static void *body(void *arg)
{
    struct rank *r = arg;
    bool good = agree(r, open_rank(r));

    for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
        for (size_t bytes = r->run->min; bytes <= r->run->max && good; bytes *= r->run->factor)
            good = measure(r, &colls[c], bytes);
    }
    r->run->failed[r->rank] = !good;
    return NULL;
}

static bool load(struct nccl *n)
{
    void *lib = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);

    if (lib == NULL) {
        fprintf(stderr, "no NCCL: %s\n", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(lib, symbols[i].name);

        if (found == NULL) {
            fprintf(stderr, "this NCCL has no %s\n", symbols[i].name);
            return false;
        }
        memcpy((char *)n + symbols[i].at, &found, sizeof(found));
    }
    return true;
}

static bool parse(int argc, char **argv, struct run *run)
{
    size_t value;
    int c;

    *run = (struct run){.n = 1, .ops = 20, .min = 8, .max = (size_t)64 << 20, .factor = 2};
    while ((c = getopt(argc, argv, "g:b:e:f:n:G:")) != -1) {
        if (c == '?' || !cm_parse_size(optarg, &value))
            return false;
        run->n = c == 'g' ? (int)value : run->n;
        run->min = c == 'b' ? value : run->min;
        run->max = c == 'e' ? value : run->max;
        run->factor = c == 'f' ? value : run->factor;
        run->ops = c == 'n' ? (int)value : run->ops;
        run->graph = c == 'G' ? value != 0 : run->graph;
    }
    return run->n >= 1 && run->n <= MAX_RANKS && run->ops >= 1 && run->factor >= 2 && run->min > 0;
}

static int run_ranks(struct run *run, struct rank *ranks)
{
    pthread_t threads[MAX_RANKS];
    int failed = 0;

    if (pthread_barrier_init(&run->barrier, NULL, (unsigned)run->n) != 0)
        return EXIT_SYSTEM;
    for (int i = 0; i < run->n; i++) {
        if (pthread_create(&threads[i], NULL, body, &ranks[i]) != 0) {
            fprintf(stderr, "thread of rank %d cannot start\n", i);
            exit(EXIT_SYSTEM); /* the others wait for it */
        }
    }
    for (int i = 0; i < run->n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < run->n; i++)
        failed += run->failed[i];
    return failed == 0 ? 0 : EXIT_SYSTEM;
}

int main(int argc, char **argv)
{
    struct rank ranks[MAX_RANKS] = {0};
    void *comms[MAX_RANKS];
    int devices[MAX_RANKS], version = 0, code;
    struct run run;

    if (!parse(argc, argv, &run)) {
        fprintf(stderr, "usage: %s [-g RANKS] [-b SIZE] [-e SIZE] [-f FACTOR] [-n OPS] [-G 1]\n",
                argv[0]);
        return EXIT_USAGE;
    }
    if (cudaGetDeviceCount(&run.devices) != cudaSuccess || run.devices < 1) {
        fprintf(stderr, "no GPU\n");
        return EXIT_ABSENT;
    }
    if (!load(&run.nccl))
        return EXIT_ABSENT;
    run.nccl.version(&version);
    for (int i = 0; i < run.n; i++)
        devices[i] = i % run.devices;
    code = run.nccl.init(comms, run.n, devices);
    if (code != 0) {
        fprintf(stderr, "NCCL %d refuses %d ranks on %d GPUs: %s\n", version, run.n, run.devices,
                run.nccl.error(code));
        return run.n > run.devices ? EXIT_ABSENT : EXIT_SYSTEM;
    }
    printf("# nccl %d\ncollective,ranks,graph,bytes,time_us,busbw\n", version);
    for (int i = 0; i < run.n; i++)
        ranks[i] = (struct rank){&run, i, devices[i], comms[i], .in = NULL};
    code = run_ranks(&run, ranks);
    for (int i = 0; i < run.n && code == 0; i++)
        run.nccl.destroy(comms[i]);
    return code;
}
