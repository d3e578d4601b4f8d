/*
 * Domains of memory: found by key and by trying, numbered by their lowest
 * processes, with segments of their own.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "common/domain.h"
#include "forked.h"
#include "test.h"
#include "transport/wire.h"

enum { ARENA = 64 << 10 };
static const int64_t long_ns = 10LL * CM_NS_PER_S;

/* What the processes of one run are told, and what they must find. */
struct setting {
    const uint64_t *keys;
    const int32_t *want; /* domain of each process */
    int moves;           /* the last so many processes go to a network namespace of their own */
};

static bool found(const struct cm_domains *d, const struct cm_boot *b, const int32_t *want)
{
    bool right = d->mine == want[b->proc];

    for (int p = 0; p < b->nprocs; p++)
        right &= d->of_proc[p] == want[p];
    for (int k = 0; k < d->n; k++) {
        right &= d->of_proc[d->leader[k]] == k;
        for (int p = 0; p < d->leader[k]; p++)
            right &= d->of_proc[p] != k;
    }
    return right;
}

static int find(struct cm_boot *b, void *arg)
{
    const struct setting *s = arg;
    struct cm_domains d;
    bool right;

    if (b->proc >= b->nprocs - s->moves && unshare(CLONE_NEWNET) != 0)
        return 2;
    right = cm_domains_find(b, s->keys, &d) == CM_OK && found(&d, b, s->want);
    cm_domains_free(&d);
    return right ? 0 : 1;
}

/* All processes end with `code`. */
static void run_all(int n, forked_fn *child, struct setting *s, int code)
{
    int status[FORKED_MAX];

    CHECK(forked_run(n, child, s, status), "%d processes", n);
    for (int p = 0; p < n; p++)
        CHECK(WIFEXITED(status[p]) && WEXITSTATUS(status[p]) == code, "process %d of %d: 0x%x", p,
              n, (unsigned)status[p]);
}

static void test_keys_tell_who_might_share(void)
{
    static const uint64_t one[] = {7, 7, 7}, each[] = {1, 2, 3}, mixed[] = {5, 9, 5, 9, 2};
    static const int32_t zero[] = {0, 0, 0}, own[] = {0, 1, 2}, mix[] = {0, 1, 0, 1, 2};

    run_all(1, find, &(struct setting){one, zero, 0}, 0);
    run_all(3, find, &(struct setting){one, zero, 0}, 0);
    run_all(3, find, &(struct setting){each, own, 0}, 0);
    run_all(5, find, &(struct setting){mixed, mix, 0}, 0);
}

/* Keys that say nothing of it: processes that cannot reach each other come apart all the same. */
static void test_trying_tells_who_does(void)
{
    static const uint64_t one[] = {7, 7, 7, 7};
    static const int32_t last[] = {0, 0, 0, 1}, two[] = {0, 0, 1, 2};
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(unshare(CLONE_NEWNET) == 0 ? 0 : 1);
    waitpid(pid, &status, 0);
    if (status != 0) {
        SKIP("no network namespaces (needs root)");
        return;
    }
    run_all(4, find, &(struct setting){one, last, 1}, 0);
    run_all(4, find, &(struct setting){one, two, 2}, 0);
}

/* ---- ranks, segments ---- */

static bool same(const int32_t *got, const int32_t *want, int n)
{
    return memcmp(got, want, (size_t)n * sizeof(*got)) == 0;
}

static int ranks(struct cm_boot *b, void *arg)
{
    static const int32_t first_of[] = {0, 2, 3, 6, 7};
    static const int32_t domain[] = {0, 0, 1, 0, 0, 0, 1}, listed[] = {0, 1, 3, 4, 5, 2, 6};
    static const int32_t here[] = {0, 1, -1, 2, 3, 4, -1}, there[] = {-1, -1, 0, -1, -1, -1, 1};
    const struct setting *s = arg;
    struct cm_domains d;
    bool right = cm_domains_find(b, s->keys, &d) == CM_OK &&
                 cm_domains_add_ranks(&d, first_of) == CM_OK && d.nranks == 7;

    right = right && same(d.of_rank, domain, 7) && same(d.ranks, listed, 7) && d.first[1] == 5 &&
            d.first[2] == 7 && same(d.local_of, d.mine == 0 ? here : there, 7) &&
            cm_domains_local(&d) == (d.mine == 0 ? 5 : 2);
    cm_domains_free(&d);
    return right ? 0 : 1;
}

static void test_ranks_of_domains(void)
{
    static const uint64_t keys[] = {4, 8, 4, 8};

    run_all(4, ranks, &(struct setting){keys, NULL, 0}, 0);
}

static enum cm_status open_segment(const struct cm_boot *b, const struct cm_domains *d,
                                   size_t arena, struct cm_segment **out)
{
    struct cm_domain_boot ctx = {.world = b, .domains = d};
    struct cm_boot mine = cm_domain_boot(&ctx);
    struct cm_layout l = {.nranks = b->nprocs,
                          .local_of = d->local_of,
                          .nlocal = cm_domains_local(d),
                          .channels = 1,
                          .depth = 4,
                          .slot_bytes = 4096,
                          .arena_bytes = arena};
    enum cm_status st = cm_layout_fill(&l);

    if (st == CM_OK)
        st = cm_segment_open(cm_wire_choose(&mine), &mine, &l, long_ns, out);
    return cm_boot_agree(b, cm_domain_boot_settle(&ctx, CM_WIRE_GATHERS, st));
}

/* Everybody writes its number in its record: it is seen in the domain, and nowhere else. */
static bool apart(const struct cm_boot *b, const struct cm_domains *d, struct cm_segment *s)
{
    _Atomic uint32_t *words = (_Atomic uint32_t *)((char *)cm_segment_base(s) + 65536);
    bool right;

    atomic_store(&words[b->proc], (uint32_t)b->proc + 1);
    right = forked_meet(b);
    for (int p = 0; p < b->nprocs; p++)
        right &= atomic_load(&words[p]) == (d->of_proc[p] == d->mine ? (uint32_t)p + 1 : 0);
    return forked_meet(b) && right;
}

static const int32_t one_each[] = {0, 1, 2, 3, 4};

static int segments(struct cm_boot *b, void *arg)
{
    const struct setting *s = arg;
    struct cm_segment *seg = NULL;
    struct cm_domains d;
    bool right = cm_domains_find(b, s->keys, &d) == CM_OK &&
                 cm_domains_add_ranks(&d, one_each) == CM_OK &&
                 open_segment(b, &d, ARENA, &seg) == CM_OK && apart(b, &d, seg);

    cm_segment_close(seg);
    cm_domains_free(&d);
    return right ? 0 : 1;
}

/* One domain cannot have its memory: all are told, and nobody waits for ever. */
static int refused(struct cm_boot *b, void *arg)
{
    const struct setting *s = arg;
    struct cm_segment *seg = NULL;
    struct cm_domains d;
    bool right = cm_domains_find(b, s->keys, &d) == CM_OK &&
                 cm_domains_add_ranks(&d, one_each) == CM_OK;

    cm_log_mute(true);
    right = right && open_segment(b, &d, d.mine == 0 ? (size_t)1 << 45 : ARENA, &seg) == CM_ENOMEM;
    cm_log_mute(false);
    cm_segment_close(seg);
    cm_domains_free(&d);
    return right ? 0 : 1;
}

static void test_each_has_a_segment_or_nobody(void)
{
    static const uint64_t pairs[] = {1, 2, 1, 2}, alone[] = {1, 2, 1, 1};

    run_all(4, segments, &(struct setting){pairs, NULL, 0}, 0);
    run_all(4, segments, &(struct setting){alone, NULL, 0}, 0);
    run_all(4, refused, &(struct setting){alone, NULL, 0}, 0);
    run_all(4, refused, &(struct setting){pairs, NULL, 0}, 0);
}

/* Ports of a segment that not all ranks share: each has its place, and no two the same. */
static void test_ports_have_places_of_their_own(void)
{
    static const int32_t local_of[] = {-1, 0, -1, 1, 2};
    struct cm_layout l = {.nranks = 5,
                          .local_of = local_of,
                          .nlocal = 3,
                          .channels = 2,
                          .depth = 2,
                          .slot_bytes = 256,
                          .arena_bytes = 4096};
    size_t at[5 * 5 * 2], n = 0;

    CHECK(cm_layout_fill(&l) == CM_OK, "layout");
    for (int k = 0; k < 5 * 5 * 2; k++) {
        int src = k / 10, dst = k / 2 % 5;

        if (local_of[src] >= 0 || local_of[dst] >= 0)
            at[n++] = cm_port_at(&l, src, dst, k % 2);
    }
    for (size_t i = 0; i < n; i++) {
        CHECK(at[i] >= l.ports_at && at[i] + 2 * cm_slot_stride(&l) < l.arenas_at, "port %zu", i);
        for (size_t k = 0; k < i; k++)
            CHECK(at[i] != at[k], "ports %zu and %zu are one", i, k);
    }
    CHECK(l.total == l.arenas_at + 3 * l.arena_bytes, "arenas of local ranks only");
    CHECK(cm_arena_at(&l, 3) == l.arenas_at + l.arena_bytes, "arena of the second local rank");
}

int main(void)
{
    RUN(test_keys_tell_who_might_share);
    RUN(test_trying_tells_who_does);
    RUN(test_ranks_of_domains);
    RUN(test_each_has_a_segment_or_nobody);
    RUN(test_ports_have_places_of_their_own);
    return test_end();
}
