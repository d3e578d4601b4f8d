/* Detection, on copies of /sys that the test writes. What is found is compared as its dump. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/topo_int.h"
#include "test.h"

enum { PATH = 512 };

/* A file, or with `link` a symbolic link, below /sys. */
struct entry {
    const char *path, *text;
    bool link;
};

static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
}

/* A link gets the folder that it leads to, so that later entries can go through it. */
static void make_link(const char *path, const char *target)
{
    char folder[4 * PATH];

    snprintf(folder, sizeof(folder), "%.*s%s/", (int)(strrchr(path, '/') + 1 - path), path, target);
    make_parents(folder);
    if (symlink(target, path) != 0)
        abort();
}

static void make_entry(const char *root, const struct entry *e)
{
    char path[2 * PATH];
    FILE *f;

    snprintf(path, sizeof(path), "%s/sys/%s", root, e->path);
    make_parents(path);
    if (e->link) {
        make_link(path, e->text);
        return;
    }
    f = fopen(path, "we");
    if (f == NULL || fputs(e->text, f) < 0 || fclose(f) != 0)
        abort();
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    (void)s;
    (void)kind;
    (void)where;
    return remove(path);
}

/* What is found below a tree of these entries; NULL: refused. The caller frees it. */
static struct cm_topo *detect(const struct entry *e, size_t n, const char *const *ids, int nids)
{
    const char *tmp = getenv("TMPDIR");
    struct cm_topo *t = NULL;
    char root[PATH];

    snprintf(root, sizeof(root), "%s/topo.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(root) == NULL)
        abort();
    for (size_t i = 0; i < n; i++)
        make_entry(root, &e[i]);
    if (cm_topo_detect(root, ids, nids, &t) != CM_OK)
        t = NULL;
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return t;
}

static void check_dump(struct cm_topo *t, const char *want)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (f == NULL)
        abort();
    if (t != NULL)
        cm_topo_dump(t, f);
    fclose(f);
    CHECK(strcmp(text, want) == 0, "got:\n%swant:\n%s", text, want);
    free(text);
    cm_topo_free(t);
}

#define DEV "bus/pci/devices/"
#define UP "../../../devices/pci0000:16/0000:16:01.0/0000:17:00.0"
#define CPU "devices/system/cpu/cpu"
#define NET "../../devices/pci0000:16/0000:16:01.0/0000:17:00.0/"

/* Two sockets; below a switch a GPU and an adapter, on another host bridge a GPU with 8 lanes. */
static const struct entry server[] = {
    {"devices/system/node/node0/cpulist", "0,2\n", false},
    {"devices/system/node/node10/cpulist", "\n", false}, /* memory only */
    {"devices/system/node/node2/cpulist", "1,3\n", false},
    {"devices/system/node/has_cpu", "0,2\n", false},
    {CPU "0/topology/physical_package_id", "0\n", false},
    {CPU "1/topology/physical_package_id", "1\n", false},
    {CPU "0/topology/thread_siblings_list", "0,2\n", false},
    {CPU "2/topology/thread_siblings_list", "0,2\n", false},
    {CPU "1/topology/thread_siblings_list", "1,3\n", false},
    {CPU "3/topology/thread_siblings_list", "1,3\n", false},

    {DEV "0000:16:01.0", "../../../devices/pci0000:16/0000:16:01.0", true},
    {DEV "0000:17:00.0", UP, true},
    {DEV "0000:18:01.0", UP "/0000:18:01.0", true},
    {DEV "0000:18:01.0/max_link_speed", "16.0 GT/s PCIe\n", false},
    {DEV "0000:18:01.0/current_link_width", "16\n", false},
    {DEV "0000:1a:00.0", UP "/0000:18:01.0/0000:1a:00.0", true},
    {DEV "0000:1a:00.0/vendor", "0x10de\n", false},
    {DEV "0000:1a:00.0/class", "0x030200\n", false},
    {DEV "0000:1a:00.0/numa_node", "0\n", false},
    {DEV "0000:1a:00.0/max_link_speed", "32.0 GT/s PCIe\n", false},
    {DEV "0000:1a:00.0/current_link_width", "16\n", false},
    {DEV "0000:1a:00.1", UP "/0000:18:01.0/0000:1a:00.1", true}, /* its sound */
    {DEV "0000:1a:00.1/vendor", "0x10de\n", false},
    {DEV "0000:1a:00.1/class", "0x040300\n", false},
    {DEV "0000:05:00.0", "../../../devices/pci0000:00/0000:00:01.0/0000:05:00.0", true},
    {DEV "0000:05:00.0/vendor", "0x1a03\n", false}, /* graphics of another vendor */
    {DEV "0000:05:00.0/class", "0x030000\n", false},
    {DEV "0000:c1:00.0", "../../../devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0", true},
    {DEV "0000:c1:00.0/vendor", "0x10de\n", false},
    {DEV "0000:c1:00.0/class", "0x030000\n", false},
    {DEV "0000:c1:00.0/numa_node", "-1\n", false},
    {DEV "0000:c1:00.0/max_link_speed", "16.0 GT/s PCIe\n", false},
    {DEV "0000:c1:00.0/current_link_width", "8\n", false},

    {DEV "0000:19:00.0", UP "/0000:18:00.0/0000:19:00.0", true},
    {DEV "0000:19:00.0/numa_node", "2\n", false},
    {DEV "0000:19:00.0/max_link_speed", "Unknown\n", false},
    {DEV "0000:19:00.2", UP "/0000:18:00.0/0000:19:00.2", true},
    {DEV "0000:19:00.2/physfn", "../0000:19:00.0", true},
    {"class/infiniband/mlx5_10", NET "0000:18:00.0/0000:19:00.0/infiniband/mlx5_10", true},
    {"class/infiniband/mlx5_2", NET "0000:18:00.0/0000:19:00.1/infiniband/mlx5_2", true},
    {"class/infiniband/mlx5_3", NET "0000:18:00.0/0000:19:00.2/infiniband/mlx5_3", true},
    {"class/infiniband/mlx5_4", NET "0000:18:00.0/0000:19:00.3/infiniband/mlx5_4", true},
    {"class/net/ib0", NET "0000:18:00.0/0000:19:00.0/net/ib0", true},
    {"class/net/lo", "../../devices/virtual/net/lo", true},
    {"class/net/eth1", "../../devices/pci0000:c0/0000:c0:02.0/virtio2/net/eth1", true},
    {"class/net/eth2", "../../devices/pci0000:c0/0000:c0:03.0/net/eth2", true},
    {"class/net/eth3", "../../devices/pci0000:c0/0000:c0:04.0/net/eth3", true},

    {"class/infiniband/mlx5_10/ports/1/state", "1: DOWN\n", false},
    {"class/infiniband/mlx5_10/ports/2/state", "4: ACTIVE\n", false},
    {"class/infiniband/mlx5_10/ports/2/rate", "200 Gb/sec (4X HDR)\n", false},
    {"class/infiniband/mlx5_2/ports/1/state", "4: ACTIVE\n", false},
    {"class/infiniband/mlx5_3/ports/1/state", "4: ACTIVE\n", false}, /* a virtual function */
    {"class/infiniband/mlx5_4/ports/1/state", "2: INIT\n", false},
    {"class/net/ib0/operstate", "up\n", false}, /* the same device as mlx5_10 */
    {"class/net/ib0/speed", "200000\n", false},
    {"class/net/lo/operstate", "unknown\n", false},
    {"class/net/eth1/operstate", "unknown\n", false},
    {"class/net/eth1/speed", "-1\n", false},
    {"class/net/eth2/operstate", "down\n", false},
    {"class/net/eth3/operstate", "up\n", false},
    {"class/net/eth3/speed", "25000\n", false},
};

#define SERVER_CPUS              \
    "topology 1\n"               \
    "numa 0 socket 0 cpus 0,2\n" \
    "numa 2 socket 1 cpus 1,3\n" \
    "siblings 0-1 2-3\n"
#define SERVER_NICS                                                                        \
    "nic mlx5_2 bus 0000:19:00.1 path pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0\n" \
    "nic mlx5_10 bus 0000:19:00.0 path pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0"  \
    " numa 2 net 25\n"                                                                     \
    "nic eth1 bus 0000:c0:02.0 path pci0000:c0\n"                                          \
    "nic eth3 bus 0000:c0:04.0 path pci0000:c0 net 3.125\n"

static void test_a_server(void)
{
    check_dump(detect(server, CM_LEN(server), NULL, 0), SERVER_CPUS
               "gpu 0 bus 0000:1a:00.0 path pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:01.0"
               " numa 0 pcie 31.5\n" /* the port above it is slower */
               "gpu 1 bus 0000:c1:00.0 path pci0000:c0/0000:c0:01.1 pcie 15.8\n" SERVER_NICS);
}

static void test_listed_gpus_keep_their_order(void)
{
    static const char *const ids[] = {"00000000:C1:00.0", "0000:1A:00.0"};

    check_dump(detect(server, CM_LEN(server), ids, 2), SERVER_CPUS
               "gpu 0 bus 0000:c1:00.0 path pci0000:c0/0000:c0:01.1 pcie 15.8\n"
               "gpu 1 bus 0000:1a:00.0 path pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:01.0"
               " numa 0 pcie 31.5\n" SERVER_NICS);
}

static void test_listed_gpus_must_exist(void)
{
    static const struct entry two[] = {
        {DEV "0000:1a:00.0", UP "/0000:1a:00.0", true},
        {DEV "0000:c1:00.0", UP "/0000:c1:00.0", true},
    };
    static const char *const bad[][2] = {
        {"0000:1a:00.0", "0000:1b:00.0"},
        {"0000:1a:00.0", "0000:1A:00.0"},
        {"gpu", "0000:1a:00.0"},
        {"", "0000:1a:00.0"},
        {"0000:c1:00.0", "../0000:1a:00.0"},
    };

    for (size_t i = 0; i < CM_LEN(bad); i++) {
        struct cm_topo *t = detect(two, CM_LEN(two), bad[i], 2);

        CHECK(t == NULL, "%s and %s were accepted", bad[i][0], bad[i][1]);
        cm_topo_free(t);
    }
}

/* A kernel without NUMA, a device below a second tree (VMD), the one NUMA node is everybody's. */
static void test_a_small_machine(void)
{
    static const struct entry small[] = {
        {CPU "/../online", "0-3\n", false},
        {DEV "10000:01:00.0",
         "../../../devices/pci0000:00/0000:00:0e.0/pci10000:00/10000:00:1a.0/10000:01:00.0", true},
        {DEV "10000:01:00.0/vendor", "0x10de\n", false},
        {DEV "10000:01:00.0/class", "0x030000\n", false},
        {DEV "10000:01:00.0/max_link_speed", "2.5 GT/s PCIe\n", false},
        {DEV "10000:01:00.0/current_link_width", "0\n", false},
        {DEV "10000:01:00.0/max_link_width", "4\n", false},
        {DEV "not:a:device", "../../../devices/elsewhere", true},
        {DEV "not:a:device/vendor", "0x10de\n", false},
        {DEV "not:a:device/class", "0x030000\n", false},
    };

    check_dump(detect(small, CM_LEN(small), NULL, 0),
               "topology 1\n"
               "numa 0 cpus 0-3\n"
               "gpu 0 bus 10000:01:00.0 path "
               "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:1a.0 numa 0 pcie 1\n");
}

static void test_nothing_to_see(void)
{
    static const struct entry empty[] = {{"kernel/notes", "", false}};

    check_dump(detect(empty, 1, NULL, 0), "topology 1\n");
}

static void test_bus_ids(void)
{
    static const struct {
        const char *text, *want; /* NULL: none */
    } cases[] = {
        {"0000:1b:00.0", "0000:1b:00.0"},
        {"00000000:1B:0A.7", "0000:1b:0a.7"},
        {"00010000:01:00.0", "10000:01:00.0"},
        {"ffffffff:ff:1f.0", NULL},
        {"1b:00.0", NULL},
        {"0000:1b:00", NULL},
        {"0000:1b:00.8", NULL},
        {"0000:1g:00.0", NULL},
        {"000:1b:00.0", NULL},
        {"0000:1b:00.0 ", NULL},
        {"", NULL},
        {"0000", NULL},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        char id[16] = "same";
        bool ok = cm_topo_bus_id(cases[i].text, id);

        CHECK(ok == (cases[i].want != NULL) && strcmp(id, ok ? cases[i].want : "same") == 0,
              "'%s': %s '%s'", cases[i].text, ok ? "yes" : "no", id);
    }
}

int main(void)
{
    RUN(test_a_server);
    RUN(test_listed_gpus_keep_their_order);
    RUN(test_listed_gpus_must_exist);
    RUN(test_a_small_machine);
    RUN(test_nothing_to_see);
    RUN(test_bus_ids);
    return test_end();
}
