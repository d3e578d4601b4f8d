/*
 * The watchdog: a thread of each process that ends it when nothing else can:
 * a set-up or tear-down call that never returns, a process that died, ranks
 * that do not come back after an abort. It also takes SIGINT and SIGTERM.
 */
#ifndef CM_COMMON_WATCHDOG_H
#define CM_COMMON_WATCHDOG_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/world.h"

struct cm_watchdog;

/*
 * Call it from the main thread before any other thread exists: SIGINT and
 * SIGTERM are blocked for it and for all threads it makes, until the stop.
 * CM_ENOMEM, CM_ESYS. The result is the caller's: cm_watchdog_stop().
 */
CM_MUST_CHECK enum cm_status cm_watchdog_start(struct cm_watchdog **out);
void cm_watchdog_stop(struct cm_watchdog *d); /* NULL is fine */

/*
 * Becomes the number of the first SIGINT or SIGTERM that comes while ranks
 * run; they should end between rows. If they do not within a moment, the
 * watchdog ends the row as well: it raises CM_ETRUNC. A later signal, one
 * after an abort and one at any other time kills as if it were not caught.
 */
const _Atomic int *cm_watchdog_signal(const struct cm_watchdog *d);

/*
 * Before the watchdog ends the process, it calls say(arg, st) on a thread of
 * its own, and goes on when that returns or after two seconds. NULL: not any
 * more; when this returns, the call is over or will never be made. Any thread.
 */
void cm_watchdog_last_words(struct cm_watchdog *d, void (*say)(void *arg, enum cm_status st),
                            void *arg);

/*
 * From now on the process is in `what` (static text). If it still is after
 * `limit_ns`, the watchdog says so and ends the process with `code`. NULL: in
 * silence, because it has been said already why the job ends. Any thread, never blocks.
 */
void cm_watchdog_expect(struct cm_watchdog *d, const char *what, int64_t limit_ns,
                        enum cm_exit code);

struct cm_control;

/* What the watchdog has to know of ranks that run. All of it must last until the next
   cm_watchdog_expect(). */
struct cm_watched {
    struct cm_segment *segment;
    const struct cm_world *world;
    struct cm_waiter waiter;    /* of the first rank of this process */
    struct cm_control *control; /* NULL: all processes share memory */
};

/*
 * From now on the ranks' threads run, without a limit; the watchdog reports and ends
 * the job with CM_ESYS when another process of the segment dies, and ends this one when
 * its ranks stay away for two seconds after an abort. Until the next cm_watchdog_expect().
 */
void cm_watchdog_ranks(struct cm_watchdog *d, const struct cm_watched *w);

/*
 * Calls of a rank into a library that knows no deadline. One that lasts longer than the
 * waiter's timeout_ns ends the job with a report, as a wait of ours would; the rank is then
 * inside for good, and the process ends without it. Zero but for `waiter`.
 */
struct cm_guard {
    const struct cm_waiter *waiter; /* of the rank */
    _Atomic uint64_t calls;         /* written by the rank: odd inside of a call */
    uint64_t seen;                  /* the watchdog's: `calls` at its last look */
    int64_t since_ns;               /* and since when they are that */
    struct cm_guard *next;
};

/* Around a call, on the rank's thread. */
static inline void cm_guard_step(struct cm_guard *g)
{
    uint64_t calls = atomic_load_explicit(&g->calls, memory_order_relaxed);

    atomic_store_explicit(&g->calls, calls + 1, memory_order_relaxed);
}

/* From now on, and not any more. `g` belongs to the rank. Any thread, never blocks for long. */
void cm_watchdog_guard(struct cm_watchdog *d, struct cm_guard *g);
void cm_watchdog_unguard(struct cm_watchdog *d, struct cm_guard *g);

#endif
