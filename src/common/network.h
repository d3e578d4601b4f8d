/*
 * What a report tells about a run between nodes: which way the processes are
 * connected, who differs, and how long the start took. Plain data, filled by
 * the fabric and the launch; nothing here waits or logs.
 */
#ifndef CM_COMMON_NETWORK_H
#define CM_COMMON_NETWORK_H

#include <stdint.h>

#include "common/opts.h"

enum { CM_NETWORK_WAYS = 8 };

/*
 * How processes are on the network: one process, or several that are so alike
 * but for their addresses. Plain data, the same on every machine.
 */
struct cm_network_way {
    char wire[8];       /* "tcp", "ib" */
    char interface[16]; /* "eth0"; with ib: the one that brought the processes together */
    char device[96];    /* ib: "mlx5_0:1 RoCE v2 gid 3"; tcp: "" */
    int32_t mbit;       /* speed of the device, or else of the interface; 0: unknown */
    int32_t procs;      /* how many processes, >= 1 */
    int32_t first;      /* lowest world rank of any of them; it is on `host`, ... */
    char host[64];
    char address[64]; /* ... at this address, without a port, ... */
    char why[64];     /* ... and this led it there, see cm_network_why() */
};

/* The ways of many processes, in the order of their first ranks. Plain data. */
struct cm_network_ways {
    int32_t n;
    int32_t others; /* processes of further ways, for which there is no room */
    struct cm_network_way of[CM_NETWORK_WAYS];
};

/*
 * Add a way to a set (zero to start with): what is alike becomes one way, with
 * the sum of processes. Sets of parts of the job are merged by adding the ways
 * of one to the other, and their `others`; the order does not matter as long
 * as all ways find room.
 */
void cm_network_add(struct cm_network_ways *set, const struct cm_network_way *way);

/* Index of the way that most processes go, the first of them if equal; -1: the set is empty. */
int cm_network_main(const struct cm_network_ways *set);

/*
 * What led to the choice of an interface (option "ifname") or a device
 * ("ib-hca"): "default: fastest", "--ifname", "NCCL_SOCKET_IFNAME".
 * `set`: was the option set? Returns buf.
 */
const char *cm_network_why(const struct cm_opts *o, const char *option, bool set,
                           char buf[CM_SET_BY_BYTES]);

/* For struct cm_rank.network. */
struct cm_network {
    struct cm_network_way mine;  /* of this process */
    struct cm_network_ways ways; /* of all; needed by process 0 only */
    int domains;                 /* sets of processes that share memory, >= 2 */
    int most_ranks;              /* ranks of the largest of them; 1: no pair shares memory */
    int lanes;            /* tcp: sockets, ib: queue pairs, between two processes; 0: unknown */
    int neighbours;       /* processes of other domains that this one is connected to */
    int ports;            /* FIFOs of this process that these connections carry */
    const char *progress; /* "thread", "inline" */
};

/* For struct cm_rank.bootstrap: seconds that process 0 spent; 0: not known. */
struct cm_bootstrap {
    double start_s;    /* until the launcher or the rendezvous had all processes */
    double discover_s; /* who is where, options compared, memory shared */
    double connect_s;  /* connections between domains, and the first barrier of all ranks */
};

#endif
