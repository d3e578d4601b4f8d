/*
 * The report of a time-out. All it knows are the diagnostic records in shared
 * memory, which live ranks renew; so it also works for ranks that are
 * stopped, dead, or busy elsewhere.
 *
 * A rank whose heartbeat is fresh waits: it is a victim, and only counted. The
 * others did not arrive: they are listed one by one. If all wait, those with
 * the fewest operations are behind.
 */
#include "base/stuck.h"

#include <stdarg.h>
#include <stdio.h>
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

static void add_victims(struct cm_text *t, const struct cm_waiter *w, int64_t now)
{
    int waiting = 0;

    for (int r = 0; r < w->nranks; r++)
        waiting += cm_diag_waits(w->diag_of(w, r), now, fresh_of(w));
    add(t, "  %d of %d ranks wait:", waiting, w->nranks);
    for (int r = 0, shown = 0; r < w->nranks; r++) {
        const struct cm_diag *d = w->diag_of(w, r);

        if (!cm_diag_waits(d, now, fresh_of(w)))
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

/* Is rank r to be named? all_wait: nobody is absent, so the slowest are. */
static bool straggles(const struct cm_waiter *w, int r, int64_t now, bool all_wait)
{
    const struct cm_diag *d = w->diag_of(w, r);
    uint64_t most, least;

    if (!all_wait)
        return !cm_diag_waits(d, now, fresh_of(w));
    least = fewest_ops(w, &most);
    return least < most && ops_of(d) == least;
}

static void add_stragglers(struct cm_text *t, const struct cm_waiter *w, int64_t now)
{
    bool all_wait = true;
    int found = 0;

    for (int r = 0; r < w->nranks; r++)
        all_wait = all_wait && cm_diag_waits(w->diag_of(w, r), now, fresh_of(w));
    for (int r = 0; r < w->nranks; r++) {
        const struct cm_diag *d = w->diag_of(w, r);

        if (!straggles(w, r, now, all_wait) || ++found > MAX_STRAGGLERS)
            continue;
        add(t, "  %s: rank %d host %.63s pid %u: ", all_wait ? "behind" : "did not arrive", r,
            d->host, get32(&d->pid));
        add_place(t, d);
        add(t, "\n");
    }
    if (found > MAX_STRAGGLERS)
        add(t, "  and %d more ranks\n", found - MAX_STRAGGLERS);
    if (found == 0)
        add(t, "  all ranks wait in the same operation\n");
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
    add_victims(out, w, now);
    add_stragglers(out, w, now);
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
    add(out, "; rank %d runs ", peer);
    add_operation(out, w->diag_of(w, peer));
    add(out, "\n");
}

void cm_text_write(struct cm_text *t)
{
    t->buf[t->len > 0 ? t->len - 1 : 0] = '\n'; /* also if it was cut */
    if (write(STDERR_FILENO, t->buf, t->len) < 0)
        return; /* nowhere left to complain */
}
