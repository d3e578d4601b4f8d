/*
 * Waiting: what ends a wait, and what is said then. Other ranks are records
 * in memory that the test writes, so that every situation can be made at will.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/dtype.h"
#include "base/wait.h"
#include "capture.h"
#include "test.h"

enum { MAX_N = 40, SHORT_NS = 20 * CM_NS_PER_MS, LONG_NS = 1000000000 };
static const int64_t tomorrow_ns = 86400LL * CM_NS_PER_S;

struct world {
    struct cm_abort abort;
    struct cm_layout layout;
    void *base;
    struct cm_waiter w; /* of rank 0 */
};

static struct cm_diag *diag(const struct world *t, int rank)
{
    return cm_waiter_diag(&t->w, rank);
}

/* n ranks in the fifth operation of a timed loop; none of them waits. */
static void make_world(struct world *t, int n, int64_t timeout_ns)
{
    memset(t, 0, sizeof(*t));
    t->layout = (struct cm_layout){.nranks = n, .channels = 1, .depth = 2, .slot_bytes = 64};
    if (cm_layout_fill(&t->layout) != CM_OK)
        abort();
    t->base = aligned_alloc(4096, t->layout.ports_at);
    if (t->base == NULL)
        abort();
    memset(t->base, 0, t->layout.ports_at);
    t->w = (struct cm_waiter){.nranks = n,
                              .spins = 10,
                              .timeout_ns = timeout_ns,
                              .abort = &t->abort,
                              .diag_of = cm_waiter_diag,
                              .base = t->base,
                              .layout = &t->layout};
    t->w.diag = diag(t, 0);
    for (int r = 0; r < n; r++) {
        struct cm_diag *d = diag(t, r);

        snprintf(d->host, sizeof(d->host), "h%d", r);
        d->waits_for = -1;
        d->pid = 100 + (uint32_t)r;
        d->phase = CM_AT_TIMED;
        d->iter = 7;
        d->bytes = 1024;
        d->coll = CM_ALL_REDUCE;
        d->op = 5;
        d->sig = 99;
    }
}

static void free_world(struct world *t)
{
    free(t->base);
}

/* Rank r waits for `peer`, as seen from now until the end of the test. */
static void pretend_waiting(struct world *t, int r, int peer)
{
    diag(t, r)->waits_for = peer;
    diag(t, r)->beat_ns = cm_now_ns() + tomorrow_ns;
}

/* Wait for something that never comes. */
static enum cm_status wait_in_vain(const struct world *t, int peer)
{
    struct cm_spin s = cm_spin_start();
    enum cm_status st;

    while ((st = cm_spin(&s, &t->w, peer)) == CM_OK)
        ;
    return st;
}

static void test_deadline_names_the_missing_rank(void)
{
    static const int peers[] = {2, -2};

    for (size_t i = 0; i < CM_LEN(peers); i++) {
        struct capture c;
        struct world t;
        enum cm_status st;
        int64_t start = cm_now_ns(), took;

        make_world(&t, 4, SHORT_NS);
        pretend_waiting(&t, 1, 2);
        pretend_waiting(&t, 3, 1);
        capture_begin(&c, STDERR_FILENO);
        st = wait_in_vain(&t, peers[i]);
        capture_end(&c);
        took = cm_now_ns() - start;
        CHECK(st == CM_ETIMEOUT, "peer %d: status %d", peers[i], st);
        CHECK(took >= SHORT_NS, "peer %d: %lld ns", peers[i], (long long)took);
        CHECK(cm_abort_status(&t.abort) == CM_ETIMEOUT, "abort word %d", cm_abort_status(&t.abort));
        CHECK(strstr(c.text, "rank 0 host h0: time-out") == c.text, "got: %s", c.text);
        CHECK(strstr(c.text, "all_reduce of 1024 bytes, phase timed, iteration 7") != NULL,
              "got: %s", c.text);
        CHECK(strstr(c.text, "3 of 4 ranks wait: 0 for ") != NULL, "got: %s", c.text);
        CHECK(strstr(c.text, "1 for rank 2, 3 for rank 1") != NULL, "got: %s", c.text);
        CHECK(strstr(c.text, "did not arrive: rank 2 host h2 pid 102") != NULL, "got: %s", c.text);
        CHECK(strstr(c.text, "arrive: rank 1") == NULL, "got: %s", c.text);
        CHECK(t.w.diag->waits_for == -1, "still waits for %d", t.w.diag->waits_for);
        free_world(&t);
    }
}

static void test_if_all_wait_the_slowest_are_named(void)
{
    struct capture c;
    struct world t;
    enum cm_status st;

    make_world(&t, 3, SHORT_NS);
    pretend_waiting(&t, 1, 0);
    pretend_waiting(&t, 2, 0);
    diag(&t, 2)->op = 4;
    capture_begin(&c, STDERR_FILENO);
    st = wait_in_vain(&t, 2);
    capture_end(&c);
    CHECK(st == CM_ETIMEOUT, "status %d", st);
    CHECK(strstr(c.text, "behind: rank 2") != NULL, "got: %s", c.text);
    CHECK(strstr(c.text, "behind: rank 1") == NULL, "got: %s", c.text);
    free_world(&t);
}

static void test_long_lists_are_cut(void)
{
    struct capture c;
    struct world t;
    enum cm_status st;

    make_world(&t, MAX_N, SHORT_NS);
    capture_begin(&c, STDERR_FILENO);
    st = wait_in_vain(&t, 1);
    capture_end(&c);
    CHECK(st == CM_ETIMEOUT, "status %d", st);
    CHECK(strstr(c.text, "rank 39") == NULL, "got: %s", c.text);
    CHECK(strstr(c.text, " more ranks\n") != NULL, "got: %s", c.text);
    free_world(&t);
}

static void test_abort_ends_the_wait_silently(void)
{
    struct capture c;
    struct world t;
    enum cm_status st;

    make_world(&t, 2, LONG_NS);
    CHECK(cm_abort_status(&t.abort) == CM_OK, "abort word %d", cm_abort_status(&t.abort));
    CHECK(cm_abort_raise(&t.abort, CM_ENOMEM, 1), "the first raise did not win");
    CHECK(!cm_abort_raise(&t.abort, CM_ESYS, 0), "the second raise won");
    capture_begin(&c, STDERR_FILENO);
    st = wait_in_vain(&t, 1);
    capture_end(&c);
    CHECK(st == CM_EABORT, "status %d", st);
    CHECK(cm_abort_status(&t.abort) == CM_ENOMEM, "abort word %d", cm_abort_status(&t.abort));
    CHECK(c.text[0] == '\0', "got: %s", c.text);
    free_world(&t);
}

static void set_operation(struct cm_diag *d, enum cm_coll coll, uint64_t count, uint64_t sig)
{
    const uint32_t parts[] = {coll, CM_FLOAT, CM_MAX, 3, (uint32_t)count, (uint32_t)(count >> 32)};

    for (size_t i = 0; i < CM_LEN(parts); i++)
        d->sig_parts[i] = parts[i];
    d->sig = sig;
}

static void test_mismatch_names_both_operations(void)
{
    struct capture c;
    struct world t;
    enum cm_status st;

    make_world(&t, 2, LONG_NS);
    set_operation(diag(&t, 0), CM_ALL_REDUCE, 1000, 1);
    set_operation(diag(&t, 1), CM_BROADCAST, ((uint64_t)1 << 32) + 1, 2);
    capture_begin(&c, STDERR_FILENO);
    st = wait_in_vain(&t, 1);
    capture_end(&c);
    CHECK(st == CM_EMISMATCH, "status %d", st);
    CHECK(cm_abort_status(&t.abort) == CM_EMISMATCH, "abort word %d", cm_abort_status(&t.abort));
    CHECK(strstr(c.text, "rank 0 runs all_reduce float max, 1000 elements;") != NULL, "got: %s",
          c.text);
    CHECK(strstr(c.text, "rank 1 runs broadcast float, 4294967297 elements, root 3") != NULL,
          "got: %s", c.text);
    free_world(&t);
}

/* Another operation number, another place in the program, or the same signature: no mismatch. */
static void test_no_mismatch_across_operations(void)
{
    static const struct {
        uint32_t phase;
        uint64_t op, sig;
        int peer;
    } rows[] = {
        {CM_AT_TIMED, 6, 2, 1},
        {CM_AT_SYNC, 5, 2, 1},
        {CM_AT_TIMED, 5, 99, 1},
        {CM_AT_TIMED, 5, 2, -2},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct capture c;
        struct world t;
        enum cm_status st;

        make_world(&t, 2, SHORT_NS);
        diag(&t, 1)->phase = rows[i].phase;
        diag(&t, 1)->op = rows[i].op;
        diag(&t, 1)->sig = rows[i].sig;
        capture_begin(&c, STDERR_FILENO);
        st = wait_in_vain(&t, rows[i].peer);
        capture_end(&c);
        CHECK(st == CM_ETIMEOUT, "row %zu: status %d", i, st);
        free_world(&t);
    }
}

struct late {
    struct world *t;
    _Atomic bool ready;
};

/* Become ready only when the other is seen to wait. */
static void *come_late(void *arg)
{
    struct late *l = arg;

    while (atomic_load(&l->t->w.diag->waits_for) != 1)
        sched_yield();
    atomic_store(&l->ready, true);
    return NULL;
}

static void test_a_slow_wait_ends_well(void)
{
    struct world t;
    struct late l = {.t = &t};
    struct cm_spin s = cm_spin_start();
    enum cm_status st = CM_OK;
    pthread_t thread;

    make_world(&t, 2, 10LL * LONG_NS);
    CHECK(pthread_create(&thread, NULL, come_late, &l) == 0, "no thread");
    while (!atomic_load(&l.ready) && st == CM_OK)
        st = cm_spin(&s, &t.w, 1);
    CHECK(st == CM_OK, "status %d", st);
    CHECK(cm_abort_status(&t.abort) == CM_OK, "abort word %d", cm_abort_status(&t.abort));
    pthread_join(thread, NULL);
    free_world(&t);
}

/* Ports in the order of their offsets: by receiver, sender, channel. */
static bool ports_are_apart(const struct cm_layout *l)
{
    size_t port_bytes = sizeof(struct cm_port_lines) + (size_t)l->depth * cm_slot_stride(l);
    int nports = l->nranks * l->nranks * l->channels;
    bool apart = true;

    for (int i = 1; i < nports; i++) {
        int pair = i / l->channels, before = (i - 1) / l->channels;
        size_t at = cm_port_at(l, pair % l->nranks, pair / l->nranks, i % l->channels);
        size_t prev = cm_port_at(l, before % l->nranks, before / l->nranks, (i - 1) % l->channels);

        apart = apart && at >= prev + port_bytes;
    }
    return apart;
}

static void test_layout_areas_do_not_overlap(void)
{
    static const struct cm_layout rows[] = {
        {.nranks = 1, .channels = 1, .depth = 2, .slot_bytes = 64, .arena_bytes = 4096},
        {.nranks = 5, .channels = 3, .depth = 4, .slot_bytes = 1024, .arena_bytes = 0},
        {.nranks = 64, .channels = 8, .depth = 8, .slot_bytes = 1 << 20, .arena_bytes = 1 << 30},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_layout l = rows[i];
        int last = l.nranks - 1;
        size_t port_bytes, end = l.depth;

        CHECK(cm_layout_fill(&l) == CM_OK, "row %zu refused", i);
        port_bytes = sizeof(struct cm_port_lines) + end * cm_slot_stride(&l);
        CHECK(l.ranks_at >= sizeof(struct cm_shared), "row %zu", i);
        CHECK(l.ports_at >= l.ranks_at + (size_t)l.nranks * sizeof(struct cm_rank_shared),
              "row %zu", i);
        CHECK(cm_port_at(&l, 0, 0, 0) == l.ports_at, "row %zu", i);
        CHECK(cm_port_at(&l, last, last, l.channels - 1) + port_bytes <= l.arenas_at, "row %zu", i);
        CHECK(l.arenas_at % (2 << 20) == 0, "row %zu", i);
        CHECK(cm_arena_at(&l, last) + l.arena_bytes == l.total, "row %zu", i);
        CHECK(ports_are_apart(&l), "row %zu", i);
    }
}

static void test_bad_layouts_are_refused(void)
{
    static const struct cm_layout rows[] = {
        {.nranks = 0, .channels = 1, .depth = 2, .slot_bytes = 64},
        {.nranks = CM_MAX_RANKS + 1, .channels = 1, .depth = 2, .slot_bytes = 64},
        {.nranks = 2, .channels = 0, .depth = 2, .slot_bytes = 64},
        {.nranks = 2, .channels = CM_MAX_CHANNELS + 1, .depth = 2, .slot_bytes = 64},
        {.nranks = 2, .channels = 1, .depth = 3, .slot_bytes = 64},
        {.nranks = 2, .channels = 1, .depth = 2, .slot_bytes = 65},
        {.nranks = 2, .channels = 1, .depth = 2, .slot_bytes = 0},
        {.nranks = 2, .channels = 1, .depth = 2, .slot_bytes = 64, .arena_bytes = 100},
        {.nranks = 4,
         .channels = 1,
         .depth = 2,
         .slot_bytes = 64,
         .arena_bytes = SIZE_MAX / 8192 * 4096},
        {.nranks = 4096, .channels = 8, .depth = 1024, .slot_bytes = (size_t)1 << 48},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_layout l = rows[i];
        struct capture c;
        enum cm_status st;

        capture_begin(&c, STDERR_FILENO);
        st = cm_layout_fill(&l);
        capture_end(&c);
        CHECK(st == CM_EINVAL, "row %zu: status %d", i, st);
        CHECK(c.text[0] != '\0', "row %zu: no message", i);
    }
}

int main(void)
{
    RUN(test_deadline_names_the_missing_rank);
    RUN(test_if_all_wait_the_slowest_are_named);
    RUN(test_long_lists_are_cut);
    RUN(test_abort_ends_the_wait_silently);
    RUN(test_mismatch_names_both_operations);
    RUN(test_no_mismatch_across_operations);
    RUN(test_a_slow_wait_ends_well);
    RUN(test_layout_areas_do_not_overlap);
    RUN(test_bad_layouts_are_refused);
    return test_end();
}
