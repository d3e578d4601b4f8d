/*
 * The watchdog's loop wakes five times a second, or for a signal: SIGINT and
 * SIGTERM are blocked in all other threads and come here through a descriptor,
 * so there is no handler, and no global variable for one.
 *
 * Invariant: it ends a process only with _exit(), which no lock, destructor or
 * library can hold up; rows of a report are flushed as they are written, so
 * nothing that was shown is lost.
 */
#include "common/watchdog.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"

enum { PERIOD_MS = 200 };
static const int64_t abort_grace_ns = 2LL * CM_NS_PER_S;

struct orders {
    const char *what;
    int64_t limit_ns, until_ns; /* until_ns 0: no limit */
    enum cm_exit code;
    struct cm_segment *segment; /* NULL: no ranks run */
    const struct cm_world *world;
    int rank; /* first rank of this process */
};

struct cm_watchdog {
    pthread_t thread;
    int signals; /* signalfd, or -1 */
    int stop;    /* eventfd: readable when the loop must end; or -1 */
    sigset_t mask_before;
    _Atomic int signal;   /* the first that came while ranks ran, or 0 */
    pthread_mutex_t lock; /* of what follows */
    struct orders orders;
    int64_t aborted_ns; /* when this thread first saw the abort word set; 0: it is not */
};

static struct cm_abort *abort_of(const struct orders *o)
{
    return &((struct cm_shared *)cm_segment_base(o->segment))->abort;
}

static void check_limit(const struct orders *o, int64_t now)
{
    if (o->until_ns == 0 || now < o->until_ns)
        return;
    cm_log("time-out: %s did not end within %.1f s", o->what, (double)o->limit_ns / CM_NS_PER_S);
    _exit((int)o->code);
}

static void check_processes(const struct orders *o)
{
    int dead = cm_segment_dead_proc(o->segment);
    const int32_t *first_of = o->world->first_of;
    int first, last;

    if (dead < 0 || !cm_abort_raise(abort_of(o), CM_ESYS, o->rank))
        return;
    first = first_of[dead];
    last = first_of[dead + 1] - 1;
    if (first == last)
        cm_log("process %d (rank %d, pid %d) died", dead, first, (int)o->world->infos[first].pid);
    else
        cm_log("process %d (ranks %d-%d, pid %d) died", dead, first, last,
               (int)o->world->infos[first].pid);
}

static void check_abort(struct cm_watchdog *d, const struct orders *o, int64_t now)
{
    enum cm_status st = cm_abort_status(abort_of(o));

    if (st == CM_OK)
        return;
    if (d->aborted_ns == 0)
        d->aborted_ns = now;
    if (now - d->aborted_ns < abort_grace_ns)
        return;
    cm_log("ranks of process %d did not stop after the abort: ending it",
           o->world->infos[o->rank].proc);
    _exit((int)cm_status_exit(st));
}

/* The lock is held: orders cannot be withdrawn while they are being followed. */
static void look(struct cm_watchdog *d)
{
    int64_t now = cm_now_ns();

    check_limit(&d->orders, now);
    if (d->orders.segment == NULL)
        return;
    check_processes(&d->orders);
    check_abort(d, &d->orders, now);
}

static void take_signal(struct cm_watchdog *d)
{
    struct signalfd_siginfo info;
    int none = 0, number;
    sigset_t set;

    if (read(d->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    number = (int)info.ssi_signo;
    if (d->orders.segment != NULL && atomic_compare_exchange_strong(&d->signal, &none, number))
        return; /* the ranks will see it between rows */
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* here the process ends */
}

static void *watch(void *arg)
{
    struct cm_watchdog *d = arg;
    struct pollfd fds[] = {{.fd = d->signals, .events = POLLIN}, {.fd = d->stop, .events = POLLIN}};

    while (fds[1].revents == 0) {
        fds[0].revents = 0;
        poll(fds, CM_LEN(fds), PERIOD_MS);
        pthread_mutex_lock(&d->lock);
        if (fds[0].revents != 0)
            take_signal(d);
        look(d);
        pthread_mutex_unlock(&d->lock);
    }
    return NULL;
}

static void destroy(struct cm_watchdog *d)
{
    pthread_sigmask(SIG_SETMASK, &d->mask_before, NULL);
    pthread_mutex_destroy(&d->lock);
    if (d->signals >= 0)
        close(d->signals);
    if (d->stop >= 0)
        close(d->stop);
    free(d);
}

enum cm_status cm_watchdog_start(struct cm_watchdog **out)
{
    struct cm_watchdog *d = calloc(1, sizeof(*d));
    sigset_t set;

    if (d == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for the watchdog");
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &d->mask_before);
    pthread_mutex_init(&d->lock, NULL);
    d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    d->stop = eventfd(0, EFD_CLOEXEC);
    if (d->signals < 0 || d->stop < 0 || pthread_create(&d->thread, NULL, watch, d) != 0) {
        destroy(d);
        return CM_FAIL(CM_ESYS, "cannot start the watchdog");
    }
    *out = d;
    return CM_OK;
}

const _Atomic int *cm_watchdog_signal(const struct cm_watchdog *d)
{
    return &d->signal;
}

static void give_orders(struct cm_watchdog *d, const struct orders *o)
{
    pthread_mutex_lock(&d->lock);
    d->orders = *o;
    d->aborted_ns = 0;
    pthread_mutex_unlock(&d->lock);
}

void cm_watchdog_expect(struct cm_watchdog *d, const char *what, int64_t limit_ns,
                        enum cm_exit code)
{
    struct orders o = {.what = what, .limit_ns = limit_ns, .code = code};

    o.until_ns = cm_now_ns() + limit_ns;
    give_orders(d, &o);
}

void cm_watchdog_ranks(struct cm_watchdog *d, struct cm_segment *s, const struct cm_world *w,
                       int rank)
{
    struct orders o = {.what = "the ranks", .segment = s, .world = w, .rank = rank};

    give_orders(d, &o);
}

void cm_watchdog_stop(struct cm_watchdog *d)
{
    if (d == NULL)
        return;
    eventfd_write(d->stop, 1);
    pthread_join(d->thread, NULL);
    destroy(d);
}
