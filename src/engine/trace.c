/*
 * What the engine tells under --debug: the communicator once, and each
 * operation when it is bound. Nothing is told while operations run.
 */
#include <stdio.h>

#include "engine/comm_int.h"

enum { ORDER_BYTES = 256 };

/* "0 1 3 2", cut with "..." if it is long. */
static const char *order_text(const struct cm_comm *c, char *buf)
{
    int at = 0;

    buf[0] = '\0';
    for (int r = 0; r < c->n; r++) {
        if (at > ORDER_BYTES - 16) {
            snprintf(buf + at, (size_t)(ORDER_BYTES - at), " ...");
            break;
        }
        at += snprintf(buf + at, (size_t)(ORDER_BYTES - at), r > 0 ? " %d" : "%d",
                       (int)c->world[c->order[r]]);
    }
    return buf;
}

/* "parent 3, children 0 5" in world ranks. */
static void place_text(const struct cm_comm *c, int which, char *buf, size_t size)
{
    struct cm_build_args a = {.rank = c->rank, .n = c->n, .order = c->order};
    struct cm_tree_place t = cm_tree_place(&a, which);
    char up[16] = "none", down[32] = " none";
    size_t at = 0;

    if (t.parent >= 0)
        snprintf(up, sizeof(up), "%d", (int)c->world[t.parent]);
    for (int k = 0; k < t.nkids; k++)
        at += (size_t)snprintf(down + at, sizeof(down) - at, " %d", (int)c->world[t.kids[k]]);
    snprintf(buf, size, "parent %s, children%s", up, down);
}

void cm_trace_comm(const struct cm_comm *c)
{
    char order[ORDER_BYTES], trees[2][64];

    if (!cm_traces(c->trace, CM_TRACE_INFO))
        return;
    cm_trace_line(c->trace,
                  "communicator: rank %d of %d on %d nodes, ring order (world ranks) %s, by %s",
                  c->rank, c->n, c->nodes, order_text(c, order),
                  c->by_topology ? "topology" : "node, then rank");
    for (int which = 0; which < 2; which++)
        place_text(c, which, trees[which], sizeof(trees[which]));
    cm_trace_line(c->trace, "trees: %s; %s", trees[0], trees[1]);
}

/* FNV-1a over 64-bit words. */
static uint64_t mix(uint64_t h, uint64_t v)
{
    return (h ^ v) * 0x100000001b3U;
}

/* Equal for equal bound operations of this rank; field by field, as structs have gaps. */
static uint64_t bound_hash(const struct cm_bound *b)
{
    uint64_t h = 0xcbf29ce484222325U;

    for (int i = 0; i < b->nfolds; i++) {
        const struct cm_bound_fold *f = &b->folds[i];

        h = mix(mix(h, (uint64_t)f->nfrom), (uint64_t)f->nto);
        h = mix(mix(h, (uint64_t)f->nwait), f->len);
        h = mix(mix(h, f->post), f->divide);
    }
    for (int i = 0; i < b->noperands; i++)
        h = mix(mix(mix(h, b->operands[i].space), (uint64_t)b->operands[i].rank),
                b->operands[i].at);
    for (int i = 0; i < b->nwaits; i++)
        h = mix(mix(mix(h, (uint64_t)b->waits[i].rank), (uint64_t)b->waits[i].line),
                b->waits[i].phase);
    return h;
}

void cm_trace_bound(const struct cm_comm *c, const struct cm_bound *b, size_t bytes)
{
    static const char *const protos[] = {
        [CM_PROTO_AUTO] = "auto", [CM_PROTO_SIMPLE] = "simple", [CM_PROTO_LL] = "ll"};
    const struct cm_key *k = &b->key;
    const struct cm_choice *ch = &b->choice;
    char root[24] = "";

    if (!cm_traces(c->trace, CM_TRACE_INFO))
        return;
    if (cm_colls[k->coll].rooted)
        snprintf(root, sizeof(root), " root %d", k->root);
    cm_trace_line(c->trace,
                  "%s %s%s%s%s count %zu, %zu bytes, %s: algorithm %s mode %s protocol %s "
                  "channels %d chunk %zu passes %zu%s",
                  cm_colls[k->coll].name, cm_dtypes[k->dtype].name,
                  cm_colls[k->coll].reduces ? " " : "",
                  cm_colls[k->coll].reduces ? cm_ops[k->op].name : "", root, k->count, bytes,
                  k->in_place ? "in place" : "out of place", ch->algo,
                  ch->mode == CM_MODE_COPY ? "copy" : "direct", protos[ch->proto], ch->channels,
                  ch->chunk, b->ll ? 1 : b->npasses, b->stream ? ", non-temporal stores" : "");
    if (cm_traces(c->trace, CM_TRACE_ALL) && !b->ll)
        cm_trace_line(c->trace, "  plan: %d workers, %d folds, %d operands, %d waits, hash %016llx",
                      b->nworkers, b->nfolds, b->noperands, b->nwaits,
                      (unsigned long long)bound_hash(b));
}
