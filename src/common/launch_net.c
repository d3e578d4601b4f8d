/*
 * The launcher of processes that something else than MPI started: they find
 * process 0 by the environment or by a file, and gather through it over TCP.
 *
 * Deadlines. All must have come a little before -T, or 60 s, is over: a tenth,
 * three seconds at most. A gather that takes longer than half of -T says whom
 * it waits for; the watchdog ends it, which knows how long each phase of the
 * set-up may take.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "common/interface.h"
#include "common/launch.h"
#include "common/rendezvous.h"

enum { SETUP_S = 60, TEARDOWN_S = 30, RESOLVE_S = 10, ID_BYTES = 40, HOST_BYTES = 64 };
static const char file_prefix[] = "file:";

/* boot.ctx */
struct net {
    struct cm_hub *hub; /* NULL: one process */
    char where[CM_PLACE_TEXT];
    char host[HOST_BYTES]; /* my name */
};

/* What a process needs until all have met. */
struct start {
    const struct cm_opts_net *opts;
    struct cm_identity me;
    struct cm_hub_args args;
    struct net *net;
};

/* ---- who and how long ---- */

/* Processes whose messages end up in one place: of one host, and one container. */
static uint64_t machine_id(const char *host)
{
    char text[ID_BYTES + HOST_BYTES] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (f != NULL && fgets(text, ID_BYTES, f) == NULL)
        text[0] = '\0';
    if (f != NULL)
        fclose(f);
    strcat(text, host);
    return cm_hash(CM_HASH_START, text, strlen(text));
}

static void fill_args(struct start *s, double timeout_s)
{
    double setup_s = timeout_s > 0 ? timeout_s : SETUP_S;
    double teardown_s = timeout_s > 0 ? timeout_s : TEARDOWN_S;
    int64_t setup_ns = (int64_t)(setup_s * CM_NS_PER_S);
    int64_t margin = setup_ns / 10 < 3LL * CM_NS_PER_S ? setup_ns / 10 : 3LL * CM_NS_PER_S;
    int64_t longest = SETUP_S * (int64_t)CM_NS_PER_S;
    char *host = s->net->host;

    if (gethostname(host, sizeof(s->net->host) - 1) != 0 || host[0] == '\0')
        memcpy(host, "unknown", sizeof("unknown"));
    host[strcspn(host, ".")] = '\0';
    s->args = (struct cm_hub_args){
        .proc = s->me.rank,
        .nprocs = s->me.size,
        .rank_name = s->me.rank_name,
        .size_name = s->me.size_name,
        .host = host,
        .machine = machine_id(host),
        /* process 0 first: it knows who is missing */
        .meet_ns = setup_ns - (s->me.rank == 0 ? margin : margin / 2),
        .note_ns = setup_ns / 2,
        .patience_ns = (setup_ns > longest ? setup_ns : longest) * 3 / 2,
        .end_ns = (int64_t)(teardown_s * CM_NS_PER_S * 9 / 20),
    };
}

/* ---- by the environment ---- */

static enum cm_status meet_by_env(struct start *s)
{
    int64_t limit = RESOLVE_S * (int64_t)CM_NS_PER_S;
    struct cm_hub_finder finder = {.next = cm_place_next, .describe = cm_place_describe};
    struct cm_net_addr at;
    struct cm_place place;
    int listener = -1;
    enum cm_status st = cm_place_read(&place);

    if (st != CM_OK)
        return st;
    cm_rendezvous_token(s->args.token);
    st = cm_place_resolve(&place, s->args.token,
                          limit < s->args.meet_ns ? limit : s->args.meet_ns / 2);
    if (st != CM_OK)
        return st;
    snprintf(s->net->where, sizeof(s->net->where), "%s:%u", place.host, (unsigned)place.port);
    finder.arg = &place;
    if (s->me.rank != 0)
        return cm_hub_join(&s->args, &finder, &s->net->hub);
    st = cm_place_listen(&place, &listener, &at);
    if (st != CM_OK)
        return st;
    st = cm_hub_host(&s->args, listener, s->net->where, &s->net->hub);
    close(listener);
    return st;
}

/* ---- by a file ---- */

/* On the interface that data will take. */
static enum cm_status listen_for_file(const struct start *s, int *listener,
                                      struct cm_hub_target *at)
{
    struct cm_net_ports ports = {0, 0};
    struct cm_net_if on;
    enum cm_status st = CM_OK;

    if (s->opts->ports != NULL)
        st = cm_net_parse_ports(s->opts->ports, &ports);
    if (st == CM_OK)
        st = cm_interface_choose(s->opts, &on);
    if (st == CM_OK)
        at->scope = on.index;
    return st == CM_OK ? cm_net_listen(&on, ports, listener, &at->addr) : st;
}

static enum cm_status host_by_file(struct start *s, const char *path)
{
    struct cm_hub_target here = {.scope = 0};
    char at[CM_NET_TEXT];
    int listener = -1;
    enum cm_status st = listen_for_file(s, &listener, &here);

    if (st != CM_OK)
        return st;
    st = CM_SYS(getrandom(here.token, sizeof(here.token), 0) == (ssize_t)sizeof(here.token),
                "getrandom");
    memcpy(s->args.token, here.token, sizeof(here.token));
    if (st == CM_OK)
        st = cm_meeting_publish(path, &here);
    if (st == CM_OK) {
        snprintf(s->net->where, sizeof(s->net->where), "%s", cm_net_format(&here.addr, at));
        st = cm_hub_host(&s->args, listener, s->net->where, &s->net->hub);
        cm_meeting_withdraw(path, &here);
    }
    close(listener);
    return st;
}

static enum cm_status join_by_file(struct start *s, const char *path)
{
    struct cm_meeting_file file = {.path = path};
    struct cm_hub_finder finder = {&file, cm_meeting_next, cm_meeting_describe};
    struct cm_net_if on;
    enum cm_status st = cm_interface_choose(s->opts, &on);

    if (st != CM_OK)
        return st;
    file.scope = on.index;
    snprintf(s->net->where, sizeof(s->net->where), "file:%s", path);
    return cm_hub_join(&s->args, &finder, &s->net->hub);
}

static enum cm_status meet_by_file(struct start *s, const char *path)
{
    return s->me.rank == 0 ? host_by_file(s, path) : join_by_file(s, path);
}

/* ---- the launcher ---- */

static enum cm_status net_gather(const struct cm_boot *b, const void *mine, size_t bytes, void *all)
{
    const struct net *net = b->ctx;

    if (net->hub != NULL)
        return cm_hub_gather(net->hub, mine, bytes, all);
    memcpy(all, mine, bytes);
    return CM_OK;
}

static void free_net(struct net *net)
{
    cm_hub_close(net->hub);
    free(net);
}

static enum cm_status meet(struct start *s)
{
    const char *how = s->opts->rendezvous;
    bool by_file = how != NULL && strncmp(how, file_prefix, strlen(file_prefix)) == 0;

    if (s->me.size == 1)
        return CM_OK;
    return by_file ? meet_by_file(s, how + strlen(file_prefix)) : meet_by_env(s);
}

static enum cm_status net_start(int *argc, char ***argv, const struct cm_opts *o,
                                struct cm_boot *out)
{
    struct start s = {.opts = &o->net};
    enum cm_status st = cm_rendezvous_whoami(&s.me);

    (void)argc;
    (void)argv;
    if (st != CM_OK)
        return st;
    s.net = calloc(1, sizeof(*s.net));
    if (s.net == NULL)
        return CM_FAIL(CM_ENOMEM, "no memory to meet the other processes");
    fill_args(&s, o->run.timeout_s);
    st = meet(&s);
    if (st != CM_OK) {
        free_net(s.net);
        return st;
    }
    *out = (struct cm_boot){
        .proc = s.me.rank, .nprocs = s.me.size, .ctx = s.net, .gather = net_gather};
    return CM_OK;
}

static enum cm_exit net_finish(struct cm_boot *b, enum cm_exit code)
{
    struct net *net = b->ctx;

    if (net->hub != NULL)
        code = cm_hub_finish(net->hub, code);
    free_net(net);
    return code;
}

static void net_kill(struct cm_boot *b, enum cm_exit code)
{
    struct net *net = b->ctx;

    fflush(NULL);
    if (net->hub != NULL)
        cm_hub_kill(net->hub, code);
    _exit((int)code);
}

static bool net_library(const struct cm_boot *b, char *buf, size_t size)
{
    const struct net *net = b->ctx;

    if (net->hub != NULL)
        snprintf(buf, size, "not used (rendezvous at %s)", net->where);
    return net->hub != NULL;
}

const struct cm_launcher cm_launcher_net = {
    .name = "env",
    .start = net_start,
    .finish = net_finish,
    .kill = net_kill,
    .library = net_library,
};
