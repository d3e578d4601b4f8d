/*
 * A file that says where process 0 listens, on a file system that all share:
 *
 *   collmark-rendezvous 1 <4|6> <address> <port> <token, 32 hex digits>
 *
 * It appears whole or not at all, and is gone once all have met. One that is
 * left over from a job that died is told by its listener: nobody is there, or
 * somebody who does not know the token.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "common/rendezvous.h"

enum { LINE_BYTES = 256, PATH_BYTES = 4096 };
static const int64_t ask_ns = 1LL * CM_NS_PER_S; /* for the answer of an older job */

/* ---- the line ---- */

static int format(const struct cm_hub_target *t, char line[LINE_BYTES])
{
    char ip[INET6_ADDRSTRLEN] = "";
    int n;

    inet_ntop(t->addr.version == 4 ? AF_INET : AF_INET6, t->addr.ip, ip, sizeof(ip));
    n = snprintf(line, LINE_BYTES, "collmark-rendezvous 1 %u %s %u ", (unsigned)t->addr.version, ip,
                 (unsigned)t->addr.port);
    for (int i = 0; i < CM_NET_TOKEN; i++)
        n += snprintf(line + n, (size_t)(LINE_BYTES - n), "%02x", t->token[i]);
    return n + snprintf(line + n, (size_t)(LINE_BYTES - n), "\n");
}

static bool parse(const char *line, struct cm_hub_target *t)
{
    char ip[INET6_ADDRSTRLEN], token[2 * CM_NET_TOKEN + 1];
    unsigned version, port;
    int used = 0;

    memset(t, 0, sizeof(*t));
    if (sscanf(line, "collmark-rendezvous 1 %1u %45s %5u %32[0-9a-f]%n", &version, ip, &port, token,
               &used) != 4 ||
        strlen(token) != 2 * CM_NET_TOKEN || strcmp(line + used, "\n") != 0 || port == 0 ||
        port > UINT16_MAX || (version != 4 && version != 6))
        return false;
    t->addr.version = (uint16_t)version;
    t->addr.port = (uint16_t)port;
    for (int i = 0; i < CM_NET_TOKEN; i++) {
        unsigned byte;

        sscanf(token + 2 * i, "%2x", &byte);
        t->token[i] = (unsigned char)byte;
    }
    return inet_pton(version == 4 ? AF_INET : AF_INET6, ip, t->addr.ip) == 1;
}

/* What is at the path. */
enum found { NOTHING, OURS, FOREIGN };

/* Whoever may write the file could send us anywhere: it must be this user's. */
static enum found read_file(const char *path, struct cm_hub_target *out, const char **why)
{
    char line[LINE_BYTES] = "";
    struct stat s;
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    *why = fd < 0 ? strerror(errno) : NULL;
    if (fd < 0)
        return errno == ENOENT ? NOTHING : FOREIGN;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        *why = "not a plain file";
    else if (s.st_uid != geteuid())
        *why = "it belongs to another user";
    else
        n = read(fd, line, sizeof(line) - 1);
    close(fd);
    if (*why == NULL && (n <= 0 || !parse(line, out)))
        *why = "it is no rendezvous file";
    return *why == NULL ? OURS : FOREIGN;
}

/* ---- process 0 ---- */

static enum cm_status make_room(const char *path, unsigned scope)
{
    struct cm_hub_target old;
    char at[CM_NET_TEXT];
    const char *why;
    enum found found = read_file(path, &old, &why);

    if (found == FOREIGN)
        return CM_FAIL(CM_EINVAL, "--rendezvous file:%s: there is something else: %s", path, why);
    old.scope = scope;
    if (found == OURS && cm_hub_waits_at(&old, ask_ns))
        return CM_FAIL(CM_EINVAL,
                       "--rendezvous file:%s: another job, or another process with rank 0, waits "
                       "at %s",
                       path, cm_net_format(&old.addr, at));
    if (found == OURS)
        cm_log("--rendezvous file:%s was left over by an older job and is replaced", path);
    return CM_OK;
}

static enum cm_status write_file(const char *path, const char *line, int n)
{
    char part[PATH_BYTES];
    uint64_t random = 0;
    int fd, err;
    bool good;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return cm_fail_errno("getrandom");
    if (snprintf(part, sizeof(part), "%s.%016llx", path, (unsigned long long)random) >=
        (int)sizeof(part))
        return CM_FAIL(CM_EINVAL, "--rendezvous file:%s: the path is too long", path);
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return CM_FAIL(CM_ESYS, "--rendezvous file:%s: %s", path, strerror(errno));
    errno = EIO;
    good = write(fd, line, (size_t)n) == n && fsync(fd) == 0;
    good = close(fd) == 0 && good && rename(part, path) == 0;
    if (good)
        return CM_OK;
    err = errno;
    unlink(part);
    return CM_FAIL(CM_ESYS, "--rendezvous file:%s: %s", path, strerror(err));
}

enum cm_status cm_meeting_publish(const char *path, const struct cm_hub_target *at)
{
    char line[LINE_BYTES];
    enum cm_status st = make_room(path, at->scope);

    return st == CM_OK ? write_file(path, line, format(at, line)) : st;
}

void cm_meeting_withdraw(const char *path, const struct cm_hub_target *at)
{
    struct cm_hub_target now;
    const char *why;
    enum found found = read_file(path, &now, &why);

    if (found == OURS && memcmp(now.token, at->token, sizeof(now.token)) == 0)
        unlink(path);
    else
        cm_log("--rendezvous file:%s was %s meanwhile: another process with rank 0?", path,
               found == NOTHING ? "removed" : "replaced");
}

/* ---- the others ---- */

bool cm_meeting_next(void *arg, struct cm_hub_target *out)
{
    struct cm_meeting_file *f = arg;
    const char *why;
    enum found found = read_file(f->path, out, &why);

    f->why[0] = '\0';
    out->scope = f->scope;
    if (found != OURS)
        snprintf(f->why, sizeof(f->why), " (%s)",
                 found == NOTHING ? "it is not there: process 0 has not come" : why);
    return found == OURS;
}

void cm_meeting_describe(void *arg, char *buf, size_t size)
{
    const struct cm_meeting_file *f = arg;

    snprintf(buf, size, "--rendezvous file:%s%s", f->path,
             f->why[0] != '\0' ? f->why : " (unless process 0 is late, an older job left it)");
}
