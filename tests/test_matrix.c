/* Traffic matrices: the parser, rounding, the generated spread. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/matrix.h"
#include "test.h"

static const char *const good[] = {
    "5", "0 1\n2 3\n", "0 1\n2 3", "\n\n 0\t1 \r\n# note\n2 3 # end\n\n", "1e3 0.5\n1e18 0\n",
};
static const char *const bad[] = {
    "",
    "\n# only a note\n",
    "1 2\n3\n",
    "1 2 3\n4 5 6\n",
    "1\n2\n",
    "1 2\n3 x\n",
    "1 -2\n3 4\n",
    "1 nan\n3 4\n",
    "1 inf\n3 4\n",
    "1 2e18\n3 4\n",
    "1,2\n3,4\n",
    "0x1 2\n3 4\n",
    "11111111111111111111111111111111111111111111111111111111111111111111111111111111",
};

static void test_good_files_parse(void)
{
    for (size_t i = 0; i < CM_LEN(good); i++) {
        struct cm_traffic t = {0};
        enum cm_status st = cm_matrix_parse(good[i], strlen(good[i]), "good", &t);

        CHECK(st == CM_OK && t.dim == (i == 0 ? 1 : 2), "'%s': status %d, dim %d", good[i], st,
              t.dim);
        cm_traffic_free(&t);
    }
}

static void test_bad_files_are_refused(void)
{
    for (size_t i = 0; i < CM_LEN(bad); i++) {
        struct cm_traffic t = {.dim = -7};
        enum cm_status st = cm_matrix_parse(bad[i], strlen(bad[i]), "expected failure", &t);

        CHECK(st == CM_EINVAL && t.dim == -7, "'%s': status %d, dim %d", bad[i], st, t.dim);
    }
}

static void test_a_missing_file_is_refused(void)
{
    struct cm_traffic t = {0};

    CHECK(cm_matrix_read("/nonexistent/matrix.txt", &t) == CM_EINVAL, "it was read");
    CHECK(cm_matrix_read("/", &t) == CM_EINVAL, "a folder was read");
}

static void test_values_are_scaled_and_rounded_down_to_16_bytes(void)
{
    static const char text[] = "0 15.9 16\n17 100 1024\n31 32 1\n";
    static const size_t want[] = {0, 0, 4, 4, 24, 256, 4, 8, 0};
    static const size_t want2[] = {0, 4, 8, 48}; /* upper left 2 x 2, doubled */
    struct cm_traffic t = {0};
    size_t got[9];

    CHECK(cm_matrix_parse(text, sizeof(text) - 1, "text", &t) == CM_OK, "parse");
    CHECK(cm_matrix_of_traffic(&t, 1, 3, 4, got), "too large");
    for (int i = 0; i < 9; i++)
        CHECK(got[i] == want[i], "value %d: %zu, want %zu", i, got[i], want[i]);
    CHECK(cm_matrix_max_sent(got, 3) == 284 && cm_matrix_max_received(got, 3) == 260,
          "sums %zu %zu", cm_matrix_max_sent(got, 3), cm_matrix_max_received(got, 3));
    CHECK(cm_matrix_of_traffic(&t, 2, 2, 4, got), "too large");
    for (int i = 0; i < 4; i++)
        CHECK(got[i] == want2[i], "doubled %d: %zu, want %zu", i, got[i], want2[i]);
    CHECK(!cm_matrix_of_traffic(&t, 1e17, 3, 4, got), "1e20 bytes were accepted");
    cm_traffic_free(&t);
}

static void test_generated_spread_is_balanced(void)
{
    static const double spreads[] = {0, 0.3, 1};

    for (int n = 1; n <= 9; n++)
        for (size_t k = 0; k < CM_LEN(spreads); k++) {
            size_t m[81], block = 1024;

            cm_matrix_spread(block, spreads[k], n, 4, m);
            for (int r = 0; r < n; r++) {
                size_t sent = cm_matrix_sent(m, n, r), received = cm_matrix_received(m, n, r);

                CHECK(sent == received && sent <= block * (size_t)n &&
                          sent + 4 * (size_t)n >= block * (size_t)n,
                      "n=%d spread %g rank %d: sends %zu, receives %zu, block %zu", n, spreads[k],
                      r, sent, received, block);
            }
            CHECK(n == 1 || spreads[k] < 1 || m[0] == 0, "n=%d: %zu elements to itself", n, m[0]);
            CHECK(spreads[k] > 0 || m[0] == block, "n=%d: not even", n);
        }
}

static void test_a_set_keeps_addresses(void)
{
    struct cm_matrix_set s = {.spread = 1, .n = 4};
    const size_t *a = cm_matrix_get(&s, 64, 4), *b = cm_matrix_get(&s, 128, 4);

    CHECK(a != NULL && b != NULL && a != b, "two sizes, one matrix");
    CHECK(cm_matrix_get(&s, 64, 4) == a && cm_matrix_get(&s, 128, 4) == b, "not remembered");
    cm_matrix_set_free(&s);
}

int main(void)
{
    RUN(test_good_files_parse);
    RUN(test_bad_files_are_refused);
    RUN(test_a_missing_file_is_refused);
    RUN(test_values_are_scaled_and_rounded_down_to_16_bytes);
    RUN(test_generated_spread_is_balanced);
    RUN(test_a_set_keeps_addresses);
    return test_end();
}
