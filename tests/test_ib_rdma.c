/*
 * The ib wire over the adapters of this machine, between two processes.
 *
 *   test_ib_rdma             what goes in comes out; skipped where no adapter is
 *   test_ib_rdma measure     latency and bandwidth instead, CSV on stdout
 *
 * COLLMARK_TEST_HCA="rxe0,rxe1": the device of each process; without it both use
 * the best. COLLMARK_TEST_NETNS="node0,node1": network namespaces to run them in.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>

#include "forked.h"
#include "ib_side.h"
#include "test.h"

static const int64_t long_ns = 60LL * CM_NS_PER_S;

/* ---- two processes ---- */

/* The part of "a,b" for this process; NULL: the variable is not set. */
static const char *part_of(const char *variable, int proc, char *buf, size_t size)
{
    const char *all = getenv(variable), *comma;

    if (all == NULL)
        return NULL;
    comma = strchr(all, ',');
    if (comma == NULL || proc == 0)
        snprintf(buf, size, "%.*s", (int)strcspn(all, ","), all);
    else
        snprintf(buf, size, "%s", comma + 1);
    return buf;
}

static bool enter_namespace(int proc)
{
    char name[64], path[128];
    int fd;
    bool entered;

    if (part_of("COLLMARK_TEST_NETNS", proc, name, sizeof(name)) == NULL)
        return true;
    snprintf(path, sizeof(path), "/run/netns/%s", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
    if (fd >= 0)
        close(fd);
    return entered;
}

/* Exchange offers through the processes' shared page, and connect. */
static bool join(const struct cm_boot *b, struct ib_side *s, int ports)
{
    unsigned char mine[FORKED_BYTES], all[2 * FORKED_BYTES];
    size_t bytes = cm_ib_offer_bytes(ports);

    cm_ib_offer(s->ib, 0, mine);
    return b->gather(b, mine, bytes, all) == CM_OK &&
           cm_ib_connect(s->ib, 0, all + (size_t)!b->proc * bytes, bytes) == CM_OK &&
           forked_meet(b) && cm_ib_start(s->ib) == CM_OK;
}

static bool open_side(const struct cm_boot *b, struct ib_side *s, struct ib_how *how)
{
    static const char *const none[2];
    char hca[64];

    memcpy(how->hca, none, sizeof(none));
    how->hca[b->proc] = part_of("COLLMARK_TEST_HCA", b->proc, hca, sizeof(hca));
    how->sysfs = NULL;
    /* Software adapters take 7 for ever. */
    how->choice.retries = 6;
    return enter_namespace(b->proc) && ib_side_open(s, how, b->proc) == CM_OK &&
           join(b, s, how->p.ports);
}

/* ---- what goes in comes out ---- */

struct stream {
    struct ib_how how;
    uint64_t slots;
};

static int run_stream(struct cm_boot *b, void *arg)
{
    struct stream *st = arg;
    struct ib_side s;
    struct ib_traffic t = {&s, st->slots, cm_now_ns() + long_ns, NULL};
    enum cm_status end;

    if (!open_side(b, &s, &st->how))
        return 2;
    ib_run_traffic(&t);
    if (t.wrong != NULL || s.p.lost != 0)
        fprintf(stderr, "process %d: %s %s\n", b->proc, t.wrong, s.why);
    end = ib_side_close(&s, cm_now_ns() + long_ns);
    return t.wrong == NULL && end == CM_OK && s.p.lost == 0 ? 0 : 1;
}

static void test_streams_are_byte_exact(void)
{
    static const struct {
        int ports, depth, qps, adaptive;
        size_t slot_bytes;
        uint64_t slots;
        enum cm_proxy_mode mode[2];
    } rows[] = {
        {1, 1, 1, -1, 64, 200, {CM_PROXY_THREAD, CM_PROXY_THREAD}},
        {1, 4, 1, -1, 65536, 60, {CM_PROXY_THREAD, CM_PROXY_INLINE}},
        {1, 8, 1, -1, 4096, 300, {CM_PROXY_INLINE, CM_PROXY_INLINE}},
        {4, 2, 2, -1, 16384, 60, {CM_PROXY_INLINE, CM_PROXY_THREAD}},
        {4, 4, 4, 1, 32768, 40, {CM_PROXY_THREAD, CM_PROXY_THREAD}},
        {3, 1, 2, 1, 100032, 20, {CM_PROXY_INLINE, CM_PROXY_INLINE}},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct stream st = {.how = ib_usual(), .slots = rows[i].slots};
        int status[2] = {-1, -1};

        st.how.p.ports = rows[i].ports;
        st.how.p.depth = rows[i].depth;
        st.how.p.slot_bytes = rows[i].slot_bytes;
        st.how.p.mode[0] = rows[i].mode[0];
        st.how.p.mode[1] = rows[i].mode[1];
        st.how.choice.qps = rows[i].qps;
        st.how.choice.adaptive = rows[i].adaptive;
        CHECK(forked_run(2, run_stream, &st, status) && status[0] == 0 && status[1] == 0,
              "%d ports of %d x %zu, %d qps: status %d %d", rows[i].ports, rows[i].depth,
              rows[i].slot_bytes, rows[i].qps, status[0], status[1]);
    }
}

/* ---- a process that dies ---- */

/* Wait for the end of the other process; what it had of the adapter is gone then. */
static bool await_end(const struct cm_boot *b)
{
    pid_t mine = getpid(), all[2];
    struct pollfd end = {.events = POLLIN};
    bool ended;

    if (b->gather(b, &mine, sizeof(mine), all) != CM_OK)
        return false;
    if (b->proc == 1)
        _exit(0);
    end.fd = (int)syscall(SYS_pidfd_open, all[1], 0);
    ended = end.fd >= 0 && poll(&end, 1, (int)(long_ns / CM_NS_PER_MS)) == 1;
    close(end.fd);
    return ended;
}

static int run_death(struct cm_boot *b, void *arg)
{
    struct stream *st = arg;
    int64_t until;
    struct ib_side s;

    st->how.choice.timeout = 14;
    if (!open_side(b, &s, &st->how) || !await_end(b))
        return 2;
    proxied_put(&s.p, 0);
    for (until = cm_now_ns() + long_ns; s.p.lost == 0 && cm_now_ns() < until; sched_yield())
        cm_ib_progress(s.ib);
    ib_side_close(&s, 0);
    if (strstr(s.why, "nothing acknowledges") == NULL)
        fprintf(stderr, "lost: %d '%s'\n", s.p.lost, s.why);
    return s.p.lost == 1 + CM_ETIMEOUT && strstr(s.why, "nothing acknowledges") != NULL ? 0 : 1;
}

static void test_a_dead_process_is_told(void)
{
    struct stream st = {.how = ib_usual()};
    int status[2] = {-1, -1};

    CHECK(forked_run(2, run_death, &st, status) && status[0] == 0, "status %d %d", status[0],
          status[1]);
}

/* ---- measuring ---- */

/* As executors wait: poll for a while, then sleep until there is news. */
static void idle(struct ib_side *s, int *polls)
{
    enum { SPINS = 200 };

    if (cm_ib_progress(s->ib))
        *polls = 0;
    else if (++*polls > SPINS)
        cm_ib_doze(s->ib, CM_NS_PER_MS);
}

static void put_empty(struct ib_side *s, size_t bytes)
{
    struct cm_port_lines *p = s->p.send[0];
    struct cm_slot_head *h = proxied_slot(s->p.how, p, s->p.sent[0]);
    int polls = 0;

    while (s->p.sent[0] - atomic_load_explicit(&p->head, memory_order_acquire) >=
           (uint64_t)s->p.how->depth)
        idle(s, &polls);
    h->bytes = bytes;
    atomic_store_explicit(&p->tail, ++s->p.sent[0], memory_order_release);
    cm_ib_progress(s->ib);
}

static void take_empty(struct ib_side *s)
{
    struct cm_port_lines *p = s->p.recv[0];
    int polls = 0;

    while (atomic_load_explicit(&p->tail, memory_order_acquire) == s->p.got[0])
        idle(s, &polls);
    atomic_store_explicit(&p->head, ++s->p.got[0], memory_order_release);
    cm_ib_progress(s->ib);
}

/* Half of a round trip, in us. */
static double latency(struct ib_side *s, size_t bytes, int rounds)
{
    int64_t t = cm_now_ns();

    for (int i = 0; i < rounds; i++) {
        if (s->p.proc == 0)
            put_empty(s, bytes);
        take_empty(s);
        if (s->p.proc == 1)
            put_empty(s, bytes);
    }
    return (double)(cm_now_ns() - t) / CM_NS_PER_US / rounds / 2;
}

/* One way, to the last slot's arrival, in MB/s. */
static double bandwidth(struct ib_side *s, size_t bytes, int slots)
{
    int64_t t = cm_now_ns();

    for (int i = 0; i < slots; i++)
        if (s->p.proc == 0)
            put_empty(s, bytes);
        else
            take_empty(s);
    if (s->p.proc == 0)
        take_empty(s);
    else
        put_empty(s, 0);
    return (double)bytes * slots * 1e3 / (double)(cm_now_ns() - t);
}

static int run_measure(struct cm_boot *b, void *arg)
{
    static const size_t sizes[] = {8, 4096, 65536, 1 << 20};
    struct stream *st = arg;
    char text[CM_IB_TEXT];
    struct ib_side s;

    if (!open_side(b, &s, &st->how))
        return 2;
    if (b->proc == 0)
        fprintf(stderr, "%s\n", cm_ib_describe(s.ib, text));
    for (size_t i = 0; i < CM_LEN(sizes); i++) {
        int rounds = sizes[i] > 65536 ? 20 : 100;
        double us, mbs;

        latency(&s, sizes[i], 5);
        us = latency(&s, sizes[i], rounds);
        mbs = bandwidth(&s, sizes[i], rounds * 2);
        if (b->proc == 0)
            printf("%zu,%.1f,%.1f\n", sizes[i], us, mbs);
    }
    return ib_side_close(&s, cm_now_ns() + long_ns) == CM_OK ? 0 : 1;
}

static int measure(void)
{
    struct stream st = {.how = ib_usual()};
    int status[2];

    st.how.p.depth = 8;
    st.how.p.slot_bytes = 1 << 20;
    st.how.p.mode[0] = st.how.p.mode[1] = CM_PROXY_INLINE;
    printf("bytes,latency_us,MB_per_s\n");
    return forked_run(2, run_measure, &st, status) && status[0] == 0 && status[1] == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct cm_ib_choice c = cm_ib_usual();
    char why[CM_TEXT];

    if (!cm_ib_available(&c, why, sizeof(why))) {
        printf("skip: %s\n0 passed, 0 failed, 1 skipped\n", why);
        return 77;
    }
    if (argc > 1 && strcmp(argv[1], "measure") == 0)
        return measure();
    RUN(test_streams_are_byte_exact);
    RUN(test_a_dead_process_is_told);
    return test_end();
}
