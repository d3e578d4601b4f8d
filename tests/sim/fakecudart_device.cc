/*
 * Devices: which there are, what they are like, who reaches whose memory.
 *
 * A device has two numbers: `index` is this process's, `physical` the machine's.
 * CUDA_VISIBLE_DEVICES makes them differ; identifiers and IPC handles use the latter.
 */
#include "fakecudart.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

static thread_local int current_device = 0;

void fake_devices_init(fake_runtime &rt)
{
    std::vector<int> physical;

    for (int i = 0; i < rt.set.devices; i++)
        physical.push_back(i);
    if (rt.set.visible != nullptr) {
        physical.clear();
        /* As CUDA does: the list ends before the first number that is no device. */
        for (const char *p = rt.set.visible; *p != '\0';) {
            char *end;
            long n = strtol(p, &end, 10);

            if (end == p || n < 0 || n >= rt.set.devices)
                break;
            physical.push_back((int)n);
            p = *end == ',' ? end + 1 : end;
        }
    }
    rt.devices = std::vector<fake_device>(physical.size());
    for (size_t i = 0; i < physical.size(); i++) {
        rt.devices[i].index = (int)i;
        rt.devices[i].physical = physical[i];
        rt.devices[i].null_stream.device = (int)i;
        rt.devices[i].null_stream.legacy = true;
    }
}

fake_device &fake_current()
{
    return fake().devices[(size_t)current_device];
}

bool fake_device_ok(int index)
{
    return index >= 0 && index < (int)fake().devices.size();
}

bool fake_reaches(int physical_a, int physical_b)
{
    char pair[2][32];
    const char *list = fake().set.no_peer;

    if (physical_a == physical_b)
        return true;
    if (strcmp(list, "all") == 0)
        return false;
    snprintf(pair[0], sizeof(pair[0]), ",%d-%d,", physical_a, physical_b);
    snprintf(pair[1], sizeof(pair[1]), ",%d-%d,", physical_b, physical_a);
    std::string all = "," + std::string(list) + ",";
    return all.find(pair[0]) == std::string::npos && all.find(pair[1]) == std::string::npos;
}

cudaError_t fake_device_idle(fake_lock &lock, fake_device &d)
{
    return fake_wait(lock, [&] {
        bool idle = d.null_stream.items.empty();

        for (const auto &s : d.streams)
            idle = idle && s->items.empty();
        return idle;
    });
}

/* ---- count, current -------------------------------------------------------------------------- */

extern "C" cudaError_t cudaGetDeviceCount(int *count)
{
    if (count != nullptr)
        *count = 0;
    return fake_call("cudaGetDeviceCount", FAKE_DRIVER, [&](fake_lock &) {
        if (count == nullptr)
            return cudaErrorInvalidValue;
        *count = (int)fake().devices.size();
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaSetDevice(int device)
{
    return fake_call("cudaSetDevice", FAKE_DRIVER, [&](fake_lock &) {
        if (!fake_device_ok(device))
            return cudaErrorInvalidDevice;
        current_device = device;
        return fake_engine_start();
    });
}

extern "C" cudaError_t cudaGetDevice(int *device)
{
    return fake_call("cudaGetDevice", FAKE_DRIVER, [&](fake_lock &) {
        if (device == nullptr)
            return cudaErrorInvalidValue;
        *device = current_device;
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaSetDeviceFlags(unsigned int)
{
    return fake_call("cudaSetDeviceFlags", FAKE_DRIVER, [](fake_lock &) { return cudaSuccess; });
}

extern "C" cudaError_t cudaDeviceSynchronize(void)
{
    return fake_call("cudaDeviceSynchronize", FAKE_CONTEXT, [](fake_lock &lock) {
        fake_device &d = fake_current();

        for (const auto &c : fake().captures) {
            if (c->origin->device == d.index)
                return fake_break(*c, cudaErrorStreamCaptureUnsupported);
        }
        return fake_device_idle(lock, d);
    });
}

extern "C" cudaError_t cudaDeviceReset(void)
{
    return fake_call("cudaDeviceReset", FAKE_DRIVER, [](fake_lock &lock) {
        fake_device &d = fake_current();

        fake_engine_reset(lock);
        d.streams.clear();
        d.peers = 0;
        fake_release_device(d);
        for (auto it = fake().events.begin(); it != fake().events.end();)
            it = it->second->device == d.index ? fake().events.erase(it) : std::next(it);
        return cudaSuccess;
    });
}

/* ---- facts ----------------------------------------------------------------------------------- */

static cudaDeviceProp properties(int physical)
{
    const fake_settings &set = fake().set;
    cudaDeviceProp p{};

    snprintf(p.name, sizeof(p.name), "Fake GPU");
    memcpy(p.uuid.bytes, "fake-cuda-device", sizeof(p.uuid.bytes));
    p.uuid.bytes[15] = (char)physical;
    p.totalGlobalMem = set.memory;
    p.major = set.cc / 10;
    p.minor = set.cc % 10;
    p.multiProcessorCount = set.sms;
    p.pciBusID = physical + 1;
    p.warpSize = 32;
    p.maxThreadsPerBlock = FAKE_BLOCK_THREADS;
    p.maxThreadsPerMultiProcessor = FAKE_SM_THREADS;
    p.maxBlocksPerMultiProcessor = FAKE_SM_BLOCKS;
    p.regsPerBlock = p.regsPerMultiprocessor = FAKE_SM_REGISTERS;
    p.sharedMemPerBlock = FAKE_SHARED;
    p.sharedMemPerBlockOptin = p.sharedMemPerMultiprocessor = FAKE_SHARED_OPTIN;
    p.maxThreadsDim[0] = p.maxThreadsDim[1] = FAKE_BLOCK_THREADS;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 0x7fffffff;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.canMapHostMemory = p.unifiedAddressing = p.concurrentKernels = 1;
    p.cooperativeLaunch = p.canUseHostPointerForRegisteredMem = 1;
    p.hostRegisterSupported = p.streamPrioritiesSupported = 1;
    p.asyncEngineCount = 2;
    return p;
}

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    return fake_call("cudaGetDeviceProperties", FAKE_DRIVER, [&](fake_lock &) {
        if (prop == nullptr)
            return cudaErrorInvalidValue;
        if (!fake_device_ok(device))
            return cudaErrorInvalidDevice;
        *prop = properties(fake().devices[(size_t)device].physical);
        return cudaSuccess;
    });
}

static int attribute(const cudaDeviceProp &p, cudaDeviceAttr attr, bool *known)
{
    switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock:
        return p.maxThreadsPerBlock;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return p.maxThreadsPerMultiProcessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
        return p.maxBlocksPerMultiProcessor;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return (int)p.sharedMemPerBlock;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        return (int)p.sharedMemPerBlockOptin;
    case cudaDevAttrWarpSize:
        return p.warpSize;
    case cudaDevAttrMultiProcessorCount:
        return p.multiProcessorCount;
    case cudaDevAttrComputeCapabilityMajor:
        return p.major;
    case cudaDevAttrComputeCapabilityMinor:
        return p.minor;
    case cudaDevAttrPciBusId:
        return p.pciBusID;
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrPageableMemoryAccess:
        return 0;
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
        return 1;
    case cudaDevAttrClockRate:
        return 1000000; /* kHz */
    default:
        *known = false;
        return 0;
    }
}

extern "C" cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device)
{
    return fake_call("cudaDeviceGetAttribute", FAKE_DRIVER, [&](fake_lock &) {
        bool known = true;

        if (value == nullptr)
            return cudaErrorInvalidValue;
        if (!fake_device_ok(device))
            return cudaErrorInvalidDevice;
        *value = attribute(properties(fake().devices[(size_t)device].physical), attr, &known);
        return known ? cudaSuccess : cudaErrorNotSupported;
    });
}

extern "C" cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
    return fake_call("cudaDeviceGetPCIBusId", FAKE_DRIVER, [&](fake_lock &) {
        if (!fake_device_ok(device))
            return cudaErrorInvalidDevice;
        if (id == nullptr || bytes < 13)
            return cudaErrorInvalidValue;
        snprintf(id, (size_t)bytes, "0000:%02X:00.0",
                 (unsigned)fake().devices[(size_t)device].physical + 1);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
    return fake_call("cudaDeviceGetByPCIBusId", FAKE_DRIVER, [&](fake_lock &) {
        unsigned domain, bus;

        if (device == nullptr || id == nullptr || sscanf(id, "%x:%x", &domain, &bus) != 2)
            return cudaErrorInvalidValue;
        for (const fake_device &d : fake().devices) {
            if ((unsigned)d.physical + 1 == bus && domain == 0) {
                *device = d.index;
                return cudaSuccess;
            }
        }
        return cudaErrorInvalidDevice;
    });
}

extern "C" cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return fake_call("cudaDeviceGetStreamPriorityRange", FAKE_CONTEXT, [&](fake_lock &) {
        if (least != nullptr)
            *least = 0;
        if (greatest != nullptr)
            *greatest = -5;
        return cudaSuccess;
    });
}

/* ---- peers ----------------------------------------------------------------------------------- */

extern "C" cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    return fake_call("cudaDeviceCanAccessPeer", FAKE_DRIVER, [&](fake_lock &) {
        if (can == nullptr)
            return cudaErrorInvalidValue;
        if (!fake_device_ok(device) || !fake_device_ok(peer))
            return cudaErrorInvalidDevice;
        *can = device != peer && fake_reaches(fake().devices[(size_t)device].physical,
                                              fake().devices[(size_t)peer].physical);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    return fake_call("cudaDeviceEnablePeerAccess", FAKE_CONTEXT, [&](fake_lock &) {
        fake_device &d = fake_current();

        if (flags != 0)
            return cudaErrorInvalidValue;
        if (!fake_device_ok(peer) || peer == d.index)
            return cudaErrorInvalidDevice;
        if (!fake_reaches(d.physical, fake().devices[(size_t)peer].physical))
            return cudaErrorPeerAccessUnsupported;
        if ((d.peers & 1u << peer) != 0)
            return cudaErrorPeerAccessAlreadyEnabled;
        d.peers |= 1u << peer;
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    return fake_call("cudaDeviceDisablePeerAccess", FAKE_CONTEXT, [&](fake_lock &) {
        fake_device &d = fake_current();

        if (!fake_device_ok(peer) || peer == d.index)
            return cudaErrorInvalidDevice;
        if ((d.peers & 1u << peer) == 0)
            return cudaErrorPeerAccessNotEnabled;
        d.peers &= ~(1u << peer);
        return cudaSuccess;
    });
}

extern "C" cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attr, int src,
                                                 int dst)
{
    int can = 0;
    cudaError_t e = cudaDeviceCanAccessPeer(&can, src, dst);

    if (e == cudaSuccess && value != nullptr)
        *value = attr == cudaDevP2PAttrAccessSupported ? can : 0;
    return e;
}
