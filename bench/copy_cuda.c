/*
 * Copy bandwidth of the GPUs of this machine, the ceiling that the engine's
 * results are held against.
 *
 *   build/bench/copy_cuda [BYTES]      CSV: from, to, bytes (at most 512 MiB), GB/s
 *
 * On one GPU a copy reads and writes its memory, so 2 x BYTES count; between
 * two GPUs BYTES count. Each figure is the median of a few batches.
 */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/stats.h"

enum { BATCHES = 7, COPIES = 8, MAX_GPUS = 16, MOST = 512 << 20 /* far beyond the caches */ };

static bool ok(cudaError_t e, const char *what)
{
    if (e != cudaSuccess)
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    return e == cudaSuccess;
}

/* Copies of one batch, timed by events on the source's default stream. */
static bool batch(void *dst, const void *src, size_t bytes, cudaEvent_t mark[2], float *ms)
{
    if (!ok(cudaEventRecord(mark[0], NULL), "event"))
        return false;
    for (int i = 0; i < COPIES; i++) {
        if (!ok(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, NULL), "copy"))
            return false;
    }
    return ok(cudaEventRecord(mark[1], NULL), "event") &&
           ok(cudaEventSynchronize(mark[1]), "copy") &&
           ok(cudaEventElapsedTime(ms, mark[0], mark[1]), "event");
}

static bool measure(int from, int to, void *dst, const void *src, size_t bytes)
{
    double gbs[BATCHES], traffic = (double)bytes * COPIES * (from == to ? 2 : 1);
    cudaEvent_t mark[2];
    float ms = 0;
    bool good = ok(cudaSetDevice(from), "device") && ok(cudaEventCreate(&mark[0]), "event") &&
                ok(cudaEventCreate(&mark[1]), "event") && batch(dst, src, bytes, mark, &ms);

    for (int i = 0; i < BATCHES && good; i++) {
        good = batch(dst, src, bytes, mark, &ms);
        gbs[i] = ms > 0 ? traffic / ms / 1e6 : 0;
    }
    if (good)
        printf("%d,%d,%zu,%.1f\n", from, to, bytes, cm_stats_of(gbs, BATCHES).p50);
    return good;
}

/* Peer access, where there is any: without it the copy goes through the host. */
static void enable_peer(int from, int to)
{
    int can = 0;

    if (from != to && cudaDeviceCanAccessPeer(&can, from, to) == cudaSuccess && can) {
        cudaSetDevice(from);
        cudaDeviceEnablePeerAccess(to, 0);
        (void)cudaGetLastError(); /* enabled before is fine */
    }
}

int main(int argc, char **argv)
{
    size_t asked = argc > 1 ? strtoull(argv[1], NULL, 10) : MOST;
    size_t bytes = asked < MOST ? asked : MOST;
    void *src[MAX_GPUS], *dst[MAX_GPUS];
    int n = 0;

    if (!ok(cudaGetDeviceCount(&n), "devices") || n == 0 || bytes == 0)
        return 3;
    n = n < MAX_GPUS ? n : MAX_GPUS;
    for (int i = 0; i < n; i++) {
        if (!ok(cudaSetDevice(i), "device") || !ok(cudaMalloc(&src[i], bytes), "memory") ||
            !ok(cudaMalloc(&dst[i], bytes), "memory") || !ok(cudaMemset(src[i], 1, bytes), "fill"))
            return 3;
    }
    printf("from,to,bytes,gbs\n");
    for (int from = 0; from < n; from++) {
        for (int to = 0; to < n; to++) {
            enable_peer(from, to);
            if (!measure(from, to, dst[to], src[from], bytes))
                return 3;
        }
    }
    return 0;
}
