/*
 * The communicators of the job are known before they exist: one for each group
 * of --split, with the ring order and the choices that cm_comm_open() will make; with
 * --find-bad one for each pair of nodes that may run together.
 */
#include "common/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "common/find_units.h"
#include "common/world_topo.h"
#include "engine/peers.h"
#include "engine/tune.h"

/* Room for one group of n ranks. */
struct group {
    int32_t *members, *node, *order;
    bool *send, *recv;
};

struct finding {
    const struct cm_opts *opts;
    const struct cm_world *world;
    struct group *group;
    struct cm_pairs *out;
};

static bool allocate_group(struct group *g, size_t n)
{
    g->members = calloc(n, sizeof(*g->members));
    g->node = calloc(n, sizeof(*g->node));
    g->order = calloc(n, sizeof(*g->order));
    g->send = calloc(n, sizeof(*g->send));
    g->recv = calloc(n, sizeof(*g->recv));
    return g->members && g->node && g->order && g->send && g->recv;
}

static void free_group(struct group *g)
{
    free(g->members);
    free(g->node);
    free(g->order);
    free(g->send);
    free(g->recv);
}

static struct cm_force force_of(const struct cm_opts_engine *o)
{
    return (struct cm_force){.algo = o->algo,
                             .mode = o->mode,
                             .proto = (enum cm_proto)o->proto,
                             .channels = o->channels,
                             .chunk = o->chunk};
}

/* From numbers in the group to world ranks, without those that share memory. */
static void keep_remote(const struct cm_world *w, const int32_t *members, const bool *in_group,
                        int n, bool *out)
{
    for (int i = 0; i < n; i++)
        if (in_group[i] && w->domains.local_of[members[i]] < 0)
            out[members[i]] = true;
}

/* The ranks of one communicator. */
struct members {
    const int32_t *world;
    int n;
};

/* Peers of `rank` in a communicator that it is in; they are added to those known. */
static enum cm_status find_in(const struct finding *f, int rank, struct members m)
{
    const struct cm_opts *o = f->opts;
    struct cm_pairs *out = f->out;
    size_t row = (size_t)(rank - out->first) * (size_t)out->n;
    struct group *g = f->group;
    struct cm_peers_args a = {.n = m.n,
                              .root = o->sweep.root,
                              .node = g->node,
                              .order = g->order,
                              .force = force_of(&o->engine),
                              .rules = f->world->rules,
                              .shipped = f->world->cuda && !f->world->staged ? cm_tune_gpu : NULL};
    enum cm_status st = CM_OK;

    for (int i = 0; i < m.n; i++) {
        g->node[i] = f->world->node_of[m.world[i]];
        a.rank = m.world[i] == rank ? i : a.rank;
    }
    cm_world_order(f->world->topo, f->world->topo_gpu, m.world, g->node, m.n, g->order);
    memset(g->send, 0, (size_t)m.n * sizeof(*g->send));
    memset(g->recv, 0, (size_t)m.n * sizeof(*g->recv));
    for (int coll = 0; st == CM_OK && coll < CM_NCOLLS; coll++) {
        a.coll = (enum cm_coll)coll;
        if ((o->colls >> coll & 1) != 0)
            st = cm_peers(&a, g->send, g->recv);
    }
    if (st != CM_OK)
        return st;
    keep_remote(f->world, m.world, g->send, m.n, out->send + row);
    keep_remote(f->world, m.world, g->recv, m.n, out->recv + row);
    return CM_OK;
}

static enum cm_status find_in_group(const struct finding *f, int rank)
{
    const struct cm_world *w = f->world;
    const int32_t *first = &w->group_first[w->infos[rank].group];

    return find_in(f, rank, (struct members){w->members + first[0], first[1] - first[0]});
}

/* ---- --find-bad: a communicator for each unit, and for each two that ever meet ---- */

/* Units a <= b. */
static enum cm_status find_in_units(const struct finding *f, const struct cm_find_units *u,
                                    int rank, const int unit[2])
{
    int32_t *world = f->group->members;
    int n = 0;

    for (int k = 0; k < (unit[0] == unit[1] ? 1 : 2); k++)
        for (int i = 0; i < u->ranks[unit[k]]; i++)
            world[n++] = u->members[u->first[unit[k]] + i];
    return find_in(f, rank, (struct members){world, n});
}

static enum cm_status find_meetings(const struct finding *f, const struct cm_find_units *u,
                                    const struct cm_find_plan *plan, int rank)
{
    int mine = u->of_rank[rank];
    enum cm_status st = find_in_units(f, u, rank, (const int[]){mine, mine});

    for (int round = 0; st == CM_OK && round < plan->rounds + plan->spare; round++) {
        int other = cm_find_partner(plan, round, mine);

        if (other >= 0)
            st = find_in_units(
                f, u, rank, mine < other ? (const int[]){mine, other} : (const int[]){other, mine});
    }
    return st;
}

/* What is wrong with the options is told once, when the search begins. */
static enum cm_status find_units(const struct finding *f)
{
    struct cm_find_plan plan = {.n = 0};
    struct cm_find_units units;
    enum cm_status st;

    cm_log_mute(true);
    st = cm_find_units(f->world->infos, f->world->node_of, f->world->n, &units);
    if (st == CM_OK)
        st = cm_find_units_plan(&units, f->opts, &plan);
    cm_log_mute(false);
    for (int i = 0; st == CM_OK && i < f->out->local; i++)
        st = find_meetings(f, &units, &plan, f->out->first + i);
    cm_find_plan_free(&plan);
    cm_find_units_free(&units);
    return st == CM_EINVAL ? CM_OK : st;
}

enum cm_status cm_pairs_find(const struct cm_opts *o, const struct cm_world *w, int proc,
                             struct cm_pairs *out)
{
    int local = w->first_of[proc + 1] - w->first_of[proc];
    size_t cells = (size_t)local * (size_t)w->n;
    struct group g = {NULL, NULL, NULL, NULL, NULL};
    struct finding f = {o, w, &g, out};
    enum cm_status st = CM_OK;

    *out = (struct cm_pairs){w->first_of[proc], local, w->n, calloc(cells, sizeof(*out->send)),
                             calloc(cells, sizeof(*out->recv))};
    if (out->send == NULL || out->recv == NULL || !allocate_group(&g, (size_t)w->n))
        st = CM_FAIL(CM_ENOMEM, "no memory for the pairs of %d ranks", w->n);
    if (st == CM_OK && o->find.on)
        st = find_units(&f);
    for (int i = 0; st == CM_OK && !o->find.on && i < local; i++)
        st = find_in_group(&f, out->first + i);
    free_group(&g);
    return st;
}

void cm_pairs_free(struct cm_pairs *p)
{
    free(p->send);
    free(p->recv);
}
