/*
 * The life of a process of the job: find the others, agree on the ranks, share
 * memory, run the ranks (ranks.c), end together.
 *
 * Invariant: every step that may fail in one process only is followed by an
 * agreement, so that all processes take the same way. Once memory is shared,
 * the abort word takes the place of agreements.
 */
#define _GNU_SOURCE
#include "common/launch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "common/debug.h"
#include "common/engine.h"
#include "common/job.h"
#include "common/launch_env.h"
#include "common/rendezvous.h"
#include "engine/tune.h"

enum {
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    SLOT_BYTES = 256 << 10,     /* stays in a core's second-level cache */
    SLOT_BYTES_NET = 512 << 10, /* between nodes: of long messages few go through slots */
    CHANNELS = 4,
    SETUP_S = 60,
    ROWS_S = 300,
    TEARDOWN_S = 30
};
/* Tear-down of a job that has failed: who is gone does not come, but all must be told. */
static const int64_t failed_ns = 3LL * CM_NS_PER_S;

static void set_deadlines(struct cm_job *j)
{
    double s = j->opts->run.timeout_s;
    int64_t all = (int64_t)(s * CM_NS_PER_S);

    j->setup_ns = s > 0 ? all : SETUP_S * (int64_t)CM_NS_PER_S;
    j->rows_ns = s > 0 ? all : ROWS_S * (int64_t)CM_NS_PER_S;
    j->teardown_ns = s > 0 ? all : TEARDOWN_S * (int64_t)CM_NS_PER_S;
}

/* ---- set-up ---- */

/* MPI is asked only if something launched us: on its own it may fail where nothing needs it. */
static enum cm_status choose_launcher(struct cm_job *j)
{
    static const struct cm_launcher *const launchers[] = {[CM_START_ALONE] = &cm_launcher_alone,
                                                          [CM_START_MPI] = &cm_launcher_mpi,
                                                          [CM_START_NET] = &cm_launcher_net};
    enum cm_start how = CM_START_ALONE;
    enum cm_status st =
        cm_rendezvous_choose(j->opts->net.rendezvous, &cm_launcher_mpi != NULL, &how);

    j->launcher = launchers[how];
    return st;
}

/* What a launcher takes to start is not a rank's fault: -T may lengthen this deadline only. */
static int64_t start_deadline(const struct cm_job *j)
{
    const int64_t least = SETUP_S * (int64_t)CM_NS_PER_S;

    return j->setup_ns > least ? j->setup_ns : least;
}

/* Nor is what a driver takes to wake its GPUs. */
static int64_t meeting_deadline(const struct cm_job *j)
{
    bool gpus = &cm_backend_cuda != NULL && j->opts->launch.backend != CM_BACKEND_HOST;

    return gpus ? start_deadline(j) : j->setup_ns;
}

/* Seconds since `since_ns`, which moves to now. */
static double lap(int64_t *since_ns)
{
    int64_t now = cm_now_ns(), ns = now - *since_ns;

    *since_ns = now;
    return (double)ns / CM_NS_PER_S;
}

static enum cm_status start_process(struct cm_job *j, int *argc, char ***argv)
{
    enum cm_status st = cm_watchdog_start(&j->watchdog);

    if (st != CM_OK)
        return st;
    st = choose_launcher(j);
    if (st != CM_OK)
        return st;
    cm_watchdog_expect(j->watchdog, "set-up (starting processes)", start_deadline(j),
                       CM_EXIT_TIMEOUT);
    st = j->launcher->start(argc, argv, j->opts, &j->boot);
    if (st != CM_OK)
        return st;
    j->has_library = j->launcher->library(&j->boot, j->library, sizeof(j->library));
    if (j->boot.nprocs > 1)
        return CM_OK;
    return cm_env_check_alone(j->has_library ? j->library : NULL, &cm_launcher_mpi != NULL);
}

static size_t slot_bytes(const struct cm_job *j)
{
    const struct cm_opts_engine *e = &j->opts->engine;
    size_t from_buffer = e->buffer / CM_PORT_SLOTS / 64 * 64;
    size_t usual = j->world.domains.n > 1 ? SLOT_BYTES_NET : SLOT_BYTES;
    size_t most = j->world.rules != NULL ? cm_tune_most_chunk(j->world.rules) : 0;

    if (e->chunk > 0)
        return (e->chunk + 63) / 64 * 64;
    if (from_buffer > 0)
        return from_buffer;
    return most > usual ? most : usual;
}

/* Bytes of the rank's buffers, and what of them lies in the segment. */
static enum cm_status plan_arenas(struct cm_job *j, size_t *host_bytes)
{
    enum cm_status st = j->arena(j->opts, j->world.n, &j->room, j->arg, &j->arena_bytes);
    size_t unit = j->arena_bytes < HUGE_PAGE ? PAGE : HUGE_PAGE;

    if (st != CM_OK)
        return st;
    if (j->arena_bytes > SIZE_MAX - unit)
        return CM_FAIL(CM_ENOMEM, "buffers of %zu bytes exceed the address space", j->arena_bytes);
    j->arena_bytes = (j->arena_bytes + unit - 1) / unit * unit;
    return cm_job_host_bytes(j, host_bytes);
}

/* The wire inside of each domain; between them --wire names another. */
static enum cm_status choose_wire(struct cm_job *j)
{
    const struct cm_domains *d = &j->world.domains;
    const char *forced = j->opts->launch.wire;
    bool inside = forced != NULL && cm_net_wire_find(forced) == NULL;

    if (inside && d->n > 1)
        return CM_FAIL(CM_EUNSUP,
                       "--wire %s needs shared memory, but processes 0 (host %s) and %d (host %s) "
                       "have none together",
                       forced, j->world.infos[0].host, (int)d->leader[1],
                       j->world.infos[j->world.first_of[d->leader[1]]].host);
    j->wire = inside ? cm_wire_find(forced) : cm_wire_choose(&j->domain);
    if (j->wire == NULL || !j->wire->reaches(&j->domain))
        return CM_FAIL(CM_EUNSUP, "--wire %s cannot connect %d processes",
                       forced != NULL ? forced : "auto", j->domain.nprocs);
    return CM_OK;
}

static enum cm_status check_engines(const struct cm_job *j)
{
    return cm_engines_check(j->opts, &(struct cm_engine_job){.ranks = j->world.n,
                                                             .procs = j->boot.nprocs,
                                                             .mpi = j->launcher == &cm_launcher_mpi,
                                                             .gpus = j->backend != NULL,
                                                             .shared_gpus = j->world.shared_gpus});
}

/* Size of everything that is shared, and the wire that shares it. */
static enum cm_status plan_memory(struct cm_job *j)
{
    const struct cm_domains *d = &j->world.domains;
    const struct cm_opts_engine *e = &j->opts->engine;
    size_t host_bytes = 0, slot = slot_bytes(j);
    enum cm_status st = cm_inject_parse(j->opts->inject, j->world.n, &j->inject);

    if (st == CM_OK)
        st = cm_inject_check(&j->inject, j->opts->inject, j->world.node_of, j->world.n);
    if (st == CM_OK)
        st = check_engines(j);
    if (st == CM_OK)
        st = choose_wire(j);
    if (st == CM_OK)
        st = plan_arenas(j, &host_bytes);
    if (st == CM_OK)
        st = cm_job_slot_bytes(j, &slot);
    if (st != CM_OK)
        return st;
    j->layout = (struct cm_layout){
        .nranks = j->world.n,
        .local_of = d->n > 1 ? d->local_of : NULL,
        .nlocal = cm_domains_local(d),
        .channels = e->channels > 0 ? e->channels : CHANNELS,
        .depth = CM_PORT_SLOTS,
        .slot_bytes = slot,
        .arena_bytes = host_bytes,
    };
    return cm_layout_fill(&j->layout);
}

static enum cm_status open_debug(struct cm_job *j)
{
    const struct cm_world *w = &j->world;

    return cm_debug_open(&j->opts->report, &w->infos[w->first_of[j->boot.proc]], &j->trace);
}

/* A step whose outcome is the same everywhere: process 0 goes first and speaks for all. */
static enum cm_status leader_first(struct cm_job *j, enum cm_status (*step)(struct cm_job *j))
{
    bool leader = j->boot.proc == 0;
    enum cm_status st = cm_boot_agree(&j->boot, leader ? step(j) : CM_OK);

    if (st != CM_OK)
        return st;
    return cm_boot_agree(&j->boot, leader ? CM_OK : step(j));
}

static enum cm_status new_members(struct cm_job *j)
{
    enum cm_status st = CM_OK;

    j->local = j->world.first_of[j->boot.proc + 1] - j->world.first_of[j->boot.proc];
    j->members = calloc((size_t)j->local, sizeof(*j->members));
    if (j->members == NULL)
        st = CM_FAIL(CM_ENOMEM, "no memory for %d ranks", j->local);
    return cm_boot_agree(&j->boot, st);
}

/* Each domain has a segment of its own; if one cannot have it, the job ends. */
static enum cm_status open_segment(struct cm_job *j)
{
    enum cm_status st = cm_segment_open(j->wire, &j->domain, &j->layout, j->setup_ns, &j->segment);

    if (j->world.domains.n > 1)
        st = cm_boot_agree(&j->boot, cm_domain_boot_settle(&j->domain_ctx, CM_WIRE_GATHERS, st));
    return st;
}

static enum cm_status open_fabric(struct cm_job *j)
{
    const struct cm_fabric_args a = {.boot = &j->boot,
                                     .opts = j->opts,
                                     .world = &j->world,
                                     .base = cm_segment_base(j->segment),
                                     .layout = &j->layout,
                                     .setup_ns = j->setup_ns,
                                     .rows_ns = j->rows_ns};

    return j->world.domains.n > 1 ? cm_fabric_open(&a, &j->fabric) : CM_OK;
}

static enum cm_status share_memory(struct cm_job *j)
{
    enum cm_status st = cm_job_room(j, &j->room);

    j->domain_ctx = (struct cm_domain_boot){.world = &j->boot, .domains = &j->world.domains};
    j->domain = j->world.domains.n > 1 ? cm_domain_boot(&j->domain_ctx) : j->boot;
    if (st == CM_OK)
        st = leader_first(j, plan_memory);
    if (st == CM_OK)
        st = leader_first(j, open_debug);
    if (st == CM_OK)
        st = open_segment(j);
    return st == CM_OK ? cm_job_fill_gpus(j) : st;
}

static enum cm_status set_up(struct cm_job *j, int *argc, char ***argv)
{
    int64_t at = cm_now_ns();
    enum cm_status st = start_process(j, argc, argv);

    if (st != CM_OK)
        return st;
    j->bootstrap.start_s = lap(&at);
    cm_watchdog_expect(j->watchdog, "set-up (meeting the other processes)", meeting_deadline(j),
                       CM_EXIT_TIMEOUT);
    st = cm_world_gather(&j->boot, j->opts, &j->world);
    if (st == CM_OK)
        st = new_members(j);
    if (st == CM_OK)
        st = cm_job_open_gpus(j);
    cm_watchdog_expect(j->watchdog, "set-up (sharing memory)", j->setup_ns, CM_EXIT_TIMEOUT);
    if (st == CM_OK)
        st = share_memory(j);
    j->bootstrap.discover_s = lap(&at);
    /* The neighbours have setup_ns to come, and are named when they do not. */
    cm_watchdog_expect(j->watchdog, "set-up (connecting with other nodes)", 2 * j->setup_ns,
                       CM_EXIT_TIMEOUT);
    if (st == CM_OK)
        st = open_fabric(j);
    j->bootstrap.connect_s = lap(&at);
    return st;
}

/* ---- the end ---- */

/* Do all ranks come to their end by themselves? A signal ends them in order, or by an abort. */
static bool ends_orderly(const struct cm_job *j, enum cm_status st)
{
    return cm_status_is_orderly(st) && (j->fabric == NULL || cm_ranks_status(j) == CM_OK);
}

static void expect_end(const struct cm_job *j, enum cm_status st)
{
    if (ends_orderly(j, st))
        cm_watchdog_expect(j->watchdog, "tear-down (ending processes)", j->teardown_ns,
                           CM_EXIT_TIMEOUT);
    else /* why has been said */
        cm_watchdog_expect(j->watchdog, NULL, failed_ns, cm_status_exit(st));
}

static enum cm_exit tear_down(struct cm_job *j, enum cm_status st)
{
    enum cm_exit code = cm_status_exit(st);
    bool started = j->boot.gather != NULL;
    bool leave = j->started == 0 || cm_ranks_left(j);

    if (started)
        expect_end(j, st);
    cm_fabric_close(j->fabric, ends_orderly(j, st), cm_now_ns() + j->teardown_ns / 2);
    if (j->fabric != NULL && cm_ranks_status(j) != CM_OK)
        code = cm_status_exit(cm_ranks_status(j)); /* by now the same in all domains */
    if (started && !leave)
        j->launcher->kill(&j->boot, code);
    cm_trace_close(&j->trace);
    cm_job_close_gpus(j);
    cm_segment_close(j->segment);
    cm_world_free(&j->world);
    free(j->members);
    if (started)
        code = j->launcher->finish(&j->boot, code);
    cm_watchdog_stop(j->watchdog);
    return code;
}

enum cm_exit cm_launch(int *argc, char ***argv, const struct cm_opts *o, cm_arena_fn *arena,
                       cm_rank_fn *body, void *arg)
{
    struct cm_job j = {.opts = o, .arena = arena, .body = body, .arg = arg};
    enum cm_status st;

    set_deadlines(&j);
    st = set_up(&j, argc, argv);
    if (st == CM_OK)
        st = cm_ranks_run(&j);
    return tear_down(&j, st);
}
