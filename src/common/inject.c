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

enum {
    MAX_TEXT = 128,
    ANY = -1,
    MAX_DELAY_US = 3600 * 1000000LL,
    STALL_GRACE_NS = 5LL * CM_NS_PER_S
};

static const char *const fault_words[] = {
    [CM_FAULT_CORRUPT] = "corrupt",
    [CM_FAULT_STALL] = "stall",
    [CM_FAULT_DELAY] = "delay",
    [CM_FAULT_CRASH] = "crash",
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

enum key { KEY_RANK, KEY_ITER, KEY_PHASE, KEY_US, NKEYS };
static const char *const key_words[NKEYS] = {"rank", "iter", "phase", "us"};

/* "key=value"; `seen` has a bit per key. NULL, or what is wrong with it. */
static const char *parse_pair(char *pair, unsigned *seen, struct cm_inject *f)
{
    char *value = strchr(pair, '=');
    int64_t number = 0;
    int key = 0;

    if (value == NULL)
        return "expected key=value after the kind";
    *value++ = '\0';
    while (key < NKEYS && strcmp(key_words[key], pair) != 0)
        key++;
    if (key == NKEYS)
        return "the keys are rank, iter, phase and us";
    if ((*seen & 1U << key) != 0)
        return "a key is given twice";
    *seen |= 1U << key;
    if (key == KEY_PHASE)
        return parse_phase(value, &f->phase)
                   ? NULL
                   : "the phases are init, warmup, timed, check and finalize";
    if (!cm_parse_int(value, 0, key == KEY_US ? MAX_DELAY_US : INT32_MAX, &number))
        return "rank, iter and us take a number, us at most one hour";
    if (key == KEY_RANK)
        f->rank = (int)number;
    else if (key == KEY_ITER)
        f->iter = number;
    else
        f->us = number;
    return NULL;
}

/* What is wrong with a spec as a whole, or NULL. */
static const char *contradiction(const struct cm_inject *f, unsigned seen)
{
    bool outside = f->phase == CM_AT_SETUP || f->phase == CM_AT_FINALIZE;

    if (f->fault == CM_FAULT_DELAY && (seen & 1U << KEY_US) == 0)
        return "delay needs us=<microseconds>";
    if (f->fault != CM_FAULT_DELAY && (seen & 1U << KEY_US) != 0)
        return "only delay takes us";
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
    struct cm_inject f = {.fault = CM_FAULT_NONE, .iter = ANY, .phase = ANY};
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
        return refuse(text, "the kinds are corrupt, stall, delay and crash");
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
    int64_t until_ns = cm_now_ns() + w->timeout_ns + STALL_GRACE_NS;

    while (cm_abort_status(w->abort) == CM_OK) {
        sleep_us(1000);
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
