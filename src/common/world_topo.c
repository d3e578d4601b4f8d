/*
 * A topology file in a run. Ranks on the host have no GPUs: there the file says
 * what machine they play, so that the orders of a cluster can be tried on a laptop.
 */
#include "common/world_topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "common/topo_mode.h"
#include "engine/algo.h"

/* Of what the file says, not of how: comments and order of lines do not matter. */
static enum cm_status hash_of(const struct cm_topo *t, uint64_t *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);

    if (f == NULL)
        return CM_FAIL(CM_ENOMEM, "text of the topology");
    cm_topo_dump(t, f);
    if (fclose(f) != 0) {
        free(text);
        return CM_FAIL(CM_ENOMEM, "text of the topology");
    }
    *out = cm_hash(CM_HASH_START, text, bytes);
    free(text);
    return CM_OK;
}

/* Do all processes have the topology of process 0? */
static enum cm_status compare(const struct cm_boot *b, const struct cm_opts *o, uint64_t mine)
{
    uint64_t *all = calloc((size_t)b->nprocs, sizeof(*all));
    enum cm_status st = cm_boot_agree(
        b, all != NULL ? CM_OK : CM_FAIL(CM_ENOMEM, "no memory for %d processes", b->nprocs));

    if (st == CM_OK)
        st = b->gather(b, &mine, sizeof(mine), all);
    for (int p = 1; st == CM_OK && p < b->nprocs; p++)
        if (all[p] != all[0])
            st = CM_REFUSE(b, CM_EINVAL,
                           "--topo %s: process %d reads another topology there than process 0",
                           o->report.topo, p);
    free(all);
    return st;
}

/* Number the ranks of each node. */
static enum cm_status assign(const struct cm_boot *b, const struct cm_opts *o, struct cm_world *w)
{
    enum cm_status st;

    w->topo_gpu = calloc((size_t)w->n, sizeof(*w->topo_gpu));
    st = cm_boot_agree(b, w->topo_gpu != NULL ? CM_OK
                                              : CM_FAIL(CM_ENOMEM, "no memory for %d ranks", w->n));
    for (int r = 0; st == CM_OK && r < w->n; r++) {
        for (int before = 0; before < r; before++)
            w->topo_gpu[r] += w->node_of[before] == w->node_of[r];
        if (w->topo_gpu[r] == w->topo->ngpus)
            return CM_REFUSE(b, CM_EINVAL,
                             "--topo %s: has %d GPUs, and node %d of the job has more ranks",
                             o->report.topo, w->topo->ngpus, w->node_of[r]);
    }
    return st;
}

enum cm_status cm_world_read_topo(const struct cm_boot *b, const struct cm_opts *o,
                                  struct cm_world *w)
{
    uint64_t hash = 0;
    enum cm_status st;

    if (!cm_topo_is_file(o->report.topo))
        return CM_OK;
    st = cm_topo_read(o->report.topo, &w->topo);
    if (st == CM_OK)
        st = hash_of(w->topo, &hash);
    st = cm_boot_agree(b, st);
    if (st == CM_OK)
        st = compare(b, o, hash);
    return st == CM_OK ? assign(b, o, w) : st;
}

/* Does this system show the device? If not, that is no fault: containers hide them. */
static bool is_shown(const char *bus_id)
{
    char path[64];

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", bus_id);
    return bus_id[0] != '\0' && access(path, F_OK) == 0;
}

/* Bus ids of the GPUs in use on the machine of `rank`, each once; *mine is that of the rank.
   0: not all of them are known. */
static int list_gpus(const struct cm_world *w, int rank, const char **ids, int *mine)
{
    int count = 0;

    for (int r = 0; r < w->n; r++) {
        const struct cm_rank_info *i = &w->infos[r];
        int k = 0;

        if (strcmp(i->boot_id, w->infos[rank].boot_id) != 0)
            continue;
        if (!is_shown(i->bus_id))
            return 0;
        while (k < count && strcmp(ids[k], i->bus_id) != 0)
            k++;
        if (k == CM_TOPO_GPUS)
            return 0;
        ids[k] = i->bus_id;
        count += k == count;
        *mine = r == rank ? k : *mine;
    }
    return count;
}

bool cm_world_nic(const struct cm_world *w, int rank, char name[CM_TOPO_NAME])
{
    const char *ids[CM_TOPO_GPUS];
    struct cm_topo *found = NULL;
    const struct cm_topo *t = w->topo;
    int gpu = t != NULL ? w->topo_gpu[rank] : 0, nic = -1, n;

    if (t == NULL && w->cuda) {
        n = list_gpus(w, rank, ids, &gpu);
        if (n == 0 || cm_topo_detect("/", ids, n, &found) != CM_OK)
            return false;
        t = found;
    }
    if (t != NULL)
        nic = cm_topo_nic(t, gpu);
    if (nic >= 0)
        memcpy(name, t->nics[nic].name, CM_TOPO_NAME);
    cm_topo_free(found);
    return nic >= 0;
}

void cm_world_order(const struct cm_topo *topo, const int32_t *gpu_of, const int32_t *world,
                    const int32_t *node, int n, int32_t *order)
{
    int32_t gpu[CM_MAX_RANKS];

    cm_order_by_node(node, n, order);
    if (topo == NULL)
        return;
    for (int i = 0; i < n; i++)
        gpu[i] = gpu_of[world[i]];
    cm_topo_order(topo, node, gpu, n, order);
}
