/*
 * A rank's arena: send buffer IN, receive buffer OUT and scratch, with guard
 * zones around the first two.
 *
 *   | guard | IN ... | guard | guard | OUT ... | guard | scratch |
 *
 * Each buffer holds the largest size of the sweep, plus the shift of -u. In
 * place, OUT holds both. Buffers start on a cache line; which one depends on
 * the rank, so that the ranks' buffers do not meet in the same cache sets.
 */
#ifndef CM_COMMON_BUFFERS_H
#define CM_COMMON_BUFFERS_H

#include <stddef.h>

#include "common/opts.h"

struct cm_buffers {
    unsigned char *in, *out; /* payloads without -u */
    size_t room;             /* bytes of each, -u included */
    size_t scratch_at;       /* offset of the scratch in the arena */
    size_t scratch_bytes;
    unsigned char *note; /* --find-bad: two cache lines for operations that are barriers */
};

/* Bytes of one rank's arena for n ranks; SIZE_MAX: more than any machine has. */
size_t cm_buffers_bytes(const struct cm_opts *o, size_t max_bytes, int n);

/*
 * CM_ENOMEM if the arenas of n ranks do not fit in the room of those that
 * share it, logged with needed, available and an -e that would fit.
 */
struct cm_room;
CM_MUST_CHECK enum cm_status cm_buffers_fit(const struct cm_opts *o, int n,
                                            const struct cm_room *room, size_t *arena_bytes);

/* Where things are in the arena of `rank` (of all n world ranks) at `arena`. */
struct cm_buffers cm_buffers_place(const struct cm_opts *o, int n, int rank, void *arena);

#endif
