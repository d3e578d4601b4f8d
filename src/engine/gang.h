/*
 * A gang: the ranks of one process that share a device. They run in one
 * launch, so that no concurrency of streams is assumed: member 0, the leader,
 * enqueues for all on the device's one stream; the others bring their
 * arguments and wait until it is enqueued. A device with one rank of this
 * process is a gang of one, in which nothing waits.
 */
#ifndef CM_ENGINE_GANG_H
#define CM_ENGINE_GANG_H

#include <stdbool.h>

#include "base/gpu.h"
#include "base/wait.h"

struct cm_gang;

/* CM_EINVAL unless 1 <= members <= CM_GPU_GANG, CM_ENOMEM. Close after all members are gone. */
CM_MUST_CHECK enum cm_status cm_gang_open(int members, struct cm_gang **out);
void cm_gang_close(struct cm_gang *g); /* NULL is fine */
int cm_gang_members(const struct cm_gang *g);

/* Blocks until all members called it. CM_ETIMEOUT, CM_EABORT as cm_spin_slow(). */
CM_MUST_CHECK enum cm_status cm_gang_meet(struct cm_gang *g, int member, const struct cm_waiter *w);

/* Copy the leader's `bytes` at `buf` to every member's `buf`. Blocks as cm_gang_meet(). */
CM_MUST_CHECK enum cm_status cm_gang_copy(struct cm_gang *g, int member, const struct cm_waiter *w,
                                          void *buf, size_t bytes);

/*
 * Each member brings its part of a launch; on the leader, *all are the parts of
 * all members in their order, valid until its cm_gang_launched(). Others get
 * NULL and go straight to cm_gang_launched(), which returns on all members once
 * the leader called it, with the leader's status.
 */
CM_MUST_CHECK enum cm_status cm_gang_join(struct cm_gang *g, int member, const struct cm_waiter *w,
                                          const struct cm_gpu_rank *mine,
                                          const struct cm_gpu_rank **all);
CM_MUST_CHECK enum cm_status cm_gang_launched(struct cm_gang *g, int member,
                                              const struct cm_waiter *w, enum cm_status st);

#endif
