/*
 * The wires' segments: shared by processes, refused to strangers, dead
 * processes noticed, too much memory refused without a signal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "capture.h"
#include "forked.h"
#include "test.h"
#include "transport/wire.h"

/* The sanitizers' own address space breaks limits on it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { HAS_SANITIZER = 1 };
#else
enum { HAS_SANITIZER = 0 };
#endif

enum { ARENA = 64 << 10 };
static const int64_t long_ns = 10LL * CM_NS_PER_S;
static const int64_t short_ns = 300 * CM_NS_PER_MS;

static struct cm_layout make_layout(int n, size_t arena)
{
    struct cm_layout l = {
        .nranks = n, .channels = 2, .depth = 4, .slot_bytes = 4096, .arena_bytes = arena};

    if (cm_layout_fill(&l) != CM_OK)
        abort();
    return l;
}

static enum cm_status open_shm(const struct cm_boot *b, int64_t timeout_ns, struct cm_segment **out)
{
    struct cm_layout l = make_layout(b->nprocs, ARENA);

    return cm_segment_open(cm_wire_find("shm"), b, &l, timeout_ns, out);
}

/* Run n processes; each must end with exit code 0. */
static void run_all_well(int n, forked_fn *child)
{
    int status[FORKED_MAX];

    CHECK(forked_run(n, child, NULL, status), "%d processes", n);
    for (int p = 0; p < n; p++)
        CHECK(WIFEXITED(status[p]) && WEXITSTATUS(status[p]) == 0, "process %d of %d: 0x%x", p, n,
              (unsigned)status[p]);
}

static int share(struct cm_boot *b, void *arg)
{
    struct cm_layout l = make_layout(b->nprocs, ARENA);
    struct cm_segment *s = NULL;
    int wrong = 0;

    (void)arg;
    if (open_shm(b, long_ns, &s) != CM_OK ||
        cm_segment_reserve(s, cm_arena_at(&l, b->proc), ARENA) != CM_OK)
        return 2;
    memset((char *)cm_segment_base(s) + cm_arena_at(&l, b->proc), 'a' + b->proc, ARENA);
    if (!forked_meet(b))
        return 3;
    for (int p = 0; p < b->nprocs; p++)
        for (size_t i = 0; i < ARENA; i++)
            wrong += ((char *)cm_segment_base(s))[cm_arena_at(&l, p) + i] != 'a' + p;
    wrong += cm_segment_dead_proc(s) != -1;
    if (!forked_meet(b)) /* nobody leaves while others look for the dead */
        return 3;
    cm_segment_close(s);
    return wrong != 0;
}

static void test_processes_share_memory(void)
{
    static const int sizes[] = {1, 2, 4, 9};

    for (size_t i = 0; i < CM_LEN(sizes); i++)
        run_all_well(sizes[i], share);
}

/* The abstract name as the leader made it; the list shows it to everybody on the machine. */
static bool find_name(const unsigned char *name, struct sockaddr_un *a, socklen_t *len)
{
    char *at = a->sun_path + 1;

    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    at += sprintf(at, "collmark-");
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%02x", name[i]);
    *len = (socklen_t)(at - (char *)a);
    return true;
}

/* Connect as somebody who does not know the token; true if we are turned away. */
static bool stranger_is_refused(const unsigned char *name)
{
    unsigned char hello[20] = {1, 2, 3}, answer;
    struct sockaddr_un a;
    socklen_t len;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ssize_t got;
    bool refused;

    hello[16] = 1; /* claims to be process 1 */
    refused = fd >= 0 && find_name(name, &a, &len) &&
              connect(fd, (struct sockaddr *)&a, len) == 0 &&
              send(fd, hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello);
    got = refused ? recv(fd, &answer, 1, 0) : 1;
    if (fd >= 0)
        close(fd);
    return refused && got <= 0;
}

/* In an offer: where the socket's name and the two tokens are. */
enum { OFFER_BYTES = 64, NAME_AT = 16, HELLO_AT = 32, TOKEN_AT = 48 };

static enum cm_status gather_with_stranger(const struct cm_boot *b, const void *mine, size_t bytes,
                                           void *all)
{
    enum cm_status st = forked_gather(b, mine, bytes, all);

    if (st == CM_OK && bytes == OFFER_BYTES && b->proc == 1 &&
        !stranger_is_refused((const unsigned char *)all + NAME_AT))
        return CM_EDATA;
    return st;
}

static int share_with_stranger(struct cm_boot *b, void *arg)
{
    b->gather = gather_with_stranger;
    return share(b, arg);
}

static void test_a_stranger_is_refused_and_the_job_goes_on(void)
{
    run_all_well(2, share_with_stranger);
}

static enum cm_status gather_with_wrong_hello(const struct cm_boot *b, const void *mine,
                                              size_t bytes, void *all)
{
    enum cm_status st = forked_gather(b, mine, bytes, all);

    if (bytes == OFFER_BYTES && b->proc == 1)
        ((unsigned char *)all)[HELLO_AT] ^= 1;
    return st;
}

static enum cm_status gather_with_wrong_token(const struct cm_boot *b, const void *mine,
                                              size_t bytes, void *all)
{
    enum cm_status st = forked_gather(b, mine, bytes, all);

    if (bytes == OFFER_BYTES && b->proc == 1)
        ((unsigned char *)all)[TOKEN_AT] ^= 1;
    return st;
}

static int fail_to_open(struct cm_boot *b, void *arg)
{
    bool hello = arg != NULL;
    struct cm_segment *s = NULL;
    struct capture c;
    enum cm_status st;

    b->gather = hello ? gather_with_wrong_hello : gather_with_wrong_token;
    capture_begin(&c, STDERR_FILENO);
    st = open_shm(b, short_ns, &s);
    capture_end(&c);
    /* With a wrong hello the leader waits in vain, with a wrong token only process 1 fails. */
    if (b->proc == 0 && hello && strstr(c.text, "did not connect: 1") == NULL)
        return 2;
    if (b->proc == 1 && !hello && strstr(c.text, "another job") == NULL)
        return 3;
    return st == CM_OK || s != NULL;
}

static void test_wrong_tokens_fail_everywhere(void)
{
    int status[2], flag = 1;

    for (int hello = 0; hello < 2; hello++) {
        CHECK(forked_run(2, fail_to_open, hello ? &flag : NULL, status), "hello %d", hello);
        for (int p = 0; p < 2; p++)
            CHECK(WIFEXITED(status[p]) && WEXITSTATUS(status[p]) == 0, "hello %d process %d: 0x%x",
                  hello, p, (unsigned)status[p]);
    }
}

/* Process *arg dies after attaching; the leader sees followers, followers see the leader. */
static int one_dies(struct cm_boot *b, void *arg)
{
    const int *victim = arg;
    struct forked_area *area = b->ctx;
    struct cm_segment *s = NULL;
    int64_t until = cm_now_ns() + long_ns;
    int dead = -1;

    if (open_shm(b, long_ns, &s) != CM_OK)
        return 2;
    if (b->proc == *victim) {
        atomic_store(&area->note, cm_now_ns());
        kill(getpid(), SIGKILL);
    }
    if (b->proc != 0 && *victim != 0) { /* a follower cannot see another follower */
        cm_segment_close(s);
        return 0;
    }
    while (dead < 0 && cm_now_ns() < until) {
        int64_t died = atomic_load(&area->note);

        dead = cm_segment_dead_proc(s);
        if (dead < 0 && died != 0 && cm_now_ns() - died > CM_NS_PER_S)
            break; /* too late */
    }
    cm_segment_close(s);
    return dead != *victim;
}

static void test_a_death_is_noticed(void)
{
    static const int victims[] = {0, 2};

    for (size_t i = 0; i < CM_LEN(victims); i++) {
        int status[3] = {0}, victim = victims[i];

        CHECK(forked_run(3, one_dies, &victim, status), "victim %d", victim);
        for (int p = 0; p < 3; p++)
            CHECK(p == victim ? WIFSIGNALED(status[p])
                              : WIFEXITED(status[p]) && WEXITSTATUS(status[p]) == 0,
                  "victim %d, process %d: 0x%x", victim, p, (unsigned)status[p]);
    }
}

static int close_early(struct cm_boot *b, void *arg)
{
    struct cm_segment *s = NULL;
    bool good;

    (void)arg;
    if (open_shm(b, long_ns, &s) != CM_OK)
        return 2;
    if (b->proc == 1)
        cm_segment_close(s);
    good = forked_meet(b) && (b->proc == 1 || cm_segment_dead_proc(s) == -1);
    good = forked_meet(b) && good;
    if (b->proc != 1)
        cm_segment_close(s);
    return !good;
}

static void test_an_orderly_end_is_no_death(void)
{
    run_all_well(3, close_early);
}

/* A memory limit in a process of its own; exit code 0: refused with a message that has numbers. */
static int refuse_limited(struct cm_boot *b, void *arg)
{
    const char *wire = arg;
    struct cm_layout l = make_layout(b->nprocs, (size_t)256 << 20);
    struct rlimit limit = {(size_t)128 << 20, (size_t)128 << 20};
    struct cm_segment *s = NULL;
    struct capture c;
    enum cm_status st;

    if (setrlimit(strcmp(wire, "data") == 0 ? RLIMIT_DATA : RLIMIT_AS, &limit) != 0)
        return 2;
    capture_begin(&c, STDERR_FILENO);
    st = cm_segment_open(cm_wire_find(strcmp(wire, "data") == 0 ? "loop" : wire), b, &l, long_ns,
                         &s);
    capture_end(&c);
    return st != CM_ENOMEM || s != NULL || strstr(c.text, "bytes needed") == NULL;
}

static void test_limits_are_respected(void)
{
    static char wires[][8] = {"loop", "shm", "data"};
    int status[1];

    if (HAS_SANITIZER) {
        SKIP("a sanitizer's own memory exceeds any limit");
        return;
    }
    for (size_t i = 0; i < CM_LEN(wires); i++) {
        CHECK(forked_run(1, refuse_limited, wires[i], status), "%s", wires[i]);
        CHECK(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 0, "%s: 0x%x", wires[i],
              (unsigned)status[0]);
    }
}

static void test_absurd_sizes_are_refused(void)
{
    struct cm_boot b = {.nprocs = 1, .gather = forked_gather};
    struct cm_layout l = make_layout(2, (size_t)1 << 50);

    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "loop" : "shm";
        struct forked_area *area = calloc(1, sizeof(*area));
        struct cm_segment *s = NULL;
        struct capture c;
        enum cm_status st;

        b.ctx = area;
        capture_begin(&c, STDERR_FILENO);
        st = cm_segment_open(cm_wire_find(name), &b, &l, long_ns, &s);
        capture_end(&c);
        CHECK(st == CM_ENOMEM && s == NULL, "%s: status %d", name, st);
        CHECK(strstr(c.text, "bytes needed") != NULL && strstr(c.text, "available") != NULL,
              "%s: %s", name, c.text);
        free(area);
    }
}

static void test_reserve_checks_its_range(void)
{
    struct cm_boot b = {.nprocs = 1};
    struct cm_layout l = make_layout(1, ARENA);
    struct cm_segment *s = NULL;
    struct capture c;

    CHECK(cm_segment_open(cm_wire_find("loop"), &b, &l, long_ns, &s) == CM_OK, "loop");
    CHECK((uintptr_t)cm_segment_base(s) % (2 << 20) == 0, "base %p", cm_segment_base(s));
    CHECK(cm_segment_reserve(s, l.arenas_at, ARENA) == CM_OK, "arena");
    CHECK(cm_segment_reserve(s, l.arenas_at, 0) == CM_OK, "nothing");
    CHECK(((char *)cm_segment_base(s))[l.arenas_at] == 0, "not zero");
    capture_begin(&c, STDERR_FILENO);
    CHECK(cm_segment_reserve(s, l.arenas_at, SIZE_MAX / 2) == CM_EINVAL, "beyond the end");
    CHECK(cm_segment_reserve(s, 1, 1) == CM_EINVAL, "inside a page");
    capture_end(&c);
    CHECK(cm_segment_dead_proc(s) == -1, "a death without processes");
    cm_segment_close(s);
    cm_segment_close(NULL);
}

static void test_wires_are_found(void)
{
    struct cm_boot one = {.nprocs = 1}, two = {.nprocs = 2};

    CHECK(cm_wire_find("loop") != NULL && cm_wire_find("shm") != NULL, "names");
    CHECK(cm_wire_find("pigeon") == NULL, "a wire that does not exist");
    CHECK(strcmp(cm_wire_choose(&one)->name, "loop") == 0, "one process");
    CHECK(strcmp(cm_wire_choose(&two)->name, "shm") == 0, "two processes");
    CHECK(cm_memory_available() > 0, "no memory at all");
}

int main(void)
{
    RUN(test_wires_are_found);
    RUN(test_processes_share_memory);
    RUN(test_a_stranger_is_refused_and_the_job_goes_on);
    RUN(test_wrong_tokens_fail_everywhere);
    RUN(test_a_death_is_noticed);
    RUN(test_an_orderly_end_is_no_death);
    RUN(test_limits_are_respected);
    RUN(test_absurd_sizes_are_refused);
    RUN(test_reserve_checks_its_range);
    return test_end();
}
