/* The proxy's own data, shared by proxy.c (its life) and drive.c (its loop). Private. */
#ifndef CM_TRANSPORT_PROXY_INT_H
#define CM_TRANSPORT_PROXY_INT_H

#include "transport/tcp.h"

struct cm_proxy {
    struct cm_proxy_args a; /* its peers are not valid any more */
    struct cm_peer *peers;
    struct cm_sock **socks; /* all, npeers * sockets */
    int nsocks;
    int epoll, wake; /* wake: an eventfd; of CM_PROXY_THREAD in epoll, its data NULL */
    pthread_t thread;
    unsigned turns;
    int64_t ticked_ns;
    int64_t away_ns, back_ns; /* so long this process stood still, until then; 0: it did not */
    struct cm_proxy_stats stats;
    _Atomic bool stop;
    _Atomic bool handed; /* inline mode: the thread is to finish what the executors began */
    _Atomic uint32_t status;
    _Atomic uint64_t sleeps, wakes;
    alignas(CM_LINE) _Atomic bool busy;
    alignas(CM_LINE) _Atomic bool asleep;
};

/*
 * One turn, unless somebody else is at it: true if something moved.
 * `look_at_clock`: in any case; else every so many turns.
 */
bool cm_proxy_drive(struct cm_proxy *p, bool look_at_clock);

/* Is anything filled, queued or half written? Waits for the end of a turn. */
bool cm_proxy_unfinished(struct cm_proxy *p);

/* Has the neighbour said farewell on all its sockets? By whoever drives. */
bool cm_proxy_heard_bye(const struct cm_proxy *p, const struct cm_peer *peer);

/* The thread, for each of the modes. */
void *cm_proxy_run(void *proxy);
void *cm_proxy_keep_alive(void *proxy);

#endif
