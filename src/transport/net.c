/*
 * Sockets of version 4 and 6 alike. An address that travels has no scope: the
 * scope of a link-local address is the number of an interface, which means
 * something on its own machine only, so each side adds its own.
 */
#define _GNU_SOURCE
#include "transport/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { BACKLOG = 4096 /* the kernel takes no more than net.core.somaxconn of it */ };

bool cm_net_of(const struct sockaddr *from, struct cm_net_addr *to)
{
    memset(to, 0, sizeof(*to));
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)from;

        to->version = 4;
        to->port = ntohs(in->sin_port);
        memcpy(to->ip, &in->sin_addr, sizeof(in->sin_addr));
        return true;
    }
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)from;

        to->version = 6;
        to->port = ntohs(in6->sin6_port);
        memcpy(to->ip, &in6->sin6_addr, sizeof(in6->sin6_addr));
        return true;
    }
    return false;
}

socklen_t cm_net_to(const struct cm_net_addr *from, unsigned scope, struct sockaddr_storage *to)
{
    struct sockaddr_in6 *in6 = (void *)to;
    struct sockaddr_in *in = (void *)to;

    memset(to, 0, sizeof(*to));
    if (from->version == 4) {
        in->sin_family = AF_INET;
        in->sin_port = htons(from->port);
        memcpy(&in->sin_addr, from->ip, sizeof(in->sin_addr));
        return sizeof(*in);
    }
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(from->port);
    memcpy(&in6->sin6_addr, from->ip, sizeof(in6->sin6_addr));
    if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
        in6->sin6_scope_id = scope;
    return sizeof(*in6);
}

const char *cm_net_format(const struct cm_net_addr *a, char buf[CM_NET_TEXT])
{
    char ip[INET6_ADDRSTRLEN] = "?";

    inet_ntop(a->version == 4 ? AF_INET : AF_INET6, a->ip, ip, sizeof(ip));
    if (a->port == 0)
        snprintf(buf, CM_NET_TEXT, "%s", ip);
    else
        snprintf(buf, CM_NET_TEXT, a->version == 4 ? "%s:%u" : "[%s]:%u", ip, (unsigned)a->port);
    return buf;
}

struct cm_net_addr cm_net_remote(int fd)
{
    struct sockaddr_storage s;
    socklen_t len = sizeof(s);
    struct cm_net_addr a = {.version = 0};

    if (getpeername(fd, (struct sockaddr *)&s, &len) != 0 || !cm_net_of((struct sockaddr *)&s, &a))
        a.version = 0;
    return a;
}

/* Digits only: 1 to 65535. Advances *at; 0: there is no such number. */
static uint16_t parse_port(const char **at)
{
    unsigned long v = 0;
    const char *p = *at;

    for (; *p >= '0' && *p <= '9' && v <= UINT16_MAX; p++)
        v = v * 10 + (unsigned long)(*p - '0');
    *at = p;
    return v <= UINT16_MAX ? (uint16_t)v : 0;
}

enum cm_status cm_net_parse_ports(const char *text, struct cm_net_ports *out)
{
    const char *at = text;
    struct cm_net_ports r = {0, 0};

    r.first = r.last = parse_port(&at);
    if (*at == '-') {
        at++;
        r.last = parse_port(&at);
    }
    if (*at != '\0' || r.first == 0 || r.last < r.first)
        return CM_FAIL(CM_EINVAL, "--port-range %s: write FIRST-LAST, from 1 to 65535", text);
    *out = r;
    return CM_OK;
}

/* A socket bound to the interface's address. -1, with errno. */
static int bound_socket(const struct cm_net_if *on, uint16_t port, bool listens)
{
    struct cm_net_addr a = on->addr;
    struct sockaddr_storage s;
    socklen_t len;
    int one = 1, err;
    int fd =
        socket(a.version == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    a.port = port;
    len = cm_net_to(&a, on->index, &s);
    if (fd < 0)
        return -1;
    /* A listener may follow one whose connections linger; a caller shares its ports by target. */
    if (listens)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    else
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&s, len) == 0 && (!listens || listen(fd, BACKLOG) == 0))
        return fd;
    err = errno;
    close(fd);
    errno = err;
    return -1;
}

static enum cm_status listen_failed(const struct cm_net_if *on, struct cm_net_ports range)
{
    char ip[CM_NET_TEXT];
    int err = errno;

    if (range.first == range.last)
        return CM_FAIL(CM_ESYS, "cannot listen on port %u of %s (%s): %s", (unsigned)range.first,
                       on->name, cm_net_format(&on->addr, ip), strerror(err));
    return CM_FAIL(CM_ESYS, "cannot listen on any port from %u to %u of %s (%s): %s",
                   (unsigned)range.first, (unsigned)range.last, on->name,
                   cm_net_format(&on->addr, ip), strerror(err));
}

enum cm_status cm_net_listen(const struct cm_net_if *on, struct cm_net_ports range, int *fd,
                             struct cm_net_addr *at)
{
    unsigned span = (unsigned)range.last - range.first + 1U;
    unsigned start = (unsigned)getpid() % span; /* processes of a machine look in other places */
    struct sockaddr_storage s;
    socklen_t len = sizeof(s);
    int got = -1;

    for (unsigned i = 0; i < span && got < 0; i++) {
        got = bound_socket(on, (uint16_t)(range.first + (start + i) % span), true);
        if (got < 0 && errno != EADDRINUSE)
            break;
    }
    if (got < 0)
        return listen_failed(on, range);
    if (getsockname(got, (struct sockaddr *)&s, &len) != 0 ||
        !cm_net_of((struct sockaddr *)&s, at)) {
        close(got);
        return cm_fail_errno("address of a listening socket");
    }
    *fd = got;
    return CM_OK;
}

int cm_net_dial(const struct cm_net_if *on, const struct cm_net_addr *to)
{
    struct sockaddr_storage s;
    socklen_t len = cm_net_to(to, on->index, &s);
    int fd, err;

    if (to->version != on->addr.version) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    fd = bound_socket(on, 0, false);
    if (fd < 0 || connect(fd, (struct sockaddr *)&s, len) == 0 || errno == EINPROGRESS)
        return fd;
    err = errno;
    close(fd);
    errno = err;
    return -1;
}

bool cm_net_tune(int fd, int64_t silence_ns)
{
    unsigned ms = (unsigned)(silence_ns / CM_NS_PER_MS);
    int one = 1;

    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0 &&
           setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)) == 0;
}
