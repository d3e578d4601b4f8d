/*
 * Single accesses: what is wider than 8 bytes can be seen half done, what is
 * not cannot; AddressSanitizer finds those beyond a buffer or a shared variable.
 */
#include "cmsim_test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- LL lines and vectors ------------------------------------------------------------------- */

struct line_args {
    uint32_t *line; /* 16 bytes */
    bool one_flag, vector;
    uint64_t *bad;
};

enum { LINES = 40 };

CM_DEV cm_vec16 ll_read(const uint32_t *line, uint32_t flag, bool one_flag)
{
    cm_ll_half lo, hi;

    do {
        lo = cm_ld_ll(line);
        hi = cm_ld_ll(line + 2);
    } while (lo.flag != flag || (!one_flag && hi.flag != flag));
    return {{lo.data, lo.flag, hi.data, hi.flag}};
}

/* Block 0 writes lines, block 1 reads them; each answers with a flag behind the line. */
CM_KERNEL(k_line, line_args)
{
    uint64_t *done = (uint64_t *)(a.line + 4);

    for (uint32_t i = 1; i <= LINES; i++) {
        if (cm_bid_x() == 0) {
            cm_st_ll(a.line, i, i);
            cm_st_ll(a.line + 2, i, i);
            while (cm_ld_acquire_sys(done) < i)
                continue;
        } else {
            cm_vec16 v = ll_read(a.line, i, a.one_flag);
            if (v.w[0] != i || v.w[2] != i)
                cm_add_relaxed_gpu(a.bad, 1);
            cm_st_release_sys(done, i);
        }
    }
}

/* The writer's words are all alike; a reader may see two values, but not within 8 bytes. */
CM_KERNEL(k_vector, line_args)
{
    for (uint32_t i = 1; i <= LINES; i++) {
        if (cm_bid_x() == 0) {
            cm_st16(a.line, {{i, i, i, i}});
        } else {
            cm_vec16 v = cm_ld16(a.line);
            if (v.w[0] != v.w[1] || v.w[2] != v.w[3])
                cm_add_relaxed_gpu(a.bad, 1000000);
            if (v.w[0] != v.w[2])
                cm_add_relaxed_gpu(a.bad, 1);
        }
        cm_pause_ns(10);
    }
}

static uint64_t torn(const struct line_args &shape, uint64_t seed, unsigned permille)
{
    alignas(16) static uint32_t line[8];
    struct cmsim_options o = seeded(seed);
    struct line_args a = shape;
    uint64_t bad = 0;

    o.tear_permille = permille;
    fresh(o);
    memset(line, 0, sizeof(line));
    a.line = line;
    a.bad = &bad;
    if (shape.vector)
        START(k_vector, a, {2, 1, 1, 0});
    else
        START(k_line, a, {2, 1, 1, 0});
    CHECK(finish() == nullptr, "%s", text(cmsim_error()));
    return bad;
}

static void test_lines_tear_between_8_byte_units_only(void)
{
    static const struct {
        const char *name;
        struct line_args shape;
        bool tears;
    } table[] = {
        {"LL", {nullptr, false, false, nullptr}, false},
        {"LL, one flag looked at", {nullptr, true, false, nullptr}, true},
        {"vector", {nullptr, false, true, nullptr}, true},
    };

    for (const auto &row : table)
        for (unsigned permille = 0; permille <= 500; permille += 500) {
            uint64_t bad = 0;
            if (row.shape.vector && with_tsan)
                continue; /* a race, rightly */
            for (uint64_t seed = 0; seed < 20; seed++)
                bad += torn(row.shape, seed, permille);
            CHECK((bad > 0) == (row.tears && permille > 0), "%s, permille %u: %d torn", row.name,
                  permille, (int)bad);
            CHECK(bad < 1000000, "%s: torn inside of 8 bytes", row.name);
        }
}

/* ---- addresses ------------------------------------------------------------------------------ */

struct beyond_args {
    char *buffer;
    size_t at;
    bool shared;
};

CM_KERNEL(k_beyond, beyond_args)
{
    CM_SHARED(cm_vec16, small);

    if (a.shared)
        (&small)[a.at / sizeof(small)].w[0] = 1;
    else
        cm_st16(a.buffer + a.at, {{1, 2, 3, 4}});
}

/* What a child that runs the kernel writes to stderr, and whether it died. */
static bool dies(const beyond_args &a, char *out, size_t bytes)
{
    int fds[2], status = 0;

    if (pipe(fds) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        START(k_beyond, a, {1, 1, 32, 0});
        _exit(finish() == nullptr ? 0 : 9);
    }
    close(fds[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < bytes && (got = read(fds[0], out + n, bytes - 1 - n)) > 0;)
        n += (size_t)got;
    out[n] = '\0';
    close(fds[0]);
    waitpid(pid, &status, 0);
    return !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 9);
}

static void test_a_store_beyond_the_end_is_found(void)
{
    static const struct {
        size_t at;
        bool shared, dies;
        const char *wants;
    } table[] = {
        {0, false, false, ""},
        {48, false, false, ""},
        {64, false, true, "heap-buffer-overflow"},
        {0, true, false, ""},
        {16, true, true, "use-after-poison"},
    };
    char out[4096];

    if (!with_asan) {
        SKIP("this is for AddressSanitizer");
        return;
    }
    for (const auto &row : table) {
        const beyond_args a = {(char *)aligned_alloc(16, 64), row.at, row.shared};

        fresh(seeded(1));
        bool died = dies(a, out, sizeof(out));
        CHECK(died == row.dies && strstr(out, row.wants) != nullptr, "at %zu: %s", row.at, out);
        free(a.buffer);
    }
}

int main(void)
{
    RUN(test_lines_tear_between_8_byte_units_only);
    RUN(test_a_store_beyond_the_end_is_found);
    return test_end();
}
