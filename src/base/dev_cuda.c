/*
 * Devices, memory and peers by the CUDA runtime.
 *
 * Invariant: an error of CUDA is turned into a status where it appears, and is
 * cleared, so that the next call does not report it once more. Errors of the
 * device itself (a kernel's bad address) are sticky in CUDA and come again.
 */
#include "base/dev_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 2 << 20 /* cudaMalloc shares smaller blocks between allocations */ };

enum cm_status cm_cuda_status(cudaError_t e, int device, const char *what)
{
    char gpu[24] = "CUDA";

    if (e == cudaSuccess)
        return CM_OK;
    (void)cudaGetLastError();
    if (device >= 0)
        snprintf(gpu, sizeof(gpu), "GPU %d", device);
    return CM_FAIL(e == cudaErrorMemoryAllocation ? CM_ENOMEM : CM_ESYS, "%s: %s: %s (%s)", gpu,
                   what, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- what there is ---- */

static void explain_no_device(struct cm_gpu_probe *p, cudaError_t e)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (e != cudaSuccess && e != cudaErrorNoDevice)
        snprintf(p->why, sizeof(p->why), "CUDA: %s (%s)", cudaGetErrorString(e),
                 cudaGetErrorName(e));
    else if (visible != NULL)
        snprintf(p->why, sizeof(p->why),
                 "the CUDA driver shows no device: CUDA_VISIBLE_DEVICES is '%s'", visible);
    else
        snprintf(p->why, sizeof(p->why), "the CUDA driver found no device");
}

/* Programs run on drivers of the same major version, newer or older. */
void cm_gpu_probe(struct cm_gpu_probe *out)
{
    cudaError_t e;

    memset(out, 0, sizeof(*out));
    if (cudaDriverGetVersion(&out->driver) != cudaSuccess)
        out->driver = 0;
    if (cudaRuntimeGetVersion(&out->runtime) != cudaSuccess)
        out->runtime = 0;
    if (out->driver == 0) {
        snprintf(out->why, sizeof(out->why), "no CUDA driver (libcuda.so.1)");
    } else if (out->driver / 1000 < out->runtime / 1000) {
        snprintf(out->why, sizeof(out->why),
                 "CUDA driver supports %d.%d, this program needs %d.0: update the driver",
                 out->driver / 1000, out->driver % 1000 / 10, out->runtime / 1000);
    } else {
        e = cudaGetDeviceCount(&out->count);
        if (e != cudaSuccess)
            out->count = 0;
        if (out->count == 0)
            explain_no_device(out, e);
        else if (out->count > CM_GPU_DEVICES)
            out->count = CM_GPU_DEVICES;
    }
    (void)cudaGetLastError();
}

enum cm_status cm_gpu_info(int index, struct cm_gpu_info *out)
{
    struct cudaDeviceProp p;
    enum cm_status st = cm_cuda_status(cudaGetDeviceProperties(&p, index), index, "properties");

    if (st != CM_OK)
        return st;
    *out = (struct cm_gpu_info){.index = index,
                                .cc_major = p.major,
                                .cc_minor = p.minor,
                                .sms = p.multiProcessorCount,
                                .bytes = p.totalGlobalMem,
                                .cooperative = p.cooperativeLaunch != 0};
    snprintf(out->name, sizeof(out->name), "%.95s", p.name);
    snprintf(out->bus_id, sizeof(out->bus_id), "%04x:%02x:%02x.0", (unsigned)p.pciDomainID,
             (unsigned)p.pciBusID, (unsigned)p.pciDeviceID);
    memcpy(out->uuid, p.uuid.bytes, sizeof(out->uuid));
    return CM_OK;
}

bool cm_gpu_reaches(int index, int other)
{
    int can = 0;

    if (index == other)
        return true;
    if (cudaDeviceCanAccessPeer(&can, index, other) == cudaSuccess)
        return can != 0;
    (void)cudaGetLastError();
    return false;
}

/* ---- an open device ---- */

enum cm_status cm_gpu_open(int index, bool null_stream, struct cm_gpu **out)
{
    struct cm_gpu *g = calloc(1, sizeof(*g));
    enum cm_status st;

    if (g == NULL)
        return CM_FAIL(CM_ENOMEM, "GPU %d", index);
    g->null_stream = null_stream;
    st = cm_gpu_info(index, &g->info);
    if (st == CM_OK)
        st = cm_gpu_use(g);
    if (st == CM_OK && !null_stream)
        st = cm_cuda_status(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), index,
                            "creating a stream");
    if (st != CM_OK) {
        free(g);
        return st;
    }
    *out = g;
    return CM_OK;
}

void cm_gpu_close(struct cm_gpu *g)
{
    if (g == NULL)
        return;
    if (!g->null_stream && cm_gpu_use(g) == CM_OK)
        (void)cudaStreamDestroy(g->stream);
    free(g);
}

enum cm_status cm_gpu_use(struct cm_gpu *g)
{
    return cm_cuda_status(cudaSetDevice(g->info.index), g->info.index, "opening the device");
}

int cm_gpu_index(const struct cm_gpu *g)
{
    return g->info.index;
}

const struct cm_gpu_info *cm_gpu_facts(const struct cm_gpu *g)
{
    return &g->info;
}

void *cm_gpu_stream(const struct cm_gpu *g)
{
    return g->stream;
}

/* ---- memory ---- */

static enum cm_status refuse_memory(const struct cm_gpu *g, size_t bytes)
{
    size_t free_bytes = 0, total = 0;

    (void)cudaGetLastError();
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess)
        (void)cudaGetLastError();
    return CM_FAIL(CM_ENOMEM,
                   "GPU %d: CUDA has no memory: %zu bytes asked for, %zu of %zu are free",
                   g->info.index, bytes, free_bytes, total);
}

enum cm_status cm_gpu_alloc(struct cm_gpu *g, size_t bytes, void **out)
{
    size_t whole = bytes > SIZE_MAX - BLOCK ? SIZE_MAX : (bytes + BLOCK - 1) / BLOCK * BLOCK;
    void *p = NULL;
    cudaError_t e;
    enum cm_status st;

    if (whole == 0 || whole == SIZE_MAX)
        return CM_FAIL(CM_EINVAL, "GPU %d: allocation of %zu bytes", g->info.index, bytes);
    e = cudaMalloc(&p, whole);
    if (e == cudaErrorMemoryAllocation)
        return refuse_memory(g, whole);
    st = cm_cuda_status(e, g->info.index, "allocating memory");
    if (st != CM_OK)
        return st;
    e = cudaMemsetAsync(p, 0, whole, g->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(g->stream);
    st = cm_cuda_status(e, g->info.index, "clearing memory");
    if (st != CM_OK) {
        cm_gpu_free(g, p);
        return st;
    }
    *out = p;
    return CM_OK;
}

void cm_gpu_free(struct cm_gpu *g, void *p)
{
    if (p != NULL && cudaFree(p) != cudaSuccess)
        cm_log("GPU %d: freeing memory: %s", g->info.index, cudaGetErrorString(cudaGetLastError()));
}

enum cm_status cm_gpu_memory(struct cm_gpu *g, size_t *free_bytes, size_t *total)
{
    return cm_cuda_status(cudaMemGetInfo(free_bytes, total), g->info.index, "asking for memory");
}

enum cm_status cm_gpu_pin(void *host, size_t bytes)
{
    cudaError_t e =
        cudaHostRegister(host, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);

    if (e == cudaErrorHostMemoryAlreadyRegistered) {
        (void)cudaGetLastError();
        return CM_OK;
    }
    if (e != cudaErrorMemoryAllocation)
        return cm_cuda_status(e, -1, "pinning host memory");
    (void)cudaGetLastError();
    return CM_FAIL(CM_ENOMEM, "CUDA: cannot pin %zu bytes of host memory (is 'ulimit -l' too low?)",
                   bytes);
}

void cm_gpu_unpin(void *host)
{
    if (cudaHostUnregister(host) != cudaSuccess)
        (void)cudaGetLastError(); /* by another rank of this process already */
}

enum cm_status cm_gpu_pinned(struct cm_gpu *g, void *host, void **device)
{
    return cm_cuda_status(cudaHostGetDevicePointer(device, host, 0), g->info.index,
                          "address of pinned memory");
}

static enum cm_status copy(struct cm_gpu *g, void *dst, const void *src, size_t bytes,
                           enum cudaMemcpyKind kind)
{
    cudaError_t e = cudaMemcpyAsync(dst, src, bytes, kind, g->stream);

    if (e == cudaSuccess)
        e = cudaStreamSynchronize(g->stream);
    return cm_cuda_status(e, g->info.index,
                          kind == cudaMemcpyHostToDevice ? "copying to the device"
                                                         : "copying from the device");
}

enum cm_status cm_gpu_put(struct cm_gpu *g, void *dst, const void *host, size_t bytes)
{
    return copy(g, dst, host, bytes, cudaMemcpyHostToDevice);
}

enum cm_status cm_gpu_get(struct cm_gpu *g, void *host, const void *src, size_t bytes)
{
    return copy(g, host, src, bytes, cudaMemcpyDeviceToHost);
}

/* ---- peers ---- */

/* The hardware or its driver has no such path: no failure, there is another way. */
static bool out_of_reach(cudaError_t e)
{
    if (e != cudaErrorPeerAccessUnsupported && e != cudaErrorTooManyPeers)
        return false;
    (void)cudaGetLastError();
    return true;
}

enum cm_status cm_gpu_peer(struct cm_gpu *g, int index, bool *ok)
{
    cudaError_t e;

    *ok = cm_gpu_reaches(g->info.index, index);
    if (!*ok || index == g->info.index)
        return CM_OK;
    e = cudaDeviceEnablePeerAccess(index, 0);
    *ok = !out_of_reach(e);
    if (e == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError();
        return CM_OK;
    }
    return *ok ? cm_cuda_status(e, g->info.index, "enabling peer access") : CM_OK;
}

/* Containers and batch systems may forbid it, though the devices could. */
static enum cm_status ipc_status(const struct cm_gpu *g, cudaError_t e, const char *what)
{
    enum cm_status st = cm_cuda_status(e, g->info.index, what);

    if (st != CM_OK)
        cm_log("GPU %d: CUDA IPC does not work here (processes in separate containers?): "
               "NCCL_P2P_DISABLE=1 goes through host memory",
               g->info.index);
    return st;
}

enum cm_status cm_gpu_export(struct cm_gpu *g, void *p, struct cm_gpu_handle *out)
{
    cudaIpcMemHandle_t h;
    enum cm_status st = ipc_status(g, cudaIpcGetMemHandle(&h, p), "exporting memory");

    _Static_assert(sizeof(h) == sizeof(out->bytes), "a handle of CUDA");
    if (st == CM_OK)
        memcpy(out->bytes, &h, sizeof(h));
    return st;
}

enum cm_status cm_gpu_import(struct cm_gpu *g, const struct cm_gpu_handle *h, void **out)
{
    cudaIpcMemHandle_t handle;
    cudaError_t e;

    *out = NULL;
    memcpy(&handle, h->bytes, sizeof(handle));
    e = cudaIpcOpenMemHandle(out, handle, cudaIpcMemLazyEnablePeerAccess);
    if (e != cudaSuccess)
        *out = NULL;
    return out_of_reach(e) ? CM_OK : ipc_status(g, e, "mapping a peer's memory");
}

void cm_gpu_unimport(struct cm_gpu *g, void *p)
{
    if (p != NULL && cudaIpcCloseMemHandle(p) != cudaSuccess)
        cm_log("GPU %d: unmapping a peer's memory: %s", g->info.index,
               cudaGetErrorString(cudaGetLastError()));
}
