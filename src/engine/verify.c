/*
 * The verifier's door: checks that the plans fit each other and are well
 * formed, so that the machine need not, then runs it and reports.
 */
#include "engine/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/algo.h"
#include "engine/verify_int.h"

bool vm_fault(struct vm *vm, const struct vm_thread *t, const char *fmt, ...)
{
    size_t used = 0, size = sizeof(vm->proof->why);
    va_list ap;

    if (vm_failed(vm))
        return false;
    vm->proof->ok = false;
    if (t != NULL)
        used = (size_t)snprintf(vm->proof->why, size,
                                "call %d rank %d worker %d fold %d: ", t->call, t->rank, t->worker,
                                t->pc);
    va_start(ap, fmt);
    vsnprintf(vm->proof->why + used, size - used, fmt, ap);
    va_end(ap);
    return false;
}

bool vm_nomem(struct vm *vm)
{
    if (vm->status == CM_OK)
        vm->status = CM_FAIL(CM_ENOMEM, "verifier of %d ranks", vm->n);
    return false;
}

bool vm_grow(struct vm *vm, void **pool, int n, int *cap, size_t size)
{
    int want = *cap > 0 ? 2 * *cap : 64;
    void *p;

    if (n < *cap)
        return true;
    p = realloc(*pool, (size_t)want * size);
    if (p == NULL)
        return vm_nomem(vm);
    *pool = p;
    *cap = want;
    return true;
}

/* Folds of worker w: loops are nested, at most two deep, and closed. */
static bool check_loops(struct vm *vm, const struct cm_plan *p, const struct cm_worker *w)
{
    int level = 0;

    for (int k = w->first; k < w->first + w->nfolds; k++) {
        level += p->folds[k].code == CM_LOOP;
        level -= p->folds[k].code == CM_END;
        if (level < 0 || level > 2 || p->folds[k].trips < 0)
            break;
    }
    return level == 0 ? true : vm_fault(vm, NULL, "rank %d: bad loops", p->rank);
}

static bool same_node(const struct vm *vm, int a, int b)
{
    return vm->args->node == NULL || vm->args->node[a] == vm->args->node[b];
}

/* What is wrong with a port to `rank`, or NULL. */
static const char *check_port(const struct vm *vm, const struct cm_plan *p,
                              const struct cm_operand *o)
{
    if (o->rank == p->rank || !p->ports)
        return "port to itself, or in direct mode";
    if (p->mode == CM_MODE_DIRECT && same_node(vm, p->rank, o->rank))
        return "port inside a node, in direct mode";
    if (o->numbering != CM_IN && o->numbering != CM_OUT)
        return "port without numbering";
    return NULL;
}

static bool check_operand(struct vm *vm, const struct cm_plan *p, const struct cm_operand *o)
{
    const char *fault = NULL;

    if (o->rank < 0 || o->rank >= vm->n)
        fault = "no such rank";
    else if (o->space == CM_PORT)
        fault = check_port(vm, p, o);
    else if (o->rank != p->rank && p->mode != CM_MODE_DIRECT)
        fault = "peer's memory in copy mode";
    else if (!same_node(vm, p->rank, o->rank))
        fault = "remote memory";
    if (fault == NULL)
        return true;
    return vm_fault(vm, NULL, "rank %d, operand of rank %d: %s", p->rank, o->rank, fault);
}

static bool check_wait(struct vm *vm, const struct cm_plan *p, const struct cm_wait_on *w)
{
    if (w->rank < 0 || w->rank >= vm->n || w->rank == p->rank || w->worker < 0 ||
        w->worker >= vm->plans[w->rank]->nworkers)
        return vm_fault(vm, NULL, "rank %d waits for worker %d of rank %d", p->rank, w->worker,
                        w->rank);
    if (!same_node(vm, p->rank, w->rank))
        return vm_fault(vm, NULL, "rank %d waits for a line of rank %d: remote memory", p->rank,
                        w->rank);
    return true;
}

static bool check_fold(struct vm *vm, const struct cm_plan *p, const struct cm_fold *f)
{
    bool copy = p->mode == CM_MODE_COPY;

    if ((f->nfrom == 0) != (f->nto == 0) || (f->complete && f->nfrom == 0))
        return vm_fault(vm, NULL, "rank %d: fold of %d sources and %d destinations", p->rank,
                        f->nfrom, f->nto);
    if (copy && (f->nwait > 0 || f->post))
        return vm_fault(vm, NULL, "rank %d: waits or posts in copy mode", p->rank);
    for (int k = 0; k < f->nfrom; k++) {
        if (!check_operand(vm, p, &p->operands[f->from + k]))
            return false;
    }
    for (int k = 0; k < f->nto; k++) {
        if (!check_operand(vm, p, &p->operands[f->to + k]))
            return false;
    }
    for (int k = 0; k < f->nwait; k++) {
        if (!check_wait(vm, p, &p->waits[f->wait + k]))
            return false;
    }
    return true;
}

/* Does a fold do more than wait? */
static bool works(const struct cm_fold *f)
{
    return f->nfrom + f->nto > 0 || f->post;
}

/*
 * The exit begins behind the last fold that works. An executor finds it with
 * the loops expanded, the proof without: so a loop in front of the exit waits
 * must run, and must end with a fold that works.
 */
static bool check_end(const struct cm_plan *p, const struct cm_worker *k)
{
    const struct cm_fold *folds = p->folds + k->first;
    int end = k->nfolds, last, open, inner = 0;

    while (end > 0 && folds[end - 1].code == CM_FOLD && !works(&folds[end - 1]))
        end--;
    for (last = end; last > 0 && folds[last - 1].code == CM_END;)
        last--;
    if (last == end)
        return true;
    if (last == 0 || folds[last - 1].code != CM_FOLD || !works(&folds[last - 1]))
        return false;
    open = end - last;
    for (int at = last - 1; at >= 0 && open > 0; at--) {
        inner += folds[at].code == CM_END;
        if (folds[at].code == CM_LOOP && inner > 0)
            inner--;
        else if (folds[at].code == CM_LOOP && folds[at].trips < 1)
            return false;
        else
            open -= folds[at].code == CM_LOOP;
    }
    return true;
}

/* Folds at the begin of worker w that have no operands. */
static int opening(const struct cm_plan *p, const struct cm_worker *k)
{
    const struct cm_fold *folds = p->folds + k->first;
    int at = 0;

    while (at < k->nfolds && folds[at].code == CM_FOLD && folds[at].nfrom == 0)
        at++;
    return at;
}

/*
 * An executor of several passes finds what belongs to the first one with the
 * loops expanded, the proof without: so a fold with operands must follow.
 */
static bool check_begin(const struct cm_plan *p, const struct cm_worker *k)
{
    const struct cm_fold *folds = p->folds + k->first;
    int at = opening(p, k);

    while (at < k->nfolds && folds[at].code == CM_LOOP && folds[at].trips > 0)
        at++;
    return !p->ports || at == k->nfolds || folds[at].nfrom > 0;
}

static bool check_plan(struct vm *vm, int rank)
{
    const struct cm_plan *p = vm->plans[rank], *first = vm->plans[0];

    if (p->rank != rank || p->n != vm->n || p->coll != first->coll || p->mode != first->mode ||
        p->root != first->root || p->pieces != first->pieces || p->nchannels != first->nchannels ||
        p->min_depth != first->min_depth || p->ports != first->ports ||
        strcmp(p->algo, first->algo) != 0)
        return vm_fault(vm, NULL, "plans of ranks 0 and %d do not belong together", rank);
    if (p->nworkers < 1)
        return vm_fault(vm, NULL, "rank %d has no worker", rank);
    for (int w = 0; w < p->nworkers; w++) {
        const struct cm_worker *k = &p->workers[w];

        if (k->channel < 0 || k->channel >= p->nchannels || !check_loops(vm, p, k) ||
            !check_begin(p, k) || !check_end(p, k))
            return vm_fault(vm, NULL, "rank %d: worker %d is malformed", rank, w);
    }
    for (int k = 0; k < p->nfolds; k++) {
        if (p->folds[k].code == CM_FOLD && !check_fold(vm, p, &p->folds[k]))
            return false;
    }
    return true;
}

/* Worker w of rank r; its exit begins with the trailing folds that only wait. */
static struct vm_thread new_thread(const struct cm_plan *p, int w)
{
    const struct cm_worker *k = &p->workers[w];
    int pc = k->nfolds, enter = opening(p, k);

    while (pc > 0) {
        const struct cm_fold *f = &p->folds[k->first + pc - 1];

        if (f->code != CM_FOLD || works(f))
            break;
        pc--;
    }
    return (struct vm_thread){.rank = p->rank,
                              .worker = w,
                              .channel = k->channel,
                              .enter = enter < pc ? enter : pc,
                              .exit = pc};
}

static bool open_threads(struct vm *vm)
{
    int most = 1;

    vm->first = calloc((size_t)vm->n + 1, sizeof(*vm->first));
    vm->units = calloc((size_t)vm->n, sizeof(*vm->units));
    if (vm->first == NULL || vm->units == NULL)
        return vm_nomem(vm);
    for (int r = 0; r < vm->n; r++) {
        const struct cm_plan *p = vm->plans[r];

        vm->first[r + 1] = vm->first[r] + p->nworkers;
        vm->scratch = vm->scratch < p->scratch ? p->scratch : vm->scratch;
        for (int k = 0; k < p->nfolds; k++) {
            int count = p->folds[k].nfrom + p->folds[k].nto;

            most = most < count ? count : most;
        }
    }
    vm->nthreads = vm->first[vm->n];
    vm->threads = calloc((size_t)vm->nthreads, sizeof(*vm->threads));
    vm->access = calloc((size_t)most, sizeof(*vm->access));
    vm->sources = calloc((size_t)most, sizeof(*vm->sources));
    if (vm->threads == NULL || vm->access == NULL || vm->sources == NULL)
        return vm_nomem(vm);
    for (int r = 0; r < vm->n; r++) {
        for (int w = 0; w < vm->plans[r]->nworkers; w++)
            vm->threads[vm->first[r] + w] = new_thread(vm->plans[r], w);
    }
    return true;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

static void measure(const struct vm *vm)
{
    struct cm_proof *out = vm->proof;
    int chunks = vm->in_chunks > vm->out_chunks ? vm->in_chunks : vm->out_chunks;
    uint64_t common;

    out->bytes_den = (uint64_t)chunks * (uint64_t)vm->nchannels;
    for (int r = 0; r < vm->n; r++)
        out->bytes_num = out->bytes_num < vm->units[r] ? vm->units[r] : out->bytes_num;
    common = gcd(out->bytes_num, out->bytes_den);
    out->bytes_num /= common;
    out->bytes_den /= common;
    for (int k = 0; k < vm->nthreads; k++)
        out->longest = out->longest < vm->threads[k].folds ? vm->threads[k].folds : out->longest;
}

enum cm_status cm_verify(struct cm_plan *const *plans, int n, const struct cm_verify_args *a,
                         struct cm_proof *out)
{
    struct vm vm = {.plans = plans, .n = n, .args = a, .proof = out, .nchannels = 1};
    bool ok = true;

    if (n < 1 || a->depth < 1 || a->calls < 1 ||
        (a->in_place && !cm_colls[plans[0]->coll].in_place))
        return CM_EINVAL;
    *out = (struct cm_proof){.ok = true};
    vm.coll = plans[0]->coll;
    vm.info = &cm_colls[vm.coll];
    vm.pieces = plans[0]->pieces;
    vm.nchannels = plans[0]->nchannels;
    vm.in_chunks = cm_in_blocks(vm.coll, n) * vm.pieces;
    vm.out_chunks = cm_out_blocks(vm.coll, n) * vm.pieces;
    for (int r = 0; r < n && ok; r++)
        ok = check_plan(&vm, r);
    if (ok && open_threads(&vm) && vm_sync_open(&vm) && vm_mem_open(&vm) && vm_value_open(&vm)) {
        vm_run_all(&vm);
        measure(&vm);
    }
    vm_value_close(&vm);
    vm_mem_close(&vm);
    vm_sync_close(&vm);
    free(vm.first);
    free(vm.units);
    free(vm.threads);
    free(vm.access);
    free(vm.sources);
    return vm.status;
}
