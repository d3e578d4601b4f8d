/*
 * The model: how far two devices are from each other, and which NIC is whose.
 *
 * A device knows its path through the PCI tree, so the way between two is read
 * off the common part of their paths and no tree is kept. In sysfs a PCI
 * switch is two bridges, one that leads up and one down to each device.
 */
#include "engine/topo.h"

#include <stdlib.h>
#include <string.h>

#include "engine/topo_int.h"

static const char *const class_names[CM_TOPO_NCLASSES] = {
    [CM_TOPO_X] = "X",     [CM_TOPO_NV] = "NV",     [CM_TOPO_PIX] = "PIX", [CM_TOPO_PXB] = "PXB",
    [CM_TOPO_PHB] = "PHB", [CM_TOPO_NODE] = "NODE", [CM_TOPO_SYS] = "SYS",
};

struct cm_topo *cm_topo_new(void)
{
    struct cm_topo *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return NULL;
    t->nodes = 1;
    memset(t->numa_of, -1, sizeof(t->numa_of));
    memset(t->core_of, -1, sizeof(t->core_of));
    return t;
}

void cm_topo_free(struct cm_topo *t)
{
    free(t);
}

bool cm_topo_has_numa(const struct cm_topo *t, int id)
{
    for (int i = 0; i < t->nnumas; i++)
        if (t->numas[i].id == id)
            return true;
    return false;
}

int cm_topo_find_gpu(const struct cm_topo *t, const char *bus_id)
{
    for (int i = 0; i < t->ngpus; i++)
        if (strcmp(t->gpus[i].bus_id, bus_id) == 0)
            return i;
    return -1;
}

int cm_topo_cpus(const struct cm_topo *t, int numa, int16_t cpus[CM_TOPO_CPUS])
{
    int n = 0;

    for (int cpu = 0; cpu < CM_TOPO_CPUS; cpu++)
        if (numa >= 0 && t->numa_of[cpu] == numa)
            cpus[n++] = (int16_t)cpu;
    return n;
}

const struct cm_topo_device *cm_topo_device(const struct cm_topo *t, int d)
{
    return d < t->ngpus ? &t->gpus[d] : &t->nics[d - t->ngpus];
}

/* Components left of a path. */
static int levels(const char *path)
{
    int n = *path != '\0';

    for (; *path != '\0'; path++)
        n += *path == '/';
    return n;
}

/* Components that two paths share from the top. */
static int common_levels(const char *a, const char *b)
{
    int n = 0;

    for (;;) {
        size_t len = strcspn(a, "/");

        if (len == 0 || len != strcspn(b, "/") || memcmp(a, b, len) != 0)
            return n;
        n++;
        if (a[len] == '\0' || b[len] == '\0')
            return n;
        a += len + 1;
        b += len + 1;
    }
}

static enum cm_topo_class pci_class(const struct cm_topo_device *a, const struct cm_topo_device *b)
{
    int common = common_levels(a->path, b->path);
    int below_a = levels(a->path) - common, below_b = levels(b->path) - common;

    if (common == 0)
        return a->numa >= 0 && a->numa == b->numa ? CM_TOPO_NODE : CM_TOPO_SYS;
    if (common == 1)
        return CM_TOPO_PHB;
    return below_a <= 1 && below_b <= 1 ? CM_TOPO_PIX : CM_TOPO_PXB;
}

/* The slower of two, of which 0 is unknown. */
static double slower(double a, double b)
{
    if (a <= 0 || b <= 0)
        return a > b ? a : b;
    return a < b ? a : b;
}

/* NVLinks between two GPUs: direct ones, and through the switches as many as both have. */
static void add_nvlinks(const struct cm_topo *t, int a, int b, struct cm_topo_link *l)
{
    const struct cm_topo_nvlink *direct = &t->nvlinks[a][b];
    const struct cm_topo_nvlink *up = &t->nvlinks[a][CM_TOPO_SWITCH];
    const struct cm_topo_nvlink *down = &t->nvlinks[b][CM_TOPO_SWITCH];
    int switched = up->links < down->links ? up->links : down->links;

    if (direct->links + switched == 0)
        return;
    l->kind = CM_TOPO_NV;
    l->nvlinks = direct->links + switched;
    l->gbs = direct->links * direct->gbs;
    if (switched > 0)
        l->gbs += slower(up->links * up->gbs, down->links * down->gbs);
}

struct cm_topo_link cm_topo_link(const struct cm_topo *t, int a, int b)
{
    const struct cm_topo_device *da = cm_topo_device(t, a), *db = cm_topo_device(t, b);
    struct cm_topo_link l = {.kind = CM_TOPO_X};

    if (a == b)
        return l;
    l.kind = pci_class(da, db);
    l.gbs = slower(da->pcie_gbs, db->pcie_gbs);
    if (a < t->ngpus && b < t->ngpus)
        add_nvlinks(t, a, b, &l);
    return l;
}

char *cm_topo_class_text(const struct cm_topo_link *l, char *buf)
{
    if (l->kind == CM_TOPO_NV)
        snprintf(buf, 16, "NV%d", l->nvlinks);
    else
        snprintf(buf, 16, "%s", class_names[l->kind]);
    return buf;
}

/* GB/s from a GPU into the network; 0: the NIC's speed is unknown. */
static double way_out(const struct cm_topo *t, int nic, const struct cm_topo_link *l)
{
    return t->nics[nic].net_gbs > 0 ? slower(l->gbs, t->nics[nic].net_gbs) : 0;
}

/* < 0: NIC a is better for the GPU than NIC b; 0: as good. */
static int compare_nics(const struct cm_topo *t, int gpu, int a, int b)
{
    struct cm_topo_link la = cm_topo_link(t, gpu, t->ngpus + a);
    struct cm_topo_link lb = cm_topo_link(t, gpu, t->ngpus + b);
    double ga = way_out(t, a, &la), gb = way_out(t, b, &lb);

    if (ga < gb || ga > gb)
        return ga > gb ? -1 : 1;
    return (int)la.kind - (int)lb.kind;
}

int cm_topo_nics(const struct cm_topo *t, int gpu, int nics[CM_TOPO_NICS])
{
    int n = 0;

    for (int i = 0; i < t->nnics; i++) {
        int order = n == 0 ? 0 : compare_nics(t, gpu, i, nics[0]);

        if (order > 0)
            continue;
        if (order < 0)
            n = 0;
        nics[n++] = i;
    }
    return n;
}

int cm_topo_nic(const struct cm_topo *t, int gpu)
{
    int mine[CM_TOPO_NICS], theirs[CM_TOPO_NICS], n = cm_topo_nics(t, gpu, mine), turn = 0;

    for (int g = 0; g < gpu; g++)
        if (cm_topo_nics(t, g, theirs) == n &&
            memcmp(mine, theirs, (size_t)n * sizeof(mine[0])) == 0)
            turn++;
    return n > 0 ? mine[turn % n] : -1;
}
