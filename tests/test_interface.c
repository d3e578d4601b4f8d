/* --ip and --ifname together: the address that a job takes on made-up machines. */
#include <string.h>

#include "capture.h"
#include "common/interface.h"
#include "test.h"

static const struct cm_net_if machine[] = {
    {"lo", 1, 0, true, {4, 0, 0, {127, 0, 0, 1}}},
    {"eth0", 2, 1000, false, {4, 0, 0, {10, 0, 0, 5}}},
    {"eth0", 2, 1000, false, {6, 0, 0, {0xfd, 1}}},
    {"eth1", 3, 10000, false, {6, 0, 0, {0xfd, 2}}},
};

static const struct {
    int ip;
    const char *ifname;
    int n; /* of the machine */
    enum cm_status status;
    const char *name, *says;
    int version;
} cases[] = {
    {CM_IP_ANY, NULL, 4, CM_OK, "eth1", NULL, 6},
    {CM_IP_4, NULL, 4, CM_OK, "eth0", NULL, 4}, /* the faster one has no such address */
    {CM_IP_6, NULL, 4, CM_OK, "eth1", NULL, 6},
    {CM_IP_6, "eth0", 4, CM_OK, "eth0", NULL, 6},
    {CM_IP_ANY, "eth0", 4, CM_OK, "eth0", NULL, 4},
    {CM_IP_6, NULL, 2, CM_EINVAL, NULL, "--ip 6", 0},
    {CM_IP_4, "eth1", 4, CM_EINVAL, NULL, "--ifname eth1", 0},
    {CM_IP_ANY, NULL, 0, CM_EINVAL, NULL, "no network interface", 0},
};

static void test_version_then_name(void)
{
    for (size_t i = 0; i < CM_LEN(cases); i++) {
        const struct cm_opts_net o = {.ip = cases[i].ip, .ifname = cases[i].ifname};
        struct cm_net_if ifs[CM_LEN(machine)], got = {.name = "none"};
        struct capture err;
        enum cm_status st;

        memcpy(ifs, machine, sizeof(machine));
        capture_begin(&err, STDERR_FILENO);
        st = cm_interface_choose_from(&o, ifs, cases[i].n, &got);
        capture_end(&err);
        CHECK(st == cases[i].status, "case %zu: status %d: %s", i, (int)st, err.text);
        if (cases[i].status == CM_OK)
            CHECK(strcmp(got.name, cases[i].name) == 0 && got.addr.version == cases[i].version,
                  "case %zu: %s version %d", i, got.name, got.addr.version);
        else
            CHECK(strcmp(got.name, "none") == 0 && strstr(err.text, cases[i].says) != NULL,
                  "case %zu: '%s'", i, err.text);
    }
}

static void test_this_machine(void)
{
    const struct cm_opts_net o = {.ip = CM_IP_4, .ifname = "=lo"};
    struct cm_net_if got;

    CHECK(cm_interface_choose(&o, &got) == CM_OK && got.loopback, "no loopback");
}

int main(void)
{
    RUN(test_version_then_name);
    RUN(test_this_machine);
    return test_end();
}
