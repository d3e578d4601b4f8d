/*
 * Which adapter, port and GID the ib wire takes; and how it registers and
 * flushes memory of a GPU. Over libibverbs' double and a made-up /sys.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"
#include "transport/ib_gpu.h"
#include "verbs_double.h"

enum { ETH = IBV_LINK_LAYER_ETHERNET, IB = IBV_LINK_LAYER_INFINIBAND };

/* ---- a made-up /sys ---- */

struct entry {
    const char *path, *text;
};

static char root[256];

static void make_folders(char *path)
{
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static const char *make_sysfs(const struct entry *e, size_t n)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(root, sizeof(root), "%s/ib.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(root) == NULL)
        abort();
    for (size_t i = 0; i < n; i++) {
        char path[512];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", root, e[i].path);
        make_folders(path);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, e[i].text, strlen(e[i].text)) < 0)
            abort();
        close(fd);
    }
    return root;
}

static void remove_sysfs(void)
{
    char command[300];

    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    if (system(command) != 0)
        abort();
}

/* ---- devices ---- */

static const struct double_device machine[] = {
    {"mlx5_0", 1, 0, {{false, ETH, 0, IBV_MTU_1024, 32, 1, {"fe80::1", "::ffff:10.0.0.1"}}}},
    {"mlx5_1",
     2,
     0,
     {{false, IB, 4, IBV_MTU_4096, 64, 2, {"fe80::2"}},
      {true, IB, 5, IBV_MTU_4096, 64, 2, {"fe80::3"}}}},
    {"mlx5_2", 1, 0, {{false, IB, 6, IBV_MTU_4096, 64, 2, {"fe80::4"}}}},
    {"mlx5_10", 1, 0, {{false, IB, 8, IBV_MTU_4096, 64, 2, {"fe80::5"}}}},
    {"mlx5_11", 1, 0, {{false, IB, 0, IBV_MTU_4096, 128, 2, {"fe80::6"}}}},
    {"mlx5_12", 1, EACCES, {{false, IB, 9, IBV_MTU_4096, 128, 2, {"fe80::7"}}}},
};

static const struct entry numa[] = {
    {"class/infiniband/mlx5_0/device/numa_node", "0\n"},
    {"class/infiniband/mlx5_1/device/numa_node", "0\n"},
    {"class/infiniband/mlx5_2/device/numa_node", "1\n"},
    {"class/infiniband/mlx5_10/device/numa_node", "1\n"},
};

static enum cm_status open_choice(const struct cm_ib_choice *c, char name[80], char why[CM_TEXT])
{
    struct cm_ib_dev d;
    enum cm_status st;

    why[0] = name[0] = '\0';
    st = cm_ib_dev_open(verbs_double(), root, c, &d, why);
    if (st != CM_OK)
        return st;
    snprintf(name, 80, "%s:%d", d.name, d.port);
    cm_ib_dev_close(&d);
    return st;
}

static void begin(const struct double_device *devices, int n)
{
    struct double_setup setup = double_usual();

    setup.devices = devices;
    setup.ndevices = n;
    verbs_double_begin(&setup);
}

static void end(void)
{
    char text[DOUBLE_TEXT];
    int n = verbs_double_end(text);

    CHECK(n == 0, "%d violations, the first: %s", n, text);
}

static void test_the_port_that_is_chosen(void)
{
    static const struct {
        const char *hca;
        int numa, nth;
        const char *want; /* NULL: refused */
    } rows[] = {
        /* the fastest that are up, in turn */
        {NULL, -1, 0, "mlx5_1:1"},
        {"", -1, 1, "mlx5_2:1"},
        {NULL, -1, 2, "mlx5_10:1"},
        {NULL, -1, 3, "mlx5_1:1"},
        /* of these the nearest */
        {NULL, 0, 0, "mlx5_1:1"},
        {NULL, 0, 1, "mlx5_1:1"},
        {NULL, 1, 0, "mlx5_2:1"},
        {NULL, 1, 1, "mlx5_10:1"},
        {NULL, 7, 1, "mlx5_2:1"},
        /* prefixes, whole names, ports, exclusion */
        {"mlx5_0", -1, 0, "mlx5_0:1"},
        {"mlx5_1", -1, 1, "mlx5_10:1"},
        {"=mlx5_1", -1, 1, "mlx5_1:1"},
        {"mlx5_0,mlx5_2", -1, 0, "mlx5_2:1"},
        {"=mlx5_0:1,mlx5_x", -1, 0, "mlx5_0:1"},
        {"mlx5_1:1", -1, 0, "mlx5_1:1"},
        {"mlx5_1:2", -1, 0, NULL},
        {"mlx5_2:x", -1, 0, NULL},
        {"^mlx5_1", -1, 0, "mlx5_2:1"},
        {"^=mlx5_1,mlx5_2", -1, 0, "mlx5_10:1"},
        {"^mlx5", -1, 0, NULL},
        {"rxe", -1, 0, NULL},
    };

    make_sysfs(numa, CM_LEN(numa));
    begin(machine, CM_LEN(machine));
    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_ib_choice c = cm_ib_usual();
        char name[80], why[CM_TEXT];
        enum cm_status st;

        c.hca = rows[i].hca;
        c.numa = rows[i].numa;
        c.nth = rows[i].nth;
        st = open_choice(&c, name, why);
        if (rows[i].want != NULL)
            CHECK(st == CM_OK && strcmp(name, rows[i].want) == 0, "'%s' numa %d nth %d: '%s' %s",
                  c.hca, c.numa, c.nth, name, why);
        else
            CHECK(st == CM_EINVAL && strstr(why, rows[i].hca) != NULL &&
                      strstr(why, "mlx5_1:2 is down") != NULL &&
                      strstr(why, "mlx5_11:1 has no address: no subnet manager") != NULL &&
                      strstr(why, "mlx5_12:1 may not be opened") != NULL,
                  "'%s': status %d, '%s'", c.hca, st, why);
    }
    end();
    remove_sysfs();
}

/* Unless it is slower, or the user names others. */
static void test_the_port_that_belongs_to_the_gpu(void)
{
    static const struct {
        const char *hca, *nearest, *want;
    } rows[] = {
        {NULL, "mlx5_10", "mlx5_10:1"},
        {NULL, "mlx5_0", "mlx5_1:1"},
        {"mlx5_2", "mlx5_10", "mlx5_2:1"},
    };

    make_sysfs(numa, CM_LEN(numa));
    begin(machine, CM_LEN(machine));
    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_ib_choice c = cm_ib_usual();
        char name[80], why[CM_TEXT];

        c.hca = rows[i].hca;
        c.nearest = rows[i].nearest;
        c.numa = 0;
        c.nth = 1;
        CHECK(open_choice(&c, name, why) == CM_OK && strcmp(name, rows[i].want) == 0,
              "nearest %s: '%s' %s", c.nearest, name, why);
    }
    end();
    remove_sysfs();
}

static void test_no_port_at_all(void)
{
    static const struct {
        int first, n;
        const char *text;
    } rows[] = {{0, 0, "no RDMA device"}, {4, 1, "mlx5_11:1 has no address"}};

    make_sysfs(NULL, 0);
    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_ib_choice c = cm_ib_usual();
        char name[80], why[CM_TEXT];
        enum cm_status st;

        begin(&machine[rows[i].first], rows[i].n);
        st = open_choice(&c, name, why);
        CHECK(st == CM_EUNSUP && strstr(why, rows[i].text) != NULL, "status %d, '%s'", st, why);
        end();
    }
    remove_sysfs();
}

/* ---- GIDs ---- */

#define TYPES "class/infiniband/dev/ports/1/gid_attrs/types/"

/* As an adapter lists them: each address twice, for both versions. */
static const struct double_device roce[] = {
    {"dev",
     1,
     0,
     {{false,
       ETH,
       0,
       IBV_MTU_1024,
       32,
       2,
       {"fe80::1", "fe80::1", "::ffff:169.254.3.4", "::ffff:169.254.3.4", "2001:db8::1",
        "2001:db8::1", "::ffff:10.0.0.1", "::ffff:10.0.0.1"}}}},
};

static const struct {
    struct entry types[DOUBLE_GIDS];
    int n, want, index;
    enum cm_ib_framing framing;
    const char *text;
} gid_rows[] = {
    /* version 2, of IPv4 */
    {{{TYPES "0", "IB/RoCE v1\n"},
      {TYPES "1", "RoCE v2\n"},
      {TYPES "2", "IB/RoCE v1\n"},
      {TYPES "3", "RoCE v2\n"},
      {TYPES "4", "IB/RoCE v1\n"},
      {TYPES "5", "RoCE v2\n"},
      {TYPES "6", "IB/RoCE v1\n"},
      {TYPES "7", "RoCE v2\n"}},
     8,
     -1,
     7,
     CM_IB_ROCE_V2,
     "10.0.0.1"},
    /* version 2 is worth more than IPv4, a valid address more than a version */
    {{{TYPES "1", "RoCE v2\n"},
      {TYPES "3", "RoCE v2\n"},
      {TYPES "5", "RoCE v2\n"},
      {TYPES "6", "IB/RoCE v1\n"},
      {TYPES "7", "IB/RoCE v1\n"}},
     5,
     -1,
     5,
     CM_IB_ROCE_V2,
     "2001:db8::1"},
    {{{TYPES "1", "RoCE v2\n"}, {TYPES "3", "RoCE v2\n"}}, 2, -1, 3, CM_IB_ROCE_V2, "169.254.3.4"},
    /* nobody tells the version */
    {{{NULL, NULL}}, 0, -1, 6, CM_IB_ROCE_UNKNOWN, "10.0.0.1"},
    /* as the user says */
    {{{TYPES "0", "IB/RoCE v1\n"}}, 1, 0, 0, CM_IB_ROCE_V1, "fe80::1"},
};

static void test_the_gid_that_is_chosen(void)
{
    for (size_t i = 0; i < CM_LEN(gid_rows); i++) {
        struct cm_ib_choice c = cm_ib_usual();
        char text[CM_IB_GID_TEXT], why[CM_TEXT] = "";
        struct cm_ib_dev d;
        enum cm_status st;

        make_sysfs(gid_rows[i].types, (size_t)gid_rows[i].n);
        begin(roce, 1);
        c.gid = gid_rows[i].want;
        st = cm_ib_dev_open(verbs_double(), root, &c, &d, why);
        CHECK(st == CM_OK, "row %zu: %s", i, why);
        if (st == CM_OK) {
            cm_ib_gid_text(d.gid.raw, text);
            CHECK(d.gid_index == gid_rows[i].index && d.framing == gid_rows[i].framing &&
                      strcmp(text, gid_rows[i].text) == 0,
                  "row %zu: %d %s %s", i, d.gid_index, cm_ib_framing_text(d.framing), text);
            cm_ib_dev_close(&d);
        }
        end();
        remove_sysfs();
    }
}

static void test_a_port_without_gid(void)
{
    static const struct double_device bare[] = {
        {"dev", 1, 0, {{false, ETH, 0, IBV_MTU_1024, 32, 2, {NULL}}}}};
    struct cm_ib_choice c = cm_ib_usual();
    char name[80], why[CM_TEXT];
    enum cm_status st;

    make_sysfs(NULL, 0);
    begin(bare, 1);
    st = open_choice(&c, name, why);
    CHECK(st == CM_EUNSUP && strstr(why, "has no GID") != NULL, "status %d, '%s'", st, why);
    end();
    remove_sysfs();
}

int main(void)
{
    RUN(test_the_port_that_is_chosen);
    RUN(test_the_port_that_belongs_to_the_gpu);
    RUN(test_no_port_at_all);
    RUN(test_the_gid_that_is_chosen);
    RUN(test_a_port_without_gid);
    return test_end();
}
