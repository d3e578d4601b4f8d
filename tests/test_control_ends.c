/*
 * How a job of several domains of memory ends: whatever goes wrong, all processes
 * learn of it, leave with the same status, and one report says what it was.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/stuck.h"
#include "capture.h"
#include "domains.h"

static const int64_t short_ns = 300LL * CM_NS_PER_MS;

/* Rows of tables whose jobs take a second each: the first ones, or all. */
static size_t rows_of(size_t all, size_t quick)
{
    return getenv("COLLMARK_SLOW") != NULL ? all : quick;
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        n++;
    return n;
}

/* What the victim does in the third round while the others wait in a barrier. */
enum variant {
    STALLS,
    DIES,
    STOPS,
    GIVES_UP,
    GIVES_A_REASON,
    ALL_GIVE_REASONS,
    FIRST_STOPS, /* of domain 0; the last rank gives a reason */
    DIES_AT_THE_END,
    IS_SAID_TO_BE_DEAD, /* by the watchdog of its domain */
    DISAGREES
};

static enum cm_status await_abort(const struct domains_rank *r)
{
    while (cm_abort_status(r->waiter.abort) == CM_OK)
        sched_yield();
    return CM_EABORT;
}

static enum cm_status give_a_reason(struct domains_rank *r)
{
    struct cm_text t;

    t.len = (size_t)snprintf(t.buf, sizeof(t.buf), "the reason of rank %d\n", r->waiter.rank);
    return cm_abort_because(&r->waiter, CM_ENOMEM, &t);
}

/* Rank 0 and the others are in the same operation, with different signatures. */
static enum cm_status disagree(struct domains_rank *r)
{
    struct cm_diag *d = r->waiter.diag;
    bool first = r->waiter.rank == 0;
    enum cm_status st;

    d->sig_parts[0] = first ? CM_ALL_REDUCE : CM_BROADCAST;
    d->sig_parts[4] = first ? 1000 : 2000;
    d->op = 7;
    st = cm_team_barrier(&r->team);
    if (st != CM_OK || !first)
        return st != CM_OK ? st : await_abort(r);
    return cm_fail_mismatch(&r->waiter, r->p->job->victim);
}

static enum cm_status misbehave(struct domains_rank *r)
{
    switch (r->p->job->variant) {
    case DIES:
        raise(SIGKILL);
        break;
    case STOPS:
        raise(SIGSTOP);
        break;
    case GIVES_UP:
        cm_abort_raise(r->waiter.abort, CM_ENOMEM, r->waiter.rank);
        return CM_ENOMEM;
    case GIVES_A_REASON:
        return give_a_reason(r);
    case IS_SAID_TO_BE_DEAD:
        cm_control_died(r->p->control, r->p->proc);
        break;
    default:
        break;
    }
    return await_abort(r);
}

/* Nobody needs this rank's messages any more. */
static void await_all(struct domains_rank *r)
{
    struct domains_stage *s = r->p->stage;

    atomic_store(&s->arrived[r->waiter.rank], 1);
    for (int q = 0; q < r->team.n; q++)
        while (cm_abort_status(r->waiter.abort) == CM_OK && atomic_load(&s->arrived[q]) == 0)
            sched_yield();
}

/* All have passed the last barrier; then a process dies while the others take leave. */
static enum cm_status end_well(struct domains_rank *r)
{
    enum cm_status st = cm_team_barrier(&r->team);

    await_all(r);
    if (r->waiter.rank == r->p->job->victim)
        raise(SIGKILL);
    return st;
}

static enum cm_status first_stops(struct domains_rank *r)
{
    await_all(r);
    if (r->waiter.rank == 0)
        raise(SIGSTOP);
    return r->waiter.rank == r->team.n - 1 ? give_a_reason(r) : cm_team_barrier(&r->team);
}

static enum cm_status go_wrong(struct domains_rank *r)
{
    const struct domains_job *j = r->p->job;
    enum cm_status st = CM_OK;

    r->waiter.diag->iter = 5;
    r->waiter.diag->bytes = 1024;
    for (int round = 1; round < 3 && st == CM_OK; round++)
        st = cm_team_barrier(&r->team);
    if (st != CM_OK)
        return st;
    switch (j->variant) {
    case DISAGREES:
        return disagree(r);
    case ALL_GIVE_REASONS:
        return give_a_reason(r);
    case DIES_AT_THE_END:
        return end_well(r);
    case FIRST_STOPS:
        return first_stops(r);
    default:
        break;
    }
    return r->waiter.rank == j->victim ? misbehave(r) : cm_team_barrier(&r->team);
}

/* Run it; the processes that end by themselves end with `want`. */
static void run_wrong(const struct domains_job *j, enum cm_status want, struct capture *c)
{
    int status[DOMAINS_PROCS], lost = -1;
    struct domains_stage *s;

    if (j->stops || j->variant == DIES || j->variant == DIES_AT_THE_END)
        lost = domains_process_of(j, j->victim);
    capture_begin(c, STDERR_FILENO);
    s = domains_run(j, status);
    capture_end(c);
    for (int p = 0; p < j->nprocs; p++) {
        CHECK(p == lost || status[p] == 0, "variant %d victim %d process %d: 0x%x", j->variant,
              j->victim, p, (unsigned)status[p]);
        CHECK(p == lost || s->word[p] == want, "variant %d victim %d process %d: %u, got: %s",
              j->variant, j->victim, p, s->word[p], c->text);
    }
    munmap(s, sizeof(*s));
}

static void want_once(const struct domains_job *j, const struct capture *c, const char *format,
                      int number)
{
    char what[128];

    snprintf(what, sizeof(what), format, number);
    CHECK(count(c->text, what) == 1, "variant %d victim %d: %d times \"%s\", got: %s", j->variant,
          j->victim, count(c->text, what), what, c->text);
}

static void test_a_stalled_rank_is_named_once(void)
{
    static const int victims[] = {2, 0, 5};

    for (size_t i = 0; i < rows_of(CM_LEN(victims), 1); i++) {
        struct domains_job j = domains_shape(2, go_wrong);
        struct capture c;

        j.variant = STALLS;
        j.victim = victims[i];
        j.timeout_ns = short_ns;
        j.mode = i == 0 ? CM_PROXY_INLINE : CM_PROXY_THREAD;
        run_wrong(&j, CM_ETIMEOUT, &c);
        want_once(&j, &c, "time-out after", 0);
        want_once(&j, &c, "did not arrive", 0);
        want_once(&j, &c, "did not arrive: rank %d host ", j.victim);
        want_once(&j, &c, "phase timed, iteration 5", 0);
        want_once(&j, &c, "5 of 6 ranks wait: ", 0);
    }
}

static void test_a_killed_process_is_named_once(void)
{
    static const struct {
        size_t shape;
        int victim;
    } rows[] = {{2, 4}, {3, 2}, {3, 5}, {1, 0}, {4, 2}};

    for (size_t i = 0; i < rows_of(CM_LEN(rows), 2); i++) {
        struct domains_job j = domains_shape(rows[i].shape, go_wrong);
        struct capture c;

        j.variant = DIES;
        j.victim = rows[i].victim;
        j.mode = i % 2 == 0 ? CM_PROXY_THREAD : CM_PROXY_INLINE;
        run_wrong(&j, CM_ESYS, &c);
        want_once(&j, &c, "died: its connection", 0);
        want_once(&j, &c, "process %d (rank", domains_process_of(&j, j.victim));
        want_once(&j, &c, "seen by rank", 0);
        CHECK(strstr(c.text, "does not answer") == NULL, "got: %s", c.text);
    }
}

static void test_the_watchdog_is_heard(void)
{
    struct domains_job j = domains_shape(3, go_wrong);
    struct capture c;

    j.variant = IS_SAID_TO_BE_DEAD;
    j.victim = 5;
    run_wrong(&j, CM_ESYS, &c);
    want_once(&j, &c, "process 3 (ranks 4-6, pid %d) on host h1 died\n", 1003);
    want_once(&j, &c, "did not arrive: rank %d", 5);
}

/* Silence comes before the deadline; then the deadline before silence. */
static void test_a_stopped_process_is_named_once(void)
{
    static const struct {
        int victim;
        bool silence;
    } rows[] = {{0, true}, {4, false}, {4, true}, {0, false}};

    for (size_t i = 0; i < rows_of(CM_LEN(rows), 2); i++) {
        struct domains_job j = domains_shape(2, go_wrong);
        struct capture c;
        int proc;

        j.variant = STOPS;
        j.stops = true;
        j.victim = rows[i].victim;
        proc = domains_process_of(&j, j.victim);
        *(rows[i].silence ? &j.silence_ns : &j.timeout_ns) = short_ns;
        run_wrong(&j, CM_ETIMEOUT, &c);
        want_once(&j, &c, rows[i].silence ? "silent for" : "time-out after", 0);
        want_once(&j, &c, "process %d (rank", proc);
        if (!rows[i].silence)
            want_once(&j, &c, ") on host h%d does not answer", proc);
        CHECK(strstr(c.text, "did not arrive") == NULL, "got: %s", c.text);
    }
}

static void test_an_abort_reaches_all(void)
{
    for (size_t i = 1; i < DOMAINS_SHAPES; i++) {
        struct domains_job j = domains_shape(i, go_wrong);
        struct capture c;

        j.victim = domains_all_ranks(&j) - 1;
        j.variant = GIVES_UP;
        run_wrong(&j, CM_ENOMEM, &c);
        CHECK(c.text[0] == '\0', "shape %zu: got: %s", i, c.text);
        j.variant = GIVES_A_REASON;
        run_wrong(&j, CM_ENOMEM, &c);
        want_once(&j, &c, "the reason of rank %d\n", j.victim);
    }
}

static void test_of_many_reasons_one_is_printed(void)
{
    for (size_t i = 1; i < DOMAINS_SHAPES; i++) {
        struct domains_job j = domains_shape(i, go_wrong);
        struct capture c;

        j.variant = ALL_GIVE_REASONS;
        run_wrong(&j, CM_ENOMEM, &c);
        want_once(&j, &c, "the reason of rank ", 0);
    }
}

static void test_without_domain_0_another_prints(void)
{
    struct domains_job j = domains_shape(2, go_wrong);
    struct capture c;

    j.variant = FIRST_STOPS;
    j.stops = true;
    run_wrong(&j, CM_ENOMEM, &c);
    want_once(&j, &c, "the reason of rank %d\n", 5);
}

static void test_losses_at_the_end_are_silent(void)
{
    struct domains_job j = domains_shape(2, go_wrong);
    struct capture c;

    j.variant = DIES_AT_THE_END;
    j.victim = 4;
    run_wrong(&j, CM_OK, &c);
    CHECK(c.text[0] == '\0', "got: %s", c.text);
}

static void test_ranks_that_disagree_are_named(void)
{
    struct domains_job j = domains_shape(2, go_wrong);
    struct capture c;

    j.variant = DISAGREES;
    j.victim = 5;
    run_wrong(&j, CM_EMISMATCH, &c);
    want_once(&j, &c, "rank 0 runs all_reduce int8 sum, 1000 elements; rank %d runs broadcast", 5);
    want_once(&j, &c, "2000 elements", 0);
}

int main(void)
{
    RUN(test_a_stalled_rank_is_named_once);
    RUN(test_a_killed_process_is_named_once);
    RUN(test_the_watchdog_is_heard);
    RUN(test_a_stopped_process_is_named_once);
    RUN(test_an_abort_reaches_all);
    RUN(test_of_many_reasons_one_is_printed);
    RUN(test_without_domain_0_another_prints);
    RUN(test_losses_at_the_end_are_silent);
    RUN(test_ranks_that_disagree_are_named);
    return test_end();
}
