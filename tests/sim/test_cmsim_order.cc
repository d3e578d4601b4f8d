/*
 * Every way to break a ring of flags is reported: by wrong data if threads can
 * overtake each other, by ThreadSanitizer also if nothing but the order of
 * memory is missing. What is right is never reported.
 */
#include "cmsim_test.h"

#include <pthread.h>
#include <unistd.h>

/* ---- what ThreadSanitizer has to say -------------------------------------------------------- */

static int races;

extern "C" {
/* Called for each report, by the thread at fault: unseen, or counting would be the next fault. */
__attribute__((no_sanitize("thread"))) void __tsan_on_report(void *)
{
    races++;
}

/* All reports count, also those that look like an earlier one. */
const char *__tsan_default_options(void)
{
    return "suppress_equal_stacks=0:suppress_equal_addresses=0:exitcode=0:report_bugs=1:"
           "report_thread_leaks=0:symbolize=0";
}
}

/* Expected reports are counted, not shown. */
static int hide_stderr(void)
{
    int saved = dup(STDERR_FILENO);
    FILE *null = freopen("/dev/null", "w", stderr);

    return null != nullptr ? saved : -1;
}

static void show_stderr(int saved)
{
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

/* ---- a ring of flags ------------------------------------------------------------------------ */

enum { RING_MAX = 4, SLOTS_MAX = 2, SLOT = 64 /* words */, ROUNDS = 6 };

enum bug {
    NONE,
    TAIL_STORE_WEAK,
    TAIL_POLL_WEAK,
    HEAD_STORE_WEAK,
    TAIL_STORE_GPU,
    TAIL_STORE_CTA,
    TAIL_POLL_GPU,
    NO_BARRIER_AFTER_WAIT,
    NO_BARRIER_BEFORE_POST,
    NO_CREDIT
};

/* What a rank receives in. */
struct inbox {
    uint32_t slots[SLOTS_MAX][SLOT];
    alignas(128) uint64_t tail; /* written by the one before */
    alignas(128) uint64_t head; /* of the next one's inbox, written by it */
};

struct ring_args {
    struct inbox *inbox; /* [n] */
    uint32_t n, first;   /* this launch plays ranks from `first` on */
    uint32_t slots;
    enum bug bug;
    uint64_t *bad; /* one per rank */
};

CM_DEV void wait_for(const uint64_t *flag, uint64_t v, bool weakly, enum cmsim_scope scope)
{
    /* Half of the flag, relaxed: sees the value, orders nothing. */
    if (weakly)
        while ((uint32_t)cm_ld_relaxed_sys((const uint32_t *)flag) < (uint32_t)v)
            continue;
    else
        while (cmsim_ld_acquire(flag, scope, {__FILE__, __LINE__}) < v)
            continue;
}

CM_DEV void post(uint64_t *flag, uint64_t v, bool weakly, enum cmsim_scope scope)
{
    if (weakly)
        cm_st_relaxed_sys((uint32_t *)flag, (uint32_t)v);
    else
        cmsim_st_release(flag, v, scope, {__FILE__, __LINE__});
}

CM_DEV enum cmsim_scope tail_scope(enum bug bug)
{
    return bug == TAIL_STORE_GPU ? CMSIM_GPU : bug == TAIL_STORE_CTA ? CMSIM_CTA : CMSIM_SYS;
}

/* Each rank sends a slot to the next one in every round, and checks what it got. */
CM_KERNEL(k_ring, ring_args)
{
    const uint32_t me = a.first + cm_bid_y(), next = (me + 1) % a.n, t = cm_tid();
    struct inbox *mine = a.inbox + me, *theirs = a.inbox + next;

    for (uint32_t r = 0; r < ROUNDS; r++) {
        uint32_t *to = theirs->slots[r % a.slots], *from = mine->slots[r % a.slots];
        if (t == 0 && r >= a.slots && a.bug != NO_CREDIT)
            wait_for(&mine->head, r - a.slots + 1, false, CMSIM_SYS);
        cm_bar();
        cm_st(to + t, r << 16 | me << 8 | t);
        if (a.bug != NO_BARRIER_BEFORE_POST)
            cm_bar();
        if (t == 0) {
            post(&theirs->tail, r + 1, a.bug == TAIL_STORE_WEAK, tail_scope(a.bug));
            wait_for(&mine->tail, r + 1, a.bug == TAIL_POLL_WEAK,
                     a.bug == TAIL_POLL_GPU ? CMSIM_GPU : CMSIM_SYS);
        }
        if (a.bug != NO_BARRIER_AFTER_WAIT)
            cm_bar();
        if (cm_ld(from + t) != (r << 16 | (me + a.n - 1) % a.n << 8 | t))
            cm_add_relaxed_gpu(a.bad + me, 1);
        cm_bar();
        if (t == 0)
            post(&a.inbox[(me + a.n - 1) % a.n].head, r + 1, a.bug == HEAD_STORE_WEAK, CMSIM_SYS);
    }
}

struct outcome {
    uint64_t wrong; /* words */
    int races;
    bool error;
};

static struct outcome run_ring(enum bug bug, uint64_t seed, uint32_t n, bool one_device)
{
    static struct inbox inboxes[RING_MAX];
    struct outcome out = {};
    uint64_t bad[RING_MAX] = {};
    struct cmsim_options o = seeded(seed);

    o.preempt_permille = 100;
    fresh(o);
    memset(inboxes, 0, sizeof(inboxes));
    races = 0;
    int saved = bug == NONE ? -1 : hide_stderr();
    for (uint32_t r = 0; r < n; r += one_device ? n : 1) {
        const ring_args a = {inboxes, n, r, 1, bug, bad};
        START(k_ring, a, {1, one_device ? n : 1, SLOT, (int)r});
    }
    out.error = finish() != nullptr;
    if (saved >= 0)
        show_stderr(saved);
    CHECK(!out.error, "bug %d: %s", bug, text(cmsim_error()));
    out.races = races;
    for (uint64_t b : bad)
        out.wrong += b;
    return out;
}

static void test_a_right_ring_is_silent(void)
{
    for (uint64_t seed = 0; seed < 10; seed++)
        for (uint32_t n = 2; n <= RING_MAX; n++) {
            struct outcome out = run_ring(NONE, seed, n, seed % 2 != 0);
            CHECK(out.wrong == 0 && out.races == 0, "seed %d, %u ranks: %d wrong, %d races",
                  (int)seed, n, (int)out.wrong, out.races);
        }
}

static void test_every_broken_ring_is_found(void)
{
    static const struct {
        enum bug bug;
        const char *name;
        bool shows; /* as wrong data, in some order */
        bool fine_on_one_device;
    } table[] = {
        {TAIL_STORE_WEAK, "tail stored weakly", false, false},
        {TAIL_POLL_WEAK, "tail polled weakly", false, false},
        {HEAD_STORE_WEAK, "head stored weakly", false, false},
        {TAIL_STORE_GPU, "tail stored with .gpu scope", false, true},
        {TAIL_STORE_CTA, "tail stored with .cta scope", false, false},
        {TAIL_POLL_GPU, "tail polled with .gpu scope", false, true},
        {NO_BARRIER_AFTER_WAIT, "no barrier after the wait", true, false},
        {NO_BARRIER_BEFORE_POST, "no barrier before the post", true, false},
        {NO_CREDIT, "no wait for credit", true, false},
    };

    for (const auto &row : table)
        for (int one_device = 0; one_device < 2; one_device++) {
            uint64_t wrong = 0;
            for (uint64_t seed = 0; seed < (with_tsan ? 3 : 20); seed++) {
                struct outcome out = run_ring(row.bug, seed, 4, one_device != 0);
                bool racy = !(one_device != 0 && row.fine_on_one_device);
                wrong += out.wrong;
                CHECK(!with_tsan || (out.races > 0) == racy, "%s, one device %d, seed %d: %d races",
                      row.name, one_device, (int)seed, out.races);
            }
            CHECK(with_tsan || (wrong > 0) == row.shows, "%s: %d wrong", row.name, (int)wrong);
        }
}

/* ---- with the host -------------------------------------------------------------------------- */

struct host_args {
    uint64_t *go, *done;
    uint32_t *data;
};

CM_KERNEL(k_host, host_args)
{
    while (cm_ld_acquire_sys(a.go) == 0)
        continue;
    cm_st(a.data, cm_ld(a.data) + 1);
    cm_st_release_sys(a.done, 1);
}

static void *play_host(void *arg)
{
    const struct host_args *a = (const struct host_args *)arg;

    *a->data = 41;
    __atomic_store_n(a->go, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(a->done, __ATOMIC_ACQUIRE) == 0)
        usleep(100);
    return (void *)(uintptr_t)*a->data;
}

static void test_flags_order_kernels_and_host_threads(void)
{
    uint64_t go = 0, done = 0;
    uint32_t data = 0;
    const host_args a = {&go, &done, &data};
    struct cmsim_options o = seeded(1);
    pthread_t host;
    void *got = nullptr;

    o.external = true;
    fresh(o);
    races = 0;
    CHECK(pthread_create(&host, nullptr, play_host, (void *)&a) == 0, "thread");
    START(k_host, a, {1, 1, 1, 0});
    while (cmsim_step(100) > 0)
        usleep(100);
    pthread_join(host, &got);
    CHECK(cmsim_error() == nullptr && races == 0, "%s, %d races", text(cmsim_error()), races);
    CHECK((uintptr_t)got == 42, "%d", (int)(uintptr_t)got);
}

static void test_launches_one_after_another_are_ordered(void)
{
    uint64_t go = 1, done = 0;
    uint32_t data = 0;
    const host_args a = {&go, &done, &data};

    fresh(seeded(1));
    races = 0;
    for (uint32_t i = 0; i < 5; i++) {
        data += 10;
        START(k_host, a, {1, 1, 1, (int)i});
        CHECK(finish() == nullptr, "%s", text(cmsim_error()));
        CHECK(data == 11 * (i + 1) && races == 0, "%u: %u, %d races", i, data, races);
    }
}

int main(void)
{
    RUN(test_a_right_ring_is_silent);
    RUN(test_every_broken_ring_is_found);
    RUN(test_flags_order_kernels_and_host_threads);
    RUN(test_launches_one_after_another_are_ordered);
    return test_end();
}
