/* Units from the node map, and their names. */
#include "common/find_units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* The different nodes, ascending; returns how many. */
static int list_nodes(const int32_t *node_of, int n, int32_t *nodes)
{
    int count = 0;

    memcpy(nodes, node_of, (size_t)n * sizeof(*nodes));
    qsort(nodes, (size_t)n, sizeof(*nodes), compare);
    for (int i = 0; i < n; i++)
        if (i == 0 || nodes[i] != nodes[count - 1])
            nodes[count++] = nodes[i];
    return count;
}

static bool allocate(struct cm_find_units *u, int units, int n)
{
    u->n = units;
    u->ranks = calloc((size_t)units, sizeof(*u->ranks));
    u->first = calloc((size_t)units, sizeof(*u->first));
    u->members = calloc((size_t)n, sizeof(*u->members));
    u->of_rank = calloc((size_t)n, sizeof(*u->of_rank));
    u->name = calloc((size_t)units, sizeof(*u->name));
    return u->ranks && u->first && u->members && u->of_rank && u->name;
}

static void fill_members(struct cm_find_units *u, const int32_t *node_of, const int32_t *nodes,
                         int n)
{
    int placed = 0;

    for (int k = 0; k < u->n; k++) {
        u->first[k] = placed;
        for (int r = 0; r < n; r++) {
            if (u->nodes ? node_of[r] != nodes[k] : r != k)
                continue;
            u->members[placed++] = r;
            u->of_rank[r] = k;
        }
        u->ranks[k] = placed - u->first[k];
    }
}

/* Do all ranks of the unit, and no others, run on the host of its first? */
static bool owns_host(const struct cm_find_units *u, const struct cm_rank_info *infos, int unit,
                      int n)
{
    const char *host = infos[u->members[u->first[unit]]].host;

    for (int r = 0; r < n; r++)
        if ((strcmp(infos[r].host, host) == 0) != (u->of_rank[r] == unit))
            return false;
    return true;
}

static void fill_names(struct cm_find_units *u, const struct cm_rank_info *infos,
                       const int32_t *nodes, int n)
{
    for (int k = 0; k < u->n; k++) {
        if (!u->nodes)
            snprintf(u->name[k], CM_FIND_NAME, "rank%d", k);
        else if (owns_host(u, infos, k, n))
            snprintf(u->name[k], CM_FIND_NAME, "%.63s", infos[u->members[u->first[k]]].host);
        else
            snprintf(u->name[k], CM_FIND_NAME, "node%d", (int)nodes[k]);
    }
}

enum cm_status cm_find_units(const struct cm_rank_info *infos, const int32_t *node_of, int n,
                             struct cm_find_units *out)
{
    int32_t *nodes = calloc((size_t)n, sizeof(*nodes));
    enum cm_status st = CM_OK;
    int count;

    *out = (struct cm_find_units){.n = 0};
    if (nodes == NULL)
        return CM_FAIL(CM_ENOMEM, "nodes of %d ranks", n);
    count = list_nodes(node_of, n, nodes);
    out->nodes = count > 1;
    count = out->nodes ? count : n;
    if (count < 2 || count > CM_FIND_UNITS)
        st = CM_FAIL(CM_EINVAL,
                     "--find-bad compares 2 to %d nodes, or ranks of one node: here %s %d",
                     CM_FIND_UNITS, count < 2 ? "is" : "are", count);
    else if (!allocate(out, count, n))
        st = CM_FAIL(CM_ENOMEM, "%d units of %d ranks", count, n);
    if (st == CM_OK) {
        fill_members(out, node_of, nodes, n);
        fill_names(out, infos, nodes, n);
    }
    free(nodes);
    return st;
}

void cm_find_units_free(struct cm_find_units *u)
{
    free(u->ranks);
    free(u->first);
    free(u->members);
    free(u->of_rank);
    free(u->name);
}

enum cm_status cm_find_units_plan(const struct cm_find_units *u, const struct cm_opts *o,
                                  struct cm_find_plan *out)
{
    struct cm_find_choice c;
    int anchor = 0;

    if (!cm_find_parse_pairs(o->find.pairs, &c))
        return CM_FAIL(CM_EINVAL, "--pairs '%s'", o->find.pairs);
    while (c.anchor != NULL && anchor < u->n && strcmp(u->name[anchor], c.anchor) != 0)
        anchor++;
    if (anchor == u->n)
        return CM_FAIL(CM_EINVAL, "--pairs 'anchor=%s': the names are %s to %s", c.anchor,
                       u->name[0], u->name[u->n - 1]);
    return cm_find_plan(&c, u->n, anchor, o->run.seed, out);
}
