/*
 * Ranks on different "nodes" that call different operations: one report names
 * both, and all end. Processes that share no memory, over TCP on loopback; rank 1
 * of three is the odd one.
 */
#define _GNU_SOURCE
#include "capture.h"
#include "common/launch.h"
#include "engine/comm.h"
#include "forked.h"
#include "test.h"

enum { PROCS = 3, ARENA = 1 << 20, HALF = ARENA / 2, MOST_MS = 9000 };

/* Seen by all processes, and not changed by them. */
struct disagree {
    const char *progress;
    struct cm_force force;
    struct cm_op_args usual, odd;
    char place[256]; /* of --rendezvous */
};

static void parse(const struct disagree *d, struct cm_opts *o)
{
    const char *args[] = {"x",      "-T",           "3",          "--wire",    "tcp",
                          "--algo", d->force.algo,  "--progress", d->progress, "--ifname",
                          "lo",     "--rendezvous", d->place};
    enum cm_parsed what;

    if (cm_opts_parse((int)CM_LEN(args), (char **)(uintptr_t)args, NULL, o, &what) != CM_OK)
        abort();
    o->colls = 1U << CM_ALL_REDUCE | 1U << CM_BROADCAST;
}

static enum cm_status arena(const struct cm_opts *o, int n, const struct cm_room *room, void *arg,
                            size_t *out)
{
    (void)o, (void)n, (void)room, (void)arg;
    *out = (size_t)ARENA + cm_comm_scratch_bytes(HALF, PROCS);
    return CM_OK;
}

/* A few operations on which all agree, then the one. */
static enum cm_status body(struct cm_rank *r, void *arg)
{
    const struct disagree *d = arg;
    size_t at = cm_arena_at(r->layout, r->rank);
    struct cm_comm_args a = {.rank = r->rank,
                             .n = r->n,
                             .world = r->group_world,
                             .node = r->node_of,
                             .base = r->base,
                             .layout = r->layout,
                             .waiter = &r->waiter,
                             .scratch_at = at + ARENA,
                             .scratch_bytes = cm_comm_scratch_bytes(HALF, PROCS),
                             .force = d->force};
    struct cm_op_args op = d->usual;
    struct cm_comm *c = NULL;
    enum cm_status st = cm_comm_open(&a, &c);

    atomic_store(&r->waiter.diag->phase, CM_AT_TIMED);
    for (int i = 0; i < 4 && st == CM_OK; i++) {
        if (i == 3 && r->rank == 1)
            op = d->odd;
        op.in = (char *)r->base + at;
        op.out = (char *)r->base + at + HALF;
        st = cm_comm_run(c, &op);
    }
    cm_comm_close(c);
    return st;
}

static int child(struct cm_boot *b, void *arg)
{
    struct disagree *d = arg;
    char rank[8], size[8];
    struct cm_opts o;
    enum cm_exit code;

    snprintf(rank, sizeof(rank), "%d", b->proc);
    snprintf(size, sizeof(size), "%d", b->nprocs);
    setenv("RANK", rank, 1);
    setenv("WORLD_SIZE", size, 1);
    parse(d, &o);
    code = cm_launch(NULL, NULL, &o, arena, body, d);
    cm_opts_free(&o);
    return code;
}

/* The operation as reports have it; only what every form has in common. */
static const char *text_of(const struct cm_op_args *a, char buf[128])
{
    snprintf(buf, 128, "%s %s%s%s, %zu elements", cm_colls[a->coll].name, cm_dtypes[a->dtype].name,
             cm_colls[a->coll].reduces ? " " : "",
             cm_colls[a->coll].reduces ? cm_ops[a->op].name : "", a->count);
    return buf;
}

static void check(struct disagree *d, const char *folder)
{
    char usual[128], odd[128];
    struct capture c;
    int status[PROCS];
    int64_t began = cm_now_ns(), ms;

    snprintf(d->place, sizeof(d->place), "file:%s/meet", folder);
    capture_begin(&c, STDERR_FILENO);
    CHECK(forked_run(PROCS, child, d, status), "fork");
    capture_end(&c);
    ms = (cm_now_ns() - began) / CM_NS_PER_MS;
    text_of(&d->usual, usual);
    text_of(&d->odd, odd);
    for (int p = 0; p < PROCS; p++)
        CHECK(WIFEXITED(status[p]) && WEXITSTATUS(status[p]) == CM_EXIT_SYSTEM,
              "%s %s, rank 1 %s: process %d: status %x", d->force.algo, d->progress, odd, p,
              status[p]);
    CHECK(strstr(c.text, usual) != NULL && strstr(c.text, odd) != NULL, "%s %s, %s and %s: %s",
          d->force.algo, d->progress, usual, odd, c.text);
    CHECK(strchr(c.text, '\n') == strrchr(c.text, '\n'), "%s %s: more than a line: %s",
          d->force.algo, d->progress, c.text);
    CHECK(ms < MOST_MS, "%s %s: %lld ms", d->force.algo, d->progress, (long long)ms);
}

static void test_ranks_that_disagree_are_named(void)
{
    static const struct cm_op_args usual = {
        .coll = CM_ALL_REDUCE, .dtype = CM_FLOAT, .op = CM_SUM, .count = 4000};
    static const char *const algos[] = {"ring", "tree"};
    struct cm_op_args odd[] = {usual, usual, usual, usual, usual, usual};
    const char *tmp = getenv("TMPDIR");
    char folder[200];

    snprintf(folder, sizeof(folder), "%s/disagree.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL)
        abort();
    odd[0].dtype = CM_INT32;
    odd[1].op = CM_MAX;
    odd[2].count = 4001;
    odd[3].count = 100;
    odd[4].coll = odd[5].coll = CM_BROADCAST;
    odd[5].count = 8000;
    for (size_t k = 0; k < CM_LEN(odd); k++) {
        struct disagree d = {.progress = k % 2 == 0 ? "inline" : "thread",
                             .force = {.algo = algos[k / 2 % 2], .mode = -1},
                             .usual = usual,
                             .odd = odd[k]};

        check(&d, folder);
    }
    rmdir(folder);
}

int main(void)
{
    RUN(test_ranks_that_disagree_are_named);
    return test_end();
}
