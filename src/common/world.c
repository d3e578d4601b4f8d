/*
 * From processes to ranks. Each process brings its facts to one gather;
 * everything else is computed from them.
 *
 * Invariant: decisions are taken from gathered data only, so all processes
 * take the same ones; process 0 speaks for all when a decision is to refuse.
 */
#define _GNU_SOURCE
#include "common/world_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/world_gpu.h"
#include "common/world_rules.h"
#include "common/world_topo.h"
#include "engine/tune.h"

static void read_boot_id(char *buf, size_t size)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    buf[0] = '\0';
    if (f == NULL)
        return;
    if (fgets(buf, (int)size, f) == NULL)
        buf[0] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
    fclose(f);
}

/* The inode that stands for this process's network namespace; 0: unknown. */
static uint64_t net_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/net", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static void fill_facts(const struct cm_opts *o, struct cm_facts *f)
{
    memset(f, 0, sizeof(*f));
    f->threads = o->launch.threads;
    f->gpus = o->launch.gpus;
    f->device = o->launch.device;
    f->pid = (int32_t)getpid();
    f->quota = cm_cpu_quota();
    if (gethostname(f->host, sizeof(f->host) - 1) != 0 || f->host[0] == '\0')
        memcpy(f->host, "unknown", sizeof("unknown"));
    f->host[strcspn(f->host, ".")] = '\0';
    read_boot_id(f->boot_id, sizeof(f->boot_id));
    f->net_namespace = net_namespace();
    cm_cpu_model(f->cpu, sizeof(f->cpu));
    cm_cpus_allowed(&f->cpus);
    cm_digest_fill(o, &f->options);
    if (o->launch.backend != CM_BACKEND_HOST && &cm_backend_cuda != NULL)
        cm_backend_cuda.facts(&f->gpu);
}

/* mpirun -np 1 all_reduce_perf : -np 1 alltoall_perf */
static enum cm_status check_programs(const struct cm_boot *b, const struct cm_facts *all)
{
    for (int p = 1; p < b->nprocs; p++)
        if (strcmp(all[p].options.program, all[0].options.program) != 0)
            return CM_REFUSE(b, CM_EINVAL, "process 0 runs %s, but process %d runs %s",
                             all[0].options.program, p, all[p].options.program);
    return CM_OK;
}

static enum cm_status check_options(const struct cm_boot *b, const struct cm_facts *all)
{
    for (int p = 1; p < b->nprocs; p++) {
        const char *name = cm_digest_difference(&all[0].options, &all[p].options);

        if (name != NULL)
            return CM_REFUSE(b, CM_EINVAL,
                             "--%s of process %d differs from that of process 0 (the environment "
                             "counts too)",
                             name, p);
    }
    return CM_OK;
}

static enum cm_status count_ranks(const struct cm_boot *b, const struct cm_facts *all,
                                  struct cm_world *w)
{
    int64_t n = 0;

    w->nprocs = b->nprocs;
    w->first_of = calloc((size_t)b->nprocs + 1, sizeof(*w->first_of));
    if (w->first_of == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs);
    for (int p = 0; p < b->nprocs && n <= CM_MAX_RANKS; p++) {
        n += (int64_t)all[p].threads * all[p].gpus;
        w->first_of[p + 1] = (int32_t)n;
    }
    if (n > CM_MAX_RANKS)
        return CM_REFUSE(b, CM_EINVAL, "more than %d ranks (-t x -g x processes)", CM_MAX_RANKS);
    w->n = (int)n;
    return CM_OK;
}

static enum cm_status allocate(struct cm_world *w)
{
    size_t n = (size_t)w->n;

    w->infos = calloc(n, sizeof(*w->infos));
    w->node_of = calloc(n, sizeof(*w->node_of));
    w->cpu_of = calloc(n, sizeof(*w->cpu_of));
    w->members = calloc(n, sizeof(*w->members));
    w->group_first = calloc(n + 1, sizeof(*w->group_first));
    w->gpu_of = calloc(n, sizeof(*w->gpu_of));
    if (w->infos == NULL || w->node_of == NULL || w->cpu_of == NULL || w->members == NULL ||
        w->group_first == NULL || w->gpu_of == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory for %d ranks", w->n);
    return CM_OK;
}

static void fill_info(const struct cm_facts *f, struct cm_world *w, int proc, int rank)
{
    struct cm_rank_info *i = &w->infos[rank];
    struct cm_cpus cpus = f->cpus;

    if (w->cpu_of[rank] >= 0) {
        memset(&cpus, 0, sizeof(cpus));
        cm_cpus_add(&cpus, w->cpu_of[rank]);
    }
    i->rank = rank;
    i->proc = proc;
    i->thread = (rank - w->first_of[proc]) / f->gpus;
    i->node = w->node_of[rank];
    for (int r = 0; r < rank; r++)
        i->device += w->node_of[r] == i->node;
    i->pid = f->pid;
    i->numa = cm_cpus_numa(&cpus);
    memcpy(i->host, f->host, sizeof(i->host));
    memcpy(i->boot_id, f->boot_id, sizeof(i->boot_id));
    memcpy(i->cpu, f->cpu, sizeof(i->cpu));
    cm_cpus_format(&cpus, i->cpus, sizeof(i->cpus));
}

/* Groups in the order of their lowest ranks: a rank whose colour is new opens the next. */
static void form_groups(const struct cm_opts *o, struct cm_world *w)
{
    int placed = 0;

    for (int r = 0; r < w->n; r++)
        w->infos[r].group = -1;
    for (int first = 0; first < w->n; first++) {
        uint64_t colour = cm_split_colour(&o->launch, first);

        if (w->infos[first].group >= 0)
            continue;
        w->group_first[w->ngroups] = placed;
        for (int r = first; r < w->n; r++) {
            if (cm_split_colour(&o->launch, r) != colour)
                continue;
            w->infos[r].group = w->ngroups;
            w->infos[r].group_rank = placed - w->group_first[w->ngroups];
            w->members[placed++] = r;
        }
        w->group_first[++w->ngroups] = placed;
    }
}

/* Options that depend on the number of ranks: process 0 alone complains. */
static enum cm_status check_ranks(const struct cm_boot *b, const struct cm_opts *o, int n)
{
    struct cm_inject fault;
    enum cm_status st = CM_OK;

    if (b->proc == 0) {
        st = cm_opts_check_ranks(o, n);
        if (st == CM_OK)
            st = cm_inject_parse(o->inject, n, &fault);
    }
    return cm_boot_agree(b, st);
}

static enum cm_status choose_gpus(const struct cm_boot *b, const struct cm_opts *o,
                                  const struct cm_facts *all, struct cm_world *w)
{
    struct cm_gpu_claim *claims = calloc((size_t)w->nprocs, sizeof(*claims));
    enum cm_status st =
        claims != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "no memory for %d processes", w->nprocs);

    for (int p = 0; st == CM_OK && p < w->nprocs; p++)
        claims[p] = (struct cm_gpu_claim){.threads = all[p].threads,
                                          .gpus = all[p].gpus,
                                          .device = all[p].device,
                                          .host = all[p].host,
                                          .facts = &all[p].gpu};
    st = cm_boot_agree(b, st);
    if (st == CM_OK)
        st = cm_world_choose_gpus(b, o, claims, w);
    free(claims);
    return st;
}

static enum cm_status build(const struct cm_boot *b, const struct cm_opts *o,
                            const struct cm_facts *all, struct cm_world *w)
{
    enum cm_status st = check_programs(b, all);

    if (st == CM_OK)
        st = check_options(b, all);
    if (st == CM_OK)
        st = cm_boot_agree(b, count_ranks(b, all, w));
    if (st == CM_OK)
        st = check_ranks(b, o, w->n);
    if (st == CM_OK)
        st = cm_boot_agree(b, allocate(w));
    if (st == CM_OK && o->launch.node_map != NULL &&
        !cm_parse_node_map(o->launch.node_map, w->n, w->node_of))
        st = CM_REFUSE(b, CM_EINVAL, "--node-map %s: needs one node per rank (%d)",
                       o->launch.node_map, w->n);
    if (st == CM_OK)
        st = cm_world_find_domains(b, o, all, w);
    if (st == CM_OK)
        st = cm_world_read_topo(b, o, w);
    if (st == CM_OK)
        st = cm_world_read_rules(b, o, w);
    if (st == CM_OK)
        st = cm_boot_agree(b, cm_world_assign_cpus(all, b->proc, w));
    if (st != CM_OK)
        return st;
    for (int p = 0; p < w->nprocs; p++)
        for (int r = w->first_of[p]; r < w->first_of[p + 1]; r++)
            fill_info(&all[p], w, p, r);
    form_groups(o, w);
    return choose_gpus(b, o, all, w);
}

enum cm_status cm_world_gather(const struct cm_boot *b, const struct cm_opts *o,
                               struct cm_world *out)
{
    struct cm_facts mine, *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status st = all != NULL ? CM_OK : CM_ENOMEM;

    memset(out, 0, sizeof(*out));
    if (st != CM_OK)
        cm_log("no memory for the facts of %d processes", b->nprocs);
    st = cm_boot_agree(b, st);
    fill_facts(o, &mine);
    if (st == CM_OK)
        st = b->gather(b, &mine, sizeof(mine), all);
    if (st == CM_OK)
        st = build(b, o, all, out);
    free(all);
    return st;
}

void cm_world_free(struct cm_world *w)
{
    cm_domains_free(&w->domains);
    free(w->first_of);
    free(w->infos);
    free(w->node_of);
    free(w->cpu_of);
    free(w->members);
    free(w->group_first);
    free(w->gpu_of);
    cm_topo_free(w->topo);
    cm_tune_free(w->rules);
    free(w->topo_gpu);
    memset(w, 0, sizeof(*w));
}
