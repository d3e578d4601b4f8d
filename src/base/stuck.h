/* What to say when a wait goes wrong. */
#ifndef CM_BASE_STUCK_H
#define CM_BASE_STUCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/wait.h"

/* Is the owner of `d` waiting at time `now_ns`? `fresh_ns`: how old its heartbeat may be. */
bool cm_diag_waits(const struct cm_diag *d, int64_t now_ns, int64_t fresh_ns);

/* A message of several lines that leaves in one write. */
struct cm_text {
    size_t len;
    char buf[4096]; /* what a pipe takes in one piece */
};

/*
 * The report of a time-out: what `w` was doing, who waits for whom (counted),
 * each rank that does not wait, each process that does not answer. Compose it
 * before the abort is raised: the others leave as soon as they see that, and would
 * look absent. Ranks on other nodes: after cm_waiter_survey().
 */
void cm_stuck_compose(const struct cm_waiter *w, int peer, int64_t waited_ns, struct cm_text *out);

/*
 * The report of a lost process: `what` happened (one line without its end), then as
 * above. That ranks of process `proc` do not answer is not said again.
 */
void cm_lost_compose(const struct cm_waiter *w, int proc, const char *what, struct cm_text *out);

/* One line that names the operations of `w` and of `peer`. */
void cm_mismatch_compose(const struct cm_waiter *w, int peer, struct cm_text *out);

void cm_text_write(struct cm_text *t); /* to stderr */

/*
 * End the job with `st` because of `t`, unless it has ended already; true for the first.
 * The text stays in the segment's note, cut to CM_NOTE; the control plane prints one
 * for the whole job. `rank`: who raises it. Any thread; never blocks.
 */
bool cm_abort_note(struct cm_shared *s, enum cm_status st, int rank, const struct cm_text *t);

/*
 * The same for rank w->rank, but where all ranks share memory the text is printed here.
 * Returns `st` for the first, else CM_EABORT.
 */
enum cm_status cm_abort_because(const struct cm_waiter *w, enum cm_status st, struct cm_text *t);

#endif
