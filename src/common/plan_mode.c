/*
 * A plan is plain data, so it can be shown and proved without ranks: build it
 * for every rank, run all of them at once on sets of contributions (the
 * verifier), for both placements, several queue depths and several calls in a
 * row. One line per proof: what it covered, folds, bytes per rank.
 */
#include "common/plan_mode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "common/topo_mode.h"
#include "common/world_topo.h"
#include "engine/algo.h"
#include "engine/verify.h"

enum { CALLS = 2, FIRST_N = 2, LAST_N = 64 };

/* What is proved. */
struct subject {
    const struct cm_algo *algo;
    enum cm_coll coll;
    enum cm_mode mode;
    int n, root;
    const int32_t *order, *node; /* of --node-map, or NULL */
    struct cm_plan **plans;      /* of all n ranks */
};

static void free_plans(struct subject *s)
{
    for (int r = 0; s->plans != NULL && r < s->n; r++)
        cm_plan_free(s->plans[r]);
    free(s->plans);
    s->plans = NULL;
}

static enum cm_status build_plans(struct subject *s)
{
    enum cm_status st = CM_OK;

    s->plans = calloc((size_t)s->n, sizeof(struct cm_plan *));
    if (s->plans == NULL)
        return CM_FAIL(CM_ENOMEM, "plans of %d ranks", s->n);
    for (int r = 0; st == CM_OK && r < s->n; r++) {
        struct cm_build_args a = {.coll = s->coll,
                                  .mode = s->mode,
                                  .rank = r,
                                  .n = s->n,
                                  .root = s->root,
                                  .order = s->order,
                                  .node = s->node};

        st = cm_plan_build(s->algo, &a, &s->plans[r]);
    }
    if (st != CM_OK)
        free_plans(s);
    return st;
}

/* All placements and depths; stops at the first proof that fails. */
static enum cm_status prove(const struct subject *s, struct cm_proof *out)
{
    static const int depths[] = {1, 2, 8};
    int placements = cm_colls[s->coll].in_place ? 2 : 1;
    bool ports = s->plans[0]->ports;
    int ndepths = ports ? (int)CM_LEN(depths) : 1;
    enum cm_status st = CM_OK;

    memset(out, 0, sizeof(*out));
    out->ok = true;
    for (int i = 0; st == CM_OK && out->ok && i < placements * ndepths; i++) {
        struct cm_verify_args a = {.in_place = i >= ndepths,
                                   .depth = depths[i % ndepths],
                                   .calls = CALLS,
                                   .node = ports ? s->node : NULL}; /* else all share memory */

        if (a.depth >= s->plans[0]->min_depth)
            st = cm_verify(s->plans, s->n, &a, out);
    }
    return st;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static void print_proof(const struct subject *s, const struct cm_proof *p, size_t bytes)
{
    uint64_t den = p->bytes_den > 0 ? p->bytes_den : 1, div = gcd(p->bytes_num, den);
    double moved = (double)bytes * (double)p->bytes_num / (double)den;
    char size[32], root[24] = "";

    if (cm_colls[s->coll].rooted)
        snprintf(root, sizeof(root), " root %d", s->root);
    printf("%s %s %s n=%d%s: ", cm_colls[s->coll].name, s->algo->name,
           s->mode == CM_MODE_COPY ? "copy" : "direct", s->n, root);
    if (!p->ok) {
        printf("proof FAILED: %s\n", p->why);
        return;
    }
    printf("proof OK, %d folds, bytes per rank %" PRIu64 "/%" PRIu64 " (%.0f of %s)\n", p->longest,
           p->bytes_num / div, den / div, moved, cm_format_size(bytes, size));
}

/* How often proofs and forms came out. */
struct tally {
    int built, failed;
};

static enum cm_status prove_one(struct subject *s, const struct cm_opts *o, bool show,
                                struct tally *t)
{
    struct cm_proof proof;
    enum cm_status st = build_plans(s);

    if (st == CM_EUNSUP)
        return CM_OK; /* no such form */
    if (st != CM_OK)
        return st;
    if (show)
        cm_plan_print(s->plans[0], stdout);
    st = prove(s, &proof);
    if (st == CM_OK) {
        print_proof(s, &proof, o->sweep.max_bytes);
        if (fflush(stdout) != 0 || ferror(stdout))
            st = cm_fail_errno("stdout");
        t->built++;
        t->failed += !proof.ok;
    }
    free_plans(s);
    return st;
}

/* One number of ranks: the root that -r names, or with -r all each (the plan is printed once). */
static enum cm_status prove_roots(struct subject s, const struct cm_opts *o, bool show,
                                  struct tally *t)
{
    bool all = cm_colls[s.coll].rooted && o->sweep.root == CM_ALL;
    int first = cm_colls[s.coll].rooted && !all ? o->sweep.root % s.n : 0;
    int last = all ? s.n - 1 : first;
    enum cm_status st = CM_OK;

    for (s.root = first; st == CM_OK && s.root <= last; s.root++)
        st = prove_one(&s, o, show && s.root == first, t);
    return st;
}

static enum cm_status prove_form(struct subject s, const struct cm_opts *o, struct tally *t)
{
    int ranks = o->launch.threads * o->launch.gpus;
    enum cm_status st = CM_OK;

    s.n = ranks;
    if (ranks > 1)
        return prove_roots(s, o, true, t);
    for (s.n = FIRST_N; st == CM_OK && s.n <= LAST_N; s.n++)
        st = prove_roots(s, o, false, t);
    return st;
}

/* The ring order of `s` into order[s->n], as a run with this topology file has it. */
static enum cm_status order_by_file(const struct cm_opts *o, const struct subject *s,
                                    int32_t *order)
{
    int32_t world[LAST_N], gpu[LAST_N];
    struct cm_topo *t = NULL;
    enum cm_status st = cm_topo_read(o->report.topo, &t);
    int node;

    if (st != CM_OK)
        return st;
    if (s->n > LAST_N)
        st =
            CM_FAIL(CM_EINVAL, "--plan with --topo '%s': at most %d ranks", o->report.topo, LAST_N);
    node = st == CM_OK ? cm_topo_assign(t, s->node, s->n, gpu) : -1;
    if (node >= 0)
        st = CM_FAIL(CM_EINVAL, CM_TOPO_TOO_FEW, o->report.topo, t->ngpus, node);
    for (int r = 0; st == CM_OK && r < s->n; r++)
        world[r] = r;
    if (st == CM_OK)
        cm_world_order(t, gpu, world, s->node, s->n, order);
    cm_topo_free(t);
    return st;
}

/* Node map and ring order into map[2 * s->n], as the communicator takes them. */
static enum cm_status read_map(const struct cm_opts *o, int32_t *map, struct subject *s)
{
    bool mapped = o->launch.node_map != NULL && cm_parse_node_map(o->launch.node_map, s->n, map);
    bool file = cm_topo_is_file(o->report.topo);

    if (!mapped && !file)
        return CM_OK;
    s->node = map;
    s->order = map + s->n;
    if (file)
        return order_by_file(o, s, map + s->n);
    cm_order_by_node(map, s->n, map + s->n);
    return CM_OK;
}

/* Every algorithm and mode that the options leave open. */
static enum cm_status prove_forms(struct subject s, const struct cm_opts *o)
{
    struct tally t = {0, 0};
    enum cm_status st = CM_OK;

    for (const struct cm_algo *a = cm_algos; st == CM_OK && a->name != NULL; a++) {
        if (o->engine.algo != NULL && a != cm_algo_find(o->engine.algo))
            continue;
        for (int mode = CM_MODE_COPY; st == CM_OK && mode <= CM_MODE_DIRECT; mode++) {
            s.algo = a;
            s.mode = (enum cm_mode)mode;
            if (o->engine.mode < 0 || o->engine.mode == mode)
                st = prove_form(s, o, &t);
        }
    }
    if (st == CM_OK && t.built == 0)
        return CM_FAIL(CM_EUNSUP, "--plan: %s has no plan for these options",
                       cm_colls[s.coll].name);
    return st == CM_OK && t.failed > 0 ? CM_EDATA : st;
}

enum cm_status cm_plan_mode(const struct cm_bench *b, const struct cm_opts *o)
{
    int ranks = o->launch.threads * o->launch.gpus;
    enum cm_status st = ranks > 1 ? cm_opts_check_ranks(o, ranks) : CM_OK;
    struct subject s = {.coll = b->coll};
    int32_t *map;

    if (st != CM_OK)
        return st;
    map = calloc(2 * (size_t)ranks, sizeof(*map));
    if (map == NULL)
        return CM_FAIL(CM_ENOMEM, "node map of %d ranks", ranks);
    s.n = ranks;
    if (ranks > 1)
        st = read_map(o, map, &s);
    if (st == CM_OK)
        st = prove_forms(s, o);
    free(map);
    return st;
}
