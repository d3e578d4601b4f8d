/*
 * The report of a time-out. All it knows are the diagnostic records in shared
 * memory, which live ranks renew; so it also works for ranks that are
 * stopped, dead, or busy elsewhere.
 *
 * A rank whose heartbeat is fresh waits: it is a victim, and only counted. The
 * others did not arrive: they are listed one by one. If all wait, those with
 * the fewest operations are behind. Of ranks on other nodes there are copies of
 * the records, from a survey; those of a process that did not answer share a line.
 */
#include "base/stuck.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dtype.h"

enum {
    FRESH_NS = 250 * CM_NS_PER_MS, /* far above the longest sleep between two polls */
    MAX_VICTIMS = 8,
    MAX_STRAGGLERS = 16
};

static void add(struct cm_text *t, const char *fmt, ...) CM_PRINTF(2, 3);
static void add(struct cm_text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(t->buf + t->len, sizeof(t->buf) - t->len, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    t->len += (size_t)n;
    if (t->len >= sizeof(t->buf))
        t->len = sizeof(t->buf) - 1;
}

static uint32_t get32(const _Atomic uint32_t *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

static int64_t get64(const _Atomic int64_t *p)
{
    return atomic_load_explicit(p, memory_order_relaxed);
}

static uint64_t ops_of(const struct cm_diag *d)
{
    return atomic_load_explicit(&d->op, memory_order_relaxed);
}

static bool silent(const struct cm_diag *d)
{
    return get32(&d->phase) == CM_AT_SILENT;
}

static int process_of(const struct cm_diag *d)
{
    return atomic_load_explicit(&d->proc, memory_order_relaxed);
}

bool cm_diag_waits(const struct cm_diag *d, int64_t now_ns, int64_t fresh_ns)
{
    return atomic_load_explicit(&d->waits_for, memory_order_relaxed) != -1 &&
           now_ns - get64(&d->beat_ns) <= fresh_ns;
}

static int64_t fresh_of(const struct cm_waiter *w)
{
    return w->timeout_ns / 2 < FRESH_NS ? w->timeout_ns / 2 : FRESH_NS;
}

static const char *coll_name(uint32_t coll)
{
    return coll < CM_NCOLLS ? cm_colls[coll].name : "?";
}

/* "all_reduce of 1024 bytes, phase timed, iteration 5, operation 17" */
static void add_place(struct cm_text *t, const struct cm_diag *d)
{
    uint32_t phase = get32(&d->phase);

    if (ops_of(d) != 0)
        add(t, "%s of %llu bytes, ", coll_name(get32(&d->coll)),
            (unsigned long long)atomic_load_explicit(&d->bytes, memory_order_relaxed));
    add(t, "phase %s, iteration %lld, operation %llu", cm_phase_text(phase),
        (long long)get64(&d->iter), (unsigned long long)ops_of(d));
}

static void add_peer(struct cm_text *t, int32_t peer)
{
    if (peer >= 0)
        add(t, "rank %d", (int)peer);
    else
        add(t, "several");
}

/* `lost`: the process of which it is known that it is gone, whatever its ranks last did; or -1. */
static bool waits(const struct cm_waiter *w, int r, int64_t now, int lost)
{
    const struct cm_diag *d = w->diag_of(w, r);

    return (lost < 0 || process_of(d) != lost) && cm_diag_waits(d, now, fresh_of(w));
}

static void add_victims(struct cm_text *t, const struct cm_waiter *w, int64_t now, int lost)
{
    int waiting = 0;

    for (int r = 0; r < w->nranks; r++)
        waiting += waits(w, r, now, lost);
    add(t, "  %d of %d ranks wait:", waiting, w->nranks);
    for (int r = 0, shown = 0; r < w->nranks; r++) {
        const struct cm_diag *d = w->diag_of(w, r);

        if (!waits(w, r, now, lost))
            continue;
        if (shown == MAX_VICTIMS) {
            add(t, " and %d more", waiting - shown);
            break;
        }
        add(t, "%s %d for ", shown++ > 0 ? "," : "", r);
        add_peer(t, atomic_load_explicit(&d->waits_for, memory_order_relaxed));
    }
    add(t, "\n");
}

static uint64_t fewest_ops(const struct cm_waiter *w, uint64_t *most)
{
    uint64_t least = UINT64_MAX;

    *most = 0;
    for (int r = 0; r < w->nranks; r++) {
        uint64_t ops = ops_of(w->diag_of(w, r));

        least = ops < least ? ops : least;
        *most = ops > *most ? ops : *most;
    }
    return least;
}

static bool is_slowest(const struct cm_waiter *w, int r)
{
    uint64_t most, least = fewest_ops(w, &most);

    return least < most && ops_of(w->diag_of(w, r)) == least;
}

static bool all_wait(const struct cm_waiter *w, int64_t now, int lost)
{
    for (int r = 0; r < w->nranks; r++)
        if (!waits(w, r, now, lost))
            return false;
    return true;
}

/* Is rank r to be named? all: nobody is absent, so the slowest are. */
static bool straggles(const struct cm_waiter *w, int r, int64_t now, int lost)
{
    return all_wait(w, now, lost) ? is_slowest(w, r) : !waits(w, r, now, lost);
}

/* The last rank of those of one process that do not answer, from `rank` on. */
static int end_of_silence(const struct cm_waiter *w, int rank)
{
    int proc = process_of(w->diag_of(w, rank)), last = rank;

    while (last + 1 < w->nranks && silent(w->diag_of(w, last + 1)) &&
           process_of(w->diag_of(w, last + 1)) == proc)
        last++;
    return last;
}

static void add_silence(struct cm_text *t, const struct cm_diag *d, int first, int last)
{
    add(t, "  process %d (rank", process_of(d));
    if (first == last)
        add(t, " %d", first);
    else
        add(t, "s %d-%d", first, last);
    add(t, ") on host %.63s does not answer\n", d->host);
}

/* `lost`: a process of which it is known that it does not answer, or -1. Returns how many lines. */
static int add_stragglers(struct cm_text *t, const struct cm_waiter *w, int64_t now, int lost)
{
    bool all = all_wait(w, now, lost);
    int found = 0, cut = 0;

    for (int r = 0, last; r < w->nranks; r = last + 1) {
        const struct cm_diag *d = w->diag_of(w, r);

        last = silent(d) ? end_of_silence(w, r) : r;
        if (silent(d) ? process_of(d) == lost : !straggles(w, r, now, lost))
            continue;
        if (++found > MAX_STRAGGLERS) {
            cut += last - r + 1;
        } else if (silent(d)) {
            add_silence(t, d, r, last);
        } else {
            add(t, "  %s: rank %d host %.63s pid %u: ", all ? "behind" : "did not arrive", r,
                d->host, get32(&d->pid));
            add_place(t, d);
            add(t, "\n");
        }
    }
    if (cut > 0)
        add(t, "  and %d more ranks\n", cut);
    return found;
}

void cm_stuck_compose(const struct cm_waiter *w, int peer, int64_t waited_ns, struct cm_text *out)
{
    int64_t now = cm_now_ns();

    out->len = 0;
    add(out, "rank %d host %.63s: time-out after %.1f s, waiting for ", w->rank, w->diag->host,
        (double)waited_ns / CM_NS_PER_S);
    add_peer(out, peer);
    add(out, ": ");
    add_place(out, w->diag);
    add(out, "\n");
    add_victims(out, w, now, -1);
    if (add_stragglers(out, w, now, -1) == 0)
        add(out, "  all ranks wait in the same operation\n");
}

void cm_lost_compose(const struct cm_waiter *w, int proc, const char *what, struct cm_text *out)
{
    int64_t now = cm_now_ns();

    out->len = 0;
    add(out, "%s\n  seen by rank %d host %.63s: ", what, w->rank, w->diag->host);
    add_place(out, w->diag);
    add(out, "\n");
    add_victims(out, w, now, proc);
    add_stragglers(out, w, now, proc);
}

/* "all_reduce float sum, 1024 elements, root 0" */
static void add_operation(struct cm_text *t, const struct cm_diag *d)
{
    uint32_t coll = get32(&d->sig_parts[0]), dtype = get32(&d->sig_parts[1]);
    uint32_t op = get32(&d->sig_parts[2]);
    uint64_t count = (uint64_t)get32(&d->sig_parts[5]) << 32 | (uint64_t)get32(&d->sig_parts[4]);

    add(t, "%s %s", coll_name(coll), dtype < CM_NDTYPES ? cm_dtypes[dtype].name : "?");
    if (coll < CM_NCOLLS && cm_colls[coll].reduces)
        add(t, " %s", op < CM_NOPS ? cm_ops[op].name : "?");
    add(t, ", %llu elements", (unsigned long long)count);
    if (coll < CM_NCOLLS && cm_colls[coll].rooted)
        add(t, ", root %d", (int)get32(&d->sig_parts[3]));
}

void cm_mismatch_compose(const struct cm_waiter *w, int peer, struct cm_text *out)
{
    out->len = 0;
    add(out, "rank %d host %.63s: ranks disagree about operation %llu: rank %d runs ", w->rank,
        w->diag->host, (unsigned long long)ops_of(w->diag), w->rank);
    add_operation(out, w->diag);
    add(out, "; rank %d ", peer);
    if (silent(w->diag_of(w, peer))) {
        add(out, "runs another one, and does not answer\n");
        return;
    }
    add(out, "runs ");
    add_operation(out, w->diag_of(w, peer));
    add(out, "\n");
}

void cm_text_write(struct cm_text *t)
{
    t->buf[t->len > 0 ? t->len - 1 : 0] = '\n'; /* also if it was cut */
    if (write(STDERR_FILENO, t->buf, t->len) < 0)
        return; /* nowhere left to complain */
}

bool cm_abort_note(struct cm_shared *s, enum cm_status st, int rank, const struct cm_text *t)
{
    size_t n = t->len < CM_NOTE ? t->len : CM_NOTE;
    bool first;

    atomic_fetch_add(&s->note.writers, 1); /* first: who sees the word set knows of the text */
    first = cm_abort_raise(&s->abort, st, rank);
    if (first && n > 0) {
        memcpy(s->note.text, t->buf, n);
        s->note.text[n - 1] = '\n'; /* also if it was cut */
        atomic_store_explicit(&s->note.bytes, (uint32_t)n, memory_order_release);
    }
    atomic_fetch_sub(&s->note.writers, 1);
    return first;
}

enum cm_status cm_abort_because(const struct cm_waiter *w, enum cm_status st, struct cm_text *t)
{
    bool first;

    if (w->remote != NULL)
        return cm_abort_note(w->base, st, w->rank, t) ? st : CM_EABORT;
    first = cm_abort_raise(w->abort, st, w->rank);
    if (first)
        cm_text_write(t);
    return first ? st : CM_EABORT;
}
