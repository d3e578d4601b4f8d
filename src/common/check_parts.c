/*
 * Which parts of a rank's buffers hold what: before an operation (fill) and
 * after it (check). In place, one region holds IN and OUT; what neither of
 * them covers is poison.
 */
#include <assert.h>

#include "common/check.h"

static size_t width_of(const struct cm_check_args *a)
{
    return cm_dtypes[a->expect.data.dtype].bytes;
}

size_t cm_poison_phase(const struct cm_check_args *a, const unsigned char *p)
{
    const unsigned char *start = a->poisoned != NULL ? a->poisoned : a->out;

    assert(p >= start);
    return (size_t)(p - start);
}

static void add(struct cm_parts *p, struct cm_part part)
{
    if (part.count == 0)
        return;
    assert(p->n < CM_MAX_PARTS);
    p->part[p->n++] = part;
}

/* Of `count` elements at `start`, all but the hole_count at `hole` are poison. */
static void add_poison_around(const struct cm_check_args *a, const unsigned char *start,
                              size_t count, const unsigned char *hole, size_t hole_count,
                              struct cm_parts *p)
{
    size_t width = width_of(a), before = (size_t)(hole - start) / width, end = before + hole_count;

    add(p, (struct cm_part){CM_WRONG_UNTOUCHED, CM_CONTENT_POISON, start, 0, before, 0});
    add(p, (struct cm_part){CM_WRONG_UNTOUCHED, CM_CONTENT_POISON, start + end * width, end,
                            count - end, 0});
}

/* A rank that writes no OUT: all is as it was. */
static void add_untouched(const struct cm_check_args *a, struct cm_parts *p)
{
    if (!a->in_place) {
        add(p, (struct cm_part){CM_WRONG_UNTOUCHED, CM_CONTENT_POISON, a->out, 0, a->out_count, 0});
        return;
    }
    add(p, (struct cm_part){CM_WRONG_UNTOUCHED, CM_CONTENT_INPUT, a->in, 0, a->in_count, 0});
    add_poison_around(a, a->out, a->out_count, a->in, a->in_count, p);
}

void cm_parts_output(const struct cm_check_args *a, struct cm_parts *p)
{
    const struct cm_expect *e = &a->expect;

    if (!cm_data_writes(e->data.coll, e->rank, e->root)) {
        add_untouched(a, p);
        return;
    }
    add(p, (struct cm_part){CM_WRONG_OUTPUT, CM_CONTENT_RESULT, a->out, 0, a->out_count, 0});
    if (a->in_place && !cm_data_reads(e->data.coll, e->rank, e->root))
        add_poison_around(a, a->in, a->in_count, a->out, a->out_count, p);
}

void cm_parts_input(const struct cm_check_args *a, struct cm_parts *p)
{
    if (!a->in_place)
        add(p, (struct cm_part){CM_WRONG_INPUT, CM_CONTENT_INPUT, a->in, 0, a->in_count, 0});
}

void cm_parts_guard(const unsigned char *payload, size_t used, struct cm_parts *p)
{
    add(p, (struct cm_part){CM_WRONG_GUARD, CM_CONTENT_GUARD, payload - CM_GUARD_BYTES, 0,
                            CM_GUARD_BYTES, -(int64_t)CM_GUARD_BYTES});
    add(p, (struct cm_part){CM_WRONG_GUARD, CM_CONTENT_GUARD, payload + used, 0, CM_GUARD_BYTES,
                            (int64_t)used});
}

/* In place: where the one buffer starts, and its elements. */
static const unsigned char *region_of(const struct cm_check_args *a, size_t *count)
{
    *count = a->in_count > a->out_count ? a->in_count : a->out_count;
    return a->in_count > a->out_count ? a->in : a->out;
}

static void add_guards(const struct cm_check_args *a, struct cm_parts *p)
{
    size_t count;
    const unsigned char *region = region_of(a, &count);

    if (a->in_place) {
        cm_parts_guard(region, count * width_of(a), p);
        return;
    }
    cm_parts_guard(a->out, a->out_count * width_of(a), p);
    cm_parts_guard(a->in, a->in_count * width_of(a), p);
}

void cm_parts_check(const struct cm_check_args *a, struct cm_parts *out)
{
    out->n = 0;
    cm_parts_output(a, out);
    cm_parts_input(a, out);
    add_guards(a, out);
}

void cm_parts_fill(const struct cm_check_args *a, struct cm_parts *out)
{
    const struct cm_expect *e = &a->expect;
    size_t count, in_count = a->in_count;
    const unsigned char *region = region_of(a, &count);

    out->n = 0;
    if (a->in_place && !cm_data_reads(e->data.coll, e->rank, e->root))
        in_count = 0; /* there is no IN */
    add(out, (struct cm_part){CM_WRONG_INPUT, CM_CONTENT_INPUT, a->in, 0, in_count, 0});
    if (a->in_place)
        add_poison_around(a, region, count, a->in, in_count, out);
    else
        add_poison_around(a, a->out, a->out_count, a->out, 0, out);
    add_guards(a, out);
}
