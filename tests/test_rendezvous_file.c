/*
 * Start-up by a file that process 0 leaves: it appears whole and goes again,
 * an old one is told from one in use, and nobody else's file is touched.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture.h"
#include "common/rendezvous.h"
#include "sockets.h"
#include "test.h"

static char folder[80];

static const char *path_of(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static struct cm_hub_target some_target(struct cm_net_addr at, int seed)
{
    struct cm_hub_target t = {.addr = at};

    for (int i = 0; i < CM_NET_TOKEN; i++)
        t.token[i] = (unsigned char)(seed * 17 + i * 13);
    return t;
}

/* A port of loopback where nobody listens. */
static struct cm_net_addr closed_port(void)
{
    struct cm_net_if lo;
    struct cm_net_addr at = {.version = 4};
    int fd = -1;

    if (sockets_loopback(4, &lo) &&
        cm_net_listen(&lo, (struct cm_net_ports){0, 0}, &fd, &at) == CM_OK)
        close(fd);
    return at;
}

static bool reads(const char *path, const struct cm_hub_target *want)
{
    struct cm_meeting_file f = {.path = path};
    struct cm_hub_target t;

    return cm_meeting_next(&f, &t) && memcmp(&t.addr, &want->addr, sizeof(t.addr)) == 0 &&
           memcmp(t.token, want->token, sizeof(t.token)) == 0;
}

static void test_a_file_comes_and_goes(void)
{
    char path[128];
    struct cm_hub_target four = some_target(closed_port(), 1), six = four;
    struct stat s;

    path_of("plain", path);
    CHECK(cm_meeting_publish(path, &four) == CM_OK && reads(path, &four), "not there");
    CHECK(stat(path, &s) == 0 && (s.st_mode & 0777) == 0600, "mode %o", (unsigned)s.st_mode);
    cm_meeting_withdraw(path, &four);
    CHECK(access(path, F_OK) != 0, "still there");
    six.addr.version = 6;
    memset(six.addr.ip, 0xfd, sizeof(six.addr.ip));
    CHECK(cm_meeting_publish(path, &six) == CM_OK && reads(path, &six), "version 6");
    cm_meeting_withdraw(path, &six);
}

static void test_a_file_left_over_is_replaced(void)
{
    char path[128];
    struct cm_hub_target old = some_target(closed_port(), 1), new = some_target(old.addr, 2);
    struct capture c;

    path_of("old", path);
    CHECK(cm_meeting_publish(path, &old) == CM_OK, "first");
    capture_begin(&c, STDERR_FILENO);
    CHECK(cm_meeting_publish(path, &new) == CM_OK && reads(path, &new), "second");
    cm_meeting_withdraw(path, &old);
    CHECK(reads(path, &new), "the older job took it away");
    capture_end(&c);
    CHECK(strstr(c.text, "left over") != NULL && strstr(c.text, "was replaced") != NULL, "%s",
          c.text);
    cm_meeting_withdraw(path, &new);
}

/* A process 0 that waits there keeps its file. */
static void test_a_file_in_use_is_refused(void)
{
    char path[128];
    struct cm_hub_args a = {.nprocs = 2,
                            .rank_name = "RANK",
                            .size_name = "WORLD_SIZE",
                            .host = "here",
                            .meet_ns = 10LL * CM_NS_PER_S};
    struct cm_hub_target t = {.scope = 0};
    struct cm_net_if lo;
    struct cm_hub *h;
    struct capture c;
    int listener = -1;
    pid_t pid;

    path_of("busy", path);
    CHECK(sockets_loopback(4, &lo) &&
              cm_net_listen(&lo, (struct cm_net_ports){0, 0}, &listener, &t.addr) == CM_OK,
          "no listener");
    t = some_target(t.addr, 3);
    memcpy(a.token, t.token, sizeof(a.token));
    CHECK(cm_meeting_publish(path, &t) == CM_OK, "publish");
    capture_begin(&c, STDERR_FILENO);
    pid = fork();
    if (pid == 0)
        _exit(cm_hub_host(&a, listener, "here", &h) != CM_OK);
    close(listener);
    CHECK(cm_meeting_publish(path, &t) == CM_EINVAL, "not refused");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    capture_end(&c);
    CHECK(strstr(c.text, "another job, or another process with rank 0, waits at") != NULL, "%s",
          c.text);
    CHECK(cm_meeting_publish(path, &t) == CM_OK, "refused when nobody waits");
    cm_meeting_withdraw(path, &t);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}

static void test_other_files_are_left_alone(void)
{
    static const char *const texts[] = {
        "",
        "my thesis\n",
        "collmark-rendezvous 1 4 127.0.0.1 99999 00112233445566778899aabbccddeeff\n",
        "collmark-rendezvous 1 4 127.0.0.1 80 00112233445566778899aabbccddeef\n",
        "collmark-rendezvous 1 4 127.0.0.1 80 00112233445566778899aabbccddeeff0\n",
        "collmark-rendezvous 1 5 127.0.0.1 80 00112233445566778899aabbccddeeff\n",
        "collmark-rendezvous 1 6 127.0.0.1 80 00112233445566778899aabbccddeeff\n",
        "collmark-rendezvous 2 4 127.0.0.1 80 00112233445566778899aabbccddeeff\n",
        "collmark-rendezvous 1 4 127.0.0.1 80 00112233445566778899aabbccddeeff",
    };
    char path[128], other[128], why[CM_PLACE_TEXT];
    struct cm_hub_target t = some_target(closed_port(), 4), got;
    struct cm_meeting_file f = {.path = path};
    struct capture c;

    path_of("foreign", path);
    path_of("link", other);
    capture_begin(&c, STDERR_FILENO);
    for (size_t i = 0; i < CM_LEN(texts); i++) {
        write_text(path, texts[i]);
        CHECK(cm_meeting_publish(path, &t) == CM_EINVAL, "text %zu: replaced", i);
        CHECK(!cm_meeting_next(&f, &got), "text %zu: taken", i);
    }
    cm_meeting_describe(&f, why, sizeof(why));
    CHECK(strstr(why, "no rendezvous file") != NULL, "%s", why);
    CHECK(symlink(path, other) == 0 && cm_meeting_publish(other, &t) == CM_EINVAL, "link");
    CHECK(cm_meeting_publish(folder, &t) == CM_EINVAL, "folder");
    unlink(other);
    unlink(path);
    CHECK(!cm_meeting_next(&f, &got), "nothing was taken");
    cm_meeting_describe(&f, why, sizeof(why));
    CHECK(strstr(why, "process 0 has not come") != NULL, "%s", why);
    CHECK(cm_meeting_publish("/nowhere/at/all", &t) == CM_ESYS, "no such folder");
    capture_end(&c);
    CHECK(strstr(c.text, "/nowhere/at/all: No such file") != NULL, "%s", c.text);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, sizeof(folder), "%.50s/rendezvous.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL)
        abort();
    RUN(test_a_file_comes_and_goes);
    RUN(test_a_file_left_over_is_replaced);
    RUN(test_a_file_in_use_is_refused);
    RUN(test_other_files_are_left_alone);
    rmdir(folder);
    return test_end();
}
