/*
 * Status codes, exit codes and error text.
 *
 * Whatever can fail returns enum cm_status. Who first sees a failure logs it
 * once through CM_FAIL; everybody above passes the value on in silence.
 */
#ifndef CM_BASE_STATUS_H
#define CM_BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define CM_MUST_CHECK __attribute__((warn_unused_result))
#define CM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define CM_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum cm_status {
    CM_OK = 0,
    CM_EINVAL,    /* bad argument or option */
    CM_ENOMEM,    /* memory refused */
    CM_ESYS,      /* the operating system or a library failed */
    CM_ETIMEOUT,  /* a deadline passed */
    CM_EABORT,    /* another rank failed and ended the job; it has logged why */
    CM_EUNSUP,    /* not supported on this machine or for these arguments */
    CM_EMISMATCH, /* ranks disagree about an operation */
    CM_EDATA,     /* wrong data */
    CM_ETRUNC     /* ended early: signal or time budget */
};

enum cm_exit {
    CM_EXIT_OK = 0,
    CM_EXIT_WRONG = 1,
    CM_EXIT_USAGE = 2,
    CM_EXIT_SYSTEM = 3,
    CM_EXIT_TIMEOUT = 4,
    CM_EXIT_BELOW = 5,
    CM_EXIT_TRUNCATED = 6,
    CM_EXIT_UNSUPPORTED = 77
};

#ifdef __cplusplus
extern "C" {
#endif

/* Short text of a status ("out of memory"). Never NULL. */
const char *cm_status_text(enum cm_status st);

/* The process exit code that stands for `st`. Mismatch and abort count as system errors. */
enum cm_exit cm_status_exit(enum cm_status st);

/*
 * Name the calling thread in later messages: "rank r host h: text". `rank` -1
 * takes the prefix off again. Per thread; `host` must outlive the thread.
 */
void cm_log_whoami(int rank, const char *host);

/* Write one line to stderr in one write(2), with this thread's prefix. Never fails. */
void cm_log(const char *fmt, ...) CM_PRINTF(1, 2);

/* The same to another descriptor; not muted. False, with errno: it could not be written. */
bool cm_log_to(int fd, const char *fmt, va_list ap) CM_PRINTF(2, 0);

/*
 * Drop what this thread logs from now on (false: say it again). For a process
 * whose twins say the same at the same moment.
 */
void cm_log_mute(bool mute);

/* Log "<text>" (one line) and return `st`. Use through CM_FAIL. */
enum cm_status cm_fail(enum cm_status st, const char *fmt, ...) CM_PRINTF(2, 3);
#define CM_FAIL(st, ...) cm_fail((st), __VA_ARGS__)

/* CM_OK if `ok`; else log "<what>: <strerror(errno)>" and return CM_ESYS (ENOMEM: CM_ENOMEM). */
#define CM_SYS(ok, what) ((ok) ? CM_OK : cm_fail_errno(what))
enum cm_status cm_fail_errno(const char *what);

#ifdef __cplusplus
}
#endif

#endif
