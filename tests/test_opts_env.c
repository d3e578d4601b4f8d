/*
 * Options from the environment, and options that speak about ranks: node maps,
 * split groups, roots.
 */
#include <stdlib.h>

#include "common/opts_table.h"
#include "parsed.h"

/* ---- environment ---- */

static void test_environment_is_a_default(void)
{
    setenv("NCCL_ALGO", "Tree", 1);
    setenv("NCCL_TESTS_SPLIT_MASK", "10", 1);
    setenv("COLLMARK_ITERS", "33", 1);
    setenv("COLLMARK_PLAN", "1", 1);
    setenv("NCCL_DEBUG", "", 1); /* empty is unset */
    if (accepted("")) {
        CHECK(strcmp(r.o.engine.algo, "tree") == 0, "algo %s", r.o.engine.algo);
        CHECK(r.o.launch.split == CM_SPLIT_AND && r.o.launch.split_value == 16, "split %d value %d",
              (int)r.o.launch.split, (int)r.o.launch.split_value);
        CHECK(r.o.run.iters == 33 && r.o.report.plan, "-n %d", r.o.run.iters);
        CHECK(r.o.report.debug == NULL, "debug %s", r.o.report.debug);
        CHECK(r.o.from_env != NULL && strcmp(r.o.from_env[0], "NCCL_TESTS_SPLIT_MASK=10") == 0 &&
                  strcmp(r.o.from_env[1], "COLLMARK_ITERS=33") == 0,
              "wrong list of variables");
    }
    cm_opts_free(&r.o);
    setenv("COLLMARK_ALGO", "ring", 1);
    setenv("NCCL_ALGO", "^NVLS", 1); /* unused, so harmless */
    if (accepted("-n|5"))
        CHECK(strcmp(r.o.engine.algo, "ring") == 0 && r.o.run.iters == 5, "algo %s -n %d",
              r.o.engine.algo, r.o.run.iters);
    cm_opts_free(&r.o);
    unsetenv("COLLMARK_ALGO");
    if (accepted("--algo|direct"))
        CHECK(strcmp(r.o.engine.algo, "direct") == 0, "algo %s", r.o.engine.algo);
    cm_opts_free(&r.o);
    expect_refused("", CM_EINVAL, "NCCL_ALGO", "'^NVLS'");
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_TESTS_SPLIT_MASK");
    unsetenv("COLLMARK_ITERS");
    unsetenv("COLLMARK_PLAN");
    unsetenv("NCCL_DEBUG");
    setenv("NCCL_P2P_DISABLE", "1", 1);
    setenv("NCCL_TESTS_DEVICE", "2", 1);
    if (accepted(""))
        CHECK(r.o.engine.p2p_disable && r.o.launch.device == 2, "--device %d", r.o.launch.device);
    cm_opts_free(&r.o);
    unsetenv("NCCL_P2P_DISABLE");
    unsetenv("NCCL_TESTS_DEVICE");
}

static void test_misspelt_names_are_refused(void)
{
    static const char *const names[] = {"COLLMARK_MIN_BYTES", "COLLMARK_", "COLLMARK_HELP",
                                        "COLLMARK_iters", "COLLMARK_ITERSX"};

    for (size_t i = 0; i < CM_LEN(names); i++) {
        setenv(names[i], "8", 1);
        expect_refused("-n|3", CM_EINVAL, names[i], "no option");
        setenv(names[i], "", 1);
        accepted("-n|3");
        cm_opts_free(&r.o);
        unsetenv(names[i]);
    }
}

static void test_split_variables_exclude_each_other(void)
{
    setenv("NCCL_TESTS_SPLIT", "MOD 2", 1);
    setenv("NCCL_TESTS_SPLIT_MASK", "1", 1);
    expect_refused("", CM_EINVAL, "NCCL_TESTS_SPLIT 'MOD 2'", "NCCL_TESTS_SPLIT_MASK '1'");
    accepted("--split|div:2");
    cm_opts_free(&r.o);
    unsetenv("NCCL_TESTS_SPLIT");
    setenv("NCCL_TESTS_SPLIT_MASK", "zz", 1);
    expect_refused("", CM_EINVAL, "NCCL_TESTS_SPLIT_MASK 'zz'", "hexadecimal");
    unsetenv("NCCL_TESTS_SPLIT_MASK");
}

static void test_environment_is_as_strict(void)
{
    static const struct {
        const char *name, *value;
    } cases[] = {
        {"NCCL_PROTO", "LL128"},       {"NCCL_BUFFSIZE", "-1"},
        {"NCCL_TESTS_SPLIT", "XOR 2"}, {"NCCL_TESTS_SPLIT_MASK", "0xzz"},
        {"NCCL_TESTS_MIN_BW", "fast"}, {"NCCL_TESTS_ALLTOALLV_SPREAD", "2"},
        {"COLLMARK_CTA_POLICY", "1"},  {"COLLMARK_MINBYTES", "8 B"},
        {"COLLMARK_PLAN", "yes"},      {"NCCL_P2P_DISABLE", "yes"},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        setenv(cases[i].name, cases[i].value, 1);
        expect_refused("", CM_EINVAL, cases[i].name, cases[i].value);
        unsetenv(cases[i].name);
    }
    setenv("COLLMARK_STEPBYTES", "4K", 1);
    if (accepted("-f|2"))
        CHECK(r.o.sweep.step_factor == 2, "-f %d", r.o.sweep.step_factor);
    cm_opts_free(&r.o);
    unsetenv("COLLMARK_STEPBYTES");
    setenv("COLLMARK_STEPFACTOR", "2", 1);
    if (accepted("-i|4K"))
        CHECK(r.o.sweep.step_factor == 1, "-f %d", r.o.sweep.step_factor);
    cm_opts_free(&r.o);
    unsetenv("COLLMARK_STEPFACTOR");
}

/* ---- ranks ---- */

static void test_split_forms(void)
{
    static const struct {
        const char *text;
        bool valid;
        enum cm_split_op op;
        uint64_t value;
    } cases[] = {
        {"mod:2", true, CM_SPLIT_MOD, 2},
        {"MOD 2", true, CM_SPLIT_MOD, 2},
        {"%2", true, CM_SPLIT_MOD, 2},
        {"% 2", true, CM_SPLIT_MOD, 2},
        {"and:0x1f", true, CM_SPLIT_AND, 31},
        {"&0X1F", true, CM_SPLIT_AND, 31},
        {"AND 0b101", true, CM_SPLIT_AND, 5},
        {"mask:0x3", true, CM_SPLIT_AND, 3},
        {"|3", true, CM_SPLIT_OR, 3},
        {"or:0", true, CM_SPLIT_OR, 0},
        {"/4", true, CM_SPLIT_DIV, 4},
        {"div:010", true, CM_SPLIT_DIV, 10},
        {"", false, CM_SPLIT_NONE, 0},
        {"mod", false, CM_SPLIT_NONE, 0},
        {"mod:", false, CM_SPLIT_NONE, 0},
        {"mod:0", false, CM_SPLIT_NONE, 0},
        {"/0", false, CM_SPLIT_NONE, 0},
        {"mod:2x", false, CM_SPLIT_NONE, 0},
        {"mod:-2", false, CM_SPLIT_NONE, 0},
        {"xor:2", false, CM_SPLIT_NONE, 0},
        {"and:0x", false, CM_SPLIT_NONE, 0},
        {"mod: 2", false, CM_SPLIT_NONE, 0},
        {"mod:99999999999999999999", false, CM_SPLIT_NONE, 0},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        enum cm_split_op op = CM_SPLIT_NONE;
        uint64_t value = 0;
        bool valid = cm_parse_split(cases[i].text, &op, &value);

        CHECK(valid == cases[i].valid && op == cases[i].op && value == cases[i].value,
              "'%s': %d op %d value %llu", cases[i].text, valid, (int)op,
              (unsigned long long)value);
    }
}

static void test_split_colours(void)
{
    static const struct {
        enum cm_split_op op;
        uint64_t value;
        int rank;
        uint64_t colour;
    } cases[] = {
        {CM_SPLIT_NONE, 0, 5, 0}, {CM_SPLIT_AND, 3, 6, 2}, {CM_SPLIT_OR, 1, 6, 7},
        {CM_SPLIT_MOD, 4, 6, 2},  {CM_SPLIT_DIV, 4, 6, 1},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        struct cm_opts_launch o = {.split = cases[i].op, .split_value = cases[i].value};

        CHECK(cm_split_colour(&o, cases[i].rank) == cases[i].colour, "case %zu", i);
    }
}

static void test_node_maps(void)
{
    static const struct {
        const char *text;
        int nranks;
        bool valid;
    } cases[] = {
        {"0,0,1,1", 4, true}, {"0", 1, true},     {"4095,0", 2, true}, {"0,0", 3, false},
        {"0,0,1", 2, false},  {"", 1, false},     {"0,", 2, false},    {",0", 2, false},
        {"0, 1", 2, false},   {"-1,0", 2, false}, {"a,b", 2, false},   {"0;1", 2, false},
        {"4096", 1, false},
    };
    int32_t node[4] = {9, 9, 9, 9};

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        bool valid = cm_parse_node_map(cases[i].text, cases[i].nranks, node);

        CHECK(valid == cases[i].valid, "'%s' for %d ranks: %d", cases[i].text, cases[i].nranks,
              valid);
    }
    CHECK(cm_parse_node_map("0,0,1,2", 4, node) && node[0] == 0 && node[1] == 0 && node[2] == 1 &&
              node[3] == 2,
          "%d,%d,%d,%d", node[0], node[1], node[2], node[3]);
}

static void test_checks_that_need_ranks(void)
{
    static const struct {
        const char *line;
        int nranks;
        enum cm_status status;
    } cases[] = {
        {"-r|3", 4, CM_OK},
        {"-r|4", 4, CM_EINVAL},
        {"-r|all", 1, CM_OK},
        {"-r|1|--split|mod:2", 4, CM_OK},
        {"-r|2|--split|mod:2", 4, CM_EINVAL}, /* of a group of two */
        {"-r|2|--split|div:4", 6, CM_EINVAL}, /* the second group has two */
        {"--node-map|0,0,1", 3, CM_OK},
        {"--node-map|0,0,1", 4, CM_EINVAL},
    };

    for (size_t i = 0; i < CM_LEN(cases); i++) {
        enum cm_status st;

        if (!accepted(cases[i].line))
            continue;
        capture_begin(&r.err, STDERR_FILENO);
        st = cm_opts_check_ranks(&r.o, cases[i].nranks);
        capture_end(&r.err);
        CHECK(st == cases[i].status, "'%s' with %d ranks: status %d", cases[i].line,
              cases[i].nranks, (int)st);
        CHECK(lines_of(r.err.text) == (st != CM_OK), "'%s': '%s'", cases[i].line, r.err.text);
    }
}

int main(void)
{
    RUN(test_environment_is_a_default);
    RUN(test_environment_is_as_strict);
    RUN(test_misspelt_names_are_refused);
    RUN(test_split_variables_exclude_each_other);
    RUN(test_split_forms);
    RUN(test_split_colours);
    RUN(test_node_maps);
    RUN(test_checks_that_need_ranks);
    return test_end();
}
