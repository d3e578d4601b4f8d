/*
 * NVLinks, from NVML. The library belongs to the driver, so it is loaded where
 * it is and missed nowhere; the few functions are declared here as its manual
 * does, and a table of them lets tests be the driver.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "engine/topo_int.h"

enum {
    MAX_LINKS = 36,  /* more than any GPU has; those it lacks give an error */
    REMOTE_GPU = 0,  /* NVML_NVLINK_DEVICE_TYPE_GPU */
    NVML_SUCCESS = 0 /* of all functions */
};

/* GB/s of one link in one direction, by compute capability: NVLink 1, 2 to 4, 5. */
static double link_gbs(const struct cm_nvml *nvml, void *device)
{
    int major = 0, minor = 0;

    if (nvml->capability == NULL || nvml->capability(device, &major, &minor) != NVML_SUCCESS)
        return 0;
    if (major < 7)
        return 20;
    return major < 10 ? 25 : 50;
}

/*
 * Who is at the other end: a GPU of ours, CM_TOPO_SWITCH, or -1: a GPU that is
 * not in the topology. A switch may be invisible to a virtual machine, so what
 * is not said to be a GPU is one.
 */
static int peer_of(const struct cm_topo *t, const struct cm_nvml *nvml, void *device, unsigned link)
{
    struct cm_nvml_pci pci = {.domain = 0};
    unsigned type = REMOTE_GPU + 1;
    char bus_id[16];
    int gpu = -1;

    if (nvml->remote_pci(device, link, &pci) == NVML_SUCCESS) {
        pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
        if (cm_topo_bus_id(pci.bus_id, bus_id))
            gpu = cm_topo_find_gpu(t, bus_id);
    }
    if (gpu >= 0)
        return gpu;
    if (nvml->remote_type != NULL && nvml->remote_type(device, link, &type) != NVML_SUCCESS)
        return -1;
    return type == REMOTE_GPU ? -1 : CM_TOPO_SWITCH;
}

static void ask_gpu(struct cm_topo *t, const struct cm_nvml *nvml, int gpu)
{
    struct cm_topo_nvlink *row = t->nvlinks[gpu];
    void *device = NULL;
    double gbs;

    if (nvml->by_bus_id(t->gpus[gpu].bus_id, &device) != NVML_SUCCESS)
        return;
    gbs = link_gbs(nvml, device);
    for (unsigned link = 0; link < MAX_LINKS; link++) {
        unsigned active = 0;
        int peer;

        if (nvml->link_state(device, link, &active) != NVML_SUCCESS || active == 0)
            continue;
        peer = peer_of(t, nvml, device, link);
        if (peer < 0 || peer == gpu)
            continue;
        row[peer].links++;
        row[peer].gbs = gbs;
    }
}

/* Both ends count the links between them; one that did not answer is believed the other. */
static void make_symmetric(struct cm_topo *t)
{
    for (int a = 0; a < t->ngpus; a++)
        for (int b = 0; b < a; b++) {
            struct cm_topo_nvlink *x = &t->nvlinks[a][b], *y = &t->nvlinks[b][a];

            if (x->links > y->links)
                *y = *x;
            else
                *x = *y;
        }
}

void cm_topo_ask_nvml(struct cm_topo *t, const struct cm_nvml *nvml)
{
    if (nvml->init() != NVML_SUCCESS)
        return;
    for (int gpu = 0; gpu < t->ngpus; gpu++)
        ask_gpu(t, nvml, gpu);
    make_symmetric(t);
    nvml->shutdown();
}

void cm_topo_load_nvml(struct cm_topo *t)
{
    static const struct {
        const char *name;
        size_t at;
        bool needed;
    } symbols[] = {
        {"nvmlInit_v2", offsetof(struct cm_nvml, init), true},
        {"nvmlShutdown", offsetof(struct cm_nvml, shutdown), true},
        {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct cm_nvml, by_bus_id), true},
        {"nvmlDeviceGetNvLinkState", offsetof(struct cm_nvml, link_state), true},
        {"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(struct cm_nvml, remote_pci), true},
        {"nvmlDeviceGetNvLinkRemoteDeviceType", offsetof(struct cm_nvml, remote_type), false},
        {"nvmlDeviceGetCudaComputeCapability", offsetof(struct cm_nvml, capability), false},
    };
    struct cm_nvml nvml = {.init = NULL};
    void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    bool complete = lib != NULL;

    for (size_t i = 0; complete && i < CM_LEN(symbols); i++) {
        void *symbol = dlsym(lib, symbols[i].name);

        memcpy((char *)&nvml + symbols[i].at, &symbol, sizeof(symbol));
        complete = symbol != NULL || !symbols[i].needed;
    }
    if (complete)
        cm_topo_ask_nvml(t, &nvml);
    if (lib != NULL)
        dlclose(lib);
}
