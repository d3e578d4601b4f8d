/*
 * A CUDA runtime without a GPU: a libcudart.so.13 on which a program that nvcc
 * built runs unchanged. Its kernels are those of a library of simulated kernels
 * (cmsim.h), found by name; one thread plays its devices, memfds are their memory.
 *
 *   runtime  g++ -std=c++17 -O2 -g -Wall -Wextra -fPIC -shared -Itests/sim -isystem $CUDA/include
 *              -Wl,-soname,libcudart.so.13 -Wl,--version-script=tests/sim/fakecudart.map
 *              -o build/sim/libcudart.so.13 tests/sim/fakecudart*.cc -ldl -pthread
 *   kernels  g++ -shared -o build/sim/libK.so K.o CMSIM.o       (objects: see cmsim.cc)
 *   program  nvcc -cudart shared ...
 *   run      LD_LIBRARY_PATH=build/sim FAKECUDA_KERNELS=build/sim/libK.so PROGRAM
 *   tests    gcc -std=gnu11 -Itests/sim -isystem $CUDA/include -o build/sim/T tests/sim/T.c
 *              -Lbuild/sim -l:libcudart.so.13 -Wl,-rpath,'$ORIGIN' -pthread
 *            beside build/sim/libfake_kernels.so, the kernels of fake_kernels.cu
 *
 * It is stricter than a GPU where CUDA allows it: new memory is full of rubbish,
 * freed memory is overwritten, host code that touches device memory crashes
 * (SEGV_PKUERR), a kernel's first launch on a device waits for the device to be
 * idle, cudaFree() waits for it too, a full queue blocks.
 *
 *   FAKECUDA_DEVICES   2        FAKECUDA_SMS   16       FAKECUDA_MEM    bytes, 1 GiB
 *   FAKECUDA_CC        90       FAKECUDA_SEED  1        FAKECUDA_QUEUE  items of a stream, 1024
 *   FAKECUDA_DRIVER    13000; 12020 is too old, 0 is none
 *   FAKECUDA_NO_PEER   "0-1,2-3" or "all": pairs without peer access
 *   FAKECUDA_FAIL      "cudaMalloc:3,kernel:2": third call, second kernel; 0: every one
 *   FAKECUDA_TRACE     1: one line on stderr for every call
 *   FAKECUDA_KERNELS   library of kernels; without it, launches fail
 *   CUDA_VISIBLE_DEVICES, CUDA_MODULE_LOADING=EAGER   as for CUDA
 *
 * stderr gets a verdict of the simulator on a kernel, and the trace; nothing else.
 *
 * This file: settings, the frame of a call, errors, versions.
 */
#include "fakecudart.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text != nullptr && *text != '\0' ? strtol(text, nullptr, 0) : otherwise;
}

static const char *text_setting(const char *name)
{
    const char *text = getenv(name);

    return text != nullptr ? text : "";
}

static void read_settings(fake_settings &s)
{
    s.devices = (int)setting("FAKECUDA_DEVICES", 2);
    if (s.devices > FAKE_DEVICES)
        s.devices = FAKE_DEVICES;
    s.sms = (int)setting("FAKECUDA_SMS", 16);
    s.cc = (int)setting("FAKECUDA_CC", 90);
    s.driver = (int)setting("FAKECUDA_DRIVER", CUDART_VERSION);
    s.memory = (size_t)setting("FAKECUDA_MEM", 1L << 30);
    s.queue = (unsigned)setting("FAKECUDA_QUEUE", 1024);
    s.seed = (uint64_t)setting("FAKECUDA_SEED", 1);
    s.trace = setting("FAKECUDA_TRACE", 0) != 0;
    s.eager = strcmp(text_setting("CUDA_MODULE_LOADING"), "EAGER") == 0;
    s.no_peer = text_setting("FAKECUDA_NO_PEER");
    s.fail = text_setting("FAKECUDA_FAIL");
    s.kernels = text_setting("FAKECUDA_KERNELS");
    s.visible = getenv("CUDA_VISIBLE_DEVICES");
}

/* Never destroyed: exit handlers of the program may still call CUDA. */
fake_runtime &fake()
{
    static fake_runtime *const rt = new fake_runtime{};

    return *rt;
}

/* At the first call, not when kernels are registered: main() may still set the environment. */
static void initialise(fake_runtime &rt)
{
    if (rt.ready)
        return;
    rt.ready = true;
    read_settings(rt.set);
    fake_devices_init(rt);
}

/* ---- the frame of a call --------------------------------------------------------------------- */

static thread_local cudaError_t last_error = cudaSuccess;

bool fake_injected(const char *name)
{
    fake_runtime &rt = fake();
    size_t length = strlen(name);

    for (const char *p = rt.set.fail; *p != '\0';) {
        const char *end = strchrnul(p, ',');

        if (strncmp(p, name, length) == 0 && p[length] == ':') {
            unsigned long nth = strtoul(p + length + 1, nullptr, 10);
            unsigned call = ++rt.calls[std::string(p, end)];

            if (nth == 0 || call == nth)
                return true;
        }
        p = *end != '\0' ? end + 1 : end;
    }
    return false;
}

/* What such a function really fails with. */
static cudaError_t injected_error(const char *name)
{
    static const struct {
        const char *part;
        cudaError_t error;
    } table[] = {
        {"Malloc", cudaErrorMemoryAllocation},
        {"HostAlloc", cudaErrorMemoryAllocation},
        {"HostRegister", cudaErrorMemoryAllocation},
        {"Peer", cudaErrorPeerAccessUnsupported},
        {"IpcGet", cudaErrorNotSupported},
        {"IpcOpen", cudaErrorMapBufferObjectFailed},
        {"Launch", cudaErrorLaunchOutOfResources},
        {"Capture", cudaErrorStreamCaptureInvalidated},
        {"GraphInstantiate", cudaErrorMemoryAllocation},
        {"Create", cudaErrorMemoryAllocation},
        {"SetDevice", cudaErrorDevicesUnavailable},
    };

    for (const auto &row : table) {
        if (strstr(name, row.part) != nullptr)
            return row.error;
    }
    return cudaErrorUnknown;
}

cudaError_t fake_enter(const char *name, fake_need need)
{
    fake_runtime &rt = fake();

    initialise(rt);
    if (fake_injected(name))
        return injected_error(name);
    if (need == FAKE_NOTHING)
        return cudaSuccess;
    if (rt.set.driver / 1000 < CUDART_VERSION / 1000)
        return cudaErrorInsufficientDriver;
    if (rt.devices.empty())
        return cudaErrorNoDevice;
    /* A child of fork() cannot use its parent's context. */
    if (rt.pid != 0 && rt.pid != getpid())
        return cudaErrorInitializationError;
    if (need == FAKE_DRIVER)
        return cudaSuccess;
    if (rt.sticky != cudaSuccess)
        return rt.sticky;
    return fake_engine_start();
}

cudaError_t fake_leave(const char *name, cudaError_t e)
{
    if (fake().set.trace)
        fprintf(stderr, "fakecuda %d: %s: %s\n", (int)getpid(), name, cudaGetErrorName(e));
    if (e != cudaSuccess)
        last_error = e;
    return e;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
#define ROW(name, text)   \
    {                     \
        name, #name, text \
    }
    ROW(cudaSuccess, "no error"),
    ROW(cudaErrorInvalidValue, "invalid argument"),
    ROW(cudaErrorMemoryAllocation, "out of memory"),
    ROW(cudaErrorInitializationError, "initialization error"),
    ROW(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ROW(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ROW(cudaErrorInsufficientDriver,
        "CUDA driver version is insufficient for CUDA runtime version"),
    ROW(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    ROW(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    ROW(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ROW(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ROW(cudaErrorInvalidDevice, "invalid device ordinal"),
    ROW(cudaErrorDeviceUninitialized, "invalid device context"),
    ROW(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    ROW(cudaErrorNoKernelImageForDevice,
        "no kernel image is available for execution on the device"),
    ROW(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    ROW(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    ROW(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ROW(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    ROW(cudaErrorNotReady, "device not ready"),
    ROW(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    ROW(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ROW(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    ROW(cudaErrorHostMemoryAlreadyRegistered, "part or all of the memory is already registered"),
    ROW(cudaErrorHostMemoryNotRegistered,
        "pointer does not correspond to a registered memory region"),
    ROW(cudaErrorMisalignedAddress, "misaligned address"),
    ROW(cudaErrorLaunchFailure, "unspecified launch failure"),
    ROW(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    ROW(cudaErrorNotSupported, "operation not supported"),
    ROW(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ROW(cudaErrorStreamCaptureInvalidated,
        "operation failed due to a previous error during capture"),
    ROW(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate captures"),
    ROW(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream it began in"),
    ROW(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    ROW(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    ROW(cudaErrorStreamCaptureImplicit,
        "operation would make the legacy stream depend on a capturing blocking stream"),
    ROW(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capture"),
    ROW(cudaErrorStreamCaptureWrongThread,
        "attempt to terminate a thread-local capture sequence from another thread"),
    ROW(cudaErrorUnknown, "unknown error"),
#undef ROW
};

extern "C" const char *cudaGetErrorName(cudaError_t error)
{
    for (const auto &row : errors) {
        if (row.error == error)
            return row.name;
    }
    return "unrecognized error code";
}

extern "C" const char *cudaGetErrorString(cudaError_t error)
{
    for (const auto &row : errors) {
        if (row.error == error)
            return row.text;
    }
    return "unrecognized error code";
}

extern "C" cudaError_t cudaPeekAtLastError(void)
{
    fake_lock lock(fake().mutex);

    return fake().sticky != cudaSuccess ? fake().sticky : last_error;
}

extern "C" cudaError_t cudaGetLastError(void)
{
    cudaError_t e = cudaPeekAtLastError();

    last_error = cudaSuccess;
    return e;
}

/* ---- versions -------------------------------------------------------------------------------- */

extern "C" cudaError_t cudaDriverGetVersion(int *version)
{
    return fake_call("cudaDriverGetVersion", FAKE_NOTHING, [&](fake_lock &) {
        if (version == nullptr)
            return cudaErrorInvalidValue;
        *version = fake().set.driver;
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaRuntimeGetVersion(int *version)
{
    return fake_call("cudaRuntimeGetVersion", FAKE_NOTHING, [&](fake_lock &) {
        if (version == nullptr)
            return cudaErrorInvalidValue;
        *version = CUDART_VERSION;
        return cudaSuccess;
    });
}
