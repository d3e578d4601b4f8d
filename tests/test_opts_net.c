/*
 * Options between nodes, and the variables of NCCL that set them: each means
 * what it says or is refused by name.
 */
#include <stdlib.h>

#include "common/opts_table.h"
#include "parsed.h"
#include "transport/wire.h"

static void test_defaults(void)
{
    const struct cm_opts_net *n = &r.o.net;

    if (!accepted(""))
        return;
    CHECK(n->ifname == NULL && n->ports == NULL && n->rendezvous == NULL && n->ib_hca == NULL,
          "a text is set");
    CHECK(n->use == CM_NET_USE_AUTO && n->ip == CM_IP_ANY && n->progress == CM_PROGRESS_AUTO &&
              n->sockets == 0,
          "use %d ip %d progress %d sockets %d", n->use, n->ip, n->progress, n->sockets);
    CHECK(n->ib_gid == -1 && n->ib_qps == 1 && n->ib_timeout == 18 && n->ib_retries == 7,
          "gid %d qps %d timeout %d retries %d", n->ib_gid, n->ib_qps, n->ib_timeout,
          n->ib_retries);
    CHECK(n->ib_tc == 0 && n->ib_sl == 0 && !n->ib_disable && !n->shm_disable, "tc %d sl %d",
          n->ib_tc, n->ib_sl);
    CHECK(r.o.engine.p2p_level == NULL && !r.o.engine.p2p_disable, "level %s",
          r.o.engine.p2p_level);
}

static void test_values(void)
{
    const struct cm_opts_net *n = &r.o.net;

    if (accepted("--ifname|^=docker0,lo|--port-range|7000-7100|--rendezvous|file:/a b/c|--net|tcp"))
        CHECK(strcmp(n->ifname, "^=docker0,lo") == 0 && strcmp(n->ports, "7000-7100") == 0 &&
                  strcmp(n->rendezvous, "file:/a b/c") == 0 && n->use == CM_NET_USE_TCP,
              "ifname %s ports %s", n->ifname, n->ports);
    if (accepted("--ip|6|--progress|inline|--sockets|4|--wire|tcp|--ib-disable|1|--shm-disable|1"))
        CHECK(n->ip == CM_IP_6 && n->progress == CM_PROGRESS_INLINE && n->sockets == 4 &&
                  n->ib_disable && n->shm_disable && strcmp(r.o.launch.wire, "tcp") == 0,
              "ip %d progress %d sockets %d", n->ip, n->progress, n->sockets);
    if (accepted("--ib-hca|=mlx5_0:1,mlx5_3|--ib-gid|3|--ib-qps|4|--ib-timeout|22|--ib-tc|106"))
        CHECK(strcmp(n->ib_hca, "=mlx5_0:1,mlx5_3") == 0 && n->ib_gid == 3 && n->ib_qps == 4 &&
                  n->ib_timeout == 22 && n->ib_tc == 106,
              "gid %d qps %d timeout %d tc %d", n->ib_gid, n->ib_qps, n->ib_timeout, n->ib_tc);
    if (accepted("--ib-sl|15|--ib-retries|0|--sockets|auto|--wire|ib|--net|ib"))
        CHECK(n->ib_sl == 15 && n->ib_retries == 0 && n->sockets == 0 &&
                  strcmp(r.o.launch.wire, "ib") == 0,
              "sl %d retries %d", n->ib_sl, n->ib_retries);
    accepted("--port-range|7000|--rendezvous|env|--ifname|eth0:1|--sockets|0");
}

static const struct {
    const char *line, *name, *value;
} refused[] = {
    {"--ifname|", "--ifname", "''"},
    {"--ifname|^", "--ifname", "'^'"},
    {"--ifname|=", "--ifname", "'='"},
    {"--ifname|=^eth0", "--ifname", "'=^eth0'"},
    {"--ifname|eth0,,eth1", "--ifname", "'eth0,,eth1'"},
    {"--ifname|eth0,", "--ifname", "'eth0,'"},
    {"--ifname|eth0 eth1", "--ifname", "'eth0 eth1'"},
    {"--ifname|0123456789abcdef", "--ifname", "'0123456789abcdef'"},
    {"--port-range|0", "--port-range", "'0'"},
    {"--port-range|7000-", "--port-range", "'7000-'"},
    {"--port-range|-7000", "--port-range", "'-7000'"},
    {"--port-range|7100-7000", "--port-range", "'7100-7000'"},
    {"--port-range|7000-70000", "--port-range", "'7000-70000'"},
    {"--port-range|7000-7100x", "--port-range", "'7000-7100x'"},
    {"--port-range|7000-7100-7200", "--port-range", "1 to 65535"},
    {"--rendezvous|file:", "--rendezvous", "'file:'"},
    {"--rendezvous|tcp://x", "--rendezvous", "file:PATH"},
    {"--net|shm", "--net", "'shm'"},
    {"--ip|5", "--ip", "'5'"},
    {"--progress|both", "--progress", "'both'"},
    {"--sockets|17", "--sockets", "'17'"},
    {"--sockets|-1", "--sockets", "'-1'"},
    {"--ib-hca|mlx5_0:", "--ib-hca", "'mlx5_0:'"},
    {"--ib-hca|mlx5_0:0", "--ib-hca", "'mlx5_0:0'"},
    {"--ib-hca|mlx5_0:x", "--ib-hca", "'mlx5_0:x'"},
    {"--ib-hca|:1", "--ib-hca", "':1'"},
    {"--ib-hca|a,^b", "--ib-hca", "'a,^b'"},
    {"--ib-gid|256", "--ib-gid", "'256'"},
    {"--ib-gid|-2", "--ib-gid", "'-2'"},
    {"--ib-qps|0", "--ib-qps", "'0'"},
    {"--ib-timeout|0", "--ib-timeout", "'0'"}, /* would be for ever */
    {"--ib-timeout|23", "--ib-timeout", "'23'"},
    {"--ib-retries|8", "--ib-retries", "'8'"},
    {"--ib-tc|256", "--ib-tc", "'256'"},
    {"--ib-sl|16", "--ib-sl", "'16'"},
    {"--ib-disable|yes", "--ib-disable", "'yes'"},
    {"--shm-disable|2", "--shm-disable", "'2'"},
    {"--p2p-level|far", "--p2p-level", "loc, nvl, pix, pxb, phb, sys"},
    {"--wire|ib|--ib-disable|1", "--wire 'ib'", "--ib-disable"},
    {"--net|ib|--ib-disable|1", "--net 'ib'", "--ib-disable"},
    {"--wire|tcp|--net|ib", "--wire 'tcp'", "--net 'ib'"},
    {"--wire|shm|--shm-disable|1", "--wire 'shm'", "--shm-disable"},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < CM_LEN(refused); i++)
        expect_refused(refused[i].line, CM_EINVAL, refused[i].name, refused[i].value);
}

/* ---- the environment ---- */

/* Each variable, and the option's value as JSON would show it. */
static const struct {
    const char *variable, *value, *option, *want;
} known[] = {
    {"NCCL_SOCKET_IFNAME", "=eth0,eth1", "ifname", "=eth0,eth1"},
    {"NCCL_SOCKET_FAMILY", "AF_INET6", "ip", "6"},
    {"NCCL_SOCKET_FAMILY", "AF_INET", "ip", "4"},
    {"NCCL_NET", "Socket", "net", "tcp"},
    {"NCCL_NET", "ib", "net", "ib"},
    {"NCCL_SOCKET_NTHREADS", "4", "sockets", "4"},
    {"NCCL_NSOCKS_PERTHREAD", "8", "sockets", "8"},
    {"NCCL_IB_HCA", "mlx5_0:1", "ib-hca", "mlx5_0:1"},
    {"NCCL_IB_GID_INDEX", "3", "ib-gid", "3"},
    {"NCCL_IB_QPS_PER_CONNECTION", "2", "ib-qps", "2"},
    {"NCCL_IB_TIMEOUT", "22", "ib-timeout", "22"},
    {"NCCL_IB_RETRY_CNT", "5", "ib-retries", "5"},
    {"NCCL_IB_TC", "106", "ib-tc", "106"},
    {"NCCL_IB_SL", "3", "ib-sl", "3"},
    {"NCCL_IB_DISABLE", "1", "ib-disable", "1"},
    {"NCCL_SHM_DISABLE", "1", "shm-disable", "1"},
    {"NCCL_P2P_LEVEL", "SYS", "p2p-level", "sys"},
    {"NCCL_P2P_LEVEL", "nvl", "p2p-level", "nvl"},
    {"NCCL_P2P_LEVEL", "0", "p2p-level", "loc"},
    {"NCCL_P2P_LEVEL", "1", "p2p-level", "pix"},
    {"NCCL_P2P_LEVEL", "5", "p2p-level", "sys"},
    {"NCCL_DEBUG_FILE", "/tmp/x", "log", "/tmp/x"},
    {"COLLMARK_LOG", "/tmp/x", "log", "/tmp/x"},
    {"COLLMARK_DEBUG_FILE", "/tmp/x", "log", "/tmp/x"},
    {"COLLMARK_IFNAME", "lo", "ifname", "lo"},
};

static const char *value_of(const char *option, char *buf, size_t size)
{
    struct cm_option_value v;

    cm_option_get(cm_option_named(option), &r.o, &v);
    if (v.type == CM_VALUE_TEXT)
        snprintf(buf, size, "%s", v.text);
    else
        snprintf(buf, size, "%d", (int)v.whole);
    return buf;
}

static void test_variables(void)
{
    for (size_t i = 0; i < CM_LEN(known); i++) {
        char got[64], by[CM_SET_BY_BYTES], line[128];

        setenv(known[i].variable, known[i].value, 1);
        if (accepted("")) {
            value_of(known[i].option, got, sizeof(got));
            CHECK(strcmp(got, known[i].want) == 0, "%s=%s: --%s %s, want %s", known[i].variable,
                  known[i].value, known[i].option, got, known[i].want);
            cm_opts_set_by(&r.o, known[i].option, by);
            CHECK(strcmp(by, known[i].variable) == 0, "%s: set by %s", known[i].variable, by);
            snprintf(line, sizeof(line), "%s=%s", known[i].variable, known[i].value);
            CHECK(r.o.from_env != NULL && strcmp(r.o.from_env[0], line) == 0, "%s is not shown",
                  line);
        }
        cm_opts_free(&r.o);
        unsetenv(known[i].variable);
    }
    if (accepted("--ifname|lo")) {
        char by[CM_SET_BY_BYTES];

        CHECK(strcmp(cm_opts_set_by(&r.o, "ifname", by), "--ifname") == 0, "set by %s", by);
    }
}

static void test_variables_are_as_strict(void)
{
    static const struct {
        const char *variable, *value, *want;
    } cases[] = {
        {"NCCL_NET", "AWS Libfabric", "Socket, IB"},
        {"NCCL_NET", "tcp", "Socket, IB"},
        {"NCCL_SOCKET_FAMILY", "AF_UNIX", "AF_INET, AF_INET6"},
        {"NCCL_SOCKET_NTHREADS", "0", "1 to 16"},
        {"NCCL_NSOCKS_PERTHREAD", "17", "1 to 16"},
        {"NCCL_P2P_LEVEL", "NVLINK", "LOC, NVL, PIX, PXB, PHB, SYS, 0"},
        {"NCCL_P2P_LEVEL", "6", "0, 1, 2, 3, 4, 5"},
        {"NCCL_IB_DISABLE", "yes", "0 or 1"},
        {"NCCL_IB_TIMEOUT", "31", "1 to 22"},
        {"NCCL_SOCKET_IFNAME", "eth0;eth1 eth2", "separated by commas"},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        setenv(cases[i].variable, cases[i].value, 1);
        expect_refused("", CM_EINVAL, cases[i].variable, cases[i].value);
        expect_refused("", CM_EINVAL, cases[i].variable, cases[i].want);
        unsetenv(cases[i].variable);
    }
    setenv("NCCL_NET", "AWS Libfabric", 1); /* nobody looks at it */
    accepted("--net|tcp");
    cm_opts_free(&r.o);
    unsetenv("NCCL_NET");
}

static void test_sockets_are_a_product(void)
{
    setenv("NCCL_SOCKET_NTHREADS", "4", 1);
    setenv("NCCL_NSOCKS_PERTHREAD", "2", 1);
    if (accepted(""))
        CHECK(r.o.net.sockets == 8 && r.o.from_env[0] != NULL && r.o.from_env[1] != NULL,
              "--sockets %d", r.o.net.sockets);
    cm_opts_free(&r.o);
    setenv("NCCL_NSOCKS_PERTHREAD", "8", 1);
    expect_refused("", CM_EINVAL, "NCCL_NSOCKS_PERTHREAD x NCCL_SOCKET_NTHREADS '32'", "0 to 16");
    setenv("COLLMARK_SOCKETS", "3", 1);
    if (accepted(""))
        CHECK(r.o.net.sockets == 3, "--sockets %d", r.o.net.sockets);
    cm_opts_free(&r.o);
    unsetenv("COLLMARK_SOCKETS");
    unsetenv("NCCL_SOCKET_NTHREADS");
    unsetenv("NCCL_NSOCKS_PERTHREAD");
}

/* An option with two names is one option: the command line still beats both variables. */
static void test_second_names(void)
{
    setenv("COLLMARK_DEBUG_FILE", "/from/old", 1);
    if (accepted("--log|/from/line"))
        CHECK(strcmp(r.o.report.log, "/from/line") == 0, "--log %s", r.o.report.log);
    cm_opts_free(&r.o);
    setenv("COLLMARK_LOG", "/from/new", 1);
    if (accepted(""))
        CHECK(strcmp(r.o.report.log, "/from/new") == 0, "--log %s", r.o.report.log);
    cm_opts_free(&r.o);
    unsetenv("COLLMARK_LOG");
    unsetenv("COLLMARK_DEBUG_FILE");
    if (accepted("--debug-file|/a"))
        CHECK(strcmp(r.o.report.log, "/a") == 0, "--debug-file %s", r.o.report.log);
    if (accepted("--debug_f=/b"))
        CHECK(strcmp(r.o.report.log, "/b") == 0, "--debug_f %s", r.o.report.log);
    if (accepted("--debug|info"))
        CHECK(r.o.report.log == NULL && strcmp(r.o.report.debug, "info") == 0, "--debug");
}

static void test_wires_by_name(void)
{
    CHECK(cm_net_wire_find("tcp") != NULL && cm_net_wire_find("ib") != NULL, "names");
    CHECK(cm_net_wire_find("shm") == NULL && cm_wire_find("tcp") == NULL, "two kinds of wires");
    for (const struct cm_net_wire *w = cm_net_wires; w->name != NULL; w++)
        CHECK(w->what != NULL && cm_wire_find(w->name) == NULL, "%s", w->name);
}

int main(void)
{
    RUN(test_defaults);
    RUN(test_values);
    RUN(test_refusals);
    RUN(test_variables);
    RUN(test_variables_are_as_strict);
    RUN(test_sockets_are_a_product);
    RUN(test_second_names);
    RUN(test_wires_by_name);
    return test_end();
}
