/*
 * The file of the messages about choices: opened once per process, before its
 * ranks run, and appended to by all of them. Who asked for a log wants all of
 * it, so one lost line is remembered until the end.
 */
#include "base/trace.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cm_trace_file {
    int fd;
    atomic_bool lost;
    char path[];
};

enum cm_status cm_trace_open(struct cm_trace *t, const char *path, bool empty)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    size_t bytes = strlen(path) + 1;
    struct cm_trace_file *f = malloc(sizeof(*f) + bytes);

    if (f == NULL)
        return CM_FAIL(CM_ENOMEM, "--log '%s'", path);
    memcpy(f->path, path, bytes);
    atomic_init(&f->lost, false);
    f->fd = open(path, empty ? flags | O_TRUNC : flags, 0666);
    if (f->fd < 0) {
        free(f);
        return CM_FAIL(CM_ESYS, "--log '%s': %m", path);
    }
    t->file = f;
    return CM_OK;
}

void cm_trace_close(struct cm_trace *t)
{
    if (t->file != NULL)
        close(t->file->fd);
    free(t->file);
    t->file = NULL;
}

void cm_trace_line(const struct cm_trace *t, const char *fmt, ...)
{
    struct cm_trace_file *f = t->file;
    va_list ap;

    if (cm_trace_lost(t))
        return;
    va_start(ap, fmt);
    if (!cm_log_to(f != NULL ? f->fd : STDERR_FILENO, fmt, ap) && f != NULL &&
        !atomic_exchange(&f->lost, true))
        cm_log("--log '%s': %m; the messages from here on are lost", f->path);
    va_end(ap);
}

bool cm_trace_lost(const struct cm_trace *t)
{
    return t->file != NULL && atomic_load(&t->file->lost);
}
