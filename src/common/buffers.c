/*
 * Arena layout. All sums saturate at SIZE_MAX, so that an absurd -e is refused
 * by comparison with the memory there is, before anything is touched.
 */
#include "common/buffers.h"

#include <stdint.h>

#include "base/units.h"
#include "common/backend.h"
#include "common/check.h"
#include "engine/comm.h"

enum {
    PAGE = 4096,
    MAX_ELEMENT = 8,
    STAGGERS = 16, /* different starts */
    STAGGER = 192  /* bytes between them: lines apart, and not a power of two */
};

static size_t plus(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

static size_t whole_pages(size_t bytes)
{
    return plus(bytes, PAGE - 1) == SIZE_MAX ? SIZE_MAX : (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t room_of(const struct cm_opts *o, size_t max_bytes)
{
    return plus(max_bytes, (size_t)o->run.unalign * MAX_ELEMENT);
}

/* One buffer with its guards and the largest stagger. */
static size_t buffer_bytes(const struct cm_opts *o, size_t max_bytes)
{
    size_t extra = 2 * CM_GUARD_BYTES + 2 * STAGGERS * STAGGER;

    return whole_pages(plus(room_of(o, max_bytes), extra));
}

size_t cm_buffers_bytes(const struct cm_opts *o, size_t max_bytes, int n)
{
    size_t each = buffer_bytes(o, max_bytes);
    size_t scratch = each == SIZE_MAX ? 0 : whole_pages(cm_comm_scratch_bytes(max_bytes, n));

    return plus(plus(plus(each, each), scratch), o->find.on ? PAGE : 0);
}

/* Of the ranks that share the room. */
static size_t all_ranks(const struct cm_opts *o, size_t max_bytes, int n, const struct cm_room *r)
{
    size_t all;

    if (__builtin_mul_overflow(cm_buffers_bytes(o, max_bytes, n), (size_t)r->ranks, &all))
        return SIZE_MAX;
    return all;
}

/* Largest power of two that fits as -e; 0: none. */
static size_t largest_fit(const struct cm_opts *o, int n, const struct cm_room *r)
{
    size_t fit = 0;

    for (size_t e = 1; e <= SIZE_MAX / 4 && all_ranks(o, e, n, r) <= r->bytes; e *= 2)
        fit = e;
    return fit;
}

enum cm_status cm_buffers_fit(const struct cm_opts *o, int n, const struct cm_room *room,
                              size_t *arena_bytes)
{
    size_t needed = all_ranks(o, o->sweep.max_bytes, n, room), fit;
    const char *more = needed == SIZE_MAX ? "more than " : "",
               *ranks = room->ranks == 1 ? " needs" : "s need";
    char need[32], have[32], best[32];

    if (needed <= room->bytes) {
        *arena_bytes = cm_buffers_bytes(o, o->sweep.max_bytes, n);
        return CM_OK;
    }
    fit = largest_fit(o, n, room);
    cm_format_size(needed >> 20 << 20, need);
    cm_format_size(room->bytes >> 20 << 20, have);
    if (fit == 0)
        return CM_FAIL(CM_ENOMEM, "-e/--maxbytes: %d rank%s %s%s of %s, %s are available",
                       room->ranks, ranks, more, need, room->where, have);
    return CM_FAIL(CM_ENOMEM,
                   "-e/--maxbytes: %d rank%s %s%s of %s, %s are available; -e %s would fit",
                   room->ranks, ranks, more, need, room->where, have, cm_format_size(fit, best));
}

struct cm_buffers cm_buffers_place(const struct cm_opts *o, int n, int rank, void *arena)
{
    size_t each = buffer_bytes(o, o->sweep.max_bytes);
    size_t start = CM_GUARD_BYTES + (size_t)(rank % STAGGERS) * STAGGER;
    struct cm_buffers b;

    b.in = (unsigned char *)arena + start;
    /* Loads of IN and stores to OUT must not share their low address bits. */
    b.out = (unsigned char *)arena + each + start + STAGGERS / 2 * STAGGER;
    b.room = room_of(o, o->sweep.max_bytes);
    b.scratch_at = 2 * each;
    b.scratch_bytes = cm_comm_scratch_bytes(o->sweep.max_bytes, n);
    b.note = (unsigned char *)arena + b.scratch_at + whole_pages(b.scratch_bytes);
    return b;
}
