/*
 * The engine: one thread that plays all devices of the process.
 *
 * A pass looks at the first item of every stream and starts what may start and
 * ends what has ended. Between passes the simulator runs all live kernels for a
 * while, without the mutex, so that host threads and other processes that wait
 * for a kernel's stores see them. If all kernels only poll, it sleeps more and
 * more, as they wait for somebody who may need this core.
 */
#include "fakecudart.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <thread>
#include <unistd.h>

enum {
    SWITCHES = 4096,    /* of fibers between two passes */
    PATIENT_ROUNDS = 8, /* rounds of nothing but polls before it sleeps */
    SLEEP_US = 20,      /* then, and twice that after each further round ... */
    DOUBLINGS = 4       /* ... this many times */
};

/* The simulator's functions, from the library of kernels. */
struct simulator {
    void *library;
    decltype(&cmsim_configure) configure;
    decltype(&cmsim_add) add;
    decltype(&cmsim_step) step;
    decltype(&cmsim_ended) ended;
    decltype(&cmsim_error) error;
    decltype(&cmsim_idle_hint) idle;
    decltype(&cmsim_reset) reset;
};

struct callback {
    cudaHostFn_t fn;
    void *data;
    std::shared_ptr<bool> returned;
};

struct engine {
    simulator sim;
    std::thread thread;
    bool poked, stop;
    bool reset;                   /* somebody waits for the simulator to be emptied */
    bool running;                 /* the simulator has live launches */
    bool failed;                  /* a failure was injected */
    std::condition_variable more; /* for the thread that calls host functions */
    std::deque<callback> callbacks;
};

/* Guarded by the runtime's mutex; sim is used by the engine's thread only. Never destroyed. */
static engine &eng()
{
    static engine *const e = new engine{};

    return *e;
}

/* ---- one pass -------------------------------------------------------------------------------- */

static bool advance_item(fake_item &item)
{
    bool moved = false;

    for (fake_run &run : item.runs) {
        bool ready = !run.ended;

        for (size_t earlier : run.node->after)
            ready = ready && item.runs[earlier].ended;
        if (!ready)
            continue;
        run.ended = run.node->task->advance(run);
        moved = moved || run.ended;
    }
    return moved;
}

static bool item_ended(const fake_item &item)
{
    return std::all_of(item.runs.begin(), item.runs.end(),
                       [](const fake_run &run) { return run.ended; });
}

/* Must the first item of `s` wait for an older one, because of the legacy stream? */
static bool held_back(const fake_device &d, const CUstream_st &s)
{
    uint64_t seq = s.items.front()->seq;
    const auto &legacy = d.null_stream.items;

    if (s.blocking)
        return !legacy.empty() && legacy.front()->seq < seq;
    if (!s.legacy)
        return false;
    return std::any_of(d.streams.begin(), d.streams.end(), [&](const auto &other) {
        return other->blocking && !other->items.empty() && other->items.front()->seq < seq;
    });
}

static bool advance_stream(const fake_device &d, CUstream_st &s)
{
    bool moved = false;

    while (!s.items.empty() && !held_back(d, s)) {
        fake_item &item = *s.items.front();

        if (item.exec != nullptr && item.exec->running == nullptr)
            item.exec->running = &item;
        if (item.exec != nullptr && item.exec->running != &item)
            break;
        moved = advance_item(item) || moved;
        if (!item_ended(item))
            break;
        if (item.exec != nullptr)
            item.exec->running = nullptr;
        s.done = item.seq;
        s.items.pop_front();
        moved = true;
    }
    return moved;
}

/* Older items first: they get the room for blocks. */
static bool advance_device(fake_device &d)
{
    std::vector<CUstream_st *> busy;
    bool moved = false;

    d.streams.remove_if([](const auto &s) { return s->destroyed && s->items.empty(); });
    if (!d.null_stream.items.empty())
        busy.push_back(&d.null_stream);
    for (const auto &s : d.streams) {
        if (!s->items.empty())
            busy.push_back(s.get());
    }
    std::sort(busy.begin(), busy.end(), [](const CUstream_st *a, const CUstream_st *b) {
        return a->items.front()->seq < b->items.front()->seq;
    });
    for (CUstream_st *s : busy)
        moved = advance_stream(d, *s) || moved;
    return moved;
}

static void pass()
{
    bool moved = true, any = false;

    while (moved) {
        moved = false;
        for (fake_device &d : fake().devices)
            d.full = false;
        for (fake_device &d : fake().devices)
            moved = advance_device(d) || moved;
        any = any || moved;
    }
    if (any)
        fake().changed.notify_all();
}

/* ---- failure, reset -------------------------------------------------------------------------- */

static void drop_items(CUstream_st &s)
{
    s.items.clear();
    s.done = fake().seq;
}

/* All that is enqueued counts as done, or its users would wait for ever. */
static void drop_all()
{
    if (eng().sim.reset != nullptr)
        eng().sim.reset();
    eng().running = false;
    for (fake_device &d : fake().devices) {
        d.used = 0;
        drop_items(d.null_stream);
        for (const auto &s : d.streams)
            drop_items(*s);
    }
    for (auto &event : fake().events)
        event.second->completed = event.second->recorded;
    for (auto &exec : fake().execs)
        exec.second->running = nullptr;
}

static void fail(cudaError_t e)
{
    if (fake().sticky == cudaSuccess)
        fake().sticky = e;
    drop_all();
    fake().changed.notify_all();
}

/* Whatever went wrong in a pass or while kernels ran. */
static void check_failure()
{
    const char *text = eng().running ? eng().sim.error() : nullptr;

    if (eng().failed)
        fail(cudaErrorLaunchFailure);
    eng().failed = false;
    if (text == nullptr)
        return;
    fprintf(stderr, "fakecuda %d: %s\n", (int)getpid(), text);
    fail(strstr(text, "misaligned") != nullptr ? cudaErrorMisalignedAddress
                                               : cudaErrorLaunchFailure);
}

void fake_engine_reset(fake_lock &lock)
{
    if (fake().pid == 0)
        return;
    eng().reset = true;
    fake_engine_poke();
    fake().changed.wait(lock, [] { return !eng().reset; });
}

int fake_sim_add(const cmsim_launch &launch)
{
    if (launch.first == 0 && fake_injected("kernel")) {
        eng().failed = true;
        return -1;
    }
    int id = eng().sim.add(&launch);
    eng().running = true; /* also if it was refused: then there is an error to report */
    return id;
}

bool fake_sim_ended(int id)
{
    return eng().sim.ended(id);
}

/* ---- the threads ----------------------------------------------------------------------------- */

/* Run kernels for a while, without the mutex. True: they only polled. */
static bool run_kernels(fake_lock &lock)
{
    lock.unlock();
    int live = eng().sim.step(SWITCHES);
    bool idle = eng().sim.idle();
    lock.lock();
    eng().running = live != 0; /* negative: an error */
    return idle;
}

static void rest(fake_lock &lock, unsigned idle_rounds)
{
    unsigned doublings = std::min(idle_rounds - PATIENT_ROUNDS, (unsigned)DOUBLINGS);

    fake().work.wait_for(lock, std::chrono::microseconds(SLEEP_US << doublings),
                         [] { return eng().poked; });
}

static void engine_main()
{
    fake_guard guard;
    fake_lock lock(fake().mutex);
    unsigned idle_rounds = 0;

    while (!eng().stop) {
        eng().poked = false;
        if (eng().reset) {
            drop_all();
            fake().sticky = cudaSuccess;
            eng().reset = false;
            fake().changed.notify_all();
        }
        pass();
        check_failure();
        if (!eng().running) {
            fake().work.wait(lock, [] { return eng().poked; });
            continue;
        }
        idle_rounds = run_kernels(lock) ? idle_rounds + 1 : 0;
        if (idle_rounds > PATIENT_ROUNDS)
            rest(lock, idle_rounds);
    }
    if (eng().sim.reset != nullptr)
        eng().sim.reset();
}

/* Functions of the host run one at a time, without the mutex, apart from the engine. */
static void callback_main()
{
    fake_lock lock(fake().mutex);

    for (;;) {
        eng().more.wait(lock, [] { return !eng().callbacks.empty(); });
        callback c = eng().callbacks.front();
        eng().callbacks.pop_front();
        lock.unlock();
        c.fn(c.data);
        lock.lock();
        *c.returned = true;
        fake_engine_poke();
    }
}

void fake_callback(cudaHostFn_t fn, void *data, std::shared_ptr<bool> returned)
{
    eng().callbacks.push_back({fn, data, std::move(returned)});
    eng().more.notify_one();
}

void fake_engine_poke()
{
    eng().poked = true;
    fake().work.notify_one();
}

/* At exit, before the library of kernels is torn down under the engine. */
static void stop()
{
    if (fake().pid != getpid())
        return;
    {
        fake_lock lock(fake().mutex);
        eng().stop = true;
        fake_engine_poke();
    }
    eng().thread.join();
}

void *fake_symbol(const std::string &name)
{
    return eng().sim.library != nullptr ? dlsym(eng().sim.library, name.c_str()) : nullptr;
}

template <class Function> static bool bind(Function *out, const char *name)
{
    *out = (Function)fake_symbol(name);
    return *out != nullptr;
}

static cudaError_t open_kernels()
{
    simulator &sim = eng().sim;
    cmsim_options options = {};

    if (*fake().set.kernels == '\0')
        return cudaSuccess;
    sim.library = dlopen(fake().set.kernels, RTLD_NOW | RTLD_LOCAL);
    if (sim.library == nullptr) {
        fprintf(stderr, "fakecuda: FAKECUDA_KERNELS: %s\n", dlerror());
        return cudaErrorInitializationError;
    }
    bool ok = bind(&sim.configure, "cmsim_configure") && bind(&sim.add, "cmsim_add") &&
              bind(&sim.step, "cmsim_step") && bind(&sim.ended, "cmsim_ended") &&
              bind(&sim.error, "cmsim_error") && bind(&sim.idle, "cmsim_idle_hint") &&
              bind(&sim.reset, "cmsim_reset");
    if (!ok) {
        fprintf(stderr, "fakecuda: %s has no simulator in it\n", fake().set.kernels);
        return cudaErrorInitializationError;
    }
    options.seed = fake().set.seed;
    options.external = true;
    sim.configure(&options);
    return cudaSuccess;
}

cudaError_t fake_engine_start()
{
    if (fake().pid != 0)
        return cudaSuccess;
    cudaError_t e = open_kernels();
    if (e != cudaSuccess)
        return e;
    fake().pid = getpid();
    eng().thread = std::thread(engine_main);
    std::thread(callback_main).detach();
    atexit(stop);
    return cudaSuccess;
}
