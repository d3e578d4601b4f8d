/*
 * Fault injection: `--inject corrupt:rank=1,iter=17`. Proves that the checker
 * and the deadlines see faults. One spec; grammar kind[:key=value[,key=value]...].
 *
 *   corrupt  flip one bit of OUT after the operation (a later overwrite may heal
 *            it; the check sees it)
 *   stall    stop for good before the operation, until the job is aborted
 *   delay    sleep `us` before the operation
 *   crash    kill the process (SIGKILL) before the operation
 *   bw       as if operations moved their bytes at `factor` of the speed: sleep behind
 *            each for the time of the fastest so far x (1 / factor - 1)
 *
 * keys: where: rank (default 0), or node=N: all ranks of that node, or link=N-M: all
 * ranks of both nodes, in operations in which both take part; iter (default: every),
 * phase = init | warmup | timed | check | finalize (default: any operation; init and
 * finalize only stall/delay/crash, not with link); engine: operations of that side of
 * --compare or --engine only; us; factor, above 0 and below 1.
 */
#ifndef CM_COMMON_INJECT_H
#define CM_COMMON_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shared.h"
#include "base/status.h"
#include "base/wait.h"
#include "common/sides.h"

enum cm_fault {
    CM_FAULT_NONE,
    CM_FAULT_CORRUPT,
    CM_FAULT_STALL,
    CM_FAULT_DELAY,
    CM_FAULT_CRASH,
    CM_FAULT_BW
};

struct cm_inject {
    enum cm_fault fault;
    int rank;
    int64_t iter; /* -1: every */
    int phase;    /* enum cm_phase_name or -1: any operation */
    int64_t us;
    double factor;
    int node[2];               /* node=N, link=N-M; -1: none */
    char engine[CM_SIDE_NAME]; /* "": any */
};

/* A rank among those that it runs operations with. */
struct cm_inject_place {
    int rank;
    const int32_t *group; /* world ranks */
    int n;
    const int32_t *node_of; /* of every world rank */
};

/*
 * CM_EINVAL, logged as one line that names --inject; *out untouched then. NULL
 * text: no fault. nranks <= 0: the range of `rank` is not checked.
 */
CM_MUST_CHECK enum cm_status cm_inject_parse(const char *text, int nranks, struct cm_inject *out);

/* CM_EINVAL, logged, if a node of the spec does not exist among those of n ranks. */
CM_MUST_CHECK enum cm_status cm_inject_check(const struct cm_inject *f, const char *text,
                                             const int32_t *node_of, int n);

/* Does it concern operations of that side (of any: NULL)? */
bool cm_inject_in(const struct cm_inject *f, const char *side);

/* The spec as it concerns that rank: with rank=p->rank, or no fault at all. */
struct cm_inject cm_inject_at(const struct cm_inject *f, const struct cm_inject_place *p);

/*
 * Before an operation or phase: may sleep, kill the process, or stall until the
 * job, or the attempt (struct cm_attempt), has ended (CM_EABORT). CM_ETIMEOUT: nobody else
 * ended the job, so the stalled rank did, some seconds after its own deadline (in an
 * attempt: at its deadline, in silence).
 */
CM_MUST_CHECK enum cm_status cm_inject_before(const struct cm_inject *f, const struct cm_waiter *w,
                                              int rank, enum cm_phase_name phase, int64_t iter);

/* After an operation: corrupts `out` if the spec says so. */
void cm_inject_after(const struct cm_inject *f, int rank, enum cm_phase_name phase, int64_t iter,
                     void *out, size_t bytes);

/* After an operation that took `ns` by itself: bw sleeps. */
void cm_inject_slow(const struct cm_inject *f, int64_t ns);

#endif
