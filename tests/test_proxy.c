/*
 * The proxy: what goes into a port comes out of it, in every mode and
 * geometry, to the orderly end; and messages.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "proxied.h"
#include "test.h"
#include "transport/frame.h"

/* Silence is long: what would only go on with a sign of life is late by ten seconds. */
static const int64_t long_ns = 8LL * CM_NS_PER_S, silence_ns = 80LL * CM_NS_PER_S;

static struct proxied usual(void)
{
    return proxied_usual(silence_ns);
}

/* ---- streams ---- */

/* An executor's life: fill and take `slots` of every port, in both directions at once. */
struct traffic {
    struct proxied_side *side;
    uint64_t slots;
    const char *wrong; /* NULL: all is right */
};

static void *run_traffic(void *arg)
{
    struct traffic *t = arg;
    struct proxied_side *s = t->side;
    int64_t until = cm_now_ns() + long_ns;
    bool left = true;

    for (uint64_t round = 0; left && t->wrong == NULL; round++) {
        bool moved = false;

        left = false;
        for (int i = 0; i < s->how->ports; i++) {
            /* Now and then a port is left alone, so that it runs full. */
            bool lazy = proxied_mix(i, round, 3) % 8 == 0;
            int got = s->got[i] < t->slots && !lazy ? proxied_get(s, i) : 0;

            moved |= got != 0 || (s->sent[i] < t->slots && proxied_put(s, i));
            left |= s->got[i] < t->slots || s->sent[i] < t->slots;
            if (got < 0)
                t->wrong = "a slot is wrong";
        }
        if (!cm_proxy_progress(s->proxy) && !moved)
            sched_yield();
        if (cm_now_ns() > until)
            t->wrong = "no end";
    }
    cm_proxy_rest(s->proxy);
    return NULL;
}

static void stream(const struct proxied *how, uint64_t slots)
{
    struct proxied_side s[2];
    struct traffic t[2] = {{&s[0], slots, NULL}, {&s[1], slots, NULL}};
    pthread_t other;

    CHECK(proxied_pair(s, how), "sockets");
    pthread_create(&other, NULL, run_traffic, &t[1]);
    run_traffic(&t[0]);
    pthread_join(other, NULL);
    for (int i = 0; i < 2; i++)
        CHECK(t[i].wrong == NULL, "%d ports of %d x %zu, %d sockets, modes %d %d: %s", how->ports,
              how->depth, how->slot_bytes, how->sockets, how->mode[0], how->mode[1], t[i].wrong);
    CHECK(cm_proxy_stats(s[0].proxy).slots_got == slots * (uint64_t)how->ports, "stats");
    proxied_close(&s[0], 0);
    proxied_close(&s[1], 0);
}

static void test_streams_are_byte_exact(void)
{
    static const enum cm_proxy_mode modes[][2] = {{CM_PROXY_THREAD, CM_PROXY_THREAD},
                                                  {CM_PROXY_INLINE, CM_PROXY_INLINE},
                                                  {CM_PROXY_INLINE, CM_PROXY_THREAD}};
    static const struct {
        int ports, depth, sockets;
        size_t slot_bytes;
        uint64_t slots;
    } rows[] = {
        {1, 1, 1, 64, 300},   {1, 8, 1, 4096, 300},  {2, 2, 1, 1024, 200},     {4, 4, 1, 65536, 40},
        {4, 8, 4, 8192, 100}, {3, 1, 2, 100032, 30}, {1, 8, 1, 256 << 10, 60},
    };
    bool slow = getenv("COLLMARK_SLOW") != NULL;

    for (size_t i = 0; i < CM_LEN(rows); i++)
        for (size_t m = 0; m < CM_LEN(modes); m++) {
            struct proxied how = usual();

            how.ports = rows[i].ports;
            how.depth = rows[i].depth;
            how.sockets = rows[i].sockets;
            how.slot_bytes = rows[i].slot_bytes;
            how.mode[0] = modes[m][0];
            how.mode[1] = modes[m][1];
            stream(&how, rows[i].slots * (slow ? 20 : 1));
        }
}

/* Drive both sides until nothing moves for a while. */
static void settle(struct proxied_side s[2])
{
    for (int still = 0; still < 200; still++) {
        bool here = cm_proxy_progress(s[0].proxy), there = cm_proxy_progress(s[1].proxy);

        if (here || there)
            still = 0;
        else
            sched_yield();
    }
}

/* Nobody takes: a FIFO holds its depth twice, once on each side, and not a slot more. */
static void test_back_pressure(void)
{
    for (int depth = 1; depth <= 8; depth *= 2) {
        struct proxied how = usual();
        struct proxied_side s[2];
        int put = 0, got = 0;

        how.depth = depth;
        how.mode[0] = how.mode[1] = CM_PROXY_INLINE;
        CHECK(proxied_pair(s, &how), "sockets");
        for (int round = 0; round < 8; round++) {
            while (proxied_put(&s[0], 0))
                put++;
            settle(s);
        }
        CHECK(put == 2 * depth, "depth %d: %d slots filled", depth, put);
        CHECK(atomic_load(&s[1].recv[0]->tail) == (uint64_t)depth, "depth %d: %d arrived", depth,
              (int)atomic_load(&s[1].recv[0]->tail));
        for (int round = 0; round < 40; round++) {
            got += proxied_get(&s[1], 0);
            settle(s);
        }
        CHECK(got == put, "depth %d: %d slots came of %d", depth, got, put);
        proxied_close(&s[0], 0);
        proxied_close(&s[1], 0);
    }
}

/* A proxy that sleeps must be woken by its executor, and by the other side. */
static void test_a_sleeping_proxy_is_woken(void)
{
    enum { ROUNDS = 3000 };
    struct proxied how = usual();
    struct proxied_side s[2];
    struct cm_proxy_stats a;
    int64_t until = proxied_soon(), start;
    int i = 0;

    how.spins = 0;
    CHECK(proxied_pair(s, &how), "sockets");
    while (cm_proxy_stats(s[0].proxy).sleeps == 0 && cm_now_ns() < until)
        sched_yield();
    start = cm_now_ns();
    for (; i < ROUNDS && !test_state.broken && cm_now_ns() < start + CM_NS_PER_S; i++) {
        int64_t t = cm_now_ns();

        CHECK(proxied_put(&s[0], 0), "slot %d", i);
        cm_proxy_progress(s[0].proxy);
        while (proxied_get(&s[1], 0) == 0 && cm_now_ns() < until)
            sched_yield();
        cm_proxy_progress(s[1].proxy);
        t = cm_now_ns() - t;
        CHECK(t < CM_NS_PER_S, "slot %d took %.3f s", i, (double)t / CM_NS_PER_S);
    }
    a = cm_proxy_stats(s[0].proxy);
    CHECK(a.wakes > 0 && a.slots_sent == (uint64_t)i, "%d wakes, %d slots", (int)a.wakes,
          (int)a.slots_sent);
    proxied_close(&s[0], 0);
    proxied_close(&s[1], 0);
}

/* ---- the end ---- */

struct closing {
    struct proxied_side *side;
    enum cm_status st;
};

static void *close_side(void *arg)
{
    struct closing *c = arg;

    c->st = proxied_close(c->side, proxied_soon());
    return NULL;
}

/* What was filled before the end arrives, though the ends come at different times. */
static void test_an_orderly_end_delivers_everything(void)
{
    for (int mode = CM_PROXY_THREAD; mode <= CM_PROXY_INLINE; mode++) {
        struct proxied how = usual();
        struct proxied_side s[2];
        struct closing c = {&s[0], CM_ESYS};
        int64_t until = proxied_soon();
        enum cm_status st;
        pthread_t other;
        int put = 0, got = 0;

        how.mode[0] = how.mode[1] = (enum cm_proxy_mode)mode;
        CHECK(proxied_pair(s, &how), "sockets");
        while (put < how.depth && proxied_put(&s[0], 0))
            put++;
        pthread_create(&other, NULL, close_side, &c);
        while (got < put && cm_now_ns() < until) {
            got += proxied_get(&s[1], 0);
            cm_proxy_progress(s[1].proxy);
        }
        st = proxied_close(&s[1], until);
        pthread_join(other, NULL);
        CHECK(got == put && st == CM_OK && c.st == CM_OK, "mode %d: %d of %d, status %d %d", mode,
              got, put, c.st, st);
        CHECK(s[0].lost == 0 && s[1].lost == 0, "mode %d: a loss was reported", mode);
    }
}

/* ---- messages ---- */

struct inbox {
    _Atomic int count;
    _Atomic int wrong;
};

enum { MESSAGES = 100 };

static size_t message_size(int k)
{
    return k % 10 == 0 ? CM_CONTROL_BYTES : (size_t)k * 37 % 512;
}

static void take_message(void *arg, int proc, uint32_t type, const void *bytes, size_t n)
{
    struct inbox *in = arg;
    int k = atomic_fetch_add(&in->count, 1);
    bool right = proc == 1 && type == (uint32_t)k && n == message_size(k);

    for (size_t i = 0; right && i < n; i++)
        right = ((const unsigned char *)bytes)[i] == (unsigned char)(k + (int)i);
    atomic_fetch_add(&in->wrong, !right);
}

static void test_messages_arrive_in_order(void)
{
    struct proxied how = usual();
    struct inbox in = {0, 0};
    struct cm_proxy_events ev = {.arg = &in, .message = take_message};
    unsigned char bytes[CM_CONTROL_BYTES + 1];
    struct proxied_side s[2];
    struct closing c = {&s[1], CM_ESYS};
    int fd[2], sent = 0;
    enum cm_status st;
    pthread_t other;

    CHECK(sockets_pair(fd) && proxied_open(&s[0], &how, 0, &fd[0], &ev) == CM_OK &&
              proxied_open(&s[1], &how, 1, &fd[1], NULL) == CM_OK,
          "open");
    CHECK(cm_proxy_send(s[1].proxy, 7, 0, bytes, 1) == CM_EINVAL, "to nobody");
    CHECK(cm_proxy_send(s[1].proxy, 0, 0, bytes, sizeof(bytes)) == CM_EINVAL, "too long");
    for (; sent < MESSAGES; sent++) {
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (unsigned char)(sent + (int)i);
        if (cm_proxy_send(s[1].proxy, 0, (uint32_t)sent, bytes, message_size(sent)) != CM_OK)
            break;
    }
    /* All that was queued goes before the farewell. */
    pthread_create(&other, NULL, close_side, &c);
    st = proxied_close(&s[0], proxied_soon());
    pthread_join(other, NULL);
    CHECK(st == CM_OK && c.st == CM_OK, "status %d %d", st, c.st);
    CHECK(sent == MESSAGES && in.count == MESSAGES && in.wrong == 0, "%d sent, %d came, %d wrong",
          sent, in.count, in.wrong);
}

/* Nobody reads: the queue has an end. */
static void test_the_queue_is_bounded(void)
{
    struct proxied how = usual();
    static const unsigned char bytes[CM_CONTROL_BYTES];
    struct proxied_side s;
    enum cm_status st = CM_OK;
    size_t sent = 0;
    int fd[2];

    CHECK(sockets_pair(fd) && proxied_open(&s, &how, 0, &fd[0], NULL) == CM_OK, "open");
    for (; st == CM_OK && sent < 64U << 20; sent += sizeof(bytes))
        st = cm_proxy_send(s.proxy, 1, 0, bytes, sizeof(bytes));
    CHECK(st == CM_ENOMEM, "status %d after %zu bytes", st, sent);
    proxied_close(&s, 0);
    close(fd[1]);
}

int main(void)
{
    RUN(test_streams_are_byte_exact);
    RUN(test_back_pressure);
    RUN(test_a_sleeping_proxy_is_woken);
    RUN(test_an_orderly_end_delivers_everything);
    RUN(test_messages_arrive_in_order);
    RUN(test_the_queue_is_bounded);
    return test_end();
}
