/*
 * Faults on request. The grammar is strict, so that a fault that was asked for
 * is never silently absent: a test that believes in it would prove nothing.
 */
#include "common/inject.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

#define LEAST_FACTOR 0.001
#define MOST_FACTOR 0.999

enum {
    MAX_TEXT = 128,
    ANY = -1,
    MAX_DELAY_US = 3600 * 1000000LL,
    STALL_GRACE_NS = 5LL * CM_NS_PER_S
};

static const char *const fault_words[] = {
    [CM_FAULT_CORRUPT] = "corrupt", [CM_FAULT_STALL] = "stall", [CM_FAULT_DELAY] = "delay",
    [CM_FAULT_CRASH] = "crash",     [CM_FAULT_BW] = "bw",
};

static enum cm_status refuse(const char *text, const char *why)
{
    return CM_FAIL(CM_EINVAL, "--inject %.*s: %s", MAX_TEXT, text, why);
}

static bool parse_fault(const char *word, enum cm_fault *out)
{
    for (size_t f = CM_FAULT_CORRUPT; f < CM_LEN(fault_words); f++)
        if (strcmp(fault_words[f], word) == 0) {
            *out = (enum cm_fault)f;
            return true;
        }
    return false;
}

/* The phases that a fault may name; sync and done are not places of their own. */
static bool parse_phase(const char *word, int *out)
{
    static const int phases[] = {CM_AT_SETUP, CM_AT_WARMUP, CM_AT_TIMED, CM_AT_CHECK,
                                 CM_AT_FINALIZE};

    for (size_t i = 0; i < CM_LEN(phases); i++)
        if (strcmp(cm_phase_text((uint32_t)phases[i]), word) == 0) {
            *out = phases[i];
            return true;
        }
    return false;
}

enum key {
    KEY_RANK,
    KEY_ITER,
    KEY_PHASE,
    KEY_US,
    KEY_NODE,
    KEY_LINK,
    KEY_FACTOR,
    KEY_ENGINE,
    NKEYS
};
static const char *const key_words[NKEYS] = {"rank", "iter", "phase",  "us",
                                             "node", "link", "factor", "engine"};

/* The side of a comparison; whether there is one of that name is for who knows them. */
static bool parse_engine(const char *value, struct cm_inject *f)
{
    size_t len = strlen(value);

    if (len == 0 || len >= sizeof(f->engine))
        return false;
    memcpy(f->engine, value, len + 1);
    return true;
}

/* "2-5": two nodes. */
static bool parse_link(char *value, int node[2])
{
    char *dash = strchr(value, '-');
    int64_t a, b;

    if (dash == NULL)
        return false;
    *dash = '\0';
    if (!cm_parse_int(value, 0, CM_MAX_RANKS - 1, &a) ||
        !cm_parse_int(dash + 1, 0, CM_MAX_RANKS - 1, &b) || a == b)
        return false;
    node[0] = (int)a;
    node[1] = (int)b;
    return true;
}

/* A value that is one number. NULL, or what is wrong with it. */
static const char *parse_number(enum key key, const char *value, struct cm_inject *f)
{
    int64_t most = key == KEY_US ? MAX_DELAY_US : key == KEY_NODE ? CM_MAX_RANKS - 1 : INT32_MAX;
    int64_t number = 0;

    if (!cm_parse_int(value, 0, most, &number))
        return "rank, node, iter and us take a number, us at most one hour";
    if (key == KEY_RANK)
        f->rank = (int)number;
    else if (key == KEY_NODE)
        f->node[0] = (int)number;
    else if (key == KEY_ITER)
        f->iter = number;
    else
        f->us = number;
    return NULL;
}

static const char *parse_value(enum key key, char *value, struct cm_inject *f)
{
    switch (key) {
    case KEY_PHASE:
        return parse_phase(value, &f->phase)
                   ? NULL
                   : "the phases are init, warmup, timed, check and finalize";
    case KEY_LINK:
        return parse_link(value, f->node) ? NULL : "link takes two different nodes, as 2-5";
    case KEY_FACTOR:
        return cm_parse_real(value, LEAST_FACTOR, MOST_FACTOR, &f->factor)
                   ? NULL
                   : "factor takes a number between 0.001 and 0.999";
    case KEY_ENGINE:
        return parse_engine(value, f) ? NULL : "engine takes the name of one, as mpi";
    default:
        return parse_number(key, value, f);
    }
}

/* "key=value"; `seen` has a bit per key. NULL, or what is wrong with it. */
static const char *parse_pair(char *pair, unsigned *seen, struct cm_inject *f)
{
    char *value = strchr(pair, '=');
    int key = 0;

    if (value == NULL)
        return "expected key=value after the kind";
    *value++ = '\0';
    while (key < NKEYS && strcmp(key_words[key], pair) != 0)
        key++;
    if (key == NKEYS)
        return "the keys are rank, node, link, iter, phase, engine, us and factor";
    if ((*seen & 1U << key) != 0)
        return "a key is given twice";
    *seen |= 1U << key;
    return parse_value((enum key)key, value, f);
}

static bool has(unsigned seen, enum key key)
{
    return (seen & 1U << key) != 0;
}

/* What is wrong with a spec as a whole, or NULL. */
static const char *contradiction(const struct cm_inject *f, unsigned seen)
{
    bool outside = f->phase == CM_AT_SETUP || f->phase == CM_AT_FINALIZE;

    if (has(seen, KEY_RANK) + has(seen, KEY_NODE) + has(seen, KEY_LINK) > 1)
        return "rank, node and link exclude each other";
    if ((f->fault == CM_FAULT_DELAY) != has(seen, KEY_US))
        return has(seen, KEY_US) ? "only delay takes us" : "delay needs us=<microseconds>";
    if ((f->fault == CM_FAULT_BW) != has(seen, KEY_FACTOR))
        return has(seen, KEY_FACTOR) ? "only bw takes factor"
                                     : "bw needs factor=<part of the speed>";
    if (outside && (f->fault == CM_FAULT_BW || has(seen, KEY_LINK) || has(seen, KEY_ENGINE)))
        return "init and finalize have no operations";
    if (f->fault == CM_FAULT_CORRUPT && outside)
        return "init and finalize have no output to corrupt";
    if (outside && f->iter > 0)
        return "init and finalize have no iterations";
    if (f->fault == CM_FAULT_CORRUPT && f->phase == CM_AT_WARMUP)
        return "the output of warm-up is never checked";
    return NULL;
}

enum cm_status cm_inject_parse(const char *text, int nranks, struct cm_inject *out)
{
    struct cm_inject f = {.fault = CM_FAULT_NONE, .iter = ANY, .phase = ANY, .node = {ANY, ANY}};
    char copy[MAX_TEXT], *rest, *pairs;
    const char *wrong = NULL;
    unsigned seen = 0;

    if (text == NULL) {
        *out = f;
        return CM_OK;
    }
    if (strlen(text) >= sizeof(copy))
        return refuse(text, "too long");
    memcpy(copy, text, strlen(text) + 1);
    rest = copy;
    pairs = strchr(copy, ':');
    if (pairs != NULL)
        *pairs++ = '\0';
    if (!parse_fault(rest, &f.fault))
        return refuse(text, "the kinds are corrupt, stall, delay, crash and bw");
    for (char *pair = pairs; pair != NULL && wrong == NULL; pair = pairs) {
        pairs = strchr(pair, ',');
        if (pairs != NULL)
            *pairs++ = '\0';
        wrong = parse_pair(pair, &seen, &f);
    }
    if (wrong == NULL)
        wrong = contradiction(&f, seen);
    if (wrong != NULL)
        return refuse(text, wrong);
    if (nranks > 0 && f.rank >= nranks)
        return CM_FAIL(CM_EINVAL, "--inject %s: no such rank: rank=%d, but there are 0 to %d", text,
                       f.rank, nranks - 1);
    *out = f;
    return CM_OK;
}

static bool on_node(int node, const int32_t *ranks, int n, const int32_t *node_of)
{
    for (int i = 0; i < n; i++)
        if (node_of[ranks == NULL ? i : ranks[i]] == node)
            return true;
    return false;
}

enum cm_status cm_inject_check(const struct cm_inject *f, const char *text, const int32_t *node_of,
                               int n)
{
    for (int k = 0; k < 2; k++)
        if (f->node[k] != ANY && !on_node(f->node[k], NULL, n, node_of))
            return CM_FAIL(CM_EINVAL, "--inject %s: there is no node %d", text, f->node[k]);
    return CM_OK;
}

bool cm_inject_in(const struct cm_inject *f, const char *side)
{
    return f->engine[0] == '\0' || (side != NULL && strcmp(f->engine, side) == 0);
}

struct cm_inject cm_inject_at(const struct cm_inject *f, const struct cm_inject_place *p)
{
    struct cm_inject here = *f;
    bool hit = f->rank == p->rank;
    int32_t mine = p->node_of[p->rank];

    if (f->node[1] != ANY)
        hit = (mine == f->node[0] || mine == f->node[1]) &&
              on_node(f->node[0], p->group, p->n, p->node_of) &&
              on_node(f->node[1], p->group, p->n, p->node_of);
    else if (f->node[0] != ANY)
        hit = mine == f->node[0];
    here.rank = p->rank;
    if (!hit)
        here.fault = CM_FAULT_NONE;
    return here;
}

static bool hits(const struct cm_inject *f, int rank, enum cm_phase_name phase, int64_t iter)
{
    bool operation = phase == CM_AT_WARMUP || phase == CM_AT_TIMED || phase == CM_AT_CHECK;

    return f->fault != CM_FAULT_NONE && f->rank == rank && (f->iter == ANY || f->iter == iter) &&
           (f->phase == ANY ? operation : f->phase == (int)phase);
}

static void sleep_us(int64_t us)
{
    struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * CM_NS_PER_US};

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) != 0)
        ; /* a signal is no reason to come early */
}

/* If nobody waits for this rank, nobody's deadline ends the job: then it does so itself. */
static enum cm_status stall(const struct cm_waiter *w)
{
    int64_t until_ns = cm_now_ns() + w->timeout_ns + (w->attempt == NULL ? STALL_GRACE_NS : 0);

    while (!cm_waiter_ended(w)) {
        sleep_us(1000);
        if (w->attempt != NULL && cm_now_ns() > until_ns) {
            w->attempt->over = true;
            return CM_ETIMEOUT;
        }
        if (cm_now_ns() > until_ns && cm_abort_raise(w->abort, CM_ETIMEOUT, w->rank))
            return CM_FAIL(CM_ETIMEOUT, "injected stall: nobody waited for this rank");
    }
    return CM_EABORT;
}

enum cm_status cm_inject_before(const struct cm_inject *f, const struct cm_waiter *w, int rank,
                                enum cm_phase_name phase, int64_t iter)
{
    if (!hits(f, rank, phase, iter))
        return CM_OK;
    switch (f->fault) {
    case CM_FAULT_STALL:
        return stall(w);
    case CM_FAULT_DELAY:
        sleep_us(f->us);
        break;
    case CM_FAULT_CRASH:
        kill(getpid(), SIGKILL);
        break;
    case CM_FAULT_NONE:
    case CM_FAULT_CORRUPT:
    case CM_FAULT_BW:
        break;
    }
    return CM_OK;
}

/*
 * The last byte holds the high bits of the last element, whatever its type:
 * the change is far above every tolerance.
 */
void cm_inject_after(const struct cm_inject *f, int rank, enum cm_phase_name phase, int64_t iter,
                     void *out, size_t bytes)
{
    if (f->fault == CM_FAULT_CORRUPT && bytes > 0 && hits(f, rank, phase, iter))
        ((unsigned char *)out)[bytes - 1] ^= 0x40;
}

void cm_inject_slow(const struct cm_inject *f, int64_t ns)
{
    if (f->fault == CM_FAULT_BW)
        sleep_us((int64_t)((double)ns * (1 / f->factor - 1)) / CM_NS_PER_US);
}
