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
#include "common/p2p_level.h"
#include "common/same_file.h"
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

/* `arg`: where the topology goes. */
static enum cm_status read_topo(void *arg, const char *path, uint64_t *hash)
{
    struct cm_topo **out = arg;
    enum cm_status st = cm_topo_read(path, out);

    return st == CM_OK ? hash_of(*out, hash) : st;
}

int cm_topo_assign(const struct cm_topo *t, const int32_t *node, int n, int32_t *gpu)
{
    for (int r = 0; r < n; r++) {
        gpu[r] = 0;
        for (int before = 0; before < r; before++)
            gpu[r] += node[before] == node[r];
        if (gpu[r] >= t->ngpus)
            return node[r];
    }
    return -1;
}

enum cm_status cm_world_read_topo(const struct cm_boot *b, const struct cm_opts *o,
                                  struct cm_world *w)
{
    const struct cm_same_file f = {"--topo", o->report.topo, read_topo, &w->topo};
    enum cm_status st;
    int node;

    if (!cm_topo_is_file(f.path))
        return CM_OK;
    st = cm_same_file_read(b, &f);
    if (st != CM_OK)
        return st;
    w->topo_gpu = calloc((size_t)w->n, sizeof(*w->topo_gpu));
    st = cm_boot_agree(b, w->topo_gpu != NULL ? CM_OK
                                              : CM_FAIL(CM_ENOMEM, "no memory for %d ranks", w->n));
    if (st != CM_OK)
        return st;
    node = cm_topo_assign(w->topo, w->node_of, w->n, w->topo_gpu);
    return node < 0 ? CM_OK
                    : CM_REFUSE(b, CM_EINVAL, CM_TOPO_TOO_FEW, f.path, w->topo->ngpus, node);
}

/* Does this system show the device? If not, that is no fault: containers hide them. */
static bool is_shown(const char *bus_id)
{
    char path[64];

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", bus_id);
    return bus_id[0] != '\0' && access(path, F_OK) == 0;
}

/* The GPUs in use on the machine of `rank`, and which of them is its own; NULL: some are hidden. */
static struct cm_topo *detect(const struct cm_world *w, int rank, int *own)
{
    const char *ids[CM_TOPO_GPUS];
    int n = cm_list_gpus(w->infos, w->n, rank, ids);
    struct cm_topo *t = NULL;

    for (int k = 0; k < n; k++) {
        if (!is_shown(ids[k]))
            return NULL;
        *own = strcmp(ids[k], w->infos[rank].bus_id) == 0 ? k : *own;
    }
    return cm_topo_detect("/", ids, n, &t) == CM_OK ? t : NULL;
}

bool cm_world_nic(const struct cm_world *w, int rank, char name[CM_TOPO_NAME])
{
    int gpu = w->topo != NULL ? w->topo_gpu[rank] : 0;
    struct cm_topo *found = w->topo == NULL && w->cuda ? detect(w, rank, &gpu) : NULL;
    const struct cm_topo *t = w->topo != NULL ? w->topo : found;
    int nic = t != NULL ? cm_topo_nic(t, gpu) : -1;

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
