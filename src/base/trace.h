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

struct cm_trace_file;
struct cm_trace {
    enum cm_trace_level level;
    struct cm_trace_file *file; /* NULL: stderr */
};

/* Does anybody read lines of this level? NULL: nobody. Ask before composing one. */
static inline bool cm_traces(const struct cm_trace *t, enum cm_trace_level level)
{
    return t != NULL && t->level >= level;
}

/*
 * Let the lines go to a file, whose last lines stay unless `empty`. *t must
 * have no file. CM_ESYS, CM_ENOMEM, logged; *t is as before. Close it with
 * cm_trace_close(), when no thread writes any more.
 */
CM_MUST_CHECK enum cm_status cm_trace_open(struct cm_trace *t, const char *path, bool empty);
void cm_trace_close(struct cm_trace *t);

/*
 * One line, in one write, with the calling thread's prefix; any thread. The
 * first that a file does not take is reported on stderr, and the lines after
 * it are dropped. Whatever the level: ask cm_traces() first.
 */
void cm_trace_line(const struct cm_trace *t, const char *fmt, ...) CM_PRINTF(2, 3);

/* Has a line been lost? Any thread. */
bool cm_trace_lost(const struct cm_trace *t);

#endif
