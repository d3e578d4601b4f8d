/*
 * A machine as sysfs shows it. The links of /sys/bus/pci/devices and
 * /sys/class name the whole way through the PCI tree, so their text is enough
 * and nothing is followed. (hwloc knows the same tree, but neither NVLinks nor
 * the speed of NICs, reads a copied /sys only by an environment variable, and
 * would replace about a hundred lines by a dependency.)
 *
 * Every file may be missing, and what it would have told is then unknown.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/topo_int.h"

enum { PATH = 512, LINE = 4096 };

/* Path below /sys into `buf`; false: it does not fit. */
static bool CM_PRINTF(3, 4) sys_path(const char *root, char buf[PATH], const char *fmt, ...)
{
    int len = snprintf(buf, PATH, "%s/sys/", root), n;
    va_list ap;

    if (len < 0 || len >= PATH)
        return false;
    va_start(ap, fmt);
    n = vsnprintf(buf + len, (size_t)(PATH - len), fmt, ap);
    va_end(ap);
    return n >= 0 && n < PATH - len;
}

/* First line of dir/name below /sys, without its end; "" if there is none. */
static void read_line(const char *root, const char *dir, const char *name, char line[LINE])
{
    char path[PATH];
    FILE *f = sys_path(root, path, "%s/%s", dir, name) ? fopen(path, "re") : NULL;

    line[0] = '\0';
    if (f == NULL)
        return;
    if (fgets(line, LINE, f) == NULL)
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    fclose(f);
}

/* The number that a file starts with, or `otherwise`. */
static double read_number(const char *root, const char *dir, const char *name, double otherwise)
{
    char line[LINE], *end;
    double v;

    read_line(root, dir, name, line);
    v = strtod(line, &end);
    return end != line && v >= -1 && v < 1e9 ? v : otherwise;
}

/* ---- folders ---- */

static int is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* "mlx5_2" comes before "mlx5_10". */
static int by_number(const struct dirent **a, const struct dirent **b)
{
    int order = strverscmp((*a)->d_name, (*b)->d_name);

    return order != 0 ? order : by_bytes(a, b);
}

/* Call `visit` with the names in a folder below /sys, in order. */
typedef void visit_fn(struct cm_topo *t, const char *root, const char *name);
static void visit_folder(struct cm_topo *t, const char *root, const char *dir,
                         int (*order)(const struct dirent **, const struct dirent **),
                         visit_fn *visit)
{
    struct dirent **names = NULL;
    char path[PATH];
    int n = sys_path(root, path, "%s", dir) ? scandir(path, &names, is_visible, order) : 0;

    for (int i = 0; i < n; i++) {
        visit(t, root, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

/* ---- CPUs ---- */

static void add_cpus(struct cm_topo *t, const char *root, int numa, const char *list)
{
    int16_t cpus[CM_TOPO_CPUS], siblings[CM_TOPO_CPUS];
    int n = cm_topo_parse_list(list, cpus, CM_TOPO_CPUS);
    char dir[PATH], line[LINE];

    if (n <= 0 || t->nnumas == CM_TOPO_NUMAS)
        return; /* a node of memory only has no devices */
    snprintf(dir, sizeof(dir), "devices/system/cpu/cpu%d/topology", cpus[0]);
    t->numas[t->nnumas++] = (struct cm_topo_numa){
        .id = numa, .socket = (int)read_number(root, dir, "physical_package_id", -1)};
    for (int i = 0; i < n; i++) {
        snprintf(dir, sizeof(dir), "devices/system/cpu/cpu%d/topology", cpus[i]);
        read_line(root, dir, "thread_siblings_list", line);
        t->numa_of[cpus[i]] = (int16_t)numa;
        t->core_of[cpus[i]] = cpus[i];
        if (cm_topo_parse_list(line, siblings, CM_TOPO_CPUS) > 0 && siblings[0] < cpus[i])
            t->core_of[cpus[i]] = siblings[0];
    }
}

static void visit_numa(struct cm_topo *t, const char *root, const char *name)
{
    char dir[PATH], line[LINE], end;
    int id;

    if (sscanf(name, "node%d%c", &id, &end) != 1 || id < 0 || id > INT16_MAX)
        return;
    snprintf(dir, sizeof(dir), "devices/system/node/node%d", id);
    read_line(root, dir, "cpulist", line);
    add_cpus(t, root, id, line);
}

static void find_cpus(struct cm_topo *t, const char *root)
{
    char line[LINE];

    visit_folder(t, root, "devices/system/node", by_number, visit_numa);
    if (t->nnumas > 0)
        return;
    read_line(root, "devices/system/cpu", "online", line); /* a kernel without NUMA */
    add_cpus(t, root, 0, line);
}

/* ---- PCI ---- */

/* "pci0000:16", possibly with more digits. */
static bool is_host_bridge(const char *s, size_t len)
{
    if (len < 5 || strncmp(s, "pci", 3) != 0)
        return false;
    for (size_t i = 3; i < len; i++)
        if (!isxdigit((unsigned char)s[i]) && s[i] != ':')
            return false;
    return true;
}

/* The text of a link below /sys -> path and bus id of a device; false: it leads to none. */
static bool read_place(const char *link, struct cm_topo_device *d)
{
    size_t len, used = 0;

    d->path[0] = d->bus_id[0] = '\0';
    for (const char *at = link; *at != '\0'; at += len + (at[len] == '/')) {
        char word[16];
        bool host;

        len = strcspn(at, "/");
        host = is_host_bridge(at, len);
        snprintf(word, sizeof(word), "%.*s", len < sizeof(word) ? (int)len : 0, at);
        if (used == 0 && !host)
            continue; /* above the tree */
        if (!host && !cm_topo_bus_id(word, word))
            break; /* below it */
        if (used + sizeof(word) + 2 > sizeof(d->path))
            return false;
        if (used > 0 && d->bus_id[0] != '\0') /* what was last is a bridge */
            used += (size_t)snprintf(d->path + used, sizeof(d->path) - used, "/%s", d->bus_id);
        d->bus_id[0] = '\0';
        if (host)
            used += (size_t)snprintf(d->path + used, sizeof(d->path) - used, "%s%.*s",
                                     used > 0 ? "/" : "", (int)len, at);
        else
            memcpy(d->bus_id, word, sizeof(word));
    }
    return d->bus_id[0] != '\0';
}

/*
 * GB/s of the link above a PCI device: GT/s x lanes less the line code. The
 * speed is the highest possible, because idle links slow down; lanes do not
 * come and go, so those in use are counted.
 */
static double pcie_gbs(const char *root, const char *bus_id)
{
    double speed, lanes, code;
    char dir[PATH];

    snprintf(dir, sizeof(dir), "bus/pci/devices/%s", bus_id);
    speed = read_number(root, dir, "max_link_speed", 0);
    lanes = read_number(root, dir, "current_link_width", 0);
    if (lanes < 1 || lanes > 32)
        lanes = read_number(root, dir, "max_link_width", 0);
    if (speed <= 0 || lanes < 1 || lanes > 32)
        return 0;
    code = speed <= 5 ? 8.0 / 10 : speed <= 32 ? 128.0 / 130 : 242.0 / 256;
    return (double)(int64_t)(speed * lanes / 8 * code * 10 + 0.5) / 10;
}

/* What the folder of the PCI device tells; bus id and path are known. */
static void describe(const struct cm_topo *t, const char *root, struct cm_topo_device *d)
{
    const char *bridge = strrchr(d->path, '/');
    char dir[PATH];
    double above;

    snprintf(dir, sizeof(dir), "bus/pci/devices/%s", d->bus_id);
    d->rail = -1;
    d->numa = (int)read_number(root, dir, "numa_node", -1);
    if (!cm_topo_has_numa(t, d->numa))
        d->numa = t->nnumas == 1 ? t->numas[0].id : -1;
    d->pcie_gbs = pcie_gbs(root, d->bus_id);
    above = bridge != NULL ? pcie_gbs(root, bridge + 1) : 0;
    if (above > 0 && above < d->pcie_gbs)
        d->pcie_gbs = above;
}

static bool follow(const char *root, const char *dir, const char *name, struct cm_topo_device *d)
{
    char path[PATH], link[LINE];
    ssize_t n = sys_path(root, path, "%s/%s", dir, name) ? readlink(path, link, LINE - 1) : -1;

    if (n <= 0)
        return false;
    link[n] = '\0';
    return read_place(link, d);
}

static bool add_gpu(struct cm_topo *t, const char *root, const char *bus_id)
{
    struct cm_topo_device d = {.numa = -1};

    if (t->ngpus == CM_TOPO_GPUS || !follow(root, "bus/pci/devices", bus_id, &d))
        return false;
    describe(t, root, &d);
    snprintf(d.name, sizeof(d.name), "GPU%d", t->ngpus);
    t->gpus[t->ngpus++] = d;
    return true;
}

static void visit_pci(struct cm_topo *t, const char *root, const char *name)
{
    char dir[PATH], vendor[LINE], class[LINE];

    if (strlen(name) >= 16)
        return;
    snprintf(dir, sizeof(dir), "bus/pci/devices/%s", name);
    read_line(root, dir, "vendor", vendor);
    read_line(root, dir, "class", class);
    if (strcmp(vendor, "0x10de") == 0 &&
        (strncmp(class, "0x0300", 6) == 0 || strncmp(class, "0x0302", 6) == 0))
        (void)add_gpu(t, root, name);
}

static enum cm_status add_listed(struct cm_topo *t, const char *root, const char *const *bus_ids,
                                 int n)
{
    for (int i = 0; i < n; i++) {
        char bus_id[16];

        if (!cm_topo_bus_id(bus_ids[i], bus_id) || cm_topo_find_gpu(t, bus_id) >= 0 ||
            !add_gpu(t, root, bus_id))
            return CM_FAIL(CM_EINVAL, "GPU %d: no PCI device '%s' below %s, or named twice", i,
                           bus_ids[i], root);
    }
    return CM_OK;
}

/* ---- NICs ---- */

/* Is it the virtual function of a NIC that this system has itself? */
static bool is_virtual(const char *root, const struct cm_topo_device *d)
{
    char path[PATH];

    return sys_path(root, path, "bus/pci/devices/%s/physfn", d->bus_id) && access(path, F_OK) == 0;
}

static void add_nic(struct cm_topo *t, const char *root, const char *name, struct cm_topo_device *d)
{
    if (t->nnics == CM_TOPO_NICS || strlen(name) >= sizeof(d->name))
        return;
    describe(t, root, d);
    snprintf(d->name, sizeof(d->name), "%s", name);
    t->nics[t->nnics++] = *d;
}

/* The rate of the first active port counts; a file holds "200 Gb/sec (4X HDR)". */
static void visit_infiniband(struct cm_topo *t, const char *root, const char *name)
{
    struct cm_topo_device d = {.numa = -1};
    char dir[PATH], state[LINE];

    if (!follow(root, "class/infiniband", name, &d) || is_virtual(root, &d))
        return;
    for (int port = 1; port <= 2; port++) {
        snprintf(dir, sizeof(dir), "class/infiniband/%.64s/ports/%d", name, port);
        read_line(root, dir, "state", state);
        if (strstr(state, "ACTIVE") == NULL)
            continue;
        d.net_gbs = read_number(root, dir, "rate", 0) / 8;
        add_nic(t, root, name, &d);
        return;
    }
}

/* An interface of a device that does RDMA is known by the name of that device already. */
static void visit_interface(struct cm_topo *t, const char *root, const char *name)
{
    struct cm_topo_device d = {.numa = -1};
    char dir[PATH], state[LINE];
    double mbits;

    if (!follow(root, "class/net", name, &d) || is_virtual(root, &d))
        return;
    for (int i = 0; i < t->nnics; i++)
        if (strcmp(t->nics[i].bus_id, d.bus_id) == 0)
            return;
    snprintf(dir, sizeof(dir), "class/net/%.64s", name);
    read_line(root, dir, "operstate", state);
    if (strcmp(state, "up") != 0 && strcmp(state, "unknown") != 0)
        return;
    mbits = read_number(root, dir, "speed", 0); /* -1: unknown */
    d.net_gbs = mbits > 0 ? mbits / 8000 : 0;
    add_nic(t, root, name, &d);
}

enum cm_status cm_topo_detect(const char *root, const char *const *bus_ids, int n,
                              struct cm_topo **out)
{
    struct cm_topo *t = cm_topo_new();
    enum cm_status st = CM_OK;

    if (t == NULL)
        return CM_FAIL(CM_ENOMEM, "topology: %zu bytes", sizeof(*t));
    find_cpus(t, root);
    if (n > 0)
        st = add_listed(t, root, bus_ids, n);
    else
        visit_folder(t, root, "bus/pci/devices", by_bytes, visit_pci);
    visit_folder(t, root, "class/infiniband", by_number, visit_infiniband);
    visit_folder(t, root, "class/net", by_number, visit_interface);
    if (st != CM_OK) {
        cm_topo_free(t);
        return st;
    }
    if (strcmp(root, "/") == 0 && t->ngpus > 0)
        cm_topo_load_nvml(t);
    *out = t;
    return CM_OK;
}
