/*
 * From gathered facts to domains of memory and nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "common/world_int.h"
#include "transport/wire.h"

/* --wire tcp and ib are taken at their word: then only a node map lets processes share memory. */
static bool apart(const struct cm_opts *o)
{
    return o->net.shm_disable ||
           (o->launch.wire != NULL && cm_net_wire_find(o->launch.wire) != NULL);
}

static enum cm_status domain_keys(const struct cm_boot *b, const struct cm_opts *o,
                                  const struct cm_facts *all, const struct cm_world *w,
                                  uint64_t *keys)
{
    bool mapped = o->launch.node_map != NULL;

    for (int p = 0; p < w->nprocs; p++) {
        int32_t own = mapped ? w->node_of[w->first_of[p]] : p;
        uint64_t h = cm_hash(CM_HASH_START, all[p].boot_id, sizeof(all[p].boot_id));

        h = cm_hash(h, &all[p].net_namespace, sizeof(all[p].net_namespace));
        if (apart(o))
            h = cm_hash(h, &own, sizeof(own));
        keys[p] = h;
        for (int r = w->first_of[p]; mapped && apart(o) && r < w->first_of[p + 1]; r++)
            if (w->node_of[r] != own)
                return CM_REFUSE(b, CM_EINVAL,
                                 "--node-map %s: ranks %d and %d are threads of one process, which "
                                 "share memory; as nodes of their own they need processes",
                                 o->launch.node_map, w->first_of[p], r);
    }
    return CM_OK;
}

/* First rank on the node of rank `r`, by map and memory. */
static int first_on_node(const struct cm_world *w, const int32_t *said, int r)
{
    const int32_t *domain = w->domains.of_rank;
    int first = 0;

    while (said[first] != said[r] || domain[first] != domain[r])
        first++;
    return first;
}

/* Without a map, domains are the nodes. A map's own numbers stay, unless memory splits a node. */
static void number_nodes(struct cm_world *w, bool mapped)
{
    int32_t *said = w->cpu_of; /* not in use yet */
    bool split = !mapped;
    int nodes = 0;

    memcpy(said, w->node_of, (size_t)w->n * sizeof(*said));
    for (int r = 0; r < w->n; r++)
        for (int k = 0; k < r; k++)
            split = split || (said[k] == said[r] && w->domains.of_rank[k] != w->domains.of_rank[r]);
    for (int r = 0; split && r < w->n; r++) {
        int first = first_on_node(w, said, r);

        w->node_of[r] = first == r ? nodes++ : w->node_of[first];
    }
}

enum cm_status cm_world_find_domains(const struct cm_boot *b, const struct cm_opts *o,
                                     const struct cm_facts *all, struct cm_world *w)
{
    uint64_t *keys = calloc((size_t)w->nprocs, sizeof(*keys));
    enum cm_status st = CM_OK;

    if (keys == NULL)
        st = CM_FAIL(CM_ENOMEM, "no memory for %d processes", w->nprocs);
    st = cm_boot_agree(b, st);
    if (st == CM_OK)
        st = domain_keys(b, o, all, w, keys);
    if (st == CM_OK)
        st = cm_domains_find(b, keys, &w->domains);
    if (st == CM_OK)
        st = cm_boot_agree(b, cm_domains_add_ranks(&w->domains, w->first_of));
    if (st == CM_OK)
        number_nodes(w, o->launch.node_map != NULL);
    free(keys);
    return st;
}
