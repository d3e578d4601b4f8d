/*
 * Forming the star: processes come in any order; nobody who comes by mistake
 * gets in or holds anybody up; who is missing or of another opinion is named.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "capture.h"
#include "hub_job.h"
#include "transport/shake.h"

/* ---- who is missing ---- */

static void test_who_does_not_come_is_named(void)
{
    static const struct {
        const char *missing, *says;
    } rows[] = {{"00100", "rank 2\n"}, {"01110", "ranks 1-3\n"}, {"01011", "ranks 1, 3-4\n"}};

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct capture c;
        struct job j;
        pid_t pid[5];

        CHECK(prepare(&j, 5), "no listener");
        j.meet_ns = second_ns / 2;
        capture_begin(&c, STDERR_FILENO);
        for (int p = 0; p < j.n; p++) {
            struct cm_hub_args a = args_of(&j, p);

            pid[p] = rows[i].missing[p] == '1' ? -1 : start(&j, &a);
        }
        close(j.listener);
        for (int p = 0; p < j.n; p++)
            CHECK(pid[p] < 0 || end_of(pid[p]) == CM_EXIT_TIMEOUT, "row %zu, process %d", i, p);
        capture_end(&c);
        CHECK(strstr(c.text, rows[i].says) != NULL &&
                  strchr(c.text, '\n') == c.text + strlen(c.text) - 1,
              "row %zu: %s", i, c.text);
    }
}

static void test_process_0_may_come_late(void)
{
    struct cm_hub_args a[2];
    struct job j;
    pid_t pid[2];

    CHECK(prepare(&j, 2), "no listener");
    close(j.listener); /* the port stays known, and nobody is there */
    j.body = gather_and_end;
    a[0] = args_of(&j, 0);
    a[1] = args_of(&j, 1);
    pid[1] = start(&j, &a[1]);
    poll(NULL, 0, 200);
    CHECK(cm_net_listen(&j.lo, (struct cm_net_ports){j.at.port, j.at.port}, &j.listener, &j.at) ==
              CM_OK,
          "port %d is taken", j.at.port);
    pid[0] = start(&j, &a[0]);
    close(j.listener);
    want_all(&j, pid, 0, "late");
}

static void test_without_process_0(void)
{
    struct capture c;
    struct cm_hub_args a;
    struct job j;
    pid_t pid;
    int code;

    CHECK(prepare(&j, 2), "no listener");
    close(j.listener);
    j.meet_ns = second_ns / 2;
    a = args_of(&j, 1);
    capture_begin(&c, STDERR_FILENO);
    pid = start(&j, &a);
    code = end_of(pid);
    capture_end(&c);
    CHECK(code == CM_EXIT_TIMEOUT && strstr(c.text, "Connection refused") != NULL &&
              strstr(c.text, "looked for by a test") != NULL,
          "exit code %d: %s", code, c.text);
}

static void test_two_opinions_end_the_job(void)
{
    static const struct {
        int proc, nprocs; /* of the odd one in a world of 3 */
        const char *says;
    } rows[] = {
        {1, 3, "two processes have RANK=1"},
        {2, 4, "WORLD_SIZE=4 of rank 2 (host here) differs from WORLD_SIZE=3 of rank 0"},
        {3, 3, "RANK=3, which is not from 1 to 2"},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        struct cm_hub_args a[3];
        struct capture c;
        struct job j;
        pid_t pid[3];

        CHECK(prepare(&j, 3), "no listener");
        for (int p = 0; p < 3; p++)
            a[p] = args_of(&j, p);
        a[2].proc = rows[i].proc;
        a[2].nprocs = rows[i].nprocs;
        capture_begin(&c, STDERR_FILENO);
        for (int p = 0; p < 3; p++)
            pid[p] = start(&j, &a[p]);
        close(j.listener);
        want_all(&j, pid, CM_EXIT_USAGE, rows[i].says);
        capture_end(&c);
        CHECK(strstr(c.text, rows[i].says) != NULL &&
                  strchr(c.text, '\n') == c.text + strlen(c.text) - 1,
              "row %zu: %s", i, c.text);
    }
}

/* Who has joined and dies while others are awaited ends the job at once. */
static void test_a_death_while_others_are_awaited(void)
{
    struct cm_hub_args a[3];
    struct capture c;
    struct job j;
    pid_t pid[3];
    int64_t t = cm_now_ns();

    CHECK(prepare(&j, 3), "no listener");
    capture_begin(&c, STDERR_FILENO);
    for (int p = 0; p < 2; p++) {
        a[p] = args_of(&j, p);
        pid[p] = start(&j, &a[p]);
    }
    close(j.listener);
    poll(NULL, 0, 200);
    kill(pid[1], SIGKILL);
    end_of(pid[1]);
    CHECK(end_of(pid[0]) == CM_EXIT_SYSTEM, "exit code");
    capture_end(&c);
    CHECK(cm_now_ns() - t < j.meet_ns / 2, "not at once");
    CHECK(strstr(c.text, "rank 1 (host here) died while rank 2 was awaited") != NULL, "%s", c.text);
}

/* ---- strangers ---- */

static int dial_and_say(const struct job *j, const void *bytes, size_t n)
{
    int fd = cm_net_dial(&j->lo, &j->at);
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    if (fd < 0 || poll(&p, 1, 5000) != 1 || send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
        abort();
    return fd;
}

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

/* Process 0 waits in a child while the parent plays strangers, then the other process. */
static pid_t start_host(struct job *j)
{
    struct cm_hub_args a;

    if (!prepare(j, 2))
        abort();
    j->body = gather_and_end;
    a = args_of(j, 0);
    return start(j, &a);
}

static void want_job(struct job *j, pid_t host)
{
    struct cm_hub_args a = args_of(j, 1);
    int code = member(j, &a);

    CHECK(code == 0, "process 1: exit code %d", code);
    code = end_of(host);
    CHECK(code == 0, "process 0: exit code %d", code);
}

static void test_strangers_are_turned_away(void)
{
    static const char http[] = "GET / HTTP/1.1\r\n\r\n";
    struct cm_hello h = {
        .magic = CM_HELLO_MAGIC, .version = CM_NET_VERSION, .from = 1, .sockets = 1};
    struct capture c;
    struct job j;
    pid_t host;

    capture_begin(&c, STDERR_FILENO);
    host = start_host(&j);
    memcpy(h.token, token, sizeof(token));
    CHECK(hung_up(dial_and_say(&j, http, sizeof(http))), "http");
    h.token[3] ^= 1;
    CHECK(hung_up(dial_and_say(&j, &h, sizeof(h))), "another token");
    close(dial_and_say(&j, &h, 0));
    close(dial_and_say(&j, &h, 20));
    want_job(&j, host);
    capture_end(&c);
    CHECK(strstr(c.text, "dropped a connection from 127.0.0.1:") != NULL &&
              strstr(c.text, "another job's token") != NULL,
          "%s", c.text);
}

static void test_silent_strangers_hold_nobody_up(void)
{
    enum { CROWD = 150 };
    struct cm_hello h = {
        .magic = CM_HELLO_MAGIC, .version = CM_NET_VERSION, .from = 1, .sockets = 1};
    int fd[CROWD];
    struct job j;
    pid_t host = start_host(&j);
    int64_t t;

    memcpy(h.token, token, sizeof(token));
    for (int i = 0; i < CROWD; i++) /* some have the token, and do not join */
        fd[i] = dial_and_say(&j, &h, i % 3 == 0 ? 0 : i % 3 == 1 ? 39 : sizeof(h));
    t = cm_now_ns();
    want_job(&j, host);
    t = cm_now_ns() - t;
    CHECK(t < 4 * second_ns, "it took %.3f s", (double)t / CM_NS_PER_S);
    for (int i = 0; i < CROWD; i++)
        close(fd[i]);
}

static void test_a_slow_stranger_is_shown_out(void)
{
    struct cm_hello h = {
        .magic = CM_HELLO_MAGIC, .version = CM_NET_VERSION, .from = 1, .sockets = 1};
    struct job j;
    pid_t host = start_host(&j);
    int64_t t = cm_now_ns();

    CHECK(hung_up(dial_and_say(&j, &h, 39)), "it may stay");
    t = cm_now_ns() - t;
    CHECK(t < 4 * second_ns, "it may stay %.3f s", (double)t / CM_NS_PER_S);
    want_job(&j, host);
}

/* ---- many machines ---- */

/* A failure is told once on each machine. */
static void test_each_machine_is_told_once(void)
{
    struct cm_hub_args a[5];
    struct capture c;
    struct job j;
    pid_t pid[5];
    int lines = 0;

    CHECK(prepare(&j, 6), "no listener");
    j.meet_ns = second_ns / 2;
    capture_begin(&c, STDERR_FILENO);
    for (int p = 0; p < 5; p++) {
        a[p] = args_of(&j, p);
        a[p].machine = (uint64_t)p / 2;
        pid[p] = start(&j, &a[p]);
    }
    close(j.listener);
    for (int p = 0; p < 5; p++)
        CHECK(end_of(pid[p]) == CM_EXIT_TIMEOUT, "process %d", p);
    capture_end(&c);
    for (const char *at = c.text; (at = strstr(at, "s: rank 5\n")) != NULL; at++)
        lines++;
    CHECK(lines == 3, "%d messages: %s", lines, c.text);
}

int main(void)
{
    RUN(test_who_does_not_come_is_named);
    RUN(test_process_0_may_come_late);
    RUN(test_without_process_0);
    RUN(test_two_opinions_end_the_job);
    RUN(test_a_death_while_others_are_awaited);
    RUN(test_strangers_are_turned_away);
    RUN(test_silent_strangers_hold_nobody_up);
    RUN(test_a_slow_stranger_is_shown_out);
    RUN(test_each_machine_is_told_once);
    return test_end();
}
