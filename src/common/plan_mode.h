/* --plan: print plans and prove them; nothing runs. */
#ifndef CM_COMMON_PLAN_MODE_H
#define CM_COMMON_PLAN_MODE_H

#include "common/coll.h"
#include "common/opts.h"

/*
 * For the driver's collective and the forced algorithm and mode, or for all
 * that have a form of it: with -t x -g ranks above 1, print rank 0's plan and
 * its proof; with 1 rank, prove n = 2 .. 64, one line each. On stdout.
 * CM_EDATA: a proof failed (the reason is printed). CM_EUNSUP: there is no
 * such form. CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_plan_mode(const struct cm_bench *b, const struct cm_opts *o);

#endif
