/* A file of the user that every process reads, and that must say the same to all. */
#ifndef CM_COMMON_SAME_FILE_H
#define CM_COMMON_SAME_FILE_H

#include <stdint.h>

#include "base/boot.h"

struct cm_same_file {
    const char *option, *path; /* for messages: "--tuning", and what it names */
    /* Read it, log what is wrong. *hash: equal where what matters of it is equal. */
    enum cm_status (*read)(void *arg, const char *path, uint64_t *hash);
    void *arg;
};

/*
 * Read it in all processes. Collective over `b`. Process 0 goes first, so that what all would
 * refuse is logged once. Errors of read(); CM_EINVAL: a process reads something else there than
 * process 0 (logged by that one). CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_same_file_read(const struct cm_boot *b,
                                               const struct cm_same_file *f);

#endif
