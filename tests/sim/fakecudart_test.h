/*
 * What the tests of the fake runtime share. Every case is a process of its own,
 * with its own settings; inside, CHECK() of tests/test.h works as always. The
 * kernels are registered by hand, as nvcc's code would: no nvcc is needed.
 */
#ifndef TESTS_SIM_FAKECUDART_TEST_H
#define TESTS_SIM_FAKECUDART_TEST_H

#include <cuda_runtime_api.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test.h"
#include "fake_kernels.h"

enum { CASE_SECONDS = 20 };

struct case_row {
    const char *name;
    void (*run)(void);
    const char *settings[5]; /* "NAME=value" */
};

/* Check that a call gives this error. */
#define GIVES(call, want)                                                                      \
    do {                                                                                       \
        cudaError_t gave_ = (call);                                                            \
        CHECK(gave_ == (want), "%s, not %s", cudaGetErrorName(gave_), cudaGetErrorName(want)); \
    } while (0)
#define OK(call) GIVES(call, cudaSuccess)

/* ---- kernels --------------------------------------------------------------------------------- */

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *tid, void *bid, void *block, void *grid, int *warp);

/* Their addresses stand for the kernels. */
static const char kernel_add, kernel_wait, kernel_raise, kernel_pingpong, kernel_crooked,
    kernel_absent;

static inline void register_kernels(void)
{
    static const struct {
        const char *host, *name;
    } rows[] = {
        {&kernel_add, "fk_add"},         {&kernel_wait, "fk_wait"},
        {&kernel_raise, "fk_raise"},     {&kernel_pingpong, "fk_pingpong"},
        {&kernel_crooked, "fk_crooked"}, {&kernel_absent, "fk_absent"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        __cudaRegisterFunction(NULL, rows[i].host, NULL, rows[i].name, -1, NULL, NULL, NULL, NULL,
                               NULL);
    }
}

/* Launch with one struct of arguments. */
static inline cudaError_t launch(const void *kernel, unsigned blocks, unsigned threads, void *args,
                                 cudaStream_t stream)
{
    dim3 grid = {blocks, 1, 1}, block = {threads, 1, 1};
    void *list[] = {args};

    return cudaLaunchKernel(kernel, grid, block, list, 0, stream);
}

/* ---- memory, streams ------------------------------------------------------------------ */

enum { FLAGS = 16 };

/* Zeroed words that host and kernels share. */
static inline _Atomic uint64_t *new_flags(void)
{
    void *p = NULL;

    OK(cudaHostAlloc(&p, FLAGS * sizeof(uint64_t), cudaHostAllocMapped));
    if (p != NULL)
        memset(p, 0, FLAGS * sizeof(uint64_t));
    return (_Atomic uint64_t *)p;
}

static inline void await(_Atomic uint64_t *flag, uint64_t want)
{
    while (atomic_load(flag) < want)
        sched_yield();
}

/* Long enough for what must not happen to show, if it were to. */
static inline void linger(void)
{
    for (int i = 0; i < 2000; i++)
        sched_yield();
}

static inline cudaStream_t new_stream(void)
{
    cudaStream_t s = NULL;

    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

/* n words of device memory, zeroed. */
static inline uint32_t *new_words(uint32_t n)
{
    uint32_t *p = NULL;

    OK(cudaMalloc((void **)&p, n * sizeof(*p)));
    OK(cudaMemset(p, 0, n * sizeof(*p)));
    OK(cudaDeviceSynchronize());
    return p;
}

static inline void expect_words(const uint32_t *device, uint32_t n, uint32_t want)
{
    uint32_t seen[1024];

    OK(cudaMemcpy(seen, device, n * sizeof(*seen), cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < n; i++) {
        if (seen[i] != want) {
            CHECK(false, "word %u: %u, not %u", i, seen[i], want);
            return;
        }
    }
}

/* A launch of fk_wait on flags: [0] is what it waits for, [1] counts the blocks that arrived. */
static inline cudaError_t launch_wait(_Atomic uint64_t *flags, unsigned blocks, cudaStream_t stream)
{
    struct fk_wait args = {
        .flag = (uintptr_t)&flags[0], .want = 1, .arrived = (uintptr_t)&flags[1]};

    return launch(&kernel_wait, blocks, 256, &args, stream);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* The library of kernels lies beside this program. */
static inline void set_kernels(void)
{
    char path[PATH_MAX], library[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    path[n < 0 ? 0 : n] = '\0';
    *strrchr(path, '/') = '\0';
    snprintf(library, sizeof(library), "%s/libfake_kernels.so", path);
    setenv("FAKECUDA_KERNELS", library, 1);
}

static inline void run_child(const struct case_row *row)
{
    set_kernels();
    for (int i = 0; i < 5 && row->settings[i] != NULL; i++)
        putenv((char *)row->settings[i]);
    alarm(CASE_SECONDS);
    register_kernels();
    row->run();
    _exit(test_state.broken ? 1 : 0);
}

static inline void run_case(const struct case_row *row)
{
    int status = -1;

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_child(row);
    waitpid(pid, &status, 0);
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ok)
        test_state.failed++;
    else
        test_state.passed++;
    if (WIFSIGNALED(status))
        printf("%s: signal %d\n", row->name, WTERMSIG(status));
    printf("%s %s\n", ok ? "ok    " : "not ok", row->name);
    fflush(stdout);
}

static inline int run_cases(const struct case_row *rows, size_t n, const char *only)
{
    for (size_t i = 0; i < n; i++) {
        if (only == NULL || strstr(rows[i].name, only) != NULL)
            run_case(&rows[i]);
    }
    return test_end();
}

#endif
