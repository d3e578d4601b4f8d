/*
 * Fault injection: `--inject corrupt:rank=1,iter=17`. Proves that the checker
 * and the deadlines see faults. One spec; grammar kind[:key=value[,key=value]...].
 *
 *   corrupt  flip one bit of OUT after the operation (a later overwrite may heal
 *            it; the check sees it)
 *   stall    stop for good before the operation, until the job is aborted
 *   delay    sleep `us` before the operation
 *   crash    kill the process (SIGKILL) before the operation
 *
 * keys: rank (default 0), iter (default: every), phase = init | warmup | timed |
 * check | finalize (default: any operation; init and finalize only stall/delay/crash), us.
 */
#ifndef CM_COMMON_INJECT_H
#define CM_COMMON_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shared.h"
#include "base/status.h"
#include "base/wait.h"

enum cm_fault { CM_FAULT_NONE, CM_FAULT_CORRUPT, CM_FAULT_STALL, CM_FAULT_DELAY, CM_FAULT_CRASH };

struct cm_inject {
    enum cm_fault fault;
    int rank;
    int64_t iter; /* -1: every */
    int phase;    /* enum cm_phase_name or -1: any operation */
    int64_t us;
};

/*
 * CM_EINVAL, logged as one line that names --inject; *out untouched then. NULL
 * text: no fault. nranks <= 0: the range of `rank` is not checked.
 */
CM_MUST_CHECK enum cm_status cm_inject_parse(const char *text, int nranks, struct cm_inject *out);

/*
 * Before an operation or phase: may sleep, kill the process, or stall until the
 * job is aborted (CM_EABORT). CM_ETIMEOUT: nobody else ended the job, so the
 * stalled rank did, some seconds after its own deadline.
 */
CM_MUST_CHECK enum cm_status cm_inject_before(const struct cm_inject *f, const struct cm_waiter *w,
                                              int rank, enum cm_phase_name phase, int64_t iter);

/* After an operation: corrupts `out` if the spec says so. */
void cm_inject_after(const struct cm_inject *f, int rank, enum cm_phase_name phase, int64_t iter,
                     void *out, size_t bytes);

#endif
