/*
 * The rows of a run, one after the other: for each type, operation and root
 * all cycles of all sizes, in the order of nccl-tests.
 */
#ifndef CM_COMMON_SWEEP_H
#define CM_COMMON_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/opts.h"

/* What to iterate over; set by cm_sweep_of(). */
struct cm_sweep {
    const struct cm_opts_sweep *opts;
    int ops, roots; /* how many; 1: the chosen one only */
    struct cm_point {
        size_t bytes; /* as asked for, not yet rounded */
        int cycle;    /* from 0 */
        int dtype, op;
        int root; /* -1: the collective has none */
    } now;
    bool started;
    uint64_t done;  /* points handed out so far */
    uint64_t total; /* of all, 0: endless */
};

/* Do ops loop with -o all (`reduces`), and roots with -r all (`rooted`), over `n` ranks? */
struct cm_sweep cm_sweep_of(const struct cm_opts_sweep *o, bool reduces, bool rooted, int n);

/* Next row into s->now; false: that was all. */
bool cm_sweep_next(struct cm_sweep *s);

/* The size after `bytes`, or 0 if it was the last one. */
size_t cm_sweep_size_after(const struct cm_opts_sweep *o, size_t bytes);

#endif
