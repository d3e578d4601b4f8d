/*
 * The simulator reports what a GPU would hang or trap on, or do as it likes
 * with; and it does not call dead what only waits.
 */
#include "cmsim_test.h"

#include <alloca.h>

/* ---- misuse --------------------------------------------------------------------------------- */

enum misuse {
    SKIP_BARRIER,
    RETURN_EARLY,
    RETURN_LATE,
    MIX_KINDS,
    MIX_SITES,
    MISALIGN_16,
    MISALIGN_FLAG,
    WAIT_FOREVER,
    WAIT_WEAKLY,
    SHARE_TOO_MUCH,
    STACK_TOO_DEEP
};

struct misuse_args {
    enum misuse what;
    uint64_t *flag;     /* of 32 bytes, aligned to 16 */
    size_t stack_bytes; /* for STACK_TOO_DEEP */
};

struct too_much {
    char bytes[CM_MAX_THREADS * 97];
};

CM_DEV void misuse_barrier(enum misuse what)
{
    bool odd = cm_tid() == 3;

    if (what == RETURN_EARLY && odd)
        return;
    if (what == MIX_KINDS && odd)
        cm_bar_or(false);
    else if (what == MIX_SITES && odd)
        cm_bar();
    else if (what != SKIP_BARRIER || !odd)
        cm_bar();
    if (what != RETURN_LATE || odd)
        cm_bar();
}

static void use_stack(uint64_t *flag, size_t bytes)
{
    volatile char *p = (volatile char *)alloca(bytes);

    p[0] = (char)bytes;
    cm_ld_acquire_sys(flag);
    p[bytes - 1] = p[0];
}

CM_KERNEL(k_misuse, misuse_args)
{
    if (a.what == MISALIGN_16)
        cm_ld16(a.flag + 1);
    else if (a.what == MISALIGN_FLAG)
        cm_st_release_sys((uint64_t *)((char *)a.flag + 4), 1);
    else if (a.what == WAIT_FOREVER && cm_tid() == 5 && cm_bid_y() == 1)
        while (cm_ld_acquire_sys(a.flag) != 9)
            continue;
    else if (a.what == WAIT_WEAKLY && cm_tid() == 5)
        while (cm_ld(a.flag) != 9)
            continue;
    else if (a.what == STACK_TOO_DEEP)
        use_stack(a.flag, a.stack_bytes);
    if (a.what == SHARE_TOO_MUCH) {
        CM_SHARED(too_much, big);
        big.bytes[cm_tid()] = 0;
    }
    misuse_barrier(a.what);
}

static void test_misuse_is_reported(void)
{
    static const struct {
        enum misuse what;
        const char *name, *wants, *wants_too;
    } table[] = {
        {SKIP_BARRIER, "skip a barrier", "barrier misuse: thread ", "cm_bar at "},
        {RETURN_EARLY, "return early", "divergent exit: 1 threads", "barrier at "},
        {RETURN_LATE, "stay longer", "divergent exit: ", "a barrier at "},
        {MIX_KINDS, "two kinds", "barrier misuse: ", "cm_bar_or at "},
        {MIX_SITES, "two places", "barrier misuse: ", "test_cmsim_misuse.cc:"},
        {MISALIGN_16, "vector", "misaligned access: ", "multiple of 16, thread "},
        {MISALIGN_FLAG, "flag", "misaligned access: ", "test_cmsim_misuse.cc:"},
        {WAIT_FOREVER, "no store", "deadlock: ", "thread 5 polling 0x"},
        {WAIT_FOREVER, "no store", "block (0,1): 31 threads (0 first) in cm_bar at ", "= 4 at "},
        {WAIT_WEAKLY, "weak poll", "deadlock: ", "thread 5 polling 0x"},
        {SHARE_TOO_MUCH, "48 KiB", "shared memory: 49664 bytes", "thread "},
        {STACK_TOO_DEEP, "stack", "stack: ", "thread "},
    };
    alignas(16) static uint64_t flag[4] = {4, 4, 4, 4};

    for (const auto &row : table) {
        const misuse_args a = {row.what, flag, (size_t)(with_tsan || with_asan ? 250 : 58) << 10};

        fresh(seeded(3));
        int id = START(k_misuse, a, {1, 2, 32, 0});
        const char *error = finish();
        CHECK(says(error, row.wants, row.wants_too), "%s: %s", row.name, text(error));
        CHECK(cmsim_step(10) == -1 && !cmsim_ended(id), "%s: goes on", row.name);
    }
}

static void test_a_bad_launch_is_refused(void)
{
    static const struct grid bad[] = {{0, 1, 1, 0},   {1, 0, 1, 0},           {1, 1, 0, 0},
                                      {1, 1, 513, 0}, {65535, 65535, 512, 0}, {1000, 1, 512, 0}};

    for (const struct grid &g : bad) {
        const misuse_args a = {SKIP_BARRIER, nullptr, 0};

        fresh(seeded(1));
        int id = START(k_misuse, a, g);
        CHECK(id == -1 && cmsim_error() != nullptr, "%u x %u x %u: %d", g.x, g.y, g.threads, id);
    }
}

/* ---- waiting -------------------------------------------------------------------------------- */

struct wait_args {
    uint64_t *flag;
    uint32_t *abort, *beats;
    uint64_t *left; /* threads that saw the abort word */
};

enum { LOOK = 2048 /* polls between two looks at the abort word */ };

CM_KERNEL(k_wait, wait_args)
{
    for (uint32_t i = 1; cm_ld_acquire_sys(a.flag) == 0; i++) {
        if (i % LOOK != 0)
            continue;
        cm_st_relaxed_sys(a.beats, i);
        if (cm_ld_relaxed_sys(a.abort) != 0) {
            cm_add_relaxed_gpu(a.left, 1);
            break;
        }
    }
    cm_bar();
}

static void test_who_sees_the_abort_word_is_not_dead(void)
{
    uint64_t flag = 0, left = 0;
    uint32_t beats = 0;

    for (uint32_t abort = 0; abort < 2; abort++) {
        const wait_args a = {&flag, &abort, &beats, &left};

        fresh(seeded(abort));
        START(k_wait, a, {2, 1, 32, 0});
        const char *error = finish();
        CHECK((abort != 0) == (error == nullptr), "abort %u: %s", abort, text(error));
        CHECK(left == 64 * abort, "abort %u: %d left", abort, (int)left);
        cmsim_reset();
    }
}

static void test_others_may_end_a_wait(void)
{
    struct cmsim_options o = seeded(1);
    uint64_t flag = 0, left = 0;
    uint32_t beats = 0, abort = 0;
    const wait_args a = {&flag, &abort, &beats, &left};

    o.external = true;
    fresh(o);
    CHECK(cmsim_step(1) == 0 && cmsim_idle_hint(), "nothing to do");
    START(k_wait, a, {1, 1, 8, 0});
    CHECK(!cmsim_idle_hint(), "it has not run");
    for (int i = 0; i < 100; i++)
        CHECK(cmsim_step(1000) == 1, "%s", text(cmsim_error()));
    CHECK(cmsim_idle_hint(), "all poll");
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    CHECK(finish() == nullptr && left == 0, "%s", text(cmsim_error()));
}

static void test_reset_abandons_everything(void)
{
    uint64_t flag = 0, left = 0;
    uint32_t beats = 0, abort = 0;
    const wait_args a = {&flag, &abort, &beats, &left};

    for (int i = 0; i < 50; i++) {
        fresh(seeded((uint64_t)i));
        CHECK(START(k_wait, a, {2, 1, 32, 0}) == 0, "round %d", i);
        CHECK(cmsim_step(500) == 1, "round %d", i);
    }
    cmsim_reset();
    CHECK(cmsim_step(1) == 0 && cmsim_error() == nullptr, "%s", text(cmsim_error()));
}

int main(void)
{
    RUN(test_misuse_is_reported);
    RUN(test_a_bad_launch_is_refused);
    RUN(test_who_sees_the_abort_word_is_not_dead);
    RUN(test_others_may_end_a_wait);
    RUN(test_reset_abandons_everything);
    return test_end();
}
