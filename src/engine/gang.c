/*
 * Meeting points of a gang. Each member counts its own visits on a line of its
 * own and compares with the others' counts, so nothing is ever reset.
 */
#include "engine/gang.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* One writer: the member. */
struct member {
    alignas(CM_LINE) _Atomic uint64_t met;    /* calls of cm_gang_meet */
    alignas(CM_LINE) _Atomic uint64_t joined; /* calls of cm_gang_join, part written */
};

struct cm_gang {
    int members;
    struct member of[CM_GPU_GANG];
    struct cm_gpu_rank parts[CM_GPU_GANG];
    alignas(CM_LINE) _Atomic uint64_t launched; /* by the leader; status written before */
    enum cm_status status;
    const void *from; /* cm_gang_copy: the leader's buffer */
};

enum cm_status cm_gang_open(int members, struct cm_gang **out)
{
    struct cm_gang *g;

    if (members < 1 || members > CM_GPU_GANG)
        return CM_FAIL(CM_EINVAL, "a gang of %d ranks; at most %d share a GPU", members,
                       CM_GPU_GANG);
    g = aligned_alloc(alignof(struct cm_gang), sizeof(*g));
    if (g == NULL)
        return CM_FAIL(CM_ENOMEM, "gang of %d ranks", members);
    memset(g, 0, sizeof(*g));
    g->members = members;
    *out = g;
    return CM_OK;
}

void cm_gang_close(struct cm_gang *g)
{
    free(g);
}

int cm_gang_members(const struct cm_gang *g)
{
    return g->members;
}

/* Wait until a count of another member has reached `want`. */
static enum cm_status wait_count(const _Atomic uint64_t *count, uint64_t want,
                                 const struct cm_waiter *w)
{
    struct cm_spin spin = cm_spin_start();

    while (atomic_load_explicit(count, memory_order_acquire) < want) {
        enum cm_status st = cm_spin(&spin, w, -2);

        if (st != CM_OK)
            return st;
    }
    return CM_OK;
}

/* Count one visit of one's own; returns how many there were. */
static uint64_t visit(_Atomic uint64_t *count)
{
    uint64_t n = atomic_load_explicit(count, memory_order_relaxed) + 1;

    atomic_store_explicit(count, n, memory_order_release);
    return n;
}

enum cm_status cm_gang_meet(struct cm_gang *g, int member, const struct cm_waiter *w)
{
    uint64_t n = visit(&g->of[member].met);
    enum cm_status st = CM_OK;

    for (int m = 0; st == CM_OK && m < g->members; m++)
        st = wait_count(&g->of[m].met, n, w);
    return st;
}

enum cm_status cm_gang_copy(struct cm_gang *g, int member, const struct cm_waiter *w, void *buf,
                            size_t bytes)
{
    enum cm_status st;

    if (g->members == 1)
        return CM_OK;
    if (member == 0)
        g->from = buf;
    st = cm_gang_meet(g, member, w);
    if (st == CM_OK && member != 0)
        memcpy(buf, g->from, bytes);
    return st == CM_OK ? cm_gang_meet(g, member, w) : st;
}

enum cm_status cm_gang_join(struct cm_gang *g, int member, const struct cm_waiter *w,
                            const struct cm_gpu_rank *mine, const struct cm_gpu_rank **all)
{
    enum cm_status st = CM_OK;
    uint64_t n;

    *all = NULL;
    g->parts[member] = *mine;
    n = visit(&g->of[member].joined);
    if (member != 0)
        return CM_OK;
    for (int m = 1; st == CM_OK && m < g->members; m++)
        st = wait_count(&g->of[m].joined, n, w);
    *all = st == CM_OK ? g->parts : NULL;
    return st;
}

enum cm_status cm_gang_launched(struct cm_gang *g, int member, const struct cm_waiter *w,
                                enum cm_status st)
{
    if (member == 0) {
        g->status = st;
        visit(&g->launched);
        return st;
    }
    st = wait_count(&g->launched, atomic_load_explicit(&g->of[member].joined, memory_order_relaxed),
                    w);
    return st == CM_OK ? g->status : st;
}
