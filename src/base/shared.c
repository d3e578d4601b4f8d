/*
 * Geometry of a segment. Every process computes it from the same few numbers,
 * so nothing but those numbers has to be exchanged.
 *
 * Invariant: the areas follow each other without overlap; arenas start on a
 * huge page, ports on a page of their own, so that an unused port costs
 * nothing and a used one does not share a page with another pair's.
 */
#include "base/shared.h"

#include <stdbool.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

static size_t round_up(size_t v, size_t to)
{
    return (v + to - 1) / to * to;
}

size_t cm_slot_stride(const struct cm_layout *l)
{
    return sizeof(struct cm_slot_head) + l->slot_bytes;
}

static int locals(const struct cm_layout *l)
{
    return l->local_of != NULL ? l->nlocal : l->nranks;
}

/* Ports of a segment, on one channel: to each local rank from all, from each to all elsewhere. */
static size_t port_pairs(const struct cm_layout *l)
{
    size_t n = (size_t)l->nranks;

    return n * (size_t)locals(l) * (l->local_of != NULL ? 2 : 1);
}

size_t cm_port_stride(const struct cm_layout *l)
{
    return round_up(sizeof(struct cm_port_lines) + (size_t)l->depth * cm_slot_stride(l), PAGE);
}

size_t cm_port_at(const struct cm_layout *l, int src, int dst, int channel)
{
    /* The receiver's ports lie together: it polls all of them. After them, those that leave. */
    int to = cm_local_of(l, dst), from = cm_local_of(l, src);
    size_t row = to >= 0 ? (size_t)to : (size_t)locals(l) + (size_t)from;
    size_t pair = row * (size_t)l->nranks + (size_t)(to >= 0 ? src : dst);

    return l->ports_at + (pair * (size_t)l->channels + (size_t)channel) * cm_port_stride(l);
}

static bool valid(const struct cm_layout *l)
{
    bool power_of_two = l->depth > 0 && (l->depth & (l->depth - 1)) == 0;

    return l->nranks >= 1 && l->nranks <= CM_MAX_RANKS && locals(l) >= 1 && l->channels >= 1 &&
           l->channels <= CM_MAX_CHANNELS && power_of_two && l->depth <= 1024 &&
           l->slot_bytes > 0 && l->slot_bytes % 64 == 0 && l->slot_bytes <= SIZE_MAX / 4096 &&
           l->arena_bytes % PAGE == 0;
}

enum cm_status cm_layout_fill(struct cm_layout *l)
{
    size_t n = (size_t)l->nranks, nlocal = (size_t)locals(l), ports, arenas, total;

    if (!valid(l))
        return CM_FAIL(CM_EINVAL,
                       "layout: %d ranks, %d channels, %d slots of %zu bytes, arenas of %zu bytes",
                       l->nranks, l->channels, l->depth, l->slot_bytes, l->arena_bytes);
    l->ranks_at = round_up(sizeof(struct cm_shared), PAGE);
    l->ports_at = round_up(l->ranks_at + n * sizeof(struct cm_rank_shared), PAGE);
    if (__builtin_mul_overflow(port_pairs(l) * (size_t)l->channels, cm_port_stride(l), &ports) ||
        __builtin_add_overflow(l->ports_at, ports, &total) || total > SIZE_MAX / 2 ||
        __builtin_mul_overflow(nlocal, l->arena_bytes, &arenas))
        return CM_FAIL(CM_EINVAL, "%d ranks with arenas of %zu bytes exceed the address space",
                       l->nranks, l->arena_bytes);
    l->arenas_at = round_up(total, HUGE_PAGE);
    if (__builtin_add_overflow(l->arenas_at, arenas, &l->total) || l->total > SIZE_MAX / 2)
        return CM_FAIL(CM_EINVAL, "%d ranks with arenas of %zu bytes exceed the address space",
                       l->nranks, l->arena_bytes);
    return CM_OK;
}
