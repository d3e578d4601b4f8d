/*
 * CPUs are a machine's, whatever memory its processes share: ranks in containers
 * or network namespaces of one machine get CPUs apart from each other, too.
 */
#include <stdlib.h>
#include <string.h>

#include "common/world_int.h"

/* The lowest process on the same machine. The boot id tells machines apart, names may not. */
static int machine_of(const struct cm_facts *all, int proc)
{
    int p = 0;

    while (strcmp(all[p].boot_id, all[proc].boot_id) != 0)
        p++;
    return p;
}

/* Processes of one machine, as cm_cpu_assign() wants them. */
struct crew {
    int nprocs, nranks;
    int *procs;            /* their numbers in the job */
    struct cm_cpus *masks; /* of each */
    int32_t *first_of;     /* nprocs + 1, counted on this machine */
    int32_t *cpu_of;       /* nranks */
};

static void gather_crew(const struct cm_facts *all, const struct cm_world *w, int machine,
                        struct crew *c)
{
    c->nprocs = c->nranks = 0;
    for (int p = machine; p < w->nprocs; p++) {
        if (machine_of(all, p) != machine)
            continue;
        c->procs[c->nprocs] = p;
        c->masks[c->nprocs] = all[p].cpus;
        c->first_of[c->nprocs++] = c->nranks;
        c->nranks += w->first_of[p + 1] - w->first_of[p];
    }
    c->first_of[c->nprocs] = c->nranks;
}

/* False: there are not enough CPUs. */
static bool assign_machine(const struct cm_facts *all, struct cm_world *w, struct crew *c)
{
    struct cm_cpu_plan plan = {c->nprocs, c->masks, c->first_of, CM_MAX_CPUS};
    bool enough;

    for (int k = 0; k < c->nprocs; k++)
        plan.quota = all[c->procs[k]].quota < plan.quota ? all[c->procs[k]].quota : plan.quota;
    enough = cm_cpu_assign(&plan, c->cpu_of);
    for (int k = 0; k < c->nprocs; k++)
        for (int r = c->first_of[k]; r < c->first_of[k + 1]; r++)
            w->cpu_of[w->first_of[c->procs[k]] + r - c->first_of[k]] = c->cpu_of[r];
    return enough;
}

enum cm_status cm_world_assign_cpus(const struct cm_facts *all, int proc, struct cm_world *w)
{
    size_t procs = (size_t)w->nprocs;
    struct crew c = {.procs = calloc(procs, sizeof(*c.procs)),
                     .masks = calloc(procs, sizeof(*c.masks)),
                     .first_of = calloc(procs + 1, sizeof(*c.first_of)),
                     .cpu_of = calloc((size_t)w->n, sizeof(*c.cpu_of))};
    enum cm_status st = CM_OK;

    if (c.procs == NULL || c.masks == NULL || c.first_of == NULL || c.cpu_of == NULL)
        st = CM_FAIL(CM_ENOMEM, "no memory for %d processes", w->nprocs);
    for (int p = 0; st == CM_OK && p < w->nprocs; p++) {
        if (machine_of(all, p) != p)
            continue;
        gather_crew(all, w, p, &c);
        if (!assign_machine(all, w, &c) && p == machine_of(all, proc))
            w->oversubscribed = true;
    }
    free(c.procs);
    free(c.masks);
    free(c.first_of);
    free(c.cpu_of);
    return st;
}
