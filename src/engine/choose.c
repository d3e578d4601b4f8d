/*
 * The choice of algorithm, mode and protocol: what the tuning table says, what
 * the user forces, and what the ranks' memory allows, in this order.
 */
#include <string.h>

#include "engine/comm_int.h"
#include "engine/span.h"

size_t cm_key_largest(const struct cm_comm *c, const struct cm_key *k)
{
    struct cm_extent e = {c->n, 1, k->count, cm_dtypes[k->dtype].bytes, k->matrix};
    size_t most = 0;

    for (int r = 0; r < (k->matrix == NULL ? 1 : c->n); r++) {
        size_t in = cm_space_elems(&e, CM_IN, r, cm_in_blocks(k->coll, c->n));
        size_t out = cm_space_elems(&e, CM_OUT, r, cm_out_blocks(k->coll, c->n));

        most = in > most ? in : most;
        most = out > most ? out : most;
    }
    return most * e.esize;
}

/*
 * Apply what the user forces. A slot payload of 0 stands for the shared LL
 * slots; asking for copy mode by name means the ports between pairs.
 */
static void apply_force(const struct cm_comm *c, struct cm_choice *ch)
{
    const struct cm_force *f = &c->force;

    if (f->algo != NULL)
        ch->algo = f->algo;
    if (f->mode >= 0)
        ch->mode = (enum cm_mode)f->mode;
    if (f->proto == CM_PROTO_SIMPLE && ch->proto == CM_PROTO_LL && f->mode < 0)
        ch->mode = CM_MODE_DIRECT; /* the table's copy mode was for the sake of LL */
    if (f->proto != CM_PROTO_AUTO)
        ch->proto = f->proto;
    if (f->channels > 0)
        ch->channels = f->channels;
    ch->chunk = f->chunk > 0 ? f->chunk : ch->chunk;
}

/* May the operation go through the shared LL slots? */
static bool fits_ll(const struct cm_comm *c, const struct cm_key *k, const struct cm_choice *ch)
{
    const struct cm_force *f = &c->force;
    struct cm_ll_shape shape;

    return c->remote == NULL && ch->proto == CM_PROTO_LL && f->mode != CM_MODE_COPY &&
           f->chunk == 0 && f->channels <= 1 &&
           (f->algo == NULL || strcmp(f->algo, "direct") == 0) && cm_ll_shape(c, k, &shape);
}

/* Does the algorithm use shared buffers inside nodes and ports between? */
static bool is_mixed(const struct cm_comm *c, const struct cm_algo *algo,
                     const struct cm_choice *ch)
{
    return !c->one_node && algo->by_node && ch->mode == CM_MODE_DIRECT;
}

/* On several nodes an algorithm that goes by the node map is mixed, on GPUs all ports. */
static void fit_nodes(const struct cm_comm *c, const struct cm_algo *algo, struct cm_choice *ch)
{
    if (c->one_node || !algo->by_node || c->force.mode >= 0)
        return;
    if (c->force.algo != NULL)
        ch->mode = c->exec != NULL && c->exec->splits ? CM_MODE_COPY : CM_MODE_DIRECT;
    if (c->force.proto != CM_PROTO_LL)
        ch->proto = CM_PROTO_SIMPLE; /* the table's LL means the shared slots */
}

/* Ranks that share no memory have ports only, unless the algorithm knows the nodes. */
static enum cm_status fit_domains(const struct cm_comm *c, const struct cm_algo *algo,
                                  struct cm_choice *ch)
{
    if (c->remote == NULL || algo->by_node || ch->mode == CM_MODE_COPY)
        return CM_OK;
    if (c->force.mode == CM_MODE_DIRECT)
        return CM_FAIL(CM_EUNSUP,
                       "--mode direct with --algo %s needs shared memory, and not all ranks share "
                       "it: use hier, or --mode copy",
                       algo->name);
    ch->mode = CM_MODE_COPY;
    return CM_OK;
}

/* The user's rules come first; their chunk must fit the slots. */
static enum cm_status look_up(const struct cm_comm *c, const struct cm_key *k, struct cm_choice *ch)
{
    size_t bytes = cm_key_largest(c, k);

    if (c->rules == NULL || !cm_tune_find(c->rules, k->coll, c->n, c->nodes, bytes, ch))
        return cm_tune_find(c->tune, k->coll, c->n, c->nodes, bytes, ch)
                   ? CM_OK
                   : CM_FAIL(CM_EUNSUP, "no tuning rule for %s", cm_colls[k->coll].name);
    if (ch->chunk > c->limits.slot_bytes && c->force.chunk == 0)
        return CM_FAIL(CM_EINVAL, "tuning rule for %s of %zu bytes: chunk %zu, but a slot has %zu",
                       cm_colls[k->coll].name, bytes, ch->chunk, c->limits.slot_bytes);
    return CM_OK;
}

enum cm_status cm_choose(const struct cm_comm *c, const struct cm_key *k, struct cm_choice *ch)
{
    const struct cm_algo *algo;
    enum cm_status st = look_up(c, k, ch);

    if (st != CM_OK)
        return st;
    apply_force(c, ch);
    algo = cm_algo_find(ch->algo);
    if (algo == NULL || algo->build[k->coll] == NULL)
        return CM_FAIL(CM_EUNSUP, "%s has no %s algorithm", cm_colls[k->coll].name, ch->algo);
    fit_nodes(c, algo, ch);
    st = fit_domains(c, algo, ch);
    if (st != CM_OK)
        return st;
    if (c->exec != NULL && c->exec->choose != NULL)
        return c->exec->choose(c, k, ch);
    if (fits_ll(c, k, ch)) {
        ch->mode = CM_MODE_COPY;
        ch->channels = 1;
        ch->chunk = 0;
        return CM_OK;
    }
    if (c->remote == NULL && c->force.mode < 0 && ch->proto == CM_PROTO_LL &&
        c->force.proto != CM_PROTO_LL)
        ch->mode = CM_MODE_DIRECT; /* the table's LL rule does not fit: small but not shared */
    if (ch->mode == CM_MODE_DIRECT && !is_mixed(c, algo, ch)) {
        ch->proto = CM_PROTO_SIMPLE;
        ch->chunk = 0;
    } else if (ch->chunk == 0 || ch->chunk > c->limits.slot_bytes) {
        ch->chunk = c->limits.slot_bytes;
    }
    return CM_OK;
}
