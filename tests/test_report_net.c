/* Runs between nodes in the report: made-up networks against golden lines. */
#include "common/network.h"
#include "json_judge.h"
#include "report_job.h"

static const char *const none[] = {NULL};

static struct cm_network_way way(int first, const char *host, const char *interface, int mbit)
{
    struct cm_network_way w = {.wire = "tcp", .mbit = mbit, .procs = 1, .first = first};

    snprintf(w.host, sizeof(w.host), "%s", host);
    snprintf(w.interface, sizeof(w.interface), "%s", interface);
    snprintf(w.address, sizeof(w.address), "10.78.0.%d", first + 1);
    snprintf(w.why, sizeof(w.why), "default: fastest");
    return w;
}

/* ---- sets of ways ---- */

static void test_what_is_alike_is_one_way(void)
{
    struct cm_network_way w[] = {way(6, "d", "eth0", 1000), way(0, "a", "lo", 0),
                                 way(4, "c", "eth0", 1000), way(2, "b", "eth0", 1000)};
    struct cm_network_ways set = {0};

    CHECK(cm_network_main(&set) == -1, "an empty set has a main way");
    for (size_t i = 0; i < CM_LEN(w); i++)
        cm_network_add(&set, &w[i]);
    CHECK(set.n == 2 && set.others == 0, "%d ways", set.n);
    CHECK(set.of[0].first == 0 && set.of[0].procs == 1, "first %d", set.of[0].first);
    CHECK(set.of[1].first == 2 && set.of[1].procs == 3 && strcmp(set.of[1].host, "b") == 0,
          "first %d on %s, %d processes", set.of[1].first, set.of[1].host, set.of[1].procs);
    CHECK(cm_network_main(&set) == 1, "main %d", cm_network_main(&set));
}

static void test_what_differs_is_another_way(void)
{
    const struct cm_network_way a = way(0, "a", "eth0", 1000);
    struct cm_network_way b[4] = {a, a, a, a};

    snprintf(b[0].wire, sizeof(b[0].wire), "ib");
    snprintf(b[1].interface, sizeof(b[1].interface), "eth1");
    snprintf(b[2].device, sizeof(b[2].device), "mlx5_0:1");
    b[3].mbit = 10;
    for (size_t i = 0; i < CM_LEN(b); i++) {
        struct cm_network_ways set = {0};

        cm_network_add(&set, &a);
        cm_network_add(&set, &b[i]);
        CHECK(set.n == 2, "case %zu: %d ways", i, set.n);
    }
}

static void test_a_merge_is_an_addition(void)
{
    struct cm_network_ways all = {0}, half[2] = {{0}, {0}};

    for (int p = 0; p < 6; p++) {
        struct cm_network_way w = way(p, "h", p == 4 ? "lo" : "eth0", 100);

        cm_network_add(&all, &w);
        cm_network_add(&half[p % 2], &w);
    }
    for (int i = 0; i < half[0].n; i++)
        cm_network_add(&half[1], &half[0].of[i]);
    CHECK(half[1].n == all.n, "%d ways, not %d", half[1].n, all.n);
    for (int i = 0; i < all.n; i++)
        CHECK(half[1].of[i].first == all.of[i].first && half[1].of[i].procs == all.of[i].procs,
              "way %d: first %d, %d processes", i, half[1].of[i].first, half[1].of[i].procs);
}

static void test_too_many_ways_are_counted(void)
{
    struct cm_network_ways set = {0};

    for (int p = 0; p < CM_NETWORK_WAYS + 3; p++) {
        struct cm_network_way w = way(p, "h", "eth0", 100 + p);

        cm_network_add(&set, &w);
    }
    CHECK(set.n == CM_NETWORK_WAYS && set.others == 3, "%d ways, %d others", set.n, set.others);
}

static void test_why(void)
{
    char *from[] = {(char *)"NCCL_ALGO=ring", (char *)"NCCL_SOCKET_IFNAME=eth0", NULL};
    struct cm_opts o = {.from_env = NULL};
    char why[CM_SET_BY_BYTES];

    expect(cm_network_why(&o, "ifname", false, why), "default: fastest");
    expect(cm_network_why(&o, "ifname", true, why), "--ifname");
    o.from_env = from;
    expect(cm_network_why(&o, "ifname", true, why), "NCCL_SOCKET_IFNAME");
    expect(cm_network_why(&o, "ib-hca", true, why), "--ib-hca");
}

/* ---- the header ---- */

/* Ranks 0, 1 on alpha, 2, 3 on beta: two processes each, one domain per host. */
static struct cm_network two_hosts(const struct cm_network_way *ways, size_t n)
{
    struct cm_network net = {
        .domains = 2, .most_ranks = 2, .lanes = 1, .neighbours = 2, .ports = 16};

    net.progress = "inline";
    for (size_t i = 0; i < n; i++)
        cm_network_add(&net.ways, &ways[i]);
    return net;
}

static void make_two_hosts(struct job *j, const char *const *options, struct cm_network *net)
{
    job_make(j, RANKS, 1, options);
    for (int r = 0; r < RANKS; r++) {
        struct cm_rank_info *i = &j->infos[r];

        i->proc = r;
        i->pid = 100 + r;
        i->node = r / 2;
        i->device = r % 2;
        snprintf(i->host, sizeof(i->host), r < 2 ? "alpha" : "beta");
        snprintf(i->boot_id, sizeof(i->boot_id), r < 2 ? "b0" : "b1");
        snprintf(i->cpus, sizeof(i->cpus), r < 2 ? "0-7" : "0");
    }
    j->rank.wire = "shm";
    j->rank.network = net;
}

static void show(struct job *j)
{
    CHECK(job_open(j) == CM_OK && job_close(j, &fine) == CM_OK, "report failed");
}

static void test_header_of_two_hosts(void)
{
    const struct cm_network_way ways[] = {
        way(0, "alpha", "eth0", 10000), way(1, "alpha", "eth0", 10000),
        way(2, "beta", "eth0", 10000), way(3, "beta", "eth0", 10000)};
    struct cm_network net = two_hosts(ways, CM_LEN(ways));
    char l[512];

    make_two_hosts(&job, none, &net);
    show(&job);
    CHECK(strstr(line_at(job.out.text, "# collmark", 0, l, sizeof(l)), " wire=shm+tcp") != NULL,
          "'%s'", l);
    expect(line_at(job.out.text, "# MPI:", 1, l, sizeof(l)),
           "# Network: tcp over eth0 10.78.0.1 10000 Mb/s (default: fastest), 1 socket per "
           "neighbour, progress inline");
    expect(line_at(job.out.text, "# MPI:", 2, l, sizeof(l)),
           "# Transport: inside a domain shm, between 2 domains tcp");
    /* beta has the fewer CPUs */
    expect(line_at(job.out.text, "# Note:", 0, l, sizeof(l)),
           "# Note: 2 ranks share 1 CPU on beta, so they wait for each other's time slices");
    expect(line_at(job.out.text, "#  Rank  2", 0, l, sizeof(l)),
           "#  Rank  2 Group  0 Pid    102 on       beta device  0 [host] Example CPU cpus 0 numa "
           "0 node 1");
}

static void test_who_differs_is_named(void)
{
    const struct cm_network_way ways[] = {way(0, "alpha", "eth0", 10000), way(3, "beta", "lo", 0),
                                          way(2, "beta", "eth0", 10000), way(4, "c", "eth1", 100),
                                          way(5, "d", "eth1", 100)};
    struct cm_network net = two_hosts(ways, CM_LEN(ways));
    char l[512];

    net.most_ranks = 1;
    net.domains = 5;
    net.lanes = 4;
    net.ways.others = 1;
    make_two_hosts(&job, none, &net);
    show(&job);
    CHECK(strstr(line_at(job.out.text, "# collmark", 0, l, sizeof(l)), " wire=tcp") != NULL, "'%s'",
          l);
    expect(line_at(job.out.text, "# MPI:", 1, l, sizeof(l)),
           "# Network: tcp over eth0 10.78.0.1 10000 Mb/s (default: fastest), 4 sockets per "
           "neighbour, progress inline");
    expect(line_at(job.out.text, "# MPI:", 2, l, sizeof(l)),
           "# Network: 1 process differs: rank 3 on beta uses tcp over lo 10.78.0.4 of unknown "
           "speed");
    expect(line_at(job.out.text, "# MPI:", 3, l, sizeof(l)),
           "# Network: 2 processes differ, the first is rank 4 on c: tcp over eth1 10.78.0.5 100 "
           "Mb/s");
    expect(line_at(job.out.text, "# MPI:", 4, l, sizeof(l)),
           "# Network: 1 more process goes other ways");
    expect(line_at(job.out.text, "# MPI:", 5, l, sizeof(l)), "# Transport: between 5 domains tcp");
}

static void test_header_of_ib(void)
{
    struct cm_network_way w = way(0, "alpha", "eth0", 200000);
    struct cm_network net;
    char l[512];

    snprintf(w.wire, sizeof(w.wire), "ib");
    snprintf(w.device, sizeof(w.device), "mlx5_0:1 RoCE v2 gid 3");
    snprintf(w.why, sizeof(w.why), "NCCL_IB_HCA");
    net = two_hosts(&w, 1);
    net.lanes = 2;
    make_two_hosts(&job, none, &net);
    show(&job);
    expect(line_at(job.out.text, "# MPI:", 1, l, sizeof(l)),
           "# Network: ib over mlx5_0:1 RoCE v2 gid 3, set up over eth0 10.78.0.1 "
           "(NCCL_IB_HCA), 2 queue pairs per neighbour, progress inline");
}

static void test_no_network_no_line(void)
{
    static const struct cm_bootstrap start = {1, 1, 1};
    char l[512];

    job_make(&job, RANKS, 1, none);
    job.rank.bootstrap = &start; /* of one process: nothing to tell */
    show(&job);
    CHECK(strstr(job.out.text, "# Network") == NULL && strstr(job.out.text, "# Transport") == NULL,
          "lines about a network");
    CHECK(strstr(job.out.text, "# Bootstrap") == NULL, "a process has met itself");
    CHECK(strstr(line_at(job.out.text, "# collmark", 0, l, sizeof(l)), " wire=loop") != NULL,
          "'%s'", l);
}

/* ---- JSON ---- */

static void test_json_of_a_network(void)
{
    const struct cm_network_way ways[] = {way(0, "alpha", "eth0", 10000), way(3, "beta", "lo", 0),
                                          way(2, "beta", "eth0", 10000)};
    static const struct cm_bootstrap start = {.start_s = 0.5, .connect_s = 0.25};
    static const char *const claims[] = {
        "d['machine']['wire'] == 'shm+tcp'",
        "d['network']['domains'] == 2 and d['network']['inside'] == 'shm'",
        "d['network']['lanes'] == 1 and d['network']['progress'] == 'inline'",
        "(d['network']['neighbours'], d['network']['ports']) == (2, 16)",
        "[w['processes'] for w in d['network']['ways']] == [2, 1]",
        "[w['first_rank'] for w in d['network']['ways']] == [0, 3]",
        "[w['mbit_per_s'] for w in d['network']['ways']] == [10000, None]",
        "d['network']['ways'][1]['hostname'] == 'beta' and d['network']['other_processes'] == 0",
        "d['network']['ways'][0]['address'] == '10.78.0.1'",
        "d['bootstrap'] == {'start': 0.5, 'discover': None, 'connect': 0.25,"
        " 'first_operation': 80e-6}",
        "d['config']['ifname'] == 'eth0' and d['config']['log'] is None",
        "d['config']['sockets'] == 'auto' and d['config']['ib_gid'] == -1",
        NULL,
    };
    char path[PATH_BYTES];
    const char *options[] = {"--ifname", "eth0", "-J", path_in("net.json", path), NULL};
    struct cm_network net = two_hosts(ways, CM_LEN(ways));
    struct cm_row row = row_of(4096, 8);

    if (no_python())
        return;
    make_two_hosts(&job, options, &net);
    job.rank.bootstrap = &start;
    CHECK(job_open(&job) == CM_OK, "open failed");
    cm_report_row(job.rep, &row);
    CHECK(job_close(&job, &fine) == CM_OK, "close failed");
    check_json(path, claims);
}

static void test_json_without_a_network(void)
{
    static const char *const claims[] = {"d['network'] is None",
                                         "set(d['bootstrap'].values()) == {None}", NULL};
    char path[PATH_BYTES];
    const char *options[] = {"-J", path_in("alone.json", path), NULL};

    if (no_python())
        return;
    job_make(&job, RANKS, 1, options);
    show(&job);
    check_json(path, claims);
}

/* ---- many ranks ---- */

static void test_many_ranks_are_a_line_per_host(void)
{
    char l[512];

    job_make(&job, 20, 1, none);
    for (int r = 0; r < 20; r++) {
        struct cm_rank_info *i = &job.infos[r];

        i->proc = r;
        i->pid = 100 + r;
        i->node = r / 8;
        i->device = r % 8;
        i->numa = r % 2;
        snprintf(i->host, sizeof(i->host), "host%d", r / 8);
        snprintf(i->boot_id, sizeof(i->boot_id), "b%d", r / 8);
        snprintf(i->cpus, sizeof(i->cpus), "%d", r % 8);
    }
    for (int r = 16; r < 20; r++) { /* one process whose ranks share a CPU */
        job.infos[r].pid = 500;
        job.infos[r].numa = -1;
        snprintf(job.infos[r].cpus, sizeof(job.infos[r].cpus), "3");
    }
    show(&job);
    expect(line_at(job.out.text, "#  Rank", 0, l, sizeof(l)),
           "#  Rank  0-7 Group  0 Pid    100... on      host0 device  0-7 [host] Example CPU cpus "
           "0... numa 0... node 0");
    expect(line_at(job.out.text, "#  Rank", 1, l, sizeof(l)),
           "#  Rank  8-15 Group  0 Pid    108... on      host1 device  0-7 [host] Example CPU cpus "
           "0... numa 0... node 1");
    expect(line_at(job.out.text, "#  Rank", 2, l, sizeof(l)),
           "#  Rank 16-19 Group  0 Pid    500 on      host2 device  0-3 [host] Example CPU cpus 3 "
           "numa -1 node 2");
    expect(line_at(job.out.text, "#  Rank", 3, l, sizeof(l)), "#");
}

/* Equal names on two machines, as in a cluster of containers, are two lines. */
static void test_hosts_of_one_name(void)
{
    char l[512];

    job_make(&job, 20, 1, none);
    for (int r = 10; r < 20; r++)
        snprintf(job.infos[r].boot_id, sizeof(job.infos[r].boot_id), "b1");
    show(&job);
    CHECK(strncmp(line_at(job.out.text, "#  Rank", 1, l, sizeof(l)), "#  Rank 10-19 ", 14) == 0,
          "'%s'", l);
    CHECK(strstr(job.out.text, "# Note: 10 ranks share 2 CPUs on alpha,") != NULL, "no machine");
}

/* ---- the start ---- */

static void test_bootstrap(void)
{
    static const struct {
        struct cm_bootstrap b;
        const char *want;
    } cases[] = {
        {{0.1234, 0.0104, 0.03},
         "# Bootstrap            : start 0.12 s, discover 0.01 s, connect 0.03 s, first operation "
         "0.000080 s"},
        {{2, 0, 0}, "# Bootstrap            : start 2.00 s, first operation 0.000080 s"},
    };
    char l[512];

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_row row = row_of(4096, 8);

        job_make(&job, RANKS, 1, none);
        job.infos[RANKS - 1].proc = 1;
        job.rank.bootstrap = &cases[i].b;
        CHECK(job_open(&job) == CM_OK, "open failed");
        cm_report_row(job.rep, &row);
        row.half[0].first_us = 1e6; /* not the first any more */
        cm_report_row(job.rep, &row);
        CHECK(job_close(&job, &fine) == CM_OK, "close failed");
        expect(line_at(job.out.text, "# Bootstrap", 0, l, sizeof(l)), cases[i].want);
    }
}

int main(void)
{
    if (!folder_make())
        return 1;
    RUN(test_what_is_alike_is_one_way);
    RUN(test_what_differs_is_another_way);
    RUN(test_a_merge_is_an_addition);
    RUN(test_too_many_ways_are_counted);
    RUN(test_why);
    RUN(test_header_of_two_hosts);
    RUN(test_who_differs_is_named);
    RUN(test_header_of_ib);
    RUN(test_no_network_no_line);
    RUN(test_json_of_a_network);
    RUN(test_json_without_a_network);
    RUN(test_many_ranks_are_a_line_per_host);
    RUN(test_hosts_of_one_name);
    RUN(test_bootstrap);
    folder_remove();
    return test_end();
}
