/* Malformed plans, and what reaches for memory of another node, are refused with the reason. */
#include <string.h>

#include "subject.h"

/* Edits that make a plan malformed, and a word of the answer. */
static void edit_loop(struct cm_plan *p)
{
    p->folds[0].code = CM_LOOP;
}

static void edit_end(struct cm_plan *p)
{
    p->folds[0].code = CM_END;
}

static void edit_rank(struct cm_plan *p)
{
    p->operands[0].rank = p->n;
}

static void edit_port_to_self(struct cm_plan *p)
{
    p->operands[0] = (struct cm_operand){.space = CM_PORT, .rank = p->rank};
}

static void edit_remote(struct cm_plan *p)
{
    p->operands[0].rank = (p->rank + 1) % p->n;
}

static void edit_post(struct cm_plan *p)
{
    p->folds[0].post = true;
}

static void edit_sources(struct cm_plan *p)
{
    p->folds[0].nfrom = 0;
}

static void edit_channel(struct cm_plan *p)
{
    p->workers[0].channel = 1;
}

static void edit_pieces(struct cm_plan *p)
{
    p->pieces++;
}

static void edit_chunk(struct cm_plan *p)
{
    p->operands[0].chunk = (struct cm_index){.base = p->pieces};
}

/* A loop of nothing but waits at the end: bound, its exit would begin earlier than proved. */
static void edit_idle_loop(struct cm_plan *p)
{
    struct cm_fold *f = p->folds + p->workers[0].nfolds - 3;

    f[0] = (struct cm_fold){.code = CM_LOOP, .trips = 1};
    f[1] = (struct cm_fold){.code = CM_FOLD};
    f[2] = (struct cm_fold){.code = CM_END};
}

static void test_malformed_plans(void)
{
    static const struct {
        void (*edit)(struct cm_plan *p);
        const char *why;
    } cases[] = {
        {edit_loop, "bad loops"},         {edit_end, "bad loops"},
        {edit_rank, "no such rank"},      {edit_port_to_self, "port to itself"},
        {edit_remote, "memory in copy"},  {edit_post, "posts in copy"},
        {edit_sources, "0 sources"},      {edit_channel, "malformed"},
        {edit_pieces, "belong together"}, {edit_chunk, "chunk 3"},
        {edit_idle_loop, "malformed"},
    };
    struct subject s = {.algo = cm_algo_find("ring"), .build = {.coll = CM_ALL_REDUCE, .n = 3}};

    for (size_t k = 0; k < CM_LEN(cases); k++) {
        struct cm_proof proof = {0};

        build_subject(&s);
        cases[k].edit(s.plans[1]);
        CHECK(refused(&s, 2, &proof) && strstr(proof.why, cases[k].why) != NULL, "\"%s\": %s",
              cases[k].why, proof.why);
        free_subject(&s);
    }
}

static void edit_place(struct cm_plan *p)
{
    for (int k = 0; k < p->noperands; k++) {
        if (p->operands[k].space != CM_PORT && p->operands[k].rank != p->rank)
            p->operands[k].rank = p->n - 1;
    }
}

static void edit_wait(struct cm_plan *p)
{
    p->waits[p->nwaits - 1].rank = p->n - 1;
}

static void edit_near_port(struct cm_plan *p)
{
    for (int k = 0; k < p->noperands; k++) {
        if (p->operands[k].space == CM_PORT)
            p->operands[k].rank = 1;
    }
}

/* Rank 0 of the mixed form, on nodes of two: what is elsewhere can be reached by ports alone. */
static void test_remote_memory_is_refused(void)
{
    static const struct {
        void (*edit)(struct cm_plan *p);
        const char *why;
    } cases[] = {{edit_place, "operand of rank 3: remote memory"},
                 {edit_wait, "line of rank 3: remote memory"},
                 {edit_near_port, "port inside a node"}};
    static const int32_t node[] = {0, 0, 1, 1};
    struct subject s = {
        .algo = cm_algo_find("hier"),
        .build = {.coll = CM_ALL_REDUCE, .mode = CM_MODE_DIRECT, .n = 4, .node = node}};

    for (size_t k = 0; k < CM_LEN(cases); k++) {
        struct cm_proof proof = {0};

        build_subject(&s);
        cases[k].edit(s.plans[0]);
        CHECK(refused(&s, 2, &proof) && strstr(proof.why, cases[k].why) != NULL, "\"%s\": %s",
              cases[k].why, proof.why);
        free_subject(&s);
    }
}

/* Algorithms that do not know of nodes, in direct mode between nodes: each must be refused. */
static void test_direct_between_nodes_is_refused(void)
{
    static const int32_t node[] = {0, 0, 1, 1, 2};
    struct cm_proof proof = {0};

    for (const struct cm_algo *algo = cm_algos; algo->name != NULL; algo++) {
        for (int coll = 0; coll < CM_NCOLLS; coll++) {
            struct subject s = {
                .algo = algo,
                .build = {.coll = coll, .mode = CM_MODE_DIRECT, .n = 5, .node = node}};

            if (algo->build[coll] == NULL || algo->by_node)
                continue;
            build_subject(&s);
            CHECK(refused(&s, 2, &proof) && strstr(proof.why, "remote memory") != NULL, "%s %s: %s",
                  cm_colls[coll].name, algo->name, proof.why);
            free_subject(&s);
        }
    }
}

static void test_bad_arguments(void)
{
    static const struct cm_verify_args bad[] = {
        {false, 0, 1, NULL},
        {false, 2, 0, NULL},
        {true, 2, 1, NULL} /* alltoall has no in-place form */};
    struct cm_build_args a = {.coll = CM_ALLTOALL, .n = 1};
    struct cm_plan *p = NULL;
    struct cm_proof proof;

    CHECK(cm_plan_build(cm_algo_find("direct"), &a, &p) == CM_OK, "one rank");
    for (size_t k = 0; p != NULL && k < CM_LEN(bad); k++)
        CHECK(cm_verify(&p, 1, &bad[k], &proof) == CM_EINVAL, "case %zu", k);
    cm_plan_free(p);
}

int main(void)
{
    RUN(test_bad_arguments);
    RUN(test_malformed_plans);
    RUN(test_remote_memory_is_refused);
    RUN(test_direct_between_nodes_is_refused);
    return test_end();
}
