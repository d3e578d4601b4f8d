/* Local stream sockets with deadlines: exact reads and writes, and file descriptors. */
#ifndef CM_TRANSPORT_FDPASS_H
#define CM_TRANSPORT_FDPASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CM_LOCAL_NAME = 16 }; /* bytes of an abstract socket's name */

/*
 * All functions work on non-blocking sockets, wait at most until `until_ns`
 * (cm_now_ns time) and tell success; failures leave errno (ETIMEDOUT, ...) and
 * are logged by the caller. Descriptors they return are close-on-exec.
 */
int cm_local_listen(const unsigned char name[CM_LOCAL_NAME], int backlog); /* -1: failed */
int cm_local_accept(int listener, int64_t until_ns);
int cm_local_connect(const unsigned char name[CM_LOCAL_NAME], int64_t until_ns);

/* Does the other end run under our effective user id? */
bool cm_local_same_user(int fd);

bool cm_local_read(int fd, void *buf, size_t bytes, int64_t until_ns);

/* Write `bytes`; pass_fd >= 0: hand a duplicate of it over with them. */
bool cm_local_write(int fd, const void *buf, size_t bytes, int pass_fd, int64_t until_ns);

/* Read `bytes` and the descriptor that came with them into *passed. */
bool cm_local_read_fd(int fd, void *buf, size_t bytes, int *passed, int64_t until_ns);

#endif
