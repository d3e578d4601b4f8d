/*
 * Which node is bad? The verdict over measured pairs, as pure functions.
 *
 * A unit (a node, or a rank where there is one node) is slow if even its best pairs
 * are: every pair is as slow as its slower end, so one good partner over one good link
 * clears a unit, and as long as they are the minority, any number of bad ones is
 * found. A link is slow if its two ends are good. What hangs or has wrong data is put
 * down to the fewest units that explain it, and what they leave to links.
 *
 * Noise: a figure is slow if it is below the others' by more than `slow_pct` and by
 * more than `mads` deviations: those of the pairs between units that are not suspected
 * (1.4826 x MAD, whatever their outliers), and those that pairs have by themselves.
 * Whoever is suspected runs again alone with good partners; then that decides.
 */
#ifndef CM_COMMON_FIND_JUDGE_H
#define CM_COMMON_FIND_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum cm_find_outcome { CM_FIND_RIGHT, CM_FIND_WRONG, CM_FIND_HUNG };

/* Two units that ran the collective together; a == b: one by itself. */
struct cm_find_run {
    int a, b;
    enum cm_find_outcome outcome;
    bool again;     /* a retest, while nothing else ran */
    int wrong_rank; /* world rank that first found wrong data; -1: none */
    double noise;   /* deviation of its figure, as a part of it: what its own steps say */
    double us, gbs; /* of an operation; bus bandwidth, of one rank by itself algorithm bandwidth */
};

/* All that is known. */
struct cm_find_data {
    int n;            /* units */
    const int *ranks; /* n: of each; pairs are compared with pairs of as many ranks */
    const struct cm_find_run *runs;
    size_t nruns;
    bool unfinished; /* nobody had the chance of a retest: who is slow is not accused of it */
};

struct cm_find_limits {
    double slow_pct; /* so much slower than the others is slow, at least: above 0, below 100 */
    double mads;     /* and by so many deviations */
    double min_gbs;  /* of every pair, whatever the others do; 0: not asked for */
};

/* Ordered: the later is worse. */
enum cm_find_class {
    CM_FIND_UNKNOWN, /* not tested, or never with a partner that came back */
    CM_FIND_GOOD,
    CM_FIND_SLOW,
    CM_FIND_HANGS,
    CM_FIND_CORRUPT
};

struct cm_find_unit {
    enum cm_find_class class;
    bool by_itself;  /* it is bad without a partner already */
    bool again;      /* a retest has confirmed it */
    int partners;    /* pairs of the rounds that ended right */
    int ended;       /* pairs that did not hang */
    int wrong_rank;  /* -1: none */
    double gbs;      /* median of its pairs, or by itself; NaN: none */
    double expected; /* what the others reach in its place; NaN */
};

struct cm_find_link {
    int a, b;
    enum cm_find_class class;
    bool again;
    double gbs, expected; /* NaN if it hangs */
};

struct cm_find_verdict {
    struct cm_find_unit *units; /* n */
    struct cm_find_link *links; /* bad ones */
    size_t nlinks;
    double expected;  /* median of pairs between units that are not bad; NaN: none */
    double limit_pct; /* below it by more is slow */
    bool compared;    /* enough units to compare with each other: three */
    size_t uneven;    /* so many pairs of good units are slow that none stands out; 0: no */
};

/* *out is the caller's: cm_find_verdict_free(), also after a failure. CM_ENOMEM. */
CM_MUST_CHECK enum cm_status cm_find_judge(const struct cm_find_data *d,
                                           const struct cm_find_limits *l,
                                           struct cm_find_verdict *out);
void cm_find_verdict_free(struct cm_find_verdict *v);

/* The worst of all units and links: CM_FIND_GOOD if none is bad. */
enum cm_find_class cm_find_worst(const struct cm_find_verdict *v, int n);

/* Has a unit hung so often that it is not tried again: by itself, or with two partners? */
bool cm_find_lost(const struct cm_find_data *d, int unit);

/* Did that pair hang? Then it must not run together again: its ports are not empty. */
bool cm_find_hung(const struct cm_find_data *d, int a, int b);

/* "good", "slow", "hangs", "corrupt", "unknown". */
const char *cm_find_class_name(enum cm_find_class c);

#endif
