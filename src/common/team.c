/*
 * Barrier and gather of all ranks on flat sequence lines.
 *
 * Invariant: a rank that starts operation k+1 has seen all others start
 * operation k, so they have finished reading k-1. Two buffers, chosen by the
 * parity of the sequence, are therefore enough.
 */
#include "common/team.h"

#include <assert.h>
#include <string.h>

static struct cm_team_slot *slot(const struct cm_team *t, int rank)
{
    return &cm_rank_shared(t->base, t->layout, rank)->team;
}

static enum cm_status wait_for(const struct cm_team *t, int rank)
{
    const struct cm_team_slot *s = slot(t, rank);
    struct cm_spin spin = cm_spin_start();

    while (atomic_load_explicit(&s->seq, memory_order_acquire) < t->seq) {
        enum cm_status st = cm_spin(&spin, t->waiter, rank);

        if (st != CM_OK)
            return st;
    }
    return CM_OK;
}

/* Arrive with `mine`; wait for everybody, starting behind oneself so that ranks read apart. */
static enum cm_status meet(struct cm_team *t, const void *mine, size_t bytes)
{
    struct cm_diag *diag = t->waiter->diag;
    uint32_t phase = atomic_load_explicit(&diag->phase, memory_order_relaxed);
    enum cm_status st = CM_OK;

    t->seq++;
    if (bytes > 0)
        memcpy(slot(t, t->rank)->bytes[t->seq & 1], mine, bytes);
    atomic_store_explicit(&slot(t, t->rank)->seq, t->seq, memory_order_release);
    /* Set-up and tear-down keep their names: a report should tell them from a barrier. */
    if (phase != CM_AT_SETUP && phase != CM_AT_FINALIZE)
        atomic_store_explicit(&diag->phase, CM_AT_SYNC, memory_order_relaxed);
    for (int i = 1; i < t->n && st == CM_OK; i++)
        st = wait_for(t, (t->rank + i) % t->n);
    atomic_store_explicit(&diag->phase, phase, memory_order_relaxed);
    return st;
}

enum cm_status cm_team_barrier(struct cm_team *t)
{
    return meet(t, NULL, 0);
}

enum cm_status cm_team_gather(struct cm_team *t, const void *mine, size_t bytes, void *all)
{
    enum cm_status st;

    assert(bytes <= CM_TEAM_BYTES);
    st = meet(t, mine, bytes);
    if (st != CM_OK)
        return st;
    for (int r = 0; r < t->n && bytes > 0; r++)
        memcpy((char *)all + (size_t)r * bytes, slot(t, r)->bytes[t->seq & 1], bytes);
    return CM_OK;
}

/* Reads the flags in place: no room for n of them is needed. */
enum cm_status cm_team_or(struct cm_team *t, bool mine, bool *any)
{
    unsigned char flag = mine;
    enum cm_status st = meet(t, &flag, sizeof(flag));
    bool found = false;

    if (st != CM_OK)
        return st;
    for (int r = 0; r < t->n; r++)
        found = found || slot(t, r)->bytes[t->seq & 1][0] != 0;
    *any = found;
    return CM_OK;
}
