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
 * and each rank that does not wait. Compose it before the abort is raised: the
 * others leave as soon as they see that, and would look absent.
 */
void cm_stuck_compose(const struct cm_waiter *w, int peer, int64_t waited_ns, struct cm_text *out);

/* One line that names the operations of `w` and of `peer`. */
void cm_mismatch_compose(const struct cm_waiter *w, int peer, struct cm_text *out);

void cm_text_write(struct cm_text *t); /* to stderr */

#endif
