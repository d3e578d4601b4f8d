/*
 * The verifier has teeth: plans of every algorithm, broken in one place, must
 * be refused. What may pass is named in harmless(), with the reason.
 */
#include <string.h>

#include "mutate.h"
#include "subject.h"

static int refusals[NKINDS]; /* plans refused so far */

static bool uses_port(const struct cm_plan *p, const struct cm_fold *f)
{
    for (int k = 0; k < f->nfrom + f->nto; k++) {
        if (operand_at(p, f, k)->space == CM_PORT)
            return true;
    }
    return false;
}

/* A step of hierdbl between nodes: reads OUT and the port of whom the fold before has sent to. */
static bool doubles(const struct cm_plan *p, const struct cm_fold *f)
{
    bool out = false, exchange = false;

    for (int k = 0; f > p->folds && k < f->nfrom; k++) {
        const struct cm_operand *o = operand_at(p, f, k);

        out |= o->space == CM_OUT;
        for (int i = 0; o->space == CM_PORT && i < f[-1].nto; i++)
            exchange |= p->operands[f[-1].to + i].rank == o->rank;
    }
    return out && exchange;
}

/* Does only this rank compute the fold, so that its order is everybody's order? */
static bool reduces_alone(const struct cm_plan *p, const struct cm_fold *f)
{
    int peer = p->operands[f->from].rank;

    if (strcmp(p->algo, "hierdbl") == 0)
        return !doubles(p, f);
    if (strcmp(p->algo, "recdbl") == 0) /* the odd rank of a pair takes in the idle one's input */
        return p->rank % 2 == 1 && peer == p->rank - 1 && (p->n & (p->n - 1)) != 0;
    return strcmp(p->algo, "oneshot") != 0;
}

/* Why this mutation of `p`, still whole, does no harm; NULL: it must be refused. */
static const char *harmless(const struct cm_plan *p, enum kind kind, int at, int site)
{
    const struct cm_fold *f = &p->folds[at];
    bool rooted_ring = cm_colls[p->coll].rooted && strcmp(p->algo, "ring") == 0;

    if (kind == SHIFT_CHUNK && operand_at(p, f, site)->space == CM_PORT)
        return "a port's chunk gives a length, and the next block is as long";
    if (kind == SWAP_SOURCES && reduces_alone(p, f))
        return "nobody else reduces this chunk";
    if (kind == DOUBLE_FOLD && !uses_port(p, f))
        return "the same copy, wait or arrival again";
    if (kind == RETARGET && operand_at(p, f, site)->space == CM_SCRATCH && site < f->nfrom)
        return "a peer's scratch may hold the same result";
    if (kind == DROP_POST && rooted_ring && p->rank == p->root)
        return "a root finishes more steps than its neighbour looks for";
    return NULL;
}

/* Place number `site` of fold `at`; false: there is no such place. */
static bool try_site(struct subject *s, struct cm_plan **mine, enum kind kind, int at, int site)
{
    struct cm_plan *whole = *mine;
    struct cm_proof proof = {0};
    bool some, refuses = false;

    *mine = clone(whole);
    some = mutate(*mine, kind, at, site);
    if (some)
        refuses = refused(s, whole->min_depth, &proof);
    if (some && !refuses)
        CHECK(harmless(whole, kind, at, site) != NULL,
              "%s %s %s n=%d root=%d: %s at rank %d fold %d place %d is accepted",
              cm_colls[whole->coll].name, whole->algo,
              whole->mode == CM_MODE_COPY ? "copy" : "direct", whole->n, whole->root,
              kind_names[kind], whole->rank, at, site);
    refusals[kind] += refuses;
    cm_plan_free(*mine);
    *mine = whole;
    return some;
}

static void break_rank(struct subject *s, int rank)
{
    for (int kind = 0; kind < NKINDS; kind++) {
        for (int at = 0; at < s->plans[rank]->nfolds; at++) {
            int site = 0;

            while (try_site(s, &s->plans[rank], kind, at, site))
                site++;
        }
    }
}

static void break_subject(struct subject *s)
{
    struct cm_proof proof;
    int n = s->build.n, depth;

    build_subject(s);
    depth = s->plans[0]->min_depth;
    CHECK(!refused(s, depth, &proof), "%s", proof.why);
    if (depth > 1)
        CHECK(refused(s, depth - 1, &proof) && strstr(proof.why, "deadlock") != NULL,
              "%s %s n=%d runs at depth %d", cm_colls[s->build.coll].name, s->algo->name, n,
              depth - 1);
    for (int r = 0; r < n; r++)
        break_rank(s, r);
    free_subject(s);
}

static void break_algo(const char *name)
{
    static const int sizes[] = {3, 5, 8};
    struct subject s = {.algo = cm_algo_find(name)};

    for (int coll = 0; coll < CM_NCOLLS; coll++) {
        for (size_t k = 0; s.algo->build[coll] != NULL && k < 2 * CM_LEN(sizes); k++) {
            s.build = (struct cm_build_args){.coll = coll,
                                             .mode = k % 2 ? CM_MODE_DIRECT : CM_MODE_COPY,
                                             .n = sizes[k / 2],
                                             .root = cm_colls[coll].rooted};
            break_subject(&s);
        }
    }
}

/* Several nodes: even, uneven with two rounds of blocks, interleaved with one rank alone. */
static void break_on_nodes(const char *name)
{
    static const int32_t maps[][MAX_N] = {
        {0, 0, 1, 1}, {0, 0, 0, 1, 1}, {0, 1, 0, 1, 2}, {0, 1, 2}, {0, 1, 1, 0, 1, 2, 2}};
    static const int sizes[CM_LEN(maps)] = {4, 5, 5, 3, 7};
    struct subject s = {.algo = cm_algo_find(name)};

    for (int coll = 0; coll < CM_NCOLLS; coll++) {
        for (size_t k = 0; s.algo->build[coll] != NULL && k < 2 * CM_LEN(maps); k++) {
            s.build = (struct cm_build_args){.coll = coll,
                                             .mode = k % 2 ? CM_MODE_DIRECT : CM_MODE_COPY,
                                             .n = sizes[k / 2],
                                             .root = cm_colls[coll].rooted,
                                             .node = maps[k / 2]};
            break_subject(&s);
        }
    }
}

static void test_hier(void)
{
    break_on_nodes("hier");
}

static void test_hierdbl(void)
{
    break_on_nodes("hierdbl");
}

static void test_direct(void)
{
    break_algo("direct");
}

static void test_oneshot(void)
{
    break_algo("oneshot");
}

static void test_ring(void)
{
    break_algo("ring");
}

static void test_tree(void)
{
    break_algo("tree");
}

static void test_recdbl(void)
{
    break_algo("recdbl");
}

static void test_every_kind_was_refused(void)
{
    for (int kind = 0; kind < NKINDS; kind++)
        CHECK(refusals[kind] > 0, "no plan was refused for: %s", kind_names[kind]);
}

int main(void)
{
    RUN(test_direct);
    RUN(test_oneshot);
    RUN(test_ring);
    RUN(test_tree);
    RUN(test_recdbl);
    RUN(test_hier);
    RUN(test_hierdbl);
    RUN(test_every_kind_was_refused);
    return test_end();
}
