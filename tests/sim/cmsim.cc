/*
 * The scheduler of the CPU simulator: a loop that picks a fiber, runs it until
 * it gives the CPU back, and looks now and then whether all of them wait for
 * something that nobody is left to do.
 *
 * Fibers run only inside cmsim_step(), one at a time, so memory is sequentially
 * consistent here. Missing order is found by ThreadSanitizer, which knows the
 * fibers as threads and sees nothing of the order the scheduler gave them.
 *
 * Compile. The runtime has one flavour, without sanitizers, for all programs
 * (R is each of cmsim cmsim_run cmsim_calls cmsim_scope cmsim_report cmsim_switch):
 *
 *   g++ -std=c++17 -O2 -g -fPIC -Wall -Wextra -DCM_SIM -Isrc -Itests/sim \
 *       -fno-exceptions -fno-rtti -fno-tree-loop-distribute-patterns -c tests/sim/R.cc
 *
 * Kernels (K = src/kernels/X.cu) and the tests that call them, by flavour; link alike:
 *
 *   plain  g++     -std=c++17 -O2 -g -x c++ -DCM_SIM -Isrc -Itests/sim -c K
 *   ASan   g++     ... -fsanitize=address,undefined -fno-sanitize-recover=undefined
 *   TSan   clang++ ... -fsanitize=thread       (gcc 12's is ten times slower; `setarch -R` to run)
 */
#include "cmsim_core.h"
#include "cmsim_sanitizer.h"
#include "cmsim_switch.h"

#include <stdlib.h>

enum {
    MAX_FIBERS = 1 << 18, /* of one launch */
    STACK_RESERVE = 8 << 10,
    STACK_TOUCHED = 256,  /* by a fiber that runs up to its next wait */
    PATIENCE = 10000,     /* accesses before a switch that nobody asked for */
    SLOW_SWITCHES = 4096, /* how long blocks are held back */
    SCAN_SWITCHES = 8192  /* between two looks for a deadlock, at least */
};

struct cmsim_core cmsim_core;
const struct cmsim_thread *cmsim_self;

/* splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014. */
static uint64_t random_bits(void)
{
    uint64_t z = cmsim_core.random += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static size_t random_below(size_t n)
{
    return (size_t)((random_bits() >> 32) * n >> 32);
}

/* Between 1 and twice the mean. */
static int64_t gap(unsigned permille)
{
    return 1 + (int64_t)random_below(permille >= 1000 ? 1 : 2000 / permille - 1);
}

int64_t cmsim_preempt_gap(void)
{
    unsigned permille = cmsim_core.options.preempt_permille;

    return permille == 0 ? (int64_t)PATIENCE : gap(permille);
}

int64_t cmsim_tear_gap(void)
{
    unsigned permille = cmsim_core.options.tear_permille;

    return permille == 0 ? INT64_MAX : gap(permille);
}

/* ---- fibers --------------------------------------------------------------------------------- */

static void push_ready(struct cmsim_fiber *f)
{
    f->state = CMSIM_READY;
    f->place = cmsim_core.nready;
    cmsim_core.ready[cmsim_core.nready++] = f;
}

static void drop_ready(struct cmsim_fiber *f, enum cmsim_state state)
{
    struct cmsim_fiber *last = cmsim_core.ready[--cmsim_core.nready];

    cmsim_core.ready[f->place] = last;
    last->place = f->place;
    f->state = state;
}

static void note(enum cmsim_fault fault, struct cmsim_site at, const void *address, uint64_t number)
{
    if (cmsim_core.failure.fault == CMSIM_FINE)
        cmsim_core.failure = {fault, cmsim_core.now, at, address, number};
}

/* From a fiber to the host. Returns when the fiber is resumed, if it can be. */
static void leave(bool for_good)
{
    struct cmsim_fiber *f = cmsim_core.now;

    if ((char *)__builtin_frame_address(0) - f->stack < STACK_RESERVE)
        note(CMSIM_STACK_FULL, f->at, nullptr, f->stack_bytes);
    cmsim_tsan_switch(cmsim_core.host_tsan);
    cmsim_asan_leave(for_good ? nullptr : &f->fake, cmsim_core.host_stack,
                     cmsim_core.host_stack_bytes);
    cmsim_switch(&f->context, cmsim_core.host_context);
    cmsim_asan_arrive(f->fake, &cmsim_core.host_stack, &cmsim_core.host_stack_bytes);
}

static void enter(struct cmsim_fiber *f)
{
    void *fake = nullptr;

    cmsim_core.now = f;
    cmsim_self = &f->self;
    cmsim_tsan_switch(f->tsan);
    cmsim_asan_leave(&fake, f->stack, f->stack_bytes);
    cmsim_switch(&cmsim_core.host_context, f->context);
    cmsim_asan_arrive(fake, nullptr, nullptr);
    cmsim_core.now = nullptr;
}

void cmsim_yield(void)
{
    leave(false);
}

void cmsim_block_self(void)
{
    drop_ready(cmsim_core.now, CMSIM_BLOCKED);
    leave(false);
}

void cmsim_wake(struct cmsim_fiber *f)
{
    push_ready(f);
}

void cmsim_fail(enum cmsim_fault fault, struct cmsim_site at, const void *address, uint64_t number)
{
    note(fault, at, address, number);
    leave(true);
    __builtin_unreachable();
}

/* Where a fiber begins. */
static void fiber_main(void)
{
    cmsim_asan_arrive(nullptr, &cmsim_core.host_stack, &cmsim_core.host_stack_bytes);

    struct cmsim_fiber *f = cmsim_core.now;
    struct cmsim_block *block = f->block;
    void *args[] = {block->run->args};

    block->run->thunk(args);
    block->returned++;
    if (block->arrived > 0)
        cmsim_fail(CMSIM_BARRIER_LEFT, block->at, nullptr, block->arrived);
    block->run->live--;
    cmsim_core.progress++;
    drop_ready(f, CMSIM_RETURNED);
    leave(true);
    __builtin_unreachable();
}

/* ---- the scheduler -------------------------------------------------------------------------- */

static void prefetch(const void *p, size_t bytes)
{
    const size_t line = 64;

    for (size_t at = 0; at < bytes; at += line)
        __builtin_prefetch((const char *)p + at, 1);
}

/* Blocks are held back in turns: one that runs ahead of the others shows what credits are for. */
static bool is_slow(const struct cmsim_fiber *f)
{
    if (cmsim_core.switches % SLOW_SWITCHES == 0)
        cmsim_core.slow = random_bits();
    return cmsim_core.slow >> ((unsigned)f->block->run->id * 7 + f->block->number) % 64 & 1;
}

static struct cmsim_fiber *draw(void)
{
    enum { HELD_BACK = 8 };
    struct cmsim_fiber *f = cmsim_core.ready[random_below(cmsim_core.nready)];

    if (is_slow(f) && random_bits() % HELD_BACK != 0)
        f = cmsim_core.ready[random_below(cmsim_core.nready)];
    return f;
}

static struct cmsim_fiber *take_turn(void)
{
    cmsim_core.turn = cmsim_core.turn + 1 < cmsim_core.nready ? cmsim_core.turn + 1 : 0;
    return cmsim_core.ready[cmsim_core.turn];
}

/*
 * With thousands of fibers a switch is all cache misses. So fibers are drawn
 * some switches early, and loaded meanwhile: first the fiber, then the top of
 * its stack. Three times as fast with 16384 fibers.
 */
static struct cmsim_fiber *pick(void)
{
    struct cmsim_fiber **ahead = cmsim_core.ahead, *f = ahead[0];

    if (cmsim_core.options.in_order)
        return take_turn();
    for (int i = 0; i + 1 < CMSIM_AHEAD; i++)
        ahead[i] = ahead[i + 1];
    ahead[CMSIM_AHEAD - 1] = draw();
    prefetch(ahead[CMSIM_AHEAD - 1], sizeof(*f));
    if (ahead[0] != nullptr)
        prefetch(ahead[0]->context, STACK_TOUCHED);
    return f != nullptr && f->state == CMSIM_READY ? f : draw();
}

static bool all_wait(uint32_t polls)
{
    for (const struct cmsim_run *run = cmsim_core.runs; run != nullptr; run = run->next)
        for (size_t i = 0; i < run->nfibers; i++)
            if (!cmsim_waits(&run->fibers[i], polls))
                return false;
    return true;
}

static void look_for_deadlock(void)
{
    cmsim_core.next_scan = cmsim_core.switches + SCAN_SWITCHES + 4 * cmsim_core.nready;
    if (!cmsim_core.options.external && cmsim_core.nlive > 0 && all_wait(CMSIM_POLLS))
        note(CMSIM_DEADLOCK, {nullptr, 0}, nullptr, 0);
}

/* What was drawn may be part of a launch that ends, or of another order. */
static void forget_drawn(void)
{
    for (struct cmsim_fiber *&f : cmsim_core.ahead)
        f = nullptr;
}

static void end_run(struct cmsim_run *run)
{
    struct cmsim_run **link = &cmsim_core.runs;

    while (*link != run)
        link = &(*link)->next;
    *link = run->next;
    cmsim_core.nlive--;
    cmsim_core.nfibers -= run->nfibers;
    forget_drawn();
    cmsim_scope_end(run);
    cmsim_run_destroy(run);
}

static void run_one(void)
{
    struct cmsim_fiber *f = pick();
    struct cmsim_run *run = f->block->run;

    enter(f);
    cmsim_core.switches++;
    if (run->live == 0)
        end_run(run);
    else if (cmsim_core.switches >= cmsim_core.next_scan)
        look_for_deadlock();
}

static bool is_broken(void)
{
    return cmsim_core.failure.fault != CMSIM_FINE;
}

/* ---- for the host --------------------------------------------------------------------------- */

static void start_order(void)
{
    cmsim_core.random = cmsim_core.options.seed;
    cmsim_core.turn = 0;
    forget_drawn();
    cmsim_core.switches = cmsim_core.next_scan = 0;
    cmsim_core.until_preempt = cmsim_preempt_gap();
    cmsim_core.until_tear = cmsim_tear_gap();
}

void cmsim_configure(const struct cmsim_options *options)
{
    cmsim_core.options = *options;
    start_order();
}

static bool grow_ready(size_t n)
{
    if (n <= cmsim_core.ready_cap)
        return true;
    void *bigger = realloc(cmsim_core.ready, 2 * n * sizeof(*cmsim_core.ready));
    if (bigger == nullptr)
        return false;
    cmsim_core.ready = (struct cmsim_fiber **)bigger;
    cmsim_core.ready_cap = 2 * n;
    return true;
}

static int refuse(enum cmsim_fault fault, uint64_t number)
{
    note(fault, {nullptr, 0}, nullptr, number);
    cmsim_report();
    return -1;
}

static bool is_possible(const struct cmsim_launch *l, uint64_t nblocks)
{
    const uint64_t grid = (uint64_t)l->grid_x * l->grid_y;

    return nblocks > 0 && nblocks <= MAX_FIBERS && l->first <= grid && nblocks <= grid - l->first &&
           l->threads > 0 && l->threads <= CM_MAX_THREADS && nblocks * l->threads <= MAX_FIBERS;
}

int cmsim_add(const struct cmsim_launch *launch)
{
    struct cmsim_launch part = *launch;
    const uint64_t grid = (uint64_t)part.grid_x * part.grid_y;
    const uint64_t nblocks = part.count != 0 ? part.count : grid - part.first;
    struct cmsim_run *run = nullptr;

    if (!is_possible(&part, nblocks))
        return refuse(CMSIM_GEOMETRY, part.threads);
    part.count = (unsigned)nblocks;
    if (grow_ready(cmsim_core.nfibers + (size_t)nblocks * part.threads))
        run = cmsim_run_create(&part, fiber_main);
    if (run == nullptr)
        return refuse(CMSIM_NO_MEMORY, nblocks * part.threads);
    run->id = cmsim_core.next_id++;
    run->next = cmsim_core.runs;
    cmsim_core.runs = run;
    cmsim_core.nlive++;
    cmsim_core.nfibers += run->nfibers;
    for (size_t i = 0; i < run->nfibers; i++)
        push_ready(&run->fibers[i]);
    return run->id;
}

int cmsim_step(unsigned max_switches)
{
    if (is_broken())
        return -1;
    if (cmsim_has_tsan())
        cmsim_core.host_tsan = __tsan_get_current_fiber();
    for (; max_switches > 0 && cmsim_core.nready > 0 && !is_broken(); max_switches--)
        run_one();
    if (is_broken()) {
        cmsim_report();
        return -1;
    }
    return cmsim_core.nlive;
}

bool cmsim_ended(int id)
{
    const struct cmsim_run *run = cmsim_core.runs;

    while (run != nullptr && run->id != id)
        run = run->next;
    return id >= 0 && id < cmsim_core.next_id && run == nullptr;
}

const char *cmsim_error(void)
{
    return is_broken() ? cmsim_core.text : nullptr;
}

bool cmsim_idle_hint(void)
{
    return all_wait(2); /* once may have been the poll that found what it waited for */
}

void cmsim_reset(void)
{
    while (cmsim_core.runs != nullptr)
        end_run(cmsim_core.runs);
    cmsim_core.nready = 0;
    cmsim_core.next_id = 0;
    cmsim_core.failure = {};
    start_order();
}
