/*
 * Local sockets in the abstract name space: the kernel removes the name with
 * the last descriptor, so a crash leaves nothing behind.
 */
#define _GNU_SOURCE
#include "transport/fdpass.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Wait until `events` happen on fd. False: time is over (errno ETIMEDOUT) or poll failed. */
static bool await(int fd, short events, int64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left = until_ns - cm_now_ns();
        int rc = left > 0 ? poll(&p, 1, (int)(left / CM_NS_PER_MS) + 1) : 0;

        if (rc > 0)
            return true;
        if (rc == 0) {
            errno = ETIMEDOUT;
            return false;
        }
        if (errno != EINTR)
            return false;
    }
}

/* An abstract name starts with a zero byte and ends with the length, not with another zero. */
static socklen_t address(const unsigned char name[CM_LOCAL_NAME], struct sockaddr_un *a)
{
    static const char prefix[] = "collmark-";
    static const char digits[] = "0123456789abcdef";
    char *at = a->sun_path + 1;

    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    memcpy(at, prefix, sizeof(prefix) - 1);
    at += sizeof(prefix) - 1;
    for (int i = 0; i < CM_LOCAL_NAME; i++) {
        *at++ = digits[name[i] >> 4];
        *at++ = digits[name[i] & 15];
    }
    return (socklen_t)(at - (char *)a);
}

static int local_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int close_failed(int fd)
{
    int err = errno;

    close(fd);
    errno = err;
    return -1;
}

int cm_local_listen(const unsigned char name[CM_LOCAL_NAME], int backlog)
{
    struct sockaddr_un a;
    socklen_t len = address(name, &a);
    int fd = local_socket();

    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&a, len) != 0 || listen(fd, backlog) != 0)
        return close_failed(fd);
    return fd;
}

int cm_local_accept(int listener, int64_t until_ns)
{
    for (;;) {
        int fd;

        if (!await(listener, POLLIN, until_ns))
            return -1;
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            return fd;
        if (errno != EINTR && errno != EAGAIN && errno != ECONNABORTED)
            return -1;
    }
}

int cm_local_connect(const unsigned char name[CM_LOCAL_NAME], int64_t until_ns)
{
    static const struct timespec pause = {.tv_sec = 0, .tv_nsec = CM_NS_PER_MS};
    struct sockaddr_un a;
    socklen_t len = address(name, &a);
    int fd = local_socket();

    if (fd < 0)
        return -1;
    /* EAGAIN: the listener's queue is full; it is being emptied. */
    while (connect(fd, (struct sockaddr *)&a, len) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            return close_failed(fd);
        if (cm_now_ns() > until_ns) {
            errno = ETIMEDOUT;
            return close_failed(fd);
        }
        nanosleep(&pause, NULL);
    }
    return fd;
}

bool cm_local_same_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

/* Did a call that moved nothing fail for good? Waits for `events` if it did not. */
static bool retry(int fd, ssize_t moved, short events, int64_t until_ns)
{
    if (moved == 0) {
        errno = ECONNRESET;
        return false;
    }
    if (errno == EINTR)
        return true;
    return (errno == EAGAIN || errno == EWOULDBLOCK) && await(fd, events, until_ns);
}

bool cm_local_read(int fd, void *buf, size_t bytes, int64_t until_ns)
{
    for (size_t got = 0; got < bytes;) {
        ssize_t n = recv(fd, (char *)buf + got, bytes - got, 0);

        if (n > 0)
            got += (size_t)n;
        else if (!retry(fd, n, POLLIN, until_ns))
            return false;
    }
    return true;
}

/* Room for one descriptor in a control message. */
union control {
    struct cmsghdr head;
    char space[CMSG_SPACE(sizeof(int))];
};

/* Send the first byte together with the descriptor; a stream delivers them together. */
static bool send_fd(int fd, const void *byte, int pass_fd, int64_t until_ns)
{
    union control c = {.space = {0}};
    struct iovec io = {.iov_base = (void *)(uintptr_t)byte, .iov_len = 1};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
    ssize_t n;

    m.msg_control = c.space;
    m.msg_controllen = sizeof(c.space);
    c.head.cmsg_level = SOL_SOCKET;
    c.head.cmsg_type = SCM_RIGHTS;
    c.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&c.head), &pass_fd, sizeof(int));
    while ((n = sendmsg(fd, &m, MSG_NOSIGNAL)) != 1)
        if (!retry(fd, n, POLLOUT, until_ns))
            return false;
    return true;
}

bool cm_local_write(int fd, const void *buf, size_t bytes, int pass_fd, int64_t until_ns)
{
    size_t put = 0;

    if (pass_fd >= 0 && bytes > 0) {
        if (!send_fd(fd, buf, pass_fd, until_ns))
            return false;
        put = 1;
    }
    while (put < bytes) {
        ssize_t n = send(fd, (const char *)buf + put, bytes - put, MSG_NOSIGNAL);

        if (n > 0)
            put += (size_t)n;
        else if (!retry(fd, n, POLLOUT, until_ns))
            return false;
    }
    return true;
}

bool cm_local_read_fd(int fd, void *buf, size_t bytes, int *passed, int64_t until_ns)
{
    union control c = {.space = {0}};
    struct iovec io = {.iov_base = buf, .iov_len = 1};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
    ssize_t n;

    m.msg_control = c.space;
    m.msg_controllen = sizeof(c.space);
    while ((n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC)) != 1)
        if (!retry(fd, n, POLLIN, until_ns))
            return false;
    if (m.msg_controllen < CMSG_LEN(sizeof(int)) || c.head.cmsg_level != SOL_SOCKET ||
        c.head.cmsg_type != SCM_RIGHTS) {
        errno = EPROTO;
        return false;
    }
    memcpy(passed, CMSG_DATA(&c.head), sizeof(int));
    if (cm_local_read(fd, (char *)buf + 1, bytes - 1, until_ns))
        return true;
    close_failed(*passed);
    return false;
}
