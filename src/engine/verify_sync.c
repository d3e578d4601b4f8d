/*
 * The verifier's order of events: one vector clock per worker.
 *
 * An access is ordered before another iff the other's worker has learnt, by a
 * wait or a port, the clock value of the first. A wait learns the clocks of
 * the very post it waits for, not of later ones, and a port carries clocks in
 * each slot, both ways; so the order found does not depend on who happened to
 * run first here.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/verify_int.h"

bool vm_sync_open(struct vm *vm)
{
    size_t n = (size_t)vm->n, threads = (size_t)vm->nthreads;

    vm->clocks = calloc(threads * threads, sizeof(*vm->clocks));
    vm->ports = calloc(n * n * (size_t)vm->nchannels, sizeof(*vm->ports));
    return vm->clocks != NULL && vm->ports != NULL ? true : vm_nomem(vm);
}

static void close_port(struct vm_port *q)
{
    if (q == NULL)
        return;
    free(q->values);
    free(q->clocks);
    free(q);
}

void vm_sync_close(struct vm *vm)
{
    for (int k = 0; vm->ports != NULL && k < vm->n * vm->n * vm->nchannels; k++)
        close_port(vm->ports[k]);
    for (int k = 0; vm->threads != NULL && k < vm->nthreads; k++) {
        free(vm->threads[k].marks);
        free(vm->threads[k].marked);
    }
    free(vm->ports);
    free(vm->clocks);
}

void vm_join(const struct vm *vm, struct vm_thread *t, const uint32_t *clocks)
{
    uint32_t *mine = vm_clock(vm, t);

    for (int k = 0; k < vm->nthreads; k++)
        mine[k] = mine[k] < clocks[k] ? clocks[k] : mine[k];
}

void vm_tick(const struct vm *vm, struct vm_thread *t)
{
    vm_clock(vm, t)[vm_id(vm, t)]++;
}

bool vm_mark_phase(struct vm *vm, struct vm_thread *t, int64_t phase)
{
    size_t bytes = (size_t)vm->nthreads * sizeof(*t->marked);
    int cap = t->cap_marks;

    if (!vm_grow(vm, (void **)&t->marks, t->nmarks, &t->cap_marks, sizeof(*t->marks)) ||
        !vm_grow(vm, (void **)&t->marked, t->nmarks, &cap, bytes))
        return false;
    t->marks[t->nmarks] = (struct vm_mark){t->call, phase};
    memcpy(t->marked + (size_t)t->nmarks * (size_t)vm->nthreads, vm_clock(vm, t), bytes);
    t->nmarks++;
    vm_tick(vm, t);
    return true;
}

/* First mark of `of` that satisfies (call, phase); marks are in order of both. NULL: none yet. */
static const struct vm_mark *find_mark(const struct vm_thread *of, int call, int64_t phase)
{
    int lo = 0, hi = of->nmarks;

    while (lo < hi) {
        int mid = (lo + hi) / 2;
        const struct vm_mark *m = &of->marks[mid];

        if (m->call < call || (m->call == call && m->phase < phase))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < of->nmarks ? &of->marks[lo] : NULL;
}

const uint32_t *vm_line_at(struct vm *vm, const struct vm_thread *t, const struct cm_wait_on *w)
{
    int64_t phase = cm_index_at(&w->phase, vm->plans[t->rank]->perm, t->i[0], t->i[1]);
    const struct vm_thread *of = &vm->threads[vm->first[w->rank] + w->worker];
    const struct vm_mark *m;

    if (phase <= 0)
        return vm_clock(vm, t);
    m = find_mark(of, t->call, phase);
    if (m == NULL)
        return NULL;
    if (m->call != t->call || m->phase != phase) {
        vm_fault(vm, t, "waits for phase %lld of rank %d worker %d, which it never posts",
                 (long long)phase, w->rank, w->worker);
        return NULL;
    }
    return of->marked + (size_t)(m - of->marks) * (size_t)vm->nthreads;
}

static struct vm_port *open_port(struct vm *vm, int src, int dst)
{
    size_t depth = (size_t)vm->args->depth;
    struct vm_port *q = calloc(1, sizeof(*q));

    if (q == NULL)
        return NULL;
    q->src = src;
    q->dst = dst;
    q->producer = q->consumer = VM_NONE;
    q->values = calloc(depth, sizeof(*q->values));
    q->clocks = calloc(depth * (size_t)vm->nthreads, sizeof(*q->clocks));
    if (q->values == NULL || q->clocks == NULL) {
        close_port(q);
        return NULL;
    }
    return q;
}

struct vm_port *vm_port_of(struct vm *vm, const struct vm_thread *t, const struct cm_operand *o,
                           bool sends)
{
    int src = sends ? t->rank : o->rank, dst = sends ? o->rank : t->rank;
    struct vm_port **at = &vm->ports[(src * vm->n + dst) * vm->nchannels + t->channel];
    int *user;

    if (*at == NULL)
        *at = open_port(vm, src, dst);
    if (*at == NULL) {
        vm_nomem(vm);
        return NULL;
    }
    user = sends ? &(*at)->producer : &(*at)->consumer;
    if (*user != VM_NONE && *user != vm_id(vm, t)) {
        vm_fault(vm, t, "port %d->%d has two workers at one end", src, dst);
        return NULL;
    }
    *user = vm_id(vm, t);
    return *at;
}

uint32_t *vm_slot_clock(const struct vm *vm, const struct vm_port *q, uint64_t slot)
{
    return q->clocks + slot % (uint64_t)vm->args->depth * (uint64_t)vm->nthreads;
}
