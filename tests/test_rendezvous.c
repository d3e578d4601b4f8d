/*
 * Start-up without MPI, up to the first connection: what the environment says
 * about launcher, rank, place and token.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "common/rendezvous.h"
#include "test.h"

enum { MAX_VARIABLES = 6 };

static const char *const known[] = {
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "COLLMARK_JOB",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_USE_AGENT_STORE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMIX_RANK",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_ID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_NODELIST",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_ID",
};

typedef const char *variables[MAX_VARIABLES][2];

static void set_only(const variables v)
{
    for (size_t k = 0; k < CM_LEN(known); k++)
        unsetenv(known[k]);
    for (int k = 0; k < MAX_VARIABLES && v[k][0] != NULL; k++)
        setenv(v[k][0], v[k][1], 1);
}

/* A step of Slurm with three tasks on two hosts; this is task 1. */
#define STEP                                                                                      \
    {"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "2"}, {"SLURM_NTASKS", "3"}, {"SLURM_JOB_ID", "77"}, \
    {                                                                                             \
        "SLURM_STEP_NODELIST", "node[07-08]"                                                      \
    }

static void test_choice_of_launcher(void)
{
    static const struct {
        variables set;
        const char *how;
        enum cm_start with, without; /* MPI */
    } rows[] = {
        {{{NULL, NULL}}, NULL, CM_START_ALONE, CM_START_ALONE},
        {{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, NULL, CM_START_NET, CM_START_NET},
        {{{"RANK", "1"}}, NULL, CM_START_ALONE, CM_START_ALONE},
        {{{"PMI_RANK", "1"}}, NULL, CM_START_MPI, CM_START_ALONE},
        {{{"PMIX_RANK", "0"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}},
         NULL,
         CM_START_MPI,
         CM_START_NET},
        {{{"PMIX_RANK", "0"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}},
         "env",
         CM_START_NET,
         CM_START_NET},
        {{{"PMIX_RANK", "0"}}, "file:/tmp/x", CM_START_NET, CM_START_NET},
        {{STEP}, NULL, CM_START_NET, CM_START_NET},
        {{STEP, {"PMI_RANK", "1"}}, NULL, CM_START_MPI, CM_START_NET},
        /* one task, and the shell of sbatch */
        {{{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "2"}, {"SLURM_NTASKS", "1"}},
         NULL,
         CM_START_MPI,
         CM_START_ALONE},
        {{{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967291"}, {"SLURM_NTASKS", "4"}},
         NULL,
         CM_START_MPI,
         CM_START_ALONE},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        enum cm_start with = CM_START_ALONE, without = CM_START_ALONE;

        set_only(rows[i].set);
        CHECK(cm_rendezvous_choose(rows[i].how, true, &with) == CM_OK && with == rows[i].with,
              "row %zu with MPI: %d", i, with);
        CHECK(cm_rendezvous_choose(rows[i].how, false, &without) == CM_OK &&
                  without == rows[i].without,
              "row %zu without MPI: %d", i, without);
    }
}

static void test_mpi_cannot_be_forced_where_it_is_not(void)
{
    enum cm_start how = CM_START_ALONE;
    struct capture c;

    CHECK(cm_rendezvous_choose("mpi", true, &how) == CM_OK && how == CM_START_MPI, "%d", how);
    capture_begin(&c, STDERR_FILENO);
    CHECK(cm_rendezvous_choose("mpi", false, &how) == CM_EUNSUP, "not refused");
    capture_end(&c);
    CHECK(strstr(c.text, "--rendezvous mpi") != NULL, "%s", c.text);
}

static void test_which_process(void)
{
    static const struct {
        variables set;
        int rank, size;
        const char *says; /* NULL: no mistake */
    } rows[] = {
        {{{"RANK", "2"}, {"WORLD_SIZE", "4"}}, 2, 4, NULL},
        {{{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "9"}}, 2, 4, NULL},
        {{{"PMI_RANK", "0"}, {"PMI_SIZE", "9"}}, 0, 9, NULL},
        {{STEP}, 1, 3, NULL},
        {{STEP, {"SLURM_STEP_NUM_TASKS", "2"}}, 1, 2, NULL},
        {{{"RANK", "4"}, {"WORLD_SIZE", "4"}}, 0, 0, "RANK=4: want a number from 0 to 3"},
        {{{"RANK", "-1"}, {"WORLD_SIZE", "4"}}, 0, 0, "RANK=-1: want a number from 0 to 3"},
        {{{"RANK", "x"}, {"WORLD_SIZE", "4"}}, 0, 0, "RANK=x: want"},
        {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, 0, 0, "WORLD_SIZE=0: want"},
        {{{"RANK", "0"}, {"WORLD_SIZE", "4k"}}, 0, 0, "WORLD_SIZE=4k: want"},
        {{{"RANK", "0"}}, 0, 0, "RANK=0 is set, but WORLD_SIZE is not"},
        {{{NULL, NULL}}, 0, 0, "RANK is not set"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_identity me = {.rank = 0};
        struct capture c;
        enum cm_status st;

        set_only(rows[i].set);
        capture_begin(&c, STDERR_FILENO);
        st = cm_rendezvous_whoami(&me);
        capture_end(&c);
        if (rows[i].says == NULL)
            CHECK(st == CM_OK && me.rank == rows[i].rank && me.size == rows[i].size,
                  "row %zu: %d of %d: %s", i, me.rank, me.size, c.text);
        else
            CHECK(st == CM_EINVAL && strstr(c.text, rows[i].says) != NULL, "row %zu: %s", i,
                  c.text);
    }
}

static void test_where_process_0_is(void)
{
    static const struct {
        variables set;
        const char *host;
        int port;
        const char *says; /* NULL: no mistake */
    } rows[] = {
        {{{"MASTER_ADDR", "a.b"}, {"MASTER_PORT", "29500"}}, "a.b", 29500, NULL},
        {{{"MASTER_ADDR", "::1"}, {"MASTER_PORT", "1"}}, "::1", 1, NULL},
        {{{"MASTER_ADDR", "[::1]"}, {"MASTER_PORT", "65535"}}, "::1", 65535, NULL},
        {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
         "a",
         6,
         NULL},
        {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}},
         "a",
         5,
         NULL},
        {{STEP}, "node07", 20000 + (77 * 64 + 2) % 8192, NULL},
        {{STEP, {"MASTER_ADDR", "b"}}, "b", 20000 + (77 * 64 + 2) % 8192, NULL},
        {{STEP, {"MASTER_PORT", "9"}}, "node07", 9, NULL},
        {{{"MASTER_PORT", "5"}}, "", 0, "MASTER_ADDR is not set"},
        {{{"MASTER_ADDR", ""}, {"MASTER_PORT", "5"}}, "", 0, "MASTER_ADDR is not set"},
        {{{"MASTER_ADDR", "a"}}, "", 0, "MASTER_PORT is not set"},
        {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "0"}}, "", 0, "MASTER_PORT=0: want a port"},
        {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "65536"}}, "", 0, "MASTER_PORT=65536: want"},
        {{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "http"}}, "", 0, "MASTER_PORT=http: want"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_place p;
        struct capture c;
        enum cm_status st;

        set_only(rows[i].set);
        capture_begin(&c, STDERR_FILENO);
        st = cm_place_read(&p);
        capture_end(&c);
        if (rows[i].says == NULL)
            CHECK(st == CM_OK && strcmp(p.host, rows[i].host) == 0 && p.port == rows[i].port,
                  "row %zu: %s port %d: %s", i, p.host, p.port, c.text);
        else
            CHECK(st == CM_EINVAL && strstr(c.text, rows[i].says) == c.text, "row %zu: %s", i,
                  c.text);
    }
}

static void test_names_become_addresses(void)
{
    static const unsigned char token[CM_NET_TOKEN] = "sixteen letters";
    static const struct {
        const char *host, *text; /* NULL: there is none */
    } rows[] = {
        {"127.0.0.1", "127.0.0.1:29500"},
        {"::1", "[::1]:29500"},
        {"fe80::1%lo", "[fe80::1]:29500"},
        {"no.such.host.invalid", NULL},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_place p = {.port = 29500};
        struct cm_hub_target t = {.scope = 0};
        struct capture c;
        char text[CM_NET_TEXT];
        enum cm_status st;

        strcpy(p.host, rows[i].host);
        snprintf(p.text, sizeof(p.text), "MASTER_ADDR=%s", p.host);
        capture_begin(&c, STDERR_FILENO);
        st = cm_place_resolve(&p, token, 0);
        capture_end(&c);
        CHECK((st == CM_OK) == (rows[i].text != NULL), "%s: status %d", p.host, st);
        if (st != CM_OK) {
            CHECK(strstr(c.text, "MASTER_ADDR=no.such.host.invalid: ") == c.text, "%s", c.text);
            continue;
        }
        CHECK(cm_place_next(&p, &t) && strcmp(cm_net_format(&t.addr, text), rows[i].text) == 0,
              "%s: %s", p.host, text);
        CHECK(memcmp(t.token, token, sizeof(token)) == 0, "%s: token", p.host);
        CHECK((t.scope != 0) == (strchr(p.host, '%') != NULL), "%s: scope %u", p.host, t.scope);
    }
}

static void test_first_host_of_a_list(void)
{
    static const struct {
        const char *list, *host; /* NULL: refused */
    } rows[] = {
        {"node1", "node1"},
        {"node1,node2", "node1"},
        {"node[01-04,7]", "node01"},
        {"node[7,01-04]", "node7"},
        {"node[5]", "node5"},
        {"a[3-4]b,c", "a3b"},
        {"rack[2-3]n[010-020],x[1-2]", "rack2n010"},
        {"gpu-h100-[1-2].cluster", "gpu-h100-1.cluster"},
        {"", NULL},
        {",a", NULL},
        {"node[", NULL},
        {"node[1", NULL},
        {"node[]", NULL},
        {"node[a-b]", NULL},
        {"node[1-2", NULL},
        {"node1]", NULL},
        {"node[1;2]", NULL},
        {"a-name-that-does-not-fit-here", NULL},
        {"a-name-that-does-[12345678]", NULL},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        char host[20];
        bool good = cm_hostlist_first(rows[i].list, host, sizeof(host));

        CHECK(good == (rows[i].host != NULL), "%s: %d", rows[i].list, good);
        CHECK(!good || strcmp(host, rows[i].host) == 0, "%s: %s", rows[i].list, host);
    }
}

static void test_ports_of_slurm_are_in_range_and_differ(void)
{
    static const int64_t big[] = {0, 1, 4294967295, INT64_MAX};

    for (size_t i = 0; i < CM_LEN(big); i++)
        CHECK(cm_slurm_port(big[i], big[i]) >= 20000 && cm_slurm_port(big[i], big[i]) < 28192, "%d",
              cm_slurm_port(big[i], big[i]));
    for (int k = 1; k < 64; k++) {
        CHECK(cm_slurm_port(5, 0) != cm_slurm_port(5, k), "step %d", k);
        CHECK(cm_slurm_port(5, 0) != cm_slurm_port(5 + k, 0), "job %d", k);
    }
}

static void test_tokens_tell_runs_apart(void)
{
    static const variables runs[] = {
        {{NULL, NULL}},
        {{"COLLMARK_JOB", "a"}},
        {{"COLLMARK_JOB", "b"}},
        {{"TORCHELASTIC_RUN_ID", "a"}},
        {{"TORCHELASTIC_RUN_ID", "a"}, {"TORCHELASTIC_RESTART_COUNT", "1"}},
        {STEP},
        {{"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "3"}, {"SLURM_JOB_ID", "77"}},
    };
    static const variables alike = {{"COLLMARK_JOB", "a"}, {"TORCHELASTIC_RUN_ID", "x"}};
    unsigned char t[CM_LEN(runs)][CM_NET_TOKEN], again[CM_NET_TOKEN];

    for (size_t i = 0; i < CM_LEN(runs); i++) {
        set_only(runs[i]);
        cm_rendezvous_token(t[i]);
        for (size_t k = 0; k < i; k++)
            CHECK(memcmp(t[i], t[k], CM_NET_TOKEN) != 0, "runs %zu and %zu", i, k);
    }
    set_only(alike);
    cm_rendezvous_token(again);
    CHECK(memcmp(again, t[1], CM_NET_TOKEN) == 0, "COLLMARK_JOB does not win");
    memset(again, 0, sizeof(again));
    CHECK(memcmp(again, t[0], CM_NET_TOKEN) == 0, "no run, but a token");
}

int main(void)
{
    RUN(test_choice_of_launcher);
    RUN(test_mpi_cannot_be_forced_where_it_is_not);
    RUN(test_which_process);
    RUN(test_where_process_0_is);
    RUN(test_names_become_addresses);
    RUN(test_first_host_of_a_list);
    RUN(test_ports_of_slurm_are_in_range_and_differ);
    RUN(test_tokens_tell_runs_apart);
    return test_end();
}
