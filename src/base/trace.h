/*
 * Messages about choices made (--debug): a level and where the lines go. A
 * value that is passed down, constant while ranks run.
 */
#ifndef CM_BASE_TRACE_H
#define CM_BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum cm_trace_level { CM_TRACE_NONE, CM_TRACE_VERSION, CM_TRACE_WARN, CM_TRACE_INFO, CM_TRACE_ALL };

struct cm_trace {
    enum cm_trace_level level;
    int fd;
};

/* Does anybody read lines of this level? NULL: nobody. Ask before composing one. */
static inline bool cm_traces(const struct cm_trace *t, enum cm_trace_level level)
{
    return t != NULL && t->level >= level;
}

#endif
