/* The fake runtime: devices, memory, copies, memory of other processes, failures. */
#include "fakecudart_test.h"

#include <signal.h>

enum { GRAIN = 2 << 20 };

/* ---- devices --------------------------------------------------------------------------------- */

static void devices_have_facts(void)
{
    struct cudaDeviceProp a, b;
    char id[16];
    int n = 0, value = 0;

    OK(cudaGetDeviceCount(&n));
    CHECK(n == 3, "%d", n);
    OK(cudaGetDeviceProperties(&a, 0));
    OK(cudaGetDeviceProperties(&b, 2));
    CHECK(memcmp(&a.uuid, &b.uuid, sizeof(a.uuid)) != 0, "the same uuid");
    CHECK(a.multiProcessorCount == 5 && a.major == 8 && a.minor == 6, "%d SMs, %d.%d",
          a.multiProcessorCount, a.major, a.minor);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1));
    CHECK(value == 5, "%d", value);
    OK(cudaDeviceGetPCIBusId(id, sizeof(id), 2));
    CHECK(strcmp(id, "0000:03:00.0") == 0, "%s", id);
    OK(cudaDeviceGetByPCIBusId(&value, id));
    CHECK(value == 2, "%d", value);
    GIVES(cudaSetDevice(3), cudaErrorInvalidDevice);
    GIVES(cudaGetLastError(), cudaErrorInvalidDevice);
    OK(cudaGetLastError());
    OK(cudaSetDevice(2));
    OK(cudaGetDevice(&value));
    CHECK(value == 2, "%d", value);
}

static void visible_devices_are_renumbered(void)
{
    char id[16];
    int n = 0;

    OK(cudaGetDeviceCount(&n));
    CHECK(n == 2, "%d", n);
    OK(cudaDeviceGetPCIBusId(id, sizeof(id), 0));
    CHECK(strcmp(id, "0000:03:00.0") == 0, "%s", id);
}

static void no_usable_driver(void)
{
    int n = 7, version = 7;

    GIVES(cudaGetDeviceCount(&n), cudaErrorInsufficientDriver);
    CHECK(n == 0, "%d", n);
    OK(cudaDriverGetVersion(&version));
    CHECK(version == 12020 || version == 0, "%d", version);
    OK(cudaRuntimeGetVersion(&version));
    CHECK(version / 1000 == 13, "%d", version);
    GIVES(cudaMalloc((void **)&n, 1), cudaErrorInsufficientDriver);
}

static void no_device(void)
{
    int n = 7;

    GIVES(cudaGetDeviceCount(&n), cudaErrorNoDevice);
    CHECK(n == 0, "%d", n);
}

static void peers(void)
{
    int can = 7;

    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1, "0 to 1: %d", can);
    OK(cudaDeviceCanAccessPeer(&can, 0, 2));
    CHECK(can == 0, "0 to 2: %d", can);
    OK(cudaDeviceCanAccessPeer(&can, 1, 1));
    CHECK(can == 0, "1 to itself: %d", can);
    OK(cudaDeviceEnablePeerAccess(1, 0));
    GIVES(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    GIVES(cudaDeviceEnablePeerAccess(2, 0), cudaErrorPeerAccessUnsupported);
    GIVES(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    OK(cudaDeviceDisablePeerAccess(1));
    GIVES(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void memory_is_cut_from_blocks(void)
{
    char *a = NULL, *b = NULL, *c = NULL, seen[16] = "";
    size_t left = 0, total = 0;

    OK(cudaMalloc((void **)&a, 1000));
    OK(cudaMalloc((void **)&b, 1000));
    CHECK((uintptr_t)a % GRAIN == 0 && b == a + 1024, "%p %p", (void *)a, (void *)b);
    OK(cudaMalloc((void **)&c, GRAIN));
    CHECK((uintptr_t)c % GRAIN == 0, "%p", (void *)c);
    OK(cudaMemGetInfo(&left, &total));
    CHECK(total - left == 2 * GRAIN, "%zu of %zu", left, total);
    OK(cudaMemcpy(seen, b, sizeof(seen), cudaMemcpyDeviceToHost));
    CHECK(seen[0] != 0 && seen[15] == seen[0], "new memory: %d", seen[0]);
    GIVES(cudaMalloc((void **)&c, total), cudaErrorMemoryAllocation);
    CHECK(c == NULL, "%p", (void *)c);
    GIVES(cudaFree(a + 1), cudaErrorInvalidValue);
    OK(cudaFree(a));
    GIVES(cudaFree(a), cudaErrorInvalidValue);
    OK(cudaFree(b));
    OK(cudaFree(NULL));
    OK(cudaMemGetInfo(&left, &total));
    CHECK(total - left == GRAIN, "%zu of %zu", left, total);
}

static void host_cannot_touch_device_memory(void)
{
    char *p = NULL;
    int status = 0;

    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer may have it */
        if (cudaMalloc((void **)&p, 64) == cudaSuccess)
            *(volatile char *)p = 1;
        _exit(0);
    }
    waitpid(pid, &status, 0);
    bool guarded = system("grep -qw ospke /proc/cpuinfo") == 0;
    CHECK(!guarded || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV), "status %x", status);
}

static void host_memory_is_pinned(void)
{
    struct cudaPointerAttributes attr;
    char *own = aligned_alloc(4096, 8192), *made = NULL, *device = NULL, *p = NULL;

    OK(cudaHostAlloc((void **)&made, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
    OK(cudaHostGetDevicePointer((void **)&device, made + 8, 0));
    CHECK(device == made + 8, "%p %p", (void *)device, (void *)made);
    OK(cudaPointerGetAttributes(&attr, made + 100));
    CHECK(attr.type == cudaMemoryTypeHost, "type %d", attr.type);
    GIVES(cudaHostGetDevicePointer((void **)&device, own, 0), cudaErrorInvalidValue);
    OK(cudaPointerGetAttributes(&attr, own));
    CHECK(attr.type == cudaMemoryTypeUnregistered, "type %d", attr.type);
    OK(cudaHostRegister(own, 8192, cudaHostRegisterMapped));
    GIVES(cudaHostRegister(own + 4096, 4096, 0), cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostGetDevicePointer((void **)&device, own, 0));
    GIVES(cudaFreeHost(own), cudaErrorInvalidValue);
    OK(cudaHostUnregister(own));
    GIVES(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
    OK(cudaMalloc((void **)&p, 64));
    OK(cudaPointerGetAttributes(&attr, p));
    CHECK(attr.type == cudaMemoryTypeDevice && attr.device == 0, "type %d", attr.type);
    OK(cudaFreeHost(made));
    free(own);
}

static void copies_are_checked(void)
{
    char out[64], in[64], *a = NULL, *b = NULL;

    for (int i = 0; i < 64; i++)
        in[i] = (char)i;
    OK(cudaMalloc((void **)&a, 64));
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&b, 64));
    OK(cudaMemcpyAsync(a, in, 64, cudaMemcpyHostToDevice, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpyPeer(b, 1, a, 0, 64));
    OK(cudaMemset(b, 9, 4));
    OK(cudaMemcpy(out, b, 64, cudaMemcpyDefault));
    CHECK(out[0] == 9 && out[3] == 9 && out[4] == 4 && out[63] == 63, "%d %d %d %d", out[0], out[3],
          out[4], out[63]);
    GIVES(cudaMemcpyPeer(b, 0, a, 1, 64), cudaErrorInvalidValue);
    GIVES(cudaMemcpy(out, b, 65, cudaMemcpyDefault), cudaErrorInvalidValue);
    GIVES(cudaMemcpy(b + 60, in, 5, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    GIVES(cudaMemcpy(out, b, 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    GIVES(cudaMemcpy(out, in, 64, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    GIVES(cudaMemset(out, 0, 64), cudaErrorInvalidValue);
    OK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
}

/* ---- other processes ------------------------------------------------------------------------- */

enum { ROUNDS = 30, OFFSET = 4096 };

struct offer {
    cudaIpcMemHandle_t handle;
    size_t offset;
};

/* A flag at an offset in a block of device memory, zeroed, and its offer. */
static char *export_flag(struct offer *out)
{
    char *before = NULL, *flag = NULL;

    OK(cudaMalloc((void **)&before, OFFSET));
    OK(cudaMalloc((void **)&flag, 64));
    OK(cudaMemset(flag, 0, 64));
    OK(cudaDeviceSynchronize());
    OK(cudaIpcGetMemHandle(&out->handle, flag));
    out->offset = OFFSET;
    return flag;
}

static void play(char *mine, const struct offer *theirs)
{
    char *base = NULL, *again = NULL;

    OK(cudaIpcOpenMemHandle((void **)&base, theirs->handle, cudaIpcMemLazyEnablePeerAccess));
    OK(cudaIpcOpenMemHandle((void **)&again, theirs->handle, cudaIpcMemLazyEnablePeerAccess));
    CHECK(again == base, "%p %p", (void *)base, (void *)again);
    if (base == NULL)
        return;
    struct fk_pingpong args = {(uintptr_t)mine, (uintptr_t)(base + theirs->offset), ROUNDS};
    OK(launch(&kernel_pingpong, 1, 32, &args, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaIpcCloseMemHandle(again));
    OK(cudaIpcCloseMemHandle(base));
    GIVES(cudaIpcCloseMemHandle(base), cudaErrorInvalidValue);
}

/* Two processes with a pipe each way; `side` tells which one this is. */
static int pair(int in[2])
{
    int there[2], back[2];

    if (pipe(there) != 0 || pipe(back) != 0)
        return -1;
    int side = fork() == 0;
    in[0] = side == 0 ? back[0] : there[0];
    in[1] = side == 0 ? there[1] : back[1];
    close(side == 0 ? back[1] : there[1]);
    close(side == 0 ? there[0] : back[0]);
    return side;
}

static bool swap(const int fds[2], const struct offer *mine, struct offer *theirs)
{
    return write(fds[1], mine, sizeof(*mine)) == sizeof(*mine) &&
           read(fds[0], theirs, sizeof(*theirs)) == sizeof(*theirs);
}

/* The end of a case with two processes: the first one answers for both. */
static void part(int side)
{
    int status = 0;

    if (side == 1)
        _exit(test_state.broken ? 1 : 0);
    wait(&status);
    CHECK(status == 0, "the other process: %x", status);
}

static void processes_map_each_others_memory(void)
{
    struct offer mine, theirs;
    int fds[2], side = pair(fds);

    OK(cudaSetDevice(side));
    char *flag = export_flag(&mine);
    GIVES(cudaIpcOpenMemHandle((void **)&flag, mine.handle, cudaIpcMemLazyEnablePeerAccess),
          cudaErrorDeviceUninitialized);
    CHECK(swap(fds, &mine, &theirs), "no offer");
    play(flag, &theirs);
    CHECK(swap(fds, &mine, &theirs), "the other one left"); /* free only after the other's close */
    OK(cudaFree(flag));
    part(side);
}

static void far_devices_map_nothing(void)
{
    struct offer mine, theirs;
    int fds[2], side = pair(fds);
    void *base = NULL;

    OK(cudaSetDevice(side));
    export_flag(&mine);
    CHECK(swap(fds, &mine, &theirs), "no offer");
    GIVES(cudaIpcOpenMemHandle(&base, theirs.handle, cudaIpcMemLazyEnablePeerAccess),
          cudaErrorPeerAccessUnsupported);
    CHECK(swap(fds, &mine, &theirs), "the other one left");
    part(side);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void calls_fail_on_request(void)
{
    void *p = NULL;

    OK(cudaMalloc(&p, 64));
    GIVES(cudaMalloc(&p, 64), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&p, 64));
    GIVES(cudaStreamQuery(NULL), cudaErrorUnknown);
    GIVES(cudaStreamQuery(NULL), cudaErrorUnknown);
}

static void kernel_failure_sticks(void)
{
    uint32_t *words = NULL;
    void *p = NULL;

    OK(cudaMalloc((void **)&words, 64));
    struct fk_add args = {(uintptr_t)words, 16, 1};
    OK(launch(&kernel_add, 1, 32, &args, NULL));
    OK(cudaDeviceSynchronize());
    OK(launch(&kernel_add, 1, 32, &args, NULL));
    GIVES(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    GIVES(cudaMalloc(&p, 64), cudaErrorLaunchFailure);
    GIVES(cudaGetLastError(), cudaErrorLaunchFailure);
    GIVES(cudaGetLastError(), cudaErrorLaunchFailure);
    OK(cudaDeviceReset());
    OK(cudaMalloc(&p, 64));
}

static void crooked_access_fails(void)
{
    char *p = NULL;

    if (freopen("/dev/null", "w", stderr) == NULL) /* the simulator's verdict goes there */
        return;
    OK(cudaMalloc((void **)&p, 64));
    struct fk_crooked args = {(uintptr_t)p + 8, (uintptr_t)p};
    OK(launch(&kernel_crooked, 1, 32, &args, NULL));
    GIVES(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
}

static void forked_child_has_no_context(void)
{
    void *p = NULL;
    int status = 0;

    OK(cudaMalloc(&p, 64));
    pid_t pid = fork();
    if (pid == 0)
        _exit(cudaMalloc(&p, 64) == cudaErrorInitializationError ? 0 : 1);
    waitpid(pid, &status, 0);
    CHECK(status == 0, "status %x", status);
}

/* exit() while a kernel runs for ever. */
static void exit_ends_kernels(void)
{
    _Atomic uint64_t *flags = new_flags();

    OK(launch_wait(flags, 1, NULL));
    await(&flags[1], 1);
    exit(test_state.broken ? 1 : 0);
}

int main(int argc, char **argv)
{
    static const struct case_row rows[] = {
        {"devices_have_facts",
         devices_have_facts,
         {"FAKECUDA_DEVICES=3", "FAKECUDA_SMS=5", "FAKECUDA_CC=86"}},
        {"visible_devices_are_renumbered",
         visible_devices_are_renumbered,
         {"FAKECUDA_DEVICES=3", "CUDA_VISIBLE_DEVICES=2,0,9,1"}},
        {"old_driver", no_usable_driver, {"FAKECUDA_DRIVER=12020"}},
        {"no_driver", no_usable_driver, {"FAKECUDA_DRIVER=0"}},
        {"no_device", no_device, {"FAKECUDA_DEVICES=0"}},
        {"peers", peers, {"FAKECUDA_DEVICES=3", "FAKECUDA_NO_PEER=1-2,2-0"}},
        {"memory_is_cut_from_blocks", memory_is_cut_from_blocks, {"FAKECUDA_MEM=16777216"}},
        {"host_cannot_touch_device_memory", host_cannot_touch_device_memory, {NULL}},
        {"host_memory_is_pinned", host_memory_is_pinned, {NULL}},
        {"copies_are_checked", copies_are_checked, {NULL}},
        {"processes_map_each_others_memory", processes_map_each_others_memory, {NULL}},
        {"far_devices_map_nothing", far_devices_map_nothing, {"FAKECUDA_NO_PEER=all"}},
        {"calls_fail_on_request",
         calls_fail_on_request,
         {"FAKECUDA_FAIL=cudaMalloc:2,cudaStreamQuery:0"}},
        {"kernel_failure_sticks", kernel_failure_sticks, {"FAKECUDA_FAIL=kernel:2"}},
        {"crooked_access_fails", crooked_access_fails, {NULL}},
        {"forked_child_has_no_context", forked_child_has_no_context, {NULL}},
        {"exit_ends_kernels", exit_ends_kernels, {NULL}},
    };

    return run_cases(rows, sizeof(rows) / sizeof(rows[0]), argc > 1 ? argv[1] : NULL);
}
