/*
 * Payloads that need no slot: what goes to another node can be sent from where
 * it lies, and what comes from there can arrive where it belongs, so that it is
 * copied by the kernel only.
 *
 * Sent from where it lies: the memory must not change until the slot has left,
 * which may be as late as the end of the operation. So no other fold, of this
 * rank or of one that shares memory with it, may store there.
 *
 * Arrive where it belongs: a fold that stores one slot, unchanged, has waited
 * for all else when it waits for the slot; whoever must have read the place before
 * has done so when the slot was sent.
 */
#include "engine/comm_int.h"

/* A part of this rank's buffers. */
struct area {
    enum cm_space space; /* CM_IN or CM_OUT; in place: CM_OUT for both */
    size_t at, bytes;
};

static bool is_own(const struct cm_comm *c, const struct cm_bound_operand *o)
{
    return (o->space == CM_IN || o->space == CM_OUT) && o->rank == c->rank;
}

/* In place, the buffer of one block lies at the rank's block of the other. */
static struct area area_of(const struct cm_comm *c, const struct cm_bound *b,
                           const struct cm_bound_operand *o, size_t len)
{
    const struct cm_coll_info *coll = &cm_colls[b->key.coll];
    size_t own = (size_t)c->rank * b->key.count * b->esize;
    struct area a = {(enum cm_space)o->space, o->at, len * b->esize};

    if (!b->key.in_place)
        return a;
    a.space = CM_OUT;
    if (coll->in_per_rank != coll->out_per_rank && o->space == (coll->in_per_rank ? CM_OUT : CM_IN))
        a.at += own;
    return a;
}

static bool overlap(struct area a, struct area b)
{
    return a.space == b.space && a.at < b.at + b.bytes && b.at < a.at + a.bytes;
}

/* Does any fold but `but` store into the area? */
static bool is_stored_to(const struct cm_comm *c, const struct cm_bound *b, struct area a,
                         const struct cm_bound_fold *but)
{
    for (const struct cm_bound_fold *f = b->folds; f < b->folds + b->nfolds; f++) {
        for (int k = 0; k < f->nto && f != but; k++) {
            const struct cm_bound_operand *o = &b->operands[f->to + k];

            if (is_own(c, o) && overlap(a, area_of(c, b, o, f->len)))
                return true;
        }
    }
    return false;
}

static bool is_alone(const struct cm_comm *c)
{
    for (int r = 0; r < c->n; r++)
        if (r != c->rank && cm_local_of(c->layout, c->world[r]) >= 0)
            return false;
    return true;
}

/* Does what fold `f` sends lie in this operand, and stay there until the operation ends? */
static bool may_refer(const struct cm_comm *c, const struct cm_bound *b,
                      const struct cm_bound_fold *f, int operand)
{
    const struct cm_bound_operand *o = &b->operands[operand];

    if (!is_own(c, o))
        return false;
    if (o->space == CM_IN && !b->key.in_place)
        return true;
    return is_alone(c) && !is_stored_to(c, b, area_of(c, b, o, f->len), f);
}

/* The result of the fold is its source, bit by bit. */
static bool is_copy(const struct cm_bound *b, const struct cm_bound_fold *f)
{
    return f->nfrom == 1 && !(f->divide && b->divisor > 1) &&
           !(b->premul && b->operands[f->from].space == CM_IN);
}

static int32_t find_refer(const struct cm_comm *c, const struct cm_bound *b,
                          const struct cm_bound_fold *f)
{
    if (is_copy(b, f) && may_refer(c, b, f, f->from))
        return f->from;
    for (int k = 0; k < f->nto; k++)
        if (may_refer(c, b, f, f->to + k))
            return f->to + k;
    return -1;
}

static int32_t find_place(const struct cm_bound *b, const struct cm_bound_fold *f)
{
    if (!is_copy(b, f) || b->operands[f->from].space != CM_PORT)
        return -1;
    for (int k = 0; k < f->nto; k++)
        if (b->operands[f->to + k].space != CM_PORT)
            return f->to + k;
    return -1;
}

void cm_bind_far(const struct cm_comm *c, struct cm_bound *b)
{
    if (c->remote == NULL || !c->remote->far)
        return;
    for (int k = 0; k < b->nfolds; k++) {
        struct cm_bound_fold *f = &b->folds[k];

        if (f->len * b->esize < CM_FAR_BYTES)
            continue;
        f->refer = f->fills ? find_refer(c, b, f) : -1;
        f->place = find_place(b, f);
    }
}
