/*
 * Rows of operations on the rig. A rank, or a gang, walks through the row on
 * its own: it waits a random moment, begins, runs to its end, is checked.
 */
#include "exec_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICE = 128,        /* switches between two looks at who has ended */
    MOMENT = 12,        /* slices that a rank may be late; far below the simulator's patience */
    PATIENCE = 1 << 17, /* slices for a row: more is a livelock */
    WHILE = 1 << 12     /* slices in which every thread that waits has told the host */
};

static uint32_t draw(struct rig *r, uint32_t below)
{
    r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(r->random >> 33) % below;
}

/* Half of the time at once. */
static int moment(struct rig *r)
{
    return r->set.sim.in_order || draw(r, 2) == 0 ? 0 : (int)draw(r, MOMENT);
}

static void describe(const struct rig *r, const struct rig_op *op)
{
    const struct rig_setup *s = &r->set;
    const struct cm_bound *b = r->rank[0].comm->last;
    const struct cm_choice none = {.algo = "?"}, *ch = b != NULL ? &b->choice : &none;

    fprintf(stderr,
            "rig: n=%d algo=%s mode=%d proto=%d channels=%d chunk=%zu depth=%d slot=%zu inbox=%zu "
            "mask=%x reach=%d threads=%d gang=%d seed=%llu kernel=%d blocks=%u\n"
            "rig: %s %s %s root=%d count=%zu in_place=%d skew=%d,%d again=%d\n",
            s->n, ch->algo, ch->mode, ch->proto, ch->channels, ch->chunk, s->depth, s->slot_bytes,
            s->inbox_bytes, s->ll_mask, s->reach, s->threads, s->gang,
            (unsigned long long)s->sim.seed, r->rank[0].gpu.launch.kernel,
            r->rank[0].gpu.launch.args.blocks, cm_colls[op->coll].name, cm_dtypes[op->dtype].name,
            cm_ops[op->op].name, op->root, op->count, op->in_place, op->in_skew, op->out_skew,
            op->again);
}

/* Ranks [first, end) are one launch. */
struct group {
    int first, end;
};

static bool prepare(struct rig *r, int rank)
{
    struct rig_rank *k = &r->rank[rank];
    const struct rig_op *op = &r->ops[k->at];
    struct rig_data **d = &r->data[k->at];
    void *in, *out;

    if (*d == NULL)
        *d = rig_data_make(r, op, r->set.sim.seed + (uint64_t)k->at);
    if (*d == NULL)
        return false;
    rig_unlock(r, rank);
    rig_data_fill(*d, rank, k->room, &in, &out);
    return k->round > 0 || rig_enqueue(r, rank, op, in, out);
}

static bool begin(struct rig *r, const struct group *g)
{
    bool ok = true;
    int id;

    for (int k = g->first; k < g->end && ok; k++)
        ok = prepare(r, k);
    id = ok ? rig_submit(r, r->set.gang ? RIG_RANKS : g->first) : -1;
    for (int k = g->first; k < g->end; k++)
        r->rank[k].launch = id;
    return id >= 0;
}

/* A rank's operation has ended: check it, and go to the next. */
static bool finish(struct rig *r, int rank)
{
    struct rig_rank *k = &r->rank[rank];
    bool ok = rig_data_check(r->data[k->at], rank, k->room);

    rig_lock(r, rank);
    k->launch = -1;
    k->wait = moment(r);
    if (k->round++ == r->ops[k->at].again) {
        k->round = 0;
        k->at++;
    }
    return ok;
}

/* One look at a group. false: something is wrong. */
static bool advance(struct rig *r, const struct group *g)
{
    struct rig_rank *lead = &r->rank[g->first];
    const struct rig_op *op = &r->ops[lead->at];
    bool ok = true;

    if (lead->at == r->nops)
        return true;
    if (lead->launch < 0) {
        if (lead->wait-- > 0)
            return true;
        ok = begin(r, g);
    } else if (cmsim_ended(lead->launch)) {
        for (int k = g->first; k < g->end; k++)
            ok &= finish(r, k);
    }
    if (!ok)
        describe(r, op);
    return ok;
}

/* What the simulator or ThreadSanitizer say about the operation that is the slowest. */
static bool complain(const struct rig *r, const char *what)
{
    int at = r->nops - 1;

    for (int k = 0; k < r->set.n; k++)
        at = r->rank[k].at < at ? r->rank[k].at : at;
    describe(r, &r->ops[at]);
    fprintf(stderr, "rig: operation %d: %s\n", at, what);
    return false;
}

static bool drive(struct rig *r)
{
    int width = r->set.gang ? r->set.n : 1, races = rig_races;

    for (int slices = 0; slices < PATIENCE; slices++) {
        bool done = true;

        for (int k = 0; k < r->set.n; k += width) {
            const struct group g = {k, k + width};

            if (!advance(r, &g))
                return false;
            done &= r->rank[k].at == r->nops;
        }
        if (done)
            return true;
        if (cmsim_step(SLICE) < 0)
            return complain(r, cmsim_error());
        if (!rig_carry(r))
            return complain(r, "a slot that no wire would take");
        if (rig_races != races)
            return complain(r, "data race");
    }
    return complain(r, "does not end");
}

bool rig_run(struct rig *r, const struct rig_op *ops, int nops)
{
    bool ok;

    r->ops = ops;
    r->nops = nops;
    r->data = calloc((size_t)nops, sizeof(*r->data));
    if (r->data == NULL)
        return false;
    for (int k = 0; k < r->set.n; k++) {
        r->rank[k].at = r->rank[k].round = 0;
        r->rank[k].launch = -1;
        r->rank[k].wait = moment(r);
    }
    ok = drive(r);
    for (int i = 0; i < nops; i++)
        rig_data_free(r->data[i]);
    free(r->data);
    return ok;
}

bool rig_once(const struct rig_setup *set, const struct rig_op *ops, int nops)
{
    struct rig *r = rig_open(set);
    bool ok = r != NULL && rig_run(r, ops, nops);

    if (r != NULL)
        rig_close(r);
    return ok;
}

bool rig_start(struct rig *r, int rank, const struct rig_op *op)
{
    unsigned char *const *room = r->rank[rank].room;

    rig_unlock(r, rank);
    return rig_enqueue(r, rank, op, room[0], room[1]) && rig_submit(r, rank) >= 0;
}

bool rig_settle(struct rig *r)
{
    int left = 1;

    for (int slices = 0; slices < WHILE && left > 0 && rig_carry(r); slices++)
        left = cmsim_step(SLICE);
    if (left < 0)
        fprintf(stderr, "rig: %s\n", cmsim_error());
    return left == 0;
}
