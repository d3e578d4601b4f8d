/*
 * Each process looks at the GPUs that the job uses on its machine, also those
 * of other processes, which it may not see through CUDA: bus ids and sysfs are
 * enough. What is decided comes from all of them together.
 */
#include "common/p2p_level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/launch.h"

enum { WITHIN, BEYOND };

/* The farthest class that a level allows. NCCL's PHB is all of a NUMA node. */
static enum cm_topo_class farthest(const char *level)
{
    static const struct {
        const char *level;
        enum cm_topo_class farthest;
    } rows[] = {
        {"nvl", CM_TOPO_NV},   {"pix", CM_TOPO_PIX}, {"pxb", CM_TOPO_PXB},
        {"phb", CM_TOPO_NODE}, {"sys", CM_TOPO_SYS},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++)
        if (strcmp(rows[i].level, level) == 0)
            return rows[i].farthest;
    return CM_TOPO_X;
}

void cm_p2p_count(const struct cm_topo *t, const char *level, struct cm_p2p_pairs *out)
{
    enum cm_topo_class most = farthest(level);

    memset(out, 0, sizeof(*out));
    for (int a = 0; a < t->ngpus; a++) {
        for (int b = 0; b < a; b++) {
            const struct cm_topo_link link = cm_topo_link(t, a, b);
            int side = link.kind <= most ? WITHIN : BEYOND;
            int32_t *count = side == WITHIN ? &out->within : &out->beyond;

            if ((*count)++ > 0)
                continue;
            memcpy(out->example[side][0], t->gpus[b].bus_id, sizeof(out->example[side][0]));
            memcpy(out->example[side][1], t->gpus[a].bus_id, sizeof(out->example[side][1]));
            cm_topo_class_text(&link, out->example_kind[side]);
        }
    }
}

void cm_p2p_add(struct cm_p2p_pairs *all, const struct cm_p2p_pairs *more)
{
    const int32_t have[2] = {all->within, all->beyond};

    for (int side = WITHIN; side <= BEYOND; side++) {
        if (have[side] > 0)
            continue;
        memcpy(all->example[side], more->example[side], sizeof(all->example[side]));
        memcpy(all->example_kind[side], more->example_kind[side], sizeof(all->example_kind[side]));
    }
    all->within += more->within;
    all->beyond += more->beyond;
}

int cm_list_gpus(const struct cm_rank_info *infos, int n, int mine, const char **ids)
{
    int count = 0;

    for (int r = 0; r < n; r++) {
        int i = 0;

        if (strcmp(infos[r].boot_id, infos[mine].boot_id) != 0)
            continue;
        while (i < count && strcmp(ids[i], infos[r].bus_id) != 0)
            i++;
        if (i == count && count < CM_TOPO_GPUS)
            ids[count++] = infos[r].bus_id;
    }
    return count;
}

static enum cm_status look(const char *level, const struct cm_p2p_job *j, struct cm_p2p_pairs *out)
{
    const char *ids[CM_TOPO_GPUS];
    struct cm_topo *t = NULL;
    enum cm_status st;

    memset(out, 0, sizeof(*out));
    st = cm_topo_detect("/", ids, cm_list_gpus(j->infos, j->n, j->mine, ids), &t);
    if (st == CM_OK)
        cm_p2p_count(t, level, out);
    cm_topo_free(t);
    return st == CM_EINVAL ? CM_EUNSUP : st; /* a GPU that sysfs does not know: logged */
}

static enum cm_status decide(const struct cm_boot *b, const char *level,
                             const struct cm_p2p_pairs *p, bool *far)
{
    *far = p->within == 0 && p->beyond > 0;
    if (p->within == 0 || p->beyond == 0)
        return CM_OK;
    return CM_REFUSE(b, CM_EUNSUP,
                     "--p2p-level %s: GPUs %s and %s (%s) are within, but %s and %s (%s) are not: "
                     "this is only possible for all pairs alike",
                     level, p->example[WITHIN][0], p->example[WITHIN][1], p->example_kind[WITHIN],
                     p->example[BEYOND][0], p->example[BEYOND][1], p->example_kind[BEYOND]);
}

enum cm_status cm_p2p_level(const struct cm_boot *b, const char *level, const struct cm_p2p_job *j,
                            bool *far)
{
    struct cm_p2p_pairs *each = calloc((size_t)b->nprocs, sizeof(*each)), my, all;
    enum cm_status st =
        each != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "pairs of GPUs of %d processes", b->nprocs);

    memset(&all, 0, sizeof(all));
    memset(&my, 0, sizeof(my));
    if (st == CM_OK && j->topo != NULL)
        cm_p2p_count(j->topo, level, &my);
    else if (st == CM_OK)
        st = look(level, j, &my);
    st = cm_boot_agree(b, st);
    if (st == CM_OK)
        st = b->gather(b, &my, sizeof(my), each);
    for (int p = 0; st == CM_OK && p < b->nprocs; p++)
        cm_p2p_add(&all, &each[p]);
    free(each);
    return st == CM_OK ? decide(b, level, &all, far) : st;
}
