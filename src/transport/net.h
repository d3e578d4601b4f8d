/*
 * Interfaces, addresses and sockets between machines: which interface a job
 * uses, where it listens, how it starts to connect.
 *
 * Nothing here waits; any thread may call any function.
 */
#ifndef CM_TRANSPORT_NET_H
#define CM_TRANSPORT_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"

enum {
    CM_NET_NAME = 16,   /* an interface's name, with its end */
    CM_NET_TEXT = 64,   /* an address as text, with its end */
    CM_NET_TOKEN = 16,  /* the job's random token */
    CM_NET_SOCKETS = 16 /* sockets of one connection, at most */
};

/* An address as it travels between processes: plain data, the same on every machine. */
struct cm_net_addr {
    uint16_t version; /* 4 or 6 */
    uint16_t port;    /* host byte order; 0: none yet */
    uint32_t reserved;
    unsigned char ip[16]; /* network byte order; version 4: the first four */
};

/* One address of one interface of this machine. */
struct cm_net_if {
    char name[CM_NET_NAME];
    unsigned index; /* of the interface here: the scope of link-local addresses */
    int mbit;       /* its speed; 0: unknown */
    bool loopback;
    struct cm_net_addr addr; /* port 0 */
};

/* Ports to listen on, first to last; both 0: any that is free. */
struct cm_net_ports {
    uint16_t first, last;
};

/*
 * All addresses of interfaces that are up, in the system's order. *out is the
 * caller's: free(). CM_ESYS, CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_net_list(struct cm_net_if **out, int *n);

/*
 * Keep what `spec` names, best first, and set *n to how many that are (>= 1).
 *
 *   spec  as --ifname and NCCL_SOCKET_IFNAME: prefixes separated by commas;
 *         a leading ^ excludes them, then = makes them whole names.
 *         NULL or "": all, but the bridges of containers and virtual machines
 *         only if nothing else is there, and loopback only after those.
 *
 * Order: as named in `spec`, then loopback last, then fastest, then addresses
 * that are valid beyond the link, then version 4, then as given. CM_EINVAL:
 * nothing is left; the message names what there is, and `ifs` is unchanged.
 */
CM_MUST_CHECK enum cm_status cm_net_select(struct cm_net_if *ifs, int *n, const char *spec);

/* "7000-7100" or "7000"; 1 to 65535. CM_EINVAL, logged. */
CM_MUST_CHECK enum cm_status cm_net_parse_ports(const char *text, struct cm_net_ports *out);

/*
 * Listen on the address of `on`, at a free port of the range. The socket is
 * non-blocking and the caller's; *at is where to find it. CM_ESYS: all ports
 * are taken, or the system refuses; logged with interface and address.
 */
CM_MUST_CHECK enum cm_status cm_net_listen(const struct cm_net_if *on, struct cm_net_ports range,
                                           int *fd, struct cm_net_addr *at);

/*
 * Start to connect from the address of `on` to `to`: a non-blocking socket, or
 * -1 with errno. The outcome shows when it becomes writable (SO_ERROR).
 */
int cm_net_dial(const struct cm_net_if *on, const struct cm_net_addr *to);

/*
 * A connected socket for frames: no delay of small messages; data that nobody
 * acknowledges for `silence_ns` break the connection. False, with errno.
 */
bool cm_net_tune(int fd, int64_t silence_ns);

/* "192.0.2.2:7000", "[fd00::2]:7000"; without the port if it is 0. Returns buf. */
const char *cm_net_format(const struct cm_net_addr *a, char buf[CM_NET_TEXT]);

/* The other end of a socket; version 0 if there is none. */
struct cm_net_addr cm_net_remote(int fd);

/* From and to the system's form. cm_net_of: false if it is neither version 4 nor 6. */
bool cm_net_of(const struct sockaddr *from, struct cm_net_addr *to);
socklen_t cm_net_to(const struct cm_net_addr *from, unsigned scope, struct sockaddr_storage *to);

#endif
