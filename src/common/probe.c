/*
 * Rounds of disjoint pairs; within a pair a few batches of exchanges, of which
 * the median counts: whoever lost its core for a while spoils a batch, no more.
 *
 * A flag counts exchanges and never goes back within a probe, so a rank may be
 * one exchange ahead of its partner and is understood. All flags are set to 0
 * before a barrier; rounds begin with one, so that partners of the last round
 * have read what they wait for.
 */
#include "common/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "common/report.h"
#include "common/stats.h"

enum { BATCHES = 15, EXCHANGES = 40 };

static _Atomic uint64_t *flag_of(const struct cm_rank *r, int rank)
{
    return (void *)((char *)r->base + cm_arena_at(r->layout, rank));
}

int cm_probe_partner(int rank, int n, int round)
{
    int seats = n + n % 2, turning = seats - 1, partner;

    /* The last seat stays where it is; an odd number of ranks leaves it empty. */
    if (rank == seats - 1)
        partner = round * (seats / 2) % turning;
    else
        partner = ((round - rank) % turning + turning) % turning;
    if (partner == rank)
        partner = seats - 1;
    return partner < n ? partner : -1;
}

/* Both ranks of a pair call it; in ns. */
static enum cm_status exchange(struct cm_rank *r, int partner, uint64_t *count, double *ns)
{
    _Atomic uint64_t *mine = flag_of(r, r->rank), *theirs = flag_of(r, partner);
    double batches[BATCHES];
    enum cm_status st = CM_OK;

    for (int b = -1; b < BATCHES && st == CM_OK; b++) { /* the first one only warms up */
        int64_t start = cm_now_ns();

        for (int i = 0; i < EXCHANGES && st == CM_OK; i++) {
            struct cm_spin spin = cm_spin_start();

            atomic_store_explicit(mine, ++*count, memory_order_release);
            while (st == CM_OK && atomic_load_explicit(theirs, memory_order_acquire) < *count)
                st = cm_spin(&spin, &r->waiter, partner);
        }
        if (b >= 0)
            batches[b] = (double)(cm_now_ns() - start) / EXCHANGES;
    }
    if (st == CM_OK)
        *ns = cm_stats_of(batches, BATCHES).p50;
    return st;
}

static int rounds_of(int n)
{
    int all = n + n % 2 - 1;

    return all < CM_PROBE_ROUNDS ? all : CM_PROBE_ROUNDS;
}

/* Do two ranks share the lines that they would exchange? */
static bool shares(const struct cm_rank *r, int other)
{
    return other >= 0 && cm_local_of(r->layout, r->rank) >= 0 && cm_local_of(r->layout, other) >= 0;
}

/* ns[round]: with this round's partner; 0: rested. All take part in the barriers. */
static enum cm_status run_rounds(struct cm_rank *r, double *ns)
{
    uint64_t *count = &(uint64_t){0};
    enum cm_status st = CM_OK;

    atomic_store_explicit(flag_of(r, r->rank), 0, memory_order_relaxed);
    for (int round = 0; round < rounds_of(r->n) && st == CM_OK; round++) {
        int partner = cm_probe_partner(r->rank, r->n, round);

        /* Of as many exchanges as all others, whether it had a partner or not */
        *count = (uint64_t)round * (BATCHES + 1) * EXCHANGES;
        st = cm_team_barrier(&r->team);
        if (st == CM_OK && shares(r, partner))
            st = exchange(r, partner, count, &ns[round]);
    }
    return st;
}

static void add_pair(struct cm_probe *p, int a, int b, double ns)
{
    p->least_ns = p->pairs == 0 || ns < p->least_ns ? ns : p->least_ns;
    p->most_ns = ns > p->most_ns ? ns : p->most_ns;
    if (p->pairs < CM_PROBE_PAIRS)
        p->pair[p->pairs] = (struct cm_probe_pair){a, b, ns};
    p->pairs++;
}

/* `all`: of every rank, by rounds. The lower rank's figure stands for a pair. */
static void sum_up(int n, const double *all, struct cm_probe *out)
{
    for (int rank = 0; rank < n; rank++) {
        for (int round = 0; round < rounds_of(n); round++) {
            int partner = cm_probe_partner(rank, n, round);
            double ns = all[rank * CM_PROBE_ROUNDS + round];

            if (partner > rank && ns > 0)
                add_pair(out, rank, partner, ns);
        }
    }
    out->listed = out->pairs <= CM_PROBE_PAIRS ? out->pairs : 0;
    if (out->pairs == 0)
        out->why = "no two ranks share memory";
}

enum cm_status cm_probe_run(struct cm_rank *r, struct cm_probe *out)
{
    double mine[CM_PROBE_ROUNDS] = {0}, *all;
    bool crowded = false;
    enum cm_status st = cm_team_or(&r->team, r->oversubscribed, &crowded);

    *out = (struct cm_probe){.why = NULL};
    if (r->backend != NULL)
        out->why = "ranks are on GPUs";
    else if (r->n == 1)
        out->why = "there is one rank";
    else if (crowded)
        out->why = "more ranks than cores";
    if (st != CM_OK || out->why != NULL)
        return st;
    all = malloc((size_t)r->n * sizeof(mine));
    if (all == NULL)
        return CM_FAIL(CM_ENOMEM, "probes of %d ranks", r->n);
    st = run_rounds(r, mine);
    if (st == CM_OK)
        st = cm_team_gather(&r->team, mine, sizeof(mine), all);
    if (st == CM_OK)
        sum_up(r->n, all, out);
    free(all);
    return st;
}

/* Where a report may be ended by another thread meanwhile. */
struct second {
    struct cm_probe found;
    struct cm_probes *probes;
};

static enum cm_status note_second(void *arg)
{
    const struct second *s = arg;

    s->probes->after = s->found;
    return CM_OK;
}

enum cm_status cm_probe_again(struct cm_rank *r, struct cm_report *report, struct cm_probes *probes)
{
    struct second s = {.probes = probes};
    enum cm_status st = cm_probe_run(r, &s.found);

    if (st == CM_OK && report != NULL)
        st = cm_report_change(report, note_second, &s);
    return st;
}

const char *cm_probe_class(const struct cm_probe *p)
{
    if (p->pairs == 0)
        return NULL;
    if (p->most_ns < CM_PROBE_NEAR_NS)
        return "near";
    return p->least_ns < CM_PROBE_NEAR_NS ? "mixed" : "far";
}

const char *cm_probes_tag(const struct cm_probes *p)
{
    const char *before = cm_probe_class(&p->before), *after = cm_probe_class(&p->after);

    if (before == NULL || after == NULL)
        return NULL;
    return strcmp(before, after) == 0 ? before : "moved";
}
