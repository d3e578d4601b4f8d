/*
 * Meeting: neighbours find each other; nobody who comes by mistake, or means
 * harm, gets in or holds anybody up; who does not come is named in time.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "forked.h"
#include "sockets.h"
#include "test.h"
#include "transport/meet.h"
#include "transport/shake.h"

static const int64_t long_ns = 10LL * CM_NS_PER_S, short_ns = 200 * CM_NS_PER_MS;
static const unsigned char token[CM_NET_TOKEN] = "sixteen letters";

/* A process of a job over loopback. */
struct member {
    struct cm_net_if lo;
    struct cm_meet_args a;
    struct cm_meet_peer peers[FORKED_MAX];
    int fds[FORKED_MAX][CM_NET_SOCKETS];
    struct cm_net_addr at;
    struct cm_meet_trouble trouble;
};

static bool listen_as(struct member *m, int proc, int version)
{
    memset(m, 0, sizeof(*m));
    m->a = (struct cm_meet_args){.proc = proc, .on = &m->lo, .sockets = 1, .peers = m->peers};
    m->a.until_ns = cm_now_ns() + long_ns;
    memcpy(m->a.token, token, sizeof(token));
    return sockets_loopback(version, &m->lo) &&
           cm_net_listen(&m->lo, (struct cm_net_ports){0, 0}, &m->a.listener, &m->at) == CM_OK;
}

static void add_peer(struct member *m, int proc, struct cm_net_addr at)
{
    int k = m->a.npeers++;

    m->peers[k] = (struct cm_meet_peer){.proc = proc, .host = "here", .addr = at, .fds = m->fds[k]};
}

/* Everybody's number must come out of each socket of the right place. */
static int exchange(const struct member *m)
{
    int wrong = 0;

    for (int p = 0; p < m->a.npeers; p++)
        for (int k = 0; k < m->a.sockets; k++) {
            unsigned char out[2] = {(unsigned char)m->a.proc, (unsigned char)k};

            wrong += send(m->fds[p][k], out, 2, MSG_NOSIGNAL) != 2;
        }
    for (int p = 0; p < m->a.npeers; p++)
        for (int k = 0; k < m->a.sockets; k++) {
            unsigned char in[2] = {255, 255};

            wrong += !sockets_readable(m->fds[p][k]) || recv(m->fds[p][k], in, 2, 0) != 2 ||
                     in[0] != m->peers[p].proc || in[1] != k;
        }
    return wrong;
}

struct mesh {
    int version, sockets;
};

static int join_mesh(struct cm_boot *b, void *arg)
{
    const struct mesh *mesh = arg;
    struct cm_net_addr all[FORKED_MAX];
    struct member m;

    if (!listen_as(&m, b->proc, mesh->version) || b->gather(b, &m.at, sizeof(m.at), all) != CM_OK)
        return 2;
    m.a.sockets = mesh->sockets;
    for (int p = 0; p < b->nprocs; p++)
        if (p != b->proc)
            add_peer(&m, p, all[p]);
    if (cm_meet(&m.a, &m.trouble) != CM_OK)
        return 3;
    return exchange(&m);
}

static void run_mesh(int n, struct mesh mesh)
{
    int status[FORKED_MAX];

    CHECK(forked_run(n, join_mesh, &mesh, status), "%d processes", n);
    for (int p = 0; p < n; p++)
        CHECK(WIFEXITED(status[p]) && WEXITSTATUS(status[p]) == 0,
              "version %d, %d sockets: process %d of %d: 0x%x", mesh.version, mesh.sockets, p, n,
              (unsigned)status[p]);
}

static void test_processes_meet(void)
{
    run_mesh(2, (struct mesh){4, 1});
    run_mesh(5, (struct mesh){4, 3});
}

static void test_processes_meet_over_version_6(void)
{
    struct cm_net_if lo;

    if (sockets_loopback(6, &lo))
        run_mesh(3, (struct mesh){6, 2});
    else
        SKIP("no ::1 here");
}

/* ---- strangers ---- */

/* Process 1 waits for process 0 in a child; the parent plays strangers, then process 0. */
static pid_t start_host(struct member *host)
{
    pid_t pid;

    if (!listen_as(host, 1, 4))
        return -1;
    add_peer(host, 0, (struct cm_net_addr){.version = 4});
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        _exit(cm_meet(&host->a, &host->trouble) != CM_OK ? 1 : exchange(host) != 0 ? 2 : 0);
    close(host->a.listener);
    return pid;
}

/* Meet it as process 0; true if it went well on both sides. */
static bool meet_host(const struct member *host, pid_t pid)
{
    struct member m;
    int status = -1;
    bool good = listen_as(&m, 0, 4);

    add_peer(&m, 1, host->at);
    good = good && cm_meet(&m.a, &m.trouble) == CM_OK && exchange(&m) == 0;
    return waitpid(pid, &status, 0) == pid && good && status == 0;
}

static struct cm_hello good_hello(void)
{
    struct cm_hello h = {.magic = CM_HELLO_MAGIC, .version = CM_NET_VERSION, .to = 1, .sockets = 1};

    memcpy(h.token, token, sizeof(token));
    return h;
}

/* A connection with the host, on which `n` bytes have been sent. */
static int dial_and_say(const struct member *host, const void *bytes, size_t n)
{
    int fd = cm_net_dial(&host->lo, &host->at);
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    if (fd < 0 || poll(&p, 1, 5000) != 1 || send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
        abort();
    return fd;
}

/* Has it hung up, without showing the token? */
static bool hung_up(int fd)
{
    unsigned char in[256];
    ssize_t n = 1, len = 0;

    while (sockets_readable(fd) && (n = recv(fd, in + len, sizeof(in) - (size_t)len, 0)) > 0)
        len += n;
    close(fd);
    return memmem(in, (size_t)len, token, sizeof(token)) == NULL &&
           (n == 0 || (n < 0 && errno == ECONNRESET));
}

static void test_strangers_are_turned_away(void)
{
    static const char http[] = "GET / HTTP/1.1\r\n\r\n";
    struct cm_hello h[6];
    struct member host;
    pid_t pid = start_host(&host);

    for (size_t i = 0; i < CM_LEN(h); i++)
        h[i] = good_hello();
    h[0].token[15] ^= 1;
    h[1].version++;
    h[2].from = 7; /* no neighbour */
    h[3].to = 2;
    h[4].index = 1; /* of one socket */
    h[5].answer = 1;
    CHECK(pid > 0, "fork");
    CHECK(hung_up(dial_and_say(&host, http, sizeof(http))), "http");
    for (size_t i = 0; i < CM_LEN(h); i++)
        CHECK(hung_up(dial_and_say(&host, &h[i], sizeof(h[i]))), "hello %zu", i);
    close(dial_and_say(&host, &h[0], 0));
    close(dial_and_say(&host, &h[0], 20));
    CHECK(meet_host(&host, pid), "the job could not go on");
}

static void test_silent_strangers_hold_nobody_up(void)
{
    enum { CROWD = 100 };
    int fd[CROWD];
    struct cm_hello h = good_hello();
    struct member host;
    pid_t pid = start_host(&host);
    int64_t t;

    for (int i = 0; i < CROWD; i++)
        fd[i] = dial_and_say(&host, &h, i % 2 == 0 ? 0 : 39);
    t = cm_now_ns();
    CHECK(pid > 0 && meet_host(&host, pid), "the job could not go on");
    t = cm_now_ns() - t;
    CHECK(t < 1900 * (int64_t)CM_NS_PER_MS, "it took %.3f s", (double)t / CM_NS_PER_S);
    for (int i = 0; i < CROWD; i++)
        close(fd[i]);
}

static void test_a_slow_stranger_is_shown_out(void)
{
    struct cm_hello h = good_hello();
    struct member host;
    pid_t pid = start_host(&host);
    int fd = dial_and_say(&host, &h, 39);
    int64_t t = cm_now_ns();

    CHECK(hung_up(fd), "it may stay");
    t = cm_now_ns() - t;
    CHECK(t < 4 * (int64_t)CM_NS_PER_S, "it may stay %.3f s", (double)t / CM_NS_PER_S);
    CHECK(pid > 0 && meet_host(&host, pid), "the job could not go on");
}

/* ---- who is not there ---- */

/* What cm_meet says as process 0 about process 1 at `at`. */
static enum cm_status meet_alone(struct cm_net_addr at, int64_t patience_ns, int64_t *took,
                                 const char *why)
{
    struct member m;
    enum cm_status st;

    if (!listen_as(&m, 0, 4))
        abort();
    add_peer(&m, 1, at);
    *took = cm_now_ns();
    m.a.until_ns = *took + patience_ns;
    st = cm_meet(&m.a, &m.trouble);
    *took = cm_now_ns() - *took;
    CHECK(m.trouble.missing == 1 && m.trouble.proc == 1 && m.trouble.dialled &&
              strstr(m.trouble.why, why) != NULL,
          "%d missing, process %d: %s", (int)m.trouble.missing, (int)m.trouble.proc, m.trouble.why);
    CHECK(m.fds[0][0] == -1, "a socket is left over");
    close(m.a.listener);
    return st;
}

static void test_a_closed_port_is_an_error_at_once(void)
{
    struct member gone;
    enum cm_status st;
    int64_t took;

    CHECK(listen_as(&gone, 1, 4), "listen");
    close(gone.a.listener);
    st = meet_alone(gone.at, long_ns, &took, "Connection refused");
    CHECK(st == CM_ESYS && took < long_ns / 2, "status %d after %.3f s", st,
          (double)took / CM_NS_PER_S);
}

static void test_who_never_answers_is_a_timeout(void)
{
    struct member mute;
    enum cm_status st;
    int64_t took;

    CHECK(listen_as(&mute, 1, 4), "listen");
    st = meet_alone(mute.at, short_ns, &took, "no answer within 0.");
    CHECK(st == CM_ETIMEOUT && took >= short_ns && took < 20 * short_ns, "status %d after %.3f s",
          st, (double)took / CM_NS_PER_S);
    close(mute.a.listener);
}

static void test_who_never_dials_is_a_timeout(void)
{
    struct member m;
    enum cm_status st;

    CHECK(listen_as(&m, 1, 4), "listen");
    add_peer(&m, 0, m.at);
    m.a.until_ns = cm_now_ns() + short_ns;
    st = cm_meet(&m.a, &m.trouble);
    CHECK(st == CM_ETIMEOUT && !m.trouble.dialled &&
              strstr(m.trouble.why, "did not connect within") != NULL,
          "status %d: %s", st, m.trouble.why);
    close(m.a.listener);
}

/* Process 1 is there, process 2 is not: 0 and 1 are connected before 0 complains. */
static void test_a_bad_neighbour_keeps_nobody_from_the_others(void)
{
    struct member host, m, gone;
    pid_t pid = start_host(&host);
    enum cm_status st;
    int status = -1;

    CHECK(pid > 0 && listen_as(&gone, 2, 4) && listen_as(&m, 0, 4), "no host");
    close(gone.a.listener);
    add_peer(&m, 2, gone.at);
    add_peer(&m, 1, host.at);
    st = cm_meet(&m.a, &m.trouble);
    CHECK(st == CM_ESYS && m.trouble.missing == 1 && m.trouble.proc == 2,
          "status %d: %d missing, process %d: %s", st, (int)m.trouble.missing, (int)m.trouble.proc,
          m.trouble.why);
    /* It got its connection, and loses it when it uses it: its exchange fails, not its meeting. */
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 2,
          "process 1: %x", status);
    close(m.a.listener);
}

/* Somebody else listens where the neighbour should, and repeats what he hears. */
static void test_an_impostor_is_an_error(void)
{
    struct member other;
    unsigned char in[64];
    enum cm_status st;
    int64_t took;
    pid_t pid;

    CHECK(listen_as(&other, 1, 4), "listen");
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int fd = sockets_readable(other.a.listener) ? accept(other.a.listener, NULL, NULL) : -1;
        ssize_t n = recv(fd, in, sizeof(in), 0);

        send(fd, in, (size_t)n, MSG_NOSIGNAL);
        _exit(n <= 0 || !sockets_readable(fd));
    }
    close(other.a.listener);
    st = meet_alone(other.at, long_ns, &took, "somebody else is there");
    CHECK(st == CM_ESYS && took < long_ns / 2, "status %d after %.3f s", st,
          (double)took / CM_NS_PER_S);
    waitpid(pid, NULL, 0);
}

int main(void)
{
    RUN(test_processes_meet);
    RUN(test_processes_meet_over_version_6);
    RUN(test_strangers_are_turned_away);
    RUN(test_silent_strangers_hold_nobody_up);
    RUN(test_a_slow_stranger_is_shown_out);
    RUN(test_a_closed_port_is_an_error_at_once);
    RUN(test_who_never_answers_is_a_timeout);
    RUN(test_who_never_dials_is_a_timeout);
    RUN(test_a_bad_neighbour_keeps_nobody_from_the_others);
    RUN(test_an_impostor_is_an_error);
    return test_end();
}
