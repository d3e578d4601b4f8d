/* One side of the ib wire for tests: its ports in one piece of memory, and traffic through them. */
#ifndef CM_TESTS_IB_SIDE_H
#define CM_TESTS_IB_SIDE_H

#include <sched.h>

#include "proxied.h"
#include "transport/ib.h"

/* How a pair is made: ports and slots as for the proxy. */
struct ib_how {
    struct proxied p;
    struct cm_ib_choice choice;
    const char *hca[2]; /* of each side */
    const struct cm_verbs *verbs;
    const char *sysfs;
    bool crowded;
};

static inline struct ib_how ib_usual(void)
{
    struct ib_how how = {.p = proxied_usual(0),
                         .choice = cm_ib_usual(),
                         .hca = {"dbl0", "dbl1"},
                         .sysfs = "/nowhere",
                         .crowded = true};

    how.choice.retries = 2;
    return how;
}

struct ib_side {
    struct proxied_side p; /* .proxy stays NULL */
    struct cm_ib *ib;
    char *memory;
    char why[CM_TEXT]; /* valid once p.lost is set */
};

static inline void ib_side_lost(void *arg, int proc, enum cm_status st, const char *why)
{
    struct ib_side *s = arg;

    strncpy(s->why, why, sizeof(s->why) - 1);
    proxied_lost(&s->p, proc, st, why);
}

static inline size_t ib_port_stride(const struct proxied *how)
{
    size_t slot = sizeof(struct cm_slot_head) + how->slot_bytes;
    size_t bytes = sizeof(struct cm_port_lines) + (size_t)how->depth * slot;

    return (bytes + CM_PAGE - 1) / CM_PAGE * CM_PAGE;
}

/* Ports to receive first, then those that leave, as in a segment. */
static inline void ib_side_ports(struct ib_side *s, const struct proxied *how)
{
    size_t stride = ib_port_stride(how), n = (size_t)how->ports;

    s->memory = aligned_alloc(CM_PAGE, 2 * n * stride);
    if (s->memory == NULL)
        abort();
    memset(s->memory, 0, 2 * n * stride);
    for (size_t i = 0; i < n; i++) {
        s->p.recv[i] = (void *)(s->memory + i * stride);
        s->p.send[i] = (void *)(s->memory + (n + i) * stride);
    }
}

static inline enum cm_status ib_side_open(struct ib_side *s, const struct ib_how *how, int proc)
{
    struct cm_ib_peer peer = {.proc = !proc,
                              .host = "there",
                              .send = (void *const *)s->p.send,
                              .recv = (void *const *)s->p.recv,
                              .nsend = how->p.ports,
                              .nrecv = how->p.ports};
    struct cm_ib_args a = {.proc = proc,
                           .depth = how->p.depth,
                           .slot_bytes = how->p.slot_bytes,
                           .peers = &peer,
                           .npeers = 1,
                           .choice = how->choice,
                           .mode = how->p.mode[proc],
                           .spins = how->p.spins,
                           .crowded = how->crowded,
                           .events = {.arg = s, .lost = ib_side_lost},
                           .verbs = how->verbs,
                           .sysfs = how->sysfs};

    memset(s, 0, sizeof(*s));
    s->p.how = &how->p;
    s->p.proc = proc;
    a.choice.hca = how->hca[proc];
    ib_side_ports(s, &how->p);
    return cm_ib_open(&a, &s->ib);
}

/* Both sides of this process, connected and started. */
static inline bool ib_pair(struct ib_side s[2], const struct ib_how *how)
{
    size_t bytes = cm_ib_offer_bytes(how->p.ports);
    char *offer = malloc(bytes);
    bool right = offer != NULL && ib_side_open(&s[0], how, 0) == CM_OK &&
                 ib_side_open(&s[1], how, 1) == CM_OK;

    for (int i = 0; right && i < 2; i++) {
        cm_ib_offer(s[!i].ib, 0, offer);
        right = cm_ib_connect(s[i].ib, 0, offer, bytes) == CM_OK;
    }
    for (int i = 0; right && i < 2; i++)
        right = cm_ib_start(s[i].ib) == CM_OK;
    free(offer);
    return right;
}

static inline enum cm_status ib_side_close(struct ib_side *s, int64_t until_ns)
{
    enum cm_status st = cm_ib_close(s->ib, until_ns);

    free(s->memory);
    s->ib = NULL;
    s->memory = NULL;
    return st;
}

/* An executor's life: fill and take `slots` of every port, in both directions at once. */
struct ib_traffic {
    struct ib_side *side;
    uint64_t slots;
    int64_t until_ns;
    const char *wrong; /* NULL: all is right */
};

static inline void *ib_run_traffic(void *arg)
{
    struct ib_traffic *t = arg;
    struct proxied_side *s = &t->side->p;
    bool left = true;

    for (uint64_t round = 0; left && t->wrong == NULL; round++) {
        bool moved = false;

        left = false;
        for (int i = 0; i < s->how->ports; i++) {
            /* Now and then a port is left alone, so that it runs full. */
            bool lazy = proxied_mix(i, round, 3) % 8 == 0;
            int got = s->got[i] < t->slots && !lazy ? proxied_get(s, i) : 0;

            moved |= got != 0 || (s->sent[i] < t->slots && proxied_put(s, i));
            left |= s->got[i] < t->slots || s->sent[i] < t->slots;
            if (got < 0)
                t->wrong = "a slot is wrong";
        }
        if (!cm_ib_progress(t->side->ib) && !moved)
            sched_yield();
        if (cm_now_ns() > t->until_ns)
            t->wrong = "no end";
    }
    cm_ib_rest(t->side->ib);
    return NULL;
}

#endif
