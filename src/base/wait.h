/*
 * Waiting for another rank: spin, then yield, then sleep; with a deadline, and
 * with an eye on the job's abort word.
 *
 * Pattern:  struct cm_spin s = cm_spin_start();
 *           while (!ready()) { st = cm_spin(&s, w, peer); if (st != CM_OK) return st; }
 * The first polls cost a pause instruction; everything else is in cm_spin_slow().
 */
#ifndef CM_BASE_WAIT_H
#define CM_BASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shared.h"
#include "base/status.h"

struct cm_waiter;

/*
 * Ranks that share no memory with this one: what waiting ranks can do for them
 * and ask about them. Any thread may call these functions.
 */
struct cm_remote {
    void *arg;
    /* Move data between nodes as far as it goes without waiting; true: polling again is worth it */
    bool (*progress)(void *arg);
    /* Sleep until something comes from another node, `ns` at most. */
    void (*doze)(void *arg, int64_t ns);
    /* An operation ended: what was filled or freed should leave though nobody waits. */
    void (*rest)(void *arg);
    /*
     * Before a report: bring the records of remote ranks (cm_diag) up to date. Blocks
     * for four seconds at most, until an abort at most; who did not answer keeps
     * CM_AT_SILENT as its phase. Call it through cm_waiter_survey().
     */
    void (*survey)(void *arg);
    /* Payloads may leave from, and come to, any memory of the process: cm_slot_head.far_at */
    bool far;
};

/*
 * A part of the job that may fail alone, as one rank sees it. A wait in it that is
 * late, or lasts beyond `until_ns`, ends the attempt and says nothing; so does a mismatch.
 */
struct cm_attempt {
    bool over;        /* no wait in it goes on */
    int64_t until_ns; /* cm_now_ns() time */
};

/* How one rank waits. Owned by the rank; constant while it runs, except for timeout_ns. */
struct cm_waiter {
    int rank;   /* world rank that waits, for reports */
    int nranks; /* world ranks */
    int spins;  /* polls before the first yield: 1..30 oversubscribed, thousands otherwise */
    int64_t timeout_ns; /* a single wait may take this long; > 0 */
    struct cm_abort *abort;
    struct cm_diag *diag;                                           /* own record */
    struct cm_diag *(*diag_of)(const struct cm_waiter *, int rank); /* anybody's: cm_waiter_diag */
    void *base;                                                     /* segment */
    const struct cm_layout *layout;
    const struct cm_remote *remote; /* NULL: all ranks share memory */
    struct cm_attempt *attempt;     /* NULL: what fails here ends the job */
};

struct cm_spin {
    int polls;
    int64_t since_ns; /* 0: the clock was not read yet */
    int64_t sleep_ns; /* 0: still yielding */
    bool suspect;     /* the peer's signature differed at the last look */
    bool moved;       /* data moved between nodes since: no time to sleep */
};

static inline struct cm_spin cm_spin_start(void)
{
    return (struct cm_spin){.polls = 0};
}

/*
 * Called when polls ran out: yields or sleeps, checks abort and deadline.
 * `peer`: world rank waited for, -2 if several. CM_OK: poll on. CM_ETIMEOUT:
 * this rank's deadline passed; it has raised the abort word and printed the
 * report (who waits for whom, who did not arrive). CM_EABORT: somebody else
 * raised it. CM_EMISMATCH: the peer runs another operation (both are named).
 */
enum cm_status cm_spin_slow(struct cm_spin *s, const struct cm_waiter *w, int peer);

/* Tell the processor that this is a polling loop. */
#if defined(__x86_64__)
static inline void cm_pause(void)
{
    __builtin_ia32_pause();
}
#elif defined(__aarch64__)
static inline void cm_pause(void)
{
    __asm__ __volatile__("yield");
}
#else
static inline void cm_pause(void)
{
}
#endif

static inline enum cm_status cm_spin(struct cm_spin *s, const struct cm_waiter *w, int peer)
{
    if (s->polls++ < w->spins) {
        cm_pause();
        return CM_OK;
    }
    return cm_spin_slow(s, w, peer);
}

/* As cm_spin(); moves data between nodes meanwhile, if this rank's waits have to. */
static inline enum cm_status cm_spin_moving(struct cm_spin *s, const struct cm_waiter *w, int peer)
{
    s->moved = w->remote != NULL && w->remote->progress(w->remote->arg);
    return cm_spin(s, w, peer);
}

/*
 * As cm_spin_moving(), where GPUs fill and free slots to other nodes: they wake nobody
 * who sleeps, so this rank looks after their slots at least every 50 us.
 */
static inline enum cm_status cm_spin_watching(struct cm_spin *s, const struct cm_waiter *w,
                                              int peer)
{
    if (w->remote != NULL)
        s->sleep_ns = 0;
    return cm_spin_moving(s, w, peer);
}

/*
 * End the job because `peer` runs another operation, and say so. CM_EMISMATCH, or
 * CM_EABORT if it has been ended already. Blocks as cm_waiter_survey().
 */
enum cm_status cm_fail_mismatch(const struct cm_waiter *w, int peer);

/*
 * Before a report about `w`: ask ranks on other nodes what they do. Blocks
 * for four seconds at most. Nothing to do if all ranks share memory.
 */
void cm_waiter_survey(const struct cm_waiter *w);

/*
 * End the job: set the abort word to `st` unless it is set already. Returns
 * true for the first caller, who should then say why.
 */
bool cm_abort_raise(struct cm_abort *a, enum cm_status st, int rank);

/* Has the job ended, or the attempt that the waiter is in? */
bool cm_waiter_ended(const struct cm_waiter *w);

/* The status the job was ended with, CM_OK while it runs. */
enum cm_status cm_abort_status(const struct cm_abort *a);

/* The usual diag_of: the record in the waiter's segment. */
struct cm_diag *cm_waiter_diag(const struct cm_waiter *w, int rank);

/* The word of --inject and of reports for a phase: "init", "warmup", ... Never NULL. */
const char *cm_phase_text(uint32_t phase);

#endif
