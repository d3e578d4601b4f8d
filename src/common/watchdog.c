/*
 * The watchdog's loop wakes five times a second, or for a signal: SIGINT and
 * SIGTERM are blocked in all other threads and come here through a descriptor,
 * so there is no handler, and no global variable for one.
 *
 * Invariant: it ends a process only with _exit() or a signal, which no lock,
 * destructor or library can hold up. The last words before (the end of the
 * report) may block on a full pipe, so another thread says them.
 */
#define _GNU_SOURCE
#include "common/watchdog.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stuck.h"
#include "common/control.h"

enum { PERIOD_MS = 200, SIGNALLED_PERIOD_MS = 50, SPEECH_S = 2, SEVERAL = -2 };
static const int64_t abort_grace_ns = 2LL * CM_NS_PER_S;
static const int64_t beat_ns = 2LL * PERIOD_MS * CM_NS_PER_MS; /* of ranks inside of a library */
static const int64_t suspended_ns =
    CM_NS_PER_S; /* not to have looked for so long: we were stopped */

/* Launchers send SIGKILL about a second after SIGTERM; the report must be complete by then. */
static const int64_t signal_grace_ns = 300LL * CM_NS_PER_MS, signal_limit_ns = 600LL * CM_NS_PER_MS;

struct orders {
    const char *what;
    int64_t limit_ns, until_ns; /* until_ns 0: no limit */
    enum cm_exit code;
    struct cm_watched watched; /* segment NULL: no ranks run */
};

struct cm_watchdog {
    pthread_t thread;
    int signals; /* signalfd, or -1 */
    int stop;    /* eventfd: readable when the loop must end; or -1 */
    sigset_t mask_before;
    _Atomic int signal;   /* the first that came while ranks ran, or 0 */
    pthread_mutex_t lock; /* of what follows */
    struct orders orders;
    struct cm_guard *guards;
    int64_t looked_ns;  /* last look at them */
    int64_t aborted_ns; /* when this thread first saw the abort word set; 0: it is not */
    int64_t signalled_ns;
    void (*say)(void *arg, enum cm_status st); /* NULL: nothing to say */
    void *say_arg;
    enum cm_status say_status;
};

static struct cm_abort *abort_of(const struct orders *o)
{
    return o->watched.waiter.abort;
}

static void *speak(void *arg)
{
    struct cm_watchdog *d = arg;

    d->say(d->say_arg, d->say_status);
    return NULL;
}

/* The lock is held, so the speech cannot be withdrawn while it is held. At most once. */
static void last_words(struct cm_watchdog *d, enum cm_status st)
{
    struct timespec until;
    pthread_t speaker;

    if (d->say == NULL)
        return;
    d->say_status = st;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SPEECH_S;
    if (pthread_create(&speaker, NULL, speak, d) != 0 ||
        pthread_timedjoin_np(speaker, NULL, &until) != 0)
        cm_log("the report could not be completed");
    d->say = NULL;
}

static void check_limit(struct cm_watchdog *d, int64_t now)
{
    const struct orders *o = &d->orders;

    if (o->until_ns == 0 || now < o->until_ns)
        return;
    if (o->what != NULL)
        cm_log("time-out: %s did not end within %.1f s", o->what,
               (double)o->limit_ns / CM_NS_PER_S);
    last_words(d, CM_ETIMEOUT);
    _exit((int)o->code);
}

/* The segment counts the processes that share it. */
static int nth_process(const struct cm_domains *d, int n)
{
    int p = 0;

    while (p < d->nprocs - 1 && (d->of_proc[p] != d->mine || n-- > 0))
        p++;
    return p;
}

static void check_processes(const struct orders *o)
{
    const struct cm_watched *w = &o->watched;
    int dead = cm_segment_dead_proc(w->segment);
    struct cm_text text;
    char what[CM_TEXT];

    if (dead < 0 || cm_abort_status(w->waiter.abort) != CM_OK)
        return;
    dead = nth_process(&w->world->domains, dead);
    if (w->control != NULL) {
        cm_control_died(w->control, dead);
        return;
    }
    cm_process_text(w->world->infos, w->world->n, dead, what, sizeof(what));
    strncat(what, " died", sizeof(what) - strlen(what) - 1);
    cm_lost_compose(&w->waiter, dead, what, &text);
    (void)cm_abort_because(&w->waiter, CM_ESYS, &text);
}

static void check_abort(struct cm_watchdog *d, const struct orders *o, int64_t now)
{
    enum cm_status st = cm_abort_status(abort_of(o));

    if (st == CM_OK)
        return;
    if (d->aborted_ns == 0)
        d->aborted_ns = now;
    if (d->signalled_ns != 0 && now - d->signalled_ns > signal_limit_ns)
        last_words(d, st);
    if (now - d->aborted_ns < abort_grace_ns)
        return;
    cm_log("ranks of process %d did not stop after the abort: ending it",
           o->watched.world->infos[o->watched.waiter.rank].proc);
    last_words(d, st);
    _exit((int)cm_status_exit(st));
}

static void check_signal(const struct cm_watchdog *d, const struct orders *o, int64_t now)
{
    if (d->signalled_ns != 0 && now - d->signalled_ns > signal_grace_ns)
        cm_abort_raise(abort_of(o), CM_ETRUNC, o->watched.waiter.rank);
}

/* The rank will not come back by itself. Others of its kind wait as well, and are not to blame. */
static void report_stuck(const struct cm_guard *g, int64_t waited_ns)
{
    struct cm_text text;

    cm_waiter_survey(g->waiter);
    cm_stuck_compose(g->waiter, SEVERAL, waited_ns, &text);
    (void)cm_abort_because(g->waiter, CM_ETIMEOUT, &text);
}

/* A call that began before the last look and goes on is a wait: its rank is alive. */
static void check_guard(struct cm_guard *g, int64_t gap_ns, int64_t now)
{
    uint64_t calls = atomic_load_explicit(&g->calls, memory_order_relaxed);

    if (calls % 2 == 0 || calls != g->seen) {
        g->seen = calls;
        g->since_ns = now;
        return;
    }
    if (gap_ns > suspended_ns)
        g->since_ns += gap_ns;
    atomic_store_explicit(&g->waiter->diag->beat_ns, now + beat_ns, memory_order_relaxed);
    atomic_store_explicit(&g->waiter->diag->waits_for, SEVERAL, memory_order_relaxed);
    if (now - g->since_ns > g->waiter->timeout_ns)
        report_stuck(g, now - g->since_ns);
}

static void check_guards(struct cm_watchdog *d, int64_t now)
{
    int64_t gap_ns = d->looked_ns != 0 ? now - d->looked_ns : 0;

    d->looked_ns = now;
    for (struct cm_guard *g = d->guards; g != NULL; g = g->next) {
        if (cm_abort_status(g->waiter->abort) == CM_OK)
            check_guard(g, gap_ns, now);
    }
}

/* The lock is held: orders cannot be withdrawn while they are being followed. */
static void look(struct cm_watchdog *d)
{
    int64_t now = cm_now_ns();

    check_limit(d, now);
    if (d->orders.watched.segment == NULL)
        return;
    check_processes(&d->orders);
    check_guards(d, now);
    check_signal(d, &d->orders, now);
    check_abort(d, &d->orders, now);
}

/* Why the process dies of a signal, for the report: an abort that came before it, or the signal. */
static enum cm_status death_status(const struct cm_watchdog *d)
{
    enum cm_status st = d->orders.watched.segment != NULL ? cm_abort_status(abort_of(&d->orders))
                                                          : CM_OK;

    return st != CM_OK ? st : CM_ETRUNC;
}

static void die_of(int number)
{
    sigset_t set;

    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* here the process ends */
}

static void take_signal(struct cm_watchdog *d)
{
    struct signalfd_siginfo info;
    int64_t now = cm_now_ns();
    bool running;

    if (read(d->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (d->signalled_ns != 0 && now - d->signalled_ns < signal_grace_ns)
        return; /* timeout(1) and shells signal a program and its group */
    running = d->orders.watched.segment != NULL && cm_abort_status(abort_of(&d->orders)) == CM_OK;
    if (running && d->signalled_ns == 0) {
        d->signalled_ns = now;
        atomic_store(&d->signal, (int)info.ssi_signo); /* the ranks will see it between rows */
        return;
    }
    last_words(d, death_status(d));
    die_of((int)info.ssi_signo);
}

static void *watch(void *arg)
{
    struct cm_watchdog *d = arg;
    struct pollfd fds[] = {{.fd = d->signals, .events = POLLIN}, {.fd = d->stop, .events = POLLIN}};

    while (fds[1].revents == 0) {
        fds[0].revents = 0;
        poll(fds, CM_LEN(fds), atomic_load(&d->signal) != 0 ? SIGNALLED_PERIOD_MS : PERIOD_MS);
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

void cm_watchdog_last_words(struct cm_watchdog *d, void (*say)(void *arg, enum cm_status st),
                            void *arg)
{
    pthread_mutex_lock(&d->lock);
    d->say = say;
    d->say_arg = arg;
    pthread_mutex_unlock(&d->lock);
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

void cm_watchdog_ranks(struct cm_watchdog *d, const struct cm_watched *w)
{
    struct orders o = {.what = "the ranks", .watched = *w};

    give_orders(d, &o);
}

void cm_watchdog_guard(struct cm_watchdog *d, struct cm_guard *g)
{
    pthread_mutex_lock(&d->lock);
    g->next = d->guards;
    d->guards = g;
    pthread_mutex_unlock(&d->lock);
}

void cm_watchdog_unguard(struct cm_watchdog *d, struct cm_guard *g)
{
    pthread_mutex_lock(&d->lock);
    for (struct cm_guard **at = &d->guards; *at != NULL; at = &(*at)->next) {
        if (*at == g) {
            *at = g->next;
            break;
        }
    }
    pthread_mutex_unlock(&d->lock);
}

void cm_watchdog_stop(struct cm_watchdog *d)
{
    if (d == NULL)
        return;
    eventfd_write(d->stop, 1);
    pthread_join(d->thread, NULL);
    destroy(d);
}
