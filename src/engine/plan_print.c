/*
 * Plans as text, for people: one fold a line, loops indented. The hash covers
 * everything a plan does, so equal hashes mean equal plans.
 */
#include <stdio.h>

#include "engine/verify.h"

struct printer {
    const struct cm_plan *p;
    FILE *f;
    int level; /* open loops */
};

static uint64_t mix(uint64_t h, int64_t v)
{
    h = (h ^ (uint64_t)v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static uint64_t mix_index(uint64_t h, const struct cm_index *x)
{
    h = mix(mix(mix(h, x->base), x->c0), x->c1);
    return mix(mix(mix(mix(h, x->mod), x->mul), x->add), x->how * 2 + x->perm);
}

static uint64_t plan_hash(const struct cm_plan *p)
{
    uint64_t h = mix(mix(mix(0, p->coll), p->mode), p->pieces);

    h = mix(mix(mix(mix(h, p->rank), p->n), p->root), p->scratch);
    for (int k = 0; k < p->nworkers; k++)
        h = mix(mix(h, p->workers[k].nfolds), p->workers[k].channel);
    for (int k = 0; k < p->nfolds; k++) {
        const struct cm_fold *f = &p->folds[k];

        h = mix(mix(h, f->code), f->post * 2 + f->complete);
        h = mix(mix(mix(mix(h, f->trips), f->nfrom), f->nto), f->nwait);
    }
    for (int k = 0; k < p->noperands; k++) {
        const struct cm_operand *o = &p->operands[k];

        h = mix_index(mix(mix(mix(h, o->space), o->numbering), o->rank), &o->chunk);
    }
    for (int k = 0; k < p->nwaits; k++)
        h = mix_index(mix(mix(h, p->waits[k].rank), p->waits[k].worker), &p->waits[k].phase);
    for (int k = 0; p->perm != NULL && k < p->n; k++)
        h = mix(h, p->perm[k]);
    return h;
}

/* "3", "5-i", "(5-i)%8", "5^i", "order[(5-i)%8]", "order[2]*4+1" */
static void print_index(const struct printer *pr, const struct cm_index *x)
{
    const int32_t step[2] = {pr->level > 0 ? x->c0 : 0, pr->level > 1 ? x->c1 : 0};
    bool varies = step[0] != 0 || step[1] != 0;
    bool modulo = x->how == CM_MODULO;
    int base = modulo ? (x->base % x->mod + x->mod) % x->mod : x->base;

    if (!varies && !x->perm) {
        fprintf(pr->f, "%lld", (long long)cm_index_at(x, NULL, 0, 0));
        return;
    }
    fprintf(pr->f, "%s%s", x->perm ? "order[" : "", modulo && varies ? "(" : "");
    if (base != 0 || !varies || x->how == CM_XOR || step[0] <= 0)
        fprintf(pr->f, "%d", base);
    for (int k = 0; k < 2; k++) {
        int size = step[k] < 0 ? -step[k] : step[k];

        if (step[k] == 0)
            continue;
        if (x->how == CM_XOR || step[k] < 0 || base != 0 || k > 0)
            fputc(x->how == CM_XOR ? '^' : step[k] < 0 ? '-' : '+', pr->f);
        if (size != 1)
            fprintf(pr->f, "%d", size);
        fputc("ij"[k], pr -> f);
    }
    if (modulo && varies)
        fprintf(pr->f, ")%%%d", x->mod);
    fprintf(pr->f, "%s", x->perm ? "]" : "");
    if (x->mul > 1)
        fprintf(pr->f, "*%d", x->mul);
    if (x->add != 0)
        fprintf(pr->f, "%+d", x->add);
}

static void print_operand(const struct printer *pr, const struct cm_operand *o, bool from)
{
    static const char *const space[] = {"IN", "OUT", "SCRATCH"};

    if (o->space == CM_PORT) {
        fprintf(pr->f, "port%s%d", from ? "<-" : "->", o->rank);
        return;
    }
    if (o->rank != pr->p->rank)
        fprintf(pr->f, "r%d.", o->rank);
    fprintf(pr->f, "%s[", space[o->space]);
    print_index(pr, &o->chunk);
    fputc(']', pr->f);
}

static void print_operands(const struct printer *pr, int first, int count, bool from)
{
    fputc('{', pr->f);
    for (int k = 0; k < count; k++) {
        fputs(k > 0 ? ", " : "", pr->f);
        print_operand(pr, &pr->p->operands[first + k], from);
    }
    fputc('}', pr->f);
}

static void print_fold(const struct printer *pr, const struct cm_fold *f)
{
    for (int k = 0; k < f->nwait; k++) {
        const struct cm_wait_on *w = &pr->p->waits[f->wait + k];

        fprintf(pr->f, "%s r%d.w%d>=", k == 0 ? " wait" : ",", w->rank, w->worker);
        if (w->phase.how == CM_PLAIN && w->phase.base == CM_PHASE_DONE)
            fputs("done", pr->f);
        else
            print_index(pr, &w->phase);
    }
    if (f->nfrom > 0) {
        fputc(' ', pr->f);
        print_operands(pr, f->from, f->nfrom, true);
        fputs(" -> ", pr->f);
        print_operands(pr, f->to, f->nto, false);
    }
    fprintf(pr->f, "%s%s\n", f->complete ? " complete" : "", f->post ? " post" : "");
}

static void print_worker(struct printer *pr, int number)
{
    const struct cm_worker *w = &pr->p->workers[number];

    for (int k = 0; k < w->nfolds; k++) {
        const struct cm_fold *f = &pr->p->folds[w->first + k];

        pr->level -= f->code == CM_END;
        fprintf(pr->f, "w%d ch%d:%*s", number, w->channel, 2 * pr->level, "");
        if (f->code == CM_LOOP)
            fprintf(pr->f, " loop %c < %d\n", "ij"[pr->level], f -> trips);
        else if (f->code == CM_END)
            fprintf(pr->f, " end\n");
        else
            print_fold(pr, f);
        pr->level += f->code == CM_LOOP;
    }
}

void cm_plan_print(const struct cm_plan *p, struct _IO_FILE *f)
{
    struct printer pr = {.p = p, .f = f};

    fprintf(f, "plan %016llx: %s %s %s, rank %d of %d", (unsigned long long)plan_hash(p),
            cm_colls[p->coll].name, p->algo, p->mode == CM_MODE_COPY ? "copy" : "direct", p->rank,
            p->n);
    if (cm_colls[p->coll].rooted)
        fprintf(f, ", root %d", p->root);
    fprintf(f, "\npieces %d, scratch %d, channels %d", p->pieces, p->scratch, p->nchannels);
    if (p->ports)
        fprintf(f, ", depth >= %d", p->min_depth);
    if (p->perm != NULL) {
        fprintf(f, ", order");
        for (int k = 0; k < p->n; k++)
            fprintf(f, " %d", p->perm[k]);
    }
    fputc('\n', f);
    for (int k = 0; k < p->nworkers; k++)
        print_worker(&pr, k);
}
