/* The fake runtime: launches, streams, events. */
#include "fakecudart_test.h"

#include <pthread.h>
#include <time.h>

/* ---- launches -------------------------------------------------------------------------------- */

static void launches_run(void)
{
    uint32_t *words = new_words(1000);
    struct fk_add args = {(uintptr_t)words, 1000, 1};
    void *list[] = {&args};
    dim3 grid = {3, 2, 1}, block = {64, 1, 1};
    cudaLaunchAttribute attr = {.id = cudaLaunchAttributeCooperative, .val = {.cooperative = 1}};
    cudaLaunchConfig_t config = {
        .gridDim = {4, 1, 1}, .blockDim = block, .attrs = &attr, .numAttrs = 1};

    OK(launch(&kernel_add, 3, 96, &args, NULL));
    args.value = 10; /* the first launch has its own copy */
    OK(cudaLaunchKernelExC(&config, &kernel_add, list));
    args.value = 100;
    OK(cudaLaunchCooperativeKernel(&kernel_add, config.gridDim, block, list, 0, cudaStreamLegacy));
    expect_words(words, 1000, 111);
    grid.y = 1;
    GIVES(launch(&kernel_absent, 1, 32, &args, NULL), cudaErrorNoKernelImageForDevice);
    GIVES(launch(&args, 1, 32, &args, NULL), cudaErrorInvalidDeviceFunction);
    GIVES(launch(&kernel_add, 0, 32, &args, NULL), cudaErrorInvalidConfiguration);
    GIVES(launch(&kernel_add, 1, 2048, &args, NULL), cudaErrorInvalidConfiguration);
    GIVES(launch(&kernel_add, 1, 1024, &args, NULL), cudaErrorLaunchOutOfResources);
    GIVES(cudaLaunchKernel(&kernel_add, grid, block, list, 100000, NULL), cudaErrorInvalidValue);
    OK(cudaFuncSetAttribute(&kernel_add, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    OK(cudaLaunchKernel(&kernel_add, grid, block, list, 100000, NULL));
    cudaStream_t s = new_stream();
    OK(cudaDeviceSynchronize());
    OK(cudaSetDevice(1));
    GIVES(launch(&kernel_add, 1, 32, &args, s), cudaErrorInvalidResourceHandle);
    expect_words(words, 1000, 211);
}

/* The second block of an SM's worth waits although both could be needed: CUDA promises nothing. */
static void blocks_wait_for_room(void)
{
    _Atomic uint64_t *flags = new_flags();
    struct fk_wait args = {
        .flag = (uintptr_t)&flags[0], .want = 1, .arrived = (uintptr_t)&flags[1]};
    void *list[] = {&args};
    dim3 five = {5, 1, 1}, four = {4, 1, 1}, block = {256, 1, 1};
    cudaStream_t a = new_stream(), b = new_stream();
    int per_sm = 0;

    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, &kernel_wait, 256, 0));
    CHECK(per_sm == 4, "%d", per_sm);
    GIVES(cudaLaunchCooperativeKernel(&kernel_wait, five, block, list, 0, a),
          cudaErrorCooperativeLaunchTooLarge);
    OK(launch_wait(flags, 6, a));
    await(&flags[1], 4);
    OK(cudaLaunchCooperativeKernel(&kernel_wait, four, block, list, 0, b));
    linger();
    CHECK(atomic_load(&flags[1]) == 4, "%d blocks run", (int)atomic_load(&flags[1]));
    atomic_store(&flags[0], 1);
    OK(cudaDeviceSynchronize());
    CHECK(atomic_load(&flags[1]) == 10, "%d blocks ran", (int)atomic_load(&flags[1]));
}

struct other {
    cudaStream_t stream;
    atomic_bool launched;
};

static void *launch_other(void *arg)
{
    struct other *o = arg;
    struct fk_raise args = {(uintptr_t)new_flags(), 1};

    OK(launch(&kernel_raise, 1, 32, &args, o->stream));
    atomic_store(&o->launched, true);
    return NULL;
}

/* A kernel that is not loaded yet waits for the device; a loaded one does not. */
static void first_launch_loads(void)
{
    _Atomic uint64_t *flags = new_flags();
    struct cudaFuncAttributes attr;
    cudaStream_t a = new_stream(), b = new_stream();
    struct other other = {.stream = b};
    pthread_t thread;

    OK(launch_wait(flags, 1, a));
    await(&flags[1], 1);
    pthread_create(&thread, NULL, launch_other, &other);
    linger();
    CHECK(!atomic_load(&other.launched), "it did not wait");
    atomic_store(&flags[0], 1);
    pthread_join(thread, NULL);
    OK(cudaDeviceSynchronize());
    OK(cudaFuncGetAttributes(&attr, &kernel_raise));
    atomic_store(&flags[0], 0);
    OK(launch_wait(flags, 1, a));
    launch_other(&other);
    OK(cudaStreamSynchronize(b));
    GIVES(cudaStreamQuery(a), cudaErrorNotReady);
    atomic_store(&flags[0], 1);
    OK(cudaStreamSynchronize(a));
}

/* ---- streams, events ------------------------------------------------------------------------- */

static void events_order_streams(void)
{
    _Atomic uint64_t *flags = new_flags();
    uint32_t *words = new_words(8);
    struct fk_add args = {(uintptr_t)words, 8, 1};
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t start, end, later;
    struct cudaFuncAttributes attr;
    float ms = 0;

    OK(cudaFuncGetAttributes(&attr, &kernel_add)); /* loaded, or its launch would wait */
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventCreateWithFlags(&later, cudaEventDisableTiming));
    OK(cudaEventQuery(end));
    GIVES(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(start, a));
    OK(launch_wait(flags, 2, a));
    OK(cudaEventRecord(end, a));
    OK(cudaStreamWaitEvent(b, end, 0));
    OK(launch(&kernel_add, 1, 32, &args, b));
    OK(cudaEventSynchronize(start));
    await(&flags[1], 2);
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); /* what elapses between the events */
    GIVES(cudaEventQuery(end), cudaErrorNotReady);
    GIVES(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    GIVES(cudaStreamQuery(b), cudaErrorNotReady);
    atomic_store(&flags[0], 1);
    OK(cudaStreamSynchronize(b));
    OK(cudaEventQuery(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms >= 3 && ms < 2000, "%g ms", (double)ms);
    GIVES(cudaEventElapsedTime(&ms, start, later), cudaErrorInvalidResourceHandle);
    OK(cudaSetDevice(1));
    GIVES(cudaEventRecord(end, NULL), cudaErrorInvalidResourceHandle);
    expect_words(words, 8, 1);
    OK(cudaStreamDestroy(b));
    GIVES(cudaStreamSynchronize(b), cudaErrorInvalidResourceHandle);
}

/* The legacy stream waits for blocking streams and they for it; others are free. */
static void legacy_stream_is_ordered(void)
{
    _Atomic uint64_t *flags = new_flags();
    struct fk_raise first = {(uintptr_t)&flags[2], 1}, second = {(uintptr_t)&flags[3], 1};
    struct cudaFuncAttributes attr;
    cudaStream_t blocking, blocking2, other = new_stream();

    OK(cudaFuncGetAttributes(&attr, &kernel_raise));
    OK(cudaStreamCreate(&blocking));
    OK(cudaStreamCreate(&blocking2));
    OK(launch_wait(flags, 1, blocking));
    OK(launch(&kernel_raise, 1, 32, &first, NULL));
    OK(launch(&kernel_raise, 1, 32, &second, blocking2));
    struct fk_raise third = {(uintptr_t)&flags[4], 1};
    OK(launch(&kernel_raise, 1, 32, &third, other));
    await(&flags[4], 1);
    linger();
    CHECK(atomic_load(&flags[2]) == 0 && atomic_load(&flags[3]) == 0, "not held back");
    atomic_store(&flags[0], 1);
    OK(cudaStreamSynchronize(blocking2));
    CHECK(atomic_load(&flags[2]) == 1 && atomic_load(&flags[3]) == 1, "not run");
}

struct filler {
    _Atomic uint64_t *flags;
    cudaStream_t stream;
    uint32_t *words;
    atomic_int enqueued;
};

enum { FILLS = 12 };

static void *fill_queue(void *arg)
{
    struct filler *f = arg;

    for (int i = 0; i < FILLS; i++) {
        OK(cudaMemsetAsync(f->words, i, 4, f->stream));
        atomic_fetch_add(&f->enqueued, 1);
    }
    return NULL;
}

static void full_queue_blocks(void)
{
    struct filler f = {.flags = new_flags(), .stream = new_stream(), .words = new_words(1)};
    pthread_t thread;

    OK(launch_wait(f.flags, 1, f.stream));
    await(&f.flags[1], 1);
    pthread_create(&thread, NULL, fill_queue, &f);
    while (atomic_load(&f.enqueued) < 4)
        sched_yield();
    linger();
    CHECK(atomic_load(&f.enqueued) == 4, "%d enqueued", atomic_load(&f.enqueued));
    atomic_store(&f.flags[0], 1);
    pthread_join(thread, NULL);
    OK(cudaStreamSynchronize(f.stream));
    expect_words(f.words, 1, 0x0b0b0b0b);
}

/* A host that only spins sees a kernel's store, and a kernel the host's. */
static void spinning_host_sees_kernels(void)
{
    _Atomic uint64_t *flags = new_flags();
    struct fk_pingpong args = {(uintptr_t)&flags[0], (uintptr_t)&flags[1], 50};

    OK(launch(&kernel_pingpong, 1, 32, &args, NULL));
    for (uint64_t i = 1; i <= 50; i++) {
        while (atomic_load(&flags[1]) < i)
            ;
        atomic_store(&flags[0], i);
    }
    OK(cudaDeviceSynchronize());
}

/* The copy waits for the kernel, but takes its pageable source at the call. */
static void pageable_source_is_taken_at_once(void)
{
    _Atomic uint64_t *flags = new_flags();
    uint32_t *words = new_words(1), source = 5;
    cudaStream_t s = new_stream();

    OK(launch_wait(flags, 1, s));
    OK(cudaMemcpyAsync(words, &source, sizeof(source), cudaMemcpyHostToDevice, s));
    source = 6;
    atomic_store(&flags[0], 1);
    OK(cudaStreamSynchronize(s));
    expect_words(words, 1, 5);
}

struct note {
    _Atomic uint64_t *flags;
    int place, order[3];
};

static void write_note(void *arg)
{
    struct note *n = arg;

    n->order[n->place++] = (int)atomic_load(&n->flags[2]);
    atomic_store(&n->flags[0], 1);
}

/* A function of the host runs in its turn; it lets a kernel of another stream end. */
static void host_functions_run_in_order(void)
{
    struct note n = {.flags = new_flags()};
    struct fk_raise args = {(uintptr_t)&n.flags[2], 7};
    cudaStream_t a = new_stream(), b = new_stream();

    OK(launch(&kernel_raise, 1, 32, &args, a));
    OK(launch_wait(n.flags, 1, b));
    OK(cudaLaunchHostFunc(a, write_note, &n));
    OK(cudaStreamSynchronize(b));
    OK(cudaStreamSynchronize(a));
    CHECK(n.place == 1 && n.order[0] == 7, "%d calls, saw %d", n.place, n.order[0]);
}

int main(int argc, char **argv)
{
    static const struct case_row rows[] = {
        {"launches_run", launches_run, {NULL}},
        {"blocks_wait_for_room", blocks_wait_for_room, {"FAKECUDA_SMS=1"}},
        {"first_launch_loads", first_launch_loads, {NULL}},
        {"events_order_streams", events_order_streams, {NULL}},
        {"legacy_stream_is_ordered", legacy_stream_is_ordered, {NULL}},
        {"full_queue_blocks", full_queue_blocks, {"FAKECUDA_QUEUE=5"}},
        {"spinning_host_sees_kernels", spinning_host_sees_kernels, {NULL}},
        {"pageable_source_is_taken_at_once", pageable_source_is_taken_at_once, {NULL}},
        {"host_functions_run_in_order", host_functions_run_in_order, {NULL}},
    };

    return run_cases(rows, sizeof(rows) / sizeof(rows[0]), argc > 1 ? argv[1] : NULL);
}
