/*
 * How long the rest of a sweep may take, from the rows measured so far. A row
 * takes a fixed time and a time that grows with its bytes; both are fitted to
 * what was measured. Sizes grow, so early guesses are too low.
 */
#ifndef CM_COMMON_ETA_H
#define CM_COMMON_ETA_H

#include <stddef.h>
#include <stdint.h>

#include "common/opts.h"

struct cm_eta {
    uint64_t rows;                       /* of the sweep; 0: endless */
    double bytes;                        /* of all of them */
    uint64_t n;                          /* rows measured, and sums over them: */
    double sum_b, sum_bb, sum_t, sum_bt; /* bytes, their squares, seconds, bytes x seconds */
};

/* A sweep of `rows` rows over the sizes of `o`. */
struct cm_eta cm_eta_of(const struct cm_opts_sweep *o, uint64_t rows);

/* A row of that many bytes was measured in `s` seconds, everything included. */
void cm_eta_took(struct cm_eta *e, size_t bytes, double s);

/* Seconds that a row of that many bytes may take; NaN: nothing was measured yet. */
double cm_eta_row(const struct cm_eta *e, size_t bytes);

/* Seconds that the rows not yet measured may take; NaN: not known. */
double cm_eta_left(const struct cm_eta *e);

/* "5 s", "12 min", "3 h 20 min" in buf; returns buf. */
enum { CM_SPAN_BYTES = 32 };
char *cm_eta_text(double s, char buf[CM_SPAN_BYTES]);

#endif
