/*
 * What a run asks the topology. Ranks of other machines cannot be looked at
 * from here; but where GPUs reach each other, all are on one machine, and one
 * rank's view is given to all, so that they agree on the order.
 */
#include "common/topo_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "common/world_topo.h"
#include "engine/algo.h"

enum { LEAST = 4 /* of three ranks all rings are the same */ };

/* Bus ids of the group's GPUs; false: not all are there, or several ranks are on one. */
static bool list_gpus(const struct cm_rank *r, const char **bus_ids)
{
    for (int i = 0; i < r->group_n; i++) {
        char path[64];

        bus_ids[i] = r->infos[r->group_world[i]].bus_id;
        snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", bus_ids[i]);
        if (bus_ids[i][0] == '\0' || access(path, F_OK) != 0)
            return false;
        for (int k = 0; k < i; k++)
            if (strcmp(bus_ids[k], bus_ids[i]) == 0)
                return false;
    }
    return true;
}

/* What the first rank of a group finds out for it. */
struct view {
    int16_t found;
    int16_t order[CM_TOPO_GPUS];
};

static void fill_nodes(const struct cm_rank *r, int32_t *node)
{
    for (int i = 0; i < r->group_n; i++)
        node[i] = r->node_of[r->group_world[i]];
}

static void look(const struct cm_rank *r, struct view *v)
{
    int32_t node[CM_TOPO_GPUS], order[CM_TOPO_GPUS];
    const char *bus_ids[CM_TOPO_GPUS];
    struct cm_topo *t = NULL;

    if (!list_gpus(r, bus_ids) || cm_topo_detect("/", bus_ids, r->group_n, &t) != CM_OK)
        return;
    fill_nodes(r, node);
    cm_order_by_node(node, r->group_n, order);
    cm_topo_order(t, node, NULL, r->group_n, order);
    cm_topo_free(t);
    v->found = 1;
    for (int i = 0; i < r->group_n; i++)
        v->order[i] = (int16_t)order[i];
}

/* All ranks have the file, so each finds the order by itself. */
static enum cm_status order_of_file(const struct cm_rank *r, int32_t *order)
{
    int32_t *node = calloc((size_t)r->group_n, sizeof(*node));

    if (node == NULL)
        return CM_FAIL(CM_ENOMEM, "ring order of %d ranks", r->group_n);
    fill_nodes(r, node);
    cm_world_order(r->topo, r->topo_gpu, r->group_world, node, r->group_n, order);
    free(node);
    return CM_OK;
}

enum cm_status cm_topo_run_order(struct cm_rank *r, int32_t *order, bool *found)
{
    bool asks = r->backend != NULL && r->network == NULL && r->n >= LEAST;
    bool fits = r->group_n >= LEAST && r->group_n <= CM_TOPO_GPUS;
    const struct view *first;
    struct view mine = {.found = 0}, *all;
    enum cm_status st;

    *found = r->topo != NULL;
    if (r->topo != NULL)
        return order_of_file(r, order);
    if (!asks)
        return CM_OK;
    all = calloc((size_t)r->n, sizeof(*all));
    if (all == NULL)
        return CM_FAIL(CM_ENOMEM, "ring order of %d ranks", r->n);
    if (fits && r->group_rank == 0)
        look(r, &mine);
    st = cm_team_gather(&r->team, &mine, sizeof(mine), all);
    first = &all[r->group_world[0]];
    *found = st == CM_OK && first->found;
    for (int i = 0; *found && i < r->group_n; i++)
        order[i] = first->order[i];
    free(all);
    return st;
}

static bool same_machine(const struct cm_rank_info *a, const struct cm_rank_info *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->boot_id, b->boot_id) == 0;
}

int cm_topo_run_warnings(const struct cm_rank *r, cm_topo_tell *tell, void *arg)
{
    const struct cm_rank_info *me = &r->infos[r->rank];
    /* A run on the host must not wait for the driver of GPUs: see cm_topo_detect() about "/". */
    const char *root = r->backend != NULL ? "/" : "";
    struct cm_topo *t = NULL;
    int32_t *cpu_of;
    int told = 0;

    for (int i = 0; i < r->rank; i++)
        if (same_machine(&r->infos[i], me))
            return 0;
    cpu_of = malloc((size_t)r->n * sizeof(*cpu_of));
    if (cpu_of == NULL || cm_topo_detect(root, NULL, 0, &t) != CM_OK) {
        free(cpu_of);
        return 0; /* the run itself can do without */
    }
    for (int i = 0; i < r->n; i++) {
        int64_t cpu = -1;

        if (same_machine(&r->infos[i], me))
            (void)cm_parse_int(r->infos[i].cpus, 0, INT16_MAX, &cpu); /* a list: not bound to one */
        cpu_of[i] = (int32_t)cpu;
    }
    told = cm_topo_warn_cores(t, cpu_of, r->n, tell, arg);
    if (r->backend != NULL || r->topo != NULL)
        told += cm_topo_warn_nvlink(r->topo != NULL ? r->topo : t, tell, arg);
    cm_topo_free(t);
    free(cpu_of);
    return told;
}
