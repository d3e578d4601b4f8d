/*
 * The verifier's values: which ranks' contributions, to which chunk, folded in
 * which order. Values are never changed once made; number 0 is "undefined".
 */
#include <stdlib.h>
#include <string.h>

#include "engine/verify_int.h"

void vm_value_close(struct vm *vm)
{
    free(vm->values);
    free(vm->sets);
    free(vm->expected_order);
}

/* Lengths differ by piece, for alltoallv also by (sender, receiver). */
static int extent(const struct vm *vm, enum cm_space space, int rank, int64_t chunk)
{
    int block = (int)(chunk / vm->pieces), piece = (int)(chunk % vm->pieces);
    int src = space == CM_IN ? rank : block, dst = space == CM_IN ? block : rank;

    return vm->coll == CM_ALLTOALLV ? (src * vm->n + dst) * vm->pieces + piece : piece;
}

int vm_extent(const struct vm *vm, const struct vm_thread *t, const struct vm_access *x)
{
    enum cm_space space = x->operand->space;

    if (space == CM_SCRATCH)
        return VM_NONE;
    if (space == CM_PORT)
        return extent(vm, x->operand->numbering, t->rank, x->chunk);
    return extent(vm, space, x->operand->rank, x->chunk);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
    return h ^ h >> 29;
}

/* Order of a lone contribution. */
uint64_t vm_leaf_order(int rank)
{
    return mix(0, (uint64_t)rank + 1);
}

static uint64_t *set_of(const struct vm *vm, int value)
{
    return vm->sets + (size_t)value * (size_t)vm->words;
}

/* A new value with an empty set; VM_NONE when memory is out. Moves vm->values and vm->sets. */
static int new_value(struct vm *vm, struct vm_value v)
{
    size_t bytes = (size_t)vm->words * sizeof(*vm->sets);
    int cap = vm->cap_values;

    if (!vm_grow(vm, (void **)&vm->values, vm->nvalues, &vm->cap_values, sizeof(*vm->values)) ||
        !vm_grow(vm, (void **)&vm->sets, vm->nvalues, &cap, bytes))
        return VM_NONE;
    vm->values[vm->nvalues] = v;
    memset(set_of(vm, vm->nvalues), 0, bytes);
    return vm->nvalues++;
}

bool vm_value_open(struct vm *vm)
{
    size_t outs = (size_t)vm->out_chunks * (size_t)vm->nchannels;

    vm->words = (vm->n + 63) / 64;
    vm->expected_order = calloc(outs, sizeof(*vm->expected_order));
    if (vm->expected_order == NULL)
        return vm_nomem(vm);
    return new_value(vm, (struct vm_value){.chunk = VM_NONE}) == VM_UNDEFINED;
}

/*
 * The input of `rank`: two values in a row, as it stands in the user's buffer
 * and as a reduction reads it, with IN's factors applied.
 */
int vm_new_input(struct vm *vm, int rank, int chunk, int run)
{
    struct vm_value v = {.order = vm_leaf_order(rank),
                         .chunk = chunk,
                         .extent = extent(vm, CM_IN, rank, chunk),
                         .run = run};
    int first = VM_NONE;

    for (int raw = 1; raw >= 0; raw--) {
        int id;

        v.raw = raw;
        id = new_value(vm, v);
        if (id == VM_NONE)
            return VM_NONE;
        set_of(vm, id)[rank / 64] |= 1ull << rank % 64;
        first = raw ? id : first;
    }
    return first;
}

bool vm_is_full(const struct vm *vm, int value)
{
    const uint64_t *set = set_of(vm, value);

    for (int r = 0; r < vm->n; r++) {
        if ((set[r / 64] >> r % 64 & 1) == 0)
            return false;
    }
    return true;
}

/* Add the set of `source` to that of `sum`; false if they meet. */
static bool unite(const struct vm *vm, int sum, int source)
{
    uint64_t *s = set_of(vm, sum);
    const uint64_t *more = set_of(vm, source);

    for (int w = 0; w < vm->words; w++) {
        if (s[w] & more[w])
            return false;
        s[w] |= more[w];
    }
    return true;
}

/* `complete` belongs to the fold that makes a full reduction out of parts. */
static bool check_complete(struct vm *vm, const struct vm_thread *t, const struct cm_fold *f, int v)
{
    bool must = vm->info->reduces && !vm->values[v].reduced && vm_is_full(vm, v);

    if (f->complete && !must)
        return vm_fault(vm, t, "marked complete, but is not");
    if (!f->complete && must)
        return vm_fault(vm, t, "is complete, but not marked");
    return true;
}

int vm_combine(struct vm *vm, const struct vm_thread *t, const struct cm_fold *f,
               const int32_t *sources)
{
    struct vm_value v = vm->values[sources[0]];
    int sum;

    if (f->nfrom == 1 && !f->complete)
        return check_complete(vm, t, f, sources[0]) ? sources[0] : VM_NONE;
    if (f->nfrom > 1) {
        v.order = mix(0, (uint64_t)f->nfrom);
        for (int k = 0; k < f->nfrom; k++)
            v.order = mix(v.order, vm->values[sources[k]].order);
    }
    sum = new_value(vm, v);
    for (int k = 0; k < f->nfrom && sum != VM_NONE; k++) {
        const struct vm_value *s = &vm->values[sources[k]];
        const char *fault = !vm->info->reduces            ? "reduces in a collective that does not"
                            : !unite(vm, sum, sources[k]) ? "adds a contribution twice"
                            : s->chunk != v.chunk         ? "mixes two chunks"
                                                          : NULL;

        if (fault != NULL) {
            vm_fault(vm, t, "%s: source %d", fault, k);
            return VM_NONE;
        }
    }
    if (sum == VM_NONE || !check_complete(vm, t, f, sum))
        return VM_NONE;
    vm->values[sum].reduced = f->complete;
    return sum;
}
