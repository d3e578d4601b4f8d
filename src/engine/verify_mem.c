/*
 * The verifier's memory: cells that hold symbolic values, and who touched them.
 *
 * A cell is one chunk, one channel's share of it. Loads and stores that no
 * synchronisation orders are a fault. A cell remembers its last store, and the
 * loads since then that are not ordered before a later one.
 */
#include <stdlib.h>

#include "engine/verify_int.h"

bool vm_mem_open(struct vm *vm)
{
    size_t count;

    vm->rank_cells = ((vm->in_chunks + vm->out_chunks) * VM_PASSES + vm->scratch) * vm->nchannels;
    count = (size_t)vm->rank_cells * (size_t)vm->n;
    vm->cells = malloc(count * sizeof(*vm->cells));
    if (vm->cells == NULL)
        return vm_nomem(vm);
    for (size_t k = 0; k < count; k++)
        vm->cells[k] = (struct vm_cell){.writer = VM_NONE, .loads = VM_NONE};
    vm->free_loads = VM_NONE;
    return true;
}

void vm_mem_close(struct vm *vm)
{
    free(vm->cells);
    free(vm->loads);
}

/* In place IN and OUT are one buffer: which cell stands for both. */
static void resolve_alias(const struct vm *vm, int rank, enum cm_space *space, int64_t *chunk)
{
    bool in_many = vm->info->in_per_rank, out_many = vm->info->out_per_rank;

    if (!vm->args->in_place)
        return;
    if (*space == CM_IN && !in_many) {
        *space = CM_OUT;
        *chunk += out_many ? rank * vm->pieces : 0;
    } else if (*space == CM_OUT && in_many) {
        *space = CM_IN;
        *chunk += rank * vm->pieces;
    }
}

struct vm_cell *vm_cell(const struct vm *vm, enum cm_space space, int rank, int64_t chunk,
                        int channel, int pass)
{
    int64_t ins = (int64_t)vm->in_chunks * vm->nchannels * VM_PASSES;
    int64_t outs = (int64_t)vm->out_chunks * vm->nchannels * VM_PASSES;
    int64_t at = (int64_t)rank * vm->rank_cells;

    resolve_alias(vm, rank, &space, &chunk);
    if (space == CM_SCRATCH)
        return &vm->cells[at + ins + outs + chunk * vm->nchannels + channel];
    at += space == CM_OUT ? ins : 0;
    return &vm->cells[at + (chunk * vm->nchannels + channel) * VM_PASSES + pass];
}

struct vm_cell *vm_cell_at(struct vm *vm, const struct vm_thread *t, enum cm_space space, int rank,
                           int64_t chunk)
{
    int limit = space == CM_IN    ? vm->in_chunks
                : space == CM_OUT ? vm->out_chunks
                                  : vm->plans[rank]->scratch;

    if (chunk >= 0 && chunk < limit)
        return vm_cell(vm, space, rank, chunk, t->channel, t->pass);
    vm_fault(vm, t, "chunk %lld of space %d of rank %d, which has %d", (long long)chunk, (int)space,
             rank, limit);
    return NULL;
}

static void drop_load(struct vm *vm, int32_t *link)
{
    int32_t k = *link;

    *link = vm->loads[k].next;
    vm->loads[k].next = vm->free_loads;
    vm->free_loads = k;
}

static bool knows(const struct vm *vm, const struct vm_thread *t, int thread, uint32_t clock)
{
    return thread == VM_NONE || vm_clock(vm, t)[thread] >= clock;
}

static bool race(struct vm *vm, const struct vm_thread *t, const char *what, int other)
{
    const struct vm_thread *o = &vm->threads[other];

    return vm_fault(vm, t, "%s races with rank %d worker %d", what, o->rank, o->worker);
}

/* Note a load; loads that it is ordered after need no memory any more. */
static bool note_load(struct vm *vm, const struct vm_thread *t, struct vm_cell *c)
{
    int me = vm_id(vm, t);
    int32_t k;

    if (!knows(vm, t, c->writer, c->clock))
        return race(vm, t, "load", c->writer);
    for (int32_t *link = &c->loads; *link != VM_NONE;) {
        struct vm_load *l = &vm->loads[*link];

        if (knows(vm, t, l->thread, l->clock))
            drop_load(vm, link);
        else
            link = &l->next;
    }
    k = vm->free_loads;
    if (k != VM_NONE) {
        vm->free_loads = vm->loads[k].next;
    } else {
        if (!vm_grow(vm, (void **)&vm->loads, vm->nloads, &vm->cap_loads, sizeof(*vm->loads)))
            return false;
        k = vm->nloads++;
    }
    vm->loads[k] = (struct vm_load){me, c->loads, vm_clock(vm, t)[me]};
    c->loads = k;
    return true;
}

bool vm_note_store(struct vm *vm, const struct vm_thread *t, struct vm_cell *c, const char *what)
{
    int me = vm_id(vm, t);

    if (!knows(vm, t, c->writer, c->clock))
        return race(vm, t, what, c->writer);
    while (c->loads != VM_NONE) {
        const struct vm_load *l = &vm->loads[c->loads];

        if (!knows(vm, t, l->thread, l->clock))
            return race(vm, t, what, l->thread);
        drop_load(vm, &c->loads);
    }
    c->writer = me;
    c->clock = vm_clock(vm, t)[me];
    return true;
}

/* What memory holds, as the executor reads it: IN's factors are applied on the way. */
static int load_cell(struct vm *vm, const struct vm_thread *t, const struct vm_access *x)
{
    struct vm_cell *c = x->cell;
    bool input = x->operand->space == CM_IN;
    const char *fault = NULL;

    if (!note_load(vm, t, c))
        return VM_NONE;
    if (c->value == VM_UNDEFINED)
        fault = "reads undefined memory";
    else if (input && c->value != c->input)
        fault = "reads an input that was overwritten";
    else if (!input && vm->info->reduces && vm->values[c->value].raw)
        fault = "reads a raw input as if it were a result";
    if (fault != NULL) {
        vm_fault(vm, t, "%s: rank %d space %d chunk %lld", fault, x->operand->rank,
                 (int)x->operand->space, (long long)x->chunk);
        return VM_NONE;
    }
    return input && vm->info->reduces ? c->value + 1 : c->value;
}

int vm_load(struct vm *vm, const struct vm_thread *t, const struct vm_access *x)
{
    int value = x->port == NULL ? load_cell(vm, t, x)
                                : x->port->values[x->port->tail % (uint64_t)vm->args->depth];

    if (value != VM_NONE && vm->values[value].run != vm_run(t->call, t->pass)) {
        vm_fault(vm, t, "reads what an earlier call or pass left: chunk %lld", (long long)x->chunk);
        return VM_NONE;
    }
    return value;
}

bool vm_store(struct vm *vm, const struct vm_thread *t, const struct vm_access *x, int value)
{
    if (!vm_note_store(vm, t, x->cell, "store"))
        return false;
    x->cell->value = value;
    return true;
}
