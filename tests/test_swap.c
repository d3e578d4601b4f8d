/* Messages exchanged with several neighbours at once, larger than what sockets hold. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture.h"
#include "test.h"
#include "transport/swap.h"

enum { PARTIES = 3, MOST = 3 << 20 };
static const int64_t long_ns = 10LL * CM_NS_PER_S, short_ns = 200 * CM_NS_PER_MS;

/* What party `from` sends to party `to`. */
static size_t length(int from, int to)
{
    return from == to ? 0 : (size_t)MOST / (size_t)(1 + from) + (size_t)to;
}

static unsigned char byte_of(int from, int to, size_t at)
{
    return (unsigned char)(at * 7 + (size_t)from * 31 + (size_t)to * 3);
}

struct party {
    int me, first;    /* its first neighbour: all have another order */
    int fds[PARTIES]; /* to each other party */
    enum cm_status st;
    int wrong;
};

static void fill(const struct party *p, struct cm_swap *s, int other)
{
    unsigned char *out = malloc(length(p->me, other));

    for (size_t i = 0; i < length(p->me, other); i++)
        out[i] = byte_of(p->me, other, i);
    *s = (struct cm_swap){.fd = p->fds[other],
                          .proc = other,
                          .host = "here",
                          .out = out,
                          .out_bytes = length(p->me, other),
                          .in = malloc(length(other, p->me)),
                          .in_bytes = length(other, p->me)};
}

static int wrong_bytes(const struct party *p, const struct cm_swap *s)
{
    const unsigned char *in = s->in;
    int wrong = 0;

    for (size_t i = 0; i < s->in_bytes; i++)
        wrong += in[i] != byte_of(s->proc, p->me, i);
    return wrong;
}

static void *take_part(void *arg)
{
    struct party *p = arg;
    struct cm_swap swaps[PARTIES - 1];

    for (int k = 0; k < PARTIES - 1; k++)
        fill(p, &swaps[k], (p->me + 1 + (p->first + k) % (PARTIES - 1)) % PARTIES);
    p->st = cm_swap_all(swaps, PARTIES - 1, cm_now_ns() + long_ns);
    for (int k = 0; k < PARTIES - 1; k++) {
        p->wrong += wrong_bytes(p, &swaps[k]);
        free((void *)(uintptr_t)swaps[k].out);
        free(swaps[k].in);
    }
    return NULL;
}

static bool pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0;
}

static void test_all_swap_at_once(void)
{
    struct party parties[PARTIES];
    pthread_t threads[PARTIES];

    memset(parties, 0, sizeof(parties));
    for (int a = 0; a < PARTIES; a++) {
        parties[a].me = a;
        parties[a].first = a;
        for (int b = 0; b < a; b++) {
            int fds[2];

            CHECK(pair(fds), "socketpair");
            parties[a].fds[b] = fds[0];
            parties[b].fds[a] = fds[1];
        }
    }
    for (int a = 0; a < PARTIES; a++)
        pthread_create(&threads[a], NULL, take_part, &parties[a]);
    for (int a = 0; a < PARTIES; a++) {
        pthread_join(threads[a], NULL);
        CHECK(parties[a].st == CM_OK && parties[a].wrong == 0, "party %d: status %d, %d wrong", a,
              (int)parties[a].st, parties[a].wrong);
        for (int b = 0; b < PARTIES; b++)
            if (b != a)
                close(parties[a].fds[b]);
    }
}

/* Two neighbours, of which the second is `fd`'s other end and does not do its part. */
static enum cm_status swap_with(int fd, struct capture *said)
{
    char out = 'x', in;
    struct cm_swap s = {.fd = fd,
                        .proc = 7,
                        .host = "elsewhere",
                        .out = &out,
                        .out_bytes = 1,
                        .in = &in,
                        .in_bytes = 1};
    enum cm_status st;

    capture_begin(said, STDERR_FILENO);
    st = cm_swap_all(&s, 1, cm_now_ns() + short_ns);
    capture_end(said);
    return st;
}

static void test_who_is_silent_is_named(void)
{
    struct capture said;
    int fds[2];

    CHECK(pair(fds), "socketpair");
    CHECK(swap_with(fds[0], &said) == CM_ETIMEOUT, "silent");
    CHECK(strstr(said.text, "process 7 (host elsewhere) did not answer") != NULL, "%s", said.text);
    close(fds[1]);
    CHECK(swap_with(fds[0], &said) == CM_ESYS, "gone");
    CHECK(strstr(said.text, "process 7 (host elsewhere): its connection broke") != NULL, "%s",
          said.text);
    close(fds[0]);
}

int main(void)
{
    RUN(test_all_swap_at_once);
    RUN(test_who_is_silent_is_named);
    return test_end();
}
