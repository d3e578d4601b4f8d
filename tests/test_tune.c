/* The tuning table: grammar, first match, refusals; and the chunk arithmetic below it. */
#include <stdlib.h>
#include <string.h>

#include "engine/algo.h"
#include "engine/span.h"
#include "engine/tune.h"
#include "test.h"

static void check_shipped(const char *text)
{
    static const size_t bytes[] = {0, 1, 8, 2048, 2049, 1 << 20, (size_t)1 << 40};
    struct cm_tune *t = NULL;

    CHECK(cm_tune_parse(text, "shipped", &t) == CM_OK, "shipped table");
    for (int coll = 0; t != NULL && coll < CM_NCOLLS; coll++) {
        for (int n = 1; n <= 64; n++) {
            for (size_t k = 0; k < CM_LEN(bytes); k++) {
                int nodes = 1 + (int)k * (n - 1) / (int)(CM_LEN(bytes) - 1);
                struct cm_choice c;
                const struct cm_algo *algo;
                bool found = cm_tune_find(t, (enum cm_coll)coll, n, nodes, bytes[k], &c);

                CHECK(found, "%s n=%d nodes=%d bytes=%zu", cm_colls[coll].name, n, nodes, bytes[k]);
                algo = found ? cm_algo_find(c.algo) : NULL;
                CHECK(algo != NULL && algo->build[coll] != NULL, "%s by %s", cm_colls[coll].name,
                      found ? c.algo : "?");
            }
        }
    }
    cm_tune_free(t);
}

static void test_default_covers_everything(void)
{
    check_shipped(cm_tune_default);
    check_shipped(cm_tune_gpu);
}

static void test_first_match_wins(void)
{
    static const char text[] = "# comment\n"
                               "all_reduce 4 * 1K-2K ring copy simple 2 64K # four ranks\n"
                               "\n"
                               "* 2-8 1 0-4K tree copy ll 1 -\n"
                               "* * 2-3 * recdbl copy simple 1 -\n"
                               "* * * * direct direct simple 1 -";
    static const struct {
        enum cm_coll coll;
        int n, nodes;
        size_t bytes;
        const char *algo;
        size_t chunk;
    } rows[] = {
        {CM_ALL_REDUCE, 4, 1, 1024, "ring", 65536}, {CM_ALL_REDUCE, 4, 4, 2048, "ring", 65536},
        {CM_ALL_REDUCE, 4, 1, 1023, "tree", 0},     {CM_BROADCAST, 4, 1, 1024, "tree", 0},
        {CM_BROADCAST, 4, 2, 1024, "recdbl", 0},    {CM_BROADCAST, 4, 4, 1024, "direct", 0},
        {CM_ALL_REDUCE, 9, 1, 1024, "direct", 0},   {CM_REDUCE, 8, 1, 4097, "direct", 0}};
    struct cm_tune *t = NULL;

    CHECK(cm_tune_parse(text, "text", &t) == CM_OK, "parse");
    for (size_t k = 0; t != NULL && k < CM_LEN(rows); k++) {
        struct cm_choice c = {0};

        CHECK(cm_tune_find(t, rows[k].coll, rows[k].n, rows[k].nodes, rows[k].bytes, &c), "row %zu",
              k);
        CHECK(c.algo != NULL && strcmp(c.algo, rows[k].algo) == 0, "row %zu: %s", k, c.algo);
        CHECK(c.chunk == rows[k].chunk, "row %zu: chunk %zu", k, c.chunk);
    }
    cm_tune_free(t);
}

/* Which rules may be taken: none behind one for all sizes, or about other ranks or nodes. */
static void test_rules_that_apply(void)
{
    static const char text[] = "all_reduce 4 2 0-1K ring copy simple 1 -\n"
                               "all_reduce 4 1 0-1K tree copy simple 1 -\n"
                               "broadcast * * * tree copy simple 1 -\n"
                               "* 2- 2- * direct copy simple 1 -\n"
                               "* * * * oneshot copy simple 1 -\n";
    static const struct {
        enum cm_coll coll;
        int n, nodes;
        const char *algos;
    } rows[] = {{CM_ALL_REDUCE, 4, 2, "ring direct "},
                {CM_ALL_REDUCE, 4, 1, "tree oneshot "},
                {CM_ALL_REDUCE, 3, 3, "direct "},
                {CM_BROADCAST, 4, 1, "tree "}};
    struct cm_tune *t = NULL;

    CHECK(cm_tune_parse(text, "text", &t) == CM_OK, "parse");
    for (size_t k = 0; t != NULL && k < CM_LEN(rows); k++) {
        struct cm_choice c;
        char got[64] = "";
        int at = 0;

        while (cm_tune_next(t, rows[k].coll, rows[k].n, rows[k].nodes, &at, &c)) {
            strncat(got, c.algo, sizeof(got) - strlen(got) - 2);
            strcat(got, " ");
        }
        CHECK(strcmp(got, rows[k].algos) == 0, "row %zu: %s", k, got);
    }
    cm_tune_free(t);
}

static void test_bad_rules_are_refused(void)
{
    static const char *const bad[] = {
        "all_reduce",
        "all_reduce 4 1 1K ring copy simple 1",
        "all_reduce 4 1 1K ring copy simple 1 - extra",
        "nonsense 4 1 1K ring copy simple 1 -",
        "all_reduce 4 y 1K ring copy simple 1 -",
        "all_reduce 4 1K ring copy simple 1 -",
        "all_reduce x 1 1K ring copy simple 1 -",
        "all_reduce 4-2 1 1K ring copy simple 1 -",
        "all_reduce 4 1 2K-1K ring copy simple 1 -",
        "all_reduce 4 1 1K rings copy simple 1 -",
        "all_reduce 4 1 1K ring push simple 1 -",
        "all_reduce 4 1 1K ring copy ll128 1 -",
        "all_reduce 4 1 1K ring copy simple 0 -",
        "all_reduce 4 1 1K ring copy simple 1 x",
        "all_reduce 4 1 1K ring copy simple 1 255",
        "all_reduce 4 1 1K ring copy simple 1 300",
        "all_reduce 4 1 1K ring copy simple 1 5M",
        "broadcast 4 1 1K recdbl copy simple 1 -",
    };

    for (size_t k = 0; k < CM_LEN(bad); k++) {
        struct cm_tune *t = NULL;

        CHECK(cm_tune_parse(bad[k], "bad", &t) == CM_EINVAL, "'%s'", bad[k]);
        CHECK(t == NULL, "'%s': out was written", bad[k]);
    }
}

/* A comment may be of any length; the largest chunk is what slots must hold. */
static void test_comments_and_chunks(void)
{
    char text[1024], rule[] = "all_reduce * * * ring copy simple 1 64K # ";
    struct cm_tune *t = NULL;

    memset(text, 'x', sizeof(text));
    memcpy(text, rule, sizeof(rule) - 1);
    text[sizeof(text) - 1] = '\0';
    CHECK(cm_tune_parse(text, "text", &t) == CM_OK, "a long comment");
    CHECK(t != NULL && cm_tune_most_chunk(t) == 64 << 10, "largest chunk");
    cm_tune_free(t);
    t = NULL;
    CHECK(cm_tune_parse("# nothing\n", "text", &t) == CM_OK, "no rules");
    CHECK(t != NULL && cm_tune_most_chunk(t) == 0, "no chunk");
    cm_tune_free(t);
}

static void check_cover(size_t len, int parts, size_t es)
{
    size_t at = 0, first = cm_share(len, 0, parts, es).len;

    for (int i = 0; i < parts; i++) {
        struct cm_span s = cm_share(len, i, parts, es);

        CHECK(s.at == at && s.len <= first, "len %zu part %d/%d es %zu", len, i, parts, es);
        at += s.len;
    }
    CHECK(at == len, "len %zu parts %d es %zu: %zu", len, parts, es, at);
}

/* Pieces and shares cover a block once, in order, the first being the longest. */
static void test_shares_cover(void)
{
    static const size_t lens[] = {0, 1, 2, 7, 64, 100, 1000, 4099, 65536, 1000003};

    for (size_t k = 0; k < CM_LEN(lens); k++)
        for (int parts = 1; parts <= 17; parts++)
            for (size_t es = 1; es <= 8; es *= 2)
                check_cover(lens[k], parts, es);
}

static void test_matrix_blocks_are_packed(void)
{
    static const size_t m[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct cm_extent e = {.n = 3, .pieces = 1, .esize = 4, .matrix = m};
    struct cm_span s = cm_chunk_span(&e, CM_IN, 1, 2);

    CHECK(s.at == 9 && s.len == 6, "row 1 block 2: %zu+%zu", s.at, s.len);
    s = cm_chunk_span(&e, CM_OUT, 1, 2);
    CHECK(s.at == 7 && s.len == 8, "column 1 block 2: %zu+%zu", s.at, s.len);
    CHECK(cm_longest_chunk(&e) == 9, "longest");
    CHECK(cm_space_elems(&e, CM_OUT, 2, 3) == 18, "column sum");
}

int main(void)
{
    RUN(test_default_covers_everything);
    RUN(test_first_match_wins);
    RUN(test_rules_that_apply);
    RUN(test_bad_rules_are_refused);
    RUN(test_comments_and_chunks);
    RUN(test_shares_cover);
    RUN(test_matrix_blocks_are_packed);
    return test_end();
}
