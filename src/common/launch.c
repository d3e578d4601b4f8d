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
#include "common/job.h"
#include "common/launch_env.h"

enum {
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    SLOT_BYTES = 256 << 10, /* stays in a core's second-level cache */
    CHANNELS = 4,
    SETUP_S = 60,
    ROWS_S = 300,
    TEARDOWN_S = 30
};

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
static const struct cm_launcher *choose_launcher(void)
{
    return &cm_launcher_mpi != NULL && cm_env_launched() ? &cm_launcher_mpi : &cm_launcher_alone;
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

static enum cm_status start_process(struct cm_job *j, int *argc, char ***argv)
{
    enum cm_status st = cm_watchdog_start(&j->watchdog);

    if (st != CM_OK)
        return st;
    j->launcher = choose_launcher();
    cm_watchdog_expect(j->watchdog, "set-up (starting processes)", start_deadline(j),
                       CM_EXIT_TIMEOUT);
    st = j->launcher->start(argc, argv, &j->boot);
    if (st != CM_OK)
        return st;
    j->has_library = j->launcher->library(j->library, sizeof(j->library));
    if (j->boot.nprocs > 1)
        return CM_OK;
    return cm_env_check_alone(j->has_library ? j->library : NULL, &cm_launcher_mpi != NULL);
}

static size_t slot_bytes(const struct cm_opts_engine *e)
{
    size_t from_buffer = e->buffer / CM_PORT_SLOTS / 64 * 64;

    if (e->chunk > 0)
        return (e->chunk + 63) / 64 * 64;
    return from_buffer > 0 ? from_buffer : SLOT_BYTES;
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

/* Size of everything that is shared, and the wire that shares it. */
static enum cm_status plan_memory(struct cm_job *j)
{
    const char *forced = j->opts->launch.wire;
    const struct cm_opts_engine *e = &j->opts->engine;
    size_t host_bytes = 0;
    enum cm_status st = cm_inject_parse(j->opts->inject, j->world.n, &j->inject);

    j->wire = forced != NULL ? cm_wire_find(forced) : cm_wire_choose(&j->boot);
    if (j->wire == NULL || !j->wire->reaches(&j->boot))
        return CM_FAIL(CM_EUNSUP, "--wire %s cannot connect %d processes",
                       forced != NULL ? forced : "auto", j->boot.nprocs);
    if (st == CM_OK)
        st = plan_arenas(j, &host_bytes);
    if (st != CM_OK)
        return st;
    j->layout = (struct cm_layout){
        .nranks = j->world.n,
        .channels = e->channels > 0 ? e->channels : CHANNELS,
        .depth = CM_PORT_SLOTS,
        .slot_bytes = slot_bytes(e),
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

static enum cm_status set_up(struct cm_job *j, int *argc, char ***argv)
{
    enum cm_status st = start_process(j, argc, argv);

    if (st != CM_OK)
        return st;
    cm_watchdog_expect(j->watchdog, "set-up (meeting the other processes)", meeting_deadline(j),
                       CM_EXIT_TIMEOUT);
    st = cm_world_gather(&j->boot, j->opts, &j->world);
    if (st == CM_OK)
        st = new_members(j);
    if (st == CM_OK)
        st = cm_job_open_gpus(j);
    cm_watchdog_expect(j->watchdog, "set-up (sharing memory)", j->setup_ns, CM_EXIT_TIMEOUT);
    if (st == CM_OK)
        st = cm_job_room(j, &j->room);
    if (st == CM_OK)
        st = leader_first(j, plan_memory);
    if (st == CM_OK)
        st = leader_first(j, open_debug);
    if (st == CM_OK)
        st = cm_segment_open(j->wire, &j->boot, &j->layout, j->setup_ns, &j->segment);
    return st == CM_OK ? cm_job_fill_gpus(j) : st;
}

/* ---- the end ---- */

static enum cm_exit tear_down(struct cm_job *j, enum cm_status st)
{
    enum cm_exit code = cm_status_exit(st);
    bool started = j->boot.gather != NULL;
    bool leave = j->started == 0 || cm_ranks_left(j);

    if (started)
        cm_watchdog_expect(j->watchdog, "tear-down (ending processes)", j->teardown_ns,
                           cm_status_is_orderly(st) ? CM_EXIT_TIMEOUT : code);
    if (started && !leave)
        j->launcher->kill(&j->boot, code);
    cm_debug_close(&j->trace);
    cm_job_close_gpus(j);
    cm_segment_close(j->segment);
    cm_world_free(&j->world);
    free(j->members);
    if (started)
        j->launcher->finish(&j->boot);
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
