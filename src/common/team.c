/*
 * Barrier and gather of all ranks on flat sequence lines. Ranks that share no
 * memory with this one have lines here too, which control_team.c writes for them.
 *
 * Invariant: a rank that starts operation k+1 has seen all others start
 * operation k, so they have finished reading k-1. Two buffers, chosen by the
 * parity of the sequence, are therefore enough. It holds for copies as well:
 * what arrives of operation k+1 was sent by ranks that had started it.
 */
#include "common/team.h"

#include <assert.h>
#include <string.h>

#include "common/control.h"

static struct cm_team_slot *slot(const struct cm_team *t, int rank)
{
    return &cm_rank_shared(t->base, t->layout, rank)->team;
}

static enum cm_status wait_for(const struct cm_team *t, int rank)
{
    const struct cm_team_slot *s = slot(t, rank);
    struct cm_spin spin = cm_spin_start();

    while (atomic_load_explicit(&s->seq, memory_order_acquire) < t->seq) {
        enum cm_status st = cm_spin_moving(&spin, t->waiter, rank);

        if (st != CM_OK)
            return st;
    }
    return CM_OK;
}

/* Wait for all, or for those of my domain; starting behind oneself so that ranks read apart. */
static enum cm_status wait_for_ranks(const struct cm_team *t, bool all)
{
    enum cm_status st = CM_OK;

    for (int i = 1; i < t->n && st == CM_OK; i++) {
        int rank = (t->rank + i) % t->n;

        if (all || cm_local_of(t->layout, rank) >= 0)
            st = wait_for(t, rank);
    }
    return st;
}

/* Arrive with `mine`, wait for everybody. One rank of each domain brings them together. */
static enum cm_status meet(struct cm_team *t, const void *mine, size_t bytes)
{
    struct cm_diag *diag = t->waiter->diag;
    uint32_t phase = atomic_load_explicit(&diag->phase, memory_order_relaxed);
    struct cm_team_slot *s = slot(t, t->rank);
    enum cm_status st;

    t->seq++;
    if (bytes > 0)
        memcpy(s->bytes[t->seq & 1], mine, bytes);
    s->length[t->seq & 1] = (uint32_t)bytes;
    atomic_store_explicit(&s->seq, t->seq, memory_order_release);
    /* Set-up and tear-down keep their names: a report should tell them from a barrier. */
    if (phase != CM_AT_SETUP && phase != CM_AT_FINALIZE)
        atomic_store_explicit(&diag->phase, CM_AT_SYNC, memory_order_relaxed);
    st = wait_for_ranks(t, t->control == NULL);
    if (st == CM_OK && t->control != NULL)
        st = cm_control_team(t->control, t);
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
