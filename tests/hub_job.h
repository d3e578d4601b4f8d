/*
 * Jobs of forked processes that form a star over loopback. A test gives each a
 * body; the parent collects exit codes.
 */
#ifndef CM_TESTS_HUB_JOB_H
#define CM_TESTS_HUB_JOB_H

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "sockets.h"
#include "test.h"
#include "transport/hub.h"

enum { HUB_JOB_MOST = 512 };
static const int64_t second_ns = CM_NS_PER_S;
static const unsigned char token[CM_NET_TOKEN] = "sixteen letters";

/* One job: a listener, and what its processes do. */
struct job {
    int n;
    struct cm_net_if lo;
    struct cm_net_addr at;
    int listener;
    int64_t meet_ns, note_ns;
    int (*body)(struct cm_hub *h, int proc, const struct job *j);
    int count, bytes; /* of gathers */
    const char *host; /* where they are */
};

static inline struct cm_hub_args args_of(const struct job *j, int proc)
{
    struct cm_hub_args a = {.proc = proc,
                            .nprocs = j->n,
                            .rank_name = "RANK",
                            .size_name = "WORLD_SIZE",
                            .host = "here",
                            .machine = 1,
                            .meet_ns = j->meet_ns + (proc > 0) * j->meet_ns / 10,
                            .note_ns = j->note_ns,
                            .patience_ns = 20 * second_ns,
                            .end_ns = j->note_ns};

    memcpy(a.token, token, sizeof(token));
    return a;
}

static inline bool prepare(struct job *j, int n)
{
    *j = (struct job){.n = n, .meet_ns = 10 * second_ns, .note_ns = 10 * second_ns, .count = 1};
    return sockets_loopback(4, &j->lo) &&
           cm_net_listen(&j->lo, (struct cm_net_ports){0, 0}, &j->listener, &j->at) == CM_OK;
}

static inline bool next_target(void *arg, struct cm_hub_target *out)
{
    const struct job *j = arg;

    *out = (struct cm_hub_target){.addr = j->at};
    memcpy(out->token, token, sizeof(token));
    return true;
}

static inline void describe(void *arg, char *buf, size_t size)
{
    (void)arg;
    snprintf(buf, size, "a test");
}

static inline enum cm_status join(struct job *j, const struct cm_hub_args *a, struct cm_hub **out)
{
    struct cm_hub_finder f = {j, next_target, describe};

    if (a->proc == 0)
        return cm_hub_host(a, j->listener, "here", out);
    close(j->listener);
    return cm_hub_join(a, &f, out);
}

/* A process; its exit code. */
static inline int member(struct job *j, const struct cm_hub_args *a)
{
    struct cm_hub *h = NULL;
    enum cm_status st = join(j, a, &h);
    int rc = st == CM_OK ? j->body(h, a->proc, j) : (int)cm_status_exit(st);

    cm_hub_close(h);
    return rc;
}

static inline pid_t start(struct job *j, const struct cm_hub_args *a)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0)
        _exit(member(j, a));
    return pid;
}

static inline void start_all(struct job *j, pid_t *pid)
{
    for (int p = 0; p < j->n; p++) {
        struct cm_hub_args a = args_of(j, p);

        pid[p] = start(j, &a);
    }
    close(j->listener);
}

static inline int end_of(pid_t pid)
{
    int status = -1;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static inline void want_all(const struct job *j, const pid_t *pid, int code, const char *what)
{
    for (int p = 0; p < j->n; p++) {
        int got = end_of(pid[p]);

        CHECK(got == code, "%s: process %d of %d: exit code %d, not %d", what, p, j->n, got, code);
    }
}

/* The usual body: one gather, then the end. */
static inline int gather_and_end(struct cm_hub *h, int proc, const struct job *j)
{
    int all[HUB_JOB_MOST];

    if (cm_hub_gather(h, &proc, sizeof(proc), all) != CM_OK || all[j->n - 1] != j->n - 1)
        return 100;
    return (int)cm_hub_finish(h, CM_EXIT_OK);
}

#endif
