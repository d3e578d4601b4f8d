/*
 * How a process connects with its neighbours: of two, the one with the lower
 * number dials.
 */
#ifndef CM_TRANSPORT_MEET_H
#define CM_TRANSPORT_MEET_H

#include "transport/net.h"

enum { CM_MEET_WHY = 96 };

struct cm_meet_peer {
    int proc;                /* its number in the job; not my own, each once */
    const char *host;        /* for messages */
    struct cm_net_addr addr; /* where it listens; used if its number is higher than mine */
    int *fds;                /* out: one socket each of the connection */
};

/* What went wrong, for a report: plain data. */
struct cm_meet_trouble {
    int32_t missing;       /* neighbours that are not connected */
    int32_t proc;          /* one of them: if possible one that we dialled, who dials knows more */
    int32_t dialled;       /* we did */
    char why[CM_MEET_WHY]; /* "Connection refused", "no answer within 2.0 s" */
};

struct cm_meet_args {
    int proc; /* my number */
    unsigned char token[CM_NET_TOKEN];
    const struct cm_net_if *on; /* dial from here */
    int listener;               /* from cm_net_listen(); stays the caller's; -1: nobody dials us */
    int sockets; /* of each connection, 1 to CM_NET_SOCKETS, alike on all processes */
    struct cm_meet_peer *peers;
    int npeers;
    int64_t until_ns; /* cm_now_ns() time */
};

/*
 * Connect with all of `peers`, who must call it too, with this process among
 * theirs, until `until_ns`. Blocks. The sockets are non-blocking and the
 * caller's; after a failure there are none (-1), and *trouble says why: nothing is
 * logged but a lack of memory. A neighbour that cannot be reached keeps nobody
 * from connecting with the others first, so that each process knows all its troubles.
 *
 * Whoever else comes to the listener is dropped, with a note for the first few,
 * and cannot hold anybody up: strangers have two seconds each, and when many
 * come at once the oldest of them goes. Memory grows with `npeers` only.
 *
 * CM_ESYS: one at least refused, is unreachable, or is somebody else. CM_ETIMEOUT:
 * not all came. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_meet(const struct cm_meet_args *a, struct cm_meet_trouble *trouble);

#endif
