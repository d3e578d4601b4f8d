/*
 * The verifier's machine: steps all workers of all ranks, greedily, until they
 * are done or none can go on.
 *
 * Waits are for counters that only grow and ports have one writer and one
 * reader, so whether the run ends does not depend on who goes first: one run
 * is a proof for all timings. The workers of a rank start and end a call
 * together; nothing else joins the ranks between calls.
 */
#include <stdio.h>
#include <string.h>

#include "engine/verify_int.h"

static const struct cm_plan *plan_of(const struct vm *vm, const struct vm_thread *t)
{
    return vm->plans[t->rank];
}

static const struct cm_fold *fold_at(const struct vm *vm, const struct vm_thread *t, int pc)
{
    const struct cm_plan *p = plan_of(vm, t);

    return &p->folds[p->workers[t->worker].first + pc];
}

static int length_of(const struct vm *vm, const struct vm_thread *t)
{
    return plan_of(vm, t)->workers[t->worker].nfolds;
}

/* Resolve operand `o`, the k-th of the fold at hand. */
static bool resolve(struct vm *vm, const struct vm_thread *t, const struct cm_operand *o, int k,
                    bool sends)
{
    struct vm_access *x = &vm->access[k];

    *x = (struct vm_access){.operand = o};
    x->chunk = cm_index_at(&o->chunk, plan_of(vm, t)->perm, t->i[0], t->i[1]);
    if (o->space != CM_PORT) {
        x->cell = vm_cell_at(vm, t, o->space, o->rank, x->chunk);
        return x->cell != NULL;
    }
    if (vm_cell_at(vm, t, o->numbering, t->rank, x->chunk) == NULL)
        return false;
    x->port = vm_port_of(vm, t, o, sends);
    if (x->port == NULL)
        return false;
    if (x->port->stamp == vm->stamp)
        return vm_fault(vm, t, "names port %d->%d twice", x->port->src, x->port->dst);
    x->port->stamp = vm->stamp;
    return true;
}

static bool resolve_all(struct vm *vm, const struct vm_thread *t, const struct cm_fold *f)
{
    const struct cm_operand *pool = plan_of(vm, t)->operands;

    vm->stamp++;
    for (int k = 0; k < f->nfrom; k++) {
        if (!resolve(vm, t, &pool[f->from + k], k, false))
            return false;
    }
    for (int k = 0; k < f->nto; k++) {
        if (!resolve(vm, t, &pool[f->to + k], f->nfrom + k, true))
            return false;
    }
    return true;
}

/* Why the fold at hand cannot run yet: the first thing it lacks goes to `why`. */
static bool ready(struct vm *vm, const struct vm_thread *t, const struct cm_fold *f, char *why,
                  size_t size)
{
    const struct cm_plan *p = plan_of(vm, t);

    for (int k = 0; k < f->nwait; k++) {
        const struct cm_wait_on *w = &p->waits[f->wait + k];

        if (vm_line_at(vm, t, w) == NULL) {
            snprintf(why, size, "rank %d worker %d to reach phase %lld", w->rank, w->worker,
                     (long long)cm_index_at(&w->phase, p->perm, t->i[0], t->i[1]));
            return false;
        }
    }
    for (int k = 0; k < f->nfrom + f->nto; k++) {
        const struct vm_port *q = vm->access[k].port;
        bool from = k < f->nfrom;

        if (q == NULL || (from ? q->head > q->tail : q->head - q->tail < (uint64_t)vm->args->depth))
            continue;
        snprintf(why, size, "a %s slot of port %d->%d", from ? "full" : "free", q->src, q->dst);
        return false;
    }
    return true;
}

/* Learn the clocks of all that the fold waited for. */
static void acquire(struct vm *vm, struct vm_thread *t, const struct cm_fold *f)
{
    const struct cm_plan *p = plan_of(vm, t);

    for (int k = 0; k < f->nwait; k++)
        vm_join(vm, t, vm_line_at(vm, t, &p->waits[f->wait + k]));
    for (int k = 0; k < f->nfrom + f->nto; k++) {
        const struct vm_port *q = vm->access[k].port;

        if (q != NULL)
            vm_join(vm, t, vm_slot_clock(vm, q, k < f->nfrom ? q->tail : q->head));
    }
}

/* Publish full slots and give back the free ones. */
static void release(struct vm *vm, struct vm_thread *t, const struct cm_fold *f)
{
    size_t bytes = (size_t)vm->nthreads * sizeof(*vm->clocks);
    bool any = false;

    for (int k = 0; k < f->nfrom + f->nto; k++) {
        struct vm_port *q = vm->access[k].port;
        bool from = k < f->nfrom;

        if (q == NULL)
            continue;
        memcpy(vm_slot_clock(vm, q, from ? q->tail : q->head), vm_clock(vm, t), bytes);
        q->tail += from;
        q->head += !from;
        any = true;
    }
    if (any)
        vm_tick(vm, t);
}

/* All operands of a fold have one length: by the rule in base/plan.h. */
static bool check_extents(struct vm *vm, const struct vm_thread *t, const struct cm_fold *f,
                          int value)
{
    int want = VM_NONE, count = f->nfrom + f->nto;

    for (int k = 0; k < count; k++) {
        int e = vm_extent(vm, t, &vm->access[k]);

        if (e != VM_NONE && want != VM_NONE && e != want)
            return vm_fault(vm, t, "operand %d has another length", k);
        want = e != VM_NONE ? e : want;
    }
    if (want == VM_NONE && (vm->pieces > 1 || vm->coll == CM_ALLTOALLV))
        return vm_fault(vm, t, "has no length of its own");
    if (want != VM_NONE && vm->values[value].extent != want)
        return vm_fault(vm, t, "moves a value of another length");
    return true;
}

/* Traffic: what goes through ports, and loads and stores between ranks. */
static void count_units(struct vm *vm, const struct vm_thread *t, const struct cm_fold *f)
{
    for (int k = 0; k < f->nfrom + f->nto; k++) {
        const struct vm_access *x = &vm->access[k];
        bool port = x->port != NULL;

        vm->units[t->rank] += port ? k >= f->nfrom : x->operand->rank != t->rank;
    }
}

static bool move_data(struct vm *vm, const struct vm_thread *t, const struct cm_fold *f)
{
    int32_t *sources = vm->sources;
    int value;

    for (int k = 0; k < f->nfrom; k++) {
        sources[k] = vm_load(vm, t, &vm->access[k]);
        if (sources[k] == VM_NONE)
            return false;
    }
    value = vm_combine(vm, t, f, sources);
    if (value == VM_NONE || !check_extents(vm, t, f, value))
        return false;
    for (int k = f->nfrom; k < f->nfrom + f->nto; k++) {
        const struct vm_access *x = &vm->access[k];
        bool in_itself = f->nfrom == 1 && x->cell != NULL && x->cell == vm->access[0].cell;

        if (x->port != NULL)
            x->port->values[x->port->head % (uint64_t)vm->args->depth] = value;
        else if (in_itself && x->cell->value == value)
            continue; /* a copy of a chunk onto itself is not done */
        else if (!vm_store(vm, t, x, value))
            return false;
    }
    if (t->call == 0 && t->pass == 0)
        count_units(vm, t, f);
    return true;
}

/* Run the fold at t->pc if it is ready; false: not yet, or a fault. */
static bool run_fold(struct vm *vm, struct vm_thread *t, const struct cm_fold *f)
{
    char why[8];

    if (!resolve_all(vm, t, f) || !ready(vm, t, f, why, sizeof(why)) || vm_failed(vm))
        return false;
    acquire(vm, t, f);
    if (f->nfrom > 0 && !move_data(vm, t, f))
        return false;
    release(vm, t, f);
    if (f->post && !vm_mark_phase(vm, t, ++t->phase))
        return false;
    t->folds += t->call == 0 && t->pass == 0;
    t->pc++;
    return true;
}

/* Position behind the END of the LOOP at pc. */
static int behind_loop(const struct vm *vm, const struct vm_thread *t, int pc)
{
    int level = 0;

    do {
        enum cm_code code = fold_at(vm, t, pc++)->code;

        level += (code == CM_LOOP) - (code == CM_END);
    } while (level > 0);
    return pc;
}

static void enter_loop(const struct vm *vm, struct vm_thread *t, const struct cm_fold *f)
{
    if (f->trips == 0) {
        t->pc = behind_loop(vm, t, t->pc);
        return;
    }
    t->body[t->level] = ++t->pc;
    t->left[t->level] = f->trips;
    t->i[t->level] = 0;
    t->level++;
}

static void end_loop(struct vm_thread *t)
{
    int top = t->level - 1;

    if (--t->left[top] > 0) {
        t->i[top]++;
        t->pc = t->body[top];
        return;
    }
    t->i[top] = 0;
    t->level--;
    t->pc++;
}

/* All workers of a rank know what its first one does; what that one does next they do not. */
static void spread(struct vm *vm, int rank)
{
    struct vm_thread *first = &vm->threads[vm->first[rank]];

    for (int k = vm->first[rank] + 1; k < vm->first[rank + 1]; k++) {
        vm_join(vm, &vm->threads[k], vm_clock(vm, first));
        vm_tick(vm, &vm->threads[k]);
    }
    vm_tick(vm, first);
}

/* All workers of a rank have ended a call: the user looks at the buffers, and calls again. */
static bool next_call(struct vm *vm, int rank)
{
    struct vm_thread *first = &vm->threads[vm->first[rank]];
    struct vm_thread *end = &vm->threads[vm->first[rank + 1]];

    for (const struct vm_thread *t = first; t < end; t++) {
        if (!t->over)
            return true;
    }
    for (const struct vm_thread *t = first + 1; t < end; t++)
        vm_join(vm, first, vm_clock(vm, t));
    vm_tick(vm, first);
    if (!vm_user_checks(vm, rank, first->call))
        return false;
    if (first->call + 1 == vm->args->calls)
        return true;
    if (!vm_user_writes(vm, rank, first->call + 1))
        return false;
    spread(vm, rank);
    for (struct vm_thread *t = first; t < end; t++) {
        t->call++;
        t->pass = t->pc = 0;
        t->phase = 0;
        t->over = t->done = false;
    }
    return true;
}

/* At the end of a pass, the exit belongs to the last; false after a fault. */
static bool end_pass(struct vm *vm, struct vm_thread *t)
{
    t->pc = t->enter;
    t->over = ++t->pass == vm_passes(vm, t->call);
    return t->over ? next_call(vm, t->rank) : true;
}

/* One step of a worker; false: it cannot go on now. */
static bool step(struct vm *vm, struct vm_thread *t)
{
    bool last = t->pass + 1 == vm_passes(vm, t->call);
    const struct cm_fold *f;

    if (t->over)
        return false;
    if (!t->done && t->pc == t->exit && last) {
        t->done = true;
        if (!vm_mark_phase(vm, t, CM_PHASE_DONE))
            return false;
    }
    if (t->pc == (last ? length_of(vm, t) : t->exit))
        return end_pass(vm, t);
    f = fold_at(vm, t, t->pc);
    if (f->code == CM_FOLD)
        return run_fold(vm, t, f);
    if (f->code == CM_LOOP)
        enter_loop(vm, t, f);
    else
        end_loop(t);
    return true;
}

static bool report_stuck(struct vm *vm)
{
    char why[96];

    for (int k = 0; k < vm->nthreads; k++) {
        struct vm_thread *t = &vm->threads[k];
        const struct cm_fold *f;

        if (t->over)
            continue;
        f = fold_at(vm, t, t->pc);
        if (resolve_all(vm, t, f) && !ready(vm, t, f, why, sizeof(why)))
            return vm_fault(vm, t, "deadlock: waits for %s", why);
    }
    return true;
}

/* What is left in a port would be taken for data of the next operation. */
static bool check_ports_empty(struct vm *vm)
{
    for (int k = 0; k < vm->n * vm->n * vm->nchannels; k++) {
        const struct vm_port *q = vm->ports[k];

        if (q != NULL && q->head != q->tail)
            return vm_fault(vm, NULL, "port %d->%d: %d slots are never taken", q->src, q->dst,
                            (int)(q->head - q->tail));
    }
    return true;
}

void vm_run_all(struct vm *vm)
{
    bool moved = true;

    for (int r = 0; r < vm->n; r++) {
        vm_tick(vm, &vm->threads[vm->first[r]]);
        if (!vm_user_writes(vm, r, 0))
            return;
        spread(vm, r);
    }
    while (moved && !vm_failed(vm)) {
        moved = false;
        for (int k = 0; k < vm->nthreads; k++) {
            while (!vm_failed(vm) && step(vm, &vm->threads[k]))
                moved = true;
        }
    }
    if (!vm_failed(vm) && report_stuck(vm))
        check_ports_empty(vm);
}
