/* A pair of the ib wire over the double, in inline mode, for tests of what goes wrong. */
#ifndef CM_TESTS_IB_DOUBLE_H
#define CM_TESTS_IB_DOUBLE_H

#include "ib_side.h"
#include "test.h"
#include "verbs_double.h"

static inline int64_t ib_soon(void)
{
    return cm_now_ns() + 40LL * CM_NS_PER_S;
}

/* Violations that the fault itself is are not looked at. */
static inline void ib_end(const char *what, int expected)
{
    char text[DOUBLE_TEXT];
    int n = verbs_double_end(text);

    CHECK(n == expected, "%s: %d violations, the first: %s", what, n, text);
}

static inline struct ib_how ib_begin(const struct double_device *devices)
{
    struct double_setup setup = double_usual();
    struct ib_how how = ib_usual();

    setup.devices = devices;
    how.verbs = verbs_double();
    how.p.mode[0] = how.p.mode[1] = CM_PROXY_INLINE;
    verbs_double_begin(&setup);
    return how;
}

static inline void ib_until_lost(struct ib_side s[2], int side)
{
    for (int64_t until = ib_soon(); s[side].p.lost == 0 && cm_now_ns() < until; sched_yield()) {
        cm_ib_progress(s[0].ib);
        cm_ib_progress(s[1].ib);
    }
}

#endif
