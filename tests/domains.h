/*
 * A job of several domains of memory for tests: forked processes with a segment
 * for each domain, connected over loopback, and their ranks' threads. What the
 * launcher does, without a launcher.
 */
#ifndef CM_TESTS_DOMAINS_H
#define CM_TESTS_DOMAINS_H

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "common/control.h"
#include "common/launch.h"
#include "sockets.h"
#include "test.h"

enum { DOMAINS_PROCS = 8, DOMAINS_RANKS = 16, DOMAINS_LOCAL = 3, DOMAINS_LIFE_S = 30 };

/* Seen by all processes. */
struct domains_stage {
    _Atomic int arrived[DOMAINS_RANKS]; /* for the test */
    _Atomic int wrong;                  /* for the test */
    _Atomic uint32_t status[DOMAINS_RANKS];
    _Atomic uint32_t word[DOMAINS_PROCS]; /* the abort word of each process at its end */
};

struct domains_rank;
typedef enum cm_status domains_body(struct domains_rank *r);

/* How the job is made. Host of domain k: "h<k>". */
struct domains_job {
    int nprocs;
    int of_proc[DOMAINS_PROCS];
    int ranks[DOMAINS_PROCS]; /* of each process; 0: 1 */
    enum cm_proxy_mode mode;
    int64_t timeout_ns, silence_ns;
    domains_body *body;
    int victim;  /* a rank, for the test */
    int variant; /* for the test */
    bool stops;  /* the victim's process stops itself: kill it when the others are gone */
};

/* From one process to eight, with several ranks and several processes in a domain. */
enum { DOMAINS_SHAPES = 6 };

static inline struct domains_job domains_shape(size_t i, domains_body *body)
{
    static const struct domains_job shapes[DOMAINS_SHAPES] = {
        {.nprocs = 1, .of_proc = {0}, .ranks = {3}},
        {.nprocs = 2, .of_proc = {0, 1}},
        {.nprocs = 3, .of_proc = {0, 1, 2}, .ranks = {1, 3, 2}},
        {.nprocs = 4, .of_proc = {0, 1, 0, 1}, .ranks = {2, 1, 1, 3}},
        {.nprocs = 5, .of_proc = {0, 1, 2, 3, 4}, .ranks = {1, 2, 1, 1, 1}},
        {.nprocs = 8, .of_proc = {0, 1, 2, 3, 4, 5, 6, 7}},
    };
    struct domains_job j = shapes[i];

    j.body = body;
    j.timeout_ns = j.silence_ns = 20LL * CM_NS_PER_S;
    return j;
}

struct domains_process {
    const struct domains_job *job;
    struct domains_stage *stage;
    int proc, first_of[DOMAINS_PROCS + 1];
    struct cm_domains domains;
    struct cm_layout layout;
    void *base;
    struct cm_rank_info infos[DOMAINS_RANKS];
    struct cm_control *control;
    struct cm_proxy *proxy;
    struct cm_remote remote;
};

struct domains_rank {
    struct domains_process *p;
    struct cm_waiter waiter;
    struct cm_team team;
    pthread_t thread;
};

static inline int domains_ranks_of(const struct domains_job *j, int proc)
{
    return j->ranks[proc] > 0 ? j->ranks[proc] : 1;
}

static inline int domains_all_ranks(const struct domains_job *j)
{
    int n = 0;

    for (int p = 0; p < j->nprocs; p++)
        n += domains_ranks_of(j, p);
    return n;
}

static inline int domains_process_of(const struct domains_job *j, int rank)
{
    int p = 0;

    for (int end = domains_ranks_of(j, 0); rank >= end; end += domains_ranks_of(j, p))
        p++;
    return p;
}

static inline int domains_count(const struct domains_job *j)
{
    int n = 0;

    for (int p = 0; p < j->nprocs; p++)
        n = j->of_proc[p] >= n ? j->of_proc[p] + 1 : n;
    return n;
}

static inline bool domains_progress(void *arg)
{
    return cm_proxy_progress(((struct domains_process *)arg)->proxy);
}

static inline void domains_doze(void *arg, int64_t ns)
{
    cm_proxy_doze(((struct domains_process *)arg)->proxy, ns);
}

static inline void domains_rest(void *arg)
{
    cm_proxy_rest(((struct domains_process *)arg)->proxy);
}

static inline void domains_survey(void *arg)
{
    cm_control_survey(((struct domains_process *)arg)->control);
}

/* What processes compute alike; of_proc as the job has it. */
static inline void domains_describe(struct domains_process *p, const struct domains_job *j,
                                    int proc)
{
    struct cm_domains *d = &p->domains;

    memset(p, 0, sizeof(*p));
    p->job = j;
    p->proc = proc;
    d->n = domains_count(j);
    d->mine = j->of_proc[proc];
    d->nprocs = j->nprocs;
    d->of_proc = calloc((size_t)j->nprocs, sizeof(*d->of_proc));
    d->leader = calloc((size_t)d->n, sizeof(*d->leader));
    if (d->of_proc == NULL || d->leader == NULL)
        abort();
    for (int q = j->nprocs - 1; q >= 0; q--) {
        d->of_proc[q] = j->of_proc[q];
        d->leader[j->of_proc[q]] = q;
    }
    for (int q = 0; q < j->nprocs; q++)
        p->first_of[q + 1] = p->first_of[q] + domains_ranks_of(j, q);
    if (cm_domains_add_ranks(d, p->first_of) != CM_OK)
        abort();
    for (int q = 0; q < j->nprocs; q++)
        for (int r = p->first_of[q]; r < p->first_of[q + 1]; r++) {
            p->infos[r] = (struct cm_rank_info){.rank = r, .proc = q, .pid = 1000 + q};
            snprintf(p->infos[r].host, sizeof(p->infos[r].host), "h%d", j->of_proc[q]);
        }
    p->layout = (struct cm_layout){.nranks = d->nranks,
                                   .local_of = d->local_of,
                                   .nlocal = cm_domains_local(d),
                                   .channels = 1,
                                   .depth = 2,
                                   .slot_bytes = 64};
    if (cm_layout_fill(&p->layout) != CM_OK)
        abort();
}

/* Two ends of each connection between processes of different domains. */
struct domains_cables {
    int fd[DOMAINS_PROCS][DOMAINS_PROCS]; /* [p][q]: p's end of the one with q; -1: none */
};

static inline void domains_connect(const struct domains_job *j, struct domains_cables *c)
{
    memset(c, -1, sizeof(*c));
    for (int p = 0; p < j->nprocs; p++)
        for (int q = p + 1; q < j->nprocs; q++) {
            int pair[2];

            if (j->of_proc[p] == j->of_proc[q])
                continue;
            if (!sockets_pair(pair))
                abort();
            c->fd[p][q] = pair[0];
            c->fd[q][p] = pair[1];
        }
}

static inline void domains_open_proxy(struct domains_process *p, struct domains_cables *c)
{
    struct cm_proxy_peer peers[DOMAINS_PROCS];
    struct cm_proxy_args a = {.proc = p->proc,
                              .sockets = 1,
                              .depth = p->layout.depth,
                              .slot_bytes = p->layout.slot_bytes,
                              .peers = peers,
                              .mode = p->job->mode,
                              .spins = 2,
                              .crowded = true,
                              .silence_ns = p->job->silence_ns,
                              .events = cm_control_events(p->control)};

    for (int q = 0; q < p->job->nprocs; q++) {
        for (int other = 0; other < p->job->nprocs && q != p->proc; other++)
            if (c->fd[q][other] >= 0)
                close(c->fd[q][other]);
        if (c->fd[p->proc][q] >= 0)
            peers[a.npeers++] = (struct cm_proxy_peer){
                .proc = q, .host = p->infos[p->first_of[q]].host, .fds = &c->fd[p->proc][q]};
    }
    if (cm_proxy_open(&a, &p->proxy) != CM_OK)
        abort();
    cm_control_attach(p->control, p->proxy);
}

static inline void domains_join(struct domains_rank *r, struct domains_process *p, int rank)
{
    const struct cm_domains *d = &p->domains;
    bool several = d->n > 1;

    r->p = p;
    r->waiter = (struct cm_waiter){.rank = rank,
                                   .nranks = d->nranks,
                                   .spins = 20,
                                   .timeout_ns = p->job->timeout_ns,
                                   .abort = &((struct cm_shared *)p->base)->abort,
                                   .diag = &cm_rank_shared(p->base, &p->layout, rank)->diag,
                                   .diag_of = cm_waiter_diag,
                                   .base = p->base,
                                   .layout = &p->layout,
                                   .remote = several ? &p->remote : NULL};
    r->waiter.diag->waits_for = -1;
    r->waiter.diag->phase = CM_AT_TIMED;
    r->waiter.diag->pid = (uint32_t)p->infos[rank].pid;
    r->waiter.diag->proc = p->infos[rank].proc;
    memcpy(r->waiter.diag->host, p->infos[rank].host, sizeof(r->waiter.diag->host));
    r->team = (struct cm_team){
        .rank = rank,
        .n = d->nranks,
        .waiter = &r->waiter,
        .base = p->base,
        .layout = &p->layout,
        .control = several && rank == d->ranks[d->first[d->mine]] ? p->control : NULL};
}

static inline void *domains_run_rank(void *arg)
{
    struct domains_rank *r = arg;

    atomic_store(&r->p->stage->status[r->waiter.rank], (uint32_t)r->p->job->body(r));
    return NULL;
}

static inline void domains_run_ranks(struct domains_process *p)
{
    struct domains_rank r[DOMAINS_LOCAL];
    int first = p->first_of[p->proc], n = p->first_of[p->proc + 1] - first;

    for (int i = 0; i < n; i++)
        domains_join(&r[i], p, first + i);
    for (int i = 0; i < n; i++)
        if (pthread_create(&r[i].thread, NULL, domains_run_rank, &r[i]) != 0)
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(r[i].thread, NULL);
}

/* A process from its first to its last moment. */
static inline void domains_live(struct domains_process *p, struct domains_cables *c)
{
    const struct cm_control_args a = {.proc = p->proc,
                                      .domains = &p->domains,
                                      .infos = p->infos,
                                      .base = p->base,
                                      .layout = &p->layout,
                                      .timeout_ns = p->job->timeout_ns};
    const struct cm_abort *word = &((struct cm_shared *)p->base)->abort;
    int64_t until = 0;

    alarm(DOMAINS_LIFE_S);
    if (cm_control_open(&a, &p->control) != CM_OK)
        abort();
    p->remote = (struct cm_remote){.arg = p,
                                   .progress = domains_progress,
                                   .doze = domains_doze,
                                   .rest = domains_rest,
                                   .survey = domains_survey};
    domains_open_proxy(p, c);
    domains_run_ranks(p);
    if (cm_abort_status(word) == CM_OK)
        until = cm_now_ns() + DOMAINS_LIFE_S * (int64_t)CM_NS_PER_S;
    else
        cm_control_settle(p->control);
    cm_control_attach(p->control, NULL);
    (void)!cm_proxy_close(p->proxy, until);
    cm_control_close(p->control);
    atomic_store(&p->stage->word[p->proc], cm_abort_status(word));
    cm_domains_free(&p->domains);
}

static inline void *domains_shared_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);

    if (p == MAP_FAILED)
        abort();
    return p;
}

/* Run it. Returns what was seen by all; munmap() it. */
static inline struct domains_stage *domains_run(const struct domains_job *j,
                                                int status[DOMAINS_PROCS])
{
    struct domains_stage *stage = domains_shared_memory(sizeof(*stage));
    int stopped = j->stops ? domains_process_of(j, j->victim) : -1;
    void *base[DOMAINS_PROCS] = {NULL};
    size_t bytes[DOMAINS_PROCS];
    struct domains_cables cables;
    pid_t pid[DOMAINS_PROCS];

    domains_connect(j, &cables);
    fflush(NULL);
    for (int p = 0; p < j->nprocs; p++) {
        struct domains_process me;
        int domain = j->of_proc[p];

        domains_describe(&me, j, p);
        bytes[domain] = me.layout.arenas_at;
        if (base[domain] == NULL)
            base[domain] = domains_shared_memory(bytes[domain]);
        me.base = base[domain];
        me.stage = stage;
        pid[p] = fork();
        if (pid[p] == 0) {
            domains_live(&me, &cables);
            fflush(NULL);
            _exit(0);
        }
        cm_domains_free(&me.domains);
    }
    for (int p = 0; p < j->nprocs; p++)
        for (int q = 0; q < j->nprocs; q++)
            if (cables.fd[p][q] >= 0)
                close(cables.fd[p][q]);
    for (int p = 0; p < j->nprocs; p++)
        if (p != stopped)
            waitpid(pid[p], &status[p], 0);
    if (stopped >= 0) {
        kill(pid[stopped], SIGKILL);
        waitpid(pid[stopped], &status[stopped], 0);
    }
    for (int k = 0; k < domains_count(j); k++)
        munmap(base[k], bytes[k]);
    return stage;
}

#endif
