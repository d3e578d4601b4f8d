/*
 * The control plane's life: its thread, and the letters that reach it.
 *
 * What the proxy tells comes on the thread that drives it, which must not wait.
 * Team messages are put where ranks look for them at once; everything else goes
 * into a box that the control's thread empties. That thread also looks at the
 * abort word and at the clock: twenty times a second while nothing happens.
 *
 * Invariant: the box is not touched while the proxy is called, and the gate is
 * never taken on the thread that drives the proxy.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/control_int.h"
#include "common/launch.h"

enum {
    PERIOD_MS = 50,     /* how long an abort of another process of the domain stays unseen */
    BUSY_PERIOD_MS = 5, /* while something is under way */
    SEND_TRIES = 100,   /* a millisecond each */
    SETTLE_MS = 1000
};

/* ---- neighbours ---- */

static void add_once(int32_t *out, int *n, int32_t proc)
{
    for (int i = 0; i < *n; i++)
        if (out[i] == proc)
            return;
    out[(*n)++] = proc;
}

int cm_control_neighbours(const struct cm_domains *d, int proc, int32_t *out)
{
    int mine = d->of_proc[proc], n = 0;

    if (d->leader[mine] != proc)
        return 0;
    for (int dist = 1; dist < d->n; dist *= 2) {
        add_once(out, &n, d->leader[(mine + dist) % d->n]);
        add_once(out, &n, d->leader[(mine - dist + d->n) % d->n]);
    }
    return n;
}

static enum cm_status take_neighbours(struct cm_control *c)
{
    const struct cm_domains *d = c->a.domains;
    int32_t *procs = calloc((size_t)d->n + 2, sizeof(*procs));

    c->neighbours = calloc((size_t)d->n + 2, sizeof(*c->neighbours));
    if (procs != NULL && c->neighbours != NULL) {
        c->nneighbours = cm_control_neighbours(d, c->a.proc, procs);
        for (int i = 0; i < c->nneighbours; i++)
            c->neighbours[i] = (struct cm_neighbour){
                .proc = procs[i], .domain = d->of_proc[procs[i]], .told = UINT32_MAX};
    }
    free(procs);
    return procs != NULL && c->neighbours != NULL
               ? CM_OK
               : CM_FAIL(CM_ENOMEM, "no memory for the control of %d domains", d->n);
}

/* ---- sending ---- */

enum cm_status cm_control_send(struct cm_control *c, int proc, uint32_t type, const void *bytes,
                               size_t n)
{
    enum cm_status st = CM_EABORT;

    pthread_mutex_lock(&c->gate);
    if (c->proxy != NULL)
        st = cm_proxy_send(c->proxy, proc, type, bytes, n);
    pthread_mutex_unlock(&c->gate);
    return st;
}

static void nap(void)
{
    static const struct timespec ms = {.tv_nsec = CM_NS_PER_MS};

    nanosleep(&ms, NULL);
}

void cm_control_flood(struct cm_control *c, uint32_t type, const void *bytes, size_t n, int except)
{
    for (int i = 0; i < c->nneighbours; i++) {
        struct cm_neighbour *nb = &c->neighbours[i];
        enum cm_status st = CM_ENOMEM;

        if (nb->gone || nb->proc == except)
            continue;
        for (int tries = 0; st == CM_ENOMEM && tries < SEND_TRIES; tries++) {
            st = cm_control_send(c, nb->proc, type, bytes, n);
            if (st == CM_ENOMEM)
                nap();
        }
        nb->gone = st == CM_EABORT;
    }
}

/* Are all messages on their way? */
static bool told(struct cm_control *c)
{
    bool all;

    pthread_mutex_lock(&c->gate);
    all = c->proxy == NULL || cm_proxy_told(c->proxy);
    pthread_mutex_unlock(&c->gate);
    return all;
}

void cm_control_pause(struct cm_control *c)
{
    pthread_mutex_lock(&c->gate);
    if (c->proxy != NULL)
        cm_proxy_progress(c->proxy);
    pthread_mutex_unlock(&c->gate);
    nap();
}

/* ---- the box ---- */

void cm_control_post(struct cm_control *c, int proc, uint32_t type, const void *bytes, size_t n)
{
    struct cm_letter *l = malloc(sizeof(*l) + n);

    if (l == NULL)
        return; /* as if it had not come: all who wait have deadlines */
    *l = (struct cm_letter){.proc = proc, .type = type, .n = n};
    if (n > 0)
        memcpy(l->bytes, bytes, n);
    pthread_mutex_lock(&c->lock);
    if (c->last != NULL)
        c->last->next = l;
    else
        c->first = l;
    c->last = l;
    pthread_cond_signal(&c->news);
    pthread_mutex_unlock(&c->lock);
}

void cm_control_wake(struct cm_control *c)
{
    pthread_mutex_lock(&c->lock);
    pthread_cond_signal(&c->news);
    pthread_mutex_unlock(&c->lock);
}

static void on_lost(void *arg, int proc, enum cm_status st, const char *why)
{
    struct cm_control_loss loss = {.status = (uint32_t)st};

    strncpy(loss.why, why, sizeof(loss.why) - 1);
    cm_control_post(arg, proc, CM_CONTROL_LOST, &loss, sizeof(loss));
}

static void on_message(void *arg, int proc, uint32_t type, const void *bytes, size_t n)
{
    struct cm_control *c = arg;

    if (type != CM_CONTROL_TEAM)
        cm_control_post(c, proc, type, bytes, n);
    else if (!cm_control_hear_team(c, bytes, n))
        on_lost(c, proc, CM_ESYS, "sent a message of the team that makes no sense");
}

struct cm_proxy_events cm_control_events(struct cm_control *c)
{
    return (struct cm_proxy_events){.arg = c, .message = on_message, .lost = on_lost};
}

void cm_control_attach(struct cm_control *c, struct cm_proxy *p)
{
    if (p == NULL)
        atomic_store(&c->ending, true);
    pthread_mutex_lock(&c->gate);
    c->proxy = p;
    pthread_mutex_unlock(&c->gate);
    pthread_mutex_lock(&c->lock);
    c->attached = true; /* answers can be sent: letters may be opened */
    pthread_cond_signal(&c->news);
    pthread_mutex_unlock(&c->lock);
}

/* ---- the thread ---- */

static void open_letter(struct cm_control *c, const struct cm_letter *l)
{
    switch (l->type) {
    case CM_CONTROL_NOTE:
        cm_control_hear_note(c, l);
        break;
    case CM_CONTROL_WORD:
        cm_control_hear_word(c, l);
        break;
    case CM_CONTROL_QUESTION:
        cm_control_hear_question(c, l);
        break;
    case CM_CONTROL_ANSWER:
        cm_control_hear_answer(c, l);
        break;
    case CM_CONTROL_LOST:
        cm_control_hear_loss(c, l);
        break;
    default:
        break; /* nobody of this job sends it */
    }
}

static bool busy(const struct cm_control *c)
{
    bool passed = atomic_load(&c->shared->note.passed) != 0;

    return c->survey.active || c->lost.pending || (cm_control_aborted(c) != CM_OK && !passed);
}

/* Wait for letters, a call or the end of the period; takes all letters. False: stop. */
static bool await_news(struct cm_control *c, struct cm_letter **letters)
{
    int64_t until = cm_now_ns() + (busy(c) ? BUSY_PERIOD_MS : PERIOD_MS) * (int64_t)CM_NS_PER_MS;
    struct timespec ts = {.tv_sec = until / CM_NS_PER_S, .tv_nsec = until % CM_NS_PER_S};
    bool stop;

    pthread_mutex_lock(&c->lock);
    if (!c->stop && (c->first == NULL || !c->attached))
        pthread_cond_timedwait(&c->news, &c->lock, &ts);
    *letters = NULL;
    if (c->attached) {
        *letters = c->first;
        c->first = c->last = NULL;
    }
    stop = c->stop;
    pthread_mutex_unlock(&c->lock);
    return !stop;
}

static void *run(void *arg)
{
    struct cm_control *c = arg;
    struct cm_letter *letters;
    bool going;

    do {
        int64_t now;

        going = await_news(c, &letters);
        while (letters != NULL) {
            struct cm_letter *next = letters->next;

            if (going)
                open_letter(c, letters);
            free(letters);
            letters = next;
        }
        now = cm_now_ns();
        cm_control_tick_lost(c, now);
        if (c->leads) {
            cm_control_tick_survey(c, now);
            cm_control_tick_notes(c, now);
        }
    } while (going);
    return NULL;
}

/* ---- open and close ---- */

/* What is known of ranks elsewhere without asking. */
static void fill_copies(struct cm_control *c)
{
    for (int r = 0; r < c->a.domains->nranks; r++) {
        struct cm_diag *d = &cm_control_record(c, r)->diag;

        if (cm_local_of(c->a.layout, r) >= 0)
            continue;
        memcpy(d->host, c->a.infos[r].host, sizeof(d->host));
        atomic_store_explicit(&d->pid, (uint32_t)c->a.infos[r].pid, memory_order_relaxed);
        atomic_store_explicit(&d->proc, c->a.infos[r].proc, memory_order_relaxed);
        atomic_store_explicit(&d->waits_for, -1, memory_order_relaxed);
        atomic_store_explicit(&d->phase, CM_AT_SILENT, memory_order_relaxed);
    }
}

static void destroy(struct cm_control *c)
{
    while (c->first != NULL) {
        struct cm_letter *next = c->first->next;

        free(c->first);
        c->first = next;
    }
    cm_control_survey_free(c);
    free(c->neighbours);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->gate);
    free(c);
}

static void init(struct cm_control *c, const struct cm_control_args *a)
{
    pthread_condattr_t monotonic;

    c->a = *a;
    c->shared = a->base;
    c->leads = a->domains->leader[a->domains->mine] == a->proc;
    c->notes.key = UINT32_MAX;
    c->survey.ended_ns = INT64_MIN / 2;
    pthread_mutex_init(&c->gate, NULL);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

enum cm_status cm_control_open(const struct cm_control_args *a, struct cm_control **out)
{
    struct cm_control *c = calloc(1, sizeof(*c));
    enum cm_status st;
    int err;

    if (c == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for the control of %d domains", a->domains->n);
    init(c, a);
    st = take_neighbours(c);
    if (st == CM_OK)
        st = cm_control_survey_init(c);
    if (st == CM_OK && c->leads)
        fill_copies(c);
    if (st == CM_OK) {
        err = pthread_create(&c->thread, NULL, run, c);
        st = err == 0 ? CM_OK : CM_FAIL(CM_ESYS, "thread of the control: %s", strerror(err));
    }
    if (st != CM_OK) {
        destroy(c);
        return st;
    }
    *out = c;
    return CM_OK;
}

void cm_control_settle(struct cm_control *c)
{
    struct cm_abort_note *note = &c->shared->note;
    int64_t until = cm_now_ns() + SETTLE_MS * (int64_t)CM_NS_PER_MS;

    atomic_store(&c->ending, true);
    if (cm_control_aborted(c) == CM_OK)
        return;
    cm_control_pass_word(c);
    cm_control_wake(c);
    while ((atomic_load(&note->passed) == 0 || !told(c)) && cm_now_ns() < until)
        cm_control_pause(c);
    if (atomic_load(&note->passed) == 0)
        cm_control_say_alone(c);
    if (c->leads)
        atomic_store(&note->passed, 1);
}

void cm_control_close(struct cm_control *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_signal(&c->news);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    destroy(c);
}
