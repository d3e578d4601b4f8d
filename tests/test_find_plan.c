/* Rounds of disjoint pairs: every pair once, nobody twice in a round, the same everywhere. */
#include <stdlib.h>
#include <string.h>

#include "common/find_plan.h"
#include "test.h"

static struct cm_find_plan planned(const char *text, int n, int anchor, uint64_t seed)
{
    struct cm_find_choice c;
    struct cm_find_plan p;

    if (!cm_find_parse_pairs(text, &c) || cm_find_plan(&c, n, anchor, seed, &p) != CM_OK)
        abort();
    return p;
}

/* How often each pair meets in the rounds; complains about rounds that do not fit. */
static void count_meetings(const struct cm_find_plan *p, int rounds, int *met)
{
    memset(met, 0, (size_t)p->n * (size_t)p->n * sizeof(*met));
    for (int r = 0; r < rounds; r++)
        for (int u = 0; u < p->n; u++) {
            int other = cm_find_partner(p, r, u);

            if (other < 0)
                continue;
            CHECK(other < p->n && other != u, "n=%d round %d: %d with %d", p->n, r, u, other);
            CHECK(cm_find_partner(p, r, other) == u, "n=%d round %d: %d", p->n, r, u);
            met[u * p->n + other]++;
        }
}

static void test_all_pairs_meet_once(void)
{
    static int met[40 * 40];

    for (int n = 2; n <= 40; n++) {
        struct cm_find_plan p = planned("all", n, -1, 1);
        int byes = 0;

        CHECK(p.rounds == n - 1 + n % 2 && p.spare == 0, "n=%d: %d rounds", n, p.rounds);
        count_meetings(&p, p.rounds, met);
        for (int i = 0; i < n * n; i++)
            CHECK(met[i] == (i / n != i % n), "n=%d: %d and %d meet %d times", n, i / n, i % n,
                  met[i]);
        for (int u = 0; u < n; u++)
            byes += cm_find_partner(&p, 0, u) < 0;
        CHECK(byes == n % 2, "n=%d: %d byes", n, byes);
        cm_find_plan_free(&p);
    }
}

static void test_samples_are_disjoint_and_repeatable(void)
{
    static int met[33 * 33];
    bool differ = false;

    for (int n = 4; n <= 33; n++) {
        struct cm_find_plan p = planned("sample=2", n, -1, 7), q = planned("sample=2", n, -1, 7);
        struct cm_find_plan other = planned("sample=2", n, -1, 8);

        CHECK(p.rounds == 2 && p.spare == (n == 4 ? 1 : 2), "n=%d: %d + %d", n, p.rounds, p.spare);
        count_meetings(&p, p.rounds + p.spare, met);
        for (int u = 0; u < n; u++) {
            int a = cm_find_partner(&p, 0, u);

            CHECK(a == cm_find_partner(&q, 0, u), "n=%d unit %d", n, u);
            differ = differ || a != cm_find_partner(&other, 0, u);
            for (int v = 0; v < n; v++)
                CHECK(met[u * n + v] <= 1 && cm_find_meets(&p, u, v) == (met[u * n + v] == 1),
                      "n=%d: %d and %d", n, u, v);
        }
        cm_find_plan_free(&p);
        cm_find_plan_free(&q);
        cm_find_plan_free(&other);
    }
    CHECK(differ, "the seed changes nothing");
}

static void test_an_anchor_meets_all_others(void)
{
    for (int anchor = 0; anchor < 5; anchor++) {
        struct cm_find_plan p = planned("anchor=x", 5, anchor, 1);

        CHECK(p.rounds == 4, "%d rounds", p.rounds);
        for (int a = 0; a < 5; a++)
            for (int b = 0; b < 5; b++)
                CHECK(cm_find_meets(&p, a, b) == (a != b && (a == anchor || b == anchor)),
                      "anchor %d: %d and %d", anchor, a, b);
        cm_find_plan_free(&p);
    }
}

static void test_default_depends_on_the_number(void)
{
    struct cm_find_plan few = planned(NULL, CM_FIND_FEW, -1, 1);
    struct cm_find_plan many = planned(NULL, CM_FIND_FEW + 1, -1, 1);

    CHECK(few.rounds == CM_FIND_FEW - 1, "%d rounds", few.rounds);
    CHECK(many.rounds == CM_FIND_ROUNDS && many.spare == CM_FIND_SPARE, "%d rounds", many.rounds);
    cm_find_plan_free(&few);
    cm_find_plan_free(&many);
}

static void test_bad_choices_are_refused(void)
{
    static const char *const bad[] = {
        "",          "al",      "all ",   "sample",   "sample=",   "sample=0",
        "sample=-1", "anchor=", "anchor", "sample=x", "sample=2K", "ALL"};
    struct cm_find_choice c = {.rounds = 77};
    struct cm_find_plan p = {.n = 77};

    for (size_t i = 0; i < CM_LEN(bad); i++)
        CHECK(!cm_find_parse_pairs(bad[i], &c) && c.rounds == 77, "'%s'", bad[i]);
    CHECK(cm_find_parse_pairs("sample=8", &c), "sample=8");
    CHECK(cm_find_plan(&c, 8, -1, 1, &p) == CM_EINVAL && p.n == 77, "8 rounds of 8 units");
}

int main(void)
{
    RUN(test_all_pairs_meet_once);
    RUN(test_samples_are_disjoint_and_repeatable);
    RUN(test_an_anchor_meets_all_others);
    RUN(test_default_depends_on_the_number);
    RUN(test_bad_choices_are_refused);
    return test_end();
}
