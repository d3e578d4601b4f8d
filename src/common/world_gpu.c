/*
 * From processes to GPUs. Every process says which devices it sees; the rest
 * is computed alike everywhere.
 *
 * Processes that see the same list of devices (all of the machine, usually)
 * take them one after the other, in the order of their ranks. A process whose
 * list is its own (CUDA_VISIBLE_DEVICES, a batch system that gives each task
 * its GPU) starts at its first. Devices are told apart by UUID, not by index.
 */
#include "common/world_gpu.h"

#include <stdio.h>
#include <string.h>

#include "common/p2p_level.h"

/* Everything that is looked at; constant but for *w. */
struct choice {
    const struct cm_boot *boot;
    const struct cm_opts *opts;
    const struct cm_gpu_claim *claims;
    struct cm_world *w;
};

/* ---- which backend ---- */

/* First process that cannot use a GPU, or -1. */
static int without_gpu(const struct choice *c)
{
    for (int p = 0; p < c->w->nprocs; p++)
        if (!c->claims[p].facts->built || c->claims[p].facts->count == 0)
            return p;
    return -1;
}

static bool any_built(const struct choice *c)
{
    for (int p = 0; p < c->w->nprocs; p++)
        if (c->claims[p].facts->built)
            return true;
    return false;
}

static enum cm_status choose_backend(const struct choice *c)
{
    int p = c->opts->launch.backend == CM_BACKEND_HOST ? -1 : without_gpu(c);
    char why[256], text[CM_GPU_OPTION_BYTES];

    c->w->cuda = c->opts->launch.backend != CM_BACKEND_HOST && p < 0;
    if (p < 0)
        return CM_OK;
    if (c->claims[p].facts->built)
        snprintf(why, sizeof(why), "host %s: %s", c->claims[p].host, c->claims[p].facts->why);
    else
        snprintf(why, sizeof(why), "process %d on host %s is a build without CUDA", p,
                 c->claims[p].host);
    if (c->opts->launch.backend == CM_BACKEND_CUDA)
        return CM_REFUSE(c->boot, CM_ESYS, "--backend cuda: no usable GPU: %s", why);
    if (cm_opts_gpu_option(c->opts, text))
        return CM_REFUSE(c->boot, CM_ESYS, "%s needs a GPU, and there is none: %s", text, why);
    if (any_built(c))
        memcpy(c->w->no_gpu, why, sizeof(c->w->no_gpu));
    return CM_OK;
}

/* ---- which device ---- */

static bool same_device(const struct cm_gpu_facts *a, int i, const struct cm_gpu_facts *b, int k)
{
    return memcmp(a->dev[i].uuid, b->dev[k].uuid, sizeof(a->dev[i].uuid)) == 0 &&
           strcmp(a->dev[i].bus_id, b->dev[k].bus_id) == 0;
}

static bool same_list(const struct cm_gpu_facts *a, const struct cm_gpu_facts *b)
{
    bool same = a->count == b->count;

    for (int i = 0; same && i < a->count; i++)
        same = same_device(a, i, b, i);
    return same;
}

static int needs(const struct cm_gpu_claim *c)
{
    return c->threads * c->gpus;
}

/* Where a process stands among those that see the same devices. */
struct crowd {
    int procs, index;  /* how many, and which of them it is */
    int asked, before; /* devices that all of them ask for, and those before it */
};

static struct crowd crowd_of(const struct choice *c, int proc)
{
    struct crowd crowd = {0, 0, 0, 0};

    for (int p = 0; p < c->w->nprocs; p++) {
        if (!same_list(c->claims[p].facts, c->claims[proc].facts))
            continue;
        crowd.index += p < proc;
        crowd.before += p < proc ? needs(&c->claims[p]) : 0;
        crowd.procs++;
        crowd.asked += needs(&c->claims[p]);
    }
    return crowd;
}

static enum cm_status refuse_device(const struct choice *c, const struct cm_gpu_claim *claim)
{
    return CM_REFUSE(c->boot, CM_ESYS,
                     "--device %d with %d rank%s of a process: host %s has %d GPU%s, from 0",
                     claim->device, needs(claim), needs(claim) == 1 ? "" : "s", claim->host,
                     claim->facts->count, claim->facts->count == 1 ? "" : "s");
}

/* Say what was asked for, what there is, and the likely cure. */
static enum cm_status refuse_few(const struct choice *c, const struct cm_gpu_claim *claim,
                                 const struct crowd *crowd)
{
    int have = claim->facts->count, threads = crowd->procs * claim->threads, gpus = have / threads;
    char asked[96], there[32] = "is 1 GPU", cure[48] = "start fewer processes or threads";
    size_t n = 0;

    if (have > 1)
        snprintf(there, sizeof(there), "are %d", have);

    if (crowd->procs > 1)
        n += (size_t)snprintf(asked + n, sizeof(asked) - n, "%d processes x ", crowd->procs);
    if (claim->threads > 1)
        n += (size_t)snprintf(asked + n, sizeof(asked) - n, "-t %d x ", claim->threads);
    snprintf(asked + n, sizeof(asked) - n, "-g %d", claim->gpus);
    if (gpus > 0)
        snprintf(cure, sizeof(cure), "did you mean -g %d?", gpus);
    return CM_REFUSE(c->boot, CM_ESYS,
                     "%s asks for %d GPUs on host %s, there %s: %s (--oversubscribe lets ranks "
                     "share a GPU%s)",
                     asked, crowd->asked, claim->host, there, cure,
                     c->opts->launch.backend == CM_BACKEND_AUTO ? ", --backend host needs none"
                                                                : "");
}

/*
 * The devices [*first, *first + *span) of a process. Where ranks may share
 * devices, each process gets its own part of them, if there are enough.
 */
static enum cm_status choose_span(const struct choice *c, int proc, int *first, int *span)
{
    const struct cm_gpu_claim *claim = &c->claims[proc];
    struct crowd crowd = crowd_of(c, proc);
    bool share = c->opts->launch.oversubscribe;
    int have = claim->facts->count, left = have - claim->device, end;

    *span = needs(claim);
    *first = claim->device >= 0 ? claim->device : crowd.before;
    if (claim->device >= 0) {
        if (share && left > 0 && left < *span)
            *span = left;
        return *first + *span <= have ? CM_OK : refuse_device(c, claim);
    }
    if (crowd.asked <= have)
        return CM_OK;
    if (!share)
        return refuse_few(c, claim, &crowd);
    *first = crowd.index * have / crowd.procs;
    end = (crowd.index + 1) * have / crowd.procs;
    *span = end > *first ? end - *first : 1;
    return CM_OK;
}

static enum cm_status place_process(const struct choice *c, int proc)
{
    struct cm_world *w = c->w;
    int first = 0, span = 0, n = needs(&c->claims[proc]);
    enum cm_status st = choose_span(c, proc, &first, &span);

    for (int k = 0; st == CM_OK && k < n; k++) {
        struct cm_rank_info *info = &w->infos[w->first_of[proc] + k];
        const struct cm_gpu_facts *f = c->claims[proc].facts;

        info->device = first + (n <= span ? k : k * span / n); /* neighbours share */
        memcpy(info->gpu, f->dev[info->device].name, sizeof(info->gpu));
        memcpy(info->bus_id, f->dev[info->device].bus_id, sizeof(info->bus_id));
    }
    return st;
}

/* ---- who shares ---- */

static const struct cm_gpu_facts *facts_of(const struct choice *c, int rank)
{
    return c->claims[c->w->infos[rank].proc].facts;
}

static bool same_gpu(const struct choice *c, int a, int b)
{
    const struct cm_rank_info *infos = c->w->infos;

    return same_device(facts_of(c, a), infos[a].device, facts_of(c, b), infos[b].device);
}

/* Rank b shares the GPU of rank a. */
static enum cm_status check_sharing(const struct choice *c, int a, int b)
{
    const struct cm_rank_info *info = &c->w->infos[a];
    char text[CM_GPU_OPTION_BYTES];

    if (!c->opts->launch.oversubscribe)
        return CM_REFUSE(c->boot, CM_ESYS,
                         "rank %d and rank %d are both on GPU %s of host %s: give each its own "
                         "(CUDA_VISIBLE_DEVICES, --device), or let ranks share with "
                         "--oversubscribe",
                         a, b, info->bus_id, info->host);
    c->w->shared_gpus = true;
    if (info->proc == c->w->infos[b].proc && info->group == c->w->infos[b].group)
        return CM_OK; /* one launch plays both */
    c->w->staged = true;
    if (c->opts->run.graph > 0 && cm_opts_gpu_option(c->opts, text))
        return CM_REFUSE(c->boot, CM_EUNSUP,
                         "%s: rank %d and rank %d, of different processes or groups, share GPU %s, "
                         "so the host runs the operations, and no graph can hold them",
                         text, a, b, info->bus_id);
    return CM_OK;
}

static enum cm_status find_sharing(const struct choice *c)
{
    struct cm_world *w = c->w;
    enum cm_status st = CM_OK;

    for (int r = 0; st == CM_OK && r < w->n; r++) {
        int a = 0;

        while (!same_gpu(c, a, r))
            a++;
        w->gpu_of[r] = a;
        if (a < r)
            st = check_sharing(c, a, r);
    }
    return st;
}

/* A launch plays so many ranks at most. */
static enum cm_status check_gangs(const struct choice *c)
{
    const struct cm_world *w = c->w;

    for (int r = 0; !w->staged && r < w->n; r++) {
        int members = 0;

        for (int k = 0; k < w->n; k++)
            members += w->gpu_of[k] == r;
        if (members > CM_GPU_GANG)
            return CM_REFUSE(c->boot, CM_EUNSUP,
                             "%d ranks of process %d are on GPU %s: at most %d can share one",
                             members, w->infos[r].proc, w->infos[r].bus_id, CM_GPU_GANG);
    }
    return CM_OK;
}

/* ---- how they reach each other ---- */

/* Index of rank b's device in the process of rank a, or -1: it is not seen there. */
static int seen_as(const struct choice *c, int a, int b)
{
    const struct cm_gpu_facts *f = facts_of(c, a);

    for (int i = 0; i < f->count; i++)
        if (same_device(f, i, facts_of(c, b), c->w->infos[b].device))
            return i;
    return -1;
}

/* Is it known that the GPUs of ranks a and b can address each other? */
static bool known_near(const struct choice *c, int a, int b)
{
    const struct cm_gpu_facts *f = facts_of(c, a);
    int own = c->w->infos[a].device, other = seen_as(c, a, b);

    if (own == other)
        return true;
    return other >= 0 && (f->dev[own].peers >> other & 1) != 0 &&
           (f->dev[other].peers >> own & 1) != 0;
}

/* Does --p2p-level put all pairs out of reach? Collective if it asks how GPUs are connected. */
static enum cm_status level_forbids(const struct choice *c, bool *far)
{
    const struct cm_world *w = c->w;
    const struct cm_p2p_job job = {w->infos, w->n, w->first_of[c->boot->proc], w->topo};
    const char *level = c->opts->engine.p2p_level;

    *far = level != NULL && strcmp(level, "loc") == 0;
    if (level == NULL || *far || strcmp(level, "sys") == 0 || w->staged)
        return CM_OK; /* staged: no GPU addresses another */
    return cm_p2p_level(c->boot, level, &job, far);
}

/* Do two ranks share memory? If not, ports of the host lie between them. */
static bool same_domain(const struct cm_world *w, int a, int b)
{
    return w->domains.n <= 1 || w->domains.of_rank[a] == w->domains.of_rank[b];
}

static void choose_far(const struct choice *c, bool forbidden)
{
    struct cm_world *w = c->w;
    const char *wire = c->opts->launch.wire;

    w->far_only = forbidden || c->opts->engine.p2p_disable ||
                  (wire != NULL && strcmp(wire, "shm") == 0);
    for (int a = 0; a < w->n; a++)
        for (int b = 0; !w->far && b < a; b++)
            w->far = same_domain(w, a, b) &&
                     (w->far_only || (!known_near(c, a, b) && !known_near(c, b, a)));
    w->staged = w->staged || c->opts->find.on; /* several communicators */
    if (w->staged)
        w->far = w->far_only = false;
}

enum cm_status cm_world_choose_gpus(const struct cm_boot *b, const struct cm_opts *o,
                                    const struct cm_gpu_claim *claims, struct cm_world *w)
{
    const struct choice c = {b, o, claims, w};
    enum cm_status st = choose_backend(&c);
    bool forbidden = false;

    if (st != CM_OK || !w->cuda)
        return st;
    if (w->n > CM_GPU_RANKS)
        return CM_REFUSE(b, CM_EUNSUP, "%d ranks on GPUs: at most %d are supported", w->n,
                         CM_GPU_RANKS);
    w->driver = claims[0].facts->driver;
    w->runtime = claims[0].facts->runtime;
    for (int p = 0; st == CM_OK && p < w->nprocs; p++)
        st = place_process(&c, p);
    if (st == CM_OK)
        st = find_sharing(&c);
    if (st == CM_OK)
        st = check_gangs(&c);
    if (st == CM_OK)
        st = level_forbids(&c, &forbidden);
    if (st == CM_OK)
        choose_far(&c, forbidden);
    return st;
}
