/*
 * Kernels: how a program registers them, what they need, launches.
 *
 * A device has room for so many blocks of a kernel as its SMs hold. Blocks of an
 * ordinary launch start as others end and there is room, in the order of their
 * numbers and of the launches; a cooperative launch starts as a whole or is refused.
 */
#include "fakecudart.h"

#include <algorithm>
#include <cstring>

/* ---- registration: called by nvcc's code before main ----------------------------------------- */

extern "C" void **__cudaRegisterFatBinary(void *)
{
    static void *handle;

    return &handle;
}

extern "C" void __cudaRegisterFatBinaryEnd(void **)
{
}

extern "C" void __cudaUnregisterFatBinary(void **)
{
}

extern "C" char __cudaInitModule(void **)
{
    return 1;
}

/* nvcc's code passes six more arguments, which are of no use here and the caller's to remove. */
extern "C" void __cudaRegisterFunction(void **, const char *host, char *, const char *name)
{
    fake_lock lock(fake().mutex);

    auto k = std::make_unique<CUkern_st>();
    k->name = name;
    fake().kernels[host] = std::move(k);
}

/* Variables of devices are not simulated; the dialect of the kernels has none. */
extern "C" void __cudaRegisterVar(void **)
{
}

/* ---- finding and loading --------------------------------------------------------------------- */

static cudaError_t resolve(CUkern_st &k)
{
    if (k.thunk != nullptr)
        return cudaSuccess;
    void *thunk = fake_symbol(k.name + "_thunk");
    void *argbytes = fake_symbol(k.name + "_argbytes");
    if (thunk == nullptr || argbytes == nullptr)
        return cudaErrorNoKernelImageForDevice;
    k.thunk = (void (*)(void **))thunk;
    k.argbytes = *(const size_t *)argbytes;
    return cudaSuccess;
}

/* A kernel by its host function, or by its own handle. */
static cudaError_t find_kernel(const void *func, CUkern_st **out)
{
    auto &kernels = fake().kernels;
    auto it = kernels.find(func);

    if (it == kernels.end()) {
        it = std::find_if(kernels.begin(), kernels.end(),
                          [&](const auto &entry) { return entry.second.get() == func; });
    }
    if (it == kernels.end())
        return cudaErrorInvalidDeviceFunction;
    *out = it->second.get();
    return resolve(**out);
}

/* Loading code synchronises the device: with a kernel that waits for this one, for ever. */
static cudaError_t load(fake_lock &lock, CUkern_st &k)
{
    fake_device &d = fake_current();
    uint32_t bit = 1u << d.index;

    if (fake().set.eager || (k.loaded & bit) != 0)
        return cudaSuccess;
    k.loaded |= bit;
    return fake_device_idle(lock, d);
}

/* ---- occupancy, attributes ------------------------------------------------------------------- */

/* 0: not even one fits. */
static int blocks_per_sm(unsigned threads, size_t shared)
{
    unsigned warps = (threads + 31) / 32 * 32;

    if (threads == 0 || threads > FAKE_KERNEL_THREADS)
        return 0;
    unsigned n = std::min({(unsigned)FAKE_SM_BLOCKS, FAKE_SM_THREADS / warps,
                           FAKE_SM_REGISTERS / (FAKE_REGISTERS * warps)});
    if (shared > 0)
        n = std::min(n, (unsigned)(FAKE_SHARED_OPTIN / shared));
    return (int)n;
}

static cudaError_t occupancy(fake_lock &lock, int *out, const void *func, int threads,
                             size_t shared)
{
    CUkern_st *k = nullptr;
    cudaError_t e = find_kernel(func, &k);

    if (e == cudaSuccess)
        e = load(lock, *k);
    if (e != cudaSuccess)
        return e;
    if (out == nullptr || threads <= 0)
        return cudaErrorInvalidValue;
    *out = blocks_per_sm((unsigned)threads, shared);
    return cudaSuccess;
}

extern "C" cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *func,
                                                                     int threads, size_t shared)
{
    return fake_call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", FAKE_CONTEXT,
                     [&](fake_lock &lock) { return occupancy(lock, out, func, threads, shared); });
}

extern "C" cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *out, const void *func, int threads, size_t shared, unsigned int)
{
    return fake_call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", FAKE_CONTEXT,
                     [&](fake_lock &lock) { return occupancy(lock, out, func, threads, shared); });
}

extern "C" cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attr, const void *func)
{
    return fake_call("cudaFuncGetAttributes", FAKE_CONTEXT, [&](fake_lock &lock) {
        CUkern_st *k = nullptr;
        cudaError_t e = find_kernel(func, &k);

        if (e == cudaSuccess)
            e = load(lock, *k);
        if (e != cudaSuccess || attr == nullptr)
            return e != cudaSuccess ? e : cudaErrorInvalidValue;
        *attr = cudaFuncAttributes{};
        attr->maxThreadsPerBlock = FAKE_KERNEL_THREADS;
        attr->numRegs = FAKE_REGISTERS;
        attr->ptxVersion = attr->binaryVersion = fake().set.cc;
        attr->maxDynamicSharedSizeBytes = std::max((int)FAKE_SHARED, k->dynamic_shared);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaFuncSetAttribute(const void *func, cudaFuncAttribute attr, int value)
{
    return fake_call("cudaFuncSetAttribute", FAKE_CONTEXT, [&](fake_lock &) {
        CUkern_st *k = nullptr;
        cudaError_t e = find_kernel(func, &k);

        if (e != cudaSuccess)
            return e;
        if (attr == cudaFuncAttributePreferredSharedMemoryCarveout)
            return cudaSuccess;
        if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
            value > FAKE_SHARED_OPTIN)
            return cudaErrorInvalidValue;
        k->dynamic_shared = value;
        return cudaSuccess;
    });
}

/* ---- launches -------------------------------------------------------------------------------- */

struct kernel_task : fake_task {
    using fake_task::fake_task;
    bool advance(fake_run &run) const override;

    cmsim_launch launch;
    std::vector<char> args;
    unsigned blocks, room; /* room that one block takes */
    bool cooperative;

  private:
    bool dispatch(fake_run &run, unsigned count) const;
};

/* Of a whole device. */
static unsigned whole_room()
{
    return (unsigned)fake().set.sms * FAKE_SM_THREADS;
}

/* Give the next `count` blocks to the simulator. */
bool kernel_task::dispatch(fake_run &run, unsigned count) const
{
    cmsim_launch part = launch;

    part.args = args.data();
    part.first = run.dispatched;
    part.count = count;
    int id = fake_sim_add(part);
    if (id < 0)
        return false;
    fake().devices[(size_t)device].used += count * room;
    run.dispatched += count;
    run.sims.push_back({id, count});
    return true;
}

bool kernel_task::advance(fake_run &run) const
{
    fake_device &d = fake().devices[(size_t)device];

    for (size_t i = run.sims.size(); i-- > 0;) {
        if (!fake_sim_ended(run.sims[i].id))
            continue;
        d.used -= run.sims[i].blocks * room;
        run.sims.erase(run.sims.begin() + (long)i);
    }
    unsigned left = blocks - run.dispatched;
    unsigned fit = (whole_room() - d.used) / room;
    if (left == 0 || d.full)
        return left == 0 && run.sims.empty();
    if (left <= fit) {
        dispatch(run, left);
        return false;
    }
    /* One by one, so that each makes room for another as soon as it ends. */
    for (unsigned n = cooperative ? 0 : fit; n > 0 && dispatch(run, 1);)
        n--;
    d.full = true;
    return false;
}

struct shape {
    dim3 grid, block;
    size_t shared;
    bool cooperative;
};

static cudaError_t check_shape(const CUkern_st &k, const shape &s)
{
    if (s.grid.x == 0 || s.grid.y == 0 || s.grid.x > 0x7fffffff || s.grid.y > 65535 ||
        s.grid.z != 1)
        return cudaErrorInvalidConfiguration;
    if (s.block.x == 0 || s.block.x > FAKE_BLOCK_THREADS || s.block.y != 1 || s.block.z != 1)
        return cudaErrorInvalidConfiguration;
    if (s.shared > (size_t)std::max((int)FAKE_SHARED, k.dynamic_shared))
        return cudaErrorInvalidValue;
    int per_sm = blocks_per_sm(s.block.x, s.shared);
    if (per_sm == 0)
        return cudaErrorLaunchOutOfResources;
    size_t blocks = (size_t)s.grid.x * s.grid.y;
    if (s.cooperative && blocks > (size_t)per_sm * (size_t)fake().set.sms)
        return cudaErrorCooperativeLaunchTooLarge;
    return cudaSuccess;
}

static cudaError_t launch(fake_lock &lock, const void *func, const shape &s, void **args,
                          cudaStream_t handle)
{
    CUkern_st *k = nullptr;
    CUstream_st *stream = nullptr;
    cudaError_t e = find_kernel(func, &k);

    if (e == cudaSuccess)
        e = fake_stream(handle, &stream);
    if (e == cudaSuccess)
        e = check_shape(*k, s);
    if (e != cudaSuccess)
        return e;
    if (stream->device != fake_current().index)
        return cudaErrorInvalidResourceHandle;
    if (args == nullptr || args[0] == nullptr)
        return cudaErrorInvalidValue;
    /* The arguments are those of now, whatever happens while this waits. */
    auto task = std::make_shared<kernel_task>(stream->device);
    task->args.assign((const char *)args[0], (const char *)args[0] + k->argbytes);
    task->launch = {};
    task->launch.thunk = k->thunk;
    task->launch.argbytes = k->argbytes;
    task->launch.grid_x = s.grid.x;
    task->launch.grid_y = s.grid.y;
    task->launch.threads = s.block.x;
    task->launch.device = fake_current().physical;
    task->blocks = s.grid.x * s.grid.y;
    task->room = FAKE_SM_THREADS / (unsigned)blocks_per_sm(s.block.x, s.shared);
    task->cooperative = s.cooperative;
    e = load(lock, *k);
    return e == cudaSuccess ? fake_enqueue(lock, *stream, task, nullptr) : e;
}

extern "C" cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args,
                                        size_t shared, cudaStream_t stream)
{
    return fake_call("cudaLaunchKernel", FAKE_CONTEXT, [&](fake_lock &lock) {
        return launch(lock, func, {grid, block, shared, false}, args, stream);
    });
}

extern "C" cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block,
                                                   void **args, size_t shared, cudaStream_t stream)
{
    return fake_call("cudaLaunchCooperativeKernel", FAKE_CONTEXT, [&](fake_lock &lock) {
        return launch(lock, func, {grid, block, shared, true}, args, stream);
    });
}

extern "C" cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *func,
                                           void **args)
{
    return fake_call("cudaLaunchKernelExC", FAKE_CONTEXT, [&](fake_lock &lock) {
        if (c == nullptr || (c->numAttrs > 0 && c->attrs == nullptr))
            return cudaErrorInvalidValue;
        shape s = {c->gridDim, c->blockDim, c->dynamicSmemBytes, false};
        for (unsigned i = 0; i < c->numAttrs; i++) {
            if (c->attrs[i].id == cudaLaunchAttributeCooperative)
                s.cooperative = c->attrs[i].val.cooperative != 0;
        }
        return launch(lock, func, s, args, c->stream);
    });
}

/* ---- what nvcc makes of <<<>>> --------------------------------------------------------------- */

struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
static thread_local std::vector<configuration> configurations;

extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                cudaStream_t stream)
{
    configurations.push_back({grid, block, shared, stream});
    return 0;
}

extern "C" cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                  void *stream)
{
    if (configurations.empty())
        return cudaErrorMissingConfiguration;
    const configuration &c = configurations.back();
    *grid = c.grid;
    *block = c.block;
    *shared = c.shared;
    *(cudaStream_t *)stream = c.stream;
    configurations.pop_back();
    return cudaSuccess;
}

extern "C" cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *func)
{
    fake_lock lock(fake().mutex);
    auto it = fake().kernels.find(func);

    if (it == fake().kernels.end())
        return cudaErrorInvalidDeviceFunction;
    *out = it->second.get();
    return cudaSuccess;
}

extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                                          size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel((const void *)kernel, grid, block, args, shared, stream);
}
