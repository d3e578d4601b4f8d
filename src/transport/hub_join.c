/*
 * The others' side of the meeting: find process 0, connect, show who I am, be
 * told that all are there. Whatever goes wrong before that is tried again
 * until the time is over: process 0 may come later, an older job may still be
 * at its port, and in a crowd it may have hung up on us.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/hub_int.h"
#include "transport/shake.h"

static const int64_t retry_ns = 50LL * CM_NS_PER_MS; /* until the next try; it doubles, up to */
static const int64_t retry_most_ns = 400LL * CM_NS_PER_MS;
static const int64_t try_ns = 5LL * CM_NS_PER_S; /* for a handshake that gets no answer */

struct caller {
    struct cm_hub *hub;
    const struct cm_hub_finder *finder;
    struct cm_hub_join mine;
    struct cm_hub_target target;
    int64_t until_ns;
    char why[CM_HUB_TEXT / 2]; /* the last try failed; "": none was made */
    bool refused;              /* somebody was there who did not want us */
};

static void failed_because(struct caller *c, const char *why)
{
    char at[CM_NET_TEXT];

    snprintf(c->why, sizeof(c->why), "%s: %s", cm_net_format(&c->target.addr, at), why);
}

static void await(int fd, short events, int64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left_ms = (until_ns - cm_now_ns()) / CM_NS_PER_MS + 1;

    poll(&p, 1, left_ms > 0 ? (int)left_ms : 0);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* From any address of this machine; the system knows the way. */
static int dial(const struct cm_hub_target *t)
{
    struct cm_net_if from = {.index = t->scope, .addr = {.version = t->addr.version}};

    return cm_net_dial(&from, &t->addr);
}

/* Shake hands until `until_ns`, as far as it gets. The socket in it is the caller's; -1: none. */
static struct cm_shake shake_hands(const struct cm_hub_target *t, int rank, int64_t until_ns)
{
    struct cm_hello hello = {.from = (uint32_t)rank, .sockets = 1};
    struct cm_shake s = {.state = CM_SHAKE_LOST, .fd = dial(t)};

    if (s.fd < 0) {
        s.err = errno;
        return s;
    }
    memcpy(hello.token, t->token, sizeof(hello.token));
    cm_shake_dialled(&s, s.fd, &hello);
    while (cm_shake_events(&s) != 0 && cm_now_ns() < until_ns) {
        await(s.fd, cm_shake_events(&s), until_ns);
        cm_shake_step(&s);
    }
    return s;
}

bool cm_hub_waits_at(const struct cm_hub_target *t, int64_t limit_ns)
{
    struct cm_shake s = shake_hands(t, 0, cm_now_ns() + limit_ns);

    if (s.fd >= 0)
        close(s.fd);
    return s.state == CM_SHAKE_DONE;
}

/* A connection on which both have shown the token, or -1. */
static int connect_once(struct caller *c)
{
    struct cm_shake s =
        shake_hands(&c->target, c->hub->a.proc, earlier(c->until_ns, cm_now_ns() + try_ns));

    if (s.state == CM_SHAKE_DONE)
        return s.fd;
    if (s.state == CM_SHAKE_REFUSED)
        failed_because(c, s.why);
    else if (s.state != CM_SHAKE_LOST)
        failed_because(c, "no answer");
    else
        failed_because(c, s.put > 0 ? "it hangs up" : strerror(s.err));
    c->refused |= s.state == CM_SHAKE_REFUSED || s.put > 0;
    if (s.fd >= 0)
        close(s.fd);
    return -1;
}

/* Joined; now process 0 waits for the others. CM_LINK_LOST: it may have been too crowded. */
static void wait_for_all(struct caller *c)
{
    struct cm_hub_head join = {.type = CM_HUB_JOIN, .bytes = sizeof(c->mine)};
    struct cm_hub_link *l = &c->hub->links[0];

    l->text = c->hub->text;
    cm_link_expect(l, CM_HUB_READY, 0, NULL, 0);
    cm_link_say(l, &join, &c->mine);
    while (l->state == CM_LINK_UP && cm_now_ns() < c->until_ns)
        cm_hub_step(c->hub, c->until_ns);
}

static bool find(struct caller *c)
{
    return c->finder->next(c->finder->arg, &c->target);
}

/* One try. True: it is over, with *st. */
static bool attempt(struct caller *c, enum cm_status *st)
{
    struct cm_hub_link *l = &c->hub->links[0];
    char at[CM_NET_TEXT];
    int fd = find(c) ? connect_once(c) : -1;

    if (fd < 0)
        return false;
    cm_link_init(l, fd);
    cm_net_tune(fd, c->hub->a.patience_ns);
    wait_for_all(c);
    cm_net_format(&c->target.addr, at);
    snprintf(c->hub->where, sizeof(c->hub->where), "%s", at);
    if (l->state == CM_LINK_GOT)
        *st = CM_OK;
    else if (l->state == CM_LINK_FAILED)
        *st = cm_hub_obey(c->hub, l);
    else if (l->state == CM_LINK_UP)
        *st = CM_FAIL(CM_ETIMEOUT, "rank %d: rank 0 at %s still waits for others after %.1f s",
                      c->hub->a.proc, at, (double)c->hub->a.meet_ns / CM_NS_PER_S);
    if (l->state == CM_LINK_UP)
        cm_hub_kill(c->hub, CM_EXIT_TIMEOUT);
    if (l->state == CM_LINK_LOST || l->state == CM_LINK_ODD) {
        failed_because(c, "it hung up while others were awaited");
        cm_link_drop(l);
        return false;
    }
    return true;
}

static enum cm_status not_found(const struct caller *c)
{
    char where[CM_HUB_TEXT / 2] = "";

    c->finder->describe(c->finder->arg, where, sizeof(where));
    return CM_FAIL(CM_ETIMEOUT, "rank %d: no rank 0 within %.1f s, looked for by %s%s%s%s",
                   c->hub->a.proc, (double)c->hub->a.meet_ns / CM_NS_PER_S, where,
                   c->why[0] != '\0' ? "; last try: " : "", c->why,
                   c->refused ? "; there was another program, or a job that is not ours "
                                "(COLLMARK_JOB, TORCHELASTIC_RUN_ID and the like differ)"
                              : "");
}

static enum cm_status run(struct caller *c)
{
    enum cm_status st = CM_OK;
    int64_t pause_ns = retry_ns;
    bool over = attempt(c, &st);

    while (!over) {
        await(-1, 0, earlier(c->until_ns, cm_now_ns() + pause_ns));
        pause_ns = earlier(2 * pause_ns, retry_most_ns);
        if (cm_now_ns() >= c->until_ns)
            return not_found(c);
        over = attempt(c, &st);
    }
    return st;
}

enum cm_status cm_hub_join(const struct cm_hub_args *a, const struct cm_hub_finder *f,
                           struct cm_hub **out)
{
    struct caller c = {.finder = f};
    enum cm_status st;

    c.hub = cm_hub_new(a, 1, "not found yet");
    if (c.hub == NULL)
        return CM_ENOMEM;
    c.mine.nprocs = (uint32_t)a->nprocs;
    c.mine.machine = a->machine;
    snprintf(c.mine.host, sizeof(c.mine.host), "%s", a->host);
    c.until_ns = cm_now_ns() + a->meet_ns;
    st = CM_SYS(getrandom(&c.mine.who, sizeof(c.mine.who), 0) == (ssize_t)sizeof(c.mine.who),
                "getrandom");
    if (st == CM_OK)
        st = run(&c);
    if (st != CM_OK) {
        cm_hub_close(c.hub);
        return st;
    }
    *out = c.hub;
    return CM_OK;
}
