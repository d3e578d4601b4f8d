/*
 * The ib wire over libibverbs' double: what goes into a port comes out of it, in
 * every mode and geometry, by the rules of the verbs, to the orderly end.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "ib_double.h"
#include "transport/ib_int.h"

/* ---- streams ---- */

struct geometry {
    int ports, depth, qps;
    size_t slot_bytes;
    uint64_t slots;
};

static const struct geometry geometries[] = {
    {1, 1, 1, 64, 200},   {1, 2, 1, 4096, 200}, {1, 4, 1, 32768, 60}, {4, 4, 1, 512, 100},
    {4, 2, 4, 16384, 40}, {3, 1, 2, 65536, 20}, {4, 8, 3, 8192, 60},  {1, 64, 1, 256, 400},
};

static void name_of(char *buf, size_t size, const struct ib_how *how)
{
    snprintf(buf, size, "%d ports of %d x %zu, %d qps, modes %d %d, adaptive %d", how->p.ports,
             how->p.depth, how->p.slot_bytes, how->choice.qps, how->p.mode[0], how->p.mode[1],
             how->choice.adaptive);
}

/* The double must be there. */
static void stream(struct ib_how *how, uint64_t slots)
{
    struct ib_side s[2];
    struct ib_traffic t[2] = {{&s[0], slots, ib_soon(), NULL}, {&s[1], slots, ib_soon(), NULL}};
    uint64_t all = slots * (uint64_t)how->p.ports;
    struct cm_ib_stats stats;
    pthread_t other;
    char name[128];

    name_of(name, sizeof(name), how);
    how->verbs = verbs_double();
    if (!ib_pair(s, how)) {
        CHECK(false, "%s: no pair", name);
        return;
    }
    pthread_create(&other, NULL, ib_run_traffic, &t[1]);
    ib_run_traffic(&t[0]);
    pthread_join(other, NULL);
    for (int i = 0; i < 2; i++)
        CHECK(t[i].wrong == NULL, "%s: %s", name, t[i].wrong);
    stats = cm_ib_stats(s[0].ib);
    CHECK(stats.slots_got == all && stats.slots_sent == all, "%s: %d slots came, %d went", name,
          (int)stats.slots_got, (int)stats.slots_sent);
    CHECK(verbs_double_rnr() == 0, "%s: %d times no receive", name, verbs_double_rnr());
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
}

static void stream_geometry(const struct geometry *g, struct ib_how *how,
                            const struct double_setup *setup)
{
    bool slow = getenv("COLLMARK_SLOW") != NULL;
    char name[128];

    how->p.ports = g->ports;
    how->p.depth = g->depth;
    how->p.slot_bytes = g->slot_bytes;
    how->choice.qps = g->qps;
    name_of(name, sizeof(name), how);
    verbs_double_begin(setup);
    stream(how, g->slots * (slow ? 20 : 1));
    ib_end(name, 0);
}

static void test_streams_are_byte_exact(void)
{
    static const enum cm_proxy_mode modes[][2] = {{CM_PROXY_THREAD, CM_PROXY_THREAD},
                                                  {CM_PROXY_INLINE, CM_PROXY_INLINE},
                                                  {CM_PROXY_INLINE, CM_PROXY_THREAD}};

    for (size_t i = 0; i < CM_LEN(geometries); i++)
        for (size_t m = 0; m < CM_LEN(modes); m++) {
            struct ib_how how = ib_usual();
            struct double_setup setup = double_usual();

            how.p.mode[0] = modes[m][0];
            how.p.mode[1] = modes[m][1];
            setup.seed = i * 10 + m + 1;
            setup.laziness = 1 + (int)(i + m) % 3;
            stream_geometry(&geometries[i], &how, &setup);
        }
}

/* InfiniBand: no GRH, and packets may overtake each other unless they are told not to. */
static void test_streams_over_infiniband(void)
{
    for (size_t i = 2; i < 6; i++) {
        struct ib_how how = ib_usual();
        struct double_setup setup = double_usual();

        setup.devices = double_native;
        setup.adaptive = true;
        stream_geometry(&geometries[i], &how, &setup);
        how.choice.adaptive = 0;
        setup.adaptive = false;
        stream_geometry(&geometries[i], &how, &setup);
    }
}

/* Adapters with short queues, and without inline data. */
static void test_streams_over_small_adapters(void)
{
    static const uint32_t max_inline[] = {0, 64, 511};

    for (size_t i = 0; i < CM_LEN(max_inline); i++) {
        struct ib_how how = ib_usual();
        struct double_setup setup = double_usual();

        setup.max_inline = max_inline[i];
        setup.max_qp_wr = 40;
        setup.max_cqe = 80 * 3;
        stream_geometry(&geometries[i], &how, &setup);
        stream_geometry(&geometries[6], &how, &setup);
    }
}

/* More is filled than the send queue holds, and nothing leaves for long. */
static void test_a_full_send_queue(void)
{
    struct ib_how how = ib_usual();
    struct double_setup setup = double_usual();

    setup.laziness = 20;
    stream_geometry(&(struct geometry){1, 2 * CM_IB_SEND_QUEUE, 1, 256, 300}, &how, &setup);
}

/* ---- rules of a FIFO ---- */

static void settle(struct ib_side s[2])
{
    for (int still = 0; still < 300; still++) {
        bool here = cm_ib_progress(s[0].ib), there = cm_ib_progress(s[1].ib);

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
        struct ib_how how = ib_usual();
        struct double_setup setup = double_usual();
        struct ib_side s[2];
        int put = 0, got = 0;

        how.p.depth = depth;
        how.p.mode[0] = how.p.mode[1] = CM_PROXY_INLINE;
        how.verbs = verbs_double();
        verbs_double_begin(&setup);
        CHECK(ib_pair(s, &how), "depth %d: no pair", depth);
        for (int64_t until = ib_soon(); put < 2 * depth && cm_now_ns() < until; settle(s))
            while (proxied_put(&s[0].p, 0))
                put++;
        settle(s);
        CHECK(!proxied_put(&s[0].p, 0) && put == 2 * depth, "depth %d: %d slots", depth, put);
        CHECK(atomic_load(&s[1].p.recv[0]->tail) == (uint64_t)depth, "depth %d: %d arrived", depth,
              (int)atomic_load(&s[1].p.recv[0]->tail));
        for (int64_t until = ib_soon(); got < put && cm_now_ns() < until; settle(s))
            got += proxied_get(&s[1].p, 0);
        CHECK(got == put, "depth %d: %d slots came of %d", depth, got, put);
        ib_side_close(&s[0], 0);
        ib_side_close(&s[1], 0);
        ib_end("back pressure", 0);
    }
}

/* A slot whose memory the adapter still reads must not go back to the executor. */
static void test_a_slot_is_kept_until_it_has_left(void)
{
    struct ib_how how = ib_usual();
    struct double_setup setup = double_usual();
    struct ib_side s[2];
    int put = 0;

    how.p.mode[0] = how.p.mode[1] = CM_PROXY_INLINE;
    how.p.slot_bytes = 4096;
    how.verbs = verbs_double();
    verbs_double_begin(&setup);
    verbs_double_cut(true);
    CHECK(ib_pair(s, &how), "no pair");
    /* The third slot of this sequence is too long for inline data: it and those after it stay. */
    while (put < 16 && proxied_put(&s[0].p, 0)) {
        put++;
        cm_ib_progress(s[0].ib);
    }
    for (uint64_t k = 0; k < atomic_load(&s[0].p.send[0]->head); k++)
        CHECK(proxied_size(&how.p, 0, k) <= 256, "slot %d of %zu bytes was given back", (int)k,
              proxied_size(&how.p, 0, k));
    CHECK(put < 16, "all slots were given back");
    ib_side_close(&s[0], 0);
    ib_side_close(&s[1], 0);
    ib_end("kept slots", 0);
}

/* ---- the end ---- */

struct closing {
    struct ib_side *side;
    enum cm_status st;
};

static void *close_side(void *arg)
{
    struct closing *c = arg;

    c->st = ib_side_close(c->side, ib_soon());
    return NULL;
}

/* What was filled before the end arrives, though the ends come at different times. */
static void test_an_orderly_end_delivers_everything(void)
{
    for (int mode = CM_PROXY_THREAD; mode <= CM_PROXY_INLINE; mode++) {
        struct ib_how how = ib_usual();
        struct double_setup setup = double_usual();
        struct ib_side s[2];
        struct closing c = {&s[0], CM_ESYS};
        int64_t until = ib_soon();
        enum cm_status st;
        pthread_t other;
        int put = 0, got = 0;

        how.p.mode[0] = how.p.mode[1] = (enum cm_proxy_mode)mode;
        how.choice.qps = 2;
        how.verbs = verbs_double();
        verbs_double_begin(&setup);
        CHECK(ib_pair(s, &how), "mode %d: no pair", mode);
        /* Twice the depth: the second half can go only when the far end has taken the first. */
        while (put < 2 * how.p.depth && cm_now_ns() < until) {
            put += proxied_put(&s[0].p, 0);
            cm_ib_progress(s[0].ib);
        }
        pthread_create(&other, NULL, close_side, &c);
        while (got < put && cm_now_ns() < until) {
            got += proxied_get(&s[1].p, 0);
            cm_ib_progress(s[1].ib);
        }
        st = ib_side_close(&s[1], until);
        pthread_join(other, NULL);
        CHECK(got == put && st == CM_OK && c.st == CM_OK, "mode %d: %d of %d, status %d %d", mode,
              got, put, st, c.st);
        CHECK(s[0].p.lost == 0 && s[1].p.lost == 0, "mode %d: a loss was reported", mode);
        ib_end("orderly end", 0);
    }
}

int main(void)
{
    RUN(test_streams_are_byte_exact);
    RUN(test_streams_over_infiniband);
    RUN(test_streams_over_small_adapters);
    RUN(test_a_full_send_queue);
    RUN(test_back_pressure);
    RUN(test_a_slot_is_kept_until_it_has_left);
    RUN(test_an_orderly_end_delivers_everything);
    return test_end();
}
