/* Caches line by line: lines that are visited, and pages that are really stored and loaded. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cache.h"
#include "common/measure.h"
#include "test.h"

enum { PAGES = 4, BYTES = PAGES * CM_PAGE };

/* ---- lines ---- */

struct visits {
    unsigned char *buffer;
    size_t bytes, n;
    int wrong;
    uintptr_t last; /* line before */
};

static void note_visit(unsigned char *at, void *arg)
{
    struct visits *v = arg;
    uintptr_t line = (uintptr_t)at / CM_CACHE_LINE;

    v->wrong += at < v->buffer || at >= v->buffer + v->bytes;
    v->wrong += v->n > 0 && line != v->last + 1;
    v->wrong += at != v->buffer && (uintptr_t)at % CM_CACHE_LINE != 0;
    v->last = line;
    v->n++;
}

static void test_every_line_is_visited_once(void)
{
    static const size_t bytes[] = {0, 1, 2, 63, 64, 65, 127, 128, 129, 1000, 4096};
    static _Alignas(CM_CACHE_LINE) unsigned char room[8192];

    for (size_t shift = 0; shift < 2 * CM_CACHE_LINE; shift += 7) {
        for (size_t i = 0; i < CM_LEN(bytes); i++) {
            struct visits v = {.buffer = room + shift, .bytes = bytes[i]};
            size_t first = shift / CM_CACHE_LINE, end = (shift + bytes[i] - 1) / CM_CACHE_LINE;

            cm_lines_visit(v.buffer, v.bytes, note_visit, &v);
            CHECK(v.n == (bytes[i] == 0 ? 0 : end - first + 1) && v.wrong == 0,
                  "%zu bytes from %zu: %zu visits, %d wrong", bytes[i], shift, v.n, v.wrong);
        }
    }
}

#if defined(__x86_64__) || defined(__aarch64__)
static const bool knows_flushing = true;
#else
static const bool knows_flushing = false;
#endif

static _Atomic size_t flushed;

static void count_flush(unsigned char *at, void *arg)
{
    (void)at;
    (void)arg;
    flushed++;
}

static const struct cm_flusher counting = {"counting", count_flush};

static void test_flush_goes_over_all_lines(void)
{
    unsigned char *p = aligned_alloc(CM_PAGE, BYTES);
    const struct cm_flusher *f = cm_flusher_find();

    memset(p, 5, BYTES);
    flushed = 0;
    cm_lines_flush(&counting, p, BYTES);
    CHECK(flushed == BYTES / CM_CACHE_LINE, "%zu lines", flushed);
    CHECK(f != NULL || !knows_flushing, "no flusher");
    if (f != NULL)
        cm_lines_flush(f, p + 1, BYTES - 2);
    for (size_t i = 0; i < BYTES; i++)
        CHECK(p[i] == 5, "byte %zu is %d", i, p[i]);
    free(p);
}

static void test_what_is_streamed_exceeds_the_caches(void)
{
    CHECK(cm_cache_beyond() > cm_cache_largest() && cm_cache_beyond() >= 1 << 20, "%zu of %zu",
          cm_cache_beyond(), cm_cache_largest());
}

/* ---- pages: the first access to each is caught ---- */

enum access { LOADED = 1, STORED = 2 };

static struct watched {
    unsigned char *at; /* BYTES, PROT_NONE at first */
    int seen[PAGES];
} watched[2];

/* A load makes the page readable, so a store to it shows as well. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    unsigned char *at = info->si_addr;

    (void)number;
    (void)context;
    for (size_t i = 0; i < CM_LEN(watched); i++) {
        struct watched *w = &watched[i];
        size_t page = (size_t)(at - w->at) / CM_PAGE;
        bool first;

        if (w->at == NULL || at < w->at || at >= w->at + BYTES)
            continue;
        first = w->seen[page] == 0;
        w->seen[page] |= first ? LOADED : STORED;
        mprotect(w->at + page * CM_PAGE, CM_PAGE, first ? PROT_READ : PROT_READ | PROT_WRITE);
        return;
    }
    abort();
}

static void watch(void)
{
    struct sigaction on = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    sigaction(SIGSEGV, &on, NULL);
    for (size_t i = 0; i < CM_LEN(watched); i++) {
        unsigned char *p =
            mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
            abort();
        memset(p, 7, BYTES);
        mprotect(p, BYTES, PROT_NONE);
        watched[i] = (struct watched){.at = p};
    }
}

static void unwatch(void)
{
    for (size_t i = 0; i < CM_LEN(watched); i++) {
        munmap(watched[i].at, BYTES);
        watched[i].at = NULL;
    }
    signal(SIGSEGV, SIG_DFL);
}

static bool all_pages(const struct watched *w, int want)
{
    for (int p = 0; p < PAGES; p++)
        if (w->seen[p] != want)
            return false;
    return true;
}

/* What --cache does to the buffers of one rank of two. */
static void test_buffers_are_really_touched(void)
{
    static const struct {
        enum cm_coll coll;
        int rank;
        enum cm_cache_mode mode;
        int in, out; /* enum access of all pages */
    } rows[] = {
        {CM_ALL_REDUCE, 0, CM_CACHE_TOUCHED, LOADED | STORED, LOADED},
        {CM_BROADCAST, 0, CM_CACHE_TOUCHED, LOADED | STORED, LOADED},
        {CM_BROADCAST, 1, CM_CACHE_TOUCHED, 0, LOADED},       /* not the root: has no input */
        {CM_REDUCE, 1, CM_CACHE_TOUCHED, LOADED | STORED, 0}, /* and no result */
        {CM_ALL_REDUCE, 0, CM_CACHE_COLD, 0, 0}, /* flushing by the double accesses nothing */
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        static struct cm_meter m;
        struct cm_rank r = {.group_rank = rows[i].rank, .group_n = 2};
        struct cm_cache c = {.mode = rows[i].mode, .flusher = &counting};
        struct cm_trial t = {.op = {.coll = rows[i].coll, .dtype = CM_FLOAT},
                             .send = BYTES / sizeof(float),
                             .recv = BYTES / sizeof(float)};

        watch();
        m = (struct cm_meter){.rank = &r, .cache = &c};
        t.in = watched[0].at;
        t.out = watched[1].at;
        flushed = 0;
        CHECK(cm_cache_host(&m, &t) == CM_OK, "row %zu", i);
        CHECK(all_pages(&watched[0], rows[i].in) && all_pages(&watched[1], rows[i].out),
              "row %zu: in %d, out %d", i, watched[0].seen[0], watched[1].seen[0]);
        CHECK(flushed == (rows[i].mode == CM_CACHE_COLD ? 2 * BYTES / CM_CACHE_LINE : 0),
              "row %zu: %zu lines flushed", i, flushed);
        unwatch();
    }
}

static void test_without_a_flusher_a_buffer_is_written(void)
{
    static struct cm_meter m;
    struct cm_rank r = {.group_rank = 0, .group_n = 2};
    struct cm_cache c = {.mode = CM_CACHE_COLD};
    struct cm_trial t = {.op = {.coll = CM_ALL_REDUCE, .dtype = CM_FLOAT}, .send = 1, .recv = 1};

    watch();
    c.stream = watched[0].at;
    c.stream_bytes = BYTES;
    m = (struct cm_meter){.rank = &r, .cache = &c};
    CHECK(cm_cache_host(&m, &t) == CM_OK, "failed");
    CHECK(all_pages(&watched[0], LOADED | STORED), "page 0: %d", watched[0].seen[0]);
    unwatch();
}

int main(void)
{
    RUN(test_every_line_is_visited_once);
    RUN(test_flush_goes_over_all_lines);
    RUN(test_what_is_streamed_exceeds_the_caches);
    RUN(test_buffers_are_really_touched);
    RUN(test_without_a_flusher_a_buffer_is_written);
    return test_end();
}
