/*
 * An engine that runs the harness's operations: the one of this program, or a
 * library's, on the same buffers, timed and checked in the same way.
 *
 * The table of engines gives --engine, --compare, --list and the tests. The
 * built-in one has no functions: cm_comm_run() is called straight, so that a
 * choice of engines costs it nothing.
 */
#ifndef CM_COMMON_ENGINE_H
#define CM_COMMON_ENGINE_H

#include "common/sides.h"
#include "engine/comm.h"

struct cm_meter;
struct cm_opts;

enum { CM_ENGINE_WHY = 192 };

/* What an engine must know of a job to say whether it can serve it. */
struct cm_engine_job {
    int ranks, procs;
    bool mpi;         /* MPI started the processes, and is initialised */
    bool gpus;        /* the buffers are on GPUs */
    bool shared_gpus; /* some ranks share one */
};

struct cm_engine {
    /* Can it run operations of such a job? If not, the reason is in `why` (CM_ENGINE_WHY bytes).
       Alike in all processes; on their main threads, after the launch. */
    bool (*serves)(const struct cm_engine_job *job, char *why);

    /* "NCCL 2.28.9, /usr/lib/libnccl.so.2" into buf, once it serves; NULL: told elsewhere. */
    bool (*library)(char *buf, size_t size);

    /*
     * Has it this operation on n ranks? NULL, or why not, in a static text. Depends on the
     * arguments alone (not on buffers), so that all ranks and the report say the same.
     */
    const char *(*refuses)(const struct cm_op_args *op, int n);

    /*
     * Open it on the rank's thread, once m's own backend is open. Collective over all ranks of
     * the job. *state belongs to the rank until close(). CM_ENOMEM, CM_ESYS, CM_ETIMEOUT.
     */
    enum cm_status (*open)(struct cm_meter *m, void **state);

    /* orderly: all ranks close, and may wait for each other. NULL is fine. */
    void (*close)(void *state, bool orderly);

    /* The next runs are of `op`, which refuses() let pass, with its buffers. Local, never blocks.
       CM_ENOMEM. `op` and its matrix must last until the last of these runs. */
    enum cm_status (*bind)(void *state, const struct cm_op_args *op);

    /*
     * One operation, collective over the group of the rank. On the host it is done when this
     * returns; on GPUs it may only have been enqueued on the rank's stream. A library's call has
     * no deadline: cm_watchdog_guard() is its. CM_ESYS, logged with the library's own text.
     */
    enum cm_status (*run)(void *state);
};

struct cm_engine_row {
    const char *name;               /* "builtin", "mpi", "nccl" */
    const char *what;               /* one line for --list */
    const struct cm_engine *engine; /* NULL: the built-in one, or this build lacks it */
    const char *absent;             /* what the build lacks then; NULL: nothing */
};

extern const struct cm_engine_row cm_engines[CM_NENGINES];
extern const char *const cm_engine_names[CM_NENGINES + 1]; /* NULL-terminated */

/* Linked only where there are MPI and CUDA: else the weak symbols are NULL. */
extern const struct cm_engine cm_engine_mpi __attribute__((weak));
extern const struct cm_engine cm_engine_nccl __attribute__((weak));

/* An engine as one rank uses it; zero: the built-in one. */
struct cm_side {
    const char *name;               /* of cm_sides; NULL: there is no choice */
    const struct cm_engine *engine; /* NULL: the built-in one */
    void *state;
};

/*
 * Can the engines of `o` serve the job, and is there anything in the sweep of the program's
 * collective that they have? CM_EUNSUP, logged with the reason. After the launch.
 */
CM_MUST_CHECK enum cm_status cm_engines_check(const struct cm_opts *o,
                                              const struct cm_engine_job *job);

/* For --list: the engines of this build, and what keeps others from it. */
const char *cm_engine_absent(int id);

/* The sides of m's options: opened in their order, collective. Both fill sides[CM_MAX_SIDES]. */
CM_MUST_CHECK enum cm_status cm_engines_open(struct cm_meter *m, struct cm_side *sides);
void cm_engines_close(struct cm_side *sides, bool orderly);

#endif
