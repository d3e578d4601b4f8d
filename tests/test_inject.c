/* Fault injection: the grammar, when a fault strikes, and what it does. */
#define _GNU_SOURCE
#include <pthread.h>

#include "capture.h"
#include "common/inject.h"
#include "forked.h"
#include "test.h"

/* Longer than any spec. */
#define TWENTY "aaaaaaaaaaaaaaaaaaaa"
#define LONG_SPEC TWENTY TWENTY TWENTY TWENTY TWENTY TWENTY TWENTY

static void test_good_specs(void)
{
    static const struct {
        const char *text;
        struct cm_inject want;
    } rows[] = {
        {"corrupt", {CM_FAULT_CORRUPT, 0, -1, -1, 0, 0, {-1, -1}, ""}},
        {"corrupt:rank=1", {CM_FAULT_CORRUPT, 1, -1, -1, 0, 0, {-1, -1}, ""}},
        {"corrupt:rank=1,iter=17", {CM_FAULT_CORRUPT, 1, 17, -1, 0, 0, {-1, -1}, ""}},
        {"stall:rank=2,phase=init", {CM_FAULT_STALL, 2, -1, CM_AT_SETUP, 0, 0, {-1, -1}, ""}},
        {"stall:phase=finalize,rank=2",
         {CM_FAULT_STALL, 2, -1, CM_AT_FINALIZE, 0, 0, {-1, -1}, ""}},
        {"delay:us=0", {CM_FAULT_DELAY, 0, -1, -1, 0, 0, {-1, -1}, ""}},
        {"delay:rank=3,us=1000,phase=timed",
         {CM_FAULT_DELAY, 3, -1, CM_AT_TIMED, 1000, 0, {-1, -1}, ""}},
        {"crash:phase=warmup,iter=0", {CM_FAULT_CRASH, 0, 0, CM_AT_WARMUP, 0, 0, {-1, -1}, ""}},
        {"crash:phase=check", {CM_FAULT_CRASH, 0, -1, CM_AT_CHECK, 0, 0, {-1, -1}, ""}},
        {"corrupt:node=1", {CM_FAULT_CORRUPT, 0, -1, -1, 0, 0, {1, -1}, ""}},
        {"stall:link=2-5,iter=3", {CM_FAULT_STALL, 0, 3, -1, 0, 0, {2, 5}, ""}},
        {"bw:node=7,factor=0.5", {CM_FAULT_BW, 0, -1, -1, 0, 0.5, {7, -1}, ""}},
        {"bw:factor=0.25,link=3-0", {CM_FAULT_BW, 0, -1, -1, 0, 0.25, {3, 0}, ""}},
        {"bw:factor=0.25,rank=3", {CM_FAULT_BW, 3, -1, -1, 0, 0.25, {-1, -1}, ""}},
        {"delay:us=9,engine=builtin#2", {CM_FAULT_DELAY, 0, -1, -1, 9, 0, {-1, -1}, "builtin#2"}},
        {NULL, {CM_FAULT_NONE, 0, -1, -1, 0, 0, {-1, -1}, ""}},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        const struct cm_inject *want = &rows[i].want;
        struct cm_inject got;
        enum cm_status st = cm_inject_parse(rows[i].text, 4, &got);

        CHECK(st == CM_OK, "%s: status %d", rows[i].text, st);
        CHECK(got.fault == want->fault && got.rank == want->rank && got.iter == want->iter &&
                  got.phase == want->phase && got.us == want->us && got.factor == want->factor &&
                  got.node[0] == want->node[0] && got.node[1] == want->node[1] &&
                  strcmp(got.engine, want->engine) == 0,
              "%s: fault %d rank %d iter %lld phase %d us %lld", rows[i].text, got.fault, got.rank,
              (long long)got.iter, got.phase, (long long)got.us);
    }
}

static const char *const bad[] = {
    "",
    "corrup",
    "corrupt:",
    "corrupt,rank=1",
    "corrupt:rank",
    "corrupt:rank=",
    "corrupt:rank=-1",
    "corrupt:rank=x",
    "corrupt:rank=4",
    "corrupt:rank=1,",
    "corrupt:,rank=1",
    "corrupt:rank=1,rank=1",
    "corrupt:node=1,rank=1",
    "corrupt:node=1,link=1-2",
    "corrupt:node=x",
    "corrupt:node=-1",
    "corrupt:link=1",
    "corrupt:link=1-1",
    "corrupt:link=1-",
    "corrupt:link=-1",
    "corrupt:link=1-2-3",
    "stall:link=1-2,phase=init",
    "corrupt:factor=0.5",
    "bw:factor=0",
    "bw:factor=1",
    "bw:factor=x",
    "bw:factor=0.5,phase=init",
    "corrupt:phase=init",
    "corrupt:phase=warmup",
    "corrupt:phase=sync",
    "corrupt:phase=done",
    "corrupt:us=5",
    "stall:iter=99999999999",
    "stall:phase=init,iter=3",
    "delay",
    "delay:rank=1",
    "delay:us=4000000000",
    "delay:us=1.5",
    "CRASH",
    "bw:node=1",
    "crash:rank=1:iter=2",
    "delay:us=1,engine=",
    "delay:us=1,engine=a-name-that-is-too-long",
    "stall:engine=mpi,phase=init",
    "none",
    LONG_SPEC,
};

static void test_bad_specs_are_refused(void)
{
    for (size_t i = 0; i < CM_LEN(bad); i++) {
        struct cm_inject f = {.rank = 77};
        struct capture c;
        enum cm_status st;

        capture_begin(&c, STDERR_FILENO);
        st = cm_inject_parse(bad[i], 4, &f);
        capture_end(&c);
        CHECK(st == CM_EINVAL, "%s: status %d", bad[i], st);
        CHECK(f.rank == 77, "%s: out was written", bad[i]);
        CHECK(strncmp(c.text, "--inject", 8) == 0, "%s: %s", bad[i], c.text);
    }
}

static struct cm_inject parsed(const char *text)
{
    struct cm_inject f;

    if (cm_inject_parse(text, 0, &f) != CM_OK)
        abort();
    return f;
}

static void test_an_engine_may_be_named(void)
{
    struct cm_inject any = parsed("delay:us=1"), one = parsed("delay:us=1,engine=mpi");

    CHECK(cm_inject_in(&any, "mpi") && cm_inject_in(&any, NULL), "any engine");
    CHECK(cm_inject_in(&one, "mpi"), "the engine that is named");
    CHECK(!cm_inject_in(&one, "builtin") && !cm_inject_in(&one, NULL), "another engine");
}

static void test_corruption_strikes_where_told(void)
{
    static const struct {
        const char *spec;
        int rank;
        enum cm_phase_name phase;
        int64_t iter;
        bool hit;
    } rows[] = {
        {"corrupt:rank=1", 1, CM_AT_TIMED, 5, true},
        {"corrupt:rank=1", 1, CM_AT_WARMUP, 0, true},
        {"corrupt:rank=1", 1, CM_AT_CHECK, 0, true},
        {"corrupt:rank=1", 1, CM_AT_SETUP, 0, false},
        {"corrupt:rank=1", 0, CM_AT_TIMED, 5, false},
        {"corrupt:rank=1,iter=5", 1, CM_AT_TIMED, 5, true},
        {"corrupt:rank=1,iter=5", 1, CM_AT_TIMED, 4, false},
        {"corrupt:rank=1,phase=check", 1, CM_AT_TIMED, 5, false},
        {"corrupt:rank=1,phase=check", 1, CM_AT_CHECK, 5, true},
        {"stall:rank=1", 1, CM_AT_TIMED, 5, false},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_inject f = parsed(rows[i].spec);
        unsigned char out[8] = {0};
        int changed = 0;

        cm_inject_after(&f, rows[i].rank, rows[i].phase, rows[i].iter, out, sizeof(out));
        for (size_t k = 0; k < sizeof(out); k++)
            changed += __builtin_popcount(out[k]);
        CHECK(changed == (rows[i].hit ? 1 : 0), "row %zu (%s): %d bits", i, rows[i].spec, changed);
        cm_inject_after(&f, rows[i].rank, rows[i].phase, rows[i].iter, NULL, 0);
    }
}

struct stalled {
    struct cm_inject f;
    struct cm_abort abort;
    struct cm_waiter w;
    _Atomic enum cm_status status;
};

static void *stall(void *arg)
{
    struct stalled *s = arg;

    s->status = cm_inject_before(&s->f, &s->w, 0, CM_AT_TIMED, 0);
    return NULL;
}

static void test_a_stall_ends_with_the_abort(void)
{
    struct stalled s = {.f = parsed("stall"), .status = CM_OK};
    pthread_t thread;

    s.w = (struct cm_waiter){.abort = &s.abort, .timeout_ns = 60LL * CM_NS_PER_S};
    CHECK(pthread_create(&thread, NULL, stall, &s) == 0, "no thread");
    cm_abort_raise(&s.abort, CM_ETIMEOUT, 1);
    pthread_join(thread, NULL);
    CHECK(s.status == CM_EABORT, "status %d", s.status);
}

static void test_a_delay_takes_its_time(void)
{
    struct cm_inject f = parsed("delay:us=3000");
    struct cm_abort a = {.status = CM_OK};
    struct cm_waiter w = {.abort = &a};
    int64_t start = cm_now_ns();

    CHECK(cm_inject_before(&f, &w, 0, CM_AT_TIMED, 0) == CM_OK, "delay");
    CHECK(cm_now_ns() - start >= 3000 * CM_NS_PER_US, "%lld ns", (long long)(cm_now_ns() - start));
    start = cm_now_ns();
    CHECK(cm_inject_before(&f, &w, 1, CM_AT_TIMED, 0) == CM_OK, "another rank");
}

static int crash(struct cm_boot *b, void *arg)
{
    struct cm_inject f = parsed("crash");
    struct cm_abort a = {.status = CM_OK};
    struct cm_waiter w = {.abort = &a};

    (void)b;
    (void)arg;
    return cm_inject_before(&f, &w, 0, CM_AT_TIMED, 0) == CM_OK;
}

static void test_a_crash_kills(void)
{
    int status[1] = {0};

    CHECK(forked_run(1, crash, NULL, status), "no process");
    CHECK(WIFSIGNALED(status[0]) && WTERMSIG(status[0]) == 9, "0x%x", (unsigned)status[0]);
}

/* Three nodes of two ranks; a group of all of them, and one without node 2. */
static void test_nodes_and_links(void)
{
    static const int32_t node_of[] = {0, 0, 1, 1, 2, 2}, all[] = {0, 1, 2, 3, 4, 5};
    static const struct {
        const char *text;
        unsigned of_all, of_four; /* ranks that it concerns, a bit each */
    } rows[] = {
        {"stall:node=1", 0x0c, 0x0c},   {"stall:node=2", 0x30, 0x30},
        {"stall:link=0-1", 0x0f, 0x0f}, {"stall:link=2-0", 0x33, 0x00},
        {"stall:rank=3", 0x08, 0x08},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_inject f = parsed(rows[i].text);
        unsigned of_all = 0, of_four = 0;

        for (int r = 0; r < 6; r++) {
            struct cm_inject_place place = {r, all, 6, node_of};

            of_all |= (unsigned)(cm_inject_at(&f, &place).fault == CM_FAULT_STALL) << r;
            place.n = 4;
            of_four |= (unsigned)(cm_inject_at(&f, &place).fault == CM_FAULT_STALL) << r;
            CHECK(cm_inject_at(&f, &place).rank == r, "%s: rank %d", rows[i].text, r);
        }
        CHECK(of_all == rows[i].of_all && of_four == rows[i].of_four, "%s: %#x, of four %#x",
              rows[i].text, of_all, of_four);
    }
}

static void test_nodes_that_are_not_there_are_refused(void)
{
    static const int32_t node_of[] = {0, 4};
    static const char *const texts[] = {"stall:node=1", "stall:link=0-3", "stall:link=5-4"};
    struct cm_inject there = parsed("stall:link=4-0"), any = parsed("stall:rank=1");

    for (size_t i = 0; i < CM_LEN(texts); i++) {
        struct cm_inject f = parsed(texts[i]);

        CHECK(cm_inject_check(&f, texts[i], node_of, 2) == CM_EINVAL, "%s", texts[i]);
    }
    CHECK(cm_inject_check(&there, "4-0", node_of, 2) == CM_OK, "4-0");
    CHECK(cm_inject_check(&any, "rank 1", node_of, 2) == CM_OK, "rank 1");
}

int main(void)
{
    RUN(test_nodes_and_links);
    RUN(test_nodes_that_are_not_there_are_refused);
    RUN(test_good_specs);
    RUN(test_bad_specs_are_refused);
    RUN(test_an_engine_may_be_named);
    RUN(test_corruption_strikes_where_told);
    RUN(test_a_stall_ends_with_the_abort);
    RUN(test_a_delay_takes_its_time);
    RUN(test_a_crash_kills);
    return test_end();
}
