/*
 * The user's side of the verifier: before a call all buffers get new inputs or
 * become undefined, after it the results are checked; both touch every byte,
 * so a peer that may still be at a buffer of a rank that returned is a race.
 */
#include "engine/verify_int.h"

static bool has_input(const struct vm *vm, int rank)
{
    bool from_root = vm->coll == CM_BROADCAST || vm->coll == CM_SCATTER;

    return !from_root || rank == vm->plans[rank]->root;
}

static bool has_output(const struct vm *vm, int rank)
{
    bool to_root = vm->coll == CM_REDUCE || vm->coll == CM_GATHER;

    return !to_root || rank == vm->plans[rank]->root;
}

/* What must stand in an OUT chunk: which IN chunk, of which rank (VM_NONE: of all). */
static void expectation(const struct vm *vm, int rank, int k, int *chunk, int *source)
{
    int block = k / vm->pieces, piece = k % vm->pieces;

    *chunk = vm->info->in_per_rank ? rank * vm->pieces + piece : piece;
    *source = vm->info->reduces        ? VM_NONE
              : vm->info->out_per_rank ? block
              : vm->info->rooted       ? vm->plans[rank]->root
                                       : (rank + vm->n - 1) % vm->n; /* sendrecv */
}

static bool check_output(struct vm *vm, int rank, int k, const struct vm_cell *c, int run)
{
    const struct vm_thread *t = &vm->threads[vm->first[rank]];
    const struct vm_value *v = &vm->values[c->value];
    int chunk, source;
    bool right;

    if (c->value == VM_UNDEFINED)
        return vm_fault(vm, t, "OUT chunk %d was not written", k);
    expectation(vm, rank, k, &chunk, &source);
    if (source == VM_NONE)
        right = v->reduced && vm_is_full(vm, c->value);
    else
        right = v->order == vm_leaf_order(source);
    if (!right || v->chunk != chunk || v->run != run)
        return vm_fault(vm, t, "OUT chunk %d is wrong: holds IN chunk %d", k, v->chunk);
    return true;
}

/* All ranks must have computed the one expression. */
static bool check_order(struct vm *vm, int rank, int slot, const struct vm_cell *c)
{
    uint64_t order = vm->values[c->value].order;

    if (vm->coll != CM_ALL_REDUCE || vm->expected_order[slot] == order)
        return true;
    if (vm->expected_order[slot] != 0)
        return vm_fault(vm, &vm->threads[vm->first[rank]],
                        "OUT chunk %d: reduced in another order than elsewhere",
                        slot / vm->nchannels);
    vm->expected_order[slot] = order;
    return true;
}

/* Is this place an output, under its own name or as what IN aliases? */
static bool is_output_place(const struct vm *vm, enum cm_space space, int rank, int k)
{
    if (!has_output(vm, rank))
        return false;
    if (space == CM_OUT)
        return true;
    return vm->args->in_place && (!vm->info->in_per_rank || k / vm->pieces == rank);
}

static bool check_place(struct vm *vm, enum cm_space space, int rank, int k, int run)
{
    const struct vm_thread *t = &vm->threads[vm->first[rank]];

    for (int ch = 0; ch < vm->nchannels; ch++) {
        struct vm_cell *c = vm_cell(vm, space, rank, k, ch, run % VM_PASSES);
        bool output = is_output_place(vm, space, rank, k);

        if (!vm_note_store(vm, t, c, "the user's next use of a buffer"))
            return false;
        if (!output && c->value != c->input)
            return vm_fault(vm, t, "overwrites chunk %d of %s", k, space == CM_IN ? "IN" : "OUT");
        if (output && space == CM_OUT &&
            (!check_output(vm, rank, k, c, run) ||
             !check_order(vm, rank, k * vm->nchannels + ch, c)))
            return false;
    }
    return true;
}

bool vm_user_checks(struct vm *vm, int rank, int call)
{
    bool ok = true;

    for (int pass = 0; pass < vm_passes(vm, call); pass++) {
        for (int k = 0; k < vm->out_chunks && ok; k++)
            ok = check_place(vm, CM_OUT, rank, k, vm_run(call, pass));
        for (int k = 0; k < vm->in_chunks && ok; k++)
            ok = check_place(vm, CM_IN, rank, k, vm_run(call, pass));
    }
    return ok;
}

static bool write_place(struct vm *vm, enum cm_space space, int rank, int k, int run)
{
    const struct vm_thread *t = &vm->threads[vm->first[rank]];

    for (int ch = 0; ch < vm->nchannels; ch++) {
        struct vm_cell *c = vm_cell(vm, space, rank, k, ch, run % VM_PASSES);
        int value = VM_UNDEFINED;

        if (space == CM_IN && has_input(vm, rank))
            value = vm_new_input(vm, rank, k, run);
        if (value == VM_NONE || !vm_note_store(vm, t, c, "the user's input"))
            return false;
        c->value = c->input = value;
    }
    return true;
}

bool vm_user_writes(struct vm *vm, int rank, int call)
{
    bool ok = true;

    for (int pass = 0; pass < vm_passes(vm, call); pass++) {
        for (int k = 0; k < vm->out_chunks && ok; k++)
            ok = write_place(vm, CM_OUT, rank, k, vm_run(call, pass));
        for (int k = 0; k < vm->in_chunks && ok; k++)
            ok = write_place(vm, CM_IN, rank, k, vm_run(call, pass));
    }
    return ok;
}
