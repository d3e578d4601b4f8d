/* Connected TCP sockets over loopback for tests, and who listens there. */
#ifndef CM_TESTS_SOCKETS_H
#define CM_TESTS_SOCKETS_H

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/net.h"

/* The loopback interface with its address of that version. False: there is none. */
static inline bool sockets_loopback(int version, struct cm_net_if *out)
{
    struct cm_net_if *ifs = NULL;
    bool found = false;
    int n = 0;

    if (cm_net_list(&ifs, &n) != CM_OK)
        return false;
    for (int i = 0; i < n && !found; i++) {
        found = ifs[i].loopback && ifs[i].addr.version == version;
        *out = ifs[i];
    }
    free(ifs);
    return found;
}

/* Wait up to five seconds for something to read, the end included. */
static inline bool sockets_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 5000) == 1;
}

/* Two ends of one connection, both non-blocking. */
static inline bool sockets_pair(int fd[2])
{
    struct cm_net_if lo;
    struct cm_net_addr at;
    int listener;

    if (!sockets_loopback(4, &lo) ||
        cm_net_listen(&lo, (struct cm_net_ports){0, 0}, &listener, &at) != CM_OK)
        return false;
    fd[0] = cm_net_dial(&lo, &at);
    fd[1] = -1;
    if (fd[0] >= 0 && sockets_readable(listener))
        fd[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    close(listener);
    return fd[0] >= 0 && fd[1] >= 0;
}

#endif
