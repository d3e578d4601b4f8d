/*
 * The verbs of the plan builders. Pools grow by doubling; a fold names a
 * contiguous range of each pool, which is why its sources must be added
 * before its destinations and before the next fold is opened.
 */
#include "engine/build.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct cm_index cm_at(int k)
{
    return (struct cm_index){.base = k};
}

struct cm_index cm_affine(int base, int step)
{
    return (struct cm_index){.base = base, .c0 = step};
}

struct cm_index cm_modulo(int base, int step, int mod)
{
    return (struct cm_index){.base = base, .c0 = step, .mod = mod, .how = CM_MODULO};
}

struct cm_index cm_xor(int base, int step)
{
    return (struct cm_index){.base = base, .c0 = step, .how = CM_XOR};
}

struct cm_operand cm_place(enum cm_space space, int rank, struct cm_index chunk)
{
    return (struct cm_operand){.space = space, .rank = rank, .chunk = chunk};
}

struct cm_operand cm_port(int peer, enum cm_space numbering, struct cm_index chunk)
{
    return (struct cm_operand){
        .space = CM_PORT, .numbering = numbering, .rank = peer, .chunk = chunk};
}

/* Room for one more element of `size` bytes in a pool of `n`; the pool, moved or not, or NULL. */
static void *grown(struct cm_plan *p, void *pool, int n, int *cap, size_t size)
{
    int want = *cap > 0 ? 2 * *cap : 16;
    void *q;

    if (p->status != CM_OK)
        return NULL;
    if (n < *cap)
        return pool;
    q = realloc(pool, (size_t)want * size);
    if (q == NULL)
        p->status = CM_FAIL(CM_ENOMEM, "plan: %zu bytes", (size_t)want * size);
    else
        *cap = want;
    return q;
}

static struct cm_fold *new_fold(struct cm_plan *p, enum cm_code code)
{
    struct cm_fold *folds = grown(p, p->folds, p->nfolds, &p->cap_folds, sizeof(*folds));
    struct cm_fold *f;

    if (folds == NULL)
        return NULL;
    assert(p->nworkers > 0);
    p->folds = folds;
    f = &folds[p->nfolds++];
    *f = (struct cm_fold){.code = (uint8_t)code, .from = p->noperands, .wait = p->nwaits};
    p->workers[p->nworkers - 1].nfolds++;
    return f;
}

/* The fold opened last, NULL after a failure. */
static struct cm_fold *open_fold(struct cm_plan *p)
{
    if (p->status != CM_OK)
        return NULL;
    assert(p->nfolds > 0 && p->folds[p->nfolds - 1].code == CM_FOLD);
    return &p->folds[p->nfolds - 1];
}

static bool new_operand(struct cm_plan *p, struct cm_operand o)
{
    struct cm_operand *pool = grown(p, p->operands, p->noperands, &p->cap_operands, sizeof(*pool));

    if (pool == NULL)
        return false;
    p->operands = pool;
    pool[p->noperands++] = o;
    return true;
}

void cm_add_worker(struct cm_plan *p, int channel)
{
    assert(p->nworkers < CM_MAX_WORKERS && channel < CM_MAX_CHANNELS);
    p->workers[p->nworkers++] = (struct cm_worker){.first = p->nfolds, .channel = channel};
    if (p->nchannels <= channel)
        p->nchannels = channel + 1;
}

void cm_add_loop(struct cm_plan *p, int trips)
{
    struct cm_fold *f = new_fold(p, CM_LOOP);

    if (f != NULL)
        f->trips = trips;
}

void cm_add_end(struct cm_plan *p)
{
    new_fold(p, CM_END);
}

void cm_add_fold(struct cm_plan *p)
{
    new_fold(p, CM_FOLD);
}

void cm_wait(struct cm_plan *p, int rank, int worker, struct cm_index phase)
{
    struct cm_wait_on *pool = grown(p, p->waits, p->nwaits, &p->cap_waits, sizeof(*pool));

    if (pool == NULL)
        return;
    p->waits = pool;
    pool[p->nwaits++] = (struct cm_wait_on){.rank = rank, .worker = worker, .phase = phase};
    open_fold(p)->nwait++;
}

void cm_from(struct cm_plan *p, struct cm_operand o)
{
    struct cm_fold *f = open_fold(p);

    if (f == NULL || !new_operand(p, o))
        return;
    assert(f->nto == 0);
    f->nfrom++;
}

void cm_to(struct cm_plan *p, struct cm_operand o)
{
    struct cm_fold *f = open_fold(p);

    if (f == NULL || !new_operand(p, o))
        return;
    if (f->nto++ == 0)
        f->to = p->noperands - 1;
}

void cm_post(struct cm_plan *p)
{
    struct cm_fold *f = open_fold(p);

    if (f != NULL)
        f->post = true;
}

void cm_complete(struct cm_plan *p)
{
    struct cm_fold *f = open_fold(p);

    if (f != NULL)
        f->complete = true;
}

void cm_copy_fold(struct cm_plan *p, struct cm_operand from, struct cm_operand to)
{
    cm_add_fold(p);
    cm_from(p, from);
    cm_to(p, to);
}

void cm_arrive(struct cm_plan *p)
{
    cm_add_fold(p);
    cm_post(p);
}

void cm_wait_rank(struct cm_plan *p, int rank, int phase)
{
    cm_wait(p, rank, 0, cm_at(phase));
}

void cm_wait_others(struct cm_plan *p, int phase)
{
    for (int k = 1; k < p->n; k++)
        cm_wait_rank(p, (p->rank + k) % p->n, phase);
}

void cm_from_all(struct cm_plan *p, struct cm_index chunk)
{
    for (int r = 0; r < p->n; r++) {
        bool sent = p->mode == CM_MODE_COPY && r != p->rank;

        cm_from(p, sent ? cm_port(r, CM_IN, chunk) : cm_place(CM_IN, r, chunk));
    }
}

enum cm_status cm_build_alone(const struct cm_build_args *a, struct cm_plan *p)
{
    cm_add_worker(p, 0);
    cm_copy_fold(p, cm_place(CM_IN, a->rank, cm_at(0)), cm_place(CM_OUT, a->rank, cm_at(0)));
    if (cm_colls[a->coll].reduces)
        cm_complete(p);
    return p->status;
}

void cm_add_perm(struct cm_plan *p, const struct cm_build_args *a)
{
    size_t bytes = (size_t)a->n * sizeof(*p->perm);

    if (p->status != CM_OK)
        return;
    p->perm = malloc(bytes);
    if (p->perm == NULL) {
        p->status = CM_FAIL(CM_ENOMEM, "plan: %zu bytes", bytes);
        return;
    }
    for (int k = 0; k < a->n; k++)
        p->perm[k] = cm_rank_at(a, k);
}

int cm_rank_at(const struct cm_build_args *a, int position)
{
    return a->order != NULL ? a->order[position] : position;
}

int cm_position(const struct cm_build_args *a, int rank)
{
    int k = 0;

    while (cm_rank_at(a, k) != rank)
        k++;
    return k;
}
