/*
 * The ib wire: carries ports (FIFOs, base/shared.h) between machines with
 * libibverbs, over InfiniBand or RoCE.
 *
 * As with the proxy (transport/proxy.h) both ends of a port have all of it in
 * their own memory, and the executors see a FIFO. Here the adapter moves the
 * slots: the sending end writes a filled slot straight into the same slot of
 * the far end (RDMA WRITE), and the immediate value of that write is the only
 * signal; the far end turns it into flag and tail. Credit travels back as the
 * immediate value of an empty write. There is no copy, so a slot is freed at
 * the sending end only when the adapter has read it for the last time.
 * Payloads must lie in their slots (struct cm_slot_head.far_at is not looked at).
 *
 * What connections need is exchanged by the caller, over any channel that both
 * ends trust. The order of calls:
 *
 *   cm_ib_open()                                 each process by itself
 *   cm_ib_offer(), exchange, cm_ib_connect()     for each neighbour
 *   all neighbours tell each other that they are connected
 *   cm_ib_start()                                from now on slots move
 *   cm_ib_close()
 *
 * libibverbs is loaded at run time; a build without its headers has the same
 * functions, and cm_ib_available() says why there is no such wire.
 *
 * Whether a neighbour is alive is not watched here: adapters answer for
 * processes that are stopped. The proxy beside it does that.
 */
#ifndef CM_TRANSPORT_IB_H
#define CM_TRANSPORT_IB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/shared.h"
#include "base/status.h"
#include "transport/proxy.h"

enum {
    CM_IB_QPS = 16,        /* queue pairs of one connection, at most */
    CM_IB_PORTS = 1 << 18, /* ports of one connection in one direction, at most */
    CM_IB_TEXT = 256       /* cm_ib_describe() */
};

struct cm_ib;
struct cm_verbs;

extern const char *const cm_ib_what; /* one line for --list */

/* Which adapter, and how it is used. Values that cannot be had are refused, never changed. */
struct cm_ib_choice {
    /*
     * As NCCL_IB_HCA: "mlx5_0,mlx5_1:2" are prefixes of devices, with ports;
     * a leading ^ excludes them, then = makes them whole names. NULL or "": all.
     * Of those that are up the fastest are taken, then the one that the topology gives to
     * the process's GPU (`nearest`: a name, NULL: not known), then those near `numa`; `nth`
     * of them (modulo their number), so that processes of a machine spread.
     */
    const char *hca;
    const char *nearest;
    int numa;     /* node near which the process runs, -1: unknown */
    int nth;      /* >= 0 */
    int gid;      /* index into the port's GID table, -1: the best */
    int qps;      /* queue pairs of a connection, 1 to CM_IB_QPS; port i goes over i mod qps */
    int mtu;      /* 256, 512, ... 4096; 0: the smaller of both ends' */
    int timeout;  /* until a packet is sent again: 4.096 us * 2^timeout, 1 to 31 */
    int retries;  /* how often, 0 to 7 (some software adapters take 7 for ever) */
    int tc, sl;   /* traffic class 0 to 255, service level 0 to 15 */
    int adaptive; /* packets may take several ways: 1 yes, 0 no, -1: on InfiniBand, not on RoCE */
};

/* What is used where the user says nothing: NCCL's values, but a timeout of 1 s. */
struct cm_ib_choice cm_ib_usual(void);

/* A neighbour. Arrays are copied; the ports' memory must outlive the wire. */
struct cm_ib_peer {
    int proc;         /* its number in the job */
    const char *host; /* for messages */
    /* As in struct cm_proxy_peer: send[i] here is recv[i] there. */
    void *const *send;
    void *const *recv;
    int nsend, nrecv;
};

/* Called on whatever thread drives the wire. */
struct cm_ib_events {
    void *arg;
    /*
     * The connection with `proc` is lost. Once per neighbour; its ports stand still from
     * now on. CM_ETIMEOUT: nothing acknowledges what is sent to it; CM_ESYS: everything
     * else. `why` is what a report says after the process: "is lost over mlx5_0:1 (...):
     * ..."; valid until the call returns. NULL: losses are logged.
     */
    void (*lost)(void *arg, int proc, enum cm_status st, const char *why);
};

struct cm_ib_args {
    int proc;          /* my number in the job */
    int depth;         /* slots of a port, a power of two up to 1024 */
    size_t slot_bytes; /* payload of a slot, a multiple of 64 */
    const struct cm_ib_peer *peers;
    int npeers;
    struct cm_ib_choice choice;
    /* As in struct cm_proxy_args. */
    enum cm_proxy_mode mode;
    int spins;
    bool crowded;
    struct cm_ib_events events;
    const struct cm_verbs *verbs; /* NULL: the installed library */
    const char *sysfs;            /* NULL: "/sys" */
};

struct cm_ib_stats {
    uint64_t slots_sent, slots_got, payload_sent, payload_got; /* payloads in bytes */
    uint64_t posts, completions;                               /* lists posted, events taken */
    uint64_t sleeps, wakes;
};

/*
 * Is there an adapter that `c` allows, with a port that is up? false: why[] says what
 * is missing (library, devices, permission, a cable). Opens adapters, so it takes
 * milliseconds. Does not log.
 */
bool cm_ib_available(const struct cm_ib_choice *c, char *why, size_t size);

/*
 * Choose device, port and GID, register the memory of the ports, make the
 * queue pairs. Does not wait for the neighbours. *out is untouched unless
 * CM_OK. CM_EINVAL: a choice that names nothing, or is out of range; CM_EUNSUP:
 * no library, or no port that is up; CM_ENOMEM: memory, or too little may be
 * locked (ulimit -l); CM_ESYS.
 */
CM_MUST_CHECK enum cm_status cm_ib_open(const struct cm_ib_args *a, struct cm_ib **out);

/* Bytes of an offer of a process with `nrecv` ports to receive from the one it is made to. */
size_t cm_ib_offer_bytes(int nrecv);

/*
 * What neighbour number `peer` (index into args.peers) must know of this end:
 * cm_ib_offer_bytes(its nrecv) bytes to `out`, the same on every machine of one byte order.
 */
void cm_ib_offer(const struct cm_ib *ib, int peer, void *out);

/*
 * Connect with a neighbour by its offer. `bytes` should be
 * cm_ib_offer_bytes(nsend). Nothing of it is believed unchecked. Does not
 * wait; but what is sent before the neighbour has done the same is lost and
 * only sent again after the timeout: hence the exchange before cm_ib_start().
 * CM_EMISMATCH: other ports, or adapters that cannot talk to each other (both
 * are named); CM_ESYS: no offer, or the adapter refuses.
 */
CM_MUST_CHECK enum cm_status cm_ib_connect(struct cm_ib *ib, int peer, const void *theirs,
                                           size_t bytes);

/* All are connected. Starts the thread. CM_ESYS. */
CM_MUST_CHECK enum cm_status cm_ib_start(struct cm_ib *ib);

/* As cm_proxy_progress() and so on. Only after cm_ib_start(). */
bool cm_ib_progress(struct cm_ib *ib);
void cm_ib_doze(struct cm_ib *ib, int64_t ns);
void cm_ib_rest(struct cm_ib *ib);
enum cm_status cm_ib_status(const struct cm_ib *ib);

/* Sums of this process so far. Any thread; waits for the end of a turn. */
struct cm_ib_stats cm_ib_stats(struct cm_ib *ib);

/* "mlx5_0:1 RoCE v2 gid 3 (192.0.2.7) 100 Gb/s mtu 4096" into buf[CM_IB_TEXT]; returns buf. */
const char *cm_ib_describe(const struct cm_ib *ib, char *buf);

/*
 * Send what is filled, say bye, wait until all neighbours have said it too,
 * and free all, as cm_proxy_close(): `until_ns` 0 says nothing and waits for
 * nobody. CM_ETIMEOUT, CM_ESYS. NULL is fine, and so is one that was never started.
 */
enum cm_status cm_ib_close(struct cm_ib *ib, int64_t until_ns);

#endif
