/* The fabric's own data, shared by fabric*.c. Private. */
#ifndef CM_COMMON_FABRIC_INT_H
#define CM_COMMON_FABRIC_INT_H

#include "common/fabric.h"
#include "common/network.h"
#include "common/pairs.h"
#include "common/world_topo.h"
#include "transport/ib.h"
#include "transport/net.h"
#include "transport/proxy.h"

/* What a process tells all others. */
struct cm_fabric_card {
    struct cm_net_addr at;             /* where it listens */
    unsigned char token[CM_NET_TOKEN]; /* of the job, from process 0 */
};

struct cm_fabric_peer {
    int proc;
    int fds[CM_NET_SOCKETS]; /* -1: none; the proxy's once it is open */
    void **send, **recv;     /* ports, as struct cm_proxy_peer has them */
    int nsend, nrecv;
};

struct cm_fabric {
    struct cm_fabric_args a;
    struct cm_net_if on;
    struct cm_net_addr at;
    int listener;
    struct cm_fabric_card *cards; /* of all processes */
    struct cm_pairs pairs;
    struct cm_fabric_peer *peers;
    int npeers, nports, sockets;
    enum cm_proxy_mode mode;
    bool connected; /* the proxy has the sockets */
    struct cm_control *control;
    char nic[CM_TOPO_NAME]; /* that the topology gives to the process's first GPU; "" */
    bool over_ib;           /* ports travel over ib, the proxy carries messages only */
    struct cm_ib *ib;
    struct cm_proxy *proxy;
    struct cm_remote remote;
    struct cm_network network;
};

/* fabric_ports.c: f->peers, then their ports; f->pairs is there. CM_ENOMEM. */
CM_MUST_CHECK enum cm_status cm_fabric_list_neighbours(struct cm_fabric *f);
CM_MUST_CHECK enum cm_status cm_fabric_list_ports(struct cm_fabric *f);

/*
 * fabric_connect.c: connections with all neighbours. Collective. CM_ESYS, CM_ETIMEOUT:
 * process 0 has named who cannot reach whom, and why; CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_fabric_connect(struct cm_fabric *f);

/* fabric_ib.c: f->over_ib, the same on all processes; then the wire, once neighbours are connected.
   Collective. */
CM_MUST_CHECK enum cm_status cm_fabric_choose_ib(struct cm_fabric *f);
CM_MUST_CHECK enum cm_status cm_fabric_open_ib(struct cm_fabric *f, struct cm_proxy_events events);

/* Of the first rank of a process. */
const char *cm_fabric_host(const struct cm_fabric *f, int proc);

/* Turns of a thread that moves data, before it sleeps. */
int cm_fabric_spins(const struct cm_fabric *f);

/* Fill f->network. Collective. */
CM_MUST_CHECK enum cm_status cm_fabric_describe(struct cm_fabric *f);

#endif
