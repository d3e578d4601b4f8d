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
};

struct cm_spin {
    int polls;
    int64_t since_ns; /* 0: the clock was not read yet */
    int64_t sleep_ns; /* 0: still yielding */
    bool suspect;     /* the peer's signature differed at the last look */
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

/*
 * End the job: set the abort word to `st` unless it is set already. Returns
 * true for the first caller, who should then say why.
 */
bool cm_abort_raise(struct cm_abort *a, enum cm_status st, int rank);

/* The status the job was ended with, CM_OK while it runs. */
enum cm_status cm_abort_status(const struct cm_abort *a);

/* The usual diag_of: the record in the waiter's segment. */
struct cm_diag *cm_waiter_diag(const struct cm_waiter *w, int rank);

/* The word of --inject and of reports for a phase: "init", "warmup", ... Never NULL. */
const char *cm_phase_text(uint32_t phase);

#endif
