/*
 * Two network namespaces with a cable between them: the proxy works over it,
 * and says so in time when the cable is cut.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "proxied.h"
#include "test.h"
#include "transport/meet.h"

static const int64_t long_ns = 10LL * CM_NS_PER_S, silence_ns = 400 * CM_NS_PER_MS;

enum { SLOTS = 200 };

static const struct proxied how = {.ports = 2,
                                   .depth = 4,
                                   .sockets = 2,
                                   .slot_bytes = 16384,
                                   .mode = {CM_PROXY_THREAD, CM_PROXY_THREAD},
                                   .spins = 2,
                                   .silence_ns = silence_ns};

/* Shared by the two "hosts" and the test. */
struct stage {
    _Atomic int arrived[2]; /* 1: in its namespace, 2: listens, 3: has passed all, 4: lost it */
    _Atomic int go;         /* 1: the cable is there, 2: it is about to be cut */
    _Atomic int status[2];  /* of the loss */
    struct cm_net_addr at[2];
};

static bool await(const _Atomic int *word, int value)
{
    int64_t until = cm_now_ns() + long_ns;

    while (atomic_load(word) < value && cm_now_ns() < until)
        sched_yield();
    return atomic_load(word) >= value;
}

static bool traffic(struct proxied_side *s)
{
    int64_t until = cm_now_ns() + long_ns;
    bool right = true, left = true;

    while (right && left && cm_now_ns() < until) {
        left = false;
        for (int i = 0; i < how.ports; i++) {
            if (s->got[i] < SLOTS)
                right &= proxied_get(s, i) >= 0;
            if (s->sent[i] < SLOTS)
                proxied_put(s, i);
            left |= s->got[i] < SLOTS || s->sent[i] < SLOTS;
        }
        cm_proxy_progress(s->proxy);
        sched_yield();
    }
    return right && !left;
}

static int live(struct stage *st, int me)
{
    static const unsigned char token[CM_NET_TOKEN] = "two hosts, cable";
    struct cm_net_if *ifs = NULL;
    int fds[PROXIED_SOCKETS], n = 0;
    struct cm_meet_peer peer = {.proc = !me, .host = "other", .fds = fds};
    struct cm_meet_args a = {
        .proc = me, .sockets = how.sockets, .peers = &peer, .npeers = 1, .listener = -1};
    struct cm_meet_trouble trouble;
    struct proxied_side s;

    if (unshare(CLONE_NEWNET) != 0)
        return 77;
    atomic_store(&st->arrived[me], 1);
    if (!await(&st->go, 1) || cm_net_list(&ifs, &n) != CM_OK ||
        cm_net_select(ifs, &n, "cm") != CM_OK ||
        cm_net_listen(&ifs[0], (struct cm_net_ports){0, 0}, &a.listener, &st->at[me]) != CM_OK)
        return 2;
    atomic_store(&st->arrived[me], 2);
    if (!await(&st->arrived[!me], 2))
        return 3;
    memcpy(a.token, token, sizeof(a.token));
    peer.addr = st->at[!me];
    a.on = &ifs[0];
    a.until_ns = cm_now_ns() + long_ns;
    if (cm_meet(&a, &trouble) != CM_OK || proxied_open(&s, &how, me, fds, NULL) != CM_OK ||
        !traffic(&s))
        return 4;
    atomic_store(&st->arrived[me], 3);
    if (!await(&s.lost, 1))
        return 5;
    atomic_store(&st->status[me], atomic_load(&s.lost) - 1);
    atomic_store(&st->arrived[me], 4);
    proxied_close(&s, 0);
    free(ifs);
    return 0;
}

static bool command(const char *format, int pid)
{
    char text[256];

    snprintf(text, sizeof(text), format, pid, pid);
    return system(text) == 0;
}

/* A cable cm0 - cm1, with addresses that need no detection of duplicates. */
static bool lay_cable(const pid_t pid[2])
{
    return command("ip link add cmtest%d type veth peer name cmtesu%d 2>/dev/null", (int)pid[0]) &&
           command("ip link set cmtest%d netns %d name cm0", (int)pid[0]) &&
           command("nsenter -t %d -n ip addr add 198.51.100.1/24 dev cm0", (int)pid[0]) &&
           command("nsenter -t %d -n ip link set cm0 up", (int)pid[0]);
}

static bool lay_other_end(const pid_t pid[2])
{
    char text[256];

    snprintf(text, sizeof(text), "ip link set cmtesu%d netns %d name cm1", (int)pid[0],
             (int)pid[1]);
    return system(text) == 0 &&
           command("nsenter -t %d -n ip addr add 198.51.100.2/24 dev cm1", (int)pid[1]) &&
           command("nsenter -t %d -n ip link set cm1 up", (int)pid[1]);
}

static void cut_and_watch(struct stage *st, const pid_t pid[2])
{
    int64_t t;

    CHECK(await(&st->arrived[0], 3) && await(&st->arrived[1], 3), "traffic: %d %d", st->arrived[0],
          st->arrived[1]);
    t = cm_now_ns();
    CHECK(command("nsenter -t %d -n ip link set cm0 down", (int)pid[0]), "cut");
    for (int me = 0; me < 2; me++) {
        CHECK(await(&st->arrived[me], 4), "side %d does not notice", me);
        CHECK(st->status[me] == CM_ETIMEOUT || (me == 0 && st->status[me] == CM_ESYS),
              "side %d: status %d", me, st->status[me]);
    }
    t = cm_now_ns() - t;
    CHECK(t < 3 * (int64_t)CM_NS_PER_S, "noticed after %.3f s", (double)t / CM_NS_PER_S);
}

static void test_a_cut_cable_is_noticed(void)
{
    struct stage *st =
        mmap(NULL, sizeof(*st), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[2];
    bool ready;

    if (st == MAP_FAILED)
        abort();
    fflush(NULL);
    for (int me = 0; me < 2; me++) {
        pid[me] = fork();
        if (pid[me] == 0)
            _exit(live(st, me));
    }
    for (int64_t until = cm_now_ns() + CM_NS_PER_S; cm_now_ns() < until && st->arrived[0] == 0;)
        sched_yield();
    ready = st->arrived[0] == 1 && await(&st->arrived[1], 1) && lay_cable(pid) &&
            lay_other_end(pid);
    if (ready) {
        atomic_store(&st->go, 1);
        cut_and_watch(st, pid);
    } else {
        SKIP("no network namespaces, or no ip and nsenter to lay a cable (needs root)");
    }
    for (int me = 0; me < 2; me++) {
        int status = 0;

        if (!ready || test_state.broken)
            kill(pid[me], SIGKILL);
        waitpid(pid[me], &status, 0);
        CHECK(!ready || status == 0, "side %d: 0x%x", me, (unsigned)status);
    }
    munmap(st, sizeof(*st));
}

int main(void)
{
    RUN(test_a_cut_cable_is_noticed);
    return test_end();
}
