/*
 * Verbs of the plan builders: thin helpers over the fold.
 *
 * A builder opens a worker, then folds; what follows a fold's opening belongs
 * to it: waits, sources in the order of reduction, then destinations. The plan
 * keeps the first failure in plan->status and ignores everything after it, so
 * that a builder checks once, at its end. Only the builders include this file.
 */
#ifndef CM_ENGINE_BUILD_H
#define CM_ENGINE_BUILD_H

#include "engine/algo.h"

/* Indices. `i` stands for the innermost loop variable of a single loop, 0 outside. */
struct cm_index cm_at(int k);                           /* k */
struct cm_index cm_affine(int base, int step);          /* base + step i */
struct cm_index cm_modulo(int base, int step, int mod); /* (base + step i) mod `mod` */
struct cm_index cm_xor(int base, int step);             /* base ^ (step i) */

/* Operands. `numbering` (CM_IN, CM_OUT) says whose chunk gives a port's payload its length. */
struct cm_operand cm_place(enum cm_space space, int rank, struct cm_index chunk);
struct cm_operand cm_port(int peer, enum cm_space numbering, struct cm_index chunk);

/* Open a worker that moves share `channel`; its number is p->nworkers before the call. */
void cm_add_worker(struct cm_plan *p, int channel);

/* Repeat what follows, up to cm_add_end(), `trips` times. At most two deep. */
void cm_add_loop(struct cm_plan *p, int trips);
void cm_add_end(struct cm_plan *p);

/* Open a fold; the calls below add to the fold opened last. Sources come before destinations. */
void cm_add_fold(struct cm_plan *p);
void cm_wait(struct cm_plan *p, int rank, int worker, struct cm_index phase);
void cm_from(struct cm_plan *p, struct cm_operand o);
void cm_to(struct cm_plan *p, struct cm_operand o);
void cm_post(struct cm_plan *p);
void cm_complete(struct cm_plan *p);

/* A whole fold that moves one chunk, without waits or posts. */
void cm_copy_fold(struct cm_plan *p, struct cm_operand from, struct cm_operand to);

/* A fold that only posts: my buffers may be touched from now on. */
void cm_arrive(struct cm_plan *p);

/* Wait for worker 0 of `rank`, or of all ranks but this one; CM_PHASE_DONE: for its work's end. */
void cm_wait_rank(struct cm_plan *p, int rank, int phase);
void cm_wait_others(struct cm_plan *p, int phase);

/* Source: IN chunk k of every rank, in rank order; in copy mode what the others sent of it. */
void cm_from_all(struct cm_plan *p, struct cm_index chunk);

/* Form of every algorithm for one rank alone: IN to OUT. */
enum cm_status cm_build_alone(const struct cm_build_args *a, struct cm_plan *p);

/* Shared by the rows of cm_algos: to rank + 1, from rank - 1. */
enum cm_status cm_build_sendrecv(const struct cm_build_args *a, struct cm_plan *p);

/* Copy a->order (or 0..n-1) into the plan, for indices with `perm`. */
void cm_add_perm(struct cm_plan *p, const struct cm_build_args *a);

/* Ring order and its inverse. */
int cm_rank_at(const struct cm_build_args *a, int position);
int cm_position(const struct cm_build_args *a, int rank);

static inline int cm_wrap(int v, int n)
{
    return (v % n + n) % n;
}

/*
 * Members 0 .. n-1 of a recursive doubling. The first 2 x spare form pairs: the
 * even one is idle, the odd one acts for both.
 */
struct cm_group {
    int size;  /* largest power of two <= n: that many are active */
    int spare; /* n - size */
    int steps; /* log2 size */
};
struct cm_group cm_group_of(int n);

static inline bool cm_group_idle(const struct cm_group *g, int member)
{
    return member < 2 * g->spare && member % 2 == 0;
}

/* An active member that acts for an idle one makes one fold more than the others: 1, else 0. */
static inline int cm_group_has_pair(const struct cm_group *g, int member)
{
    return member < 2 * g->spare;
}

/* Who exchanges with an active member in step k. */
int cm_group_partner(const struct cm_group *g, int member, int k);

/* The build functions of each algorithm, for the rows of cm_algos. */
extern cm_build_fn *const cm_direct_builders[CM_NCOLLS];
extern cm_build_fn *const cm_oneshot_builders[CM_NCOLLS];
extern cm_build_fn *const cm_ring_builders[CM_NCOLLS];
extern cm_build_fn *const cm_tree_builders[CM_NCOLLS];
extern cm_build_fn *const cm_recdbl_builders[CM_NCOLLS];
extern cm_build_fn *const cm_hier_builders[CM_NCOLLS];
extern cm_build_fn *const cm_hierdbl_builders[CM_NCOLLS];

#endif
