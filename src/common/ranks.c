/*
 * The ranks of a process: one thread each, from the first barrier to the
 * common verdict.
 *
 * Invariant: a rank leaves either in order, and then all ranks agree on the
 * status, or after the abort word was raised, and then that decides. In both
 * cases its record says CM_AT_DONE last.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "common/affinity.h"
#include "common/debug.h"
#include "common/job.h"

enum {
    SPINS = 4000, /* about 100 us: longer than a hand-over between running ranks */
    SPINS_OVERSUBSCRIBED = 20,
    STACK_BYTES = 4 << 20,
    LEAVE_MS = 1000
};

static struct cm_abort *abort_of(const struct cm_job *j)
{
    return &((struct cm_shared *)cm_segment_base(j->segment))->abort;
}

static void enter_phase(struct cm_rank *r, enum cm_phase_name phase)
{
    atomic_store_explicit(&r->waiter.diag->iter, 0, memory_order_relaxed);
    atomic_store_explicit(&r->waiter.diag->phase, phase, memory_order_relaxed);
}

/* The rank's record is complete before its thread exists: it may be the one to be reported. */
static void fill_diag(struct cm_diag *d, const struct cm_rank_info *info)
{
    memcpy(d->host, info->host, sizeof(d->host));
    atomic_store_explicit(&d->pid, (uint32_t)info->pid, memory_order_relaxed);
    atomic_store_explicit(&d->proc, info->proc, memory_order_relaxed);
    atomic_store_explicit(&d->waits_for, -1, memory_order_relaxed);
}

/* It speaks for the ranks that share memory with it. */
static int first_of_domain(const struct cm_world *w)
{
    return w->domains.ranks[w->domains.first[w->domains.mine]];
}

static struct cm_team team_of(const struct cm_job *j, struct cm_rank *r)
{
    return (struct cm_team){
        .rank = r->rank,
        .n = r->n,
        .waiter = &r->waiter,
        .base = r->base,
        .layout = r->layout,
        .control = r->rank == first_of_domain(&j->world) ? cm_fabric_control(j->fabric) : NULL,
    };
}

static void fill_rank(struct cm_job *j, struct cm_rank *r, int rank)
{
    const struct cm_world *w = &j->world;
    const struct cm_rank_info *info = &w->infos[rank];
    const int32_t *group = &w->group_first[info->group];

    *r = (struct cm_rank){
        .rank = rank,
        .n = w->n,
        .group = info->group,
        .ngroups = w->ngroups,
        .group_rank = info->group_rank,
        .group_n = group[1] - group[0],
        .group_world = w->members + group[0],
        .node_of = w->node_of,
        .topo = w->topo,
        .topo_gpu = w->topo_gpu,
        .opts = j->opts,
        .rules = w->rules,
        .infos = w->infos,
        .segment = j->segment,
        .layout = &j->layout,
        .base = cm_segment_base(j->segment),
        .watchdog = j->watchdog,
        .trace = &j->trace,
        .signal = cm_watchdog_signal(j->watchdog),
        .wire = j->wire->name,
        .network = cm_fabric_network(j->fabric),
        .pairs = cm_fabric_pairs(j->fabric),
        .bootstrap = &j->bootstrap,
        .library = j->has_library ? j->library : NULL,
        .oversubscribed = w->oversubscribed,
        .arena_bytes = j->arena_bytes,
        .backend = j->backend,
        .gpu_driver = w->driver,
        .gpu_runtime = w->runtime,
        .shared_gpus = w->shared_gpus,
        .no_gpu = w->no_gpu[0] != '\0' ? w->no_gpu : NULL,
    };
    if (j->backend != NULL)
        r->gpu = j->gpu[rank - w->first_of[j->boot.proc]];
    r->waiter = (struct cm_waiter){
        .rank = rank,
        .nranks = w->n,
        .spins = w->oversubscribed ? SPINS_OVERSUBSCRIBED : SPINS,
        .timeout_ns = j->setup_ns,
        .abort = abort_of(j),
        .diag = &cm_rank_shared(r->base, r->layout, rank)->diag,
        .diag_of = cm_waiter_diag,
        .base = r->base,
        .layout = r->layout,
        .remote = cm_fabric_remote(j->fabric),
    };
    r->team = team_of(j, r);
    fill_diag(r->waiter.diag, info);
    enter_phase(r, CM_AT_SETUP);
}

/* On the rank's own CPU, so that its memory comes from its own NUMA node. */
static enum cm_status rank_begin(const struct cm_job *j, struct cm_rank *r)
{
    enum cm_status st = r->backend != NULL ? r->backend->enter(&r->gpu) : CM_OK;

    if (st == CM_OK)
        st = cm_inject_before(r->inject, &r->waiter, r->rank, CM_AT_SETUP, 0);
    if (st == CM_OK)
        st =
            cm_segment_reserve(j->segment, cm_arena_at(&j->layout, r->rank), j->layout.arena_bytes);
    if (st == CM_OK)
        st = cm_team_barrier(&r->team);
    r->waiter.timeout_ns = j->rows_ns;
    if (st == CM_OK)
        cm_debug_rank(r);
    return st;
}

bool cm_status_is_orderly(enum cm_status st)
{
    return st == CM_OK || st == CM_EDATA || st == CM_ETRUNC;
}

/* Wrong data weighs more than a run cut short. */
static enum cm_status worse(enum cm_status a, enum cm_status b)
{
    if (a == CM_EDATA || b == CM_EDATA)
        return CM_EDATA;
    return a != CM_OK ? a : b;
}

/* The verdict of all ranks; CM_EABORT: look at the abort word. */
static enum cm_status rank_end(const struct cm_job *j, struct cm_rank *r, enum cm_status mine)
{
    uint32_t st = mine, *all = NULL;
    enum cm_status out;

    enter_phase(r, CM_AT_FINALIZE);
    r->waiter.timeout_ns = j->teardown_ns;
    out = cm_inject_before(r->inject, &r->waiter, r->rank, CM_AT_FINALIZE, 0);
    if (out == CM_OK) {
        all = calloc((size_t)r->n, sizeof(*all));
        out = all != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "no memory for %d ranks", r->n);
    }
    if (out == CM_OK)
        out = cm_team_gather(&r->team, &st, sizeof(st), all);
    for (int i = 0; cm_status_is_orderly(out) && i < r->n; i++)
        out = worse(out, (enum cm_status)all[i]);
    free(all);
    return out;
}

static void *rank_main(void *arg)
{
    struct cm_member *m = arg;
    struct cm_job *j = m->job;
    struct cm_rank *r = &m->r;
    enum cm_status st;

    cm_log_whoami(r->rank, r->infos[r->rank].host);
    if (j->world.cpu_of[r->rank] >= 0)
        cm_cpu_pin(j->world.cpu_of[r->rank]);
    st = rank_begin(j, r);
    if (st == CM_OK)
        st = j->body(r, j->arg);
    if (cm_status_is_orderly(st))
        st = rank_end(j, r, st);
    if (!cm_status_is_orderly(st))
        cm_abort_raise(r->waiter.abort, st, r->rank); /* logged by who failed first */
    enter_phase(r, CM_AT_DONE);
    m->status = st;
    return NULL;
}

static void fill_ranks(struct cm_job *j)
{
    for (int i = 0; i < j->local; i++) {
        struct cm_member *m = &j->members[i];
        struct cm_rank *r = &m->r;

        m->job = j;
        fill_rank(j, r, j->world.first_of[j->boot.proc] + i);
        m->inject = cm_inject_at(
            &j->inject, &(struct cm_inject_place){r->rank, r->group_world, r->group_n, r->node_of});
        r->inject = &m->inject;
        r->job_inject = &j->inject;
    }
}

static void start_ranks(struct cm_job *j)
{
    int first = j->world.first_of[j->boot.proc];
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    while (j->started < j->local && pthread_create(&j->members[j->started].thread, &attr, rank_main,
                                                   &j->members[j->started]) == 0)
        j->started++;
    pthread_attr_destroy(&attr);
    if (j->started < j->local && cm_abort_raise(abort_of(j), CM_ESYS, first + j->started))
        cm_log("cannot start the thread of rank %d", first + j->started);
    for (int i = j->started; i < j->local; i++)
        enter_phase(&j->members[i].r, CM_AT_DONE);
}

enum cm_status cm_ranks_run(struct cm_job *j)
{
    enum cm_status st;

    fill_ranks(j);
    cm_watchdog_ranks(j->watchdog, &(struct cm_watched){.segment = j->segment,
                                                        .world = &j->world,
                                                        .waiter = j->members[0].r.waiter,
                                                        .control = cm_fabric_control(j->fabric)});
    start_ranks(j);
    for (int i = 0; i < j->started; i++)
        pthread_join(j->members[i].thread, NULL);
    st = cm_abort_status(abort_of(j));
    return st != CM_OK ? st : j->members[0].status;
}

static bool has_left(const struct cm_job *j, int rank)
{
    const struct cm_waiter *w = &j->members[0].r.waiter;

    return cm_local_of(&j->layout, rank) < 0 ||
           atomic_load_explicit(&w->diag_of(w, rank)->phase, memory_order_relaxed) == CM_AT_DONE;
}

enum cm_status cm_ranks_status(const struct cm_job *j)
{
    return cm_abort_status(abort_of(j));
}

bool cm_ranks_left(const struct cm_job *j)
{
    static const struct timespec pause = {.tv_sec = 0, .tv_nsec = CM_NS_PER_MS};
    int rank = 0, n = j->world.n;

    if (cm_abort_status(abort_of(j)) == CM_OK)
        return true;
    for (int ms = 0; ms < LEAVE_MS && rank < n; ms++) {
        while (rank < n && has_left(j, rank))
            rank++;
        if (rank < n)
            nanosleep(&pause, NULL);
    }
    return rank == n;
}
