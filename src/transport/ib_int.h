/*
 * The ib wire's inside: a neighbour, its queue pairs, the ends of its ports.
 * Private to the wire's files and their tests.
 *
 * After cm_ib_start() everything here belongs to the thread that drives the
 * wire (it holds `busy`), except the ports' lines and slots (base/shared.h).
 *
 * An immediate value: two bits kind, 18 bits port, 12 bits number of the slot.
 */
#ifndef CM_TRANSPORT_IB_INT_H
#define CM_TRANSPORT_IB_INT_H

#include <pthread.h>

#include "transport/ib_dev.h"

enum {
    CM_IB_SEND_QUEUE = 128,       /* requests of a queue pair that are under way, at most */
    CM_IB_RECV_QUEUE = 8192,      /* receives of a queue pair that are posted, at most */
    CM_IB_CHAIN = 16,             /* requests that are posted with one call */
    CM_IB_SIGNAL_EVERY = 16,      /* of so many requests one at least gives a completion */
    CM_IB_CREDITS_AHEAD = 2,      /* messages of credit that a port can have under way */
    CM_IB_NUMBERS = 4096,         /* slots are told modulo this: twice the depth at least */
    CM_IB_NUMBER_MASK = 0xffffff, /* of queue pairs and packets */
    CM_IB_NO_PORT = -1
};

enum cm_ib_kind { CM_IB_SLOT, CM_IB_CREDIT, CM_IB_BYE, CM_IB_NKINDS };

static inline uint32_t cm_ib_imm(enum cm_ib_kind kind, int port, uint64_t number)
{
    return (uint32_t)kind << 30 | (uint32_t)port << 12 | (uint32_t)(number % CM_IB_NUMBERS);
}

static inline uint32_t cm_ib_imm_kind(uint32_t imm)
{
    return imm >> 30;
}

static inline int cm_ib_imm_port(uint32_t imm)
{
    return (int)(imm >> 12 & (CM_IB_PORTS - 1));
}

/* The first number from `from` on that ends like the immediate value. */
static inline uint64_t cm_ib_imm_number(uint32_t imm, uint64_t from)
{
    return from + ((imm - (uint32_t)from) & (CM_IB_NUMBERS - 1));
}

/* This process's end of a port. */
struct cm_ib_end {
    struct cm_port_lines *lines;
    unsigned char *slots;
    uint64_t moved;  /* slots posted, or arrived */
    uint64_t left;   /* sending end: slots given back to the executor */
    uint64_t kept;   /* sending end: slots posted that a completion will give back */
    uint64_t credit; /* slots that the far executor freed; receiving end: as we last told */
    uint64_t remote; /* sending end: address of the far end's first slot, and its key */
    uint32_t key;    /* local key of a sending end; remote key of a receiving end */
    uint32_t remote_key;
};

struct cm_ib_link;

/* One queue pair. Ports nth, nth + qps, ... of the neighbour travel here, both ways. */
struct cm_ib_qp {
    struct cm_ib_link *link;
    struct ibv_qp *qp;
    int nth;
    uint32_t index;        /* in cm_ib.qps: part of the identity of requests */
    uint32_t psn;          /* where the packets that we send start to count */
    uint64_t posted, done; /* send requests so far */
    uint64_t signalled;    /* ... up to the last that gives a completion */
    size_t silent;         /* payload posted since */
    bool owed;             /* ... and slots that only a completion gives back */
    int32_t *ports;        /* of each request under way: whose slot leaves with it */
    int spent;             /* receives that were used and are to be posted again */
    int next;              /* port to serve first, for fairness */
    bool bye, told_bye;
};

/* A neighbour. */
struct cm_ib_link {
    struct cm_ib *ib;
    int proc;
    char host[64];
    int nsend, nrecv;
    struct cm_ib_end *send, *recv;
    struct cm_ib_qp *qps;
    bool leaving; /* bye is to be said when all is sent */
    bool lost;
};

struct cm_ib {
    struct cm_ib_args a; /* its peers are not valid any more */
    struct cm_verbs verbs;
    struct cm_ib_dev dev;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_mr **mrs;
    int nmrs, mrs_room;
    struct cm_ib_link *links;
    struct cm_ib_qp **qps; /* all, npeers * choice.qps */
    int nqps;
    int send_queue, recv_queue; /* of each queue pair */
    uint32_t inline_bytes;      /* a request of so many bytes is copied as it is posted */
    bool split;                 /* signal and large payload are requests of their own */
    bool started;
    int wake; /* an eventfd */
    pthread_t thread;
    unsigned turns;
    struct cm_ib_stats stats;
    _Atomic bool stop;
    _Atomic bool handed; /* inline mode: the thread is to finish what the executors began */
    _Atomic uint32_t status;
    _Atomic uint64_t sleeps, wakes;
    alignas(CM_LINE) _Atomic bool busy;
    alignas(CM_LINE) _Atomic bool asleep;
};

static inline struct cm_slot_head *cm_ib_slot(const struct cm_ib *ib, const struct cm_ib_end *e,
                                              uint64_t number)
{
    size_t stride = sizeof(struct cm_slot_head) + ib->a.slot_bytes;

    return (void *)(e->slots + (size_t)(number & (uint64_t)(ib->a.depth - 1)) * stride);
}

/* ib_mem.c: register the memory of the ports and fill their ends. CM_ENOMEM, CM_ESYS. */
CM_MUST_CHECK enum cm_status cm_ib_add_ports(struct cm_ib *ib, void *const *ports, int n,
                                             int access, struct cm_ib_end *ends);
void cm_ib_release_memory(struct cm_ib *ib);

/* ib_qp.c: make a queue pair that can receive already (INIT), and end it. */
CM_MUST_CHECK enum cm_status cm_ib_qp_open(struct cm_ib *ib, struct cm_ib_qp *q);
void cm_ib_qp_close(struct cm_ib *ib, struct cm_ib_qp *q);

/* ib_qp.c: post `n` receives. 0, or an errno value. */
CM_MUST_CHECK int cm_ib_post_receives(struct cm_ib_qp *q, int n);

/* The other end of a queue pair. */
struct cm_ib_far {
    uint32_t number, psn, lid, mtu; /* mtu: enum ibv_mtu */
    unsigned char gid[16];
};

/* ib_qp.c: change the state of a queue pair. 0, or an errno value. */
CM_MUST_CHECK int cm_ib_to_init(const struct cm_ib_dev *d, struct ibv_qp *qp, unsigned access);
CM_MUST_CHECK int cm_ib_to_rtr(const struct cm_ib_dev *d, struct ibv_qp *qp,
                               const struct cm_ib_choice *c, const struct cm_ib_far *far);
CM_MUST_CHECK int cm_ib_to_rts(const struct cm_ib_dev *d, struct ibv_qp *qp,
                               const struct cm_ib_choice *c, uint32_t psn);

/* ib_speak.c: post what is due on this queue pair; true if it was anything. */
bool cm_ib_speak(struct cm_ib_qp *q);

/* ib_speak.c: is there something to be posted now? ... or will there be, or is it under way? */
bool cm_ib_has_news(const struct cm_ib_qp *q);
bool cm_ib_owes(const struct cm_ib_qp *q);

/* ib_speak.c: the adapter is done with all requests before number `upto`. */
void cm_ib_retire(struct cm_ib_qp *q, uint64_t upto);

/* ib_hear.c: take completions; true if there was one. */
bool cm_ib_hear(struct cm_ib *ib);

/* ib_fault.c: a request ended badly; `wc` says how. */
void cm_ib_bad_completion(struct cm_ib_qp *q, const struct ibv_wc *wc);

/* ib_fault.c: what the adapter reports by itself (a cable, a queue pair that broke). */
void cm_ib_async_events(struct cm_ib *ib);

/* ib_fault.c: give the neighbour up, unless it is lost already. */
void cm_ib_lose(struct cm_ib_link *l, enum cm_status st, const char *fmt, ...) CM_PRINTF(3, 4);

/* ib_drive.c: one turn, unless somebody else is at it: true if something moved. */
bool cm_ib_drive(struct cm_ib *ib);

/* ib_drive.c: is anything filled, under way, or to be told? Waits for the end of a turn. */
bool cm_ib_unfinished(struct cm_ib *ib);

/* ib_drive.c: wait for news of the adapter, or the eventfd if it is heard, `ms` at most. */
void cm_ib_await(struct cm_ib *ib, bool completions, int ms);

/* ib_drive.c: the thread, for each of the modes. */
void *cm_ib_run(void *ib);
void *cm_ib_keep_going(void *ib);

#endif
