/* Do the processes of a job run one program with the same options? Private to launchers. */
#ifndef CM_COMMON_AGREE_H
#define CM_COMMON_AGREE_H

#include <stdint.h>

#include "common/opts_table.h"

enum { CM_PROGRAM_BYTES = 64 };

/*
 * The program, and one hash per row of the option table, of the value in use;
 * comparable between processes.
 */
struct cm_digest {
    char program[CM_PROGRAM_BYTES]; /* cut if it must be */
    uint64_t row[CM_MAX_OPTIONS];
};

void cm_digest_fill(const struct cm_opts *o, struct cm_digest *out);

/* Long name of the first option that differs, or NULL. */
const char *cm_digest_difference(const struct cm_digest *a, const struct cm_digest *b);

#endif
