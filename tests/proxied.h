/* Ports between two proxies of this process, for tests: both sides, and what goes through. */
#ifndef CM_TESTS_PROXIED_H
#define CM_TESTS_PROXIED_H

#include "sockets.h"
#include "transport/proxy.h"

enum { PROXIED_PORTS = 4, PROXIED_SOCKETS = 4 };

/* How a pair of proxies is made. */
struct proxied {
    int ports, depth, sockets;
    size_t slot_bytes;
    enum cm_proxy_mode mode[2];
    int spins;
    int64_t silence_ns;
};

/* One port, both sides driven by threads; a test changes what it is about. */
static inline struct proxied proxied_usual(int64_t silence_ns)
{
    return (struct proxied){.ports = 1,
                            .depth = 4,
                            .sockets = 1,
                            .slot_bytes = 4096,
                            .mode = {CM_PROXY_THREAD, CM_PROXY_THREAD},
                            .spins = 2,
                            .silence_ns = silence_ns};
}

/* A deadline five seconds away. */
static inline int64_t proxied_soon(void)
{
    return cm_now_ns() + 5LL * CM_NS_PER_S;
}

/* One side: process 0 or 1. */
struct proxied_side {
    const struct proxied *how;
    int proc;
    struct cm_proxy *proxy;
    struct cm_port_lines *send[PROXIED_PORTS], *recv[PROXIED_PORTS];
    uint64_t sent[PROXIED_PORTS], got[PROXIED_PORTS];
    _Atomic int lost; /* 1 + status of the neighbour's loss */
};

static inline void *proxied_port(const struct proxied *how)
{
    size_t stride = sizeof(struct cm_slot_head) + how->slot_bytes;
    size_t bytes = sizeof(struct cm_port_lines) + (size_t)how->depth * stride;
    void *p = aligned_alloc(CM_LINE, (bytes + CM_LINE - 1) / CM_LINE * CM_LINE);

    if (p == NULL)
        abort();
    return memset(p, 0, bytes);
}

static inline void proxied_lost(void *arg, int proc, enum cm_status st, const char *why)
{
    struct proxied_side *s = arg;

    if (proc != !s->proc || why[0] == '\0' || atomic_exchange(&s->lost, 1 + (int)st) != 0)
        abort();
}

/* Open side `proc` on these sockets. Events come to `ev`, or only losses to the side. */
static inline enum cm_status proxied_open(struct proxied_side *s, const struct proxied *how,
                                          int proc, const int *fds,
                                          const struct cm_proxy_events *ev)
{
    struct cm_proxy_peer peer = {.proc = !proc,
                                 .host = "there",
                                 .fds = fds,
                                 .send = (void *const *)s->send,
                                 .recv = (void *const *)s->recv,
                                 .nsend = how->ports,
                                 .nrecv = how->ports};
    struct cm_proxy_args a = {.proc = proc,
                              .sockets = how->sockets,
                              .depth = how->depth,
                              .slot_bytes = how->slot_bytes,
                              .peers = &peer,
                              .npeers = 1,
                              .mode = how->mode[proc],
                              .spins = how->spins,
                              .crowded = true,
                              .silence_ns = how->silence_ns,
                              .events = {.arg = s, .lost = proxied_lost}};

    memset(s, 0, sizeof(*s));
    s->how = how;
    s->proc = proc;
    if (ev != NULL)
        a.events = *ev;
    for (int i = 0; i < how->ports; i++) {
        s->send[i] = proxied_port(how);
        s->recv[i] = proxied_port(how);
    }
    return cm_proxy_open(&a, &s->proxy);
}

/* Both sides over new connections. */
static inline bool proxied_pair(struct proxied_side s[2], const struct proxied *how)
{
    int fds[2][PROXIED_SOCKETS], pair[2];

    for (int k = 0; k < how->sockets; k++) {
        if (!sockets_pair(pair))
            return false;
        fds[0][k] = pair[0];
        fds[1][k] = pair[1];
    }
    return proxied_open(&s[0], how, 0, fds[0], NULL) == CM_OK &&
           proxied_open(&s[1], how, 1, fds[1], NULL) == CM_OK;
}

static inline enum cm_status proxied_close(struct proxied_side *s, int64_t until_ns)
{
    enum cm_status st = cm_proxy_close(s->proxy, until_ns);

    for (int i = 0; i < s->how->ports; i++) {
        free(s->send[i]);
        free(s->recv[i]);
    }
    return st;
}

static inline struct cm_slot_head *proxied_slot(const struct proxied *how, struct cm_port_lines *p,
                                                uint64_t k)
{
    size_t stride = sizeof(struct cm_slot_head) + how->slot_bytes;

    return (void *)((char *)(p + 1) + k % (uint64_t)how->depth * stride);
}

static inline unsigned char *proxied_payload(struct cm_slot_head *h)
{
    return h->bytes <= sizeof(h->near) ? h->near : (unsigned char *)(h + 1);
}

/* A number that depends on port, slot and what it is for. */
static inline uint64_t proxied_mix(int port, uint64_t k, uint64_t what)
{
    uint64_t x = (k * 64 + (uint64_t)port) * 0x9e3779b97f4a7c15U + what;

    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9U;
    return x ^ x >> 29;
}

/* Empty, full, around the 24 bytes beside the flag, or anything. */
static inline size_t proxied_size(const struct proxied *how, int port, uint64_t k)
{
    uint64_t x = proxied_mix(port, k, 1);
    size_t edges[] = {0, how->slot_bytes, 1, 24, 25, how->slot_bytes - 1};

    if (x % 4 == 0)
        return edges[x / 4 % 6];
    return (size_t)(x / 4 % (how->slot_bytes + 1)) >> x / 7 % 12;
}

/* Fill the next slot as an executor does. False: none is free. */
static inline bool proxied_put(struct proxied_side *s, int port)
{
    struct cm_port_lines *p = s->send[port];
    uint64_t k = s->sent[port], x = proxied_mix(port, k, 2);
    struct cm_slot_head *h = proxied_slot(s->how, p, k);

    if (k - atomic_load_explicit(&p->head, memory_order_acquire) >= (uint64_t)s->how->depth)
        return false;
    h->bytes = proxied_size(s->how, port, k);
    h->sig = x;
    for (size_t i = 0; i < h->bytes; i++)
        proxied_payload(h)[i] = (unsigned char)(x + i * 7 + (i >> 8));
    s->sent[port]++;
    atomic_store_explicit(&p->tail, s->sent[port], memory_order_release);
    return true;
}

/* Take the next slot. 0: none is there, 1: it is right, -1: it is wrong. */
static inline int proxied_get(struct proxied_side *s, int port)
{
    struct cm_port_lines *p = s->recv[port];
    uint64_t k = s->got[port], x = proxied_mix(port, k, 2);
    struct cm_slot_head *h = proxied_slot(s->how, p, k);
    bool right;

    if (atomic_load_explicit(&p->tail, memory_order_acquire) <= k)
        return 0;
    right = h->sig == x && h->bytes == proxied_size(s->how, port, k) &&
            atomic_load_explicit(&h->flag, memory_order_acquire) == k + 1;
    for (size_t i = 0; right && i < h->bytes; i++)
        right = proxied_payload(h)[i] == (unsigned char)(x + i * 7 + (i >> 8));
    s->got[port]++;
    atomic_store_explicit(&p->head, s->got[port], memory_order_release);
    return right ? 1 : -1;
}

#endif
