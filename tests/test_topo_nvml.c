/* NVLinks, from an NVML that the test plays. What is found is compared as its dump. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "engine/topo_int.h"
#include "test.h"

/*
 * GPU 0 (0000:01:00.0): links 0, 1 to GPU 1, link 2 down, link 3 to a switch
 * that no PCI device shows, link 4 to a GPU that is not ours.
 * GPU 1: one link to GPU 0, one to a switch, one to a GPU that is not ours.
 * GPU 2: no answer.
 */
static const struct {
    const char *remote[5];
    unsigned type[5], active[5];
} played[2] = {
    {{"00000000:02:00.0", "00000000:02:00.0", "", "fffffff:ffff:ff", "00000000:77:00.0"},
     {0, 0, 0, 2, 0},
     {1, 1, 0, 1, 1}},
    {{"00000000:01:00.0", "00000000:C4:00.0", "00000000:77:00.0", "", ""},
     {0, 2, 0, 0, 0},
     {1, 1, 1, 0, 0}},
};

static int play_start(void)
{
    return 0;
}

static int play_refusal(void)
{
    return 9;
}

static int play_by_bus_id(const char *bus_id, void **device)
{
    if (strcmp(bus_id, "0000:03:00.0") == 0)
        return 6;
    *device = (void *)(bus_id[6] == '1' ? &played[0] : &played[1]);
    return 0;
}

static int play_state(void *device, unsigned link, unsigned *active)
{
    if (link >= 5)
        return 2;
    *active = played[device == (void *)&played[1]].active[link];
    return 0;
}

static int play_remote(void *device, unsigned link, struct cm_nvml_pci *pci)
{
    snprintf(pci->bus_id, sizeof(pci->bus_id), "%s",
             played[device == (void *)&played[1]].remote[link]);
    return 0;
}

static int play_type(void *device, unsigned link, unsigned *type)
{
    *type = played[device == (void *)&played[1]].type[link];
    return 0;
}

static int play_capability(void *device, int *major, int *minor)
{
    *major = device == (void *)&played[0] ? 8 : 10;
    *minor = 0;
    return 0;
}

static struct cm_topo *three_gpus(void)
{
    static const char text[] = "topology 1\n"
                               "gpu 0 bus 0000:01:00.0 path pci0000:00\n"
                               "gpu 1 bus 0000:02:00.0 path pci0000:00\n"
                               "gpu 2 bus 0000:03:00.0 path pci0000:00\n";
    struct cm_topo *t = NULL;

    CHECK(cm_topo_parse(text, strlen(text), "text", &t) == CM_OK, "parse");
    return t;
}

static const struct cm_nvml nvml = {
    .init = play_start,
    .shutdown = play_start,
    .by_bus_id = play_by_bus_id,
    .link_state = play_state,
    .remote_pci = play_remote,
    .remote_type = play_type,
    .capability = play_capability,
};

/* What the dump says after the GPUs. */
static void check_nvlinks(const struct cm_nvml *api, const char *want)
{
    struct cm_topo *t = three_gpus();
    char *text = NULL, *links;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (f == NULL || t == NULL)
        abort();
    cm_topo_ask_nvml(t, api);
    cm_topo_dump(t, f);
    fclose(f);
    for (int a = 0; a < t->ngpus; a++)
        for (int b = 0; b < t->ngpus; b++)
            CHECK(t->nvlinks[a][b].links == t->nvlinks[b][a].links, "%d to %d, not back", a, b);
    links = strstr(text, "nvlink");
    CHECK(strcmp(links != NULL ? links : "", want) == 0, "got:\n%swant:\n%s", text, want);
    free(text);
    cm_topo_free(t);
}

static void test_nvlinks_from_nvml(void)
{
    struct cm_nvml old = nvml, broken = nvml;

    check_nvlinks(&nvml, "nvlink 0 1 links 2 gbs 25\n"
                         "nvlink 0 switch links 1 gbs 25\n"
                         "nvlink 1 switch links 1 gbs 50\n");
    old.remote_type = NULL; /* what is no GPU of ours is taken for a switch */
    old.capability = NULL;
    check_nvlinks(&old, "nvlink 0 1 links 2 gbs 0\n"
                        "nvlink 0 switch links 2 gbs 0\n"
                        "nvlink 1 switch links 2 gbs 0\n");
    broken.init = play_refusal;
    check_nvlinks(&broken, "");
}

int main(void)
{
    RUN(test_nvlinks_from_nvml);
    return test_end();
}
