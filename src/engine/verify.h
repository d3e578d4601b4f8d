/*
 * Proof of plans: run the plans of all n ranks at once on sets of
 * contributions instead of data.
 *
 * Source of the method: each worker is sequential with blocking reads and
 * writes on bounded single-producer single-consumer queues (a Kahn network),
 * so one greedy run decides deadlock for every timing.
 */
#ifndef CM_ENGINE_VERIFY_H
#define CM_ENGINE_VERIFY_H

#include "base/plan.h"

struct cm_verify_args {
    bool in_place;
    int depth; /* FIFO depth; at least the plan's min_depth must pass */
    int calls; /* operations in a row without a barrier between (races across calls) */
    /* rank -> node, of ranks that share memory if their numbers are equal; NULL: all do */
    const int32_t *node;
};

struct cm_proof {
    bool ok;
    char why[256]; /* first fault: rank, worker, fold and what is wrong */
    /*
     * Largest traffic of a rank, as a fraction of the vector (count x blocks):
     * what it sends through ports, and what it loads from and stores to peers.
     */
    uint64_t bytes_num, bytes_den;
    int longest; /* folds of the busiest worker, loops expanded */
};

/*
 * Prove `plans` (one per rank, same collective, algorithm and mode). Checks:
 * every OUT chunk holds each contribution it must exactly once and nothing
 * else; non-outputs stay untouched; inputs are not overwritten unless in
 * place; nothing undefined is read; no deadlock; no data race (vector
 * clocks) within and between calls; all ranks reduce in one order
 * (expression hash), and `complete` stands exactly on complete results. With a
 * node map: nobody waits for a line, or touches a buffer, of another node.
 * CM_OK: the proof ran, its outcome is in *out. CM_ENOMEM, CM_EINVAL otherwise.
 */
CM_MUST_CHECK enum cm_status cm_verify(struct cm_plan *const *plans, int n,
                                       const struct cm_verify_args *a, struct cm_proof *out);

/* Print a plan as text, one fold a line, to `f` (the report of --plan). */
struct _IO_FILE;
void cm_plan_print(const struct cm_plan *p, struct _IO_FILE *f);

#endif
