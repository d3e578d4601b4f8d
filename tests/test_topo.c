/*
 * Topologies as text: the shipped machines, what is refused, classes, NICs,
 * rings, warnings, and what --topo prints.
 */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "common/topo_mode.h"
#include "engine/topo_int.h"
#include "test.h"

#define HOST "topology 1\nnuma 0 socket 0 cpus 0-3\nnuma 1 socket 1 cpus 4-7\n"
#define GPU0 "gpu 0 bus 0000:01:00.0 path pci0000:00/a numa 0\n"
#define GPU1 "gpu 1 bus 0000:02:00.0 path pci0000:00/b numa 0\n"

static const char *const machines[] = {"a100-nvswitch", "h100-rails", "rails-4x8", "pcie-4+4",
                                       "v100-cube",     "laptop",     "2-sockets"};

static struct cm_topo *load(const char *machine)
{
    struct cm_topo *t = NULL;
    char path[64];

    snprintf(path, sizeof(path), "tests/topo/%s.topo", machine);
    if (cm_topo_read(path, &t) != CM_OK)
        abort(); /* another test says why */
    return t;
}

static struct cm_topo *parse(const char *text)
{
    struct cm_topo *t = NULL;

    return cm_topo_parse(text, strlen(text), "text", &t) == CM_OK ? t : NULL;
}

/* The dump of a topology; the caller frees it. */
static char *dump(const struct cm_topo *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (f == NULL)
        abort();
    cm_topo_dump(t, f);
    fclose(f);
    return text;
}

static void test_machines_are_read_and_written_alike(void)
{
    for (size_t i = 0; i < CM_LEN(machines); i++) {
        struct cm_topo *t, *again = NULL;
        char path[64], *text;

        snprintf(path, sizeof(path), "tests/topo/%s.topo", machines[i]);
        CHECK(cm_topo_read(path, &t) == CM_OK, "%s", path);
        text = dump(t);
        CHECK(cm_topo_parse(text, strlen(text), "dump", &again) == CM_OK, "%s", text);
        CHECK(again != NULL && memcmp(t, again, sizeof(*t)) == 0, "%s: another topology:\n%s", path,
              text);
        free(text);
        cm_topo_free(t);
        cm_topo_free(again);
    }
}

static void test_good_forms_parse(void)
{
    static const char *const good[] = {
        "topology 1",
        "# note\n\n \ttopology\t1 # note\r\nnodes 4\n",
        HOST "siblings 0-1,4 2-3,5\n" GPU0 GPU1 "nvlink 0 1 gbs 25.5 links 4\n",
        HOST "siblings 3,1 2,0\nsiblings 4-5 6-7\n",
        HOST "nic a.b:c-d_1 numa 1 rail 3 net 12.5 pcie 0 path p bus 10000:FF:1f.7\n"
             "nic port2 bus 10000:ff:1f.7 path p\n",
    };

    for (size_t i = 0; i < CM_LEN(good); i++) {
        struct cm_topo *t = parse(good[i]);

        CHECK(t != NULL, "'%s'", good[i]);
        cm_topo_free(t);
    }
}

static const struct {
    const char *text;
    const char *said; /* in the message */
} refused[] = {
    {"", ":0: there is no statement"},
    {"# topology 1\n", ":1: there is no statement"},
    {"nodes 1\n", ":1: the first statement must be 'topology 1'"},
    {"topology 2\n", ":1: topology is given once, with version 1"},
    {"topology 1\ntopology 1\n", ":2: topology is given once"},
    {"topology 1\n\nhost x\n", ":3: 'host' is no statement"},
    {"topology 1\nnodes 0\n", "nodes '0'"},
    {"topology 1\nnodes 2\nnodes 2\n", ":3: nodes has one number"},
    {"topology 1\nnodes x\n", "nodes 'x' is not a whole number"},
    {"topology 1\nnuma\n", "numa has no id"},
    {"topology 1\nnuma 0\n", "cpus is missing"},
    {"topology 1\nnuma 0 cpus\n", "cpus has no value"},
    {"topology 1\nnuma 0 cpus 3-1\n", "cpus '3-1' is not a list"},
    {"topology 1\nnuma 0 cpus 0-1024\n", "cpus '0-1024' is not a list"},
    {"topology 1\nnuma 0 cpus 0,\n", "cpus '0,' is not a list"},
    {"topology 1\nnuma 0 cpus 0,0\n", "cpu 0 is given twice"},
    {"topology 1\nnuma 0 cpus 0\nnuma 0 cpus 1\n", ":3: numa 0 is given twice"},
    {"topology 1\nnuma 0 cpus 0\nnuma 1 cpus 0\n", "cpu 0 is given twice"},
    {"topology 1\nnuma 0 cpus 0 socket x\n", "socket 'x'"},
    {"topology 1\nnuma 0 cpus 0 cpus 1\n", "cpus is given twice"},
    {"topology 1\nnuma 0 cpus 0 speed 1\n", "'speed' is no key of numa"},
    {HOST "siblings 0-1\n", "less than two lists"},
    {HOST "siblings 0-1 2\n", "lists of 2 and 1 siblings"},
    {HOST "siblings 0 8\n", "no numa node has cpu 8"},
    {HOST "siblings 0 0\n", "cpu 0 has siblings already"},
    {HOST "siblings 0 1\nsiblings 1 2\n", ":5: cpu 1 has siblings already"},
    {HOST "gpu\n", "gpu has no number"},
    {HOST GPU1, "gpu 1: the next one is gpu 0"},
    {HOST "gpu 0 path p\n", "bus is missing"},
    {HOST "gpu 0 bus 0000:01:00.0\n", "path is missing"},
    {HOST "gpu 0 bus 01:00.0 path p\n", "bus '01:00.0' is not a PCI bus id"},
    {HOST "gpu 0 bus 0000:01:00.8 path p\n", "is not a PCI bus id"},
    {HOST "gpu 0 bus 0000:01:00.0 path /p\n", "path '/p' is not a path"},
    {HOST "gpu 0 bus 0000:01:00.0 path p/\n", "path 'p/' is not a path"},
    {HOST "gpu 0 bus 0000:01:00.0 path a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q\n", "at most 16 names"},
    {HOST "gpu 0 bus 0000:01:00.0 path p numa 2\n", "there is no numa node 2"},
    {HOST "gpu 0 bus 0000:01:00.0 path p pcie -1\n", "pcie '-1' is not a number of GB/s"},
    {HOST "gpu 0 bus 0000:01:00.0 path p net 1\n", "'net' is no key of gpu"},
    {HOST GPU0 "gpu 1 bus 0000:01:00.0 path p\n", ":5: bus 0000:01:00.0 is given twice"},
    {HOST "nic\n", "'' is no name"},
    {HOST "nic a/b bus 0000:01:00.0 path p\n", "'a/b' is no name"},
    {HOST "nic a bus 0000:01:00.0 path p net x\n", "net 'x'"},
    {HOST "nic a bus 0000:01:00.0 path p rail -1\n", "rail '-1'"},
    {HOST "nic a bus 0000:01:00.0 path p\nnic a bus 0000:02:00.0 path p\n", "nic a is given twice"},
    {HOST GPU0 "nvlink 0\n", "less than two ends"},
    {HOST GPU0 "nvlink 0 1 links 1 gbs 25\n", "nvlink 0 1: not two of the 1 GPUs"},
    {HOST GPU0 "nvlink 0 0 links 1 gbs 25\n", "nvlink 0 0: not two"},
    {HOST GPU0 "nvlink switch 0 links 1 gbs 25\n", "gpu 'switch'"},
    {HOST GPU0 "nvlink 0 switch links 0 gbs 25\n", "no links"},
    {HOST GPU0 "nvlink 0 switch links 4\n", "gbs is missing"},
    {HOST GPU0 GPU1 "nvlink 0 1 links 1 gbs 1\nnvlink 1 0 links 1 gbs 1\n", "given twice"},
    {"topology 1\n\x01\n", ":2: not a line of ASCII text"},
    {"topology 1\nsiblings 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
     ":2: more than 32 words"},
};

static void test_bad_texts_are_refused_with_their_line(void)
{
    static struct capture c;

    for (size_t i = 0; i < CM_LEN(refused); i++) {
        struct cm_topo *t = NULL;
        enum cm_status st;

        capture_begin(&c, STDERR_FILENO);
        st = cm_topo_parse(refused[i].text, strlen(refused[i].text), "file", &t);
        capture_end(&c);
        CHECK(st == CM_EINVAL && t == NULL, "'%s': status %d", refused[i].text, st);
        CHECK(strncmp(c.text, "file:", 5) == 0 && strstr(c.text, refused[i].said) != NULL &&
                  strchr(c.text, '\n') == strrchr(c.text, '\n'),
              "'%s': got '%s', want '%s'", refused[i].text, c.text, refused[i].said);
    }
}

static void test_files_that_cannot_be_read(void)
{
    struct cm_topo *t = NULL;

    CHECK(cm_topo_read("/nonexistent/topo", &t) == CM_EINVAL && t == NULL, "it was read");
    CHECK(cm_topo_read("/", &t) == CM_EINVAL && t == NULL, "a folder was read");
    CHECK(cm_topo_read("/dev/zero", &t) == CM_EINVAL && t == NULL, "an endless file was read");
}

static void test_classes(void)
{
    static const struct {
        const char *machine, *a, *b, *class;
        double gbs;
    } cases[] = {
        {"a100-nvswitch", "GPU0", "GPU7", "NV12", 300},
        {"a100-nvswitch", "GPU1", "mlx5_0", "PXB", 31.5},
        {"a100-nvswitch", "mlx5_0", "mlx5_1", "PIX", 31.5},
        {"a100-nvswitch", "GPU0", "mlx5_2", "SYS", 31.5},
        {"h100-rails", "GPU5", "mlx5_5", "PIX", 63},
        {"h100-rails", "GPU5", "mlx5_4", "NODE", 63},
        {"pcie-4+4", "GPU0", "GPU1", "PIX", 31.5},
        {"pcie-4+4", "GPU1", "GPU2", "PHB", 31.5},
        {"pcie-4+4", "GPU3", "GPU4", "SYS", 31.5},
        {"pcie-4+4", "GPU3", "GPU3", "X", 0},
        {"v100-cube", "GPU2", "GPU1", "NV2", 50},
        {"v100-cube", "GPU2", "GPU4", "SYS", 15.8},
        {"laptop", "GPU0", "wlp0s20f3", "PHB", 15.8},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_topo *t = load(cases[i].machine);
        int a = -1, b = -1;
        struct cm_topo_link l, back;
        char text[16];

        for (int d = 0; d < t->ngpus + t->nnics; d++) {
            a = strcmp(cm_topo_device(t, d)->name, cases[i].a) == 0 ? d : a;
            b = strcmp(cm_topo_device(t, d)->name, cases[i].b) == 0 ? d : b;
        }
        l = cm_topo_link(t, a, b);
        back = cm_topo_link(t, b, a);
        CHECK(strcmp(cm_topo_class_text(&l, text), cases[i].class) == 0 && l.kind == back.kind,
              "%s %s-%s: %s, want %s", cases[i].machine, cases[i].a, cases[i].b, text,
              cases[i].class);
        CHECK(l.gbs > cases[i].gbs - 1e-9 && l.gbs < cases[i].gbs + 1e-9,
              "%s %s-%s: %g GB/s, want %g", cases[i].machine, cases[i].a, cases[i].b, l.gbs,
              cases[i].gbs);
        cm_topo_free(t);
    }
}

/* Paths below one host bridge, or of two, and what their devices are to each other. */
static void test_classes_of_paths(void)
{
    static const struct {
        const char *a, *b;
        int numa_a, numa_b;
        enum cm_topo_class class;
    } cases[] = {
        {"h", "h", 0, 0, CM_TOPO_PHB},
        {"h/p", "h/q", 0, 1, CM_TOPO_PHB},
        {"h/p", "h/p", 0, 0, CM_TOPO_PIX}, /* functions of one device */
        {"h/p/u/d", "h/p/u/e", 0, 0, CM_TOPO_PIX},
        {"h/p/u/d/v", "h/p/u/e", 0, 0, CM_TOPO_PXB},
        {"h/p/u", "h/p/u/d/v/e", 0, 0, CM_TOPO_PXB},
        {"h/p/u", "hh/p/u", 0, 0, CM_TOPO_NODE},
        {"h/p/u", "i/p/u", 0, 1, CM_TOPO_SYS},
        {"h/p", "i/p", -1, -1, CM_TOPO_SYS}, /* nobody knows, so the worst */
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_topo *t = parse(HOST GPU0 GPU1);

        if (t == NULL)
            abort();
        strcpy(t->gpus[0].path, cases[i].a);
        strcpy(t->gpus[1].path, cases[i].b);
        t->gpus[0].numa = cases[i].numa_a;
        t->gpus[1].numa = cases[i].numa_b;
        for (int a = 0; a < 2; a++)
            CHECK(cm_topo_link(t, a, 1 - a).kind == cases[i].class, "%s %s: class %d, want %d",
                  cases[i].a, cases[i].b, cm_topo_link(t, a, 1 - a).kind, cases[i].class);
        cm_topo_free(t);
    }
}

static void test_nics_of_gpus(void)
{
    static const struct {
        const char *machine;
        int want[8], equal; /* the NIC of each GPU; how many are equally good for GPU 0 */
    } cases[] = {
        {"a100-nvswitch", {0, 1, 2, 3, 4, 5, 6, 7}, 2},
        {"h100-rails", {0, 1, 2, 3, 4, 5, 6, 7}, 1},
        {"pcie-4+4", {0, 0, 0, 0, 1, 1, 1, 1}, 1},
        {"v100-cube", {0, 0, 1, 1, 2, 2, 3, 3}, 1},
        {"laptop", {0}, 1},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_topo *t = load(cases[i].machine);
        int nics[CM_TOPO_NICS], n = cm_topo_nics(t, 0, nics);

        CHECK(n == cases[i].equal, "%s: %d NICs for GPU 0", cases[i].machine, n);
        for (int g = 0; g < t->ngpus; g++)
            CHECK(cm_topo_nic(t, g) == cases[i].want[g], "%s GPU %d: NIC %d, want %d",
                  cases[i].machine, g, cm_topo_nic(t, g), cases[i].want[g]);
        cm_topo_free(t);
    }
}

/* A fast NIC far away is better than a slow one nearby; one of unknown speed comes last. */
static void test_speed_counts_before_distance(void)
{
    struct cm_topo *t = parse(HOST "gpu 0 bus 0000:01:00.0 path pci0000:00/a numa 0 pcie 31.5\n"
                                   "nic near bus 0000:02:00.0 path pci0000:00/a net 0.125\n"
                                   "nic far bus 0000:03:00.0 path pci0000:80/b numa 1 net 25\n"
                                   "nic dark bus 0000:04:00.0 path pci0000:00/a\n");
    int nics[CM_TOPO_NICS];

    CHECK(t != NULL && cm_topo_nics(t, 0, nics) == 1 && nics[0] == 1, "NIC %d", nics[0]);
    cm_topo_free(t);
    t = parse(HOST GPU0);
    CHECK(t != NULL && cm_topo_nic(t, 0) == -1, "a NIC was found");
    cm_topo_free(t);
}

static void keep(void *arg, const char *text)
{
    char *all = arg;

    strcat(all, text);
    strcat(all, "\n");
}

static void test_healthy_machines_have_no_warning(void)
{
    for (size_t i = 0; i < CM_LEN(machines); i++) {
        struct cm_topo *t = load(machines[i]);
        char text[4096] = "";

        CHECK(cm_topo_warn_nvlink(t, keep, text) == 0, "%s: %s", machines[i], text);
        cm_topo_free(t);
    }
}

static void test_a_gpu_without_its_nvlinks_is_told(void)
{
    struct cm_topo *t = load("a100-nvswitch");
    char text[4096] = "";

    t->nvlinks[3][CM_TOPO_SWITCH].links = 0;
    t->nvlinks[6][CM_TOPO_SWITCH].links = 11;
    CHECK(cm_topo_warn_nvlink(t, keep, text) == 2, "%s", text);
    CHECK(strstr(text, "GPU3 (0000:4e:00.0) has 0 NVLinks and reaches 0 GPUs over them; most GPUs "
                       "have 12 and reach 6\n") != NULL,
          "%s", text);
    CHECK(strstr(text, "GPU6 (0000:b7:00.0) has 11 NVLinks and reaches 6") != NULL, "%s", text);
    cm_topo_free(t);
}

/* One GPU with a link and one without: nobody knows which is right. */
static void test_no_majority_no_warning(void)
{
    struct cm_topo *t = parse(HOST GPU0 GPU1 "nvlink 0 switch links 4 gbs 25\n");
    char text[4096] = "";

    CHECK(t != NULL && cm_topo_warn_nvlink(t, keep, text) == 0, "%s", text);
    cm_topo_free(t);
}

static void test_ranks_that_share_a_core_are_told(void)
{
    static const int32_t apart[] = {0, 1, 64, -1, -1, 5000}, shared[] = {3, 0, 128, 4, 0, -1, 131};
    struct cm_topo *t = load("a100-nvswitch");
    char text[4096] = "";

    CHECK(cm_topo_warn_cores(t, apart, CM_LEN(apart), keep, text) == 0, "%s", text);
    CHECK(cm_topo_warn_cores(t, shared, CM_LEN(shared), keep, text) == 2, "%s", text);
    CHECK(strcmp(text, "ranks 1, 2, 4 share the core of cpu 0\n"
                       "ranks 0, 6 share the core of cpu 3\n") == 0,
          "%s", text);
    cm_topo_free(t);
}

static void test_mode_prints_a_matrix(void)
{
    static struct capture c;
    enum cm_status st;

    capture_begin(&c, STDOUT_FILENO);
    st = cm_topo_mode("matrix:tests/topo/pcie-4+4.topo");
    capture_end(&c);
    CHECK(st == CM_OK, "status %d", st);
    CHECK(strstr(c.text, "GPU2    PHB     PHB     X       PIX     SYS") != NULL &&
              strstr(c.text, "GPU7 uses mlx5_1 (NODE, 25 GB/s)\n") != NULL &&
              strstr(c.text, "ring 0 1 2 3 4 5 6 7, weakest link SYS, 31.5 GB/s\n") != NULL,
          "%s", c.text);
}

static void test_mode_dumps_what_it_reads_back(void)
{
    static struct capture c;
    struct cm_topo *t = NULL;
    enum cm_status st;

    capture_begin(&c, STDOUT_FILENO);
    st = cm_topo_mode("dump");
    capture_end(&c);
    CHECK(st == CM_OK, "status %d", st);
    CHECK(cm_topo_parse(c.text, strlen(c.text), "dump", &t) == CM_OK, "%s", c.text);
    cm_topo_free(t);
}

int main(void)
{
    RUN(test_machines_are_read_and_written_alike);
    RUN(test_good_forms_parse);
    RUN(test_bad_texts_are_refused_with_their_line);
    RUN(test_files_that_cannot_be_read);
    RUN(test_classes);
    RUN(test_classes_of_paths);
    RUN(test_nics_of_gpus);
    RUN(test_speed_counts_before_distance);
    RUN(test_healthy_machines_have_no_warning);
    RUN(test_a_gpu_without_its_nvlinks_is_told);
    RUN(test_no_majority_no_warning);
    RUN(test_ranks_that_share_a_core_are_told);
    RUN(test_mode_prints_a_matrix);
    RUN(test_mode_dumps_what_it_reads_back);
    return test_end();
}
