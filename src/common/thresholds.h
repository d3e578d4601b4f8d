/*
 * A file of thresholds: what rows of a report must reach.
 *
 * Text, one rule a line; the first that fits a row wins; '#' starts a comment:
 *
 *   collective  type   bytes  ranks  nodes  algorithm  limits
 *   all_reduce  float  0-8K   2-8    1      *          max_time=20
 *   all_*       *      64M-   *      1      ring,shm   min_busbw=10
 *   sendrecv    *      *      *      *      *,*tcp     min_busbw=1 max_time=1e6
 *   *           *      *      *      *      *          ignore
 *
 * collective, type and algorithm are globs; algorithm may have a second glob
 * behind a comma, for the wire as the header of the report has it ("shm+tcp").
 * bytes, ranks and nodes are ranges "lo-hi" (hi inclusive), "lo-", one number or
 * "*"; they are those of the row and its group. Limits hold for each placement:
 * max_time in microseconds makes it a rule for latency, min_busbw in 1e9 bytes
 * per second one for bandwidth, both make it both. What `ignore` fits is not judged.
 */
#ifndef CM_COMMON_THRESHOLDS_H
#define CM_COMMON_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct cm_thresholds;

/* What a rule says; 0: no such limit. */
struct cm_limits {
    double min_busbw_gbs, max_time_us;
    bool ignored;
    int line; /* of the file, from 1 */
};

/* A row as rules see it. No text is NULL; an algorithm that is not known is "". */
struct cm_subject {
    const char *collective, *type, *algo, *wire;
    size_t bytes;
    int ranks, nodes;
};

enum { CM_THRESHOLDS_MAX_FILE = 1 << 20 };

/*
 * Parse n bytes. *out is the caller's: cm_thresholds_free(). CM_EINVAL: logged
 * as "name:line: what is wrong"; a file without rules is one. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_thresholds_parse(const char *text, size_t n, const char *name,
                                                 struct cm_thresholds **out);

/* The same from a file. CM_EINVAL also if it cannot be read or is too large. */
CM_MUST_CHECK enum cm_status cm_thresholds_read(const char *path, struct cm_thresholds **out);

void cm_thresholds_free(struct cm_thresholds *t); /* NULL is fine */

/* The limits of the first rule that fits, NULL: none does. */
const struct cm_limits *cm_thresholds_find(const struct cm_thresholds *t,
                                           const struct cm_subject *s);

#endif
