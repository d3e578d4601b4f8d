/*
 * The proxy: carries ports (FIFOs, base/shared.h) between machines over TCP.
 *
 * Both ends of a port have all of it in their own memory: the lines, then the
 * slots. The executor of the sending rank fills slots and stores tail, that of
 * the receiving rank takes them and stores head, as if they shared the memory.
 * The proxies do the rest: the sender's watches tail, sends the slots, and
 * stores head once they have left; the receiver's reads them into its slots
 * and stores flag and tail, watches head and grants credits. So the executors
 * see a FIFO of at least its depth, and never more in a slot than was sent.
 *
 * Besides, small messages travel between the processes (cm_proxy_send).
 *
 * One proxy per process. Its memory grows with the number of its neighbours and
 * their ports, about 20 KiB for each socket.
 */
#ifndef CM_TRANSPORT_PROXY_H
#define CM_TRANSPORT_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/shared.h"
#include "base/status.h"

struct cm_proxy;

enum { CM_CONTROL_BYTES = 4096 /* of a message, at most */ };

/* A neighbour. Arrays are copied; the ports' memory must outlive the proxy. */
struct cm_proxy_peer {
    int proc;         /* its number in the job */
    const char *host; /* for messages */
    const int *fds;   /* connected sockets from cm_meet(); the proxy's once it is open */
    /*
     * Ports in memory laid out as in a segment (struct cm_port_lines, then the
     * slots), zero before the first use. send[i] here is recv[i] there.
     */
    void *const *send;
    void *const *recv;
    int nsend, nrecv;
};

enum cm_proxy_mode {
    CM_PROXY_THREAD, /* a thread of its own does all */
    CM_PROXY_INLINE  /* those who wait do it, in cm_proxy_progress() */
};

/* Called on whatever thread drives the proxy. They may call cm_proxy_send(), nothing else of it. */
struct cm_proxy_events {
    void *arg;
    /* A message came. `bytes` is valid until the call returns. NULL: messages are dropped. */
    void (*message)(void *arg, int proc, uint32_t type, const void *bytes, size_t n);
    /*
     * The connection with `proc` is lost. Once per neighbour; its ports stand still
     * from now on. CM_ETIMEOUT: it is silent (stopped, or the cable is cut), CM_ESYS: it
     * died, or sends garbage, CM_EMISMATCH: it has other ports. `why` is what a report
     * says after the process: "died: its connection was reset"; valid until the call
     * returns. NULL: losses are logged.
     */
    void (*lost)(void *arg, int proc, enum cm_status st, const char *why);
};

struct cm_proxy_args {
    int proc;          /* my number in the job */
    int sockets;       /* of each connection, as in cm_meet() */
    int depth;         /* slots of a port, a power of two */
    size_t slot_bytes; /* payload of a slot, a multiple of 64 */
    const struct cm_proxy_peer *peers;
    int npeers;
    enum cm_proxy_mode mode;
    /* CM_PROXY_THREAD: turns without success before the thread sleeps until there is news; a
       turn takes about a microsecond. Few where threads outnumber cores: it yields then. */
    int spins;
    bool crowded;       /* threads outnumber cores */
    int64_t silence_ns; /* a neighbour that says nothing for so long is lost; >= 100 ms */
    struct cm_proxy_events events;
};

struct cm_proxy_stats {
    uint64_t slots_sent, slots_got, payload_sent, payload_got; /* payloads in bytes */
    uint64_t writes, reads, sleeps, wakes;                     /* system calls */
};

/*
 * Start. Does not wait for the neighbours. *out is untouched unless CM_OK, and the
 * sockets stay the caller's then. CM_ENOMEM, CM_ESYS.
 */
CM_MUST_CHECK enum cm_status cm_proxy_open(const struct cm_proxy_args *a, struct cm_proxy **out);

/*
 * What an executor calls while it waits. CM_PROXY_INLINE: drives the proxy; true
 * if something moved, so that polling again is worth it. CM_PROXY_THREAD: wakes
 * the thread if it sleeps; false. Any thread; never blocks.
 */
bool cm_proxy_progress(struct cm_proxy *p);

/*
 * What an executor calls instead of sleeping: returns when there may be something to
 * do for cm_proxy_progress(), or after `ns`. CM_PROXY_THREAD: always sleeps for `ns`. Any thread.
 */
void cm_proxy_doze(struct cm_proxy *p, int64_t ns);

/*
 * What an executor calls when it has filled or freed slots and will not wait
 * for anything soon: an operation ends. CM_PROXY_INLINE: sends what it can, and
 * leaves what it cannot to the thread. CM_PROXY_THREAD: as cm_proxy_progress().
 * Any thread; blocks for a turn of another at most.
 */
void cm_proxy_rest(struct cm_proxy *p);

/*
 * Send a message of up to CM_CONTROL_BYTES to a neighbour; they arrive in order
 * with each other, not with slots. Copies; any thread; never blocks. CM_EINVAL: no such
 * neighbour, or too long (logged). CM_ENOMEM: over 256 KiB wait to be sent to it, try
 * again later. CM_EABORT: it is lost, or has left.
 */
CM_MUST_CHECK enum cm_status cm_proxy_send(struct cm_proxy *p, int proc, uint32_t type,
                                           const void *bytes, size_t n);

/* The same to all neighbours that take it. */
void cm_proxy_send_all(struct cm_proxy *p, uint32_t type, const void *bytes, size_t n);

/* Have all messages left this process, except those to neighbours that are lost? Any thread; waits
   for the end of a turn. */
bool cm_proxy_told(struct cm_proxy *p);

/* Why the first neighbour was lost; CM_OK while all are there. Any thread, cheap. */
enum cm_status cm_proxy_status(const struct cm_proxy *p);

/* Sums of this process so far. Any thread; waits for the end of a turn. */
struct cm_proxy_stats cm_proxy_stats(struct cm_proxy *p);

/*
 * Send what is filled and queued, say bye, wait until all neighbours have said
 * it too, and free all. No executor may use the ports any more. Blocks until
 * `until_ns` (cm_now_ns() time) at most; 0: says nothing and waits for nobody,
 * as if the process had died. CM_ETIMEOUT: some had not said bye, they are
 * named; CM_ESYS, CM_EMISMATCH: one was lost before. NULL is fine.
 */
enum cm_status cm_proxy_close(struct cm_proxy *p, int64_t until_ns);

#endif
