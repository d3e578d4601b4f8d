/*
 * A rank's buffers in the rig, before and after an operation.
 *
 * IN and OUT have a room each, filled with one byte value; the payload lies
 * somewhere inside. What a room must hold afterwards, that filling included, is composed
 * beforehand from the definition, so that a check compares whole rooms.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/data.h"
#include "common/ref.h"
#include "exec_rig.h"

enum { GUARD = 256, FILLING = 0xcb };

/* One room: used bytes, where its payload starts, and both contents. */
struct image {
    size_t bytes, at;
    unsigned char *before, *after;
};

struct rig_data {
    struct rig_op op;
    int n;
    size_t esize;
    struct image image[RIG_RANKS][2]; /* of IN's room and of OUT's */
    size_t in_at[RIG_RANKS], out_at[RIG_RANKS];
    unsigned char *input[RIG_RANKS];
};

static size_t elements(const struct rig_data *d, int rank, enum cm_space space)
{
    const struct cm_extent e = {d->n, 1, d->op.count, d->esize, d->op.matrix};
    int blocks = space == CM_IN ? cm_in_blocks(d->op.coll, d->n) : cm_out_blocks(d->op.coll, d->n);

    return cm_space_elems(&e, space, rank, blocks);
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* Any bits for copies and integers; floats that are reduced are between 1/2 and 2, of any sign. */
static void make_arbitrary(const struct rig_data *d, uint64_t seed, size_t count, unsigned char *to)
{
    bool reals = cm_dtypes[d->op.dtype].kind == CM_KIND_FLOAT && cm_colls[d->op.coll].reduces;

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = next(&seed);
        double v = (double)(bits >> 12) / (double)(1ull << 52) * 1.5 + 0.5;

        if (reals)
            cm_store(d->op.dtype, to + i * d->esize, bits & 1 ? -v : v);
        else
            memcpy(to + i * d->esize, &bits, d->esize);
    }
}

static bool make_input(struct rig_data *d, int rank, uint64_t seed)
{
    const struct rig_op *op = &d->op;
    struct cm_data data = {op->coll, op->dtype, op->op, d->n, seed};
    size_t count = elements(d, rank, CM_IN);

    d->input[rank] = malloc(count * d->esize + 1);
    if (d->input[rank] == NULL)
        return false;
    for (size_t i = 0; i < count * d->esize; i++)
        d->input[rank][i] = (unsigned char)(op->word >> i % 4 * 8);
    if (op->word != 0)
        return true;
    if (op->arbitrary)
        make_arbitrary(d, seed * RIG_RANKS + (uint64_t)rank, count, d->input[rank]);
    else
        cm_data_input(&data, rank, 0, count, d->input[rank]);
    return true;
}

static bool make_image(struct image *m, size_t skew, size_t payload)
{
    m->at = GUARD + skew;
    m->bytes = m->at + payload + GUARD;
    m->before = malloc(m->bytes);
    m->after = malloc(m->bytes);
    if (m->before == NULL || m->after == NULL)
        return false;
    memset(m->before, FILLING, m->bytes);
    return true;
}

/* Both rooms before the operation. In place all lies in OUT's, IN or OUT inside the other. */
static bool make_rooms(struct rig_data *d, int rank)
{
    const struct rig_op *op = &d->op;
    struct image *in = &d->image[rank][0], *out = &d->image[rank][1];
    size_t in_bytes = elements(d, rank, CM_IN) * d->esize;
    size_t out_bytes = elements(d, rank, CM_OUT) * d->esize, block = op->count * d->esize;
    bool absent = op->in_place && op->coll == CM_SCATTER && rank != op->root;

    if (!make_image(in, (size_t)op->in_skew * d->esize, op->in_place ? 0 : in_bytes) ||
        !make_image(out, (size_t)op->out_skew * d->esize,
                    op->in_place && in_bytes > out_bytes ? in_bytes : out_bytes))
        return false;
    d->in_at[rank] = op->in_place ? out->at : in->at;
    d->out_at[rank] = out->at;
    if (op->in_place && in_bytes < out_bytes)
        d->in_at[rank] += (size_t)rank * block;
    if (op->in_place && in_bytes > out_bytes)
        d->out_at[rank] += (size_t)rank * block;
    if (!absent)
        memcpy((op->in_place ? out : in)->before + d->in_at[rank], d->input[rank], in_bytes);
    memcpy(in->after, in->before, in->bytes);
    memcpy(out->after, out->before, out->bytes);
    return true;
}

static void make_results(struct rig_data *d)
{
    const struct rig_op *op = &d->op;
    const struct cm_ref ref = {op->coll, op->dtype, op->op, d->n, op->root, op->count, op->matrix};
    const void *in[RIG_RANKS];
    void *out[RIG_RANKS];

    for (int k = 0; k < d->n; k++) {
        in[k] = d->input[k];
        out[k] = d->image[k][1].after + d->out_at[k];
    }
    cm_ref_run(&ref, in, out);
}

struct rig_data *rig_data_make(const struct rig *r, const struct rig_op *op, uint64_t seed)
{
    struct rig_data *d = calloc(1, sizeof(*d));
    bool ok = d != NULL;

    if (!ok)
        return NULL;
    d->op = *op;
    d->n = r->set.n;
    d->esize = cm_dtypes[op->dtype].bytes;
    for (int k = 0; k < d->n && ok; k++)
        ok = make_input(d, k, seed) && make_rooms(d, k) && d->image[k][0].bytes <= r->set.room &&
             d->image[k][1].bytes <= r->set.room;
    if (!ok) {
        fprintf(stderr, "rig: %zu elements are too many for the rooms\n", op->count);
        rig_data_free(d);
        return NULL;
    }
    make_results(d);
    return d;
}

void rig_data_free(struct rig_data *d)
{
    if (d == NULL)
        return;
    for (int k = 0; k < d->n; k++) {
        free(d->input[k]);
        for (int s = 0; s < 2; s++) {
            free(d->image[k][s].before);
            free(d->image[k][s].after);
        }
    }
    free(d);
}

void rig_data_fill(const struct rig_data *d, int rank, unsigned char *const room[2], void **in,
                   void **out)
{
    for (int s = 0; s < 2; s++)
        memcpy(room[s], d->image[rank][s].before, d->image[rank][s].bytes);
    *in = room[d->op.in_place ? 1 : 0] + d->in_at[rank];
    *out = room[1] + d->out_at[rank];
}

static void say_difference(const struct rig_data *d, int rank, int s, const unsigned char *room)
{
    const struct image *m = &d->image[rank][s];
    size_t first = 0, wrong = 0;

    for (size_t i = m->bytes; i-- > 0;) {
        if (room[i] != m->after[i]) {
            first = i;
            wrong++;
        }
    }
    fprintf(stderr,
            "rig: rank %d %s: %zu bytes wrong, first at byte %ld: %02x, not %02x (before %02x)\n",
            rank, s == 0 ? "IN" : "OUT", wrong, (long)first - (long)m->at, room[first],
            m->after[first], m->before[first]);
}

bool rig_data_check(const struct rig_data *d, int rank, unsigned char *const room[2])
{
    bool ok = true;

    for (int s = 0; s < 2; s++) {
        if (memcmp(room[s], d->image[rank][s].after, d->image[rank][s].bytes) == 0)
            continue;
        say_difference(d, rank, s, room[s]);
        ok = false;
    }
    return ok;
}
