/*
 * Every way a neighbour of the proxy can fail: it dies, stops, hangs up, or
 * sends what it must not. Each is one loss, with the right status, in time.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "proxied.h"
#include "test.h"
#include "transport/frame.h"

static const int64_t long_ns = 20LL * CM_NS_PER_S, silence_ns = 300 * CM_NS_PER_MS;

static struct proxied usual(void)
{
    return proxied_usual(long_ns);
}

/* Which loss is reported within five seconds. */
static enum cm_status await_loss(struct proxied_side *s)
{
    int64_t until = proxied_soon();

    while (atomic_load(&s->lost) == 0 && cm_now_ns() < until) {
        cm_proxy_progress(s->proxy);
        sched_yield();
    }
    return atomic_load(&s->lost) != 0 ? (enum cm_status)(atomic_load(&s->lost) - 1) : CM_OK;
}

static void test_an_end_without_a_word_is_a_death(void)
{
    struct proxied how = usual();
    struct proxied_side s[2];
    enum cm_status st;

    CHECK(proxied_pair(s, &how), "sockets");
    proxied_close(&s[1], 0);
    st = await_loss(&s[0]);
    CHECK(st == CM_ESYS && cm_proxy_status(s[0].proxy) == CM_ESYS, "status %d", st);
    CHECK(cm_proxy_send(s[0].proxy, 1, 0, NULL, 0) == CM_EABORT, "a message to the dead");
    CHECK(proxied_close(&s[0], proxied_soon()) == CM_ESYS, "close");
}

/* A neighbour in a process of its own gets a signal. */
static void signal_neighbour(int number, enum cm_proxy_mode mode, enum cm_status want)
{
    struct proxied how = usual();
    struct proxied_side s;
    enum cm_status st;
    int64_t took;
    int fd[2];
    pid_t pid;

    how.silence_ns = silence_ns;
    how.mode[0] = mode;
    CHECK(sockets_pair(fd), "sockets");
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(fd[0]);
        if (proxied_open(&s, &how, 1, &fd[1], NULL) == CM_OK && proxied_put(&s, 0))
            cm_proxy_progress(s.proxy);
        for (;;)
            pause();
    }
    close(fd[1]);
    CHECK(proxied_open(&s, &how, 0, &fd[0], NULL) == CM_OK, "open");
    for (int64_t until = proxied_soon(); proxied_get(&s, 0) == 0 && cm_now_ns() < until;)
        cm_proxy_progress(s.proxy);
    CHECK(atomic_load(&s.lost) == 0, "lost too early");
    took = cm_now_ns();
    kill(pid, number);
    st = await_loss(&s);
    took = cm_now_ns() - took;
    CHECK(st == want, "signal %d, mode %d: status %d, want %d", number, mode, st, want);
    CHECK(number == SIGKILL || took >= silence_ns / 2, "signal %d: after %.3f s", number,
          (double)took / CM_NS_PER_S);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    proxied_close(&s, 0);
}

static void test_a_killed_neighbour(void)
{
    signal_neighbour(SIGKILL, CM_PROXY_THREAD, CM_ESYS);
    signal_neighbour(SIGKILL, CM_PROXY_INLINE, CM_ESYS);
}

static void test_a_stopped_neighbour(void)
{
    signal_neighbour(SIGSTOP, CM_PROXY_THREAD, CM_ETIMEOUT);
    signal_neighbour(SIGSTOP, CM_PROXY_INLINE, CM_ETIMEOUT);
}

/* Nobody calls an inline proxy for longer than the silence that is a loss: it lives on. */
static void test_an_idle_proxy_shows_signs_of_life(void)
{
    struct proxied how = usual();
    struct proxied_side s[2];
    struct timespec nap = {.tv_nsec = 3 * silence_ns};

    how.mode[0] = CM_PROXY_INLINE;
    how.silence_ns = silence_ns;
    CHECK(proxied_pair(s, &how), "sockets");
    nanosleep(&nap, NULL);
    CHECK(s[0].lost == 0 && s[1].lost == 0, "lost %d %d", s[0].lost, s[1].lost);
    proxied_close(&s[0], 0);
    proxied_close(&s[1], 0);
}

/* ---- garbage ---- */

static struct cm_frame frame(enum cm_frame_type type, uint32_t port, uint64_t number,
                             uint64_t bytes)
{
    return (struct cm_frame){CM_FRAME_MAGIC, (uint16_t)type, port, number, 0, bytes};
}

/* A neighbour that writes two frames and then waits: the first greets, if it is right. */
static enum cm_status hear(struct cm_frame first, struct cm_frame second)
{
    struct proxied how = usual();
    struct cm_frame f[2] = {first, second};
    struct proxied_side s;
    enum cm_status st;
    int fd[2];

    if (!sockets_pair(fd) || proxied_open(&s, &how, 0, &fd[0], NULL) != CM_OK ||
        send(fd[1], f, sizeof(f), MSG_NOSIGNAL) != sizeof(f))
        abort();
    st = await_loss(&s);
    close(fd[1]);
    proxied_close(&s, 0);
    return st;
}

static void test_garbage_is_an_error(void)
{
    struct cm_frame ports = frame(CM_FRAME_PORTS, 1, 4, 0), other = ports, noise;

    ports.sig = 4096;
    other.sig = 8192;
    memset(&noise, 'x', sizeof(noise));
    const struct {
        struct cm_frame first, second;
        enum cm_status want;
    } rows[] = {
        {ports, noise, CM_ESYS},
        {ports, frame(CM_NFRAMES, 0, 0, 0), CM_ESYS},
        {frame(CM_FRAME_BEAT, 0, 0, 0), ports, CM_ESYS},
        {ports, ports, CM_ESYS},
        {other, ports, CM_EMISMATCH},
        {frame(CM_FRAME_PORTS, 2, 4, 0), ports, CM_EMISMATCH},
        {ports, frame(CM_FRAME_SLOT, 1, 0, 8), CM_ESYS},
        {ports, frame(CM_FRAME_SLOT, UINT32_MAX, 0, 8), CM_ESYS},
        {ports, frame(CM_FRAME_SLOT, 0, 1, 8), CM_ESYS},
        {ports, frame(CM_FRAME_SLOT, 0, 0, 4097), CM_ESYS},
        {ports, frame(CM_FRAME_SLOT, 0, 0, UINT64_MAX), CM_ESYS},
        {ports, frame(CM_FRAME_CREDIT, 0, 1, 0), CM_ESYS},
        {ports, frame(CM_FRAME_CREDIT, 1, 0, 0), CM_ESYS},
        {ports, frame(CM_FRAME_CREDIT, 0, 0, 1), CM_ESYS},
        {ports, frame(CM_FRAME_CONTROL, 0, 0, CM_CONTROL_BYTES + 1), CM_ESYS},
        {ports, frame(CM_FRAME_BYE, 0, 0, 9), CM_ESYS},
    };

    for (size_t i = 0; i < CM_LEN(rows); i++) {
        enum cm_status st = hear(rows[i].first, rows[i].second);

        CHECK(st == rows[i].want, "row %zu: status %d, want %d", i, st, rows[i].want);
    }
}

int main(void)
{
    RUN(test_an_end_without_a_word_is_a_death);
    RUN(test_a_killed_neighbour);
    RUN(test_a_stopped_neighbour);
    RUN(test_an_idle_proxy_shows_signs_of_life);
    RUN(test_garbage_is_an_error);
    return test_end();
}
