/* Interfaces and listening: the rule that chooses, and where a job may listen. */
#define _GNU_SOURCE
#include "sockets.h"
#include "test.h"

/* ---- which interface ---- */

static const struct cm_net_if machine[] = {
    {"lo", 1, 0, true, {4, 0, 0, {127, 0, 0, 1}}},
    {"docker0", 2, 10000, false, {4, 0, 0, {172, 17, 0, 1}}},
    {"eth0", 3, 1000, false, {4, 0, 0, {10, 0, 0, 5}}},
    {"eth1", 4, 10000, false, {6, 0, 0, {0xfe, 0x80, 1}}},
    {"eth1", 4, 10000, false, {6, 0, 0, {0xfd, 0, 1}}},
    {"eth1", 4, 10000, false, {4, 0, 0, {10, 1, 0, 5}}},
    {"eth10", 5, 0, false, {4, 0, 0, {10, 2, 0, 5}}},
    {"ib0", 6, 200000, false, {4, 0, 0, {10, 3, 0, 5}}},
    {"veth7", 7, 10000, false, {4, 0, 0, {10, 4, 0, 5}}},
};

/* Names and the first byte of the address, in order. */
static const struct {
    int from, n; /* part of the machine */
    const char *spec, *want;
} choices[] = {
    {0, 9, NULL, "ib0:10 eth1:10 eth1:253 eth1:254 eth0:10 eth10:10"},
    {0, 9, "", "ib0:10 eth1:10 eth1:253 eth1:254 eth0:10 eth10:10"},
    {0, 2, NULL, "docker0:172"},
    {0, 1, NULL, "lo:127"},
    {0, 9, "eth0", "eth0:10"},
    {0, 9, "=eth1", "eth1:10 eth1:253 eth1:254"},
    {0, 9, "eth1", "eth1:10 eth1:253 eth1:254 eth10:10"},
    {0, 9, "eth0,ib", "eth0:10 ib0:10"},
    {0, 9, "=eth10,eth0", "eth10:10 eth0:10"},
    {0, 9, "^eth,docker,lo", "ib0:10 veth7:10"},
    {0, 9, "^=eth1,ib0", "eth0:10 eth10:10 docker0:172 veth7:10 lo:127"},
    {0, 9, "lo", "lo:127"},
    {0, 9, ",,veth", "veth7:10"},
};

static void test_the_rule_that_chooses(void)
{
    for (size_t i = 0; i < CM_LEN(choices); i++) {
        struct cm_net_if ifs[CM_LEN(machine)];
        char got[256] = "";
        size_t len = 0;
        int n = choices[i].n;

        memcpy(ifs, machine + choices[i].from, (size_t)n * sizeof(*ifs));
        CHECK(cm_net_select(ifs, &n, choices[i].spec) == CM_OK, "spec %s", choices[i].spec);
        for (int k = 0; k < n; k++)
            len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s:%d", k > 0 ? " " : "",
                                    ifs[k].name, ifs[k].addr.ip[0]);
        CHECK(strcmp(got, choices[i].want) == 0, "spec %s: got %s, want %s", choices[i].spec, got,
              choices[i].want);
    }
}

static void test_what_is_not_there_is_refused(void)
{
    static const char *const specs[] = {"nosuch0", "=eth", "^lo,docker,eth,ib,veth", ",", "^"};

    for (size_t i = 0; i < CM_LEN(specs); i++) {
        struct cm_net_if ifs[CM_LEN(machine)];
        int n = CM_LEN(machine);
        bool all = strcmp(specs[i], "^") == 0; /* excludes nothing, so it is the default */

        memcpy(ifs, machine, sizeof(machine));
        CHECK((cm_net_select(ifs, &n, specs[i]) == CM_OK) == all, "spec %s", specs[i]);
        CHECK(all || (n == CM_LEN(machine) && memcmp(ifs, machine, sizeof(machine)) == 0),
              "spec %s: the list changed", specs[i]);
    }
}

static void test_this_machine_has_loopback(void)
{
    struct cm_net_if lo;
    char text[CM_NET_TEXT];

    CHECK(sockets_loopback(4, &lo), "no loopback");
    CHECK(strcmp(cm_net_format(&lo.addr, text), "127.0.0.1") == 0, "%s", text);
    lo.addr = (struct cm_net_addr){.version = 6, .port = 7000, .ip = {0xfd, [15] = 2}};
    CHECK(strcmp(cm_net_format(&lo.addr, text), "[fd00::2]:7000") == 0, "%s", text);
}

/* ---- ports ---- */

static void test_port_ranges(void)
{
    static const struct {
        const char *text;
        bool good;
        uint16_t first, last;
    } rows[] = {
        {"7000-7100", true, 7000, 7100},
        {"7000", true, 7000, 7000},
        {"1-65535", true, 1, 65535},
        {"", false, 0, 0},
        {"0", false, 0, 0},
        {"70000", false, 0, 0},
        {"7100-7000", false, 0, 0},
        {"7000-", false, 0, 0},
        {"-7000", false, 0, 0},
        {"7000-7100x", false, 0, 0},
        {" 7000", false, 0, 0},
        {"99999999999999999999", false, 0, 0},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_net_ports r = {0, 0};

        CHECK((cm_net_parse_ports(rows[i].text, &r) == CM_OK) == rows[i].good, "%s", rows[i].text);
        CHECK(r.first == rows[i].first && r.last == rows[i].last, "%s: %d-%d", rows[i].text,
              r.first, r.last);
    }
}

static void test_a_range_is_kept_to(void)
{
    struct cm_net_addr a, b;
    struct cm_net_if lo;
    int fd[3] = {-1, -1, -1};
    bool good = sockets_loopback(4, &lo) &&
                cm_net_listen(&lo, (struct cm_net_ports){0, 0}, &fd[0], &a) == CM_OK;
    struct cm_net_ports one = {a.port, a.port};

    CHECK(good && a.port != 0, "port %d", a.port);
    CHECK(cm_net_listen(&lo, one, &fd[1], &b) == CM_ESYS, "port %d twice", a.port);
    if (a.port < 65000) {
        struct cm_net_ports some = {a.port, (uint16_t)(a.port + 20)};

        CHECK(cm_net_listen(&lo, some, &fd[2], &b) == CM_OK, "from port %d", a.port);
        CHECK(b.port > some.first && b.port <= some.last, "port %d", b.port);
    }
    for (int i = 0; i < 3; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

int main(void)
{
    RUN(test_the_rule_that_chooses);
    RUN(test_what_is_not_there_is_refused);
    RUN(test_this_machine_has_loopback);
    RUN(test_port_ranges);
    RUN(test_a_range_is_kept_to);
    return test_end();
}
