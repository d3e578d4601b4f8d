/*
 * --debug and --log: where messages about choices go, and what the harness
 * itself has to tell. The engine tells the rest (engine/trace.c).
 */
#ifndef CM_COMMON_DEBUG_H
#define CM_COMMON_DEBUG_H

#include "base/trace.h"
#include "common/launch.h"

/*
 * Open what the options ask for; --log without --debug is level info. In the
 * path, %h becomes the short host name, %p the process id, %r the process's
 * first rank and %% a percent sign. A path with %p or %r is this process's own
 * and starts empty; any other may be that of several processes: process 0,
 * which must be first, empties it, and all append. CM_ESYS: cannot be opened;
 * CM_ENOMEM. *out is valid in any case; the caller ends it with
 * cm_trace_close().
 */
CM_MUST_CHECK enum cm_status cm_debug_open(const struct cm_opts_report *o,
                                           const struct cm_rank_info *first, struct cm_trace *out);

/* VERSION: the version, by rank 0. INFO: network, memory, CPUs and way of waiting of this rank. */
void cm_debug_rank(const struct cm_rank *r);

#endif
