/*
 * A neighbour is lost: after a moment in which the real reason may come from
 * elsewhere (a process that ends after an abort is lost as well), and after a survey,
 * report it and end the job.
 *
 * Invariant: of several losses the first is reported. Nothing here waits: each
 * step is left to the next tick.
 */
#include <stdio.h>
#include <string.h>

#include "base/stuck.h"
#include "common/control_int.h"
#include "common/launch.h"

static const int64_t moment_ns = 200LL * CM_NS_PER_MS;
static const int64_t spare_ns = 500LL * CM_NS_PER_MS; /* beyond an answer: the leader is gone too */

void cm_control_hear_loss(struct cm_control *c, const struct cm_letter *l)
{
    for (int i = 0; i < c->nneighbours; i++)
        if (c->neighbours[i].proc == l->proc)
            c->neighbours[i].gone = true;
    if (c->lost.pending || atomic_load(&c->ending) || cm_control_aborted(c) != CM_OK)
        return;
    c->lost = (struct cm_control_lost){
        .pending = true, .proc = l->proc, .due_ns = cm_now_ns() + moment_ns};
    memcpy(&c->lost.what, l->bytes, sizeof(c->lost.what));
}

void cm_control_died(struct cm_control *c, int proc)
{
    const struct cm_control_loss loss = {.status = CM_ESYS, .why = "died"};

    cm_control_post(c, proc, CM_CONTROL_LOST, &loss, sizeof(loss));
}

void cm_process_text(const struct cm_rank_info *infos, int n, int proc, char *out, size_t size)
{
    int first = 0, last;
    char ranks[32];

    while (first < n - 1 && infos[first].proc != proc)
        first++;
    for (last = first; last + 1 < n && infos[last + 1].proc == proc;)
        last++;
    if (first == last)
        snprintf(ranks, sizeof(ranks), "rank %d", first);
    else
        snprintf(ranks, sizeof(ranks), "ranks %d-%d", first, last);
    snprintf(out, size, "process %d (%s, pid %d) on host %s", proc, ranks, (int)infos[first].pid,
             infos[first].host);
}

/* If it spoke for others of its domain, their silence is not their fault. */
static void excuse(struct cm_control *c)
{
    const struct cm_domains *d = c->a.domains;
    int domain = d->of_proc[c->lost.proc];

    if (d->leader[domain] != c->lost.proc)
        return;
    for (int i = d->first[domain]; i < d->first[domain + 1]; i++)
        atomic_store_explicit(&cm_control_record(c, d->ranks[i])->diag.proc, c->lost.proc,
                              memory_order_relaxed);
}

static void report(struct cm_control *c)
{
    struct cm_waiter w = {.nranks = c->a.domains->nranks,
                          .timeout_ns = c->a.timeout_ns,
                          .diag_of = cm_waiter_diag,
                          .base = c->a.base,
                          .layout = c->a.layout};
    char who[CM_TEXT / 2], what[CM_TEXT];
    struct cm_text text;

    while (w.rank < w.nranks - 1 && c->a.infos[w.rank].proc != c->a.proc)
        w.rank++;
    w.diag = cm_waiter_diag(&w, w.rank);
    excuse(c);
    cm_process_text(c->a.infos, w.nranks, c->lost.proc, who, sizeof(who));
    snprintf(what, sizeof(what), "%s %s", who, c->lost.what.why);
    cm_lost_compose(&w, c->lost.proc, what, &text);
    cm_abort_note(c->shared, (enum cm_status)c->lost.what.status, w.rank, &text);
}

void cm_control_tick_lost(struct cm_control *c, int64_t now)
{
    struct cm_control_lost *lost = &c->lost;

    if (!lost->pending)
        return;
    if (atomic_load(&c->ending) || cm_control_aborted(c) != CM_OK) {
        lost->pending = false;
    } else if (lost->asked && (cm_control_served(c, lost->ticket) || now >= lost->due_ns)) {
        report(c);
        lost->pending = false;
    } else if (!lost->asked && now >= lost->due_ns) {
        lost->asked = true;
        lost->ticket = cm_control_ask(c);
        lost->due_ns = now + cm_control_patience(c) + spare_ns;
    }
}
