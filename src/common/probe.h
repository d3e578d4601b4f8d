/*
 * How far apart are the cores of the ranks? Two ranks exchange flags: each
 * writes its own cache line and waits for the other's. Inside of one shared
 * cache that takes some 50 to 100 ns, between caches or sockets 200 to 500.
 *
 * The host of a virtual machine moves its cores within seconds, and small
 * operations then take two to three times as long. So a launch is probed before
 * its first row and after its last, and tagged: figures of launches with
 * different tags are not compared.
 */
#ifndef CM_COMMON_PROBE_H
#define CM_COMMON_PROBE_H

#include "common/launch.h"

enum {
    CM_PROBE_ROUNDS = 15, /* all pairs of up to 16 ranks, 15 of each rank's beyond that */
    CM_PROBE_PAIRS = 28,  /* so many are told one by one */
    CM_PROBE_NEAR_NS = 150
};

struct cm_probe_pair {
    int a, b; /* world ranks, a < b */
    double ns;
};

/* One probe: time of an exchange, a median over small batches, in ns. */
struct cm_probe {
    const char *why; /* no figures, for this reason (static text); NULL: there are */
    int pairs;       /* that were probed */
    double least_ns, most_ns;
    int listed; /* entries of `pair`: all pairs, or 0: too many */
    struct cm_probe_pair pair[CM_PROBE_PAIRS];
};

/* Of a launch. A phase that was not reached has neither figures nor a reason: pairs 0. */
struct cm_probes {
    struct cm_probe before, after;
};

/*
 * Probe. Collective over all ranks of the job, which have no operation under way and
 * no results to be checked: overwrites the first line of each arena. Same result on
 * all ranks. Takes a fraction of a millisecond for each round of disjoint pairs, so a
 * few at most. CM_ETIMEOUT, CM_EABORT as other waits; CM_ENOMEM.
 */
CM_MUST_CHECK enum cm_status cm_probe_run(struct cm_rank *r, struct cm_probe *out);

/* Probe behind the last row; as cm_probe_run(). `report`: of world rank 0, else NULL. */
struct cm_report;
CM_MUST_CHECK enum cm_status cm_probe_again(struct cm_rank *r, struct cm_report *report,
                                            struct cm_probes *probes);

/* "near": all pairs below CM_PROBE_NEAR_NS, "far": none, "mixed": some; NULL: no figures. */
const char *cm_probe_class(const struct cm_probe *p);

/* Tag of a launch: the class of both probes, or "moved" if they differ; NULL: one has none. */
const char *cm_probes_tag(const struct cm_probes *p);

/*
 * The partner of `rank` in a round: everyone meets everyone in n - 1 rounds (n if n is odd, with
 * a rest of one round each). -1: rests. Source: the circle method of tournaments.
 */
int cm_probe_partner(int rank, int n, int round);

#endif
