/*
 * The proxy against plain sockets, between two processes over loopback.
 *
 *   build/bench/tcp_pingpong [INTERFACE [WAYS]]     CSV on stdout; WAYS: letters of rbit
 *
 * For each size: half of a round trip in us, and a one-way stream in GB/s.
 *   raw        send and recv without waiting in the kernel, spinning; writev and read
 *   blocking   the same sockets, blocking
 *   inline     the proxy, driven by who waits
 *   thread     the proxy with a thread of its own
 * The proxy's figures include its ports: slots are filled and freed, not copied.
 * Each figure is the best of many short batches: what else runs only ever adds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/meet.h"
#include "transport/proxy.h"

enum { DEPTH = 8, SLOT = 1 << 20, BATCHES = 60, PATIENT = 2000 };
static const int64_t patience_ns = 20LL * CM_NS_PER_S;

/* One process's end: a plain socket, or ports of a proxy in both directions. */
struct end {
    bool first;  /* pings and sends */
    bool blocks; /* the plain socket's calls wait */
    int fd;
    unsigned char *buf; /* SLOT bytes and a head */
    struct cm_proxy *proxy;
    struct cm_port_lines *send, *recv;
    uint64_t sent, got;
};

/* How to send and receive a message of `bytes`; false: the other end is gone. */
struct way {
    const char *name;
    bool proxy, blocks;
    enum cm_proxy_mode mode;
};
static const struct way ways[] = {
    {"raw", false, false, CM_PROXY_INLINE},
    {"blocking", false, true, CM_PROXY_INLINE},
    {"inline", true, false, CM_PROXY_INLINE},
    {"thread", true, false, CM_PROXY_THREAD},
};

/* ---- plain sockets ---- */

static bool move(struct end *e, struct iovec *at, int n, bool out)
{
    while (n > 0) {
        struct msghdr m = {.msg_iov = at, .msg_iovlen = (size_t)n};
        int flags = MSG_NOSIGNAL | (e->blocks ? 0 : MSG_DONTWAIT);
        ssize_t done = out ? sendmsg(e->fd, &m, flags) : recvmsg(e->fd, &m, flags);

        if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        for (; n > 0 && done >= (ssize_t)at->iov_len; n--)
            done -= (ssize_t)at++->iov_len;
        if (n > 0 && done > 0) {
            at->iov_base = (char *)at->iov_base + done;
            at->iov_len -= (size_t)done;
        }
    }
    return true;
}

static bool raw_send(struct end *e, size_t bytes)
{
    struct iovec at[1] = {{e->buf, bytes}};

    return move(e, at, 1, true);
}

static bool raw_recv(struct end *e, size_t bytes)
{
    struct iovec at[1] = {{e->buf, bytes}};

    return move(e, at, 1, false);
}

/* ---- ports ---- */

static struct cm_slot_head *slot(struct cm_port_lines *p, uint64_t k)
{
    return (void *)((char *)(p + 1) + (k % DEPTH) * (sizeof(struct cm_slot_head) + SLOT));
}

/* Poll as an executor does: drive or wake the proxy, then let others run. */
static bool await(struct end *e, const _Atomic uint64_t *line, uint64_t more_than)
{
    for (int polls = 0; atomic_load_explicit(line, memory_order_acquire) <= more_than; polls++) {
        if (cm_proxy_status(e->proxy) != CM_OK)
            return false;
        if (!cm_proxy_progress(e->proxy) && polls > PATIENT)
            sched_yield();
    }
    return true;
}

static bool port_send(struct end *e, size_t bytes)
{
    struct cm_slot_head *h = slot(e->send, e->sent);

    if (e->sent >= DEPTH && !await(e, &e->send->head, e->sent - DEPTH))
        return false;
    h->bytes = bytes;
    h->sig = 0;
    atomic_store_explicit(&e->send->tail, ++e->sent, memory_order_release);
    cm_proxy_progress(e->proxy);
    return true;
}

static bool port_recv(struct end *e, size_t bytes)
{
    if (!await(e, &e->recv->tail, e->got) || slot(e->recv, e->got)->bytes != bytes)
        return false;
    atomic_store_explicit(&e->recv->head, ++e->got, memory_order_release);
    return true;
}

static bool put(struct end *e, size_t bytes)
{
    return e->proxy != NULL ? port_send(e, bytes) : raw_send(e, bytes);
}

static bool get(struct end *e, size_t bytes)
{
    return e->proxy != NULL ? port_recv(e, bytes) : raw_recv(e, bytes);
}

/* ---- what is measured ---- */

static bool ping_pong(struct end *e, size_t bytes, int n)
{
    bool good = true;

    for (int i = 0; i < n && good; i++)
        good = e->first ? put(e, bytes) && get(e, bytes) : get(e, bytes) && put(e, bytes);
    return good;
}

static bool stream(struct end *e, size_t bytes, int n)
{
    bool good = true;

    for (int i = 0; i < n && good; i++)
        good = e->first ? put(e, bytes) : get(e, bytes);
    return good && (e->first ? get(e, 1) : put(e, 1));
}

/* Best time of one of n, in seconds; n is chosen by a first batch. The second process follows. */
static double best(struct end *e, bool (*run)(struct end *, size_t, int), size_t bytes, int most)
{
    double least = 0;
    int n = 8;

    for (int b = 0; b <= BATCHES; b++) {
        int64_t t = cm_now_ns();

        if (!run(e, bytes, n))
            return 0;
        t = cm_now_ns() - t;
        if (b > 0 && (least <= 0 || (double)t / n < least))
            least = (double)t / n;
        if (b == 0)
            n = most;
    }
    return least / CM_NS_PER_S;
}

static const struct {
    size_t bytes;
    int pings, streams;
} sizes[] = {{8, 60, 1000}, {1 << 10, 60, 1000}, {64 << 10, 20, 100}, {1 << 20, 4, 20}};

static bool measure(struct end *e, const struct way *w)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double half = best(e, ping_pong, sizes[i].bytes, sizes[i].pings) / 2;
        double one = best(e, stream, sizes[i].bytes, sizes[i].streams);

        if (half <= 0 || one <= 0)
            return false;
        if (e->first)
            printf("%s,%zu,%.2f,%.4f\n", w->name, sizes[i].bytes, half * 1e6,
                   (double)sizes[i].bytes / one / 1e9);
    }
    return true;
}

/* ---- two processes ---- */

/* Each process has half of the processors, so that the two never share one. */
static void take_half(bool first)
{
    cpu_set_t all, mine;
    int n, seen = 0;

    if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) < 2)
        return;
    n = CPU_COUNT(&all);
    CPU_ZERO(&mine);
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &all) && (seen++ < n / 2) == first)
            CPU_SET(c, &mine);
    sched_setaffinity(0, sizeof(mine), &mine);
}

static bool open_proxy(struct end *e, const struct way *w)
{
    size_t bytes = sizeof(struct cm_port_lines) + DEPTH * (sizeof(struct cm_slot_head) + SLOT);
    struct cm_proxy_peer peer = {
        .proc = e->first, .host = "localhost", .fds = &e->fd, .nsend = 1, .nrecv = 1};
    struct cm_proxy_args a = {.proc = !e->first,
                              .sockets = 1,
                              .depth = DEPTH,
                              .slot_bytes = SLOT,
                              .peers = &peer,
                              .npeers = 1,
                              .mode = w->mode,
                              .spins = sysconf(_SC_NPROCESSORS_ONLN) >= 4 ? 200 : 2,
                              .crowded = sysconf(_SC_NPROCESSORS_ONLN) < 4,
                              .silence_ns = patience_ns};

    e->send = aligned_alloc(CM_PAGE, (bytes + CM_PAGE - 1) / CM_PAGE * CM_PAGE);
    e->recv = aligned_alloc(CM_PAGE, (bytes + CM_PAGE - 1) / CM_PAGE * CM_PAGE);
    if (e->send == NULL || e->recv == NULL)
        return false;
    memset(e->send, 0, bytes);
    memset(e->recv, 0, bytes);
    peer.send = (void *const[]){e->send};
    peer.recv = (void *const[]){e->recv};
    return cm_proxy_open(&a, &e->proxy) == CM_OK;
}

static bool run(const struct way *w, struct cm_meet_args a, struct cm_net_addr at, bool first)
{
    struct cm_meet_peer peer = {.proc = first, .host = "localhost", .addr = at, .fds = (int[]){-1}};
    struct end e = {.first = first, .blocks = w->blocks};
    bool good;

    take_half(first);
    a.proc = !first;
    a.peers = &peer;
    a.until_ns = cm_now_ns() + patience_ns;
    if (cm_meet(&a, &(struct cm_meet_trouble){.missing = 0}) != CM_OK)
        return false;
    e.fd = peer.fds[0];
    e.buf = calloc(1, SLOT);
    cm_net_tune(e.fd, patience_ns);
    if (w->blocks)
        fcntl(e.fd, F_SETFL, 0);
    good = e.buf != NULL && (!w->proxy || open_proxy(&e, w)) && measure(&e, w);
    if (w->proxy)
        good &= cm_proxy_close(e.proxy, cm_now_ns() + patience_ns) == CM_OK;
    else
        close(e.fd);
    free(e.send);
    free(e.recv);
    free(e.buf);
    return good;
}

static bool compare(const struct way *w, const struct cm_net_if *on)
{
    struct cm_meet_args a = {.on = on, .sockets = 1, .npeers = 1};
    struct cm_net_addr at;
    cpu_set_t before;
    int status;
    pid_t pid;
    bool good;

    if (getrandom(a.token, sizeof(a.token), 0) != sizeof(a.token) ||
        cm_net_listen(on, (struct cm_net_ports){0, 0}, &a.listener, &at) != CM_OK)
        return false;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(a.listener);
        a.listener = -1;
        _exit(!run(w, a, at, true) || fflush(stdout) != 0);
    }
    sched_getaffinity(0, sizeof(before), &before);
    good = pid > 0 && run(w, a, at, false);
    sched_setaffinity(0, sizeof(before), &before);
    close(a.listener);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && good;
}

/* All ways, or those that are named: `only` has their first letters. */
int main(int argc, char **argv)
{
    const char *only = argc > 2 ? argv[2] : "rbit";
    struct cm_net_if *ifs;
    bool good = true;
    int n;

    if (cm_net_list(&ifs, &n) != CM_OK)
        return CM_EXIT_SYSTEM;
    if (cm_net_select(ifs, &n, argc > 1 ? argv[1] : "=lo") != CM_OK)
        return CM_EXIT_USAGE;
    printf("way,bytes,us,GB/s\n");
    for (size_t i = 0; i < CM_LEN(ways) && good; i++)
        if (strchr(only, ways[i].name[0]) != NULL)
            good = compare(&ways[i], &ifs[0]);
    free(ifs);
    return good ? CM_EXIT_OK : CM_EXIT_SYSTEM;
}
