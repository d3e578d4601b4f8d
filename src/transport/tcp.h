/*
 * The proxy's inside: a neighbour, its sockets, the ends of its ports. Private
 * to the proxy's files and their tests.
 *
 * Everything here belongs to the thread that drives the proxy, except the
 * ports' lines and slots (base/shared.h) and the queue of messages (its lock).
 */
#ifndef CM_TRANSPORT_TCP_H
#define CM_TRANSPORT_TCP_H

#include <pthread.h>

#include "transport/frame.h"
#include "transport/proxy.h"

enum { CM_BATCH = 32 /* frames that leave in one call */ };

/* This process's end of a port. */
struct cm_port_end {
    struct cm_port_lines *lines;
    unsigned char *slots;
    uint64_t moved;  /* slots sent, or arrived */
    uint64_t credit; /* slots that the far executor freed; receiving end: as we last told */
};

/* A message on its way out. */
struct cm_note {
    struct cm_note *next;
    uint32_t type, bytes;
    unsigned char payload[];
};

/* Frames that are being written; what they were made of is given back as they leave. */
struct cm_writer {
    int n, done;  /* frames; of these written completely */
    int niov, at; /* areas; the first that is not written completely */
    size_t bytes; /* of the batch */
    struct cm_frame frames[CM_BATCH];
    struct iovec iov[2 * CM_BATCH];
    int iov_end[CM_BATCH]; /* areas up to the end of each frame */
    struct cm_note *notes[CM_BATCH];
};

struct cm_peer;

struct cm_sock {
    struct cm_peer *peer;
    int fd;             /* -1: closed */
    int index;          /* ports index, index + sockets, ... travel here */
    int next;           /* port to serve first, for fairness */
    bool greeted;       /* CM_FRAME_PORTS came */
    bool told_ports;    /* ... and went */
    bool bye, told_bye; /* the same of CM_FRAME_BYE */
    bool full;          /* the kernel takes no more at present */
    bool armed;         /* epoll tells when it does */
    struct cm_writer out;
    struct cm_reader in;
};

struct cm_peer {
    int proc;
    char host[64];
    char why[192];                 /* it is useless: see cm_peer_blame() */
    const struct cm_proxy_args *a; /* geometry and events */
    struct cm_proxy_stats *stats;
    int nsend, nrecv;
    struct cm_port_end *send, *recv;
    struct cm_sock *socks;
    int64_t heard_ns, said_ns;
    bool heard, said; /* since these times were taken */
    bool beat;        /* a sign of life is due */
    bool leaving;     /* bye is to be said when all is sent */
    bool lost;
    pthread_mutex_t lock; /* of the queue */
    struct cm_note *first, *last;
    size_t queued;                           /* bytes in it */
    _Atomic bool closed;                     /* nothing can be queued any more */
    _Atomic bool waiting;                    /* something is queued */
    unsigned char message[CM_CONTROL_BYTES]; /* that is arriving */
};

static inline struct cm_slot_head *cm_slot_at(const struct cm_peer *p, const struct cm_port_end *e,
                                              uint64_t number)
{
    size_t stride = sizeof(struct cm_slot_head) + p->a->slot_bytes;

    return (void *)(e->slots + (size_t)(number & (uint64_t)(p->a->depth - 1)) * stride);
}

/* Beside the flag if it fits there, as the executors have it. */
static inline void *cm_slot_payload(struct cm_slot_head *h, size_t bytes)
{
    return bytes <= sizeof(h->near) ? h->near : (unsigned char *)(h + 1);
}

/* Sending end: where the payload of a filled slot is. */
static inline void *cm_slot_source(struct cm_slot_head *h)
{
    uint64_t at = 0;

    if (h->bytes >= CM_FAR_BYTES)
        at = atomic_load_explicit(&h->far_at, memory_order_relaxed);
    return at != 0 ? (void *)(uintptr_t)at : cm_slot_payload(h, (size_t)h->bytes);
}

/* peer.c: a neighbour with its ports; its sockets have none yet (fd -1). CM_ENOMEM. */
CM_MUST_CHECK enum cm_status cm_peer_init(struct cm_peer *p, const struct cm_proxy_args *a,
                                          const struct cm_proxy_peer *from,
                                          struct cm_proxy_stats *stats);
void cm_peer_destroy(struct cm_peer *p); /* closes its sockets; a zeroed one is fine */

/* peer.c: keep what it did, as cm_proxy_events.lost has it; returns `st`. */
enum cm_status cm_peer_blame(struct cm_peer *p, enum cm_status st, const char *fmt, ...)
    CM_PRINTF(3, 4);

/* speak.c: fill an empty writer with what is to be said on this socket; nothing may be. */
void cm_peer_fill(struct cm_sock *s);

/* speak.c: is there something to be said? */
bool cm_peer_has_news(struct cm_sock *s);

/* speak.c: ... or will there be, once it has credit, or the socket takes more? */
bool cm_peer_owes(struct cm_sock *s);

/* speak.c: a frame left completely. */
void cm_peer_left(struct cm_sock *s, const struct cm_frame *f, struct cm_note *note);

/* hear.c: the sink of what arrives on a socket. */
struct cm_frame_sink cm_peer_sink(struct cm_sock *s);

/* peer.c: queue a message. Errors as cm_proxy_send(). */
CM_MUST_CHECK enum cm_status cm_peer_queue(struct cm_peer *p, uint32_t type, const void *bytes,
                                           size_t n);

/* speak.c: has it been said farewell on all sockets, after everything else? */
bool cm_peer_drained(const struct cm_peer *p);

/* tcp.c: add a frame with its payload to a batch. There is room: cm_batch_room(). */
void cm_batch_add(struct cm_writer *w, const struct cm_frame *f, const void *payload,
                  struct cm_note *note);
bool cm_batch_room(const struct cm_writer *w);

/*
 * tcp.c: write, or read, what the socket takes or gives without waiting. *moved
 * becomes true if it was anything. For a failure the neighbour is blamed: CM_ESYS,
 * CM_ETIMEOUT, CM_EMISMATCH.
 */
CM_MUST_CHECK enum cm_status cm_sock_write(struct cm_sock *s, bool *moved);
CM_MUST_CHECK enum cm_status cm_sock_read(struct cm_sock *s, bool *moved);

#endif
