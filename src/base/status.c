/*
 * Status texts and the one way to stderr.
 *
 * A message is put together in a buffer of the calling thread and leaves in
 * one write(2) of at most CM_LOG_BYTES, which pipes deliver whole; so lines of
 * threads and processes never mix. Line breaks inside a message (a user's
 * option may hold one) become blanks: one message is one line.
 */
#include "base/status.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CM_LOG_BYTES = 4096 /* PIPE_BUF: what a pipe takes in one piece */ };

struct cm_status_info {
    const char *text;
    enum cm_exit exit;
};

static const struct cm_status_info infos[] = {
    [CM_OK] = {"success", CM_EXIT_OK},
    [CM_EINVAL] = {"invalid argument", CM_EXIT_USAGE},
    [CM_ENOMEM] = {"out of memory", CM_EXIT_SYSTEM},
    [CM_ESYS] = {"system error", CM_EXIT_SYSTEM},
    [CM_ETIMEOUT] = {"timed out", CM_EXIT_TIMEOUT},
    [CM_EABORT] = {"aborted by another rank", CM_EXIT_SYSTEM},
    [CM_EUNSUP] = {"not supported", CM_EXIT_UNSUPPORTED},
    [CM_EMISMATCH] = {"ranks disagree", CM_EXIT_SYSTEM},
    [CM_EDATA] = {"wrong data", CM_EXIT_WRONG},
    [CM_ETRUNC] = {"ended early", CM_EXIT_TRUNCATED},
};

/* Who the calling thread is; host == NULL: nobody in particular. */
static _Thread_local struct {
    int rank;
    const char *host;
    bool mute;
} self;

const char *cm_status_text(enum cm_status st)
{
    return (size_t)st < CM_LEN(infos) ? infos[st].text : "unknown status";
}

enum cm_exit cm_status_exit(enum cm_status st)
{
    return (size_t)st < CM_LEN(infos) ? infos[st].exit : CM_EXIT_SYSTEM;
}

void cm_log_whoami(int rank, const char *host)
{
    assert(rank < 0 || host != NULL);
    self.rank = rank;
    self.host = rank < 0 ? NULL : host;
}

/* Length of what snprintf left in `room` bytes, given what it returned. */
static size_t written(int result, size_t room)
{
    if (result < 0)
        return 0;
    return (size_t)result < room ? (size_t)result : room - 1;
}

static void make_one_line(char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (line[i] == '\n' || line[i] == '\r')
            line[i] = ' ';
}

/* Almost always one write(2); a disk that becomes full may take a part. False, with errno. */
static bool write_line(int fd, const char *line, size_t len)
{
    while (len > 0) {
        ssize_t sent = write(fd, line, len);

        if (sent < 0 && errno != EINTR)
            return false;
        line += sent > 0 ? sent : 0;
        len -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* For a %m in `fmt`, errno is that of the caller. False, with errno: not written. */
static bool CM_PRINTF(2, 0) log_line(int fd, const char *fmt, va_list ap)
{
    char line[CM_LOG_BYTES];
    size_t room = sizeof(line) - 1, len = 0; /* one byte stays free for the line's end */
    int err = errno;

    if (isatty(fd)) /* a line that tells of progress may stand there */
        len = written(snprintf(line, room, "\033[2K\033[G"), room);
    if (self.host != NULL)
        len += written(snprintf(line, room, "rank %d host %s: ", self.rank, self.host), room - len);
    errno = err;
    len += written(vsnprintf(line + len, room - len, fmt, ap), room - len);
    while (len > 0 && line[len - 1] == '\n')
        len--;
    make_one_line(line, len);
    line[len++] = '\n';
    return write_line(fd, line, len);
}

/* errno is kept for the caller. */
static void CM_PRINTF(1, 0) log_error(const char *fmt, va_list ap)
{
    int err = errno;

    if (!self.mute)
        (void)log_line(STDERR_FILENO, fmt, ap); /* there is nowhere to complain */
    errno = err;
}

void cm_log_mute(bool mute)
{
    self.mute = mute;
}

void cm_log(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_error(fmt, ap);
    va_end(ap);
}

bool cm_log_to(int fd, const char *fmt, va_list ap)
{
    return log_line(fd, fmt, ap);
}

enum cm_status cm_fail(enum cm_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_error(fmt, ap);
    va_end(ap);
    return st;
}

enum cm_status cm_fail_errno(const char *what)
{
    enum cm_status st = errno == ENOMEM ? CM_ENOMEM : CM_ESYS;

    return cm_fail(st, "%s: %m", what); /* %m, not strerror(): it needs no shared buffer */
}
