/*
 * Process 0 by name and port: read from the environment, turned into addresses,
 * listened at or dialled.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "common/launch_env.h"
#include "common/rendezvous.h"

enum { PORT_MAX = 65535, RETRY_MS = 200 };

/* "" counts as unset. */
static const char *value_of(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* ---- name and port ---- */

static enum cm_status read_host(struct cm_place *p, const char **from)
{
    static const char *const lists[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST",
                                        "SLURM_NODELIST"};
    const char *host = value_of("MASTER_ADDR");
    size_t len = host != NULL ? strlen(host) : 0;

    *from = "MASTER_ADDR";
    if (host != NULL && host[0] == '[' && host[len - 1] == ']') {
        host++; /* an address of version 6 as it stands in URLs */
        len -= 2;
    }
    if (len >= sizeof(p->host))
        return CM_FAIL(CM_EINVAL, "MASTER_ADDR: a name of %zu letters", len);
    if (len > 0) {
        memcpy(p->host, host, len);
        p->host[len] = '\0';
        return CM_OK;
    }
    for (size_t i = 0; i < CM_LEN(lists) && cm_env_slurm_tasks() > 0; i++) {
        *from = lists[i];
        if (value_of(lists[i]) == NULL)
            continue;
        if (!cm_hostlist_first(value_of(lists[i]), p->host, sizeof(p->host)))
            return CM_FAIL(CM_EINVAL, "%s=%s: no list of hosts; set MASTER_ADDR", lists[i],
                           value_of(lists[i]));
        return CM_OK;
    }
    return CM_FAIL(CM_EINVAL, "MASTER_ADDR is not set: it says where process 0 is (or use "
                              "--rendezvous file:PATH)");
}

/* The variable as a number from 0 on, -1 if it is none. */
static int64_t number(const char *variable)
{
    int64_t v;

    return value_of(variable) != NULL && cm_parse_int(value_of(variable), 0, INT64_MAX, &v) ? v
                                                                                            : -1;
}

static enum cm_status read_port(struct cm_place *p)
{
    const char *agent = value_of("TORCHELASTIC_USE_AGENT_STORE");
    int64_t port, job = number("SLURM_JOB_ID"), step = number("SLURM_STEP_ID");

    if (value_of("MASTER_PORT") == NULL && cm_env_slurm_tasks() > 0 && job >= 0 && step >= 0) {
        p->port = cm_slurm_port(job, step);
        return CM_OK;
    }
    if (value_of("MASTER_PORT") == NULL)
        return CM_FAIL(CM_EINVAL, "MASTER_PORT is not set: it says where process 0 listens");
    if (!cm_parse_int(value_of("MASTER_PORT"), 1, PORT_MAX, &port))
        return CM_FAIL(CM_EINVAL, "MASTER_PORT=%s: want a port from 1 to %d",
                       value_of("MASTER_PORT"), PORT_MAX);
    port += agent != NULL && strcmp(agent, "True") == 0; /* torchrun itself listens there */
    if (port > PORT_MAX)
        return CM_FAIL(CM_EINVAL, "MASTER_PORT=%d: torchrun uses it, and there is none after it",
                       PORT_MAX);
    p->port = (uint16_t)port;
    return CM_OK;
}

enum cm_status cm_place_read(struct cm_place *out)
{
    const char *from;
    enum cm_status st;

    memset(out, 0, sizeof(*out));
    st = read_host(out, &from);
    if (st == CM_OK)
        st = read_port(out);
    if (st == CM_OK)
        snprintf(out->text, sizeof(out->text), "%s=%s, port %u", from, out->host,
                 (unsigned)out->port);
    return st;
}

/* ---- addresses ---- */

/* 0, or what getaddrinfo() says. */
static int resolve(struct cm_place *p, const unsigned char token[CM_NET_TOKEN])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int err = getaddrinfo(p->host, NULL, &hints, &list);

    p->naddrs = 0;
    for (struct addrinfo *a = list; a != NULL && p->naddrs < CM_PLACE_ADDRS; a = a->ai_next) {
        struct cm_hub_target *t = &p->addrs[p->naddrs];

        if (!cm_net_of(a->ai_addr, &t->addr))
            continue;
        t->addr.port = p->port;
        if (a->ai_family == AF_INET6)
            t->scope = ((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_scope_id;
        memcpy(t->token, token, sizeof(t->token));
        p->naddrs++;
    }
    if (list != NULL)
        freeaddrinfo(list);
    return err != 0 ? err : p->naddrs == 0 ? EAI_NONAME : 0;
}

enum cm_status cm_place_resolve(struct cm_place *p, const unsigned char token[CM_NET_TOKEN],
                                int64_t limit_ns)
{
    static const struct timespec pause = {.tv_nsec = RETRY_MS * (long)CM_NS_PER_MS};
    int64_t until = cm_now_ns() + limit_ns;
    int err = resolve(p, token);

    while (err != 0 && cm_now_ns() < until) { /* names of containers take a while to be known */
        nanosleep(&pause, NULL);
        err = resolve(p, token);
    }
    return err == 0 ? CM_OK : CM_FAIL(CM_EINVAL, "%s: %s", p->text, gai_strerror(err));
}

bool cm_place_next(void *arg, struct cm_hub_target *out)
{
    struct cm_place *p = arg;

    *out = p->addrs[p->next % p->naddrs];
    p->next++;
    return true;
}

void cm_place_describe(void *arg, char *buf, size_t size)
{
    snprintf(buf, size, "%s", ((const struct cm_place *)arg)->text);
}

/* ---- listening ---- */

static bool is_loopback(const struct cm_net_addr *a)
{
    static const unsigned char one[16] = {[15] = 1};

    return a->version == 4 ? a->ip[0] == 127 : memcmp(a->ip, one, sizeof(one)) == 0;
}

static bool is_name(const char *host)
{
    unsigned char ip[16];

    return inet_pton(AF_INET, host, ip) != 1 && inet_pton(AF_INET6, host, ip) != 1 &&
           strncmp(host, "localhost", 9) != 0;
}

/* Many machines' own names lead to loopback on themselves, and elsewhere not. */
static bool usable(const struct cm_place *p, const struct cm_net_addr *a)
{
    return !is_loopback(a) || !is_name(p->host);
}

/* The interface that has one of the addresses; else none in particular. */
static struct cm_net_if interface_of(const struct cm_place *p, const struct cm_net_if *ifs, int n)
{
    struct cm_net_if any = {.name = "any interface", .addr = {.version = p->addrs[0].addr.version}};

    for (int a = 0; a < p->naddrs; a++)
        for (int i = 0; i < n; i++) {
            const struct cm_net_addr *want = &p->addrs[a].addr, *have = &ifs[i].addr;

            if (want->version == have->version &&
                memcmp(want->ip, have->ip, sizeof(have->ip)) == 0 && usable(p, want))
                return ifs[i];
        }
    if (is_loopback(&p->addrs[0].addr) && usable(p, &p->addrs[0].addr))
        memcpy(any.addr.ip, p->addrs[0].addr.ip, sizeof(any.addr.ip)); /* 127.0.0.2 and the like */
    return any;
}

enum cm_status cm_place_listen(const struct cm_place *p, int *listener, struct cm_net_addr *at)
{
    struct cm_net_ports port = {p->port, p->port};
    struct cm_net_if *ifs = NULL, on;
    int n = 0;
    enum cm_status st = cm_net_list(&ifs, &n);

    if (st != CM_OK)
        return st;
    on = interface_of(p, ifs, n);
    free(ifs);
    st = cm_net_listen(&on, port, listener, at);
    if (st != CM_OK)
        cm_log("%s is where this process must listen: another job, or another process with the "
               "same rank, may be there",
               p->text);
    return st;
}
