/*
 * The simulator does what a GPU does: positions, barriers, shared memory,
 * atomics, several launches at a time; and the order of its threads is that of the seed.
 */
#include "cmsim_test.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- positions, barriers, shared memory, atomics -------------------------------------------- */

struct where_args {
    uint32_t *out; /* [grid][threads] */
    uint32_t nthr, nblk_x;
    uint64_t *wrong;
};

CM_KERNEL(k_where, where_args)
{
    uint32_t block = cm_bid_y() * cm_nblk_x() + cm_bid_x();

    cm_st(a.out + block * cm_nthr() + cm_tid(), block << 16 | cm_tid());
    if (cm_nthr() != a.nthr || cm_nblk_x() != a.nblk_x)
        cm_add_relaxed_gpu(a.wrong, 1);
}

static void test_every_thread_of_a_grid_runs(void)
{
    static const struct grid grids[] = {{1, 1, 1, 0}, {1, 1, 33, 0}, {3, 2, 64, 0}, {2, 5, 512, 1}};

    for (const struct grid &g : grids) {
        size_t n = (size_t)g.x * g.y * g.threads, bad = 0;
        uint32_t *out = (uint32_t *)calloc(n, sizeof(*out));
        uint64_t wrong = 0;
        const where_args a = {out, g.threads, g.x, &wrong};

        fresh(seeded(1));
        int id = START(k_where, a, g);
        CHECK(!cmsim_ended(id) && !cmsim_ended(id + 1), "id %d", id);
        const char *error = finish();
        CHECK(error == nullptr, "%s", text(error));
        CHECK(cmsim_ended(id) && !cmsim_ended(id + 1) && !cmsim_ended(-1), "id %d", id);
        for (size_t i = 0; i < n; i++)
            bad += out[i] != (i / g.threads << 16 | i % g.threads);
        CHECK(bad == 0 && wrong == 0, "%zu bad, %d wrong", bad, (int)wrong);
        free(out);
    }
}

struct sum_args {
    uint64_t *total;
    uint32_t rounds;
    uint64_t *bad;
};

template <class T> struct cells {
    T v[64];
};

/* Sum of the thread numbers, in shared memory; instances of a template have their own. */
template <class T> CM_DEV T block_sum(bool *poisoned)
{
    CM_SHARED(cells<T>, cell);
    *poisoned = cell.v[cm_tid()] != 0;
    cm_bar();
    cell.v[cm_tid()] = (T)cm_tid();
    cm_bar();
    for (uint32_t half = cm_nthr() / 2; half > 0; half /= 2) {
        if (cm_tid() < half)
            cell.v[cm_tid()] = (T)(cell.v[cm_tid()] + cell.v[cm_tid() + half]);
        cm_bar();
    }
    T all = cell.v[0];
    cm_bar();
    cell.v[cm_tid()] = 0;
    return all;
}

CM_KERNEL(k_sum, sum_args)
{
    bool p32, p64;
    uint32_t all = block_sum<uint32_t>(&p32);
    uint64_t wide = block_sum<uint64_t>(&p64);

    if (all != wide || !p32 || !p64)
        cm_add_relaxed_gpu(a.bad, 1);
    if (block_sum<uint32_t>(&p32) != all || p32)
        cm_add_relaxed_gpu(a.bad, 1);
    if (cm_tid() == 0)
        cm_add_relaxed_gpu(a.total, all);
    /* one thread at a time says yes, then none */
    for (uint32_t i = 0; i <= a.rounds; i++)
        if (cm_bar_or(cm_tid() == i && i < a.rounds) != (i < a.rounds))
            cm_add_relaxed_gpu(a.bad, 1);
}

static void test_shared_memory_and_barriers(void)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t total = 0, bad = 0;
        const sum_args a = {&total, 64, &bad};
        struct cmsim_options o = seeded(seed);

        o.in_order = seed == 0;
        o.preempt_permille = seed % 2 * 300;
        fresh(o);
        START(k_sum, a, {2, 3, 64, 0});
        const char *error = finish();
        CHECK(error == nullptr, "seed %d: %s", (int)seed, text(error));
        CHECK(total == 6 * 2016 && bad == 0, "seed %d: %d, %d", (int)seed, (int)total, (int)bad);
    }
}

static void test_a_grid_can_start_in_parts(void)
{
    uint32_t out[6 * 32] = {};
    uint64_t wrong = 0;
    const where_args a = {out, 32, 3, &wrong};

    fresh(seeded(1));
    for (unsigned first = 0; first < 6; first += 2) {
        const struct cmsim_launch l = {k_where_thunk, &a, k_where_argbytes, 3, 2, 32, 0, first, 2};
        CHECK(cmsim_add(&l) >= 0, "%s", text(cmsim_error()));
    }
    CHECK(finish() == nullptr && wrong == 0, "%s", text(cmsim_error()));
    for (uint32_t i = 0; i < 6 * 32; i++)
        CHECK(out[i] == (i / 32 << 16 | i % 32), "%u: %x", i, out[i]);
}

/* ---- order ---------------------------------------------------------------------------------- */

struct log_args {
    uint64_t *next;
    uint32_t *order;
};

CM_KERNEL(k_log, log_args)
{
    for (int i = 0; i < 4; i++) {
        cm_st(a.order + cm_add_relaxed_gpu(a.next, 1), cm_bid_x() * cm_nthr() + cm_tid());
        cm_pause_ns(100);
    }
}

enum { LOG_THREADS = 16, LOG = 2 * LOG_THREADS * 4 };

static void log_order(struct cmsim_options o, uint32_t *order)
{
    uint64_t next = 0;
    const log_args a = {&next, order};

    fresh(o);
    START(k_log, a, {2, 1, LOG_THREADS, 0});
    CHECK(finish() == nullptr && next == LOG, "%s, %d", text(cmsim_error()), (int)next);
}

static void test_the_seed_decides_the_order(void)
{
    uint32_t first[LOG], again[LOG], other[LOG];

    for (uint64_t seed = 0; seed < 5; seed++) {
        log_order(seeded(seed), first);
        log_order(seeded(seed), again);
        log_order(seeded(seed + 1), other);
        CHECK(memcmp(first, again, sizeof(first)) == 0, "seed %d is not repeatable", (int)seed);
        CHECK(memcmp(first, other, sizeof(first)) != 0, "seed %d is that of the next", (int)seed);
    }
}

static void test_in_order_gives_each_its_turn(void)
{
    struct cmsim_options o = seeded(1);
    uint32_t order[LOG];

    o.in_order = true;
    log_order(o, order);
    for (int round = 0; round < LOG; round += 2 * LOG_THREADS) {
        uint64_t seen = 0;
        for (int i = 0; i < 2 * LOG_THREADS; i++)
            seen |= 1ull << order[round + i];
        CHECK(seen == 0xffffffff, "round at %d: %llx", round, (unsigned long long)seen);
    }
}

CM_KERNEL(k_count, log_args)
{
    uint32_t v = cm_ld(a.order);

    cm_st(a.order, v + 1);
}

static void test_preemption_breaks_what_is_not_atomic(void)
{
    static const unsigned permille[] = {0, 500, 1000};

    if (with_tsan) {
        SKIP("ThreadSanitizer reports it as a race, rightly");
        return;
    }
    for (unsigned p : permille) {
        struct cmsim_options o = seeded(7);
        uint32_t count = 0;
        const log_args a = {nullptr, &count};

        o.preempt_permille = p;
        fresh(o);
        START(k_count, a, {1, 1, 128, 0});
        CHECK(finish() == nullptr, "%s", text(cmsim_error()));
        CHECK((count == 128) == (p == 0), "permille %u: %u of 128", p, count);
    }
}

/* ---- several launches, several host threads ------------------------------------------------- */

static void test_a_counter_has_one_device(void)
{
    uint64_t total = 0, bad = 0;
    const sum_args a = {&total, 1, &bad};

    fresh(seeded(1));
    START(k_sum, a, {1, 1, 64, 0});
    START(k_sum, a, {1, 1, 64, 0});
    CHECK(finish() == nullptr, "%s", text(cmsim_error()));
    START(k_sum, a, {1, 1, 64, 1});
    CHECK(finish() == nullptr && bad == 0, "%s", text(cmsim_error()));
    START(k_sum, a, {1, 1, 64, 0});
    START(k_sum, a, {1, 1, 64, 1});
    const char *error = finish();
    CHECK(says(error, "scope: ", "test_cmsim.cc:"), "%s", text(error));
}

struct worker {
    pthread_mutex_t *lock;
    int *steps, live;
};

static void *step_some(void *arg)
{
    struct worker *w = (struct worker *)arg;

    do {
        pthread_mutex_lock(w->lock);
        w->live = cmsim_step(50);
        (*w->steps)++;
        pthread_mutex_unlock(w->lock);
    } while (w->live > 0);
    return nullptr;
}

static void test_host_threads_take_turns(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[3];
    struct worker w[3];
    int steps = 0;
    uint64_t total = 0, bad = 0;
    const sum_args a = {&total, 64, &bad};

    fresh(seeded(1));
    for (int i = 0; i < 4; i++)
        START(k_sum, a, {2, 2, 64, 0});
    for (int i = 0; i < 3; i++) {
        w[i] = {&lock, &steps, 0};
        CHECK(pthread_create(&threads[i], nullptr, step_some, &w[i]) == 0, "thread %d", i);
    }
    for (pthread_t t : threads)
        pthread_join(t, nullptr);
    CHECK(cmsim_error() == nullptr && bad == 0, "%s", text(cmsim_error()));
    CHECK(total == 16 * 2016 && steps > 100, "%d after %d steps", (int)total, steps);
}

static void test_many_threads(void)
{
    const unsigned blocks = with_tsan ? 8 : 256;
    uint64_t total = 0, bad = 0;
    const sum_args a = {&total, 4, &bad};

    fresh(seeded(1));
    START(k_sum, a, {blocks, 1, 64, 0});
    CHECK(finish() == nullptr, "%s", text(cmsim_error()));
    CHECK(total == blocks * 2016 && bad == 0, "%d, %d", (int)total, (int)bad);
}

int main(void)
{
    RUN(test_every_thread_of_a_grid_runs);
    RUN(test_a_grid_can_start_in_parts);
    RUN(test_shared_memory_and_barriers);
    RUN(test_the_seed_decides_the_order);
    RUN(test_in_order_gives_each_its_turn);
    RUN(test_preemption_breaks_what_is_not_atomic);
    RUN(test_a_counter_has_one_device);
    RUN(test_host_threads_take_turns);
    RUN(test_many_threads);
    return test_end();
}
