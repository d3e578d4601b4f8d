/*
 * The engine against the definition: every algorithm, mode and protocol, odd
 * counts, 1 to 9 ranks, in and out of place, as threads, as processes and
 * mixed. Ranks rewrite their buffers as soon as an operation returns and start
 * the next without a barrier, so races between operations show as wrong data.
 */
#include "exec_run.h"

/* ThreadSanitizer is twenty times slower, and four ranks show every race that nine do. */
static bool thread_sanitizer(void)
{
    const char *san = getenv("SAN");

    return san != NULL && strstr(san, "thread") != NULL;
}

/* All forms of forcing one algorithm. (By node, here with one node, they are "direct".) */
static const struct cm_force forms[] = {
    {NULL, CM_MODE_COPY, CM_PROTO_SIMPLE, 0, 0},    {NULL, CM_MODE_COPY, CM_PROTO_LL, 0, 256},
    {NULL, CM_MODE_COPY, CM_PROTO_SIMPLE, 4, 1024}, {NULL, CM_MODE_DIRECT, CM_PROTO_SIMPLE, 0, 0},
    {NULL, CM_MODE_DIRECT, CM_PROTO_AUTO, 2, 0},    {NULL, -1, CM_PROTO_AUTO, 0, 0}};

static void test_forms(int first, int last, int procs)
{
    for (const struct cm_algo *algo = cm_algos; algo->name != NULL; algo++) {
        for (size_t k = 0; !algo->by_node && k < CM_LEN(forms); k++) {
            for (int n = first; n <= last; n++) {
                struct config cfg = {.n = n, .procs = procs < n ? procs : n, .force = forms[k]};
                int failures;

                cfg.force.algo = algo->name;
                failures = run_config(&cfg);
                CHECK(failures == 0, "%s form %zu n=%d procs=%d: %d failures", algo->name, k, n,
                      procs, failures);
            }
        }
    }
}

static void test_threads(void)
{
    test_forms(1, thread_sanitizer() ? 4 : MAX_N, 1);
}

static void test_processes(void)
{
    test_forms(2, 3, MAX_N);
}

static void test_mixed(void)
{
    if (thread_sanitizer()) {
        SKIP("ThreadSanitizer does not see what orders threads through another process");
        return;
    }
    test_forms(5, 5, 2);
}

static void test_automatic_choice(void)
{
    for (int n = 1; n <= (thread_sanitizer() ? 4 : MAX_N); n++) {
        struct config cfg = {.n = n, .procs = 1, .force = {.mode = -1}};

        CHECK(run_config(&cfg) == 0, "n=%d", n);
    }
}

/* Long messages: several passes, non-temporal stores, shares and pieces with ragged ends. */
static void test_long_messages(void)
{
    static const struct cm_force ways[] = {{NULL, -1, CM_PROTO_AUTO, 0, 0},
                                           {"direct", CM_MODE_DIRECT, CM_PROTO_AUTO, 4, 0},
                                           {"ring", CM_MODE_COPY, CM_PROTO_SIMPLE, 2, 0},
                                           {"tree", CM_MODE_COPY, CM_PROTO_LL, 0, 0}};

    for (size_t k = 0; k < CM_LEN(ways); k++) {
        struct config cfg = {.n = 3, .procs = 1, .force = ways[k], .lengthy = true};

        CHECK(run_config(&cfg) == 0, "way %zu", k);
    }
}

static void test_types_and_ops(void)
{
    static const int sizes[] = {1, 2, 3, 5, 8};

    for (size_t k = 0; k < (thread_sanitizer() ? 3 : CM_LEN(sizes)); k++) {
        struct config cfg = {.n = sizes[k], .procs = 1, .force = {.mode = -1}, .all_types = true};

        CHECK(run_config(&cfg) == 0, "n=%d", cfg.n);
        cfg.force = (struct cm_force){.algo = "ring", .mode = CM_MODE_COPY};
        CHECK(run_config(&cfg) == 0, "ring copy n=%d", cfg.n);
        cfg.force = (struct cm_force){.algo = "tree", .mode = CM_MODE_DIRECT};
        CHECK(run_config(&cfg) == 0, "tree direct n=%d", cfg.n);
    }
}

/* Nodes: interleaved, uneven, even, one rank each. */
static const int32_t maps[][6] = {
    {0, 1, 0, 2, 1, 0}, {1, 1, 0, 0, 0, 0}, {0, 0, 1, 1, 2, 2}, {0, 1, 2, 3, 4, 5}};

/* One process where ThreadSanitizer watches: it does not see what another one orders. */
static void run_on(const struct cm_algo *algo, int map, int mode)
{
    struct config cfg = {.n = 6,
                         .procs = thread_sanitizer() ? 1 : 2,
                         .force = {.algo = algo->name, .mode = mode},
                         .node = maps[map]};

    CHECK(run_config(&cfg) == 0, "%s map %d mode %d", algo->name, map, mode);
}

/* Those that go by the map in both modes; the others take their ring order from it. */
static void test_several_nodes(void)
{
    for (const struct cm_algo *algo = cm_algos; algo->name != NULL; algo++) {
        if (!algo->by_node)
            run_on(algo, 0, -1);
        for (int k = 0; algo->by_node && k < (int)CM_LEN(maps); k++) {
            run_on(algo, k, CM_MODE_COPY);
            run_on(algo, k, CM_MODE_DIRECT);
        }
    }
}

/* Chunks longer than a slot, so that mixed plans run in passes; several channels; LL in ports. */
static void test_passes_on_nodes(void)
{
    static const struct cm_force ways[] = {{NULL, -1, CM_PROTO_AUTO, 0, 0},
                                           {"hier", CM_MODE_DIRECT, CM_PROTO_SIMPLE, 4, 1024},
                                           {"hierdbl", -1, CM_PROTO_LL, 2, 512}};
    static const int32_t small[] = {0, 1, 0};
    struct config cfg = {.n = 3, .procs = 1, .force = ways[0], .lengthy = true, .node = small};

    CHECK(run_config(&cfg) == 0, "long messages");
    for (size_t k = 0; k < CM_LEN(ways); k++) {
        cfg = (struct config){.n = 6, .procs = 1, .force = ways[k], .node = maps[k % 2]};
        CHECK(run_config(&cfg) == 0, "way %zu", k);
    }
}

/* Every type and operation through the mixed form. */
static void test_types_on_nodes(void)
{
    struct config cfg = {.n = 5,
                         .procs = 1,
                         .force = {.algo = "hier", .mode = CM_MODE_DIRECT},
                         .all_types = true,
                         .node = maps[0]};

    CHECK(run_config(&cfg) == 0, "hier");
    cfg.force.algo = "hierdbl";
    CHECK(run_config(&cfg) == 0, "hierdbl");
}

int main(void)
{
    RUN(test_automatic_choice);
    RUN(test_long_messages);
    RUN(test_types_and_ops);
    RUN(test_several_nodes);
    RUN(test_passes_on_nodes);
    RUN(test_types_on_nodes);
    RUN(test_threads);
    RUN(test_processes);
    RUN(test_mixed);
    return test_end();
}
